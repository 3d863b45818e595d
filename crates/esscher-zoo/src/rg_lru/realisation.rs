//! As a dynamical system in the input: Λ_t = diag a_t, B_t = diag(√(1 − a_t²) ⊙ σ(i_t)), C = I.

use super::{INPUT, INPUT_GATE, LAMBDA, RECURRENCE_GATE, RgLru, SHARPNESS};
use crate::dynamical_system::{DynamicalSystem, SystemStep, Transition, diagonal};
use crate::mechanism::Given;
use crate::number::Number;

impl DynamicalSystem for RgLru {
    fn input_port(&self) -> usize {
        INPUT
    }

    fn states(&self) -> usize {
        self.width
    }

    fn realise(&self, given: &Given<'_, f64>) -> Vec<SystemStep> {
        (0..given.length)
            .map(|t| {
                let log_decays: Vec<f64> = given
                    .row(RECURRENCE_GATE, t)
                    .iter()
                    .zip(given.parameters[LAMBDA])
                    .map(|(gate, lambda)| -SHARPNESS * lambda.softplus() * gate.sigmoid())
                    .collect();
                let written: Vec<f64> = log_decays
                    .iter()
                    .zip(given.row(INPUT_GATE, t))
                    .map(|(log_decay, gate)| (-(2.0 * log_decay).exp_m1()).sqrt() * gate.sigmoid())
                    .collect();
                SystemStep {
                    transition: Transition::Diagonal(log_decays.iter().map(|x| x.exp()).collect()),
                    input: diagonal(&written),
                    readout: diagonal(&vec![1.0; self.width]),
                    feedthrough: Vec::new(),
                }
            })
            .collect()
    }
}
