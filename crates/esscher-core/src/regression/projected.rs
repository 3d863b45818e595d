//! Gaussian prompts seen through two projections: prediction and gradient from two normals a token instead of d + 1.
//!
//! Given w, a token is R g with g standard normal in Rᵈ⁺¹, R = [[C, 0], [wᵀC, s]], C Cᵀ = Σ. Score and value of a token
//! are ⟨Rᵀθ, g⟩ and ⟨Rᵀv, g⟩: only two coordinates of g, along orthonormal e₁ and e₂, enter the prediction. The gradient
//! also asks for Σ α_l g_l and Σ β_l g_l, where α and β are functions of those two coordinates; the other coordinates of
//! g are independent of them, so that across e₁ and e₂ the two sums are, given α and β, jointly normal with covariance
//! [[Σα², Σαβ], [Σαβ, Σβ²]] in each direction. Drawing them so has the very law of drawing tokens.

use super::attend::{Attend, Moments, Spread, Workspace};
use super::tasks::{LinearTask, PromptDraw};
use super::{AttentionKind, RegressionLayer};
use crate::error::Result;
use crate::numerics::{InstructionSet, Stream, linalg};

/// Buffers of size d + 1.
#[derive(Debug, Clone, Default)]
pub(super) struct Projected {
    /// Rᵀθ, then e₁; Rᵀv, then e₂.
    first: Vec<f64>,
    second: Vec<f64>,
    /// Two standard normal vectors, then Σ αg and Σ βg, then R times them: ∂f/∂v and ∂f/∂θ.
    mean: Vec<f64>,
    slope: Vec<f64>,
}

/// A rest of Rᵀv across Rᵀθ below this share of it is rounding and has no direction.
const ROUNDING: f64 = 1e-13;

impl Projected {
    /// Draws hidden vector, query and target into `prompt` (no tokens), and prediction and gradient of the layer's only
    /// head into the return value and `gradient`.
    #[allow(clippy::too_many_arguments, reason = "buffers that the caller reuses")]
    pub(super) fn forward_with_gradient(
        &mut self,
        task: &LinearTask,
        layer: &RegressionLayer,
        length: usize,
        stream: &mut Stream,
        set: InstructionSet,
        prompt: &mut PromptDraw,
        workspace: &mut Workspace,
        gradient: &mut [f64],
    ) -> Result<f64> {
        task.draw_query(length, stream, prompt)?;
        let size = prompt.query().len();
        let (score, value) = layer.only_head(size);
        for vector in [&mut self.first, &mut self.second, &mut self.mean, &mut self.slope] {
            vector.resize(size, 0.0);
        }
        for (entry, row) in self.first.iter_mut().zip(score.chunks_exact(size)) {
            *entry = linalg::dot(row, prompt.query());
        }
        self.second.copy_from_slice(value);
        task.apply_token_root_transpose(prompt.hidden(), &mut self.first);
        task.apply_token_root_transpose(prompt.hidden(), &mut self.second);

        let [tilt, along, across] = frame(&mut self.first, &mut self.second);
        stream.fill_normals(&mut self.mean);
        stream.fill_normals(&mut self.slope);
        workspace.fill(length, 2, |columns| stream.fill_normals(columns));
        workspace.tilt.copy_from_slice(&[tilt, 0.0]);
        let attention = layer.attention();
        let value = [along, across];
        let prediction = set.run(Attend { attention, value: &value, moments: Moments::Gradient, workspace });
        let centre = if attention == AttentionKind::Softmax { Some(prediction) } else { None };
        let [of_mean, of_both, of_slope] = set.run(Spread { centre, workspace });

        // Standard normals across e₁ and e₂, correlated, and what the tokens themselves have along e₁ and e₂.
        let (deviation, shared) =
            if of_mean > 0.0 { (of_mean.sqrt(), of_both / of_mean.sqrt()) } else { (0.0, 0.0) };
        let rest = (of_slope - shared * shared).max(0.0).sqrt();
        self.clear_projections();
        for (mean, slope) in self.mean.iter_mut().zip(&mut self.slope) {
            (*mean, *slope) = (deviation * *mean, shared * *mean + rest * *slope);
        }
        for (vector, sums) in [(&mut self.mean, &workspace.mean), (&mut self.slope, &workspace.slope)] {
            linalg::add_scaled(vector, sums[0], &self.first);
            linalg::add_scaled(vector, sums[1], &self.second);
            task.apply_token_root(prompt.hidden(), vector);
        }
        layer.write_gradient(prompt.query(), &self.mean, &self.slope, gradient);
        Ok(prediction)
    }

