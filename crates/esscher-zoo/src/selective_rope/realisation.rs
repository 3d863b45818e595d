//! As a dynamical system: that of the inner mechanism with turned queries and keys.

use super::Rotated;
use super::chunked::Turned;
use crate::dynamical_system::{DynamicalSystem, SystemStep};
use crate::mechanism::{Given, Mechanism};

impl<M: Mechanism> DynamicalSystem for Rotated<M> {
    fn input_port(&self) -> usize {
        self.inner.dynamical_system().map_or(0, |system| system.input_port())
    }

    fn states(&self) -> usize {
        self.inner.dynamical_system().map_or(0, |system| system.states())
    }

    fn realise(&self, given: &Given<'_, f64>) -> Vec<SystemStep> {
        let places = self.places();
        let turned = Turned::new(self.rotation, places, given, 0, &vec![0.0; self.phases()]);
        places.with_rotated(given, &turned.query, &turned.key, |given| {
            self.inner.dynamical_system().map_or_else(Vec::new, |system| system.realise(given))
        })
    }
}
