//! What one can predict from a prompt without a layer, and the best that any predictor can do at a length.

use super::LinearRegression;
use super::tasks::design::root;
use super::tasks::{PromptDraw, Task, check_prompt};
use crate::error::{Error, Result};
use crate::monitor::{Monitor, Unwatched};
use crate::numerics::statistics::Summary;
use crate::numerics::{InstructionSet, Stream, check, linalg};
use crate::prompt::PromptLength;
use faer::linalg::solvers::Solve;
use faer::{Mat, Side};
use rayon::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A predictor that reads one prompt.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Baseline {
    /// ⟨(XᵀX + λ I)⁻¹ Xᵀy, x_q⟩: the posterior mean for λ = s²/k; least squares for λ = 0.
    Ridge {
        /// λ ≥ 0.
        lambda: f64,
    },
    /// Least squares, of minimum norm where examples are fewer than dimensions.
    LeastSquares,
    /// One gradient step from zero on ½ · mean of (y − ⟨w, x⟩)²: rate · ⟨Xᵀy / L, x_q⟩.
    GradientStep {
        /// The rate.
        rate: f64,
    },
    /// The mean of the labels.
    Averaging,
    /// The mean label of the nearest covariates, all of them in shorter prompts.
    NearestNeighbours {
        /// How many, at least one.
        neighbours: usize,
    },
}

impl Baseline {
    /// The posterior mean of this task: ridge with λ = s²/k.
    pub fn posterior_mean(task: &LinearRegression) -> Self {
        Baseline::Ridge { lambda: task.noise() / task.prior_scale() }
    }

    /// The prediction for one prompt.
    ///
    /// ```
    /// use esscher_core::regression::Baseline;
    /// use esscher_core::regression::tasks::PromptDraw;
    /// let prompt = PromptDraw::from_rows(&[1.0, 2.0, 2.0, 4.0], &[3.0], 0.0)?;
    /// assert!((Baseline::LeastSquares.predict(&prompt)? - 6.0).abs() < 1e-14);
    /// assert!((Baseline::Ridge { lambda: 5.0 }.predict(&prompt)? - 3.0).abs() < 1e-14);
    /// assert_eq!(Baseline::GradientStep { rate: 0.5 }.predict(&prompt)?, 7.5);
    /// assert_eq!(Baseline::Averaging.predict(&prompt)?, 3.0);
    /// assert_eq!(Baseline::NearestNeighbours { neighbours: 1 }.predict(&prompt)?, 4.0);
    /// # Ok::<(), esscher_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// An empty prompt, a negative λ, no neighbours, a rate that is not finite, a prediction beyond double precision.
    pub fn predict(self, prompt: &PromptDraw) -> Result<f64> {
        self.check()?;
        check::at_least_one("the prompt length", prompt.length())?;
        let dimension = prompt.dimension();
        let length = prompt.length() as f64;
        let query = &prompt.query()[..dimension];
        let rows = prompt.tokens().chunks_exact(dimension + 1).map(|row| row.split_at(dimension));
        let prediction = match self {
            Baseline::Averaging => rows.map(|(_, label)| label[0]).sum::<f64>() / length,
            Baseline::GradientStep { rate } => {
                rate * rows.map(|(covariates, label)| label[0] * linalg::dot(covariates, query)).sum::<f64>()
                    / length
            }
            Baseline::NearestNeighbours { neighbours } => {
                let mut near: Vec<(f64, f64)> =
                    rows.map(|(covariates, label)| (squared_distance(covariates, query), label[0])).collect();
                let kept = neighbours.min(near.len());
                // Stable, so that ties go to the earlier example.
                near.sort_by(|a, b| a.0.total_cmp(&b.0));
                near[..kept].iter().map(|(_, label)| label).sum::<f64>() / kept as f64
            }
            Baseline::Ridge { lambda } if lambda > 0.0 => ridge(prompt, lambda)?,
            Baseline::Ridge { .. } | Baseline::LeastSquares => least_squares(prompt)?,
        };
        check::finite_number("the prediction of a baseline", prediction)
    }

    fn check(self) -> Result<()> {
        match self {
            Baseline::Ridge { lambda } => check::zero_or_more("lambda of ridge regression", lambda),
            Baseline::GradientStep { rate } => check::finite_vector("the rate of the gradient step", &[rate]),
            Baseline::NearestNeighbours { neighbours } => {
                check::at_least_one("the number of neighbours", neighbours)
            }
            Baseline::LeastSquares | Baseline::Averaging => Ok(()),
        }
    }
}

fn squared_distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| (x - y) * (x - y)).sum()
}

