//! Gaussian tokens N(m, G): the geometry of a query meets the scalar moments of softmax weights.
//!
//! Write a token as its part along the score direction e = G^{1/2}θ/τ and an independent rest. The output is
//! then V m + (VG^{1/2}e) G_L + noise with covariance S₂ V(G − G^{1/2}eeᵀG^{1/2})Vᵀ, and the softmax
//! covariance in whitened coordinates is [[A, bᵀ], [b, C]] with few non-zero second moments.

use super::scale::Scale;
use super::{Deviation, PromptLength};
use crate::attention::{Attention, Softmax};
use crate::error::Result;
use crate::measure::Gaussian;
use crate::numerics::linalg;
use crate::quantity::PerQuantity;
use crate::softmax_weights::{RELATIVE_TOLERANCE, WeightMoments};
use faer::Mat;

/// Everything about the head and the token law that no query changes, on the scale of tokens and outputs of size one.
#[derive(Debug, Clone)]
pub(super) struct GaussianTokens {
    scale: Scale,
    /// R.
    root: Mat<f64>,
    /// V R for the root R of G = R Rᵀ.
    value_root: Mat<f64>,
    /// V G R.
    value_covariance_root: Mat<f64>,
    /// V G Vᵀ.
    output_covariance: Mat<f64>,
    /// tr G.
    token_variance: f64,
    /// tr V G Vᵀ.
    output_variance: f64,
    /// tr V G² Vᵀ.
    squared_output_variance: f64,
    output_dimension: usize,
}

/// What the errors know of a query: τ and the parts of the traces along the score direction e.
///
/// P = G^{1/2}VᵀVG^{1/2} and Q = G are the two metrics of the gradient error; in an eigenbasis that starts
/// with e, the subscript r marks the remaining block.
#[derive(Debug, Clone)]
pub(super) struct QueryGeometry {
    /// τ = (θᵀGθ)^{1/2}, the standard deviation of the scores.
    pub(super) score_deviation: f64,
    /// |z|².
    pub(super) query_norm: f64,
    /// P₁₁ = eᵀPe.
    output_along: f64,
    /// tr P_r.
    output_across: f64,
    /// Q₁₁ = eᵀQe.
    token_along: f64,
    /// tr Q_r.
    token_across: f64,
    /// Σ_{i≥2} P₁ᵢQ₁ᵢ.
    mixed: f64,
    /// tr P_r Q_r.
    product_across: f64,
    /// V G^{1/2} e.
    output_direction: Vec<f64>,
}

impl GaussianTokens {
    pub(super) fn new(head: &Softmax, gaussian: &Gaussian) -> Self {
        let token = linalg::matrix_exponent(gaussian.root());
        let root = linalg::matrix_times_power_of_two(gaussian.root(), -token);
        let covariance = linalg::matrix_times_power_of_two(gaussian.covariance_matrix(), -2 * token);
        let entries = linalg::matrix_exponent(head.value());
        let value = linalg::matrix_times_power_of_two(head.value(), -entries);
        // Where V drops the widest directions of the tokens, outputs are smaller than tokens times values.
        let outputs = &value * &root;
        let output = linalg::matrix_exponent(outputs.as_ref());
        let on_scale = |matrix: Mat<f64>| linalg::matrix_times_power_of_two(matrix.as_ref(), -output);
        let value_root = on_scale(outputs);
        let output_covariance = &value_root * value_root.transpose();
        let value_covariance_root = on_scale(&value * (&covariance * &root));
        let value_covariance = on_scale(&value * &covariance);
        GaussianTokens {
            scale: Scale { token, value: entries + output, query: 0 },
            token_variance: linalg::trace(covariance.as_ref()),
            output_variance: linalg::trace(output_covariance.as_ref()),
            squared_output_variance: linalg::squared_frobenius(value_covariance.as_ref()),
            output_dimension: head.output_dimension(),
            root,
            value_root,
            value_covariance_root,
            output_covariance,
        }
    }

    pub(super) fn scale(&self) -> Scale {
        self.scale
    }

    pub(super) fn output_dimension(&self) -> usize {
        self.output_dimension
    }

    /// The geometry of a query with tilt θ and |z|² on its scale.
    pub(super) fn geometry(&self, tilt: &[f64], query_norm: f64) -> QueryGeometry {
        let whitened =
            linalg::apply_transpose(self.root.as_ref(), &linalg::times_power_of_two(tilt, self.scale.token));
        let score_deviation = linalg::norm(&whitened);
        // Scores beyond the doubles are refused as such, also where ∞ has met a zero.
        let score_deviation = if score_deviation.is_nan() { f64::INFINITY } else { score_deviation };
        // At τ = 0 the weights are uniform, no direction is special, and "across" is all of space.
        let unit: Vec<f64> = whitened
            .iter()
            .map(|entry| if score_deviation > 0.0 { entry / score_deviation } else { 0.0 })
            .collect();
        let output_direction = linalg::apply(self.value_root.as_ref(), &unit);
        let output_along = linalg::squared_norm(&output_direction);
        let token_along = linalg::squared_norm(&linalg::apply(self.root.as_ref(), &unit));
        let bent = linalg::apply(self.value_covariance_root.as_ref(), &unit);
        let product_along = linalg::dot(&output_direction, &bent);
        QueryGeometry {
            score_deviation,
            query_norm,
            output_along,
            output_across: (self.output_variance - output_along).max(0.0),
            token_along,
            token_across: (self.token_variance - token_along).max(0.0),
            mixed: product_along - output_along * token_along,
            product_across: (self.squared_output_variance - 2.0 * product_along + output_along * token_along)
                .max(0.0),
            output_direction,
        }
    }

