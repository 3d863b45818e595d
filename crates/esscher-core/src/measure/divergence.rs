//! Divergences without cancellation: sums of terms that are not negative, where Λ would be subtracted from a number as large.

use crate::error::{Error, Result};
use crate::numerics::{check, linalg, log_sum_exp};

/// Parts of weight πₖ that a tilt multiplies by e^{gₖ}: tokens of a prompt, components of a mixture.
///
/// gₖ = eₖ − ln Σ πⱼ e^{eⱼ} for energies eₖ, which are ⟨θ, zₖ⟩ of a token and Λₖ(θ) of a component. An error δ that all gₖ
/// share moves the divergences by 2δ of themselves and by δ² only.
pub(super) struct Reweighting {
    /// ln πₖ and gₖ.
    parts: Vec<(f64, f64)>,
}

impl Reweighting {
    /// From ln πₖ and energies; an energy of −∞ is that of a part which the tilt removes.
    pub(super) fn new(log_weights: impl Iterator<Item = f64>, energies: &[f64]) -> Self {
        // From the largest: differences of large energies may be small, and those that count are.
        let largest = energies.iter().copied().fold(f64::NEG_INFINITY, linalg::larger);
        let mut parts: Vec<(f64, f64)> =
            log_weights.zip(energies).map(|(log_weight, energy)| (log_weight, energy - largest)).collect();
        let log_total = if parts.iter().all(|&(_, energy)| energy >= -1.0) {
            parts.iter().map(|(log_weight, energy)| log_weight.exp() * energy.exp_m1()).sum::<f64>().ln_1p()
        } else {
            log_sum_exp(&parts.iter().map(|(log_weight, energy)| log_weight + energy).collect::<Vec<_>>())
        };
        parts.iter_mut().for_each(|(_, energy)| *energy -= log_total);
        Reweighting { parts }
    }

    /// Σ pₖ KLₖ + KL(p ‖ π), pₖ = πₖ e^{gₖ}, with the divergences of the parts themselves.
    pub(super) fn tilt_divergence(&self, of_parts: impl Iterator<Item = f64>) -> f64 {
        let terms = self.parts.iter().zip(of_parts);
        terms
            .map(|(&(log_weight, gain), own)| gain_term(log_weight, gain) + (log_weight + gain).exp() * own)
            .sum()
    }

    /// ln Σ πₖ e^{2gₖ + D₂ₖ}, with the divergences of the parts themselves.
    ///
    /// Since Σ πₖ e^{gₖ} = 1 it is ln(1 + Σ πₖ [(e^{gₖ} − 1)² + e^{2gₖ}(e^{D₂ₖ} − 1)]).
    pub(super) fn renyi_divergence(&self, of_parts: impl Iterator<Item = f64> + Clone) -> f64 {
        /// Beyond this logarithm the 1 does not count and the sum might overflow.
        const LARGE: f64 = 500.0;
        let parts = || self.parts.iter().zip(of_parts.clone());
        let logarithms: Vec<f64> =
            parts().map(|(&(log_weight, gain), own)| log_weight + 2.0 * gain + own).collect();
        // Written so that a NaN is not passed over.
        if !logarithms.iter().all(|&logarithm| logarithm <= LARGE) {
            return log_sum_exp(&logarithms);
        }
        let excess = parts().map(|(&(log_weight, gain), own)| {
            times_exp_m1(0.5 * log_weight, gain).powi(2) + times_exp_m1(log_weight + 2.0 * gain, own)
        });
        excess.sum::<f64>().ln_1p()
    }
}

/// π (g e^g − e^g + 1) ≥ 0, where the divergence of weights is the sum of these.
fn gain_term(log_weight: f64, gain: f64) -> f64 {
    /// Below it the terms cancel, and of the series Σ gⁿ (n − 1)/n! the terms beyond the last are below 10⁻¹⁷ of the first.
    const SERIES_BELOW: f64 = 0.5;
    const LAST: i32 = 18;
    let weight = log_weight.exp();
    if gain.abs() < SERIES_BELOW {
        // g² (1/2 + g/3 (1 + …)): from one coefficient to the next, (n − 1)/n! grows by n/((n − 1)(n + 1)).
        let inner = (2..LAST)
            .rev()
            .map(f64::from)
            .fold(1.0, |inner, n| 1.0 + inner * gain * n / ((n - 1.0) * (n + 1.0)));
        return weight * 0.5 * gain * gain * inner;
    }
    match (log_weight + gain).exp() {
        // Also of a gain of −∞.
        0.0 => weight,
        tilted => tilted * (gain - 1.0) + weight,
    }
}

