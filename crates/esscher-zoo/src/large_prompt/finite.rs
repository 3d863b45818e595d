//! Prompts of finite length, simulated: mean output, its variance, and the mean squared distance to a limit, at several lengths.
//!
//! A trial is one prompt, and its prefixes serve all lengths. Trials are pure functions of their number, folded in order: the result
//! does not depend on the number of threads. Tokens are drawn with portable instructions and absorbed by the recurrent form.

use super::setting::{Feed, Setting};
use crate::error::{Error, Result};
use crate::mechanism::{Definition, Given, Mechanism};
use esscher_core::concentration::{Dependence, RateFit, RatePoint, rate_fit};
use esscher_core::numerics::statistics::Summary;
use esscher_core::numerics::{JointSummary, Stream, linalg};
use esscher_core::prompt::{PromptLength, deviations_of_draws};
use esscher_core::{Estimate, Monitor};
use faer::Mat;
use rayon::prelude::*;

/// Which prompts to simulate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trials {
    /// Prompt lengths, at least 1.
    pub lengths: Vec<usize>,
    /// Independent prompts, at least 2.
    pub trials: u32,
    /// The seed that prompts are drawn from.
    pub seed: u64,
}

/// What is looked at after L tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// The output.
    Output,
    /// The output over L.
    PerToken,
}

/// What prompts of one length give.
#[derive(Debug, Clone, PartialEq)]
pub struct AtLength {
    /// Tokens of each prompt, L.
    pub length: usize,
    /// The mean over prompts, per coordinate.
    pub mean: Vec<f64>,
    /// Standard errors of the mean, per coordinate.
    pub standard_error: Vec<f64>,
    /// Σ_c Var(o_c), the variance over prompts.
    pub variance: Estimate,
    /// E |o − limit|², if a limit was given.
    pub squared_distance: Option<Estimate>,
}

/// What prompts of all lengths give.
#[derive(Debug, Clone)]
pub struct Finite {
    /// For every length, in increasing order.
    pub lengths: Vec<AtLength>,
    /// Joint law over the lengths of |o − limit|² (or of |o − mean|² without a limit): they share their prompts.
    pub joint: JointSummary,
}

impl Finite {
    /// κ of E |o − limit|² ≈ c L^{−κ} (of the variance, if no limit was given), with the dependence of the lengths accounted for.
    ///
    /// # Errors
    /// Fewer than two lengths with a positive error.
    pub fn rate(&self) -> Result<RateFit> {
        let estimate = |at: &AtLength| at.squared_distance.unwrap_or(at.variance);
        let points = self
            .lengths
            .iter()
            .map(|at| Ok(RatePoint::new(PromptLength::new(at.length as u64)?, estimate(at))))
            .collect::<Result<Vec<_>>>()?;
        let means = self.joint.mean();
        let log_covariance = self.joint.mean_covariance().map(|covariance| {
            Mat::from_fn(means.len(), means.len(), |i, j| covariance[(i, j)] / (means[i] * means[j]))
        });
        let dependence = match &log_covariance {
            Some(covariance) if means.iter().all(|&mean| mean > 0.0) => Dependence::EstimatedLogCovariance {
                covariance: covariance.as_ref(),
                draws: self.joint.count(),
            },
            _ => Dependence::Independent,
        };
        Ok(rate_fit(&points, dependence, 0.95)?)
    }
}

/// Tokens drawn at once.
const BLOCK: usize = 256;

/// Absorbs one prompt and reads it at the given increasing lengths; rows of readings, one per length.
pub(super) fn read_prompt(
    mechanism: &dyn Mechanism,
    feed: &Feed,
    lengths: &[usize],
    stream: &mut Stream,
) -> Result<Vec<Vec<f64>>> {
    let width = mechanism.signature().output;
    let longest = lengths.last().copied().unwrap_or(0);
    let parameters: Vec<&[f64]> = feed.parameters.iter().map(Vec::as_slice).collect();
    let mut state = Definition::<f64>::init(mechanism);
    let mut readings = Vec::with_capacity(lengths.len());
    let mut absorbed = 0;
    while absorbed < longest {
        // Always whole blocks: a prompt's tokens must not depend on the longest length asked for.
        let ports = feed.draw(BLOCK, stream)?;
        let given_ports: Vec<&[f64]> = ports.iter().map(Vec::as_slice).collect();
        let block = Given { length: BLOCK, tokens: &given_ports, parameters: &parameters };
        let mut rows: Vec<&[f64]> = Vec::with_capacity(ports.len());
        for token in 0..BLOCK.min(longest - absorbed) {
            rows.clear();
            rows.extend((0..ports.len()).map(|port| block.row(port, token)));
            let one = Given { length: 1, tokens: &rows, parameters: &parameters };
            mechanism.absorb(&one, &mut state);
            for _ in lengths.iter().filter(|&&length| length == absorbed + token + 1) {
                let mut output = vec![0.0; width];
                mechanism.read(&one, state.view(), &mut output);
                readings.push(output);
            }
        }
        absorbed += BLOCK.min(longest - absorbed);
    }
    Ok(readings)
}

