//! As a dynamical system in the value: state h = S by value channel and key channel, Λ_i = I ⊗ diag(α_i).

use super::{GatedLinearAttention, KEY, LOG_DECAY, QUERY, VALUE};
use crate::dynamical_system::{DynamicalSystem, SystemStep};
use crate::mechanism::Given;

impl DynamicalSystem for GatedLinearAttention {
    fn input_port(&self) -> usize {
        VALUE
    }

    fn states(&self) -> usize {
        self.key_width * self.value_width
    }

    fn realise(&self, given: &Given<'_, f64>) -> Vec<SystemStep> {
        (0..given.length)
            .map(|t| {
                let kept = given.row(LOG_DECAY, t).iter().map(|g| g.exp()).collect();
                let read = given.row(QUERY, t).iter().map(|q| self.scale() * q).collect();
                SystemStep::single(kept, given.row(KEY, t).to_vec(), read).for_each_of(self.value_width)
            })
            .collect()
    }
}
