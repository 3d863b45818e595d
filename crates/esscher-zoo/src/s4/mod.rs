//! S4 with diagonal state (S4D): h_t = Ā h_{t−1} + B̄ u_t, y_t = 2 Re(C h_t) + D u_t, the same at every token (keys `gu2022`, `gu2022diagonal`).
//!
//! Every channel of the input u has m complex states, each standing for itself and its conjugate. With A = −e^{`log_real`} +
//! i `imaginary`, B = 1 and the step Δ = e^{`log_step`} of the channel, zero-order hold gives Ā = e^{ΔA}, B̄ = (Ā − 1)/A. The
//! start is S4D-Lin: A = −1/2 + iπs for s = 0, …, m−1.
//!
//! The state is Re h, d × m, row by row, and then Im h. Steps start on a logarithmic grid over the channels, from 0.001 to 0.1;
//! the authors draw them at random in that range.

mod chunked;
mod discretisation;
mod realisation;
mod recurrent;
mod reference;

use crate::dynamical_system::DynamicalSystem;
use crate::mechanism::{Initial, Meaning, Mechanism, Parameter, Port, Signature};
use std::f64::consts::{FRAC_1_SQRT_2, LN_2, PI};

/// A time-invariant diagonal state space model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct S4 {
    /// Width d of inputs and outputs.
    pub width: usize,
    /// Pairs m of conjugate states per channel.
    pub pairs: usize,
}

/// Place of the token port.
const INPUT: usize = 0;

/// Places of the parameters.
const LOG_STEP: usize = 0;
const LOG_REAL: usize = 1;
const IMAGINARY: usize = 2;
const READOUT_REAL: usize = 3;
const READOUT_IMAGINARY: usize = 4;
const SKIP: usize = 5;

/// Smallest and largest step at the start.
const STEPS: [f64; 2] = [1e-3, 1e-1];

impl S4 {
    /// How many complex numbers a state has, d m.
    fn size(&self) -> usize {
        self.width * self.pairs
    }
}

impl Mechanism for S4 {
    fn signature(&self) -> Signature {
        let log_steps = (0..self.width)
            .map(|c| {
                let place = (c as f64 + 0.5) / self.width as f64;
                STEPS[0].ln() + place * (STEPS[1] / STEPS[0]).ln()
            })
            .collect();
        let frequencies: Vec<f64> = (0..self.pairs).map(|s| PI * s as f64).collect();
        Signature {
            tokens: vec![Port { name: "input", width: self.width, meaning: Meaning::Content }],
            parameters: vec![
                Parameter::trained("log_step", self.width, Initial::Values(log_steps)),
                Parameter::trained("log_real", self.size(), Initial::Constant(-LN_2)),
                Parameter::trained("imaginary", self.size(), Initial::Values(frequencies.repeat(self.width))),
                Parameter::trained("readout_real", self.size(), Initial::Normal(FRAC_1_SQRT_2)),
                Parameter::trained("readout_imaginary", self.size(), Initial::Normal(FRAC_1_SQRT_2)),
                Parameter::trained("skip", self.width, Initial::Constant(1.0)),
            ],
            output: self.width,
        }
    }

    fn dynamical_system(&self) -> Option<&dyn DynamicalSystem> {
        Some(self)
    }
}
