//! S6, the state space model of Mamba: h_t = e^{Δ_t ⊙ A} ⊙ h_{t−1} + (Δ_t ⊙ u_t) B_tᵀ, y_t = h_t C_t + D ⊙ u_t (keys `gu2023`, `sieber2024`).
//!
//! Row c of the d × n matrix e^{Δ ⊙ A} is e^{Δ_c A_c}.
//!
//! Input u and rate Δ > 0 of width d, key B and query C of width n, A = −e^{`log_rate`} of d × n, skip D of width d. The
//! state is h, d × n, row by row. Decay and write share Δ: who keeps all writes nothing. The layer makes
//! Δ = softplus(W u + b); convolution and gate of the Mamba block belong to the layer too.

mod chunked;
mod realisation;
mod recurrent;
mod reference;

use crate::dynamical_system::DynamicalSystem;
use crate::mechanism::{Initial, Meaning, Mechanism, Parameter, Port, Signature};

/// S6, a selective state space model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct S6 {
    /// Width d of inputs, rates and outputs.
    pub width: usize,
    /// States n per channel, the width of keys and queries.
    pub expansion: usize,
}

/// Places of the token ports.
const INPUT: usize = 0;
const RATE: usize = 1;
const KEY: usize = 2;
const QUERY: usize = 3;

/// Places of the parameters.
const LOG_RATE: usize = 0;
const SKIP: usize = 1;

impl S6 {
    /// How many numbers a state has, d n.
    fn size(&self) -> usize {
        self.width * self.expansion
    }
}

impl Mechanism for S6 {
    fn signature(&self) -> Signature {
        let rates: Vec<f64> = (1..=self.expansion).map(|s| (s as f64).ln()).collect();
        Signature {
            tokens: vec![
                Port { name: "input", width: self.width, meaning: Meaning::Content },
                Port { name: "rate", width: self.width, meaning: Meaning::Rate },
                Port { name: "key", width: self.expansion, meaning: Meaning::Content },
                Port { name: "query", width: self.expansion, meaning: Meaning::Content },
            ],
            parameters: vec![
                Parameter::trained("log_rate", self.size(), Initial::Values(rates.repeat(self.width))),
                Parameter::trained("skip", self.width, Initial::Constant(1.0)),
            ],
            output: self.width,
        }
    }

    fn dynamical_system(&self) -> Option<&dyn DynamicalSystem> {
        Some(self)
    }
}
