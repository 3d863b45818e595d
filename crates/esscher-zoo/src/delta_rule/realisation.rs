//! As a dynamical system in the value: Λ_i = I ⊗ (I − β_i k̂_i k̂_iᵀ), B_i = I ⊗ β_i k̂_i, C_i = I ⊗ q̂_iᵀ; Λ_i is not diagonal.

use super::recurrent::inverse_length;
use super::{BETA, DeltaRule, KEY, QUERY, VALUE};
use crate::dynamical_system::{DynamicalSystem, SystemStep, Transition};
use crate::mechanism::Given;

impl DynamicalSystem for DeltaRule {
    fn input_port(&self) -> usize {
        VALUE
    }

    fn states(&self) -> usize {
        self.key_width * self.value_width
    }

    fn realise(&self, given: &Given<'_, f64>) -> Vec<SystemStep> {
        let (keys, values) = (self.key_width, self.value_width);
        let states = keys * values;
        let unit = |row: &[f64]| -> Vec<f64> { row.iter().map(|x| x * inverse_length(row)).collect() };
        (0..given.length)
            .map(|t| {
                let (query, key) = (unit(given.row(QUERY, t)), unit(given.row(KEY, t)));
                let beta = given.row(BETA, t)[0];
                let mut transition = vec![0.0; states * states];
                let mut input = vec![0.0; states * values];
                let mut readout = vec![0.0; values * states];
                for c in 0..values {
                    for a in 0..keys {
                        let state = c * keys + a;
                        for b in 0..keys {
                            transition[state * states + c * keys + b] =
                                f64::from(a == b) - beta * key[a] * key[b];
                        }
                        input[state * values + c] = beta * key[a];
                        readout[c * states + state] = query[a];
                    }
                }
                SystemStep {
                    transition: Transition::Dense(transition),
                    input,
                    readout,
                    feedthrough: Vec::new(),
                }
            })
            .collect()
    }
}
