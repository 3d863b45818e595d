//! Rows let through by a gate: y = x ⊙ silu(z), silu(z) = z σ(z).

use super::slices::{in_blocks, sigmoid, with_exponentials};
use super::tape::{Tape, Tensor};

/// y, number by number.
pub(super) fn evaluate(x: &[f32], z: &[f32]) -> Vec<f32> {
    let mut y = x.to_vec();
    in_blocks(&mut y, z, |y, z| with_exponentials(y, z, |y, z, e| *y *= z * sigmoid(z, e)));
    y
}

/// On the tape.
pub(super) fn gate(tape: &mut Tape, name: &'static str, x: &Tensor, z: &Tensor) -> Tensor {
    tape.operation(
        name,
        &[x, z],
        x.columns(),
        |given| (evaluate(given[0], given[1]), ()),
        |(), given, mut slopes| {
            let (x, z) = (given[0], given[1]);
            let of_x = evaluate(&slopes, z);
            in_blocks(&mut slopes, x, |slopes, x| {
                slopes.iter_mut().zip(x).for_each(|(slope, x)| *slope *= x)
            });
            in_blocks(&mut slopes, z, |slopes, z| {
                with_exponentials(slopes, z, |slope, z, e| {
                    let s = sigmoid(z, e);
                    *slope *= s + z * s * (1.0 - s);
                });
            });
            vec![of_x, slopes]
        },
    )
}
