//! Two readings of a rotation with decay: a state that turns, S_t = S_{t−1} Λ_t R_t + v_t k_tᵀ, or turned queries and keys.
//!
//! Unrolled, the state that turns weighs token r at time t by q_tᵀ (Π_{r<j≤t} Λ_j R_j)ᵀ k_r; gated linear attention with
//! turned queries and keys by (R_{1:t} q_t)ᵀ (Π Λ_j) R_{1:r} k_r. They are equal when Λ commutes with R, that is when the two
//! channels of every pair decay alike. With decays of their own per channel, as in the released code, these are two different
//! mechanisms: [`largest_difference`] says how different on given tokens. The second of them then depends on where the sequence
//! begins, even with fixed rotations: a score is no longer a function of the difference of positions.

use super::angle::{frequencies, turn};
use super::{Rotated, Rotation};
use crate::agreement::relative_difference;
use crate::gated_linear_attention::GatedLinearAttention;
use crate::mechanism::{Definition, Given};

/// Outputs of the state that turns: S_t = S_{t−1} Λ_t R_t + v_t k_tᵀ, o_t = S_t q_t / √d, S being d_v × d.
pub fn turning_state(mechanism: &Rotated<GatedLinearAttention>, given: &Given<'_, f64>) -> Vec<f64> {
    let GatedLinearAttention { key_width, value_width } = mechanism.inner;
    let pairs = key_width / 2;
    let [query, key, value, log_decay, angle] = [0, 1, 2, 3, 4];
    let scale = mechanism.inner.scale();
    let mut state = vec![0.0; value_width * key_width];
    let mut outputs = Vec::with_capacity(given.length * value_width);
    for t in 0..given.length {
        let angles: Vec<f64> = match mechanism.rotation {
            Rotation::None => vec![0.0; pairs],
            Rotation::Fixed { base } => frequencies(base, pairs),
            Rotation::Selective { temperatures } => {
                temperatures.values(pairs).iter().zip(given.row(angle, t)).map(|(c, w)| c * w).collect()
            }
        };
        let cosines: Vec<f64> = angles.iter().map(|angle| angle.cos()).collect();
        // A row times R is R's inverse times the column.
        let sines: Vec<f64> = angles.iter().map(|angle| -angle.sin()).collect();
        for (row, v) in state.chunks_exact_mut(key_width).zip(given.row(value, t)) {
            row.iter_mut().zip(given.row(log_decay, t)).for_each(|(s, g)| *s *= g.exp());
            turn(row, &cosines, &sines);
            row.iter_mut().zip(given.row(key, t)).for_each(|(s, k)| *s += v * k);
            let read: f64 = row.iter().zip(given.row(query, t)).map(|(s, q)| s * q).sum();
            outputs.push(scale * read);
        }
    }
    outputs
}

/// The largest difference between the two readings, relative to the largest output of the state that turns.
pub fn largest_difference(mechanism: &Rotated<GatedLinearAttention>, given: &Given<'_, f64>) -> f64 {
    let rotated = Definition::<f64>::reference(mechanism, given).outputs;
    relative_difference(&rotated, &turning_state(mechanism, given), 0.0)
}
