//! Why rotations resemble softmax: Re E[φ_ω(q) φ̄_ω(k)] = e^{q·k} for φ_ω(x) = e^{|x|²/2 + iω·x}, ω ~ N(0, I) (key `movahedi2025`).
//!
//! φ_ω(q_t) turns by ω·(q_t − q_{t−1}) from token to token: softmax attention is a sum over random rotations that depend on the
//! queries. The conjugate matters. With frequencies ω ~ N(0, σ²I) the expectations are
//!
//! - with the conjugate, exp(|q|²/2 + |k|²/2 − σ²|q − k|²/2), which is e^{q·k} at σ = 1 for every pair q ≠ k and at no other σ;
//! - without, exp(|q|²/2 + |k|²/2 − σ²|q + k|²/2), which for |q| = |k| is e^{q·k} at σ = tan(ϑ/2), ϑ the angle between q and k.
//!
//! The paper prints the kernel without the conjugate and names tan(ϑ/2) optimal. With many features and the conjugate, which
//! the kernel needs, the optimum is σ = 1.

use esscher_core::numerics::Stream;

/// How the features of a query and a key are multiplied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Product {
    /// φ(q) times the complex conjugate of φ(k): the kernel's.
    Conjugated,
    /// φ(q) φ(k).
    Plain,
}

impl Product {
    /// The vector whose product with ω is the angle of a feature: q − k or q + k.
    fn combine(self, query: &[f64], key: &[f64]) -> Vec<f64> {
        let sign = match self {
            Product::Conjugated => -1.0,
            Product::Plain => 1.0,
        };
        query.iter().zip(key).map(|(q, k)| q + sign * k).collect()
    }
}

/// A mean over random features.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The mean of the real parts.
    pub mean: f64,
    /// Its standard error, from the spread of the features.
    pub standard_error: f64,
}

/// The mean over `features` random frequencies ω ~ N(0, deviation² I) of the real part of a product of features.
pub fn estimate(
    query: &[f64],
    key: &[f64],
    product: Product,
    deviation: f64,
    features: usize,
    stream: &mut Stream,
) -> Estimate {
    let combined = product.combine(query, key);
    let size = (0.5 * (square(query) + square(key))).exp();
    // Welford's recurrence for mean and spread.
    let (mut mean, mut spread) = (0.0, 0.0);
    for count in 1..=features {
        let angle: f64 = combined.iter().map(|x| deviation * stream.normal() * x).sum();
        let real = size * angle.cos();
        let change = real - mean;
        mean += change / count as f64;
        spread += change * (real - mean);
    }
    let count = features as f64;
    Estimate { mean, standard_error: (spread / (count * (count - 1.0).max(1.0))).sqrt() }
}

/// What [`estimate`] tends to: exp(|q|²/2 + |k|²/2 − deviation² |q ∓ k|²/2).
pub fn expectation(query: &[f64], key: &[f64], product: Product, deviation: f64) -> f64 {
    let combined = square(&product.combine(query, key));
    (0.5 * (square(query) + square(key) - deviation * deviation * combined)).exp()
}

fn square(numbers: &[f64]) -> f64 {
    numbers.iter().map(|x| x * x).sum()
}
