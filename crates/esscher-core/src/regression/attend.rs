//! The inner loop: one head over one stored prompt, forward and backward, in vector registers.
//!
//! With θ = U query, s_l = ⟨token_l, θ⟩ and r_l = ⟨token_l, v⟩, softmax predicts f = Σ p_l r_l; the gradient is
//! ∂f/∂v = Σ p_l token_l and ∂f/∂θ = Σ p_l (r_l − f) token_l. Linear attention predicts f = Σ s_l r_l / L, with
//! ∂f/∂v = Σ s_l token_l / L and ∂f/∂θ = Σ r_l token_l / L.
//!
//! Tokens are laid out coordinate by coordinate, and every sum runs in sixteen lanes that meet at the end, whatever the
//! registers: AVX2 and AVX-512 give the same bits.

use super::AttentionKind;
use crate::numerics::{Arithmetic, Kernel, Register, exp};

/// Lanes of every sum: a whole number of pairs of registers on every instruction set.
const LANES: usize = 16;

/// Registers of sixteen lanes at most.
const REGISTERS: usize = 4;

/// What is asked of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moments {
    Prediction,
    /// Also `mean` and `slope`.
    Gradient,
}

/// Buffers that are reused from prompt to prompt.
#[derive(Debug, Clone, Default)]
pub(super) struct Workspace {
    /// Tokens coordinate by coordinate, each padded with zeros to whole lanes.
    columns: Vec<f64>,
    length: usize,
    padded: usize,
    /// s_l, then the weights.
    scores: Vec<f64>,
    /// r_l.
    values: Vec<f64>,
    /// θ, written by the caller.
    pub(super) tilt: Vec<f64>,
    /// ∂f/∂v.
    pub(super) mean: Vec<f64>,
    /// ∂f/∂θ.
    pub(super) slope: Vec<f64>,
}

impl Workspace {
    /// Takes the tokens of a prompt, row by row of this size.
    pub(super) fn read(&mut self, tokens: &[f64], size: usize) {
        self.length = tokens.len() / size;
        let padded = self.length.next_multiple_of(LANES);
        if padded != self.padded || self.columns.len() != size * padded {
            self.padded = padded;
            self.columns.clear();
            self.columns.resize(size * padded, 0.0);
            self.scores.resize(padded, 0.0);
            self.values.resize(padded, 0.0);
            for vector in [&mut self.tilt, &mut self.mean, &mut self.slope] {
                vector.resize(size, 0.0);
            }
        }
        for (axis, column) in self.columns.chunks_exact_mut(padded).enumerate() {
            let entries = tokens.iter().skip(axis).step_by(size);
            column.iter_mut().zip(entries).for_each(|(entry, token)| *entry = *token);
            // The last prompt of this padded length may have been longer.
            column[self.length..].fill(0.0);
        }
    }
}

/// One head with value vector v over the prompt in the workspace; returns f, NaN where scores overflow.
pub(super) struct Attend<'a> {
    pub(super) attention: AttentionKind,
    pub(super) value: &'a [f64],
    pub(super) moments: Moments,
    pub(super) workspace: &'a mut Workspace,
}

impl Kernel for Attend<'_> {
    type Output = f64;

    #[inline(always)]
    fn run<A: Arithmetic>(self) -> f64 {
        let work = self.workspace;
        let total = scores::<A::Register<f64>>(work, self.value);
        // exp would take a NaN for a very low score.
        if !total.is_finite() {
            return f64::NAN;
        }
        match self.attention {
            AttentionKind::Softmax => softmax::<A::Register<f64>>(work, self.moments),
            AttentionKind::Linear => linear::<A::Register<f64>>(work, self.moments),
        }
    }
}

/// Sixteen lanes of sums.
#[derive(Clone, Copy)]
struct Sum<R>([R; REGISTERS]);

impl<R: Register<f64>> Sum<R> {
    #[inline(always)]
    fn new(value: f64) -> Self {
        Sum([R::splat(value); REGISTERS])
    }

    /// The lanes folded in their order.
    #[inline(always)]
    fn fold(self, fold: impl Fn(f64, f64) -> f64) -> f64 {
        let mut lanes = [0.0; LANES];
        for k in 0..LANES / R::WIDTH {
            self.0[k].store(&mut lanes[k * R::WIDTH..]);
        }
        let mut total = lanes[0];
        for lane in 1..LANES {
            total = fold(total, lanes[lane]);
        }
        total
    }

