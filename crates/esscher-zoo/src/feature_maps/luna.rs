//! φ(x) = [ψ_ℓ(u_i)]_{i ≤ m, ℓ ≤ L} / √m with u = Wx + b and ψ = ReLU ∘ affine ∘ ReLU ∘ affine of one number (key `shahbazi2025`).

use super::{FeatureMap, Mapped};
use crate::kernels::affine;
use crate::mechanism::{Initial, Parameter};
use crate::number::{Number, Real};

/// LUNA's learned map as in the paper's listing, with one ψ of L channels (`shared_channels`): no envelope (h = 1), no cap on
/// the root mean square of channels. W, b and ψ are shared over heads. Feature i·L + ℓ is ψ_ℓ(u_i).
///
/// How ψ starts is not stated; ours: normals of deviation 1 before and 1/√hidden after the hidden layer, biases normal and 0.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LunaMap {
    /// Width of queries and keys, d.
    pub width: usize,
    /// Projections m.
    pub projections: usize,
    /// Channels of ψ, L.
    pub channels: usize,
    /// Hidden units of ψ; the listing has 64.
    pub hidden: usize,
}

/// Places of the parameters.
const WEIGHT: usize = 0;
const BIAS: usize = 1;
const HIDDEN_WEIGHT: usize = 2;
const HIDDEN_BIAS: usize = 3;
const CHANNEL_WEIGHT: usize = 4;
const CHANNEL_BIAS: usize = 5;

impl LunaMap {
    fn scale(&self) -> f64 {
        1.0 / (self.projections as f64).sqrt()
    }
}

/// The hidden layer of ψ at one number.
fn hidden_layer<N: Number>(parameters: &[&[N]], u: N, hidden: &mut [N]) {
    for ((unit, &weight), &bias) in
        hidden.iter_mut().zip(parameters[HIDDEN_WEIGHT]).zip(parameters[HIDDEN_BIAS])
    {
        *unit = (weight * u + bias).relu();
    }
}

impl FeatureMap for LunaMap {
    fn input_width(&self) -> usize {
        self.width
    }

    fn feature_width(&self) -> usize {
        self.projections * self.channels
    }

    fn parameters(&self) -> Vec<Parameter> {
        let parameter = |name, size, initial| Parameter { name, size, shared: true, initial, trained: true };
        vec![
            parameter(
                "projection_weight",
                self.projections * self.width,
                Initial::Normal(1.0 / (self.width as f64).sqrt()),
            ),
            parameter("projection_bias", self.projections, Initial::Constant(0.0)),
            parameter("hidden_weight", self.hidden, Initial::Normal(1.0)),
            parameter("hidden_bias", self.hidden, Initial::Normal(1.0)),
            parameter(
                "channel_weight",
                self.channels * self.hidden,
                Initial::Normal(1.0 / (self.hidden as f64).sqrt()),
            ),
            parameter("channel_bias", self.channels, Initial::Constant(0.1)),
        ]
    }

    fn apply<N: Number>(&self, input: &[N], parameters: &[&[N]], features: &mut [N]) {
        let scale = N::constant(self.scale());
        let mut projected = vec![N::zero(); self.projections];
        affine::apply(parameters[WEIGHT], parameters[BIAS], input, &mut projected);
        let mut hidden = vec![N::zero(); self.hidden];
        for (&u, features) in projected.iter().zip(features.chunks_exact_mut(self.channels)) {
            hidden_layer(parameters, u, &mut hidden);
            affine::apply(parameters[CHANNEL_WEIGHT], parameters[CHANNEL_BIAS], &hidden, features);
            features.iter_mut().for_each(|feature| *feature = feature.relu() * scale);
        }
    }

    fn backward<T: Real>(
        &self,
        mapped: &Mapped<'_, T>,
        input_slopes: &mut [T],
        parameter_slopes: &mut [Vec<T>],
    ) {
        let &Mapped { input, parameters, features, feature_slopes } = mapped;
        let [
            weight_slopes,
            bias_slopes,
            hidden_weight_slopes,
            hidden_bias_slopes,
            channel_weight_slopes,
            channel_bias_slopes,
        ] = parameter_slopes
        else {
            unreachable!("slopes are those of the map's parameters")
        };
        let scale = T::constant(self.scale());
        let mut projected = vec![T::zero(); self.projections];
        affine::apply(parameters[WEIGHT], parameters[BIAS], input, &mut projected);
        let mut projected_slopes = vec![T::zero(); self.projections];
        let mut hidden = vec![T::zero(); self.hidden];
        let mut hidden_slopes = vec![T::zero(); self.hidden];
        let mut channel_slopes = vec![T::zero(); self.channels];
        for (index, (&u, projected_slope)) in projected.iter().zip(&mut projected_slopes).enumerate() {
            let range = index * self.channels..(index + 1) * self.channels;
            for ((to, &feature), &slope) in
                channel_slopes.iter_mut().zip(&features[range.clone()]).zip(&feature_slopes[range])
            {
                *to = if feature > T::zero() { slope * scale } else { T::zero() };
            }
            hidden_layer(parameters, u, &mut hidden);
            hidden_slopes.fill(T::zero());
            affine::backward(
                parameters[CHANNEL_WEIGHT],
                &hidden,
                &channel_slopes,
                channel_weight_slopes,
                channel_bias_slopes,
                &mut hidden_slopes,
            );
            for unit in 0..self.hidden {
                if hidden[unit] > T::zero() {
                    let slope = hidden_slopes[unit];
                    hidden_bias_slopes[unit] += slope;
                    hidden_weight_slopes[unit] += slope * u;
                    *projected_slope += slope * parameters[HIDDEN_WEIGHT][unit];
                }
            }
        }
        affine::backward(
            parameters[WEIGHT],
            input,
            &projected_slopes,
            weight_slopes,
            bias_slopes,
            input_slopes,
        );
    }
}
