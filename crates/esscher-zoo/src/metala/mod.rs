//! MetaLA: S_t = diag(α_t) S_{t−1} + (1 − α_t) v_tᵀ, o_t = s S_tᵀ q_t + σ((q_t·(w ⊙ (1 − α_t))) v_t), with s = 1/√d_k (key `chou2024`).
//!
//! The key is what the decay forgets, 1 − α, computed as −(e^{ln α} − 1) so that tiny decays still write. The second term is the
//! self-augmentation: a token's answer to itself through w (parameter `augmentation`, d_k numbers, starting at 0), with
//! the sigmoid applied to the whole vector and without the factor s, as the authors' code has it. The layer around it does the
//! short convolution, the normalisation of every head and the output gate. The state is S, d_k × d_v.

mod chunked;
mod realisation;
mod recurrent;
mod reference;
pub mod static_approximation;

use crate::dynamical_system::DynamicalSystem;
use crate::mechanism::{Initial, Meaning, Mechanism, Parameter, Port, Signature};

/// Linear attention whose keys are the complements of its decays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetaLinearAttention {
    /// Width of queries and decays.
    pub key_width: usize,
    /// Width of values and outputs.
    pub value_width: usize,
    /// Whether a token answers itself once more.
    pub augmentation: Augmentation,
}

/// Whether a token answers itself once more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Augmentation {
    /// With σ((q·(w ⊙ (1 − α))) v), as published; not linear in the value.
    SelfAttending,
    /// Not at all: there is no parameter and the mechanism is a linear dynamical system.
    Off,
}

/// Places of the token ports and of the parameter.
const QUERY: usize = 0;
const VALUE: usize = 1;
const LOG_DECAY: usize = 2;
const AUGMENTATION: usize = 0;

impl MetaLinearAttention {
    /// The factor on every score of the sum, 1/√d_k.
    pub fn scale(&self) -> f64 {
        1.0 / (self.key_width as f64).sqrt()
    }
}

impl Mechanism for MetaLinearAttention {
    fn signature(&self) -> Signature {
        let augmentation = Parameter::trained("augmentation", self.key_width, Initial::Constant(0.0));
        Signature {
            tokens: vec![
                Port { name: "query", width: self.key_width, meaning: Meaning::Content },
                Port { name: "value", width: self.value_width, meaning: Meaning::Content },
                Port { name: "log_decay", width: self.key_width, meaning: Meaning::LogDecay },
            ],
            parameters: match self.augmentation {
                Augmentation::SelfAttending => vec![augmentation],
                Augmentation::Off => Vec::new(),
            },
            output: self.value_width,
        }
    }

    fn dynamical_system(&self) -> Option<&dyn DynamicalSystem> {
        match self.augmentation {
            Augmentation::SelfAttending => None,
            Augmentation::Off => Some(self),
        }
    }
}
