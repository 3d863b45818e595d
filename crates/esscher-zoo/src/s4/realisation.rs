//! As a real dynamical system in the input: every complex state is two real ones that Ā turns and shrinks.

use super::discretisation::hold_all;
use super::{INPUT, READOUT_IMAGINARY, READOUT_REAL, S4, SKIP};
use crate::dynamical_system::{DynamicalSystem, SystemStep, Transition, diagonal};
use crate::mechanism::Given;

impl DynamicalSystem for S4 {
    fn input_port(&self) -> usize {
        INPUT
    }

    fn states(&self) -> usize {
        2 * self.size()
    }

    fn realise(&self, given: &Given<'_, f64>) -> Vec<SystemStep> {
        let (size, states) = (self.size(), 2 * self.size());
        let mut transition = vec![0.0; states * states];
        let mut input = vec![0.0; states * self.width];
        let mut readout = vec![0.0; self.width * states];
        for (real, held) in hold_all(self, given).iter().enumerate() {
            let (imaginary, channel) = (size + real, real / self.pairs);
            transition[real * states + real] = held.decay.real;
            transition[real * states + imaginary] = -held.decay.imaginary;
            transition[imaginary * states + real] = held.decay.imaginary;
            transition[imaginary * states + imaginary] = held.decay.real;
            input[real * self.width + channel] = held.input.real;
            input[imaginary * self.width + channel] = held.input.imaginary;
            readout[channel * states + real] = 2.0 * given.parameters[READOUT_REAL][real];
            readout[channel * states + imaginary] = -2.0 * given.parameters[READOUT_IMAGINARY][real];
        }
        let feedthrough = diagonal(given.parameters[SKIP]);
        vec![
            SystemStep { transition: Transition::Dense(transition), input, readout, feedthrough };
            given.length
        ]
    }
}
