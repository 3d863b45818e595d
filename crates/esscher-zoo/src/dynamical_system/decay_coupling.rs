//! Decay coupling: what a system writes, |B|, beside what it keeps, |Λ|, as one gate opens (key `sieber2024`).
//!
//! All systems are scalar and take two tokens: a first one with neutral gate, and a second one whose gate z is varied.
//! - attention (elu + 1, normalised): Λ = 1/(1 + φ(z)) and B = φ(z)/(1 + φ(z)) = 1 − Λ, coupled through η;
//! - normalized attention: Λ = B = e^{−z}, both through its own η = e^z;
//! - S6, Δ = softplus(z): Λ = e^{−Δ}, B = Δ: |Λ| → 1 exactly if B → 0;
//! - quasi-LSTM, z in the forget gate: Λ = σ(z) or reversed σ(−z), B = σ(0) whatever Λ is.

use super::{DynamicalSystem, SystemStep, Transition};
use crate::feature_maps::Elu;
use crate::linear_attention::{self, LinearAttention};
use crate::mechanism::{Given, Mechanism, Order};
use crate::normalized_attention::{self, NormalizedAttention};
use crate::number::Number;
use crate::quasi_lstm::{Forget, QuasiLstm};
use crate::s6::S6;

/// |Λ| and |B| of one mechanism over the gates of the table.
#[derive(Debug, Clone, PartialEq)]
pub struct Coupling {
    /// The mechanism.
    pub mechanism: &'static str,
    /// |Λ|.
    pub transition: Vec<f64>,
    /// |B|.
    pub input: Vec<f64>,
}

/// A table of couplings.
#[derive(Debug, Clone, PartialEq)]
pub struct DecayCoupling {
    /// z.
    pub gate: Vec<f64>,
    /// A pair of columns per mechanism.
    pub mechanisms: Vec<Coupling>,
}

/// The table over these gates, read off the realisations of the mechanisms.
pub fn decay_coupling(gates: &[f64]) -> DecayCoupling {
    let attention = LinearAttention {
        map: Elu { width: 1 },
        value_width: 1,
        normaliser: linear_attention::Normaliser::Sum,
        order: Order::Causal,
    };
    let normalized = NormalizedAttention {
        key_width: 1,
        value_width: 1,
        normaliser: normalized_attention::Normaliser::Exponential,
    };
    let s6 = S6 { width: 1, expansion: 1 };
    let forgetting = |forget| QuasiLstm { width: 1, forget };
    // Ports and parameters by name; every port is one number wide.
    let column = |mechanism: &'static str, system: &dyn Realised, port: &str, gate: fn(f64) -> f64| {
        let steps: Vec<SystemStep> =
            gates.iter().filter_map(|&z| second_step(system, port, gate(z), gate(0.0))).collect();
        let transition = steps.iter().map(|step| match &step.transition {
            Transition::Diagonal(numbers) | Transition::Dense(numbers) => numbers[0].abs(),
        });
        Coupling {
            mechanism,
            transition: transition.collect(),
            input: steps.iter().map(|step| step.input[0].abs()).collect(),
        }
    };
    let plain: fn(f64) -> f64 = |z| z;
    DecayCoupling {
        gate: gates.to_vec(),
        mechanisms: vec![
            column("attention", &attention, "key", plain),
            column("normalized attention", &normalized, "log_normaliser", plain),
            column("S6", &s6, "rate", Number::softplus),
            column("quasi-LSTM", &forgetting(Forget::Sigmoid), "forget", plain),
            column("reversed quasi-LSTM", &forgetting(Forget::Reversed), "forget", plain),
        ],
    }
}

/// A mechanism together with its realisation.
trait Realised: Mechanism + DynamicalSystem {}

impl<M: Mechanism + DynamicalSystem> Realised for M {}

/// The second of two steps, with this number in the varied port, and its neutral number at the first.
fn second_step(system: &dyn Realised, port: &str, gate: f64, neutral: f64) -> Option<SystemStep> {
    let signature = system.signature();
    let tokens: Vec<[f64; 2]> = signature
        .tokens
        .iter()
        .map(|one| match one.name {
            name if name == port => [neutral, gate],
            // The feature of attention's query is 1 at 0; keys, values and inputs are 1 where they are not the gate.
            "query" | "input_gate" | "output_gate" => [0.0, 0.0],
            _ => [1.0, 1.0],
        })
        .collect();
    // One rate, no skip, exponent one.
    let parameters: Vec<[f64; 1]> =
        signature.parameters.iter().map(|one| [f64::from(u8::from(one.name == "exponent"))]).collect();
    let tokens: Vec<&[f64]> = tokens.iter().map(|pair| &pair[..]).collect();
    let parameters: Vec<&[f64]> = parameters.iter().map(|one| &one[..]).collect();
    system.realise(&Given { length: 2, tokens: &tokens, parameters: &parameters }).pop()
}
