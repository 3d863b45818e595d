//! As a dynamical system in the value: Λ_i = (η_{i−1}/η_i) I, B_i = I ⊗ k_i/η_i, C_i = I ⊗ q_iᵀ, as published; Λ_0 = 0.

use super::{KEY, LOG_NORMALISER, NormalizedAttention, QUERY, VALUE};
use crate::dynamical_system::{DynamicalSystem, SystemStep, Transition};
use crate::mechanism::Given;

impl DynamicalSystem for NormalizedAttention {
    fn input_port(&self) -> usize {
        VALUE
    }

    fn states(&self) -> usize {
        self.key_width * self.value_width
    }

    fn realise(&self, given: &Given<'_, f64>) -> Vec<SystemStep> {
        let (keys, values) = (self.key_width, self.value_width);
        let states = keys * values;
        let normaliser = |t: usize| self.normaliser.value(given.row(LOG_NORMALISER, t)[0]);
        (0..given.length)
            .map(|t| {
                let (query, key) = (given.row(QUERY, t), given.row(KEY, t));
                let mut input = vec![0.0; states * values];
                let mut readout = vec![0.0; values * states];
                for c in 0..values {
                    for a in 0..keys {
                        let state = c * keys + a;
                        input[state * values + c] = key[a] / normaliser(t);
                        readout[c * states + state] = query[a];
                    }
                }
                let ratio = if t == 0 { 0.0 } else { normaliser(t - 1) / normaliser(t) };
                SystemStep {
                    transition: Transition::Diagonal(vec![ratio; states]),
                    input,
                    readout,
                    feedthrough: Vec::new(),
                }
            })
            .collect()
    }
}
