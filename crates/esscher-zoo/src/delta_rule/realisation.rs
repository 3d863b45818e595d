//! As a dynamical system in the value: Λ_i = I ⊗ (I − β_i k̂_i k̂_iᵀ), B_i = I ⊗ β_i k̂_i, C_i = I ⊗ q̂_iᵀ; Λ_i is not diagonal.

use super::recurrent::unit;
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
        let keys = self.key_width;
        (0..given.length)
            .map(|t| {
                let (query, key) = (unit(given.row(QUERY, t)), unit(given.row(KEY, t)));
                let beta = given.row(BETA, t)[0];
                let overlap = |a: usize, b: usize| f64::from(a == b) - beta * key[a] * key[b];
                let block = (0..keys).flat_map(|a| (0..keys).map(move |b| (a, b)));
                SystemStep {
                    transition: Transition::Dense(block.map(|(a, b)| overlap(a, b)).collect()),
                    ..SystemStep::single(Vec::new(), key.iter().map(|k| beta * k).collect(), query)
                }
                .for_each_of(self.value_width)
            })
            .collect()
    }
}
