//! Feature maps φ: a kernel φ(q)·φ(k) in the place of softmax's exp(q·k/√d), one file per map.
//!
//! One map, with one set of parameters, serves queries and keys. The released code of Hedgehog trains one for each; sharing
//! it is our choice, so that every map fits the same mechanism.

mod elu;
mod hedgehog;
mod identity;
mod luna;
mod performer;
mod relu;
mod t2r;
mod taylor;

pub use elu::Elu;
pub use hedgehog::Hedgehog;
pub use identity::Identity;
pub use luna::LunaMap;
pub use performer::Performer;
pub use relu::Relu;
pub use t2r::T2r;
pub use taylor::Taylor;

use crate::mechanism::Parameter;
use crate::number::{Number, Real};
use std::fmt::Debug;

/// What a map made of one vector, as its backward pass sees it.
#[derive(Debug, Clone, Copy)]
pub struct Mapped<'a, T> {
    /// The vector x.
    pub input: &'a [T],
    /// What the map read besides it.
    pub parameters: &'a [&'a [T]],
    /// φ(x).
    pub features: &'a [T],
    /// Derivatives of the loss in φ(x).
    pub feature_slopes: &'a [T],
}

/// A map from vectors of one width to features, with its derivative.
pub trait FeatureMap: Debug + Clone + Send + Sync + 'static {
    /// Width of queries and keys.
    fn input_width(&self) -> usize;

    /// How many features; as many as entries unless stated.
    fn feature_width(&self) -> usize {
        self.input_width()
    }

    /// What the map reads besides the vector.
    fn parameters(&self) -> Vec<Parameter> {
        Vec::new()
    }

    /// Writes φ(x).
    fn apply<N: Number>(&self, input: &[N], parameters: &[&[N]], features: &mut [N]);

    /// Adds the derivatives in x and in the parameters, given those in φ(x).
    fn backward<T: Real>(
        &self,
        mapped: &Mapped<'_, T>,
        input_slopes: &mut [T],
        parameter_slopes: &mut [Vec<T>],
    );

    /// φ of every row.
    fn apply_rows<N: Number>(&self, rows: &[N], parameters: &[&[N]]) -> Vec<N> {
        let (width, count) = (self.input_width(), self.feature_width());
        let mut features = vec![N::zero(); rows.len() / width * count];
        for (input, features) in rows.chunks_exact(width).zip(features.chunks_exact_mut(count)) {
            self.apply(input, parameters, features);
        }
        features
    }

    /// [`FeatureMap::backward`] of every row.
    fn backward_rows<T: Real>(
        &self,
        rows: &[T],
        parameters: &[&[T]],
        features: &[T],
        feature_slopes: &[T],
        row_slopes: &mut [T],
        parameter_slopes: &mut [Vec<T>],
    ) {
        let (width, count) = (self.input_width(), self.feature_width());
        for (((input, features), feature_slopes), input_slopes) in rows
            .chunks_exact(width)
            .zip(features.chunks_exact(count))
            .zip(feature_slopes.chunks_exact(count))
            .zip(row_slopes.chunks_exact_mut(width))
        {
            let mapped = Mapped { input, parameters, features, feature_slopes };
            self.backward(&mapped, input_slopes, parameter_slopes);
        }
    }
}

/// d^{−1/4}, the factor on queries and keys that makes their product the score q·k/√d of softmax.
fn root_scale(width: usize) -> f64 {
    (width as f64).powf(-0.25)
}
