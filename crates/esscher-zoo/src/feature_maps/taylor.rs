//! φ(x)_α = (d^{−1/4} x)^α / √α! for |α| ≤ p, so that φ(q)·φ(k) = Σ_{r≤p} (q·k/√d)^r / r!.

use super::{FeatureMap, Mapped, root_scale};
use crate::number::{Number, Real};
use std::fmt;

/// The exponential cut off at an order p, in symmetric features: every monomial once, C(d + p, p) of them (the full tensors
/// would have Σ_{r≤p} d^r). Even orders give a positive kernel, odd ones may give a negative one.
#[derive(Clone, PartialEq)]
pub struct Taylor {
    width: usize,
    order: usize,
    /// Every monomial but the first, 1, is an earlier one times a variable.
    monomials: Vec<Monomial>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Monomial {
    /// The earlier monomial.
    parent: usize,
    /// The variable.
    variable: usize,
    /// 1/√(its exponent in the new monomial), which multiplies up to 1/√α!.
    factor: f64,
}

impl fmt::Debug for Taylor {
    /// Without the monomials, which follow from width and order.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Taylor { width, order, .. } = self;
        formatter.debug_struct("Taylor").field("width", width).field("order", order).finish_non_exhaustive()
    }
}

impl Taylor {
    /// The map for vectors of this width up to this order.
    pub fn new(width: usize, order: usize) -> Self {
        let mut monomials: Vec<Monomial> = Vec::new();
        // The monomials of the last order, by index, last variable and its exponent.
        let mut last = vec![(0, 0, 0)];
        for _ in 0..order {
            let mut next = Vec::new();
            for &(parent, from, exponent) in &last {
                for variable in from..width {
                    let exponent = if variable == from { exponent + 1 } else { 1 };
                    monomials.push(Monomial { parent, variable, factor: 1.0 / f64::from(exponent).sqrt() });
                    next.push((monomials.len(), variable, exponent));
                }
            }
            last = next;
        }
        Taylor { width, order, monomials }
    }

    /// The order p.
    pub fn order(&self) -> usize {
        self.order
    }
}

impl FeatureMap for Taylor {
    fn input_width(&self) -> usize {
        self.width
    }

    fn feature_width(&self) -> usize {
        self.monomials.len() + 1
    }

    fn apply<N: Number>(&self, input: &[N], _parameters: &[&[N]], features: &mut [N]) {
        let scale = root_scale(self.width);
        features[0] = N::one();
        for (index, monomial) in self.monomials.iter().enumerate() {
            let factor = N::constant(scale * monomial.factor);
            features[index + 1] = features[monomial.parent] * input[monomial.variable] * factor;
        }
    }

    fn backward<T: Real>(
        &self,
        mapped: &Mapped<'_, T>,
        input_slopes: &mut [T],
        _parameter_slopes: &mut [Vec<T>],
    ) {
        let &Mapped { input, features, feature_slopes, .. } = mapped;
        let scale = root_scale(self.width);
        let mut slopes = feature_slopes.to_vec();
        for (index, monomial) in self.monomials.iter().enumerate().rev() {
            let slope = slopes[index + 1] * T::constant(scale * monomial.factor);
            slopes[monomial.parent] += slope * input[monomial.variable];
            input_slopes[monomial.variable] += slope * features[monomial.parent];
        }
    }
}
