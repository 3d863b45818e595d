//! As a dynamical system in the value: Λ_i = (η_{i−1}/η_i) I, B_i = I ⊗ k_i/η_i, C_i = I ⊗ q_iᵀ, as published; Λ_0 = 0.

use super::{KEY, LOG_NORMALISER, NormalizedAttention, QUERY, VALUE};
use crate::dynamical_system::{DynamicalSystem, SystemStep};
use crate::mechanism::Given;

impl DynamicalSystem for NormalizedAttention {
    fn input_port(&self) -> usize {
        VALUE
    }

    fn states(&self) -> usize {
        self.key_width * self.value_width
    }

    fn realise(&self, given: &Given<'_, f64>) -> Vec<SystemStep> {
        let normaliser = |t: usize| self.normaliser.value(given.row(LOG_NORMALISER, t)[0]);
        (0..given.length)
            .map(|t| {
                let kept = if t == 0 { 0.0 } else { normaliser(t - 1) / normaliser(t) };
                let written = given.row(KEY, t).iter().map(|k| k / normaliser(t)).collect();
                SystemStep::single(vec![kept; self.key_width], written, given.row(QUERY, t).to_vec())
                    .for_each_of(self.value_width)
            })
            .collect()
    }
}
