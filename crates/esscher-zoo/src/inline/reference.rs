//! The definition: every row InL_K(q_i)_j = φ(q_i)·φ(k_j) − (1/N) Σ_r φ(q_i)·φ(k_r) + 1/N with φ(q) times s/N, then its product with V.

use super::{Inline, KEY, QUERY, VALUE};
use crate::mechanism::{Evaluated, Given, Order, State};
use crate::number::Number;

pub(super) fn evaluate<N: Number>(mechanism: &Inline, given: &Given<'_, N>) -> Evaluated<N> {
    let (keys, values) = (mechanism.key_width, mechanism.value_width);
    let phi = |x: N| mechanism.kernel.apply(x);
    let mut outputs = vec![N::zero(); given.length * values];
    for i in 0..given.length {
        let visible = match mechanism.order {
            Order::Causal => i + 1,
            Order::Whole => given.length,
        };
        let count = N::constant(visible as f64);
        let factor = N::one() / N::constant(keys as f64).sqrt() / count;
        let products: Vec<N> = (0..visible)
            .map(|j| {
                (0..keys).fold(N::zero(), |sum, a| {
                    sum + factor * phi(given.row(QUERY, i)[a]) * phi(given.row(KEY, j)[a])
                })
            })
            .collect();
        let mean = products.iter().fold(N::zero(), |sum, &product| sum + product) / count;
        for (j, &product) in products.iter().enumerate() {
            let weight = product - mean + N::one() / count;
            for c in 0..values {
                outputs[i * values + c] += weight * given.row(VALUE, j)[c];
            }
        }
    }
    let mut state = vec![N::zero(); keys * values + keys + values];
    for j in 0..given.length {
        for a in 0..keys {
            let key = phi(given.row(KEY, j)[a]);
            for c in 0..values {
                state[a * values + c] += key * given.row(VALUE, j)[c];
            }
            state[keys * values + a] += key;
        }
        for c in 0..values {
            state[keys * values + keys + c] += given.row(VALUE, j)[c];
        }
    }
    Evaluated { outputs, state: State { seen: given.length, numbers: state } }
}
