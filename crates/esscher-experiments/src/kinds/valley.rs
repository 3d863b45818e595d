//! The valley bΣA = I of the infinite prompt, seen to first order in 1/L: where finite prompts drift, and how fast.

use esscher_core::numerics::dormand_prince;
use esscher_core::regression::SpectralTask;
use esscher_core::{Monitor, Result};

/// The coefficient R₁(b) of 1/L in the risk on the valley's floor at gain b, infinite where it is.
fn coefficient(task: &SpectralTask, gain: f64) -> Result<f64> {
    Ok(task.first_order(&task.valley(gain)?, gain)?.unwrap_or(f64::INFINITY))
}

/// The gain b* at which R₁ is smallest, and R₁(b*): to first order the flow at L ends there, with this over L as its
/// excess risk.
pub(super) fn lowest_point(task: &SpectralTask) -> Result<(f64, f64)> {
    // R₁ is infinite below some gain, then falls, then grows like b²: golden section in ln b from the left wall.
    let (_, start) = task.infinite_limit(0.0)?;
    let (mut low, mut high) = ((1e-3 * start).ln(), (1e3 * start).ln());
    let ratio = 0.5 * (5f64.sqrt() - 1.0);
    for _ in 0..80 {
        let (left, right) = (high - ratio * (high - low), low + ratio * (high - low));
        let at_left = coefficient(task, left.exp())?;
        if at_left.is_finite() && at_left <= coefficient(task, right.exp())? {
            high = right;
        } else {
            low = left;
        }
    }
    let gain = (0.5 * (low + high)).exp();
    Ok((gain, coefficient(task, gain)?))
}

/// b at these times in units of L, from `gain` on the floor: db/dt = −R₁′(b)/(L |θ′(b)|²), θ(b) = (Σ⁻¹/b, b). None if R₁
/// is infinite at the start.
pub(super) fn drift(
    task: &SpectralTask,
    gain: f64,
    times: &[f64],
    monitor: &dyn Monitor,
) -> Result<Option<Vec<f64>>> {
    if !coefficient(task, gain)?.is_finite() {
        return Ok(None);
    }
    let squares: f64 =
        task.groups().iter().map(|group| f64::from(group.multiplicity) / group.eigenvalue.powi(2)).sum();
    let mut slow = |_time: f64, gain: &[f64], slope: &mut [f64]| {
        let step = 1e-4 * gain[0];
        let (ahead, behind) = (coefficient(task, gain[0] + step)?, coefficient(task, gain[0] - step)?);
        slope[0] = if ahead.is_finite() && behind.is_finite() {
            -(ahead - behind) / (2.0 * step) / (1.0 + squares / gain[0].powi(4))
        } else {
            0.0
        };
        Ok(())
    };
    let settings = dormand_prince::Settings::default();
    let state = dormand_prince::init(&settings, &mut slow, 0.0, &[gain])?;
    let solution =
        dormand_prince::integrate(&settings, &mut slow, state, times, monitor, dormand_prince::unobserved)?;
    Ok((solution.values.len() == times.len())
        .then(|| solution.values.into_iter().map(|value| value[0]).collect()))
}