fn ridge(prompt: &PromptDraw, lambda: f64) -> Result<f64> {
    let dimension = prompt.dimension();
    let mut gram = Mat::from_fn(dimension, dimension, |i, j| if i == j { lambda } else { 0.0 });
    let mut moment = Mat::zeros(dimension, 1);
    for row in prompt.tokens().chunks_exact(dimension + 1) {
        for j in 0..dimension {
            moment[(j, 0)] += row[dimension] * row[j];
            for i in j..dimension {
                gram[(i, j)] += row[i] * row[j];
            }
        }
    }
    match gram.llt(Side::Lower) {
        Ok(factor) => {
            let weights = factor.solve(&moment);
            Ok((0..dimension).map(|i| weights[(i, 0)] * prompt.query()[i]).sum())
        }
        // λ so small that it is lost in the rounding of XᵀX, or an overflow that the caller finds.
        Err(_) => least_squares(prompt),
    }
}

/// By singular values, which also find the minimum-norm solution.
fn least_squares(prompt: &PromptDraw) -> Result<f64> {
    let (dimension, length) = (prompt.dimension(), prompt.length());
    let covariates = Mat::from_fn(length, dimension, |l, j| prompt.tokens()[l * (dimension + 1) + j]);
    let overflow = Error::Overflow { what: "least squares" };
    check::finite_matrix_result("least squares", covariates.clone())?;
    let svd = covariates.thin_svd().map_err(|_| overflow)?;
    let values = svd.S().column_vector();
    // The usual rank decision: smaller singular values are rounding of the largest.
    let smallest =
        length.max(dimension) as f64 * f64::EPSILON * if values.nrows() > 0 { values[0] } else { 0.0 };
    let mut prediction = 0.0;
    for index in (0..values.nrows()).filter(|&index| values[index] > smallest) {
        let label: f64 =
            (0..length).map(|l| svd.U()[(l, index)] * prompt.tokens()[l * (dimension + 1) + dimension]).sum();
        let query: f64 = (0..dimension).map(|j| svd.V()[(j, index)] * prompt.query()[j]).sum();
        prediction += label * query / values[index];
    }
    Ok(prediction)
}

/// Prompts or matrices of one unit of work.
const TRIALS_PER_UNIT: u32 = 256;

/// Units whose summaries wait to be folded.
const UNITS_AT_ONCE: usize = 1024;

/// Pivots of a precision that span less lose at most about six of sixteen digits.
const WIDEST_PIVOTS: f64 = 1e3;

/// Baselines have prompts of their own, as simulations and descents have.
const BASELINE_STREAM: u64 = 0x4241_5345_4C49_4E45;

/// ½ (prediction − target)² of every baseline, over the same prompts of any task.
///
/// The same bits for any number of threads.
///
/// # Errors
/// No baselines, no prompts, a length of zero or one too long to store, what a baseline or the task refuses.
pub fn baseline_risks(
    task: &dyn Task,
    length: usize,
    baselines: &[Baseline],
    prompts: u32,
    seed: u64,
) -> Result<Vec<Summary>> {
    baseline_risks_watched(task, length, baselines, prompts, seed, &Unwatched)
}

/// [`baseline_risks`] under a monitor: one that is stopped has counted fewer prompts.
///
/// # Errors
/// As there.
pub fn baseline_risks_watched(
    task: &dyn Task,
    length: usize,
    baselines: &[Baseline],
    prompts: u32,
    seed: u64,
    monitor: &dyn Monitor,
) -> Result<Vec<Summary>> {
    check_prompt(task.dimension(), length)?;
    check::not_empty("the list of baselines", baselines.len())?;
    check::at_least_one("the number of prompts", prompts as usize)?;
    baselines.iter().try_for_each(|baseline| baseline.check())?;
    fold_trials(prompts, baselines.len(), monitor, |trial, summaries| {
        let mut prompt = PromptDraw::new();
        let mut stream = Stream::new(seed ^ BASELINE_STREAM, trial, 0);
        task.draw(length, &mut stream, &mut prompt)?;
        for (baseline, summary) in baselines.iter().zip(summaries) {
            let residual = baseline.predict(&prompt)? - prompt.target();
            summary.add(check::finite_number("the risk of a prompt", 0.5 * residual * residual)?);
        }
        Ok(())
    })
}

