//! The definition with its matrices: S_t = (I − β_t k̂_t k̂_tᵀ) S_{t−1} + β_t k̂_t v_tᵀ, o_t = S_tᵀ q̂_t.

use super::{BETA, DeltaRule, EPSILON, KEY, QUERY, VALUE, downscaling};
use crate::mechanism::{Evaluated, Given, State};
use crate::number::Number;

pub(super) fn evaluate<N: Number>(mechanism: &DeltaRule, given: &Given<'_, N>) -> Evaluated<N> {
    let (keys, values) = (mechanism.key_width, mechanism.value_width);
    let unit = |row: &[N]| -> Vec<N> {
        let factor = downscaling(row);
        let scaled: Vec<N> = row.iter().map(|&x| x * factor).collect();
        let square = scaled.iter().fold(N::zero(), |sum, &x| sum + x * x);
        let epsilon = N::constant(EPSILON) * factor * factor;
        scaled.iter().map(|&x| x / (square + epsilon).sqrt()).collect()
    };
    let mut outputs = vec![N::zero(); given.length * values];
    let mut state = vec![N::zero(); keys * values];
    for t in 0..given.length {
        let (query, key) = (unit(given.row(QUERY, t)), unit(given.row(KEY, t)));
        let (value, beta) = (given.row(VALUE, t), given.row(BETA, t)[0]);
        let mut next = vec![N::zero(); keys * values];
        for a in 0..keys {
            for b in 0..keys {
                let identity = if a == b { N::one() } else { N::zero() };
                let entry = identity - beta * key[a] * key[b];
                for c in 0..values {
                    next[a * values + c] += entry * state[b * values + c];
                }
            }
            for c in 0..values {
                next[a * values + c] += beta * key[a] * value[c];
            }
        }
        state = next;
        for a in 0..keys {
            for c in 0..values {
                outputs[t * values + c] += query[a] * state[a * values + c];
            }
        }
    }
    Evaluated { outputs, state: State { seen: given.length, numbers: state } }
}
