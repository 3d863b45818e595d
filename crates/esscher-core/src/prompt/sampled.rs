//! Finite prompts by simulation: any token law, streamed, in work units that can run anywhere in any order.
//!
//! A *trial* is one prompt, read by a fresh set of queries; every requested length is a prefix of it. The
//! trials are cut into *units* that depend on the request only. A unit is a pure function of its number, and
//! units are folded in the order of their numbers: any number of threads, any split over machines and any
//! interruption give the same bits, on one [`InstructionSet`].

use super::kernel::{BLOCK, Order, PromptSums};
use super::{PromptLength, Softmax};
use crate::attention::Attention;
use crate::error::{Error, Result};
use crate::measure::{Law, Measure, Radial, radial_parts};
use crate::monitor::{Completion, Monitor};
use crate::numerics::statistics::Summary;
use crate::numerics::{InstructionSet, JointSummary, Real, Stream, check, linalg};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// The floating-point type of the streaming kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// f64 throughout.
    Double,
    /// Scores, exponentials and the sums of a block of 128 tokens in f32; the same tokens, and totals in f64.
    Single,
}

/// What to simulate, and how.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SampleOptions {
    /// Number of independent prompts.
    pub trials: u32,
    /// Queries that read each prompt: exactly this many for laws without radial form; for radial laws (and mixtures
    /// of Gaussians whose radius nodes fit) as many random directions for each radius node as fit, at least one.
    pub queries: u32,
    /// Whether to measure the error of the gradient in U, which costs about d/2 times as much.
    pub score_gradient: bool,
    /// Which prompts.
    pub seed: u64,
    /// Floating-point type of the kernel.
    pub precision: Precision,
    /// Instructions of the kernel; part of the identity of the result.
    pub instruction_set: InstructionSet,
}

impl Default for SampleOptions {
    fn default() -> Self {
        SampleOptions {
            trials: 256,
            queries: 64,
            score_gradient: true,
            seed: 0,
            precision: Precision::Double,
            instruction_set: InstructionSet::best(),
        }
    }
}

/// Prompts of one law, read by one head at queries of one law, to be simulated.
#[derive(Debug, Clone)]
pub struct SampledPrompts {
    head: Softmax,
    tokens: Law,
    queries: Law,
    design: Design,
    lengths: Vec<PromptLength>,
    options: SampleOptions,
}

/// Simulated errors at one length, each a [`Summary`] over trials of the average over queries.
#[derive(Debug, Clone, PartialEq)]
pub struct SampledLength {
    /// L.
    pub length: PromptLength,
    /// |T_L − T|².
    pub output_error: Summary,
    /// ‖∂T_L/∂U − ∂T/∂U‖²; empty unless asked for.
    pub score_gradient_error: Summary,
    /// ‖∂T_L/∂V − ∂T/∂V‖².
    pub value_gradient_error: Summary,
}

/// What one unit, or several folded together, contributes.
#[derive(Debug, Clone, PartialEq)]
pub struct SampledUnit {
    /// For every length in order.
    pub lengths: Vec<SampledLength>,
    /// Joint laws over the lengths, which are prefixes of the same prompts: the rate fits need them.
    pub joint: JointErrors,
}

/// Mean and covariance over trials of the vector of errors at all lengths.
#[derive(Debug, Clone, PartialEq)]
pub struct JointErrors {
    /// |T_L − T|².
    pub output: JointSummary,
    /// ‖∂T_L/∂U − ∂T/∂U‖²; empty unless asked for.
    pub score_gradient: JointSummary,
    /// ‖∂T_L/∂V − ∂T/∂V‖².
    pub value_gradient: JointSummary,
}

/// Finished units by number: what a stopped call returns, what shards hand over, what is merged.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SampledUnits {
    /// The finished units.
    pub units: BTreeMap<u32, SampledUnit>,
}

/// How the queries of a trial are chosen.
#[derive(Debug, Clone)]
enum Design {
    /// Radial parts, of each some radius nodes with weights, for each some random directions: the heavy tail is in
    /// the radius.
    Radial { parts: Vec<(Radial, Vec<(f64, f64)>)>, directions: u32 },
    /// Independent draws.
    Drawn,
}

