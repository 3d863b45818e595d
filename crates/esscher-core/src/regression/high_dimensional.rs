//! Linear attention trained on finitely many prompts, in high dimension: the exact error without ridge.

use crate::error::{Error, Result};
use crate::numerics::check;

/// Linear attention in the limit d → ∞ of Lu et al. 2024 (key `lu2024`), with its four ratios.
///
/// Trained by least squares without ridge on n prompts of ℓ examples each, whose weights w are drawn from a pool of
/// k tasks; covariates N(0, I/d), tasks |w|² = d, label noise of variance ρ.
///
/// ```
/// use esscher_core::regression::HighDimensional;
/// let setting = HighDimensional::new(0.5, 2.0, 0.1, 0.8)?;
/// assert!((setting.error_on_new_tasks()? - 1.2976803378).abs() < 1e-9);
/// # Ok::<(), esscher_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HighDimensional {
    sample_ratio: f64,
    context_ratio: f64,
    noise: f64,
    diversity: f64,
}

impl HighDimensional {
    /// τ = n/d², α = ℓ/d, ρ and κ = k/d; an infinite κ is a fresh task in each prompt.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for ratios that are not positive, a negative noise, numbers that are not finite (but for
    /// κ), and for τ = 1, where as many prompts as parameters make the error infinite.
    pub fn new(sample_ratio: f64, context_ratio: f64, noise: f64, diversity: f64) -> Result<Self> {
        check::positive("the ratio τ of prompts to d²", sample_ratio)?;
        check::positive("the ratio α of examples to d", context_ratio)?;
        if sample_ratio == 1.0 {
            let expected = "a number other than 1, where the error without ridge is infinite";
            return Err(Error::OutOfRange {
                what: "the ratio τ of prompts to d²",
                value: sample_ratio,
                expected,
            });
        }
        check::zero_or_more("the label noise ρ", noise)?;
        if !(diversity > 0.0) {
            let expected = "a positive number or infinity";
            return Err(Error::OutOfRange { what: "the ratio κ of tasks to d", value: diversity, expected });
        }
        Ok(HighDimensional { sample_ratio, context_ratio, noise, diversity })
    }

    /// τ.
    pub fn sample_ratio(&self) -> f64 {
        self.sample_ratio
    }

    /// α.
    pub fn context_ratio(&self) -> f64 {
        self.context_ratio
    }

    /// The variance ρ of the noise.
    pub fn noise(&self) -> f64 {
        self.noise
    }

    /// κ.
    pub fn diversity(&self) -> f64 {
        self.diversity
    }

    /// The mean squared error on tasks from N(0, I): not halved, the query's noise ρ included.
    ///
    /// With q = (1 + ρ)/α, m = M_κ(q), μ = q M_{κ/τ}(q):
    /// τ(1+q)/(1−τ) [1 − τ(1−μ)² + μ(ρ/q − 1)] − 2τ(1−μ) + 1 + ρ for τ < 1, and
    /// (1+q) [1 − 2qm − q²M′_κ(q) + (ρ + q − q²m) m/(τ−1)] − 2(1−qm) + 1 + ρ for τ > 1.
    ///
    /// # Errors
    /// [`Error::Overflow`] where the formula leaves double precision.
    pub fn error_on_new_tasks(&self) -> Result<f64> {
        let (tau, rho) = (self.sample_ratio, self.noise);
        let q = (1.0 + rho) / self.context_ratio;
        let error = if tau < 1.0 {
            let m = Resolvent::at(q, self.diversity / tau);
            let mu = m.scaled;
            let bracket = 1.0 - tau * (1.0 - mu).powi(2) + rho * m.value - mu;
            tau * (1.0 + q) / (1.0 - tau) * bracket - 2.0 * tau * (1.0 - mu) + 1.0 + rho
        } else {
            let m = Resolvent::at(q, self.diversity);
            // (ρ + q − q²m) m, in terms of qm: m itself grows without bound as q → 0 if κ < 1.
            let variance = (rho * m.value + m.scaled * (1.0 - m.scaled)) / (tau - 1.0);
            let bracket = 1.0 - 2.0 * m.scaled - m.scaled_slope + variance;
            (1.0 + q) * bracket - 2.0 * (1.0 - m.scaled) + 1.0 + rho
        };
        check::finite_number("the error", error)
    }
}

/// M_κ(x) = 2/(u + S), u = x + 1 − 1/κ, S = √(u² + 4x/κ), from the law of Marchenko and Pastur.
struct Resolvent {
    /// M itself.
    value: f64,
    /// x M.
    scaled: f64,
    /// x² M′.
    scaled_slope: f64,
}

impl Resolvent {
    fn at(x: f64, diversity: f64) -> Self {
        let share = 1.0 / diversity;
        let u = x + 1.0 - share;
        let root = u.hypot(2.0 * (x * share).sqrt());
        // u + S cancels where u < 0; there (u + S)(S − u) = 4x/κ gives xM = κ(S − u)/2.
        let scaled = if u >= 0.0 { 2.0 * x / (u + root) } else { 0.5 * (root - u) / share };
        // M′ = −(M²/2)(1 + (u + 2/κ)/S), since S′ = (u + 2/κ)/S.
        let scaled_slope = -0.5 * scaled * scaled * (1.0 + (u + 2.0 * share) / root);
        Resolvent { value: scaled / x, scaled, scaled_slope }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A central difference of step h is wrong by about (h/x)² = 10⁻⁸ of M′, times a constant below a hundred where
    /// M bends within less than x (κ near 1, small x).
    #[test]
    fn the_slope_is_the_derivative_and_the_value_solves_its_equation() {
        for diversity in [0.01, 0.5, 0.999, 1.0, 2.0, 50.0, f64::INFINITY] {
            for x in [1e-3, 0.1, 1.0, 30.0] {
                let here = Resolvent::at(x, diversity);
                let step = 1e-4 * x;
                let difference = (Resolvent::at(x + step, diversity).value
                    - Resolvent::at(x - step, diversity).value)
                    / (2.0 * step);
                let slope = here.scaled_slope / (x * x);
                assert!((difference / slope - 1.0).abs() < 1e-6, "{x} {diversity}: {difference} {slope}");
                // M = 2/(u + S) is the positive root of (x/κ)M² + uM − 1 = 0.
                let (m, share) = (here.value, 1.0 / diversity);
                let terms = [x * share * m * m, (x + 1.0 - share) * m, -1.0];
                let size: f64 = terms.iter().map(|term| term.abs()).sum();
                assert!(terms.iter().sum::<f64>().abs() < 1e-14 * size, "{x} {diversity}");
            }
        }
    }
}
