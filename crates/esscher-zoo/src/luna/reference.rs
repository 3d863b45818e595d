//! The listing: u = Wx + b, ψ by its two layers, features over √m, then φ(Q)(φ(K)ᵀV) / (φ(Q)φ(K)ᵀ1).

use super::{KEY, Luna, QUERY, VALUE};
use crate::mechanism::{Evaluated, Given, Order, State};
use crate::number::Number;

pub(super) fn evaluate<N: Number>(mechanism: &Luna, given: &Given<'_, N>) -> Evaluated<N> {
    let Luna { key_width, value_width, projections, channels, hidden, order } = *mechanism;
    let &[weight, bias, hidden_weight, hidden_bias, channel_weight, channel_bias] = given.parameters else {
        unreachable!("parameters are those of the signature")
    };
    let psi = |u: N, channel: usize| {
        let mut sum = channel_bias[channel];
        for unit in 0..hidden {
            let activation = hidden_weight[unit] * u + hidden_bias[unit];
            sum += channel_weight[channel * hidden + unit] * activation.relu();
        }
        sum.relu()
    };
    let features_of = |port: usize, t: usize| -> Vec<N> {
        let x = given.row(port, t);
        let mut features = Vec::new();
        for i in 0..projections {
            let u = (0..key_width).fold(N::zero(), |sum, a| sum + weight[i * key_width + a] * x[a]) + bias[i];
            for channel in 0..channels {
                features.push(psi(u, channel) / N::constant(projections as f64).sqrt());
            }
        }
        features
    };
    let queries: Vec<Vec<N>> = (0..given.length).map(|t| features_of(QUERY, t)).collect();
    let keys: Vec<Vec<N>> = (0..given.length).map(|t| features_of(KEY, t)).collect();
    let features = projections * channels;
    let mut outputs = Vec::new();
    for (t, query) in queries.iter().enumerate() {
        let visible = match order {
            Order::Causal => t + 1,
            Order::Whole => given.length,
        };
        let mut numerator = vec![N::zero(); value_width];
        let mut denominator = N::zero();
        for (r, key) in keys.iter().take(visible).enumerate() {
            let weight = (0..features).fold(N::zero(), |sum, a| sum + query[a] * key[a]);
            denominator += weight;
            for (c, entry) in numerator.iter_mut().enumerate() {
                *entry += weight * given.row(VALUE, r)[c];
            }
        }
        outputs.extend(numerator.iter().map(|&entry| entry / denominator.larger(N::constant(1e-6))));
    }
    let mut state = Vec::new();
    for a in 0..features {
        for c in 0..value_width {
            let entry = keys
                .iter()
                .enumerate()
                .fold(N::zero(), |sum, (r, key)| sum + key[a] * given.row(VALUE, r)[c]);
            state.push(entry);
        }
    }
    for a in 0..features {
        state.push(keys.iter().fold(N::zero(), |sum, key| sum + key[a]));
    }
    Evaluated { outputs, state: State { seen: given.length, numbers: state } }
}
