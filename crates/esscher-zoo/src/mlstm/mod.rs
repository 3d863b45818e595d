//! mLSTM: C_t = f'C_{t−1} + i'k_t v_tᵀ, n_t = f'n_{t−1} + i'k_t, h_t = C_tᵀq / (max(|n_t·q|, e^{−m_t}) + ε), q = q_t/√d_k (key `beck2024`).
//!
//! Gates come as logits and are capped: ĩ = 15 tanh(z/15), likewise f̃. With m_t = max(ln σ(f̃_t) + m_{t−1}, ĩ_t) they are
//! f' = exp(ln σ(f̃_t) + m_{t−1} − m_t) and i' = exp(ĩ_t − m_t); ε = 10⁻⁶, m_0 = 0, C_0 = n_0 = 0.
//!
//! The state is `[C | n]`, d_k rows of d_v + 1 numbers, followed by m.
//!
//! **What all forms compute.** Let C̄ = e^m C and n̄ = e^m n. The factors e^{m} cancel in the recurrence, so that
//! C̄_t = σ(f̃_t) C̄_{t−1} + e^{ĩ_t} k_t v_tᵀ, and multiplying numerator and denominator by e^{m_t}
//!
//! h_t = C̄_tᵀq / (max(|n̄_t·q|, 1) + ε e^{m_t}).
//!
//! So h depends on m through ε only, yet it does, and m is part of the state: it is a function of the gates like any other
//! and is differentiated through its maximum, in all forms. The published parallel form takes m_t = max_{s≤t} ln D_ts
//! and forgets m_0; unrolling the recurrence gives max(m_0 + Σ_{j≤t} ln σ(f̃_j), max_{s≤t} ln D_ts), which is what our
//! reference has. The two differ while all input gates so far are closed more than the forget gates.
//!
//! The fast form computes C̄ and n̄, for which the stabiliser is not needed: the cap bounds ĩ by 15 and m_t lies between ĩ_t and
//! max(0, max ĩ), so e^{±m} and every weight stay below e^15 < 4·10⁶. It follows m beside, one maximum per token.

mod chunked;
mod realisation;
mod recurrent;
mod reference;

use crate::dynamical_system::DynamicalSystem;
use crate::mechanism::{Meaning, Mechanism, Port, Signature};
use crate::number::Number;

/// mLSTM with exponential input gate and sigmoid forget gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatrixLstm {
    /// Width of queries and keys.
    pub key_width: usize,
    /// Width of values and outputs.
    pub value_width: usize,
}

/// ε in the divisor.
pub const EPSILON: f64 = 1e-6;

/// Gate logits are kept below this in magnitude.
pub const CAP: f64 = 15.0;

/// Places of the token ports.
const QUERY: usize = 0;
const KEY: usize = 1;
const VALUE: usize = 2;
const INPUT_GATE: usize = 3;
const FORGET_GATE: usize = 4;

impl MatrixLstm {
    /// The factor on every score, 1/√d_k.
    pub fn scale(&self) -> f64 {
        1.0 / (self.key_width as f64).sqrt()
    }
}

/// 15 tanh(z/15).
fn capped<N: Number>(logit: N) -> N {
    N::constant(CAP) * (logit / N::constant(CAP)).tanh()
}

impl Mechanism for MatrixLstm {
    fn signature(&self) -> Signature {
        Signature::attention(self.key_width, self.value_width)
            .with_port("input_gate", 1, Meaning::Logit)
            .with_port("forget_gate", 1, Meaning::Logit)
    }

    /// The released code starts forget gates between 3 and 6.
    fn initial_biases(&self, port: &Port) -> Option<(f64, f64)> {
        (port.name == "forget_gate").then_some((3.0, 6.0))
    }

    fn dynamical_system(&self) -> Option<&dyn DynamicalSystem> {
        Some(self)
    }
}
