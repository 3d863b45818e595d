//! φ(x) = max(x, 0) entry by entry.

use super::{FeatureMap, Mapped};
use crate::number::{Number, Real};

/// ReLU; it has no scale, which a normaliser would cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Relu {
    /// Width of queries and keys.
    pub width: usize,
}

impl FeatureMap for Relu {
    fn input_width(&self) -> usize {
        self.width
    }

    fn apply<N: Number>(&self, input: &[N], _parameters: &[&[N]], features: &mut [N]) {
        for (feature, &x) in features.iter_mut().zip(input) {
            *feature = x.relu();
        }
    }

    fn backward<T: Real>(
        &self,
        mapped: &Mapped<'_, T>,
        input_slopes: &mut [T],
        _parameter_slopes: &mut [Vec<T>],
    ) {
        let &Mapped { features, feature_slopes, .. } = mapped;
        for ((to, &feature), &slope) in input_slopes.iter_mut().zip(features).zip(feature_slopes) {
            *to += if feature > T::zero() { slope } else { T::zero() };
        }
    }
}
