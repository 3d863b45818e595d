//! φ(x)_i = exp(ω_i·y − |y|²/2)/√m with y = d^{−1/4} x and ω_i ~ N(0, I): E φ(q)·φ(k) = exp(q·k/√d) (key `choromanski2020`).

use super::{FeatureMap, Mapped, root_scale};
use crate::kernels::affine;
use crate::mechanism::{Initial, Parameter};
use crate::number::{Number, Real};
use esscher_core::numerics::Stream;

/// Positive random features, independent rather than orthogonal.
///
/// The projections are drawn from the seed, the same for all heads, and are a parameter that is not trained, so that
/// checkpoints hold them. The papers that print ω ~ N(0, I) with the exponent (2ω·x − |x|²)/(2√d) need ω ~ N(0, √d I) there;
/// scaling x instead is the same. There is no stabilising maximum, which
/// would not be causal: a feature is at most e^{|ω|²/2}, and long vectors have features that vanish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Performer {
    /// Width of queries and keys.
    pub width: usize,
    /// How many features, m.
    pub features: usize,
    /// Where the projections are drawn from.
    pub seed: u64,
}

impl FeatureMap for Performer {
    fn input_width(&self) -> usize {
        self.width
    }

    fn feature_width(&self) -> usize {
        self.features
    }

    fn parameters(&self) -> Vec<Parameter> {
        let mut projections = vec![0.0; self.features * self.width];
        Stream::new(self.seed, 0, 0).fill_normals(&mut projections);
        vec![Parameter {
            name: "projections",
            size: projections.len(),
            shared: true,
            initial: Initial::Values(projections),
            trained: false,
        }]
    }

    fn apply<N: Number>(&self, input: &[N], parameters: &[&[N]], features: &mut [N]) {
        let scale = N::constant(root_scale(self.width));
        let half_square = input.iter().fold(N::zero(), |sum, &x| sum + x * x)
            * N::constant(0.5 * root_scale(self.width).powi(2));
        let share = N::constant(1.0 / (self.features as f64).sqrt());
        features.fill(N::zero());
        affine::add_linear(parameters[0], input, features);
        for feature in features {
            *feature = (*feature * scale - half_square).exp() * share;
        }
    }

    fn backward<T: Real>(
        &self,
        mapped: &Mapped<'_, T>,
        input_slopes: &mut [T],
        parameter_slopes: &mut [Vec<T>],
    ) {
        let &Mapped { input, parameters, features, feature_slopes } = mapped;
        let scale = T::constant(root_scale(self.width));
        let product_slopes: Vec<T> =
            features.iter().zip(feature_slopes).map(|(&feature, &slope)| feature * slope * scale).collect();
        let total = product_slopes.iter().fold(T::zero(), |sum, &slope| sum + slope);
        affine::linear_backward(
            parameters[0],
            input,
            &product_slopes,
            &mut parameter_slopes[0],
            input_slopes,
        );
        // |y|²/2 = d^{−1/2} |x|²/2.
        let square_slope = total * scale;
        input_slopes.iter_mut().zip(input).for_each(|(to, &x)| *to -= square_slope * x);
    }
}
