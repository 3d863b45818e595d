//! The definition: o_i = Σ_{j≤i} ((q_i·k_j)/η_i) v_j.

use super::{KEY, LOG_NORMALISER, NormalizedAttention, QUERY, VALUE};
use crate::mechanism::{Evaluated, Given, State};
use crate::number::Number;

pub(super) fn evaluate<N: Number>(mechanism: &NormalizedAttention, given: &Given<'_, N>) -> Evaluated<N> {
    let (keys, values) = (mechanism.key_width, mechanism.value_width);
    let mut outputs = vec![N::zero(); given.length * values];
    for i in 0..given.length {
        let normaliser = mechanism.normaliser.value(given.row(LOG_NORMALISER, i)[0]);
        for j in 0..=i {
            let score =
                (0..keys).fold(N::zero(), |sum, a| sum + given.row(QUERY, i)[a] * given.row(KEY, j)[a]);
            let weight = score / normaliser;
            for c in 0..values {
                outputs[i * values + c] += weight * given.row(VALUE, j)[c];
            }
        }
    }
    let mut state = vec![N::zero(); keys * values];
    for j in 0..given.length {
        for a in 0..keys {
            for c in 0..values {
                state[a * values + c] += given.row(KEY, j)[a] * given.row(VALUE, j)[c];
            }
        }
    }
    Evaluated { outputs, state: State { seen: given.length, numbers: state } }
}
