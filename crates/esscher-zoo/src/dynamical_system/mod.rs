//! Mechanisms as linear dynamical systems: h_i = Λ_i h_{i−1} + B_i u_i, y_i = C_i h_i + D_i u_i, h_{−1} = 0 (key `sieber2024`).
//!
//! A realisation depends on queries, keys and gates, which are functions of the tokens, and is linear in the input port.
//! [`simulate`] runs any realisation; its outputs must be those of the mechanism.
//!
//! The publication's comparisons are here as functions: [`expand`] (more states never express less), [`decay_coupling`](fn@decay_coupling) (who can keep and
//! write at once), [`state_space_twin`](fn@state_space_twin) (linear attention as state space duality), [`reversed_sigmoid`](fn@reversed_sigmoid) (S6's decay as a gate).

mod decay_coupling;
mod expansion;
mod reversed_sigmoid;
mod state_space_twin;

pub use decay_coupling::{Coupling, DecayCoupling, decay_coupling};
pub use expansion::expand;
pub use reversed_sigmoid::{ReversedSigmoid, reversed_sigmoid};
pub use state_space_twin::{StateSpaceTwin, state_space_twin};

use crate::mechanism::Given;

/// Λ_i.
#[derive(Debug, Clone, PartialEq)]
pub enum Transition {
    /// The diagonal, one number per state.
    Diagonal(Vec<f64>),
    /// All N × N numbers, row by row.
    Dense(Vec<f64>),
}

/// The system at one token: N states, d_in inputs, d_out outputs; matrices row by row.
#[derive(Debug, Clone, PartialEq)]
pub struct SystemStep {
    /// Λ_i, N × N.
    pub transition: Transition,
    /// B_i, N × d_in.
    pub input: Vec<f64>,
    /// C_i, d_out × N.
    pub readout: Vec<f64>,
    /// D_i, d_out × d_in; empty for none.
    pub feedthrough: Vec<f64>,
}

impl SystemStep {
    /// A system of one input and one output: diagonal Λ, B and C of one number per state, no D.
    pub(crate) fn single(kept: Vec<f64>, written: Vec<f64>, read: Vec<f64>) -> Self {
        SystemStep {
            transition: Transition::Diagonal(kept),
            input: written,
            readout: read,
            feedthrough: Vec::new(),
        }
    }

    /// A copy of this system of one input for each of these channels: I ⊗ Λ, I ⊗ B, I ⊗ C, and no D.
    pub(crate) fn for_each_of(&self, channels: usize) -> Self {
        let own = self.input.len();
        let states = channels * own;
        let mut input = vec![0.0; states * channels];
        let mut readout = vec![0.0; channels * states];
        for channel in 0..channels {
            for a in 0..own {
                let state = channel * own + a;
                input[state * channels + channel] = self.input[a];
                readout[channel * states + state] = self.readout[a];
            }
        }
        let transition = match &self.transition {
            Transition::Diagonal(kept) => Transition::Diagonal(kept.repeat(channels)),
            Transition::Dense(block) => {
                let mut all = vec![0.0; states * states];
                for (state, row) in all.chunks_exact_mut(states).enumerate() {
                    let (channel, a) = (state / own, state % own);
                    row[channel * own..(channel + 1) * own].copy_from_slice(&block[a * own..(a + 1) * own]);
                }
                Transition::Dense(all)
            }
        };
        SystemStep { transition, input, readout, feedthrough: Vec::new() }
    }
}

/// A mechanism that is a linear dynamical system in one of its ports.
pub trait DynamicalSystem {
    /// The token port that is the input u; the others decide the matrices.
    fn input_port(&self) -> usize;
    /// How many states, N.
    fn states(&self) -> usize;
    /// The system at every token, from the empty state.
    fn realise(&self, given: &Given<'_, f64>) -> Vec<SystemStep>;
}

/// Outputs of a system on these inputs (`rows` of width d_in), row by row.
pub fn simulate(steps: &[SystemStep], states: usize, inputs: &[f64]) -> Vec<f64> {
    let width = inputs.len() / steps.len().max(1);
    let times = |matrix: &[f64], vector: &[f64]| -> Vec<f64> {
        matrix
            .chunks_exact(vector.len())
            .map(|row| row.iter().zip(vector).map(|(a, b)| a * b).sum())
            .collect()
    };
    let mut state = vec![0.0; states];
    let mut outputs = Vec::new();
    for (step, input) in steps.iter().zip(inputs.chunks_exact(width.max(1))) {
        state = match &step.transition {
            Transition::Diagonal(diagonal) => diagonal.iter().zip(&state).map(|(a, b)| a * b).collect(),
            Transition::Dense(matrix) => times(matrix, &state),
        };
        state.iter_mut().zip(times(&step.input, input)).for_each(|(h, b)| *h += b);
        let mut output = times(&step.readout, &state);
        if !step.feedthrough.is_empty() {
            output.iter_mut().zip(times(&step.feedthrough, input)).for_each(|(y, d)| *y += d);
        }
        outputs.append(&mut output);
    }
    outputs
}

/// The square matrix, row by row, with these numbers on its diagonal.
pub fn diagonal(numbers: &[f64]) -> Vec<f64> {
    let mut matrix = vec![0.0; numbers.len() * numbers.len()];
    for (index, &number) in numbers.iter().enumerate() {
        matrix[index * (numbers.len() + 1)] = number;
    }
    matrix
}
