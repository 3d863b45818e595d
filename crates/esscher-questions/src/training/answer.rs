//! The answer: what each flow shows over time and where it ends; of drawn covariates also the mean over draws.

use super::ask::Model;
use crate::asking::Covariates;
use crate::measured::{Measured, length_name};
use esscher_core::Ending;
use esscher_core::numerics::statistics::Summary;
use esscher_lab::{Named, named, rows};
use std::collections::{BTreeMap, BTreeSet};

named! {
    /// What a number is.
    pub enum Quantity {
        /// The risk, a halved mean squared error.
        Risk = "risk",
        /// The gain b.
        Gain = "gain",
        /// What gradient flow conserves.
        Balance = "balance",
        /// Distance of all parameters to the flow of the infinite prompt at the same time.
        DistanceToInfinite = "distance-to-infinite",
        /// Distance to where the flow of the infinite prompt ends.
        DistanceToInfiniteLimit = "distance-to-infinite-limit",
        /// Distance to the closed-form limit at the same length.
        DistanceToOwnLimit = "distance-to-own-limit",
        /// The gain by the first-order drift along the valley.
        PredictedGain = "predicted-gain",
        /// How far that drift is from the limit of the infinite prompt.
        PredictedDistance = "predicted-distance",
        /// The largest distance to the flow of the infinite prompt, if both were followed.
        LargestDistanceToInfinite = "largest-distance-to-infinite",
        /** Entry 1 of A where the flow ended. */ Entry1 = "entry-1",
        /** Entry 2. */ Entry2 = "entry-2", /** Entry 3. */ Entry3 = "entry-3", /** Entry 4. */ Entry4 = "entry-4",
        /** Entry 5. */ Entry5 = "entry-5", /** Entry 6. */ Entry6 = "entry-6", /** Entry 7. */ Entry7 = "entry-7",
        /** Entry 8. */ Entry8 = "entry-8", /** Entry 9. */ Entry9 = "entry-9", /** Entry 10. */ Entry10 = "entry-10",
        /** Entry 11. */ Entry11 = "entry-11", /** Entry 12. */ Entry12 = "entry-12",
        /** Entry 13. */ Entry13 = "entry-13", /** Entry 14. */ Entry14 = "entry-14",
        /** Entry 15. */ Entry15 = "entry-15", /** Entry 16. */ Entry16 = "entry-16",
        /// The risk where the flow ended.
        FinalRisk = "final-risk",
        /// The risk that no layer falls below.
        NoiseFloor = "noise-floor",
        /// The gain b* at which R₁ is smallest along the valley.
        FirstOrderGain = "first-order-gain",
        /// How far b* is from the limit of the infinite prompt.
        FirstOrderDistance = "first-order-distance",
        /// R₁(b*), the coefficient of 1/L in the risk there.
        FirstOrderCoefficient = "first-order-coefficient",
        /// The scale of the initial layer below which the paper's theorem is proved.
        PaperBound = "paper-bound",
        /// The scale below which the theorem on linear attention is proved.
        SufficientBound = "sufficient-bound",
    }
}

rows! {
    /// A number about one flow, or about the mean of several.
    #[derive(Debug, Clone)]
    pub struct Row {
        /// The law of the covariates.
        covariates: Covariates,
        /// Their dimension.
        dimension: i64,
        /// What is trained.
        model: Model,
        /// Tokens of a prompt; none for the infinite one.
        length: Option<i64>,
        /// Which set of draws; none where nothing is drawn, and for means over draws.
        draw: Option<i64>,
        /// The scale α of the initial layer.
        initial_scale: f64,
        /// How the flow ended; none for means over draws.
        ending: Option<Ending>,
        /// Time of training.
        time: f64,
        /// What the number is.
        quantity: Quantity,
        /// The number.
        number: Measured,
    }
}

impl Row {
    /// Whose curve it belongs to: `softmax, L = 1e6`, `infinite prompt`.
    pub fn curve(&self) -> String {
        match self.length {
            None => length_name(None),
            length => format!("{}, {}", self.model, length_name(length)),
        }
    }

    /// Whether it is of an exact flow: nothing was drawn.
    pub fn is_exact(&self) -> bool {
        self.draw.is_none() && self.covariates == Covariates::Gaussian
    }

    /// How its flow ended, in a word.
    pub fn ended(&self) -> &'static str {
        self.ending.map_or("it has no ending", Ending::name)
    }

    /// Whether its flow was followed to the end of its interval: until T, or until it stood still.
    pub fn is_followed(&self) -> bool {
        matches!(self.ending, Some(Ending::Completed | Ending::Stationary))
    }
}

/// The dimensions of some rows, each once, in order.
pub fn dimensions(rows: &[Row]) -> Vec<i64> {
    BTreeSet::from_iter(rows.iter().map(|row| row.dimension)).into_iter().collect()
}

/// The finite lengths in this dimension, each once, in order.
pub fn lengths(rows: &[Row], dimension: i64) -> Vec<i64> {
    let here = rows.iter().filter(|row| row.dimension == dimension);
    BTreeSet::from_iter(here.filter_map(|row| row.length)).into_iter().collect()
}

/// Adds to draws what only all of them tell: the error of each, and their mean as rows without a draw.
pub(super) fn summarised(mut rows: Vec<Row>) -> Vec<Row> {
    let key = |row: &Row| {
        let words = [row.covariates.name(), row.model.name(), row.quantity.name()];
        (words, row.dimension, row.length, row.time.to_bits())
    };
    let mut groups: BTreeMap<_, Summary> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.draw.is_some()) {
        groups.entry(key(row)).or_default().add(row.number.value);
    }
    let draws: BTreeSet<i64> = rows.iter().filter_map(|row| row.draw).collect();
    let mut means = Vec::new();
    for row in rows.iter_mut().filter(|row| row.draw.is_some()) {
        if let Some(summary) = groups.get(&key(row))
            && let (Some(mean), Some(variance), Some(error)) =
                (summary.mean(), summary.variance(), summary.standard_error())
        {
            // A mean over the flows that got so far would say nothing about all of them.
            if row.draw == draws.first().copied() && summary.count() == draws.len() as u64 {
                let number = Measured::sampled(mean, error);
                means.push(Row { draw: None, number, ending: None, ..row.clone() });
            }
            // One draw errs by the spread of them.
            row.number.error = Some(variance.sqrt());
        }
    }
    rows.extend(means);
    rows
}
