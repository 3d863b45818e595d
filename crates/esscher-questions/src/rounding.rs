//! What rounding may do to an output: sizes cancel on the way to it, and the digits that were lost do not come back.

use crate::asking::Tokens;
use esscher_core::attention::{Attention, Softmax};
use esscher_core::measure::Measure;
use esscher_core::numerics::linalg;
use esscher_core::{Error, MatRef};

/// Sums of products in double precision, relative to their value, if nothing cancels.
pub(crate) const ROUNDING: f64 = 1e-13;

/// How large the coordinates of tokens are, and how far apart: of given tokens, of the means of components, or of the mean.
pub(crate) struct Sizes {
    largest: Vec<f64>,
    ranges: Vec<f64>,
    /// Of laws whose spread no list of points tells.
    is_law: bool,
}

/// Bounds of what rounding does at one query.
pub(crate) struct Rounding {
    /// Of each output.
    outputs: Vec<f64>,
    /// Of the scores.
    scores: f64,
}

impl Sizes {
    pub(crate) fn of(tokens: &Tokens) -> Result<Self, Error> {
        match tokens {
            Tokens::Given(prompt) => Ok(Sizes::of_points(prompt.points(), tokens.law().dimension(), false)),
            Tokens::Law(_) => Sizes::of_law(tokens.law().as_ref()),
        }
    }

    pub(crate) fn of_law(law: &dyn Measure) -> Result<Self, Error> {
        let dimension = law.dimension();
        Ok(match law.as_gaussian_mixture() {
            Some(components) => {
                let means = components.iter().map(|one| one.gaussian.mean_vector());
                Sizes::of_points(means, dimension, true)
            }
            None => {
                let mean = law.tilted_mean(&vec![0.0; dimension])?;
                Sizes::of_points([mean.as_slice()].into_iter(), dimension, true)
            }
        })
    }

    fn of_points<'a>(points: impl Iterator<Item = &'a [f64]>, dimension: usize, is_law: bool) -> Self {
        let (mut lowest, mut highest) = (vec![f64::INFINITY; dimension], vec![f64::NEG_INFINITY; dimension]);
        for point in points {
            for (index, entry) in point.iter().enumerate() {
                lowest[index] = lowest[index].min(*entry);
                highest[index] = highest[index].max(*entry);
            }
        }
        let pairs = || lowest.iter().zip(&highest);
        Sizes {
            largest: pairs().map(|(low, high)| low.abs().max(high.abs())).collect(),
            ranges: pairs().map(|(low, high)| high - low).collect(),
            is_law,
        }
    }

    /// At a query: scores are sums of products of entries of U, of the query and of tokens, each of which is rounded on its own scale; an
    /// error of the scores moves the output by as much as the tokens lie apart.
    pub(crate) fn rounding(
        &self,
        head: &Softmax,
        law: &dyn Measure,
        query: &[f64],
    ) -> Result<Rounding, Error> {
        let (score, value) = (head.score(), head.value());
        let (unit, tilts) = (unit(head), sizes_of_product(score, query));
        let scores = unit * self.largest.iter().zip(&tilts).map(|(size, tilt)| size * tilt).sum::<f64>();
        let nothing = vec![0.0; self.largest.len()];
        let moved = match self.is_law.then(|| law.tilted_covariance(&head.tilt(query)?)) {
            Some(Ok(covariance)) => sizes_of_product(covariance.as_ref(), &tilts),
            None | Some(Err(Error::Underflow { .. })) => nothing,
            // A covariance beyond the doubles moves by more than they hold.
            Some(Err(_)) => vec![f64::INFINITY; nothing.len()],
        };
        let token =
            |index: usize| unit * (self.largest[index] + moved[index]) + 2.0 * scores * self.ranges[index];
        let tokens: Vec<f64> = (0..self.largest.len()).map(token).collect();
        Ok(Rounding { outputs: sizes_of_product(value, &tokens), scores })
    }
}

/// What rounding may do to the linear output VΣUx, in size.
pub(crate) fn of_linear_output(head: &Softmax, covariance: MatRef<'_, f64>, query: &[f64]) -> f64 {
    let tilts = sizes_of_product(head.score(), query);
    unit(head) * linalg::norm(&sizes_of_product(head.value(), &sizes_of_product(covariance, &tilts)))
}

/// |M| |v|: the sizes of what is added up in each entry of Mv.
fn sizes_of_product(matrix: MatRef<'_, f64>, vector: &[f64]) -> Vec<f64> {
    let size = |row: usize| {
        vector.iter().enumerate().map(|(column, entry)| (matrix[(row, column)] * entry).abs()).sum()
    };
    (0..matrix.nrows()).map(size).collect()
}

fn unit(head: &Softmax) -> f64 {
    f64::EPSILON * (8 + head.query_dimension() + head.token_dimension()) as f64
}

impl Rounding {
    /// Of the output as a whole, where nothing of its own size is counted.
    pub(crate) fn size(&self) -> f64 {
        linalg::norm(&self.outputs)
    }

    /// The tolerance of an output of this value.
    pub(crate) fn output(&self, index: usize, value: f64) -> f64 {
        // Below the smallest normal number digits are lost that no factor tells.
        let lost =
            if value != 0.0 && value.abs() < f64::MIN_POSITIVE { 2.0 * f64::from_bits(1) } else { 0.0 };
        finite(ROUNDING * value.abs() + self.outputs[index] + lost)
    }

    /// A number of effective tokens out of so many, and its tolerance: a quotient of exponentials of scores, from 1 to the number.
    pub(crate) fn effective_tokens(&self, value: f64, count: usize) -> (f64, f64) {
        let count = count as f64;
        let tolerance = count * (ROUNDING + 4.0 * self.scores);
        (value.clamp(1.0, count), tolerance.min(count - 1.0))
    }
}

/// A tolerance beyond the doubles is as good as the largest of them: nothing is known.
pub(crate) fn finite(tolerance: f64) -> f64 {
    tolerance.min(f64::MAX)
}
