//! Angles from tokens, as a layer makes them: ω_t = (Σ_i w_i ⊙ (W₂ W₁ x̂_{t−i}) + e^b) · σ(g·x̂_t + g₀), x̂ = x/|x|.
//!
//! After the released code of selective rotations: low rank, no bias in the maps, a depthwise causal convolution, an optional
//! positive drift e^b and an optional gate, one per head. Tokens before the first count as zero. The smallest length that
//! x̂ is divided by is our choice.

use crate::number::Number;

/// What stands under the root of |x|² + this, so that a zero token has an angle.
const SMALLEST_SQUARE: f64 = 1e-12;

/// What follows the convolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// The sum of the convolution as it is.
    None,
    /// z σ(z), which gave the largest gain in the authors' ablation.
    Silu,
}

/// Weights of one head's angle network, matrices row by row.
#[derive(Debug, Clone, Copy)]
pub struct AngleNetwork<'a, N> {
    /// Width of tokens.
    pub width: usize,
    /// How many angles per token.
    pub pairs: usize,
    /// W₁, rank × width; its size decides the rank.
    pub down: &'a [N],
    /// W₂, pairs × rank.
    pub up: &'a [N],
    /// w, pairs × taps, the tap of the token itself first; its size decides the taps.
    pub convolution: &'a [N],
    /// What follows the convolution.
    pub activation: Activation,
    /// b, one per angle.
    pub bias: Option<&'a [N]>,
    /// g and then g₀, width + 1.
    pub gate: Option<&'a [N]>,
}

/// The angles ω of all tokens, row by row.
pub fn angles<N: Number>(network: &AngleNetwork<'_, N>, tokens: &[N]) -> Vec<N> {
    let &AngleNetwork { width, pairs, down, up, convolution, .. } = network;
    let rank = down.len() / width;
    let unit: Vec<N> = tokens
        .chunks_exact(width)
        .flat_map(|token| {
            let length = (dot(token, token) + N::constant(SMALLEST_SQUARE)).sqrt();
            token.iter().map(move |&x| x / length)
        })
        .collect();
    let mapped: Vec<N> = unit
        .chunks_exact(width)
        .flat_map(|token| {
            let low: Vec<N> = down.chunks_exact(width).map(|row| dot(row, token)).collect();
            up.chunks_exact(rank).map(|row| dot(row, &low)).collect::<Vec<_>>()
        })
        .collect();
    let mut angles = Vec::with_capacity(mapped.len());
    for (t, token) in unit.chunks_exact(width).enumerate() {
        let gate = network.gate.map_or(N::one(), |gate| (dot(&gate[..width], token) + gate[width]).sigmoid());
        for (j, taps) in convolution.chunks_exact(convolution.len() / pairs).enumerate() {
            let sum = taps
                .iter()
                .enumerate()
                .take(t + 1)
                .fold(N::zero(), |sum, (i, &tap)| sum + tap * mapped[(t - i) * pairs + j]);
            let activated = match network.activation {
                Activation::None => sum,
                Activation::Silu => sum * sum.sigmoid(),
            };
            let drift = network.bias.map_or(N::zero(), |bias| bias[j].exp());
            angles.push((activated + drift) * gate);
        }
    }
    angles
}

/// In order: the numbers of this network were fixed by adding so, and its vectors are short.
fn dot<N: Number>(left: &[N], right: &[N]) -> N {
    left.iter().zip(right).fold(N::zero(), |sum, (&x, &y)| sum + x * y)
}