    #[inline(always)]
    fn total(self) -> f64 {
        self.fold(|a, b| a + b)
    }
}

/// Writes s_l and r_l; returns Σ s_l + Σ r_l, which is finite only if all of them are.
#[inline(always)]
fn scores<R: Register<f64>>(work: &mut Workspace, value: &[f64]) -> f64 {
    let mut total = Sum::<R>::new(0.0);
    for start in (0..work.padded).step_by(LANES) {
        for k in 0..LANES / R::WIDTH {
            let at = start + k * R::WIDTH;
            let (mut score, mut reward) = (R::splat(0.0), R::splat(0.0));
            for axis in 0..value.len() {
                let token = R::load(&work.columns[axis * work.padded + at..]);
                score = token.multiply_add(R::splat(work.tilt[axis]), score);
                reward = token.multiply_add(R::splat(value[axis]), reward);
            }
            score.store(&mut work.scores[at..]);
            reward.store(&mut work.values[at..]);
            total.0[k] = total.0[k].add(score.add(reward));
        }
    }
    total.total()
}

#[inline(always)]
fn softmax<R: Register<f64>>(work: &mut Workspace, moments: Moments) -> f64 {
    // Padding weighs e^{−708}: it moves no sum, and its tokens are zero.
    work.scores[work.length..].fill(f64::NEG_INFINITY);
    let mut largest = Sum::<R>::new(f64::NEG_INFINITY);
    for start in (0..work.padded).step_by(LANES) {
        for k in 0..LANES / R::WIDTH {
            largest.0[k] = largest.0[k].larger(R::load(&work.scores[start + k * R::WIDTH..]));
        }
    }
    let largest = R::splat(largest.fold(f64::max));
    let (mut mass, mut reward) = (Sum::<R>::new(0.0), Sum::<R>::new(0.0));
    for start in (0..work.padded).step_by(LANES) {
        for pair in 0..LANES / R::WIDTH / 2 {
            let at = [start + 2 * pair * R::WIDTH, start + (2 * pair + 1) * R::WIDTH];
            let weights = exp([
                R::load(&work.scores[at[0]..]).subtract(largest),
                R::load(&work.scores[at[1]..]).subtract(largest),
            ]);
            for half in 0..2 {
                let k = 2 * pair + half;
                weights[half].store(&mut work.scores[at[half]..]);
                mass.0[k] = mass.0[k].add(weights[half]);
                reward.0[k] = weights[half].multiply_add(R::load(&work.values[at[half]..]), reward.0[k]);
            }
        }
    }
    let mass = mass.total();
    let prediction = reward.total() / mass;
    if moments == Moments::Gradient {
        weighted_sums::<R>(work, mass, prediction, true);
    }
    prediction
}

#[inline(always)]
fn linear<R: Register<f64>>(work: &mut Workspace, moments: Moments) -> f64 {
    let length = work.length as f64;
    let mut reward = Sum::<R>::new(0.0);
    for start in (0..work.padded).step_by(LANES) {
        for k in 0..LANES / R::WIDTH {
            let at = start + k * R::WIDTH;
            reward.0[k] = R::load(&work.scores[at..]).multiply_add(R::load(&work.values[at..]), reward.0[k]);
        }
    }
    if moments == Moments::Gradient {
        weighted_sums::<R>(work, length, 0.0, false);
    }
    reward.total() / length
}

/// mean = Σ weight · token / mass and slope = Σ [weight ·] (r − centre) · token / mass.
#[inline(always)]
fn weighted_sums<R: Register<f64>>(work: &mut Workspace, mass: f64, centre: f64, weighted: bool) {
    let centre = R::splat(centre);
    for axis in 0..work.mean.len() {
        let (mut mean, mut slope) = (Sum::<R>::new(0.0), Sum::<R>::new(0.0));
        let column = &work.columns[axis * work.padded..(axis + 1) * work.padded];
        for start in (0..work.padded).step_by(LANES) {
            for k in 0..LANES / R::WIDTH {
                let at = start + k * R::WIDTH;
                let (token, weight) = (R::load(&column[at..]), R::load(&work.scores[at..]));
                let product = weight.multiply(token);
                let reward = R::load(&work.values[at..]).subtract(centre);
                mean.0[k] = mean.0[k].add(product);
                slope.0[k] = reward.multiply_add(if weighted { product } else { token }, slope.0[k]);
            }
        }
        work.mean[axis] = mean.total() / mass;
        work.slope[axis] = slope.total() / mass;
    }
}
