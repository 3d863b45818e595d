//! The tilted mean of normal mixtures from its definition, as a check on their closed form.

use super::GaussianComponent;
use crate::numerics::linalg;

/// E[z e^⟨θ,z⟩] / E[e^⟨θ,z⟩] of a mixture of normal laws, integrating over the score ⟨θ,z⟩ = ⟨θ,m⟩ + s g of each component
/// by the trapezoid rule, with E[z | g] = m + Γθ g/s.
///
/// What [`Measure::tilted_mean`](super::Measure::tilted_mean) gives in closed form, without using it.
pub fn tilted_mean_by_definition(components: &[GaussianComponent], tilt: &[f64]) -> Vec<f64> {
    /// The rule converges faster than any power of the step; 12 deviations leave 10⁻³².
    const STEP: f64 = 0.1;
    const REACH: i32 = 120;
    let mut parts = Vec::new();
    for component in components {
        let law = &component.gaussian;
        let pull = linalg::apply(law.covariance_matrix(), tilt);
        let deviation = linalg::dot(&pull, tilt).max(0.0).sqrt();
        let centre = (deviation / STEP).round() * STEP;
        let (mut mass, mut moment) = (0.0, 0.0);
        // The integrand e^{sg − g²/2} has its maximum e^{s²/2} near g = s.
        for node in -REACH..=REACH {
            let g = centre + STEP * f64::from(node);
            let weight = (-0.5 * (g - deviation) * (g - deviation)).exp();
            mass += weight;
            moment += g * weight;
        }
        let log_mass = component.log_weight
            + linalg::dot(tilt, law.mean_vector())
            + 0.5 * deviation * deviation
            + (STEP * mass).ln();
        let mut mean = law.mean_vector().to_vec();
        if deviation > 0.0 {
            linalg::add_scaled(&mut mean, moment / mass / deviation, &pull);
        }
        parts.push((log_mass, mean));
    }
    let largest = parts.iter().map(|part| part.0).fold(f64::NEG_INFINITY, f64::max);
    let total: f64 = parts.iter().map(|part| (part.0 - largest).exp()).sum();
    let mut mean = vec![0.0; tilt.len()];
    for (log_mass, part) in &parts {
        linalg::add_scaled(&mut mean, (log_mass - largest).exp() / total, part);
    }
    mean
}
