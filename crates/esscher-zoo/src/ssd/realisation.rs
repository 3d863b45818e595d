//! As a dynamical system in the value: Λ_i = e^{−Δ_i a} I, B_i = I ⊗ Δ_i B_i, C_i = I ⊗ C_iᵀ, D_i = diag(D).

use super::{KEY, LOG_RATE, QUERY, RATE, SKIP, StateSpaceDuality, VALUE};
use crate::dynamical_system::{DynamicalSystem, SystemStep, diagonal};
use crate::mechanism::Given;

impl DynamicalSystem for StateSpaceDuality {
    fn input_port(&self) -> usize {
        VALUE
    }

    fn states(&self) -> usize {
        self.key_width * self.value_width
    }

    fn realise(&self, given: &Given<'_, f64>) -> Vec<SystemStep> {
        (0..given.length)
            .map(|t| {
                let rate = given.row(RATE, t)[0];
                let kept = (-rate * given.parameters[LOG_RATE][0].exp()).exp();
                let written = given.row(KEY, t).iter().map(|k| rate * k).collect();
                let read = given.row(QUERY, t).to_vec();
                SystemStep {
                    feedthrough: diagonal(given.parameters[SKIP]),
                    ..SystemStep::single(vec![kept; self.key_width], written, read)
                        .for_each_of(self.value_width)
                }
            })
            .collect()
    }
}
