//! Without augmentation, as a dynamical system in the value: Λ_i = I ⊗ diag(α_i), B_i = I ⊗ (1 − α_i), C_i = I ⊗ s q_iᵀ.

use super::{LOG_DECAY, MetaLinearAttention, QUERY, VALUE};
use crate::dynamical_system::{DynamicalSystem, SystemStep};
use crate::mechanism::Given;

impl DynamicalSystem for MetaLinearAttention {
    fn input_port(&self) -> usize {
        VALUE
    }

    fn states(&self) -> usize {
        self.key_width * self.value_width
    }

    fn realise(&self, given: &Given<'_, f64>) -> Vec<SystemStep> {
        (0..given.length)
            .map(|t| {
                let log_decay = given.row(LOG_DECAY, t);
                let kept = log_decay.iter().map(|g| g.exp()).collect();
                let written = log_decay.iter().map(|g| -g.exp_m1()).collect();
                let read = given.row(QUERY, t).iter().map(|q| self.scale() * q).collect();
                SystemStep::single(kept, written, read).for_each_of(self.value_width)
            })
            .collect()
    }
}
