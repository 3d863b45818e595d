//! φ(x) = softmax([2u, −2u]) with u = Wx + b, which starts at u = x (key `zhang2024hedgehog`).

use super::{FeatureMap, Mapped};
use crate::kernels::affine;
use crate::mechanism::{Initial, Parameter};
use crate::number::{Number, Real};

/// Hedgehog's map of 2d features, each between 0 and 1. The factor 2 is that of public code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hedgehog {
    /// Width of queries and keys, d.
    pub width: usize,
}

impl FeatureMap for Hedgehog {
    fn input_width(&self) -> usize {
        self.width
    }

    fn feature_width(&self) -> usize {
        2 * self.width
    }

    fn parameters(&self) -> Vec<Parameter> {
        let mut identity = vec![0.0; self.width * self.width];
        identity.iter_mut().step_by(self.width + 1).for_each(|entry| *entry = 1.0);
        vec![
            Parameter::trained("map_weight", identity.len(), Initial::Values(identity)),
            Parameter::trained("map_bias", self.width, Initial::Constant(0.0)),
        ]
    }

    fn apply<N: Number>(&self, input: &[N], parameters: &[&[N]], features: &mut [N]) {
        let (positive, negative) = features.split_at_mut(self.width);
        affine::apply(parameters[0], parameters[1], input, positive);
        let two = N::constant(2.0);
        for (p, n) in positive.iter_mut().zip(negative) {
            *p *= two;
            *n = -*p;
        }
        // A shift changes nothing, so its derivative may be left out.
        let shift = N::constant(features.iter().fold(f64::NEG_INFINITY, |largest, x| largest.max(x.value())));
        let mut total = N::zero();
        for feature in features.iter_mut() {
            *feature = (*feature - shift).exp();
            total += *feature;
        }
        features.iter_mut().for_each(|feature| *feature = *feature / total);
    }

    fn backward<T: Real>(
        &self,
        mapped: &Mapped<'_, T>,
        input_slopes: &mut [T],
        parameter_slopes: &mut [Vec<T>],
    ) {
        let &Mapped { input, parameters, features, feature_slopes } = mapped;
        let mean = features.iter().zip(feature_slopes).fold(T::zero(), |sum, (&f, &slope)| sum + f * slope);
        let slope = |index: usize| features[index] * (feature_slopes[index] - mean);
        let slopes: Vec<T> =
            (0..self.width).map(|a| T::constant(2.0) * (slope(a) - slope(a + self.width))).collect();
        let [weight_slopes, bias_slopes] = parameter_slopes else {
            unreachable!("slopes are those of the map's parameters")
        };
        affine::backward(parameters[0], input, &slopes, weight_slopes, bias_slopes, input_slopes);
    }
}
