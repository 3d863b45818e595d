//! As a dynamical system in the value: state h = S by value channel and key channel, Λ_i = I ⊗ diag(α_i).

use super::{GatedLinearAttention, KEY, LOG_DECAY, QUERY, VALUE};
use crate::dynamical_system::{DynamicalSystem, SystemStep, Transition};
use crate::mechanism::Given;

impl DynamicalSystem for GatedLinearAttention {
    fn input_port(&self) -> usize {
        VALUE
    }

    fn states(&self) -> usize {
        self.key_width * self.value_width
    }

    fn realise(&self, given: &Given<'_, f64>) -> Vec<SystemStep> {
        let (keys, values) = (self.key_width, self.value_width);
        (0..given.length)
            .map(|t| {
                let (query, key, log_decay) =
                    (given.row(QUERY, t), given.row(KEY, t), given.row(LOG_DECAY, t));
                let mut input = vec![0.0; keys * values * values];
                let mut readout = vec![0.0; values * keys * values];
                for c in 0..values {
                    for a in 0..keys {
                        let state = c * keys + a;
                        input[state * values + c] = key[a];
                        readout[c * keys * values + state] = self.scale() * query[a];
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
