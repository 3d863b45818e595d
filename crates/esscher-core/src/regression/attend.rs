//! The inner loop: one head over one stored prompt, forward and backward, in vector registers.
//!
//! With θ = U query, s_l = ⟨token_l, θ⟩ and r_l = ⟨token_l, v⟩, softmax predicts f = Σ p_l r_l; the gradient is
//! ∂f/∂v = Σ p_l token_l and ∂f/∂θ = Σ p_l (r_l − f) token_l. Linear attention predicts f = Σ s_l r_l / L, with
//! ∂f/∂v = Σ s_l token_l / L and ∂f/∂θ = Σ r_l token_l / L.
//!
//! Tokens are laid out coordinate by coordinate, and every sum runs in sixteen lanes that meet at the end, whatever the
//! registers: AVX2 and AVX-512 give the same bits.

#![allow(clippy::needless_range_loop, reason = "loops over lanes read and write several arrays")]

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
    /// The values r_l.
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
        self.resize(tokens.len() / size, size);
        for (axis, column) in self.columns.chunks_exact_mut(self.padded).enumerate() {
            let entries = tokens.iter().skip(axis).step_by(size);
            column.iter_mut().zip(entries).for_each(|(entry, token)| *entry = *token);
        }
        self.clear_padding();
    }

    /// Takes tokens that are made in place, coordinate by coordinate, padding included.
    pub(super) fn fill(&mut self, length: usize, size: usize, fill: impl FnOnce(&mut [f64])) {
        self.resize(length, size);
        fill(&mut self.columns);
        self.clear_padding();
    }

    fn resize(&mut self, length: usize, size: usize) {
        self.length = length;
        self.padded = length.next_multiple_of(LANES);
        self.columns.resize(size * self.padded, 0.0);
        self.scores.resize(self.padded, 0.0);
        self.values.resize(self.padded, 0.0);
        for vector in [&mut self.tilt, &mut self.mean, &mut self.slope] {
            vector.resize(size, 0.0);
        }
    }

    fn clear_padding(&mut self) {
        for column in self.columns.chunks_exact_mut(self.padded) {
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

/// Σ α², Σ αβ and Σ β² of the weights that [`Attend`] has just used for `mean` (α) and `slope` (β).
pub(super) struct Spread<'a> {
    /// The prediction for softmax, where β = α (r − prediction); none for linear attention, where β = r / L.
    pub(super) centre: Option<f64>,
    pub(super) workspace: &'a mut Workspace,
}

impl Kernel for Spread<'_> {
    type Output = [f64; 3];

    #[inline(always)]
    fn run<A: Arithmetic>(self) -> [f64; 3] {
        spread::<A::Register<f64>>(self.workspace, self.centre)
    }
}

#[inline(always)]
fn spread<R: Register<f64>>(work: &mut Workspace, centre: Option<f64>) -> [f64; 3] {
    let mut sums = [Sum::<R>::new(0.0); 3];
    let mut mass = Sum::<R>::new(0.0);
    let shift = R::splat(centre.unwrap_or(0.0));
    for start in (0..work.padded).step_by(LANES) {
        for k in 0..LANES / R::WIDTH {
            let at = start + k * R::WIDTH;
            let alpha = R::load(&work.scores[at..]);
            let reward = R::load(&work.values[at..]).subtract(shift);
            let beta = if centre.is_some() { alpha.multiply(reward) } else { reward };
            mass.0[k] = mass.0[k].add(alpha);
            sums[0].0[k] = alpha.multiply_add(alpha, sums[0].0[k]);
            sums[1].0[k] = alpha.multiply_add(beta, sums[1].0[k]);
            sums[2].0[k] = beta.multiply_add(beta, sums[2].0[k]);
        }
    }
    let mass = if centre.is_some() { mass.total() } else { work.length as f64 };
    [sums[0].total(), sums[1].total(), sums[2].total()].map(|sum| sum / mass / mass)
}
