//! What several test files share: small heads and laws, and the brute-force simulation of finite prompts.

use esscher_core::attention::{Attention, Softmax};
use esscher_core::measure::{Empirical, Gaussian, Law, Measure, Mixture};
use esscher_core::numerics::{Stream, linalg};
use esscher_core::prompt::PromptLength;
use esscher_core::{Mat, Monitor, mat};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Whether the long form of the tests was asked for: ESSCHER_LONG_TESTS=1.
pub(crate) fn long() -> bool {
    std::env::var_os("ESSCHER_LONG_TESTS").is_some()
}

pub(crate) fn length(tokens: u64) -> PromptLength {
    PromptLength::new(tokens).unwrap()
}

pub(crate) fn lengths(tokens: &[u64]) -> Vec<PromptLength> {
    tokens.iter().map(|&tokens| length(tokens)).collect()
}

/// A head from R² queries to R³ tokens to R² outputs, nothing square or symmetric about it.
pub(crate) fn skew_head() -> Softmax {
    let score = mat![[0.7, -0.2], [0.1, 0.5], [-0.4, 0.3]];
    let value = mat![[1.0, 0.5, -0.3], [-0.2, 2.0, 0.4]];
    Softmax::new(score.as_ref(), value.as_ref()).unwrap()
}

pub(crate) fn skew_gaussian() -> Gaussian {
    let covariance = mat![[1.0, 0.3, -0.1], [0.3, 0.8, 0.2], [-0.1, 0.2, 1.5]];
    Gaussian::new(&[0.3, -0.5, 0.2], covariance.as_ref()).unwrap()
}

/// Two Gaussians and an atom in R³.
pub(crate) fn skew_mixture() -> Mixture {
    let narrow = mat![[0.4, -0.1, 0.0], [-0.1, 0.5, 0.1], [0.0, 0.1, 0.3]];
    let components: Vec<(f64, Law)> = vec![
        (0.5, Arc::new(skew_gaussian())),
        (0.3, Arc::new(Gaussian::new(&[1.0, 0.5, -0.7], narrow.as_ref()).unwrap())),
        (0.2, Arc::new(Empirical::atom(&[-0.7, 1.1, 0.4]).unwrap())),
    ];
    Mixture::new(components).unwrap()
}

/// Sample mean and its standard error.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Simulated {
    pub(crate) mean: f64,
    pub(crate) standard_error: f64,
}

impl Simulated {
    pub(crate) fn of(values: &[f64]) -> Self {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
        Simulated { mean, standard_error: (variance / count).sqrt() }
    }

    /// Five standard errors: a false alarm has probability 6e-7, and the seeds are fixed.
    #[track_caller]
    pub(crate) fn agrees_with(&self, exact: f64, what: &str) {
        // Some quantities are constant at L = 1: there the error is rounding.
        let distance =
            (self.mean - exact).abs() / (self.standard_error + 1e-12 * exact.abs() + f64::MIN_POSITIVE);
        assert!(distance < 5.0, "{what}: exact {exact}, simulated {self:?}, {distance} standard errors");
    }
}

/// One prompt's squared deviations from the limit.
pub(crate) struct PromptDraw {
    pub(crate) output_offset: Vec<f64>,
    pub(crate) output: f64,
    pub(crate) score_gradient: f64,
    pub(crate) value_gradient: f64,
    pub(crate) participation: f64,
}

/// Brute force: draws prompts, runs ordinary attention on each, compares with the infinite prompt.
pub(crate) fn simulate(
    head: &Softmax,
    tokens: &dyn Measure,
    query: &[f64],
    length: usize,
    trials: u32,
) -> Vec<PromptDraw> {
    let limit = head.gradient(tokens, query).unwrap();
    let tilt = head.tilt(query).unwrap();
    let mut prompt = vec![0.0; length * tokens.dimension()];
    (0..trials)
        .map(|trial| {
            tokens.sample(&mut Stream::new(7, trial, 0), &mut prompt).unwrap();
            let drawn = Empirical::from_tokens(tokens.dimension(), &prompt).unwrap();
            let found = head.gradient(&drawn, query).unwrap();
            let output_offset = linalg::difference(&found.output, &limit.output);
            let sensitivity: Mat<f64> = &found.tilt_sensitivity - &limit.tilt_sensitivity;
            let token = linalg::difference(&found.attended_token, &limit.attended_token);
            let scores: Vec<f64> = drawn.points().map(|point| linalg::dot(&tilt, point)).collect();
            let (probabilities, _) = esscher_core::numerics::softmax(&scores);
            PromptDraw {
                output: linalg::squared_norm(&output_offset),
                score_gradient: linalg::squared_frobenius(sensitivity.as_ref()) * linalg::squared_norm(query),
                value_gradient: linalg::squared_norm(&token) * head.output_dimension() as f64,
                participation: linalg::squared_norm(&probabilities),
                output_offset,
            }
        })
        .collect()
}

/// A monitor that lets a number of looks pass and then asks to stop.
pub(crate) struct StopAfter(AtomicUsize);

impl StopAfter {
    pub(crate) fn looks(count: usize) -> Self {
        StopAfter(AtomicUsize::new(count))
    }
}

impl Monitor for StopAfter {
    fn progress(&self, _completed: usize, _total: usize) {}

    fn should_stop(&self) -> bool {
        self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_err()
    }
}
