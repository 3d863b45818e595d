//! Concentration: how fast finite prompts approach their limit, with rates, regimes and horizons.
//!
//! [`Concentration`] measures errors of outputs and of both gradients in L²(ν) on a grid of lengths, exactly
//! where the token law allows it and by simulation otherwise; every number carries its class. [`Study`]
//! fits the exponent of L with a confidence interval and local slopes; [`fn@horizon`] finds the smallest
//! sufficient length; [`fn@regime`] tells diluted queries from frozen ones. The paper's bounds are in
//! [`prompt`](crate::prompt), the sub-Gaussian parameters they need on every
//! [`Measure`](crate::measure::Measure).

mod horizon;
mod rate;
mod regime;
mod study;

pub use horizon::{Horizon, horizon, horizon_in_batches};
pub use rate::{
    Dependence, Estimator, LocalSlope, RateFit, RateInterval, RatePoint, SpreadBasis, local_slopes, rate_fit,
};
pub use regime::{Regime, regime, typical_error_exponent};
pub use study::{Concentration, Engine, HeavyTail, Study, StudyRow};

pub use crate::quantity::Quantity;
