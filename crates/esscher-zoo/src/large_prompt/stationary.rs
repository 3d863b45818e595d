//! The stationary law of what decays: with constant Λ and readout, y = Σ_j C Λʲ b_j over independent b = B u, a geometric sum.
//!
//! Mean C(I − Λ)⁻¹E b + D E u; variance Σ_{ik} C_i C_k Cov(b_i, b_k)/(1 − λ_i λ_k) for diagonal Λ; horizon 1/(1 − max |λ|).

use super::setting::{Feed, Source};
use super::{CLOSED_FORM, Draws, Limit, Setting};
use crate::dynamical_system::{SystemStep, Transition};
use crate::error::{Error, Result};
use crate::mechanism::{Given, Mechanism};
use esscher_core::Accuracy;
use esscher_core::numerics::{JointSummary, Stream, linalg};
use faer::Mat;

/// A stationary law, as far as its first two moments and its memory go.
#[derive(Debug, Clone, PartialEq)]
pub struct Stationary {
    /// E y.
    pub mean: Limit,
    /// Σ_c Var(y_c), the variance that no prompt length removes.
    pub variance: f64,
    /// 1/(1 − max |λ|), tokens after which 1/e is left of the slowest state.
    pub horizon: f64,
}

/// The stationary law of a mechanism with a diagonal realisation whose transition and readout do not depend on the token.
///
/// Exact for any token law if all ports but the input are constant (then B is, too) and the input is a projection; otherwise the moments
/// of b are sampled, and the geometric sums are still exact.
///
/// # Errors
/// A mechanism without realisation, a transition or readout that changes from token to token, or one that does not decay.
pub fn stationary(mechanism: &dyn Mechanism, setting: &Setting, draws: &Draws) -> Result<Stationary> {
    let missing = |reason| Error::Missing {
        mechanism: format!("{mechanism:?}"),
        what: "stationary law in closed form",
        reason,
    };
    let system = mechanism
        .dynamical_system()
        .ok_or_else(|| missing("it is no linear dynamical system; simulate it instead"))?;
    let signature = mechanism.signature();
    let feed = setting.feed(&signature)?;
    let parameters: Vec<&[f64]> = feed.parameters.iter().map(Vec::as_slice).collect();
    let input = system.input_port();
    let constant = feed
        .ports
        .iter()
        .enumerate()
        .all(|(port, (_, source))| port == input || matches!(source, Source::Constant(_)));
    let tokens = if constant { 3 } else { (draws.tokens * draws.prompts as usize).clamp(3, MOST_DRAWS) };

    // b_i (and u_i behind it, for the feedthrough) of every token drawn, in blocks; the first of a block may start a system.
    let mut stream = Stream::new(draws.seed, 0, 2);
    let mut law: Option<Law> = None;
    let mut seen: Option<JointSummary> = None;
    let mut drawn = 0;
    while drawn < tokens {
        let count = (tokens - drawn).clamp(3, BLOCK);
        let ports = feed.draw(count, &mut stream)?;
        let rows: Vec<&[f64]> = ports.iter().map(Vec::as_slice).collect();
        let given = Given { length: count, tokens: &rows, parameters: &parameters };
        let steps = system.realise(&given);
        for (token, step) in steps.iter().enumerate().skip(1) {
            let found = Law::of(step).ok_or_else(|| missing("its transition is not diagonal"))?;
            match &law {
                None => law = Some(found),
                Some(law) if law.same(&found) => {}
                Some(_) => return Err(missing("its transition or readout changes from token to token")),
            }
            let vector = step_vector(step, given.row(input, token));
            seen.get_or_insert_with(|| JointSummary::new(vector.len())).add(&vector)?;
        }
        drawn += count;
        if constant {
            let step = steps.last().ok_or_else(|| missing("it realises no step"))?;
            if let Some((mean, covariance)) = exact_moments(setting, &feed, input, step)? {
                let law = law.ok_or_else(|| missing("it realises no step"))?;
                return law.answer(&mean, &covariance, None, missing);
            }
            break;
        }
    }
    let (Some(law), Some(seen)) = (law, seen) else { return Err(missing("it realises no step")) };
    let Some(mean_covariance) = seen.mean_covariance() else { return Err(missing("too few draws")) };
    let count = seen.count() as f64;
    let size = seen.mean().len();
    let covariance = Mat::from_fn(size, size, |i, j| count * mean_covariance[(i, j)]);
    law.answer(seen.mean(), &covariance, Some(count), missing)
}

/// Tokens realised at once: dense matrices per token.
const BLOCK: usize = 64;

/// Draws beyond which the covariance of b is known well enough.
const MOST_DRAWS: usize = 16_384;

