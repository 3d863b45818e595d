//! As a dynamical system in the value: Λ_i = e^{−Δ_i a} I, B_i = I ⊗ Δ_i B_i, C_i = I ⊗ C_iᵀ, D_i = diag(D).

use super::{KEY, LOG_RATE, QUERY, RATE, SKIP, StateSpaceDuality, VALUE};
use crate::dynamical_system::{DynamicalSystem, SystemStep, Transition};
use crate::mechanism::Given;

impl DynamicalSystem for StateSpaceDuality {
    fn input_port(&self) -> usize {
        VALUE
    }

    fn states(&self) -> usize {
        self.key_width * self.value_width
    }

    fn realise(&self, given: &Given<'_, f64>) -> Vec<SystemStep> {
        let (keys, values) = (self.key_width, self.value_width);
        let states = keys * values;
        let mut feedthrough = vec![0.0; values * values];
        for (c, skip) in given.parameters[SKIP].iter().enumerate() {
            feedthrough[c * values + c] = *skip;
        }
        (0..given.length)
            .map(|t| {
                let (query, key, rate) = (given.row(QUERY, t), given.row(KEY, t), given.row(RATE, t)[0]);
                let mut input = vec![0.0; states * values];
                let mut readout = vec![0.0; values * states];
                for c in 0..values {
                    for a in 0..keys {
                        let state = c * keys + a;
                        input[state * values + c] = rate * key[a];
                        readout[c * states + state] = query[a];
                    }
                }
                let kept = (-rate * given.parameters[LOG_RATE][0].exp()).exp();
                SystemStep {
                    transition: Transition::Diagonal(vec![kept; states]),
                    input,
                    readout,
                    feedthrough: feedthrough.clone(),
                }
            })
            .collect()
    }
}
