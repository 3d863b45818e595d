//! State expansion: a system with N states is one with N̄ ≥ N states, so more states never express less (key `sieber2024`).

use super::{SystemStep, Transition};
use crate::error::{Error, Result};

/// The same system with more states: the new ones decay at once, are not written and not read.
///
/// # Errors
/// Fewer states than there are.
pub fn expand(steps: &[SystemStep], states: usize, wanted: usize) -> Result<Vec<SystemStep>> {
    if wanted < states {
        return Err(Error::Option {
            name: "states",
            expected: format!("at least the {states} there are"),
            found: wanted.to_string(),
        });
    }
    let widen = |matrix: &[f64]| -> Vec<f64> {
        // Rows of N numbers become rows of N̄.
        matrix
            .chunks_exact(states.max(1))
            .flat_map(|row| row.iter().copied().chain(std::iter::repeat_n(0.0, wanted - states)))
            .collect()
    };
    let lengthen = |mut rows: Vec<f64>, width: usize| {
        rows.resize(wanted * width, 0.0);
        rows
    };
    Ok(steps
        .iter()
        .map(|step| SystemStep {
            transition: match &step.transition {
                Transition::Diagonal(decays) => Transition::Diagonal(lengthen(decays.clone(), 1)),
                Transition::Dense(matrix) => Transition::Dense(lengthen(widen(matrix), wanted)),
            },
            input: lengthen(step.input.clone(), step.input.len() / states.max(1)),
            readout: widen(&step.readout),
            feedthrough: step.feedthrough.clone(),
        })
        .collect())
}