/// The risk of the posterior mean of w given L examples: no predictor does better at this length.
///
/// Labels, w and query are averaged in closed form: given the covariates X, the risk is
/// ½ tr(Σ_q (XᵀX/s² + I/k)⁻¹) + ½ s_q², and only XᵀX is drawn. From L = d on it is drawn as a Wishart matrix by
/// Bartlett's decomposition, so that L = 10¹² costs what L = d costs. Compare
/// [`LinearRegression::noise_floor`], the part that no prompt length removes.
///
/// The same bits for any number of threads.
///
/// # Errors
/// No trials; a covariance without Cholesky factor.
pub fn bayes_at_length(
    task: &LinearRegression,
    length: PromptLength,
    trials: u32,
    seed: u64,
) -> Result<Summary> {
    bayes_at_length_watched(task, length, trials, seed, &Unwatched)
}

/// [`bayes_at_length`] under a monitor: one that is stopped has counted fewer trials.
///
/// # Errors
/// As there.
pub fn bayes_at_length_watched(
    task: &LinearRegression,
    length: PromptLength,
    trials: u32,
    seed: u64,
    monitor: &dyn Monitor,
) -> Result<Summary> {
    check::at_least_one("the number of trials", trials as usize)?;
    let factor = root("the covariance", task.covariance())?;
    let summaries = fold_trials(trials, 1, monitor, |trial, summaries| {
        let mut stream = Stream::new(seed, trial, 0).with_instruction_set(InstructionSet::PORTABLE);
        let spread = posterior_spread(task, &factor, length, &mut stream)?;
        let risk = 0.5 * spread + task.noise_floor();
        summaries[0].add(check::finite_number("the risk of the posterior mean", risk)?);
        Ok(())
    })?;
    Ok(summaries[0])
}

/// tr(Σ_q Cov(w | X)) for one draw of the covariates.
fn posterior_spread(
    task: &LinearRegression,
    factor: &Mat<f64>,
    length: PromptLength,
    stream: &mut Stream,
) -> Result<f64> {
    let dimension = task.dimension();
    let few = length.get() < dimension as u64;
    if task.noise() == 0.0 && !few {
        return Ok(0.0);
    }
    // A root W Wᵀ of XᵀX: the examples themselves while they are few.
    let normals = if few {
        let mut normals = Mat::zeros(dimension, length.get() as usize);
        for column in 0..normals.ncols() {
            (0..dimension).for_each(|row| normals[(row, column)] = stream.normal());
        }
        normals
    } else {
        bartlett(dimension, length.get(), stream)
    };
    let examples = check::finite_matrix_result("the examples of a prompt", factor * &normals)?;
    if !few && let Some(spread) = spread_by_cholesky(task, &examples) {
        return Ok(spread);
    }
    spread_by_singular_values(task, &examples)
}

/// k tr((I + (k/s²) XᵀX)⁻¹ Σ_q) for as many examples as dimensions or more; none where rounding would show.
fn spread_by_cholesky(task: &LinearRegression, examples: &Mat<f64>) -> Option<f64> {
    let mut precision = examples * examples.transpose() * faer::Scale(task.prior_scale() / task.noise());
    (0..task.dimension()).for_each(|i| precision[(i, i)] += 1.0);
    let factor = precision.llt(Side::Lower).ok()?;
    let pivots = (0..task.dimension()).map(|i| factor.L()[(i, i)]);
    let (smallest, largest) = pivots.fold((f64::MAX, 0.0), |(a, b): (f64, f64), p| (a.min(p), b.max(p)));
    if !(largest < WIDEST_PIVOTS * smallest) {
        return None;
    }
    let solved = factor.solve(task.query_covariance());
    Some(task.prior_scale() * linalg::trace(solved.as_ref()))
}

/// With X = Σ σ_i u_i v_iᵀ and λ = s²/k: k Σ λ/(σ_i² + λ) v_iᵀ Σ_q v_i over a whole basis v, σ_i = 0 beyond the
/// examples. Nothing cancels, and no λ is lost in the rounding of XᵀX + λ I; slower than Cholesky's factor.
fn spread_by_singular_values(task: &LinearRegression, examples: &Mat<f64>) -> Result<f64> {
    let dimension = task.dimension();
    let svd = examples.svd().map_err(|_| Error::Overflow { what: "the examples of a prompt" })?;
    let basis = svd.U();
    let of_query = task.query_covariance() * basis;
    let lambda = task.noise() / task.prior_scale();
    let mut spread = 0.0;
    for index in 0..dimension {
        let seen = if index < examples.ncols() { svd.S().column_vector()[index].powi(2) } else { 0.0 };
        // Unseen directions keep their prior, also without noise.
        let share = if seen > 0.0 { lambda / (seen + lambda) } else { 1.0 };
        spread += share * (0..dimension).map(|row| basis[(row, index)] * of_query[(row, index)]).sum::<f64>();
    }
    Ok(task.prior_scale() * spread)
}

