//! What rounding may do to an output: sizes cancel on the way to it, and the digits that were lost do not come back.

use crate::asking::Tokens;
use esscher_core::attention::Softmax;
use esscher_core::measure::Measure;

/// Sums of products in double precision, relative to their value, if nothing cancels.
const ROUNDING: f64 = 1e-13;

/// How large the coordinates of tokens are, and how far apart: of given tokens, of the means of components, or of the mean.
pub(super) struct Sizes {
    largest: Vec<f64>,
    ranges: Vec<f64>,
    /// Of laws whose spread no list of points tells.
    is_law: bool,
}

/// Bounds of what rounding does at one query.
pub(super) struct Rounding {
    /// Of each output.
    outputs: Vec<f64>,
    /// Of the scores.
    scores: f64,
}

impl Sizes {
    pub(super) fn of(tokens: &Tokens) -> Result<Self, esscher_core::Error> {
        let law = tokens.law();
        let dimension = law.dimension();
        let (mut lowest, mut highest) = (vec![f64::INFINITY; dimension], vec![f64::NEG_INFINITY; dimension]);
        let mut see = |point: &[f64]| {
            for (index, entry) in point.iter().enumerate() {
                lowest[index] = lowest[index].min(*entry);
                highest[index] = highest[index].max(*entry);
            }
        };
        match (tokens, law.as_gaussian_mixture()) {
            (Tokens::Given(prompt), _) => prompt.points().for_each(&mut see),
            (_, Some(components)) => components.iter().for_each(|one| see(one.gaussian.mean_vector())),
            _ => see(&law.tilted_mean(&vec![0.0; dimension])?),
        }
        let pairs = || lowest.iter().zip(&highest);
        Ok(Sizes {
            largest: pairs().map(|(low, high)| low.abs().max(high.abs())).collect(),
            ranges: pairs().map(|(low, high)| high - low).collect(),
            is_law: matches!(tokens, Tokens::Law(_)),
        })
    }

    /// At a query: scores are sums of products of entries of U, of the query and of tokens, each of which is rounded on its own scale; an
    /// error of the scores moves the output by as much as the tokens lie apart.
    pub(super) fn rounding(
        &self,
        head: &Softmax,
        law: &dyn Measure,
        query: &[f64],
    ) -> Result<Rounding, esscher_core::Error> {
        let (score, value) = (head.score(), head.value());
        let unit = f64::EPSILON * (8 + query.len() + self.largest.len()) as f64;
        let tilts: Vec<f64> = (0..score.nrows())
            .map(|row| {
                query.iter().enumerate().map(|(column, entry)| (score[(row, column)] * entry).abs()).sum()
            })
            .collect();
        let scores = unit * self.largest.iter().zip(&tilts).map(|(size, tilt)| size * tilt).sum::<f64>();
        // Where the covariance leaves the doubles, so does what rounding does to it.
        let covariance = match self.is_law {
            true => law.tilted_covariance(&head.tilt(query)?).ok(),
            false => None,
        };
        let tokens = |index: usize| {
            let moved = covariance.as_ref().map_or(0.0, |covariance| {
                tilts
                    .iter()
                    .enumerate()
                    .map(|(other, tilt)| covariance[(index, other)].abs() * tilt)
                    .sum::<f64>()
            });
            unit * (self.largest[index] + moved) + 2.0 * scores * self.ranges[index]
        };
        let tokens: Vec<f64> = (0..self.largest.len()).map(tokens).collect();
        let output = |row: usize| -> f64 {
            tokens.iter().enumerate().map(|(column, token)| value[(row, column)].abs() * token).sum()
        };
        Ok(Rounding { outputs: (0..value.nrows()).map(output).collect(), scores })
    }
}

impl Rounding {
    /// The tolerance of an output of this value.
    pub(super) fn output(&self, index: usize, value: f64) -> f64 {
        finite(ROUNDING * value.abs() + self.outputs[index])
    }

    /// The tolerance of a number of tokens, which is a quotient of exponentials of scores.
    pub(super) fn effective_tokens(&self, value: f64) -> f64 {
        finite(value * (ROUNDING + 4.0 * self.scores).min(1.0))
    }
}

/// A tolerance beyond the doubles is as good as the largest of them: nothing is known.
fn finite(tolerance: f64) -> f64 {
    tolerance.min(f64::MAX)
}
