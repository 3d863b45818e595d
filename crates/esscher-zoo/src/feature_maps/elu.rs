//! φ(x) = elu(x) + 1 entry by entry: x + 1 above zero, eˣ below (key `katharopoulos2020`).

use super::{FeatureMap, Mapped};
use crate::number::{Number, Real};

/// elu + 1, the positive map of the first linear attention; it has no scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Elu {
    /// Width of queries and keys.
    pub width: usize,
}

impl FeatureMap for Elu {
    fn input_width(&self) -> usize {
        self.width
    }

    fn apply<N: Number>(&self, input: &[N], _parameters: &[&[N]], features: &mut [N]) {
        for (feature, &x) in features.iter_mut().zip(input) {
            *feature = if x.value() > 0.0 { x + N::one() } else { x.exp() };
        }
    }

    fn backward<T: Real>(
        &self,
        mapped: &Mapped<'_, T>,
        input_slopes: &mut [T],
        _parameter_slopes: &mut [Vec<T>],
    ) {
        let &Mapped { input, features, feature_slopes, .. } = mapped;
        for (((to, &x), &feature), &slope) in
            input_slopes.iter_mut().zip(input).zip(features).zip(feature_slopes)
        {
            *to += if x > T::zero() { slope } else { slope * feature };
        }
    }
}
