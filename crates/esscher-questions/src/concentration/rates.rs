//! Slopes between neighbouring lengths and the fitted rate, as rows beside the errors that they come from.

use super::answer::{Row, Statistic};
use esscher_core::concentration::{Dependence, RateFit, RatePoint, SpreadBasis, local_slopes, rate_fit};
use esscher_core::prompt::PromptLength;
use esscher_core::{Mat, Quantity};
use esscher_lab::Failure;

/// How a rate is fitted.
pub(super) struct Fit {
    /// The shortest length that enters.
    pub(super) from: PromptLength,
    /// The confidence level of its interval.
    pub(super) level: f64,
}

impl Fit {
    /// The errors of one quantity, slopes between all neighbours and the rate of the lengths that enter it.
    ///
    /// `exponent` is what theory gives to output and value gradient. Simulated lengths are prefixes of the same prompts:
    /// `covariance` is that of their logarithms over so many trials.
    pub(super) fn with_rates(
        &self,
        errors: Vec<Row>,
        exponent: Option<f64>,
        covariance: Option<(Mat<f64>, u64)>,
    ) -> Result<Vec<Row>, Failure> {
        let Some(last) = errors.last() else { return Ok(errors) };
        let theory = exponent.filter(|_| last.quantity != Quantity::ScoreGradient);
        let blank =
            Row { statistic: Statistic::Rate, value: None, error: None, theory, note: None, ..last.clone() };
        let mut points = Vec::new();
        for row in &errors {
            let (value, absolute_error) = (row.value.unwrap_or(0.0), row.error.unwrap_or(0.0));
            points.push(RatePoint { length: PromptLength::new(row.length)?, value, absolute_error });
        }
        let mut rows = errors.clone();
        let are_positive = points.iter().all(|point| point.value > 0.0);
        if !are_positive {
            let note = Some("an error of exactly 0 has no logarithm".to_string());
            rows.push(Row { note, ..blank });
            return Ok(rows);
        }
        // A slope between means that rest on few trials is no better than they are.
        let doubt = |length: PromptLength| {
            errors.iter().find(|row| row.length == length.get()).and_then(|row| row.note.clone())
        };
        for slope in local_slopes(&points, dependence(&covariance))? {
            rows.push(Row {
                statistic: Statistic::Slope,
                from_length: Some(slope.from.get()),
                length: slope.to.get(),
                value: Some(slope.slope),
                error: Some(slope.standard_error),
                note: doubt(slope.from).or_else(|| doubt(slope.to)),
                ..blank.clone()
            });
        }
        let kept: Vec<usize> = (0..points.len()).filter(|&index| points[index].length >= self.from).collect();
        let fitted: Vec<RatePoint> = kept.iter().map(|&index| points[index]).collect();
        let covariance = covariance.map(|(all, draws)| {
            (Mat::from_fn(kept.len(), kept.len(), |i, j| all[(kept[i], kept[j])]), draws)
        });
        rows.push(match rate_fit(&fitted, dependence(&covariance), self.level) {
            Ok(fit) => Row {
                from_length: fitted.first().map(|point| point.length.get()),
                value: Some(fit.exponent),
                error: Some(fit.standard_error),
                lower: Some(fit.interval.lower),
                upper: Some(fit.interval.upper),
                note: Some(basis(&fit)),
                ..blank
            },
            // Too few lengths for a rate: the row says so.
            Err(error) => Row { note: Some(error.to_string()), ..blank },
        });
        Ok(rows)
    }
}

fn dependence(covariance: &Option<(Mat<f64>, u64)>) -> Dependence<'_> {
    match covariance {
        Some((covariance, draws)) => {
            Dependence::EstimatedLogCovariance { covariance: covariance.as_ref(), draws: *draws }
        }
        None => Dependence::Independent,
    }
}

/// What the interval of a rate rests on, in words.
fn basis(fit: &RateFit) -> String {
    let basis = match fit.basis {
        SpreadBasis::StatedErrors => "interval from the errors of the points",
        SpreadBasis::Residuals => "interval from the residuals: the points are not on one power law",
    };
    match fit.dropped.len() {
        0 => basis.to_string(),
        dropped => format!("{basis}; {dropped} points too uncertain for a logarithm were left out"),
    }
}
