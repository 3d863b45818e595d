//! The definition, unrolled: o_t = s Σ_{r≤t} (Σ_a q_ta (1 − α_ra) Π_{r<j≤t} α_ja) v_r + σ((Σ_a q_ta w_a (1 − α_ta)) v_t).

use super::{AUGMENTATION, Augmentation, LOG_DECAY, MetaLinearAttention, QUERY, VALUE};
use crate::mechanism::{Evaluated, Given, State};
use crate::number::Number;

pub(super) fn evaluate<N: Number>(mechanism: &MetaLinearAttention, given: &Given<'_, N>) -> Evaluated<N> {
    let (keys, values) = (mechanism.key_width, mechanism.value_width);
    let written = |channel: usize, r: usize| -given.row(LOG_DECAY, r)[channel].exp_m1();
    let kept = |channel: usize, r: usize, t: usize| {
        (r + 1..=t).fold(N::zero(), |sum, j| sum + given.row(LOG_DECAY, j)[channel]).exp()
    };
    let mut outputs = vec![N::zero(); given.length * values];
    for t in 0..given.length {
        for r in 0..=t {
            let weight = (0..keys)
                .fold(N::zero(), |sum, a| sum + given.row(QUERY, t)[a] * written(a, r) * kept(a, r, t))
                * N::constant(mechanism.scale());
            for c in 0..values {
                outputs[t * values + c] += weight * given.row(VALUE, r)[c];
            }
        }
        if mechanism.augmentation == Augmentation::SelfAttending {
            let own = (0..keys).fold(N::zero(), |sum, a| {
                sum + given.row(QUERY, t)[a] * given.parameters[AUGMENTATION][a] * written(a, t)
            });
            for c in 0..values {
                outputs[t * values + c] += (own * given.row(VALUE, t)[c]).sigmoid();
            }
        }
    }
    let mut state = vec![N::zero(); keys * values];
    for r in 0..given.length {
        for a in 0..keys {
            let key = written(a, r) * kept(a, r, given.length - 1);
            for c in 0..values {
                state[a * values + c] += key * given.row(VALUE, r)[c];
            }
        }
    }
    Evaluated { outputs, state: State { seen: given.length, numbers: state } }
}
