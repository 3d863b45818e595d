//! The definition, unrolled: y_t = σ(o_t) Σ_{r≤t} (Π_{r<j≤t} λ_j) σ(i_r) x_r, channel by channel.

use super::{EXPONENT, FORGET, Forget, INPUT, INPUT_GATE, OUTPUT_GATE, QuasiLstm};
use crate::mechanism::{Evaluated, Given, State};
use crate::number::Number;

pub(super) fn evaluate<N: Number>(mechanism: &QuasiLstm, given: &Given<'_, N>) -> Evaluated<N> {
    let width = mechanism.width;
    let log_decay = |channel: usize, j: usize| {
        let argument = given.row(FORGET, j)[channel];
        match mechanism.forget {
            Forget::Sigmoid => argument.log_sigmoid(),
            Forget::Reversed => given.parameters[EXPONENT][0].relu() * (-argument).log_sigmoid(),
        }
    };
    let state_at = |channel: usize, t: usize| {
        let (mut sum, mut kept) = (N::zero(), N::zero());
        for r in (0..=t).rev() {
            sum += kept.exp() * given.row(INPUT_GATE, r)[channel].sigmoid() * given.row(INPUT, r)[channel];
            kept += log_decay(channel, r);
        }
        sum
    };
    let mut outputs = Vec::with_capacity(given.length * width);
    for t in 0..given.length {
        for c in 0..width {
            outputs.push(given.row(OUTPUT_GATE, t)[c].sigmoid() * state_at(c, t));
        }
    }
    let numbers = (0..width).map(|c| state_at(c, given.length - 1)).collect();
    Evaluated { outputs, state: State { seen: given.length, numbers } }
}
