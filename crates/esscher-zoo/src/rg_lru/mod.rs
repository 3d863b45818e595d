//! The real-gated linear recurrent unit of Griffin: h_t = a_t ⊙ h_{t−1} + √(1 − a_t²) ⊙ σ(i_t) ⊙ x_t, y_t = h_t (key `de2024`).
//!
//! Input x, and the arguments r and i of recurrence and input gate, all of width d; ln a = −8 softplus(λ) σ(r) with a learned λ
//! per channel. 1 − a² = −expm1(2 ln a), which is exact for a near 1. The state is h.
//!
//! These are the paper's equations. The authors' released code differs in three ways: the first token of a sequence is written with
//! factor 1 in place of √(1 − a²); λ starts so that e^{−softplus(λ)}, without the factor 8, is between 0.9 and 0.999, where the paper
//! has a itself at an open gate, as here (on an even grid over the channels; they draw it); and the derivative of the root is cut
//! off at 1000. Here it is exact, and taken as 0 at a = 1, where there is none.

mod chunked;
mod realisation;
mod recurrent;
mod reference;

use crate::dynamical_system::DynamicalSystem;
use crate::mechanism::{Initial, Meaning, Mechanism, Parameter, Port, Signature};

/// The real-gated linear recurrent unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RgLru {
    /// Width of inputs, gates, state and outputs.
    pub width: usize,
}

/// Places of the token ports.
const INPUT: usize = 0;
const RECURRENCE_GATE: usize = 1;
const INPUT_GATE: usize = 2;

/// Place of the parameter.
const LAMBDA: usize = 0;

/// The factor c in ln a = −c softplus(λ) σ(r).
const SHARPNESS: f64 = 8.0;

/// Smallest and largest a at an open gate, at the start.
const DECAYS: [f64; 2] = [0.9, 0.999];

impl Mechanism for RgLru {
    fn signature(&self) -> Signature {
        let port = |name, meaning| Port { name, width: self.width, meaning };
        let start = (0..self.width)
            .map(|channel| {
                let place = (channel as f64 + 0.5) / self.width as f64;
                let decay = DECAYS[0] + place * (DECAYS[1] - DECAYS[0]);
                // The inverse of softplus.
                (-decay.ln() / SHARPNESS).exp_m1().ln()
            })
            .collect();
        Signature {
            tokens: vec![
                port("input", Meaning::Content),
                port("recurrence_gate", Meaning::Logit),
                port("input_gate", Meaning::Logit),
            ],
            parameters: vec![Parameter::trained("lambda", self.width, Initial::Values(start))],
            output: self.width,
        }
    }

    fn dynamical_system(&self) -> Option<&dyn DynamicalSystem> {
        Some(self)
    }
}