/// eˢ (eˣ − 1), also where one of the exponentials would overflow.
fn times_exp_m1(s: f64, x: f64) -> f64 {
    if x > 0.5 { -(s + x).exp() * (-x).exp_m1() } else { s.exp() * x.exp_m1() }
}

/// A divergence that is a difference of numbers of a certain size, or its integral where too little is left of them.
///
/// # Errors
/// As [`of_difference`], where there is no integral either.
pub(super) fn difference_or(
    difference: f64,
    size: f64,
    integral: impl FnOnce() -> Option<f64>,
) -> Result<f64> {
    /// Rounding then costs at most four digits.
    const LEFT: f64 = 1e-4;
    let integral = if difference <= LEFT * size { integral() } else { None };
    integral.map_or_else(|| of_difference(difference, size), Ok)
}

/// A divergence that is a difference of numbers of this size; one that their rounding made negative is zero.
///
/// # Errors
/// [`Error::Overflow`], and [`Error::Cancelled`] where rounding may have taken the difference. One further below zero than rounding goes
/// is handed out: the law is none, which [`check_laws`](super::laws::check_laws) tells.
pub(super) fn of_difference(difference: f64, size: f64) -> Result<f64> {
    const WHAT: &str = "the divergence of the tilt";
    /// e to a divergence is a number of tokens, of which so many digits are enough.
    const ABSOLUTE: f64 = 1e-6;
    const RELATIVE: f64 = 1e-3;
    let difference = check::finite_number(WHAT, difference)?;
    let rounding = 4.0 * f64::EPSILON * size;
    if rounding > ABSOLUTE.max(RELATIVE * difference.abs()) {
        return Err(Error::Cancelled { what: WHAT });
    }
    Ok(if -difference <= rounding { difference.max(0.0) } else { difference })
}

/// Σ |θᵢ mᵢ|, as large as what is added up in ⟨θ, m⟩.
pub(super) fn size_of_product(tilt: &[f64], mean: &[f64]) -> f64 {
    tilt.iter().zip(mean).map(|(tilt, mean)| (tilt * mean).abs()).sum()
}

/// ∫₀¹ s v(s) ds for the variance v(s) ≥ 0 of ⟨θ, z⟩ along the way to a small tilt; none if the tilt is not small, or the
/// variance changes too fast for the rule.
pub(super) fn integral_of_variance(variance: impl Fn(f64) -> Result<f64>) -> Option<f64> {
    /// Nodes and weights of Gauss and Legendre on [−1, 1], each for both signs.
    const RULE: [(f64, f64); 4] = [
        (0.183_434_642_495_649_8, 0.362_683_783_378_362),
        (0.525_532_409_916_329, 0.313_706_645_877_887_3),
        (0.796_666_477_413_626_7, 0.222_381_034_453_374_5),
        (0.960_289_856_497_536_3, 0.101_228_536_290_376_3),
    ];
    /// What the rule on the whole may differ from that on halves, which is better by a factor of 2¹⁶.
    const AGREEMENT: f64 = 1e-9;
    for end in [0.0, 1.0] {
        variance(end).ok().filter(|&variance| variance <= 1.0)?;
    }
    let over = |from: f64, to: f64| -> Option<f64> {
        let (middle, half) = (0.5 * (from + to), 0.5 * (to - from));
        let mut sum = 0.0;
        for (node, weight) in RULE {
            for s in [middle - half * node, middle + half * node] {
                sum += half * weight * s * variance(s).ok()?.max(0.0);
            }
        }
        Some(sum)
    };
    let (whole, halves) = (over(0.0, 1.0)?, over(0.0, 0.5)? + over(0.5, 1.0)?);
    ((whole - halves).abs() <= AGREEMENT * halves).then_some(halves)
}
