//! The valley bΣA = I of the infinite prompt, seen to first order in 1/L: where finite prompts drift, and how fast.

use super::SpectralTask;
use crate::error::Result;
use crate::monitor::Monitor;
use crate::numerics::dormand_prince;

impl SpectralTask {
    /// The coefficient R₁(b) of 1/L in the risk on the valley's floor at gain b, infinite where it is.
    fn floor_coefficient(&self, gain: f64) -> Result<f64> {
        Ok(self.first_order(&self.valley(gain)?, gain)?.unwrap_or(f64::INFINITY))
    }

    /// The gain b* at which R₁ is smallest, and R₁(b*): to first order the flow at L ends there, with this over L as its
    /// excess risk.
    ///
    /// ```
    /// use esscher_core::Unwatched;
    /// use esscher_core::regression::{SpectralTask, training_horizon};
    /// let task = SpectralTask::isotropic(5, 0.1, 1.0)?;
    /// let (_, coefficient) = task.valley_minimum()?;
    /// let horizon = training_horizon(&task, 0.6, 0.003, &Unwatched)?.length().unwrap();
    /// assert!((coefficient / 0.003 / horizon.as_f64() - 1.0).abs() < 0.01);
    /// # Ok::<(), esscher_core::Error>(())
    /// ```
    pub fn valley_minimum(&self) -> Result<(f64, f64)> {
        // R₁ is infinite below some gain, then falls, then grows like b²: golden section in ln b from the left wall.
        let (_, start) = self.infinite_limit(0.0)?;
        let (mut low, mut high) = ((1e-3 * start).ln(), (1e3 * start).ln());
        let ratio = 0.5 * (5f64.sqrt() - 1.0);
        for _ in 0..80 {
            let (left, right) = (high - ratio * (high - low), low + ratio * (high - low));
            let at_left = self.floor_coefficient(left.exp())?;
            if at_left.is_finite() && at_left <= self.floor_coefficient(right.exp())? {
                high = right;
            } else {
                low = left;
            }
        }
        let gain = (0.5 * (low + high)).exp();
        Ok((gain, self.floor_coefficient(gain)?))
    }

    /// b at these times in units of L, from `gain` on the floor: db/dt = −R₁′(b)/(L |θ′(b)|²), θ(b) = (Σ⁻¹/b, b). None if
    /// R₁ is infinite at the start, or if the monitor asked to stop.
    ///
    /// # Errors
    /// A gain that is not positive; times that are missing, not finite or not increasing.
    pub fn valley_drift(&self, gain: f64, times: &[f64], monitor: &dyn Monitor) -> Result<Option<Vec<f64>>> {
        if !self.floor_coefficient(gain)?.is_finite() {
            return Ok(None);
        }
        let squares: f64 =
            self.groups().iter().map(|group| f64::from(group.multiplicity) / group.eigenvalue.powi(2)).sum();
        let mut slow = |_time: f64, gain: &[f64], slope: &mut [f64]| {
            let step = 1e-4 * gain[0];
            let ahead = self.floor_coefficient(gain[0] + step)?;
            let behind = self.floor_coefficient(gain[0] - step)?;
            slope[0] = if ahead.is_finite() && behind.is_finite() {
                -(ahead - behind) / (2.0 * step) / (1.0 + squares / gain[0].powi(4))
            } else {
                0.0
            };
            Ok(())
        };
        let settings = dormand_prince::Settings::default();
        let state = dormand_prince::init(&settings, &mut slow, 0.0, &[gain])?;
        let observer = dormand_prince::unobserved;
        let solution = dormand_prince::integrate(&settings, &mut slow, state, times, monitor, observer)?;
        Ok((solution.values.len() == times.len())
            .then(|| solution.values.into_iter().map(|value| value[0]).collect()))
    }
}
