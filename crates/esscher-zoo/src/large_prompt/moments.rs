//! Moments of feature maps under Gaussian tokens, by Stein's lemma: E[f(k) vᵀ] = E f(k) E vᵀ + E[∇f(k)]ᵀ Cov(k, v).
//!
//! The weight that linear attention gives a key is a sum of *ridges*, κ(q, k) = Σ_i c_i f_i(⟨w_i, k⟩ + b_i), for every elementwise map, for
//! learnt maps σ(Wk + b), and for polynomials of the score. A ridge of a Gaussian key is a function of one normal variable, so E κ and
//! E κv need E f and E f′ only. Mixtures of Gaussians (atoms included) are summed over their components.

use super::Setting;
use crate::error::{Error, Result};
use esscher_core::numerics::{linalg, normal};
use faer::Mat;

/// A scalar function whose mean and mean slope under a normal variable are known in closed form.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Activation {
    /// x.
    Identity,
    /// max(x, 0).
    Relu,
    /// x for x > 0 and slope · x below.
    LeakyRelu(
        /// The slope below zero.
        f64,
    ),
    /// elu(x) + 1: x + 1 for x > 0 and eˣ below.
    EluPlusOne,
    /// e^{rate · x}.
    Exponential(
        /// The rate.
        f64,
    ),
    /// Σ_{n ≤ order} xⁿ/n!, the beginning of eˣ.
    Taylor(
        /// The highest power.
        usize,
    ),
}

impl Activation {
    /// f(x).
    pub fn value(self, x: f64) -> f64 {
        match self {
            Activation::Identity => x,
            Activation::Relu => x.max(0.0),
            Activation::LeakyRelu(slope) => {
                if x > 0.0 {
                    x
                } else {
                    slope * x
                }
            }
            Activation::EluPlusOne => {
                if x > 0.0 {
                    x + 1.0
                } else {
                    x.exp()
                }
            }
            Activation::Exponential(rate) => (rate * x).exp(),
            Activation::Taylor(order) => {
                (1..=order).rev().fold(1.0, |sum, power| 1.0 + sum * x / power as f64)
            }
        }
    }

    /// (E f(z), E f′(z)) for z ~ N(mean, deviation²); a deviation of zero is an atom.
    pub fn under_normal(self, mean: f64, deviation: f64) -> (f64, f64) {
        let standard = if deviation > 0.0 { mean / deviation } else { f64::INFINITY.copysign(mean) };
        // P(z > 0) and E max(z, 0); an atom at zero counts as not positive, as `value` does.
        let (positive, above) = if deviation > 0.0 {
            let positive = normal::distribution(standard);
            (positive, mean * positive + deviation * normal::density(standard))
        } else if mean > 0.0 {
            (1.0, mean)
        } else {
            (0.0, 0.0)
        };
        let variance = deviation * deviation;
        match self {
            Activation::Identity => (mean, 1.0),
            Activation::Relu => (above, positive),
            Activation::LeakyRelu(slope) => {
                (slope * mean + (1.0 - slope) * above, slope + (1.0 - slope) * positive)
            }
            Activation::EluPlusOne => {
                // E[e^z; z ≤ 0]: the normal tilted by one has mean shifted by its variance.
                let below = if deviation > 0.0 {
                    exponential_below_zero(mean, deviation)
                } else if mean > 0.0 {
                    0.0
                } else {
                    mean.exp()
                };
                (above + positive + below, positive + below)
            }
            Activation::Exponential(rate) => {
                let value = (rate * mean + 0.5 * rate * rate * variance).exp();
                (value, rate * value)
            }
            Activation::Taylor(order) => {
                // m_n = E zⁿ/n! obeys n m_n = mean m_{n−1} + variance m_{n−2}; the slope of the sum is the sum without its last term.
                let (mut before, mut last, mut sum, mut slope) = (0.0, 1.0, 1.0, 0.0);
                for power in 1..=order {
                    let next = (mean * last + variance * before) / power as f64;
                    slope += last;
                    (before, last) = (last, next);
                    sum += next;
                }
                (sum, slope)
            }
        }
    }
}

/// E[e^z; z ≤ 0] = e^{m + s²/2} Φ(−m/s − s), without overflow of the first factor.
fn exponential_below_zero(mean: f64, deviation: f64) -> f64 {
    let edge = mean / deviation + deviation;
    if edge < 25.0 {
        (mean + 0.5 * deviation * deviation).exp() * normal::distribution(-edge)
    } else {
        // Φ(−x) = φ(x)/x · (1 − 1/x² + 3/x⁴ − …), and the exponents cancel to the density at m/s.
        let inverse = 1.0 / (edge * edge);
        let series = 1.0 - inverse * (1.0 - 3.0 * inverse * (1.0 - 5.0 * inverse * (1.0 - 7.0 * inverse)));
        normal::density(mean / deviation) / edge * series
    }
}

