//! φ(x) = d^{−1/4} x, so that φ(q)·φ(k) = q·k/√d, the score of softmax itself.

use super::{FeatureMap, Mapped, root_scale};
use crate::number::{Number, Real};

/// No map but the scale of softmax's score, which is our choice; with [`Normaliser::Count`](crate::linear_attention::Normaliser)
/// it is the linear attention (1/t) Σ (q·k/√d) v. Its features have any sign: do not divide by their sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// Width of queries and keys.
    pub width: usize,
}

impl FeatureMap for Identity {
    fn input_width(&self) -> usize {
        self.width
    }

    fn apply<N: Number>(&self, input: &[N], _parameters: &[&[N]], features: &mut [N]) {
        let scale = N::constant(root_scale(self.width));
        for (feature, &x) in features.iter_mut().zip(input) {
            *feature = scale * x;
        }
    }

    fn backward<T: Real>(
        &self,
        mapped: &Mapped<'_, T>,
        input_slopes: &mut [T],
        _parameter_slopes: &mut [Vec<T>],
    ) {
        let &Mapped { feature_slopes, .. } = mapped;
        let scale = T::constant(root_scale(self.width));
        for (to, &slope) in input_slopes.iter_mut().zip(feature_slopes) {
            *to += scale * slope;
        }
    }
}