/// The lower triangular A with A Aᵀ Wishart of this many degrees of freedom, at least as many as rows.
fn bartlett(dimension: usize, degrees: u64, stream: &mut Stream) -> Mat<f64> {
    let mut root = Mat::zeros(dimension, dimension);
    for i in 0..dimension {
        root[(i, i)] = chi_square((degrees - i as u64) as f64, stream).sqrt();
        for j in 0..i {
            root[(i, j)] = stream.normal();
        }
    }
    root
}

/// χ² with a whole number of degrees of freedom: Marsaglia and Tsang's rejection (key `marsaglia2000`), exact.
fn chi_square(degrees: f64, stream: &mut Stream) -> f64 {
    if degrees < 2.0 {
        return stream.normal().powi(2);
    }
    let shape = 0.5 * degrees - 1.0 / 3.0;
    let scale = (9.0 * shape).sqrt().recip();
    loop {
        let normal = stream.normal();
        let cube = (1.0 + scale * normal).powi(3);
        let log_uniform = stream.uniform().ln();
        if cube > 0.0 && log_uniform < 0.5 * normal * normal + shape * (1.0 - cube + cube.ln()) {
            return 2.0 * shape * cube;
        }
    }
}

/// Runs trials in units on all threads, until the monitor stops them, and folds them in order.
fn fold_trials(
    trials: u32,
    size: usize,
    monitor: &dyn Monitor,
    trial: impl Fn(u32, &mut [Summary]) -> Result<()> + Sync,
) -> Result<Vec<Summary>> {
    let mut total = vec![Summary::new(); size];
    let units = trials.div_ceil(TRIALS_PER_UNIT);
    let done = AtomicUsize::new(0);
    // Some units at a time: their number may be in the millions.
    for first in (0..units).step_by(UNITS_AT_ONCE) {
        let last = first.saturating_add(UNITS_AT_ONCE as u32).min(units);
        let found: Vec<Vec<Summary>> = (first..last)
            .into_par_iter()
            .map(|unit| {
                let first = unit * TRIALS_PER_UNIT;
                let last = first.saturating_add(TRIALS_PER_UNIT).min(trials);
                let mut summaries = vec![Summary::new(); size];
                let mut wanted = (first..last).take_while(|_| !monitor.should_stop());
                wanted.try_for_each(|index| trial(index, &mut summaries))?;
                let unit = (last - first) as usize;
                monitor.progress(done.fetch_add(unit, Ordering::Relaxed) + unit, trials as usize);
                Ok(summaries)
            })
            .collect::<Result<_>>()?;
        for unit in &found {
            total.iter_mut().zip(unit).for_each(|(total, part)| total.merge(part));
        }
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Conditions of a few hundred, and the sums of three terms: rounding only.
    #[test]
    fn both_ways_to_the_posterior_spread_agree_where_both_are_sound() {
        let covariance = LinearRegression::toeplitz(3, 0.5).unwrap();
        let query = LinearRegression::spiked(3, 1.0).unwrap();
        let task = LinearRegression::new(covariance.as_ref()).unwrap().with_noise(0.3).unwrap();
        let task = task.with_prior(0.7).unwrap().with_query_covariance(query.as_ref()).unwrap();
        for trial in 0..100 {
            let mut stream = Stream::new(4, trial, 0);
            for length in [1, 2, 3, 9] {
                let examples = Mat::from_fn(3, length, |_, _| stream.normal());
                let fast = spread_by_cholesky(&task, &examples).unwrap();
                let slow = spread_by_singular_values(&task, &examples).unwrap();
                assert!((fast - slow).abs() < 1e-13 * slow, "{length}: {fast} {slow}");
            }
        }
    }

    /// Mean n and variance 2n of χ², within five standard errors of 10⁵ draws (false alarm below 1e-5); the fourth
    /// central moment 12 n² + 48 n gives the error of the variance.
    #[test]
    fn chi_squares_have_their_mean_and_variance() {
        let draws = 100_000;
        for degrees in [1.0, 2.0, 3.0, 50.0, 1e9] {
            let mut stream = Stream::new(3, degrees as u32, 0);
            let values: Vec<f64> = (0..draws).map(|_| chi_square(degrees, &mut stream) - degrees).collect();
            let summary = Summary::of(&values);
            let (mean, variance) = (summary.mean().unwrap(), summary.variance().unwrap());
            assert!(mean.abs() < 5.0 * (2.0 * degrees / f64::from(draws)).sqrt(), "{degrees}: {mean}");
            let error = ((12.0 * degrees * degrees + 48.0 * degrees - 4.0 * degrees * degrees)
                / f64::from(draws))
            .sqrt();
            assert!((variance - 2.0 * degrees).abs() < 5.0 * error, "{degrees}: {variance}");
        }
    }
}
