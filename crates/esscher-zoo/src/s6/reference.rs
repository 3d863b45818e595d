//! The definition, unrolled: y_t[c] = D[c] u_t[c] + Σ_{r≤t} Σ_s C_t[s] e^{A[c,s] Σ_{r<j≤t} Δ_j[c]} Δ_r[c] B_r[s] u_r[c].

use super::{INPUT, KEY, LOG_RATE, QUERY, RATE, S6, SKIP};
use crate::mechanism::{Evaluated, Given, State};
use crate::number::Number;

pub(super) fn evaluate<N: Number>(mechanism: &S6, given: &Given<'_, N>) -> Evaluated<N> {
    let (width, expansion) = (mechanism.width, mechanism.expansion);
    let state_at = |c: usize, s: usize, t: usize| {
        let rate = -given.parameters[LOG_RATE][c * expansion + s].exp();
        let (mut sum, mut elapsed) = (N::zero(), N::zero());
        for r in (0..=t).rev() {
            let step = given.row(RATE, r)[c];
            sum += (elapsed * rate).exp() * step * given.row(KEY, r)[s] * given.row(INPUT, r)[c];
            elapsed += step;
        }
        sum
    };
    let mut outputs = Vec::with_capacity(given.length * width);
    for t in 0..given.length {
        for c in 0..width {
            let skipped = given.parameters[SKIP][c] * given.row(INPUT, t)[c];
            outputs.push(
                (0..expansion).fold(skipped, |sum, s| sum + given.row(QUERY, t)[s] * state_at(c, s, t)),
            );
        }
    }
    let last = given.length - 1;
    let numbers = (0..width)
        .flat_map(|c| (0..expansion).map(move |s| (c, s)))
        .map(|(c, s)| state_at(c, s, last))
        .collect();
    Evaluated { outputs, state: State { seen: given.length, numbers } }
}
