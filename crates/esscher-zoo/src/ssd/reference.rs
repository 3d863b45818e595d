//! The definition, unrolled: y_t = Σ_{r≤t} (C_t·B_r) Δ_r exp(−a Σ_{r<j≤t} Δ_j) x_r + D ⊙ x_t.

use super::{KEY, LOG_RATE, QUERY, RATE, SKIP, StateSpaceDuality, VALUE};
use crate::mechanism::{Evaluated, Given, State};
use crate::number::Number;

pub(super) fn evaluate<N: Number>(mechanism: &StateSpaceDuality, given: &Given<'_, N>) -> Evaluated<N> {
    let (keys, values) = (mechanism.key_width, mechanism.value_width);
    let rate = given.parameters[LOG_RATE][0].exp();
    // What time t has of token r: its step size, decayed.
    let written = |r: usize, t: usize| {
        let since = (r + 1..=t).fold(N::zero(), |sum, j| sum + given.row(RATE, j)[0]);
        given.row(RATE, r)[0] * (-(rate * since)).exp()
    };
    let mut outputs = vec![N::zero(); given.length * values];
    for t in 0..given.length {
        for r in 0..=t {
            let score =
                (0..keys).fold(N::zero(), |sum, a| sum + given.row(QUERY, t)[a] * given.row(KEY, r)[a]);
            let weight = score * written(r, t);
            for c in 0..values {
                outputs[t * values + c] += weight * given.row(VALUE, r)[c];
            }
        }
        for c in 0..values {
            outputs[t * values + c] += given.parameters[SKIP][c] * given.row(VALUE, t)[c];
        }
    }
    let mut state = vec![N::zero(); keys * values];
    for r in 0..given.length {
        let written = written(r, given.length - 1);
        for a in 0..keys {
            for c in 0..values {
                state[a * values + c] += written * given.row(KEY, r)[a] * given.row(VALUE, r)[c];
            }
        }
    }
    Evaluated { outputs, state: State { seen: given.length, numbers: state } }
}
