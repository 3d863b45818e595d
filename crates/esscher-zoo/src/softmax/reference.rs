//! The definition: p_tr = exp(s_tr − max_j s_tj) / Σ_j exp(s_tj − max_j s_tj), s_tr = q_t·k_r/√d_k, o_t = Σ_r p_tr v_r.

use super::{KEY, QUERY, Reach, Softmax, VALUE, all_finite};
use crate::mechanism::{Evaluated, Given, State};
use crate::number::Number;

pub(super) fn evaluate<N: Number>(mechanism: &Softmax, given: &Given<'_, N>) -> Evaluated<N> {
    let (keys, values, length) = (mechanism.key_width, mechanism.value_width, given.length);
    let root = N::constant(keys as f64).sqrt();
    let sees = |t: usize, r: usize| match mechanism.reach {
        Reach::Whole => true,
        Reach::Causal => r <= t,
        Reach::Window(tokens) => r <= t && t - r < tokens.max(1),
    };
    let mut outputs = vec![N::zero(); length * values];
    for t in 0..length {
        let visible: Vec<usize> = (0..length).filter(|&r| sees(t, r)).collect();
        let scores: Vec<N> = visible
            .iter()
            .map(|&r| {
                let (query, key) = (given.row(QUERY, t), given.row(KEY, r));
                (0..keys).fold(N::zero(), |sum, a| sum + query[a] * key[a]) / root
            })
            .collect();
        let largest = scores.iter().skip(1).fold(scores[0], |largest, &score| largest.larger(score));
        let exponentials: Vec<N> = scores.iter().map(|&score| (score - largest).exp()).collect();
        let none = if all_finite(&scores) { N::zero() } else { N::constant(f64::NAN) };
        let total = exponentials.iter().fold(none, |sum, &e| sum + e);
        for (&r, &exponential) in visible.iter().zip(&exponentials) {
            for c in 0..values {
                outputs[t * values + c] += exponential / total * given.row(VALUE, r)[c];
            }
        }
    }
    // The cache: every token in its slot; in a ring a later token replaces the one w before it.
    let slots = match mechanism.reach {
        Reach::Whole | Reach::Causal => length,
        Reach::Window(tokens) => tokens.max(1),
    };
    let mut cache = vec![vec![N::zero(); keys + values]; slots];
    for r in 0..length {
        cache[r % slots] = given.row(KEY, r).iter().chain(given.row(VALUE, r)).copied().collect();
    }
    Evaluated { outputs, state: State { seen: length, numbers: cache.concat() } }
}
