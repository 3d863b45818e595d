//! The local residual of InLine: o_ic += Σ_j r_cj v_{n_j(i),c}, a convolution of each value channel with weights made from the tokens.
//!
//! On a grid n_j(i) are the 3 × 3 neighbours, missing ones zero, as published; the line is ours. The weights come from the
//! mean token, r = W₂ GELU(W₁ x̄), so a layer that is causal must take its mean over tokens that are known.

use crate::kernels::affine;
use crate::number::{Number, Real};

/// Which tokens stand around a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Neighbourhood {
    /// On a line: the token and the two before it.
    CausalLine,
    /// On a line: the token and its two neighbours.
    CentredLine,
    /// On a grid of rows of so many tokens: the 3 × 3 tokens around it. The last row may be incomplete.
    Grid {
        /// Tokens per row.
        columns: usize,
    },
}

impl Neighbourhood {
    /// How many neighbours a token has, itself included: the weights per channel.
    pub fn size(self) -> usize {
        match self {
            Neighbourhood::CausalLine | Neighbourhood::CentredLine => 3,
            Neighbourhood::Grid { .. } => 9,
        }
    }

    /// Neighbour number `index` of a token, row by row and first to last, if it exists.
    fn neighbour(self, token: usize, index: usize, length: usize) -> Option<usize> {
        let moved = |from: usize, by: usize| (from + by).checked_sub(1);
        let neighbour = match self {
            Neighbourhood::CausalLine => (token + index).checked_sub(2),
            Neighbourhood::CentredLine => moved(token, index),
            Neighbourhood::Grid { columns } => {
                let row = moved(token / columns, index / 3)?;
                let column = moved(token % columns, index % 3).filter(|&column| column < columns)?;
                Some(row * columns + column)
            }
        };
        neighbour.filter(|&neighbour| neighbour < length)
    }

    /// Calls `visit` with every token, neighbour and number of the neighbour.
    fn pairs(self, length: usize, mut visit: impl FnMut(usize, usize, usize)) {
        for token in 0..length {
            for index in 0..self.size() {
                if let Some(neighbour) = self.neighbour(token, index, length) {
                    visit(token, neighbour, index);
                }
            }
        }
    }
}

/// The convolution of `values` (rows of `channels`) with `weights` (per channel one number per neighbour).
pub fn convolve<N: Number>(
    neighbourhood: Neighbourhood,
    channels: usize,
    values: &[N],
    weights: &[N],
) -> Vec<N> {
    let size = neighbourhood.size();
    let mut outputs = vec![N::zero(); values.len()];
    neighbourhood.pairs(values.len() / channels, |token, neighbour, index| {
        for c in 0..channels {
            outputs[token * channels + c] += weights[c * size + index] * values[neighbour * channels + c];
        }
    });
    outputs
}

/// Adds the derivatives of [`convolve`] in values and weights.
pub fn convolve_backward<T: Real>(
    neighbourhood: Neighbourhood,
    channels: usize,
    values: &[T],
    weights: &[T],
    output_slopes: &[T],
    value_slopes: &mut [T],
    weight_slopes: &mut [T],
) {
    let size = neighbourhood.size();
    neighbourhood.pairs(values.len() / channels, |token, neighbour, index| {
        for c in 0..channels {
            let slope = output_slopes[token * channels + c];
            value_slopes[neighbour * channels + c] += weights[c * size + index] * slope;
            weight_slopes[c * size + index] += values[neighbour * channels + c] * slope;
        }
    });
}

/// r = W₂ GELU(W₁ x̄) for one head: `first` is W₁, hidden × width of x̄, `second` is W₂, (channels · neighbours) × hidden.
///
/// GELU in its form with tanh, which differs from the published code's by less than 10⁻³: our choice.
pub fn residual_weights<N: Number>(mean: &[N], first: &[N], second: &[N]) -> Vec<N> {
    let hidden: Vec<N> = linear(first, mean).into_iter().map(gelu).collect();
    linear(second, &hidden)
}

/// Adds the derivatives of [`residual_weights`] in the mean token, W₁ and W₂.
pub fn residual_weights_backward<T: Real>(
    mean: &[T],
    first: &[T],
    second: &[T],
    weight_slopes: &[T],
    mean_slopes: &mut [T],
    first_slopes: &mut [T],
    second_slopes: &mut [T],
) {
    let arguments = linear(first, mean);
    let hidden: Vec<T> = arguments.iter().map(|&x| gelu(x)).collect();
    let mut hidden_slopes = vec![T::zero(); hidden.len()];
    affine::linear_backward(second, &hidden, weight_slopes, second_slopes, &mut hidden_slopes);
    for (slope, &x) in hidden_slopes.iter_mut().zip(&arguments) {
        *slope *= gelu_slope(x);
    }
    affine::linear_backward(first, mean, &hidden_slopes, first_slopes, mean_slopes);
}

fn linear<N: Number>(weight: &[N], input: &[N]) -> Vec<N> {
    let mut output = vec![N::zero(); weight.len() / input.len()];
    affine::add_linear(weight, input, &mut output);
    output
}

/// √(2/π) and the cubic coefficient of GELU with tanh.
const GELU: (f64, f64) = (0.797_884_560_802_865_4, 0.044_715);

/// x (1 + tanh(√(2/π)(x + 0.044715 x³))) / 2.
fn gelu<N: Number>(x: N) -> N {
    let inner = N::constant(GELU.0) * (x + N::constant(GELU.1) * x * x * x);
    N::constant(0.5) * x * (N::one() + inner.tanh())
}

fn gelu_slope<T: Real>(x: T) -> T {
    let square = x * x;
    let tanh = (T::constant(GELU.0) * (x + T::constant(GELU.1) * square * x)).tanh();
    let inner_slope = T::constant(GELU.0) * (T::one() + T::constant(3.0 * GELU.1) * square);
    T::constant(0.5) * (T::one() + tanh + x * (T::one() - tanh * tanh) * inner_slope)
}
