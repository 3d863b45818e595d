//! φ(x) = ReLU(Wx + b) with trained W and b (key `kasai2021`).

use super::{FeatureMap, Mapped};
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
            Parameter::trained(
                "map_weight",
                self.features * self.width,
                Initial::Normal(1.0 / (self.width as f64).sqrt()),
            ),
            Parameter::trained("map_bias", self.features, Initial::Constant(0.0)),
        ]
    }

    fn apply<N: Number>(&self, input: &[N], parameters: &[&[N]], features: &mut [N]) {
        affine::apply(parameters[0], parameters[1], input, features);
        features.iter_mut().for_each(|feature| *feature = feature.relu());
    }

    fn backward<T: Real>(
        &self,
        mapped: &Mapped<'_, T>,
        input_slopes: &mut [T],
        parameter_slopes: &mut [Vec<T>],
    ) {
        let &Mapped { input, parameters, features, feature_slopes } = mapped;
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