impl Design {
    fn new(law: &dyn Measure, queries: u32) -> Self {
        let Some(parts) = radial_parts(law) else {
            return Design::Drawn;
        };
        let parts: Vec<(Radial, Vec<(f64, f64)>)> = parts
            .into_iter()
            .map(|(share, radial)| {
                let radii = radial.radius.quadrature_level(0).into_iter();
                let radii = radii.map(|(radius, weight)| (radius, share * weight)).collect();
                (radial, radii)
            })
            .collect();
        let nodes: usize = parts.iter().map(|(_, radii)| radii.len()).sum();
        if parts.len() > 1 && nodes > queries as usize {
            return Design::Drawn;
        }
        Design::Radial { parts, directions: (queries / nodes as u32).max(1) }
    }
}

/// Tokens drawn from one address of the random stream.
const TOKENS_PER_STREAM: u64 = 8 * BLOCK as u64;

/// Tokens worth a unit: units of short prompts hold several trials.
const TOKENS_PER_UNIT: u64 = 1 << 17;

/// Queries come from a stream of their own, so that the tokens do not depend on them.
const QUERY_STREAM: u64 = 0x5155_4552_4945_5331;

impl SampledPrompts {
    /// Checks the request; lengths are sorted and made unique.
    pub fn new(
        head: &Softmax,
        tokens: Law,
        queries: Law,
        lengths: &[PromptLength],
        options: SampleOptions,
    ) -> Result<Self> {
        check::size("tokens (dimension)", head.token_dimension(), tokens.dimension())?;
        check::size("queries (dimension)", head.query_dimension(), queries.dimension())?;
        check::not_empty("the list of lengths", lengths.len())?;
        check::not_empty("the number of trials", options.trials as usize)?;
        check::not_empty("the number of queries", options.queries as usize)?;
        let mut lengths = lengths.to_vec();
        lengths.sort_unstable();
        lengths.dedup();
        let design = Design::new(queries.as_ref(), options.queries);
        Ok(SampledPrompts { head: head.clone(), tokens, queries, design, lengths, options })
    }

    /// The lengths, sorted.
    pub fn lengths(&self) -> &[PromptLength] {
        &self.lengths
    }

    /// How it is simulated.
    pub fn options(&self) -> &SampleOptions {
        &self.options
    }

    /// Trials of a unit: fixed by the longest prompt, not by the machine.
    fn trials_per_unit(&self) -> u32 {
        let longest = self.lengths.last().map_or(1, |length| length.get());
        (TOKENS_PER_UNIT / longest).clamp(1, 64) as u32
    }

    /// Number of units of the whole simulation.
    pub fn units(&self) -> u32 {
        self.options.trials.div_ceil(self.trials_per_unit())
    }

    /// Simulates one unit, on any machine.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if there is no such unit; what the token law or its log-partition refuses.
    pub fn run_unit(&self, unit: u32) -> Result<SampledUnit> {
        if unit >= self.units() {
            return Err(Error::OutOfRange {
                what: "the unit of a simulation",
                value: f64::from(unit),
                expected: "a number below the number of units",
            });
        }
        match self.options.precision {
            Precision::Double => self.run_trials::<f64>(unit),
            Precision::Single => self.run_trials::<f32>(unit),
        }
    }

    /// Simulates the units that are not in `done` and adds them to it, until finished or stopped.
    ///
    /// Starting from an empty [`SampledUnits`] runs everything, starting from a saved one resumes.
    pub fn run(&self, done: &mut SampledUnits, monitor: &dyn Monitor) -> Result<Completion> {
        self.run_share(0, 1, done, monitor)
    }

    /// The same for share `index` of `count` shares: unit numbers ≡ index modulo count.
    pub fn run_share(
        &self,
        index: u32,
        count: u32,
        done: &mut SampledUnits,
        monitor: &dyn Monitor,
    ) -> Result<Completion> {
        if index >= count {
            return Err(Error::OutOfRange {
                what: "the index of the share",
                value: f64::from(index),
                expected: "a number below the number of shares",
            });
        }
        let mine: Vec<u32> = (0..self.units()).filter(|unit| unit % count == index).collect();
        let total = mine.len();
        let missing: Vec<u32> = mine.into_iter().filter(|unit| !done.units.contains_key(unit)).collect();
        let mut completed = total - missing.len();
        for step in missing.chunks(rayon::current_num_threads().max(1)) {
            if monitor.should_stop() {
                return Ok(Completion::Stopped { completed, total });
            }
            let finished: Vec<(u32, SampledUnit)> =
                step.par_iter().map(|&unit| Ok((unit, self.run_unit(unit)?))).collect::<Result<_>>()?;
            done.units.extend(finished);
            completed += step.len();
            monitor.progress(completed, total);
        }
        Ok(Completion::Finished)
    }

