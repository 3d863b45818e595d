//! What is asked: attentions, their matrices, how deep, and the law to start from.

use crate::asking::{square, square_rule};
use esscher_core::Mat;
use esscher_core::layers::AtCollapse;
use esscher_core::measure::Gaussian;
use esscher_lab::specification::{Bounds, Kind, Mistake, Rule, Section, choices, integer, one_of, own, real};
use esscher_lab::{keys, named};
use serde_json::{Value, json};

named! {
    /// The attention of a layer.
    pub enum Attention {
        /// Softmax.
        Softmax = "softmax",
        /// Linear in the scores.
        Linear = "linear",
        /// By squared distances of queries and keys.
        L2 = "l2",
        /// Softmax normalised over queries and keys.
        Sinkhorn = "sinkhorn",
    }
}

keys! {
    /// Where does a Gaussian go through residual layers?
    pub struct Ask {
        /// The kinds of attention, one after the other
        attentions: Vec<Attention> = choices::<Attention>().or(["softmax"]),
        /// Dimension of the tokens
        dimension: u64 = integer(1..=256),
        /// The matrix Q of the scores U = KᵀQ: a number (times the identity) or rows
        query: Option<Mat<f64>> = factor(1) => factor(dimension as usize),
        /// The matrix K of the scores U = KᵀQ
        key: Option<Mat<f64>> = factor(1) => factor(dimension as usize),
        /// The score matrix U itself
        score: Option<Mat<f64>> = square_rule(1) => square_rule(dimension as usize); if query.is_none();
            else "`query` or `key` is given as well; give scores one way",
        /// The value matrix
        value: Mat<f64> = square_rule(1) => square_rule(dimension as usize),
        /// Number of layers; without it the depth is a continuous time
        layers: Option<u64> = integer(1..=100_000).optional(),
        /// What the output of a layer is multiplied by
        step_size: Option<f64> = real(Bounds::Any).or(1.0); if layers.is_some();
            else "a flow has no step size; give `layers` for a stack",
        /// When a flow ends
        end_time: Option<f64> = real(Bounds::Between(1e-9, 1e9)).or(1.0); if layers.is_none(); else NO_TIME,
        /// Times of a flow at which the law is shown
        rows: Option<u64> = integer(1..=10_000).or(50_u64); if layers.is_none(); else NO_TIME,
        /// What a flow does when the covariance loses a direction
        at_collapse: Option<AtCollapse> =
            one_of(&[("stop", AtCollapse::Stop), ("continue", AtCollapse::Continue)]).or("stop");
            if layers.is_none(); else NO_TIME,
        /// An eigenvalue has collapsed when it is below this fraction of the largest one at the start
        collapse_threshold: Option<f64> = real(Bounds::Between(1e-14, 0.5)).or(1e-6);
            if layers.is_none(); else NO_TIME,
        /// The law of the tokens before the first layer
        start: Gaussian = own(|section, key| start(section, key, 1), start_schema())
            => own(|section, key| start(section, key, dimension as usize), Value::Null),
    }
}

const NO_TIME: &str = "a number of `layers` is given as well; a stack of layers has no flow time";

/// A factor of the scores: where one of the two is given, the other is the identity.
fn factor(dimension: usize) -> impl Rule<Value = Option<Mat<f64>>> {
    let read = move |section: &mut Section, key: &'static str| {
        let is_given = ["query", "key"].map(|key| section.form(key).is_some()).contains(&true);
        is_given.then(|| square(section, key, dimension, Some(1.0))).transpose()
    };
    own(read, square_rule(dimension).schema()).optional()
}

fn start(section: &mut Section, key: &'static str, dimension: usize) -> Result<Gaussian, Mistake> {
    section.table(key, |table| {
        let zero = vec![0.0; dimension];
        let mean = table.reals("mean", Bounds::Any, dimension..=dimension, Some(&zero))?;
        let covariance = square(table, "covariance", dimension, Some(1.0))?;
        let made = Gaussian::new(&mean, covariance.as_ref());
        table.accept("covariance", made)
    })
}

fn start_schema() -> Value {
    json!({ "type": "object", "additionalProperties": false, "properties": {
        "mean": { "type": "array", "items": { "type": "number" }, "description": "The mean, 0 if it is not given" },
        "covariance": square_rule(1).schema(),
    } })
}
