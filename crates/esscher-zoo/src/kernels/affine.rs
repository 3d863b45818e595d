//! u = Wx + b of one vector, and its derivative; W row by row.

use super::gated_sum::dot;
use crate::number::{Number, Real};

/// Adds Wx to `output`.
pub(crate) fn add_linear<N: Number>(weight: &[N], input: &[N], output: &mut [N]) {
    for (output, row) in output.iter_mut().zip(weight.chunks_exact(input.len())) {
        *output += dot(row, input);
    }
}

/// Writes Wx + b.
pub(crate) fn apply<N: Number>(weight: &[N], bias: &[N], input: &[N], output: &mut [N]) {
    output.copy_from_slice(bias);
    add_linear(weight, input, output);
}

/// Adds du xᵀ and Wᵀ du to the derivatives in W and x.
pub(crate) fn linear_backward<T: Real>(
    weight: &[T],
    input: &[T],
    output_slopes: &[T],
    weight_slopes: &mut [T],
    input_slopes: &mut [T],
) {
    let width = input.len();
    for ((row, row_slopes), &slope) in
        weight.chunks_exact(width).zip(weight_slopes.chunks_exact_mut(width)).zip(output_slopes)
    {
        row_slopes.iter_mut().zip(input).for_each(|(to, &x)| *to += slope * x);
        input_slopes.iter_mut().zip(row).for_each(|(to, &w)| *to += slope * w);
    }
}

/// Adds du xᵀ, du and Wᵀ du to the derivatives in W, b and x.
pub(crate) fn backward<T: Real>(
    weight: &[T],
    input: &[T],
    output_slopes: &[T],
    weight_slopes: &mut [T],
    bias_slopes: &mut [T],
    input_slopes: &mut [T],
) {
    bias_slopes.iter_mut().zip(output_slopes).for_each(|(to, &slope)| *to += slope);
    linear_backward(weight, input, output_slopes, weight_slopes, input_slopes);
}
