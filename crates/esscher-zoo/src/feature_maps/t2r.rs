//! φ(x) = ReLU(Wx + b) with trained W and b (key `kasai2021`).

use super::FeatureMap;
use crate::kernels::affine;
use crate::mechanism::{Initial, Parameter};
use crate::number::{Number, Real};

/// The map of T2R. How W starts is our choice: normals of deviation 1/√d.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct T2r {
    /// Width of queries and keys, d.
    pub width: usize,
    /// How many features.
    pub features: usize,
}

impl FeatureMap for T2r {
    fn input_width(&self) -> usize {
        self.width
    }

    fn feature_width(&self) -> usize {
        self.features
    }

    fn parameters(&self) -> Vec<Parameter> {
        vec![
            Parameter {
                name: "map_weight",
                size: self.features * self.width,
                shared: false,
                initial: Initial::Normal(1.0 / (self.width as f64).sqrt()),
                trained: true,
            },
            Parameter {
                name: "map_bias",
                size: self.features,
                shared: false,
                initial: Initial::Constant(0.0),
                trained: true,
            },
        ]
    }

    fn apply<N: Number>(&self, input: &[N], parameters: &[&[N]], features: &mut [N]) {
        affine::apply(parameters[0], parameters[1], input, features);
        features.iter_mut().for_each(|feature| *feature = feature.relu());
    }

    fn backward<T: Real>(
        &self,
        input: &[T],
        parameters: &[&[T]],
        features: &[T],
        feature_slopes: &[T],
        input_slopes: &mut [T],
        parameter_slopes: &mut [Vec<T>],
    ) {
        let slopes: Vec<T> = features
            .iter()
            .zip(feature_slopes)
            .map(|(&feature, &slope)| if feature > T::zero() { slope } else { T::zero() })
            .collect();
        let [weight_slopes, bias_slopes] = parameter_slopes else {
            unreachable!("slopes are those of the map's parameters")
        };
        affine::backward(parameters[0], input, &slopes, weight_slopes, bias_slopes, input_slopes);
    }
}
