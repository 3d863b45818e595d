//! Verdicts: whether errors measured on several texts are below a tolerance, with their uncertainty over texts.

use crate::candidate::Candidate;
use esscher_core::numerics::statistics::Summary;
use esscher_core::numerics::student;

/// What the texts say about one replacement of one head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The mean error over texts is below the tolerance with confidence [`CONFIDENCE`].
    Accepted,
    /// The texts do not decide: more of them would.
    Uncertain,
    /// The mean error is above the tolerance with the same confidence.
    Refused,
}

/// One-sided, by Student's law over texts.
pub const CONFIDENCE: f64 = 0.95;

impl Verdict {
    /// The word in tables.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Accepted => "accepted",
            Verdict::Uncertain => "uncertain",
            Verdict::Refused => "refused",
        }
    }
}

/// The mean of errors over texts and the interval that the texts leave for it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Over texts.
    pub mean: f64,
    /// Of the mean; none for a single text.
    pub standard_error: Option<f64>,
    /// The mean is above this with confidence [`CONFIDENCE`].
    pub low: f64,
    /// The mean is below this with confidence [`CONFIDENCE`]; infinite for a single text.
    pub high: f64,
}

/// The spread of errors, one per text; nothing if there is none.
pub fn spread(errors: &[f64]) -> Option<Spread> {
    let summary = Summary::of(errors);
    let mean = summary.mean()?;
    let Some(standard_error) = summary.standard_error() else {
        return Some(Spread { mean, standard_error: None, low: 0.0, high: f64::INFINITY });
    };
    let reach = student::quantile(CONFIDENCE, (errors.len() - 1) as f64).ok()? * standard_error;
    Some(Spread { mean, standard_error: Some(standard_error), low: mean - reach, high: mean + reach })
}

/// Judges errors, one per text. No text, no decision.
///
/// ```
/// use esscher_audit::verdict::{Verdict, judge};
/// assert_eq!(judge(&[0.01, 0.012, 0.011], 0.05), Verdict::Accepted);
/// assert_eq!(judge(&[0.01, 0.09, 0.03], 0.05), Verdict::Uncertain);
/// assert_eq!(judge(&[0.2, 0.21, 0.19], 0.05), Verdict::Refused);
/// ```
pub fn judge(errors: &[f64], tolerance: f64) -> Verdict {
    match spread(errors) {
        Some(spread) if spread.high <= tolerance => Verdict::Accepted,
        Some(spread) if spread.low > tolerance => Verdict::Refused,
        _ => Verdict::Uncertain,
    }
}

/// A candidate with its price and its errors on every text, for one head or for each head that shares keys.
#[derive(Debug, Clone)]
pub struct Offer {
    /// What would replace the head.
    pub candidate: Candidate,
    /// Token-equivalents that its state takes.
    pub state_tokens: f64,
    /// Per head, per text.
    pub errors: Vec<Vec<f64>>,
}

/// The decision on a head, or on all heads of a group.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decision {
    /// Accepted if some candidate is, refused if all are.
    pub verdict: Verdict,
    /// The cheapest accepted candidate.
    pub candidate: Option<Candidate>,
    /// The smallest over candidates of the largest mean error over heads: how close it is.
    pub best_error: f64,
}

/// Decides by the cheapest offer that every head accepts.
pub fn decide(offers: &[Offer], tolerance: f64) -> Decision {
    let worst = |offer: &Offer| {
        let verdicts = offer.errors.iter().map(|errors| judge(errors, tolerance));
        verdicts.fold(Verdict::Accepted, |worst, verdict| match (worst, verdict) {
            (Verdict::Refused, _) | (_, Verdict::Refused) => Verdict::Refused,
            (Verdict::Uncertain, _) | (_, Verdict::Uncertain) => Verdict::Uncertain,
            _ => Verdict::Accepted,
        })
    };
    let verdicts: Vec<Verdict> = offers.iter().map(worst).collect();
    let cheapest = offers
        .iter()
        .zip(&verdicts)
        .filter(|(_, verdict)| **verdict == Verdict::Accepted)
        .min_by(|(one, _), (other, _)| one.state_tokens.total_cmp(&other.state_tokens));
    let verdict = match cheapest {
        Some(_) => Verdict::Accepted,
        None if !verdicts.is_empty() && verdicts.iter().all(|verdict| *verdict == Verdict::Refused) => {
            Verdict::Refused
        }
        None => Verdict::Uncertain,
    };
    let mean_error = |offer: &Offer| {
        let means =
            offer.errors.iter().map(|errors| spread(errors).map_or(f64::INFINITY, |spread| spread.mean));
        means.fold(0.0, f64::max)
    };
    Decision {
        verdict,
        candidate: cheapest.map(|(offer, _)| offer.candidate),
        best_error: offers.iter().map(mean_error).fold(f64::INFINITY, f64::min),
    }
}