    pub(super) fn deviations(
        &self,
        tilt: &[f64],
        query_norm: f64,
        lengths: &[PromptLength],
    ) -> Result<Vec<Deviation>> {
        let geometry = self.geometry(tilt, query_norm);
        let moments = WeightMoments::at(geometry.score_deviation, lengths)?;
        Ok(lengths
            .iter()
            .zip(&moments)
            .map(|(&length, moments)| self.deviation(&geometry, length, moments))
            .collect())
    }

    fn deviation(
        &self,
        geometry: &QueryGeometry,
        length: PromptLength,
        moments: &WeightMoments,
    ) -> Deviation {
        let tau = geometry.score_deviation;
        let participation = moments.sum_of_squares;
        let mut covariance = faer::Scale(participation) * &self.output_covariance;
        let direction = &geometry.output_direction;
        linalg::add_outer(&mut covariance, moments.mean_variance - participation, direction, direction);
        let errors = ErrorWeights::of(geometry, self.output_dimension).errors(moments);
        Deviation {
            length,
            bias: direction.iter().map(|entry| -participation * tau * entry).collect(),
            covariance,
            errors: errors.of,
            participation,
            tolerance: RELATIVE_TOLERANCE,
        }
    }
}

impl QueryGeometry {
    /// The geometry of r · z for the geometry of z: only τ and |z|² change.
    pub(super) fn at_radius(&self, radius: f64) -> Self {
        QueryGeometry {
            score_deviation: radius * self.score_deviation,
            query_norm: radius * radius * self.query_norm,
            ..self.clone()
        }
    }
}

/// The three errors and the participation, averaged or at one query.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Errors {
    pub(super) of: PerQuantity<f64>,
    pub(super) participation: f64,
}

impl Errors {
    /// The errors of one query, weighted.
    pub(super) fn weighted(deviation: &Deviation, share: f64) -> Self {
        Errors {
            of: deviation.errors.map(|error| share * error),
            participation: share * deviation.participation,
        }
    }

    pub(super) fn parts(&self) -> [f64; 4] {
        [self.of.output, self.of.score_gradient, self.of.value_gradient, self.participation]
    }

    /// Number by number.
    fn with(&self, other: &Errors, combine: impl Fn(f64, f64) -> f64) -> Self {
        Errors {
            of: PerQuantity::from_fn(|quantity| combine(self.of[quantity], other.of[quantity])),
            participation: combine(self.participation, other.participation),
        }
    }

    /// Half of self plus what the new nodes of a halved step add.
    pub(super) fn refined_by(&self, added: &Errors) -> Self {
        self.with(added, |coarse, added| 0.5 * coarse + added)
    }

    /// The largest relative distance of a number from its coarser self.
    pub(super) fn relative_change(&self, coarser: &Errors) -> f64 {
        let changes = self.parts().into_iter().zip(coarser.parts());
        changes
            .map(|(a, b)| if a == b { 0.0 } else { (a - b).abs() / a.abs().max(b.abs()) })
            .fold(0.0, f64::max)
    }
}

/// The errors as a linear functional of the weight moments: averages over queries average these weights.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ErrorWeights([f64; ErrorWeights::COUNT]);

impl ErrorWeights {
    pub(super) const COUNT: usize = 10;

    pub(super) fn of(geometry: &QueryGeometry, output_dimension: usize) -> Self {
        let QueryGeometry { output_along: p, output_across: p_r, token_along: q, token_across: q_r, .. } =
            *geometry;
        let QueryGeometry { mixed, product_across, query_norm, .. } = *geometry;
        let rows = output_dimension as f64;
        ErrorWeights([
            // Output: E(G_L − τ)², E S₂.
            p,
            p_r,
            // Gradient in V, the same with V = I, once per row.
            rows * q,
            rows * q_r,
            // Gradient in U: E(A−1)², E S₂ − E A S₂, cross, E S₂², frob.
            query_norm * p * q,
            query_norm * 2.0 * mixed,
            query_norm * (2.0 * mixed + p * q_r + p_r * q),
            query_norm * product_across,
            query_norm * (product_across + p_r * q_r),
            // Participation: E S₂.
            1.0,
        ])
    }

    /// self += coefficient · other.
    pub(super) fn add(&mut self, coefficient: f64, other: &ErrorWeights) {
        for (total, value) in self.0.iter_mut().zip(&other.0) {
            *total += coefficient * value;
        }
    }

    pub(super) fn errors(&self, moments: &WeightMoments) -> Errors {
        let w = &self.0;
        let squares = moments.sum_of_squares;
        let of = PerQuantity {
            output: w[0] * moments.mean_squared_error + w[1] * squares,
            value_gradient: w[2] * moments.mean_squared_error + w[3] * squares,
            score_gradient: w[4] * moments.variance_squared_error
                + w[5] * (squares - moments.variance_times_squares)
                + w[6] * moments.cross
                + w[7] * moments.squared_sum_of_squares
                + w[8] * moments.frobenius,
        };
        Errors { of, participation: w[9] * squares }
    }
}

impl std::ops::AddAssign for Errors {
    fn add_assign(&mut self, other: Self) {
        *self = self.with(&other, |sum, term| sum + term);
    }
}
