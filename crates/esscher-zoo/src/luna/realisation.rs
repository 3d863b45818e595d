//! As a dynamical system in the value: that of linear attention, Λ_i = (η_{i−1}/η_i) I with η_i = φ(q_i)·z_i, guarded.

use super::{Luna, VALUE};
use crate::dynamical_system::{DynamicalSystem, SystemStep};
use crate::mechanism::Given;

impl DynamicalSystem for Luna {
    fn input_port(&self) -> usize {
        VALUE
    }

    fn states(&self) -> usize {
        self.linear_attention().states()
    }

    fn realise(&self, given: &Given<'_, f64>) -> Vec<SystemStep> {
        self.linear_attention().realise(given)
    }
}
