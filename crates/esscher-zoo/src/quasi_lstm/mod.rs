//! The quasi-LSTM, whose gates do not see the state: h_t = λ_t ⊙ h_{t−1} + σ(i_t) ⊙ x_t, y_t = σ(o_t) ⊙ h_t (key `sieber2024`).
//!
//! Input x, and the arguments f, i, o of forget, input and output gate, all of width d. The decay is λ = σ(f), or in the
//! reversed variant λ = σ(−f)^{max(α, 0)} = exp(−max(α, 0) · softplus(f)) with one learned α for all channels and heads: the
//! decay of S6. Convolution, outer gate and projections of the block belong to the layer. The state is h.
//!
//! The equations are read from the authors' public code; that α is shared by all heads is our choice, since theirs has one.

mod chunked;
mod realisation;
mod recurrent;
mod reference;

use crate::dynamical_system::DynamicalSystem;
use crate::mechanism::{Initial, Meaning, Mechanism, Parameter, Port, Signature};

/// How the forget gate's argument becomes a decay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forget {
    /// λ = σ(f).
    Sigmoid,
    /// λ = σ(−f)^{max(α, 0)}, with the parameter `exponent` α.
    Reversed,
}

/// The quasi-LSTM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuasiLstm {
    /// Width of inputs, gates, state and outputs.
    pub width: usize,
    /// How the forget gate works.
    pub forget: Forget,
}

/// Places of the token ports.
const INPUT: usize = 0;
const FORGET: usize = 1;
const INPUT_GATE: usize = 2;
const OUTPUT_GATE: usize = 3;

/// Place of the parameter of the reversed variant.
const EXPONENT: usize = 0;

impl Mechanism for QuasiLstm {
    fn signature(&self) -> Signature {
        let port = |name, meaning| Port { name, width: self.width, meaning };
        Signature {
            tokens: vec![
                port("input", Meaning::Content),
                port("forget", Meaning::Logit),
                port("input_gate", Meaning::Logit),
                port("output_gate", Meaning::Logit),
            ],
            parameters: match self.forget {
                Forget::Sigmoid => Vec::new(),
                Forget::Reversed => vec![Parameter {
                    name: "exponent",
                    size: 1,
                    shared: true,
                    initial: Initial::Constant(1.0),
                    trained: true,
                }],
            },
            output: self.width,
        }
    }

    /// Decays start between σ(3) and σ(6), as those of mLSTM; the choice is ours.
    fn initial_biases(&self, port: &Port) -> Option<(f64, f64)> {
        let biases = match self.forget {
            Forget::Sigmoid => (3.0, 6.0),
            Forget::Reversed => (-3.0, -6.0),
        };
        (port.name == "forget").then_some(biases)
    }

    fn dynamical_system(&self) -> Option<&dyn DynamicalSystem> {
        Some(self)
    }
}
