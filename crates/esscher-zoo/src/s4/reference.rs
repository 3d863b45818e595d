//! The definition as a convolution: y_t = D u_t + Σ_{j≤t} K_{t−j} u_j with the kernel K_l = 2 Re Σ_s C_s Ā_s^l B̄_s.

use super::{IMAGINARY, INPUT, LOG_REAL, LOG_STEP, READOUT_IMAGINARY, READOUT_REAL, S4, SKIP};
use crate::mechanism::{Evaluated, Given, State};
use crate::number::Number;

pub(super) fn evaluate<N: Number>(mechanism: &S4, given: &Given<'_, N>) -> Evaluated<N> {
    let (width, pairs, length) = (mechanism.width, mechanism.pairs, given.length);
    // Ā^l B̄ = (e^{(l+1)ΔA} − e^{lΔA}) / A, real and imaginary part.
    let response = |c: usize, s: usize, l: usize| -> [N; 2] {
        let step = given.parameters[LOG_STEP][c].exp();
        let real = -given.parameters[LOG_REAL][c * pairs + s].exp();
        let imaginary = given.parameters[IMAGINARY][c * pairs + s];
        let power = |exponent: usize| {
            let elapsed = step * N::constant(exponent as f64);
            let size = (elapsed * real).exp();
            [size * (elapsed * imaginary).cos(), size * (elapsed * imaginary).sin()]
        };
        let (after, before) = (power(l + 1), power(l));
        let change = [after[0] - before[0], after[1] - before[1]];
        let square = real * real + imaginary * imaginary;
        [
            (change[0] * real + change[1] * imaginary) / square,
            (change[1] * real - change[0] * imaginary) / square,
        ]
    };
    let mut outputs = vec![N::zero(); length * width];
    let mut state = vec![N::zero(); 2 * width * pairs];
    for c in 0..width {
        let kernel: Vec<N> = (0..length)
            .map(|l| {
                (0..pairs).fold(N::zero(), |sum, s| {
                    let [real, imaginary] = response(c, s, l);
                    let index = c * pairs + s;
                    let product = given.parameters[READOUT_REAL][index] * real
                        - given.parameters[READOUT_IMAGINARY][index] * imaginary;
                    sum + N::constant(2.0) * product
                })
            })
            .collect();
        for t in 0..length {
            let skipped = given.parameters[SKIP][c] * given.row(INPUT, t)[c];
            outputs[t * width + c] =
                (0..=t).fold(skipped, |sum, j| sum + kernel[t - j] * given.row(INPUT, j)[c]);
        }
        for s in 0..pairs {
            for j in 0..length {
                let [real, imaginary] = response(c, s, length - 1 - j);
                let input = given.row(INPUT, j)[c];
                state[c * pairs + s] += real * input;
                state[(width + c) * pairs + s] += imaginary * input;
            }
        }
    }
    Evaluated { outputs, state: State { seen: length, numbers: state } }
}
