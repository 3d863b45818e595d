//! u = Wx + b, which several maps begin with, and its derivative.

use crate::number::{Number, Real};

/// Writes Wx + b; W row by row.
pub(super) fn apply<N: Number>(weight: &[N], bias: &[N], input: &[N], output: &mut [N]) {
    for ((output, row), &bias) in output.iter_mut().zip(weight.chunks_exact(input.len())).zip(bias) {
        *output = row.iter().zip(input).fold(bias, |sum, (&w, &x)| sum + w * x);
    }
}

/// Adds du xᵀ, du and Wᵀ du to the derivatives in W, b and x.
pub(super) fn backward<T: Real>(
    weight: &[T],
    input: &[T],
    output_slopes: &[T],
    weight_slopes: &mut [T],
    bias_slopes: &mut [T],
    input_slopes: &mut [T],
) {
    let width = input.len();
    for (index, &slope) in output_slopes.iter().enumerate() {
        bias_slopes[index] += slope;
        let row = index * width..(index + 1) * width;
        for (((weight_slope, input_slope), &w), &x) in
            weight_slopes[row.clone()].iter_mut().zip(input_slopes.iter_mut()).zip(&weight[row]).zip(input)
        {
            *weight_slope += slope * x;
            *input_slope += slope * w;
        }
    }
}

/// The matrix with ones on the diagonal, row by row.
pub(super) fn identity(rows: usize, columns: usize) -> Vec<f64> {
    (0..rows * columns).map(|index| if index / columns == index % columns { 1.0 } else { 0.0 }).collect()
}
