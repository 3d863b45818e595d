//! Linear attention is state space duality with the scalar decay that its normaliser implies: e^{−Δ_i} = η_{i−1}/η_i (key `sieber2024`).
//!
//! Δ_i = ln(η_i/η_{i−1}), key φ(k_i)/(η_i Δ_i), query φ(q_i), rate 1 and no skip make S_i = Σ_{j≤i} φ(k_j)v_jᵀ/η_i. Since Δ > 0, η must
//! increase, as it does for a fixed query and a positive map. Where it does not, any other increasing sequence η̄ serves in its place, and the
//! query carries the ratio η̄_i/η_i; we take η̄_i = i + 1. What is left of the difference is the number of free decays: one.

use super::{DynamicalSystem, Transition};
use crate::error::{Error, Result};
use crate::feature_maps::FeatureMap;
use crate::linear_attention::LinearAttention;
use crate::mechanism::{Definition, Given, Mechanism};
use crate::ssd::StateSpaceDuality;

/// State space duality whose outputs are those of a linear attention.
#[derive(Debug, Clone, PartialEq)]
pub struct StateSpaceTwin {
    /// The mechanism.
    pub mechanism: StateSpaceDuality,
    /// Rows of its queries.
    pub query: Vec<f64>,
    /// Rows of its keys.
    pub key: Vec<f64>,
    /// Rows of its values.
    pub value: Vec<f64>,
    /// Δ of every token.
    pub rate: Vec<f64>,
    /// Whether the queries carry a ratio because the normaliser does not increase.
    pub corrected: bool,
}

impl StateSpaceTwin {
    /// The outputs of state space duality, by its reference.
    ///
    /// # Errors
    /// Numbers that are not finite.
    pub fn outputs(&self) -> Result<Vec<f64>> {
        let skip = vec![0.0; self.mechanism.value_width];
        let tokens: [&[f64]; 4] = [&self.query, &self.key, &self.value, &self.rate];
        let parameters: [&[f64]; 2] = [&[0.0], &skip];
        let given = Given::new(&self.mechanism.signature(), self.rate.len(), &tokens, &parameters)?;
        Ok(Definition::<f64>::reference(&self.mechanism, &given).outputs)
    }
}

/// The twin of a causal linear attention on a sequence, constructed from its realisation.
///
/// # Errors
/// A normaliser that is not positive.
pub fn state_space_twin<M: FeatureMap>(
    attention: &LinearAttention<M>,
    given: &Given<'_, f64>,
) -> Result<StateSpaceTwin> {
    let (features, values) = (attention.map.feature_width(), attention.value_width);
    let steps = attention.realise(given);
    // η_{i−1}/η_i from the transitions, η_0 = 1: a common factor belongs to the keys, which come divided by the true η_i.
    let ratios: Vec<f64> = steps
        .iter()
        .skip(1)
        .map(|step| match &step.transition {
            Transition::Diagonal(numbers) | Transition::Dense(numbers) => numbers[0],
        })
        .collect();
    if let Some(index) = ratios.iter().position(|&ratio| !(ratio > 0.0 && ratio.is_finite())) {
        return Err(Error::NotAllowed {
            name: "normaliser",
            index,
            found: ratios[index],
            expected: "in a positive ratio to the one before",
        });
    }
    let corrected = ratios.iter().any(|&ratio| ratio >= 1.0);
    let mut twin = StateSpaceTwin {
        mechanism: StateSpaceDuality { key_width: features, value_width: values },
        query: Vec::new(),
        key: Vec::new(),
        value: given.tokens[attention.input_port()].to_vec(),
        rate: Vec::new(),
        corrected,
    };
    // η̄_i/η_i, up to the same factor for all i.
    let mut correction = 1.0;
    for (i, step) in steps.iter().enumerate() {
        let rate = match (i, corrected) {
            // Nothing is kept of the empty state: any rate will do.
            (0, _) => 1.0,
            (_, false) => -ratios[i - 1].ln(),
            (_, true) => (1.0 / i as f64).ln_1p(),
        };
        if corrected && i > 0 {
            correction *= (i as f64 + 1.0) / i as f64 * ratios[i - 1];
        }
        twin.rate.push(rate);
        // The realisation has φ(k_i)/η_i in the column of every value channel and φ(q_i) in its row.
        twin.key.extend((0..features).map(|a| step.input[a * values] / (correction * rate)));
        twin.query.extend((0..features).map(|a| step.readout[a] * correction));
    }
    Ok(twin)
}
