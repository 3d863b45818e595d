//! Without augmentation, as a dynamical system in the value: Λ_i = I ⊗ diag(α_i), B_i = I ⊗ (1 − α_i), C_i = I ⊗ s q_iᵀ.

use super::{LOG_DECAY, MetaLinearAttention, QUERY, VALUE};
use crate::dynamical_system::{DynamicalSystem, SystemStep, Transition};
use crate::mechanism::Given;

impl DynamicalSystem for MetaLinearAttention {
    fn input_port(&self) -> usize {
        VALUE
    }

    fn states(&self) -> usize {
        self.key_width * self.value_width
    }

    fn realise(&self, given: &Given<'_, f64>) -> Vec<SystemStep> {
        let (keys, values) = (self.key_width, self.value_width);
        let states = keys * values;
        (0..given.length)
            .map(|t| {
                let (query, log_decay) = (given.row(QUERY, t), given.row(LOG_DECAY, t));
                let mut input = vec![0.0; states * values];
                let mut readout = vec![0.0; values * states];
                for c in 0..values {
                    for a in 0..keys {
                        let state = c * keys + a;
                        input[state * values + c] = -log_decay[a].exp_m1();
                        readout[c * states + state] = self.scale() * query[a];
                    }
                }
                let decays: Vec<f64> = log_decay.iter().map(|g| g.exp()).collect();
                SystemStep {
                    transition: Transition::Diagonal(decays.repeat(values)),
                    input,
                    readout,
                    feedthrough: Vec::new(),
                }
            })
            .collect()
    }
}
