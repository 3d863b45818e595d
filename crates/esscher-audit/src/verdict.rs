//! Verdicts: whether errors measured on several texts are below a tolerance, with their uncertainty over texts.

use crate::candidate::Candidate;
use crate::names::names;
use esscher_core::numerics::statistics::Summary;
use esscher_core::numerics::student;
use std::sync::OnceLock;

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

/// One-sided, by Student's law over texts, which takes them as alike and independent.
pub const CONFIDENCE: f64 = 0.95;

names!(Verdict, "a verdict", { Accepted => "accepted", Uncertain => "uncertain", Refused => "refused" });

/// The mean of errors over texts and the interval that the texts leave for it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The mean error over texts.
    pub mean: f64,
    /// The standard error of the mean; none for a single text.
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
    let reach = quantile(errors.len() - 1)? * standard_error;
    Some(Spread { mean, standard_error: Some(standard_error), low: mean - reach, high: mean + reach })
}

/// Student's quantile at [`CONFIDENCE`]. It is asked for every head, candidate and tolerance, with the same degrees of freedom, and
/// takes longer than all else in a verdict: each is computed once.
fn quantile(degrees: usize) -> Option<f64> {
    const MOST: usize = 1024;
    static KNOWN: [OnceLock<Option<f64>>; MOST] = [const { OnceLock::new() }; MOST];
    let compute = || student::quantile(CONFIDENCE, degrees as f64).ok();
    KNOWN.get(degrees).map_or_else(compute, |known| *known.get_or_init(compute))
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
    /// The errors of every head, a list with one number per text for each.
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
///
/// Many offers have many chances to look good by accident, so that acceptance is by Holm's procedure over offers (key `holm1979`): the
/// chance that anything is accepted whose mean error is above the tolerance is at most 1 − [`CONFIDENCE`] for the head or group. An
/// offer to several heads must pass for each of them, at the level of the one that fits it least. Refused means that every offer
/// is refused by itself.
pub fn decide(offers: &[Offer], tolerance: f64) -> Decision {
    let doubts: Vec<f64> = offers.iter().map(|offer| doubt(offer, tolerance)).collect();
    let mut order: Vec<usize> = (0..offers.len()).collect();
    order.sort_by(|one, other| doubts[*one].total_cmp(&doubts[*other]));
    let passed = order
        .iter()
        .enumerate()
        .take_while(|(rank, number)| doubts[**number] <= (1.0 - CONFIDENCE) / (offers.len() - rank) as f64)
        .count();
    let cheapest = order[..passed]
        .iter()
        .map(|number| &offers[*number])
        .min_by(|one, other| one.state_tokens.total_cmp(&other.state_tokens));
    let refused =
        |offer: &Offer| offer.errors.iter().any(|errors| judge(errors, tolerance) == Verdict::Refused);
    let verdict = match cheapest {
        Some(_) => Verdict::Accepted,
        None if !offers.is_empty() && offers.iter().all(refused) => Verdict::Refused,
        None => Verdict::Uncertain,
    };
    let mean_error = |offer: &Offer| {
        let means =
            offer.errors.iter().map(|errors| spread(errors).map_or(f64::INFINITY, |spread| spread.mean));
        // A mean that is not a number is no small error.
        means.fold(0.0, |worst: f64, mean| if mean.is_nan() { f64::INFINITY } else { worst.max(mean) })
    };
    Decision {
        verdict,
        candidate: cheapest.map(|offer| offer.candidate),
        best_error: offers.iter().map(mean_error).fold(f64::INFINITY, f64::min),
    }
}

/// How likely errors as small as these are if the mean error is the tolerance: the p-value of one-sided acceptance, by Student's law
/// over texts, of the head that fits the offer least. 1 where the texts cannot tell.
fn doubt(offer: &Offer, tolerance: f64) -> f64 {
    let of_head = |errors: &Vec<f64>| -> Option<f64> {
        let spread = spread(errors)?;
        let standard_error = spread.standard_error?;
        if standard_error == 0.0 {
            return Some(if spread.mean <= tolerance { 0.0 } else { 1.0 });
        }
        student::distribution((spread.mean - tolerance) / standard_error, (errors.len() - 1) as f64).ok()
    };
    offer.errors.iter().map(|errors| of_head(errors).unwrap_or(1.0)).fold(0.0, f64::max)
}