    /// Takes what lies along e₁ and e₂ out of the two normal vectors.
    fn clear_projections(&mut self) {
        for vector in [&mut self.mean, &mut self.slope] {
            for direction in [&self.first, &self.second] {
                let along = linalg::dot(vector, direction);
                linalg::add_scaled(vector, -along, direction);
            }
        }
    }
}

/// Turns two vectors a and b into orthonormal e₁ and e₂ with a = tilt · e₁ and b = along · e₁ + across · e₂; returns
/// [tilt, along, across]. A direction that does not exist is zero.
fn frame(first: &mut [f64], second: &mut [f64]) -> [f64; 3] {
    let tilt = normalise(first, 0.0);
    let whole = linalg::norm(second);
    let mut along = 0.0;
    // Twice: the first pass leaves a rest along e₁ of size ε |b|, which is large beside a small `across`.
    for _ in 0..2 {
        let rest = linalg::dot(first, second);
        linalg::add_scaled(second, -rest, first);
        along += rest;
    }
    [tilt, along, normalise(second, ROUNDING * whole)]
}

/// Divides a vector by its norm, which is returned; zero both if the norm is at most `least`.
fn normalise(vector: &mut [f64], least: f64) -> f64 {
    let norm = linalg::norm(vector);
    if !(norm > least) {
        vector.fill(0.0);
        return if norm.is_nan() { norm } else { 0.0 };
    }
    vector.iter_mut().for_each(|entry| *entry /= norm);
    norm
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Gaussian;
    use crate::numerics::statistics::Summary;
    use crate::regression::tasks::Task;
    use crate::regression::{LinearRegression, RegressionHead};
    use faer::Mat;
    use std::sync::Arc;

    /// One pass leaves ⟨e₁, e₂⟩ of size ε |b| / across: 0.02 at the smallest distance here.
    #[test]
    fn directions_are_orthogonal_however_close_the_vectors() {
        for distance in [1.0, 1e-4, 1e-8, 1e-12] {
            for trial in 0..100 {
                let mut stream = Stream::new(8, trial, 0);
                let (mut first, mut second) = ([0.0; 5], [0.0; 5]);
                stream.fill_normals(&mut first);
                stream.fill_normals(&mut second);
                second.iter_mut().zip(&first).for_each(|(entry, other)| *entry = other + distance * *entry);
                let value = second;
                let [_, along, across] = frame(&mut first, &mut second);
                assert!(linalg::dot(&first, &second).abs() < 8.0 * f64::EPSILON, "{distance}");
                assert!((linalg::norm(&second) - 1.0).abs() < 8.0 * f64::EPSILON);
                for index in 0..5 {
                    let entry = along * first[index] + across * second[index];
                    assert!((entry - value[index]).abs() < 8.0 * f64::EPSILON * linalg::norm(&value));
                }
            }
        }
    }

    /// Means and squares of every gradient entry, products of any two entries of ∂f/∂v and ∂f/∂θ (mixed ones by their
    /// norms and the sign of f), and f with itself, target and gradient, from both ways to draw: five standard errors of
    /// their difference. These are 14 layers at 26 numbers (d = 1) and 21 at 80 (d = 3), 2,044 comparisons: false alarm
    /// below 1.2e-3, and the seeds are fixed. Without the correlation of the two sums the largest gap is of 26 errors.
    #[test]
    fn projections_have_the_law_of_prompts() {
        for (dimension, length) in [(1, 1), (1, 6), (3, 1), (3, 4), (3, 33)] {
            let covariance = LinearRegression::toeplitz(dimension, 0.6).unwrap();
            let query = LinearRegression::spiked(dimension, 1.0).unwrap();
            let law = LinearRegression::new(covariance.as_ref())
                .unwrap()
                .with_noise(0.5)
                .unwrap()
                .with_prior(0.8)
                .unwrap()
                .with_query_covariance(query.as_ref())
                .unwrap();
            let task = LinearTask::gaussian(&law).unwrap();
            // The same law of covariates, recognised through the interface of measures.
            let measure = Arc::new(Gaussian::centred(covariance.as_ref()).unwrap());
            let queries = Arc::new(Gaussian::centred(query.as_ref()).unwrap());
            let recognised = LinearTask::with_queries(measure, queries).unwrap();
            let recognised = recognised.with_noise(0.5).unwrap().with_prior(0.8).unwrap();
            let recognised = recognised.as_gaussian_linear().expect("a centred Gaussian");
            let mut stream = Stream::new(1, 0, 0);
            let size = dimension + 1;
            let general = RegressionHead::new(
                Mat::from_fn(size, size, |_, _| 0.4 * stream.normal()).as_ref(),
                &(0..size).map(|_| stream.normal()).collect::<Vec<_>>(),
            );
            let block = RegressionHead::block(Mat::<f64>::identity(dimension, dimension).as_ref(), 1.5);
            let no_tilt = RegressionHead::block(Mat::<f64>::zeros(dimension, dimension).as_ref(), 1.5);
            for head in [general, block, no_tilt] {
                for kind in [AttentionKind::Softmax, AttentionKind::Linear] {
                    let layer = RegressionLayer::heads(kind, &[head.clone().unwrap()]).unwrap();
                    compare(&task, &task, &layer, length);
                }
            }
            let head =
                RegressionHead::block(Mat::<f64>::identity(dimension, dimension).as_ref(), 1.5).unwrap();
            let layer = RegressionLayer::heads(AttentionKind::Softmax, &[head]).unwrap();
            compare(&task, recognised, &layer, length);
        }
    }

    fn compare(prompts: &LinearTask, projections: &LinearTask, layer: &RegressionLayer, length: usize) {
        let (mut prompt, mut workspace) = (PromptDraw::new(), Workspace::default());
        let (mut projected, set) = (Projected::default(), InstructionSet::PORTABLE);
        let mut gradient = vec![0.0; layer.effective_length()];
        let (size, rows) = (gradient.len(), layer.dimension() + 1);
        let mut found = [const { Vec::new() }; 2];
        for (way, summaries) in found.iter_mut().enumerate() {
            summaries.resize(2 * size + rows * rows + rows * (rows + 1) + 4, Summary::new());
            for index in 0..4_000 {
                let mut stream = Stream::new(2 + way as u64, index, 0);
                let prediction = if way == 0 {
                    prompts.draw(length, &mut stream, &mut prompt).unwrap();
                    layer.forward_with_gradient(&prompt, set, &mut workspace, &mut gradient)
                } else {
                    projected
                        .forward_with_gradient(
                            projections,
                            layer,
                            length,
                            &mut stream,
                            set,
                            &mut prompt,
                            &mut workspace,
                            &mut gradient,
                        )
                        .unwrap()
                };
                let (score, mean) = gradient.split_at(rows * rows);
                let query = prompt.query();
                let slope: Vec<f64> = score
                    .chunks_exact(rows)
                    .map(|row| linalg::dot(row, query) / linalg::squared_norm(query))
                    .collect();
                // The floor is for slopes of one token, which are rounding.
                let mixed = prediction.signum() / (linalg::norm(mean) * linalg::norm(&slope) + 1e-6);
                let mut products = Vec::new();
                for i in 0..rows {
                    // (query, tokens) → −(query, tokens) changes the signs of mean · slope and of the prediction: the
                    // first alone has expectation zero in any case. Divided by the norms, which have heavy tails.
                    products.extend((0..rows).map(|j| mixed * mean[i] * slope[j]));
                    products.extend((0..=i).map(|j| mean[i] * mean[j]));
                    products.extend((0..=i).map(|j| slope[i] * slope[j]));
                }
                let values = gradient.iter().copied().chain(gradient.iter().map(|entry| entry * entry));
                let values = values.chain(products).chain([
                    prediction,
                    prediction * prediction,
                    prediction * prompt.target(),
                    prediction * gradient[size - 1],
                ]);
                summaries.iter_mut().zip(values).for_each(|(summary, value)| summary.add(value));
            }
        }
        for (index, (a, b)) in found[0].iter().zip(&found[1]).enumerate() {
            let gap = a.mean().unwrap() - b.mean().unwrap();
            let error = a.standard_error().unwrap().hypot(b.standard_error().unwrap());
            // Entries of the query's label are zero in both, and sums of one token have a rounding across.
            assert!(gap.abs() <= 5.0 * error + 1e-14, "{index}: {a:?} {b:?}\n{layer:?} at {length}");
        }
    }
}
