//! The definition, unrolled: y_t = Σ_{r≤t} (Π_{r<j≤t} a_j) √(1 − a_r²) σ(i_r) x_r, channel by channel.

use super::{INPUT, INPUT_GATE, LAMBDA, RECURRENCE_GATE, RgLru, SHARPNESS};
use crate::mechanism::{Evaluated, Given, State};
use crate::number::Number;

pub(super) fn evaluate<N: Number>(mechanism: &RgLru, given: &Given<'_, N>) -> Evaluated<N> {
    let width = mechanism.width;
    let log_decay = |channel: usize, j: usize| {
        -N::constant(SHARPNESS)
            * given.parameters[LAMBDA][channel].softplus()
            * given.row(RECURRENCE_GATE, j)[channel].sigmoid()
    };
    let mut outputs = Vec::with_capacity(given.length * width);
    for t in 0..given.length {
        for c in 0..width {
            let (mut sum, mut kept) = (N::zero(), N::zero());
            for r in (0..=t).rev() {
                let here = log_decay(c, r);
                let lost = -(N::constant(2.0) * here).exp_m1();
                let input = given.row(INPUT_GATE, r)[c].sigmoid() * given.row(INPUT, r)[c];
                sum += kept.exp() * lost.sqrt() * input;
                kept += here;
            }
            outputs.push(sum);
        }
    }
    let numbers = outputs[(given.length - 1) * width..].to_vec();
    Evaluated { outputs, state: State { seen: given.length, numbers } }
}