/// Keys and values of one Gaussian component of the token law.
#[derive(Debug, Clone)]
pub struct TokenMoments {
    /// The weight of the component.
    pub weight: f64,
    /// E k.
    pub key_mean: Vec<f64>,
    /// Cov(k, k).
    pub key_covariance: Mat<f64>,
    /// E v.
    pub value_mean: Vec<f64>,
    /// Cov(k, v), d_k × d_v.
    pub cross_covariance: Mat<f64>,
}

impl TokenMoments {
    /// The components of a setting whose tokens are a mixture of Gaussians and whose keys and values are projections; none otherwise.
    pub fn of(setting: &Setting) -> Option<Vec<TokenMoments>> {
        let (key, value) = (setting.projection("key")?, setting.projection("value")?);
        let components = setting.tokens.as_gaussian_mixture()?;
        let moments = components.iter().map(|component| {
            let (mean, covariance) =
                (component.gaussian.mean_vector(), component.gaussian.covariance_matrix());
            TokenMoments {
                weight: component.weight(),
                key_mean: linalg::apply(key, mean),
                key_covariance: key * covariance * key.transpose(),
                value_mean: linalg::apply(value, mean),
                cross_covariance: key * covariance * value.transpose(),
            }
        });
        Some(moments.collect())
    }

    /// E v, E kvᵀ and Cov(k, v) of any token law, by its mean and covariance.
    ///
    /// # Errors
    /// Keys or values that are not projections of the token, or what the law refuses.
    pub fn second_moments(setting: &Setting) -> Result<SecondMoments> {
        let projection = |port: &'static str| {
            setting.projection(port).ok_or_else(|| Error::Missing {
                mechanism: format!("the port {port}"),
                what: "second moment in closed form",
                reason: "it is not a projection of the token",
            })
        };
        let (key, value) = (projection("key")?, projection("value")?);
        let (mean, covariance) = (setting.tokens.mean()?, setting.tokens.covariance()?);
        let cross_covariance = key * covariance.as_ref() * value.transpose();
        let (key_mean, value_mean) = (linalg::apply(key, &mean), linalg::apply(value, &mean));
        let mut key_value = cross_covariance.clone();
        linalg::add_outer(&mut key_value, 1.0, &key_mean, &value_mean);
        let mut key_key = key * covariance.as_ref() * key.transpose();
        linalg::add_outer(&mut key_key, 1.0, &key_mean, &key_mean);
        Ok(SecondMoments { key_mean, value_mean, cross_covariance, key_value, key_key })
    }
}

/// First and second moments of keys and values.
#[derive(Debug, Clone)]
pub struct SecondMoments {
    /// E k.
    pub key_mean: Vec<f64>,
    /// E v.
    pub value_mean: Vec<f64>,
    /// Cov(k, v).
    pub cross_covariance: Mat<f64>,
    /// E kvᵀ.
    pub key_value: Mat<f64>,
    /// E kkᵀ.
    pub key_key: Mat<f64>,
}

/// c f(⟨w, k⟩ + b).
#[derive(Debug, Clone)]
pub struct Ridge {
    /// c.
    pub coefficient: f64,
    /// w.
    pub direction: Vec<f64>,
    /// b.
    pub offset: f64,
    /// f.
    pub activation: Activation,
}

impl Ridge {
    /// Σ_a φ(q_a) φ(k_a): the ridges of an elementwise map, φ = f.
    pub fn elementwise(query: &[f64], activation: Activation) -> Vec<Ridge> {
        (0..query.len())
            .map(|channel| Ridge {
                coefficient: activation.value(query[channel]),
                direction: (0..query.len()).map(|other| f64::from(u8::from(other == channel))).collect(),
                offset: 0.0,
                activation,
            })
            .collect()
    }

    /// f(scale ⟨q, k⟩): the ridge of a function of the score.
    pub fn of_score(query: &[f64], scale: f64, activation: Activation) -> Vec<Ridge> {
        let direction = query.iter().map(|entry| scale * entry).collect();
        vec![Ridge { coefficient: 1.0, direction, offset: 0.0, activation }]
    }
}

/// E κ, E κv and E v.
#[derive(Debug, Clone, PartialEq)]
pub struct FeatureMoments {
    /// E κ(q, k).
    pub weight: f64,
    /// E κ(q, k) v.
    pub weighted_value: Vec<f64>,
    /// E v.
    pub value: Vec<f64>,
}

impl FeatureMoments {
    fn zero(width: usize) -> Self {
        FeatureMoments { weight: 0.0, weighted_value: vec![0.0; width], value: vec![0.0; width] }
    }

    /// Adds what one component contributes: a weight E κ and its gradient in the mean of the key.
    fn add(&mut self, component: &TokenMoments, weight: f64, gradient: &[f64]) {
        let share = component.weight;
        self.weight += share * weight;
        linalg::add_scaled(&mut self.weighted_value, share * weight, &component.value_mean);
        let slope = linalg::apply_transpose(component.cross_covariance.as_ref(), gradient);
        linalg::add_scaled(&mut self.weighted_value, share, &slope);
        linalg::add_scaled(&mut self.value, share, &component.value_mean);
    }

