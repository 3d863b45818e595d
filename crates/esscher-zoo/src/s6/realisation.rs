//! As a dynamical system in the input: Λ_t = diag e^{Δ_t ⊗ 1 ⊙ A}, B_t = diag(Δ_t) ⊗ B_t, C_t = I ⊗ C_tᵀ, D_t = diag D.

use super::{INPUT, KEY, LOG_RATE, QUERY, RATE, S6, SKIP};
use crate::dynamical_system::{DynamicalSystem, SystemStep, Transition, diagonal};
use crate::mechanism::Given;

impl DynamicalSystem for S6 {
    fn input_port(&self) -> usize {
        INPUT
    }

    fn states(&self) -> usize {
        self.size()
    }

    fn realise(&self, given: &Given<'_, f64>) -> Vec<SystemStep> {
        (0..given.length)
            .map(|t| {
                let mut decays = vec![0.0; self.size()];
                let mut input = vec![0.0; self.size() * self.width];
                let mut readout = vec![0.0; self.width * self.size()];
                for c in 0..self.width {
                    let step = given.row(RATE, t)[c];
                    for s in 0..self.expansion {
                        let state = c * self.expansion + s;
                        decays[state] = (-step * given.parameters[LOG_RATE][state].exp()).exp();
                        input[state * self.width + c] = step * given.row(KEY, t)[s];
                        readout[c * self.size() + state] = given.row(QUERY, t)[s];
                    }
                }
                SystemStep {
                    transition: Transition::Diagonal(decays),
                    input,
                    readout,
                    feedthrough: diagonal(given.parameters[SKIP]),
                }
            })
            .collect()
    }
}
