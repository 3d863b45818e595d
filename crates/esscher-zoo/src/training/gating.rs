//! Rows let through by a gate: y = x ⊙ silu(z), silu(z) = z σ(z).

use super::slices::{in_blocks, sigmoid, with_exponentials};
use super::tape::{Slope, Tape, Tensor, shape};

/// Over slices.
pub(super) fn evaluate(x: &[f32], z: &[f32]) -> Vec<f32> {
    let mut y = x.to_vec();
    in_blocks(&mut y, z, |y, z| with_exponentials(y, z, |y, z, e| *y *= z * sigmoid(z, e)));
    y
}

/// On the tape.
pub(super) fn gate(tape: &Tape, name: &'static str, x: &Tensor, z: &Tensor) -> Tensor {
    tape.operation(
        name,
        &[x, z],
        &shape(x),
        |given| (evaluate(given[0], given[1]), ()),
        |(), given, slopes| {
            let (x, z) = (given[0], given[1]);
            let of_x = evaluate(slopes, z);
            let mut of_z = slopes.to_vec();
            in_blocks(&mut of_z, x, |slopes, x| slopes.iter_mut().zip(x).for_each(|(slope, x)| *slope *= x));
            in_blocks(&mut of_z, z, |slopes, z| {
                with_exponentials(slopes, z, |slope, z, e| {
                    let s = sigmoid(z, e);
                    *slope *= s + z * s * (1.0 - s);
                });
            });
            vec![Slope::Numbers(of_x), Slope::Numbers(of_z)]
        },
    )
}
