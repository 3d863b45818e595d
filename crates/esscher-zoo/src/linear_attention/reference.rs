//! The definition, unrolled: o_t = Σ_r (φ(q_t)·φ(k_r)/η_t) v_r over r ≤ t or all r.

use super::{GUARD, KEY, LinearAttention, Normaliser, QUERY, VALUE};
use crate::feature_maps::FeatureMap;
use crate::mechanism::{Evaluated, Given, Order, State};
use crate::number::Number;

pub(super) fn evaluate<N: Number, M: FeatureMap>(
    mechanism: &LinearAttention<M>,
    given: &Given<'_, N>,
) -> Evaluated<N> {
    let (features, values) = (mechanism.map.feature_width(), mechanism.value_width);
    let mapped = |port: usize| -> Vec<Vec<N>> {
        (0..given.length)
            .map(|t| {
                let mut row = vec![N::zero(); features];
                mechanism.map.apply(given.row(port, t), given.parameters, &mut row);
                row
            })
            .collect()
    };
    let (queries, keys) = (mapped(QUERY), mapped(KEY));
    let mut outputs = vec![N::zero(); given.length * values];
    for t in 0..given.length {
        let visible = match mechanism.order {
            Order::Causal => t + 1,
            Order::Whole => given.length,
        };
        let weights: Vec<N> = (0..visible)
            .map(|r| (0..features).fold(N::zero(), |sum, a| sum + queries[t][a] * keys[r][a]))
            .collect();
        let divisor = match mechanism.normaliser {
            Normaliser::Sum => {
                weights.iter().fold(N::zero(), |sum, &weight| sum + weight).larger(N::constant(GUARD))
            }
            Normaliser::Count => N::constant(visible as f64),
            Normaliser::None => N::one(),
        };
        for (r, &weight) in weights.iter().enumerate() {
            for c in 0..values {
                outputs[t * values + c] += weight / divisor * given.row(VALUE, r)[c];
            }
        }
    }
    let mut state = vec![N::zero(); features * values];
    for (r, key) in keys.iter().enumerate() {
        for a in 0..features {
            for c in 0..values {
                state[a * values + c] += key[a] * given.row(VALUE, r)[c];
            }
        }
    }
    if mechanism.normaliser == Normaliser::Sum {
        state.extend((0..features).map(|a| keys.iter().fold(N::zero(), |sum, key| sum + key[a])));
    }
    Evaluated { outputs, state: State { seen: given.length, numbers: state } }
}