    /// E κv / E κ, the limit of normalised linear attention.
    ///
    /// # Errors
    /// Where E κ vanishes, the attention has no limit.
    pub fn ratio(&self) -> Result<Vec<f64>> {
        if self.weight == 0.0 {
            return Err(Error::Missing {
                mechanism: "normalised linear attention".to_string(),
                what: "limit",
                reason: "the mean weight of a token vanishes at this query",
            });
        }
        Ok(self.weighted_value.iter().map(|entry| entry / self.weight).collect())
    }

    /// E v + scale (E κv − E κ E v), the limit of InLine attention.
    pub fn centred(&self, scale: f64) -> Vec<f64> {
        let covariance = |(weighted, mean): (&f64, &f64)| weighted - self.weight * mean;
        self.weighted_value.iter().zip(&self.value).map(|pair| pair.1 + scale * covariance(pair)).collect()
    }
}

/// E κ and E κv of a sum of ridges.
///
/// ```
/// use esscher_core::{mat, measure::Gaussian};
/// use esscher_zoo::large_prompt::{Activation, Ridge, Setting, TokenMoments, feature_moments};
/// use std::sync::Arc;
/// let setting = Setting::identity(Arc::new(Gaussian::centred(mat![[2.0]].as_ref())?), &[0.5]);
/// let components = TokenMoments::of(&setting).unwrap_or_default();
/// // With e^{qk} as weight the ratio is softmax's limit, Σq.
/// let moments = feature_moments(&components, &Ridge::of_score(&[0.5], 1.0, Activation::Exponential(1.0)));
/// assert!((moments.ratio()?[0] - 1.0).abs() < 1e-12);
/// # Ok::<(), esscher_zoo::Error>(())
/// ```
pub fn feature_moments(components: &[TokenMoments], ridges: &[Ridge]) -> FeatureMoments {
    let width = components.first().map_or(0, |component| component.value_mean.len());
    let mut moments = FeatureMoments::zero(width);
    for component in components {
        let mut weight = 0.0;
        let mut gradient = vec![0.0; component.key_mean.len()];
        for ridge in ridges {
            let spread = linalg::apply(component.key_covariance.as_ref(), &ridge.direction);
            let variance = linalg::dot(&ridge.direction, &spread).max(0.0);
            let mean = linalg::dot(&ridge.direction, &component.key_mean) + ridge.offset;
            let (value, slope) = ridge.activation.under_normal(mean, variance.sqrt());
            weight += ridge.coefficient * value;
            linalg::add_scaled(&mut gradient, ridge.coefficient * slope, &ridge.direction);
        }
        moments.add(component, weight, &gradient);
    }
    moments
}

/// E κ and E κv of positive random features, κ = Σ_i c_i exp(⟨w_i, rk⟩ − |rk|²/2), r the factor on keys (Performer).
///
/// E exp(−|rk − w|²/2) = |I + r²Σ|^{−1/2} exp(−(rμ − w)ᵀ(I + r²Σ)⁻¹(rμ − w)/2), and Stein's gradient is that in μ.
/// Overall factors of κ do not matter to the ratio.
///
/// # Errors
/// Widths that differ.
pub fn positive_feature_moments(
    components: &[TokenMoments],
    factor: f64,
    directions: &[Vec<f64>],
    coefficients: &[f64],
) -> Result<FeatureMoments> {
    let width = components.first().map_or(0, |component| component.value_mean.len());
    let mut moments = FeatureMoments::zero(width);
    for component in components {
        let size = component.key_mean.len();
        let widened = Mat::from_fn(size, size, |i, j| {
            f64::from(u8::from(i == j)) + factor * factor * component.key_covariance[(i, j)]
        });
        let eigen = linalg::SymmetricEigen::new(
            "the covariance of keys",
            linalg::symmetric_part(widened.as_ref()).as_ref(),
        )?;
        let inverse = eigen.map(|value| 1.0 / value);
        let log_volume: f64 = eigen.values.iter().map(|value| value.ln()).sum();
        let mut weight = 0.0;
        let mut gradient = vec![0.0; size];
        for (direction, coefficient) in directions.iter().zip(coefficients) {
            if direction.len() != size {
                return Err(Error::Size { name: "directions", expected: size, found: direction.len() });
            }
            let gap: Vec<f64> =
                component.key_mean.iter().zip(direction).map(|(mean, w)| factor * mean - w).collect();
            let whitened = linalg::apply(inverse.as_ref(), &gap);
            let exponent =
                0.5 * linalg::squared_norm(direction) - 0.5 * linalg::dot(&gap, &whitened) - 0.5 * log_volume;
            let value = coefficient * exponent.exp();
            weight += value;
            linalg::add_scaled(&mut gradient, -factor * value, &whitened);
        }
        moments.add(component, weight, &gradient);
    }
    Ok(moments)
}