    /// Folds finished units in the order of their numbers: one entry per length.
    ///
    /// Works on any subset of the units; the counts of the summaries say how many trials there are.
    ///
    /// # Errors
    /// [`Error::Size`] if a unit has another number of lengths: it belongs to another simulation.
    pub fn fold(&self, done: &SampledUnits) -> Result<SampledUnit> {
        let mut total = self.empty();
        for unit in done.units.values() {
            check::size("a unit of the simulation (lengths)", total.lengths.len(), unit.lengths.len())?;
            for (total, part) in total.lengths.iter_mut().zip(&unit.lengths) {
                total.output_error.merge(&part.output_error);
                total.score_gradient_error.merge(&part.score_gradient_error);
                total.value_gradient_error.merge(&part.value_gradient_error);
            }
            total.joint.output.merge(&unit.joint.output)?;
            total.joint.score_gradient.merge(&unit.joint.score_gradient)?;
            total.joint.value_gradient.merge(&unit.joint.value_gradient)?;
        }
        Ok(total)
    }

    fn empty(&self) -> SampledUnit {
        let joint = JointSummary::new(self.lengths.len());
        let lengths = self
            .lengths
            .iter()
            .map(|&length| SampledLength {
                length,
                output_error: Summary::new(),
                score_gradient_error: Summary::new(),
                value_gradient_error: Summary::new(),
            })
            .collect();
        let joint =
            JointErrors { output: joint.clone(), score_gradient: joint.clone(), value_gradient: joint };
        SampledUnit { lengths, joint }
    }

    fn run_trials<T: Real>(&self, unit: u32) -> Result<SampledUnit> {
        let first = unit * self.trials_per_unit();
        let last = (first + self.trials_per_unit()).min(self.options.trials);
        let mut total = self.empty();
        for trial in first..last {
            let queries = self.queries_of(trial)?;
            let limits: Vec<Limit> =
                queries.iter().map(|(_, query)| self.limit(query)).collect::<Result<_>>()?;
            let tilts: Vec<f64> = limits.iter().flat_map(|limit| limit.tilt.iter().copied()).collect();
            let order = if self.options.score_gradient { Order::Second } else { Order::First };
            let mut sums =
                PromptSums::<T>::new(self.tokens.dimension(), &tilts, order, self.options.instruction_set);
            let mut prompt = TokenStream::new(self, trial);
            let mut errors = [const { Vec::new() }; 3];
            for (&length, summary) in self.lengths.iter().zip(&mut total.lengths) {
                prompt.read_until(length.get(), &mut sums)?;
                let [output, score_gradient, value_gradient] = self.measure(&queries, &limits, &sums)?;
                summary.output_error.add(output);
                summary.value_gradient_error.add(value_gradient);
                if self.options.score_gradient {
                    summary.score_gradient_error.add(score_gradient);
                }
                errors[0].push(output);
                errors[1].push(score_gradient);
                errors[2].push(value_gradient);
            }
            total.joint.output.add(&errors[0])?;
            if self.options.score_gradient {
                total.joint.score_gradient.add(&errors[1])?;
            }
            total.joint.value_gradient.add(&errors[2])?;
        }
        Ok(total)
    }

    /// The weighted queries of a trial.
    fn queries_of(&self, trial: u32) -> Result<Vec<(f64, Vec<f64>)>> {
        let mut stream = Stream::new(self.options.seed ^ QUERY_STREAM, trial, 0)
            .with_instruction_set(self.options.instruction_set);
        match &self.design {
            Design::Radial { parts, directions } => {
                let mut queries = Vec::new();
                for (radial, radii) in parts {
                    let mut normals = vec![0.0; radial.root.ncols()];
                    for &(radius, weight) in radii {
                        for _ in 0..*directions {
                            stream.fill_normals(&mut normals);
                            let norm = linalg::norm(&normals).max(f64::MIN_POSITIVE);
                            let direction = linalg::apply(radial.root.as_ref(), &normals);
                            let mut query = radial.centre.clone();
                            linalg::add_scaled(&mut query, radius / norm, &direction);
                            queries.push((weight / f64::from(*directions), query));
                        }
                    }
                }
                Ok(queries)
            }
            Design::Drawn => {
                let dimension = self.queries.dimension();
                let mut drawn = vec![0.0; self.options.queries as usize * dimension];
                self.queries.sample(&mut stream, &mut drawn)?;
                let weight = 1.0 / f64::from(self.options.queries);
                Ok(drawn.chunks_exact(dimension).map(|query| (weight, query.to_vec())).collect())
            }
        }
    }