/// Simulates prompts; `limit` is what readings are compared with, if anything. Nothing if the monitor asked to stop.
///
/// # Errors
/// No or zero lengths, fewer than two trials, a limit of the wrong width, or a setting that does not fit the mechanism.
pub fn finite(
    mechanism: &dyn Mechanism,
    setting: &Setting,
    trials: &Trials,
    reading: Reading,
    limit: Option<&[f64]>,
    monitor: &dyn Monitor,
) -> Result<Option<Finite>> {
    let signature = mechanism.signature();
    let mut lengths = trials.lengths.clone();
    lengths.sort_unstable();
    lengths.dedup();
    let refuse = |name, expected: &str, found: String| {
        Err(Error::Option { name, expected: expected.to_string(), found })
    };
    if lengths.first().is_none_or(|&shortest| shortest == 0) {
        return refuse("lengths", "at least one, each at least 1", format!("{lengths:?}"));
    }
    if trials.trials < 2 {
        return refuse("trials", "at least 2", trials.trials.to_string());
    }
    check_amount("lengths", lengths.last().copied().unwrap_or_default(), trials.trials)?;
    if let Some(limit) = limit
        && limit.len() != signature.output
    {
        return Err(Error::Size { name: "limit", expected: signature.output, found: limit.len() });
    }
    let feed = setting.feed(&signature)?;
    deviations_of_draws(setting.tokens.as_ref())?;
    let readings: Vec<Option<Vec<Vec<f64>>>> = (0..trials.trials)
        .into_par_iter()
        .map(|trial| {
            if monitor.should_stop() {
                return Ok(None);
            }
            let mut stream = Stream::new(trials.seed, trial, 0);
            let mut readings = read_prompt(mechanism, &feed, &lengths, &mut stream)?;
            if reading == Reading::PerToken {
                for (output, &length) in readings.iter_mut().zip(&lengths) {
                    output.iter_mut().for_each(|entry| *entry /= length as f64);
                }
            }
            Ok(Some(readings))
        })
        .collect::<Result<_>>()?;
    let readings: Option<Vec<Vec<Vec<f64>>>> = readings.into_iter().collect();
    readings.map(|readings| summarise(&lengths, signature.output, &readings, limit)).transpose()
}

fn summarise(
    lengths: &[usize],
    width: usize,
    readings: &[Vec<Vec<f64>>],
    limit: Option<&[f64]>,
) -> Result<Finite> {
    let count = readings.len() as f64;
    let finite = |value: Option<f64>| {
        value.ok_or(Error::Core(esscher_core::Error::Overflow { what: "an output of a simulated prompt" }))
    };
    let mut centres = Vec::with_capacity(lengths.len());
    let mut at_lengths = Vec::with_capacity(lengths.len());
    for (index, &length) in lengths.iter().enumerate() {
        let outputs = || readings.iter().map(|trial| &trial[index]);
        let coordinates: Vec<Summary> = (0..width)
            .map(|c| {
                let mut summary = Summary::new();
                outputs().for_each(|output| summary.add(output[c]));
                summary
            })
            .collect();
        let mean = coordinates.iter().map(|one| finite(one.mean())).collect::<Result<Vec<f64>>>()?;
        let standard_error =
            coordinates.iter().map(|one| finite(one.standard_error())).collect::<Result<Vec<f64>>>()?;
        let around = |centre: &[f64]| {
            let mut summary = Summary::new();
            outputs()
                .for_each(|output| summary.add(linalg::squared_norm(&linalg::difference(output, centre))));
            summary
        };
        let spread = around(&mean);
        // Unbiased: squares around the sample mean are n/(n − 1) too small.
        let factor = count / (count - 1.0);
        let variance =
            Estimate::sampled(factor * finite(spread.mean())?, factor * finite(spread.standard_error())?);
        let squared_distance = match limit {
            None => None,
            Some(limit) => {
                let distance = around(limit);
                Some(Estimate::sampled(finite(distance.mean())?, finite(distance.standard_error())?))
            }
        };
        centres.push(limit.map_or_else(|| mean.clone(), <[f64]>::to_vec));
        at_lengths.push(AtLength { length, mean, standard_error, variance, squared_distance });
    }
    check_squares(readings, &centres)?;
    let mut joint = JointSummary::new(lengths.len());
    for trial in readings {
        let errors: Vec<f64> = trial
            .iter()
            .zip(&centres)
            .map(|(output, centre)| linalg::squared_norm(&linalg::difference(output, centre)))
            .collect();
        joint.add(&errors)?;
    }
    Ok(Finite { lengths: at_lengths, joint })
}

/// Whether somebody would wait for so many tokens of all prompts together.
pub(super) fn check_amount(name: &'static str, tokens: usize, prompts: u32) -> Result<()> {
    /// Days, at a hundred nanoseconds each.
    const MOST_TOKENS: u64 = 1_000_000_000_000;
    if (tokens as u64).saturating_mul(u64::from(prompts)) <= MOST_TOKENS {
        return Ok(());
    }
    let (expected, found) = ("at most 10¹² tokens in all prompts together", format!("{prompts} of {tokens}"));
    Err(Error::Option { name, expected: expected.to_string(), found })
}

/// Whether the squares of the distances, and the squares of those in their standard errors, are doubles.
fn check_squares(readings: &[Vec<Vec<f64>>], centres: &[Vec<f64>]) -> Result<()> {
    /// Fourth powers of smaller distances, beside a thousandth of them, leave the doubles.
    const SMALLEST: f64 = 1e-72;
    let distances = readings.iter().flat_map(|trial| trial.iter().zip(centres));
    let farthest = distances
        .map(|(output, centre)| linalg::largest(&linalg::difference(output, centre)))
        .fold(0.0, f64::max);
    if farthest > 0.0 && farthest < SMALLEST {
        return Err(Error::Core(esscher_core::Error::Underflow { what: "the spread of simulated outputs" }));
    }
    Ok(())
}
