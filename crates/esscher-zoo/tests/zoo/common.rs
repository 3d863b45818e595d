//! What the tests of all mechanisms share.

use esscher_zoo::agreement::{Drawn, Gates, check_agreement, relative_difference};
use esscher_zoo::dynamical_system::simulate;
use esscher_zoo::mechanism::{Definition, Mechanism};

/// Lengths around the sizes of chunks and blocks, with places to cut.
const LENGTHS: &[(usize, &[usize])] =
    &[(1, &[]), (2, &[1]), (7, &[3]), (37, &[5, 20]), (64, &[32]), (65, &[1, 64]), (131, &[66, 67])];

/// All forms agree at odd lengths, with all sizes of gates, whole and split; and so does the dynamical system, if there is one.
pub(crate) fn check_all(mechanism: &dyn Mechanism) {
    for gates in Gates::ALL {
        for (seed, &(length, splits)) in LENGTHS.iter().enumerate() {
            if let Err(disagreement) = check_agreement(mechanism, length, gates, splits, seed as u64) {
                panic!("{mechanism:?}, length {length}, {gates:?} gates: {disagreement}");
            }
        }
        check_realisation(mechanism, gates);
    }
}

/// The simulated dynamical system gives the reference's outputs to 1e-10.
fn check_realisation(mechanism: &dyn Mechanism, gates: Gates) {
    let Some(system) = mechanism.dynamical_system() else { return };
    let drawn = Drawn::new(mechanism, 23, gates, 5);
    let (expected, found) = drawn.with::<f64, _>(0, 23, |given| {
        let inputs = given.tokens[system.input_port()];
        let steps = system.realise(given);
        (Definition::<f64>::reference(mechanism, given).outputs, simulate(&steps, system.states(), inputs))
    });
    let difference = relative_difference(&found, &expected, 0.0);
    assert!(difference <= 1e-10, "{mechanism:?}, {gates:?} gates: realisation differs by {difference:e}");
}
