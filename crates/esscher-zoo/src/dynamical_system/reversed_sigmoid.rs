//! The decay of S6 is a reversed sigmoid: exp(−a softplus(x)) = σ(−x)^a (key `sieber2024`).

use crate::number::Number;

/// Both sides at points x.
#[derive(Debug, Clone, PartialEq)]
pub struct ReversedSigmoid {
    /// x.
    pub argument: Vec<f64>,
    /// exp(−a softplus(x)).
    pub decay: Vec<f64>,
    /// σ(−x)^a.
    pub reversed_sigmoid: Vec<f64>,
}

/// The table of both sides for an exponent a ≥ 0.
pub fn reversed_sigmoid(exponent: f64, arguments: &[f64]) -> ReversedSigmoid {
    ReversedSigmoid {
        argument: arguments.to_vec(),
        decay: arguments.iter().map(|x| (-exponent * x.softplus()).exp()).collect(),
        reversed_sigmoid: arguments.iter().map(|x| (-x).sigmoid().powf(exponent)).collect(),
    }
}