/// (B u, u).
fn step_vector(step: &SystemStep, input: &[f64]) -> Vec<f64> {
    let entries = step.input.chunks_exact(input.len()).map(|row| linalg::dot(row, input));
    entries.chain(input.iter().copied()).collect()
}

/// Mean and covariance of (B u, u) for a constant B and an input that is a projection (any law) or constant.
fn exact_moments(
    setting: &Setting,
    feed: &Feed,
    input: usize,
    step: &SystemStep,
) -> Result<Option<(Vec<f64>, Mat<f64>)>> {
    let (port, source) = &feed.ports[input];
    let (mean, covariance) = match source {
        Source::Function(_) => return Ok(None),
        Source::Constant(numbers) => (numbers.clone(), Mat::zeros(port.width, port.width)),
        Source::Projection(matrix) => (
            linalg::apply(matrix.as_ref(), &setting.tokens.mean()?),
            matrix * setting.tokens.covariance()? * matrix.transpose(),
        ),
    };
    let states = step.input.len() / port.width;
    let stacked = Mat::from_fn(states + port.width, port.width, |i, j| {
        if i < states { step.input[i * port.width + j] } else { f64::from(u8::from(i - states == j)) }
    });
    let covariance = &stacked * covariance * stacked.transpose();
    Ok(Some((linalg::apply(stacked.as_ref(), &mean), covariance)))
}

/// The part of a system that must not change: diagonal, readout, feedthrough.
struct Law {
    decays: Vec<f64>,
    readout: Vec<f64>,
    feedthrough: Vec<f64>,
}

impl Law {
    fn of(step: &SystemStep) -> Option<Self> {
        let Transition::Diagonal(decays) = &step.transition else { return None };
        Some(Law {
            decays: decays.clone(),
            readout: step.readout.clone(),
            feedthrough: step.feedthrough.clone(),
        })
    }

    fn same(&self, other: &Law) -> bool {
        let close = |a: &[f64], b: &[f64]| {
            a.len() == b.len() && a.iter().zip(b).all(|(x, y)| (x - y).abs() <= 1e-12 * x.abs().max(y.abs()))
        };
        close(&self.decays, &other.decays)
            && close(&self.readout, &other.readout)
            && close(&self.feedthrough, &other.feedthrough)
    }

    /// Moments of y from those of (b, u).
    fn answer(
        &self,
        mean: &[f64],
        covariance: &Mat<f64>,
        draws: Option<f64>,
        missing: impl Fn(&'static str) -> Error,
    ) -> Result<Stationary> {
        let slowest = self.decays.iter().fold(0.0, |largest: f64, decay| largest.max(decay.abs()));
        if slowest >= 1.0 {
            return Err(missing("a state does not decay"));
        }
        let states = self.decays.len();
        let inputs = mean.len() - states;
        let mut value = Vec::new();
        let (mut variance, mut squared_error) = (0.0, 0.0);
        for (c, readout) in self.readout.chunks_exact(states.max(1)).enumerate() {
            let direct =
                if self.feedthrough.is_empty() { &[][..] } else { &self.feedthrough[c * inputs..][..inputs] };
            // y = ⟨summed, (b, u)⟩ in mean; the same functional bounds the error of a sampled mean.
            let summed: Vec<f64> = readout
                .iter()
                .zip(&self.decays)
                .map(|(readout, decay)| readout / (1.0 - decay))
                .chain(direct.iter().copied())
                .collect();
            value.push(linalg::dot(&summed, &mean[..summed.len()]));
            if let Some(draws) = draws {
                for (i, a) in summed.iter().enumerate() {
                    for (k, b) in summed.iter().enumerate() {
                        squared_error += a * b * covariance[(i, k)] / draws;
                    }
                }
            }
            for i in 0..states {
                for k in 0..states {
                    variance += readout[i] * readout[k] * covariance[(i, k)]
                        / (1.0 - self.decays[i] * self.decays[k]);
                }
                // The feedthrough sees the newest token only.
                for (k, d) in direct.iter().enumerate() {
                    variance += 2.0 * readout[i] * d * covariance[(i, states + k)];
                }
            }
            for (i, a) in direct.iter().enumerate() {
                for (k, b) in direct.iter().enumerate() {
                    variance += a * b * covariance[(states + i, states + k)];
                }
            }
        }
        let accuracy = match draws {
            None => Accuracy::Exact { tolerance: CLOSED_FORM },
            Some(_) => Accuracy::Sampled { standard_error: squared_error.max(0.0).sqrt() },
        };
        Ok(Stationary { mean: Limit { value, accuracy }, variance, horizon: 1.0 / (1.0 - slowest) })
    }
}
