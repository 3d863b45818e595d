//! As a dynamical system in the input: Λ_t = diag λ_t, B_t = diag σ(i_t), C_t = diag σ(o_t).

use super::{EXPONENT, FORGET, Forget, INPUT, INPUT_GATE, OUTPUT_GATE, QuasiLstm};
use crate::dynamical_system::{DynamicalSystem, SystemStep, Transition, diagonal};
use crate::mechanism::Given;
use crate::number::Number;

impl DynamicalSystem for QuasiLstm {
    fn input_port(&self) -> usize {
        INPUT
    }

    fn states(&self) -> usize {
        self.width
    }

    fn realise(&self, given: &Given<'_, f64>) -> Vec<SystemStep> {
        let decay = |argument: &f64| match self.forget {
            Forget::Sigmoid => argument.sigmoid(),
            Forget::Reversed => (-argument).sigmoid().powf(given.parameters[EXPONENT][0].relu()),
        };
        let gates =
            |port: usize, t: usize| -> Vec<f64> { given.row(port, t).iter().map(|x| x.sigmoid()).collect() };
        (0..given.length)
            .map(|t| SystemStep {
                transition: Transition::Diagonal(given.row(FORGET, t).iter().map(decay).collect()),
                input: diagonal(&gates(INPUT_GATE, t)),
                readout: diagonal(&gates(OUTPUT_GATE, t)),
                feedthrough: Vec::new(),
            })
            .collect()
    }
}