    /// The infinite prompt at one query.
    fn limit(&self, query: &[f64]) -> Result<Limit> {
        let tilt = self.head.tilt(query)?;
        let mean = self.tokens.tilted_mean(&tilt)?;
        let covariance = if self.options.score_gradient {
            let covariance = self.tokens.tilted_covariance(&tilt)?;
            (0..tilt.len()).flat_map(|i| (0..=i).map(|j| covariance[(i, j)]).collect::<Vec<_>>()).collect()
        } else {
            Vec::new()
        };
        Ok(Limit { tilt, mean, covariance })
    }

    /// One trial's errors at one length: output, gradient in U, gradient in V.
    fn measure<T: Real>(
        &self,
        queries: &[(f64, Vec<f64>)],
        limits: &[Limit],
        sums: &PromptSums<T>,
    ) -> Result<[f64; 3]> {
        let dimension = self.tokens.dimension();
        let (mut output, mut value, mut score) = (0.0, 0.0, 0.0);
        let mut mean = vec![0.0; dimension];
        let mut covariance = vec![0.0; dimension * (dimension + 1) / 2];
        let mut gap = vec![0.0; dimension];
        for (index, ((weight, query), limit)) in queries.iter().zip(limits).enumerate() {
            sums.mean(index, &mut mean);
            let offset = linalg::difference(&mean, &limit.mean);
            output += weight * linalg::squared_norm(&linalg::apply(self.head.value(), &offset));
            value += weight * self.head.output_dimension() as f64 * linalg::squared_norm(&offset);
            if self.options.score_gradient {
                sums.covariance(index, &mean, &mut covariance);
                let mut squares = 0.0;
                for column in 0..dimension {
                    for (row, entry) in gap.iter_mut().enumerate() {
                        let (i, j) = (row.max(column), row.min(column));
                        let place = i * (i + 1) / 2 + j;
                        *entry = covariance[place] - limit.covariance[place];
                    }
                    squares += linalg::squared_norm(&linalg::apply(self.head.value(), &gap));
                }
                score += weight * squares * linalg::squared_norm(query);
            }
        }
        check::finite_vector("the simulated errors", &[output, score, value])
            .map_err(|_| Error::Overflow { what: "a simulated error" })?;
        Ok([output, score, value])
    }
}

impl SampledUnits {
    /// Adds the units of another share or machine.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if a unit is in both and its bits differ: the two come from different simulations or
    /// instruction sets.
    pub fn merge(&mut self, other: SampledUnits) -> Result<()> {
        for (number, unit) in other.units {
            match self.units.get(&number) {
                Some(mine) if *mine != unit => {
                    return Err(Error::OutOfRange {
                        what: "a unit that is in both parts but differs, unit",
                        value: f64::from(number),
                        expected: "units of one simulation on one instruction set",
                    });
                }
                _ => {
                    self.units.insert(number, unit);
                }
            }
        }
        Ok(())
    }
}

/// Tilt, tilted mean and lower triangle of the tilted covariance at one query.
struct Limit {
    tilt: Vec<f64>,
    mean: Vec<f64>,
    covariance: Vec<f64>,
}

/// One trial's prompt, drawn stream by stream as it is read.
struct TokenStream<'a> {
    prompts: &'a SampledPrompts,
    trial: u32,
    position: u64,
    tokens: Vec<f64>,
}

impl<'a> TokenStream<'a> {
    fn new(prompts: &'a SampledPrompts, trial: u32) -> Self {
        TokenStream { prompts, trial, position: 0, tokens: Vec::new() }
    }

    /// Feeds the tokens up to number `end` into the sums.
    fn read_until<T: Real>(&mut self, end: u64, sums: &mut PromptSums<T>) -> Result<()> {
        let dimension = self.prompts.tokens.dimension();
        while self.position < end {
            let (stream, inside) = (self.position / TOKENS_PER_STREAM, self.position % TOKENS_PER_STREAM);
            if inside == 0 {
                self.tokens.resize(TOKENS_PER_STREAM as usize * dimension, 0.0);
                let options = &self.prompts.options;
                let mut numbers = Stream::new(options.seed, self.trial, stream as u32)
                    .with_instruction_set(options.instruction_set);
                self.prompts.tokens.sample(&mut numbers, &mut self.tokens)?;
            }
            let count = (TOKENS_PER_STREAM - inside).min(end - self.position);
            let start = inside as usize * dimension;
            sums.add(&self.tokens[start..start + count as usize * dimension]);
            self.position += count;
        }
        Ok(())
    }
}
