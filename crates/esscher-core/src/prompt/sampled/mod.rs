//! Finite prompts by simulation: any token law, streamed, in work units that can run anywhere in any order.
//!
//! A *trial* is one prompt, read by a fresh set of queries; every requested length is a prefix of it. The
//! trials are cut into *units* that depend on the request only. A unit is a pure function of its number, and
//! units are folded in the order of their numbers: any number of threads, any split over machines and any
//! interruption give the same bits, on one [`InstructionSet`].

mod identity;
mod queries;
mod reading;
mod units;

pub use identity::SampleIdentity;
pub use units::{SampledLength, SampledUnit, SampledUnits};

use super::{PromptLength, Softmax};
use crate::attention::Attention;
use crate::error::{Error, Result};
use crate::measure::{Law, Measure};
use crate::monitor::{Completion, Monitor};
use crate::numerics::softmax_sums::{Order, StripSums};
use crate::numerics::statistics::Summary;
use crate::numerics::{InstructionSet, JointSummary, Real, Stream, check, linalg};
use crate::quantity::{PerQuantity, Quantity};
use faer::Mat;
use identity::{Digest, check_same};
use queries::{Design, is_point};
use rayon::prelude::*;
use reading::{TokenStream, Watch};

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
    /// Number of independent prompts, from 1 to 2²⁴.
    pub trials: u32,
    /// Queries that read each prompt, at most 2²⁰: exactly this many for laws without radial form; for radial laws
    /// (and mixtures of Gaussians whose radius nodes fit) about as many nodes of a randomly shifted radius rule, each
    /// with a random direction, but at least some ten to thirty; one for a point.
    pub queries: u32,
    /// Whether to measure the error of the gradient in U, which costs about d/2 times as much.
    pub score_gradient: bool,
    /// The seed of the prompts and their queries.
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

impl SampleOptions {
    /// Whether the error of this quantity is measured.
    pub fn measures(&self, quantity: Quantity) -> bool {
        self.score_gradient || quantity != Quantity::ScoreGradient
    }

    fn quantities(&self) -> impl Iterator<Item = Quantity> {
        let options = *self;
        Quantity::ALL.into_iter().filter(move |&quantity| options.measures(quantity))
    }

    fn check(&self) -> Result<()> {
        for (what, value, most, expected) in [
            ("the number of trials", self.trials, 1 << 24, "a whole number from 1 to 16777216"),
            ("the number of queries", self.queries, 1 << 20, "a whole number from 1 to 1048576"),
        ] {
            if !(1..=most).contains(&value) {
                return Err(Error::OutOfRange { what, value: f64::from(value), expected });
            }
        }
        Ok(())
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
    identity: SampleIdentity,
    /// The mean of the token law, from which tokens are measured.
    centre: Vec<f64>,
}

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
        options.check()?;
        let mut lengths = lengths.to_vec();
        lengths.sort_unstable();
        lengths.dedup();
        let design = Design::new(queries.as_ref(), options.queries);
        let digest = Digest::of(head, tokens.as_ref(), queries.as_ref(), &lengths);
        let identity = SampleIdentity { options, digest };
        let centre = tokens.mean()?;
        check_squares(head, tokens.as_ref(), queries.as_ref(), options)?;
        Ok(SampledPrompts { head: head.clone(), tokens, queries, design, lengths, options, identity, centre })
    }

    /// What the units of this simulation are known by.
    pub fn identity(&self) -> SampleIdentity {
        self.identity
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

    /// The trials of a unit.
    fn trials_of(&self, unit: u32) -> std::ops::Range<u32> {
        let first = unit.saturating_mul(self.trials_per_unit()).min(self.options.trials);
        first..first.saturating_add(self.trials_per_unit()).min(self.options.trials)
    }

    /// Simulates one unit, on any machine; nothing if the monitor asks to stop before it is finished.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if there is no such unit; what the token law or its log-partition refuses.
    pub fn run_unit(&self, unit: u32, monitor: &dyn Monitor) -> Result<Option<SampledUnit>> {
        self.check_number(unit)?;
        match self.options.precision {
            Precision::Double => self.run_trials::<f64>(unit, monitor),
            Precision::Single => self.run_trials::<f32>(unit, monitor),
        }
    }

    fn check_number(&self, unit: u32) -> Result<()> {
        if unit < self.units() {
            return Ok(());
        }
        Err(Error::OutOfRange {
            what: "the unit of a simulation",
            value: f64::from(unit),
            expected: "a number below the number of units",
        })
    }

    /// Whether these are units of this simulation.
    fn check_units(&self, done: &SampledUnits) -> Result<()> {
        for (&number, unit) in &done.units {
            self.check_number(number)?;
            check_same(self.identity, unit.identity)?;
            check::size("a unit of the simulation (lengths)", self.lengths.len(), unit.lengths.len())?;
            let trials = self.trials_of(number).len();
            let expected = |quantity| if self.options.measures(quantity) { trials } else { 0 };
            for (length, found) in self.lengths.iter().zip(&unit.lengths) {
                check::size(
                    "a length of a unit of the simulation",
                    length.get() as usize,
                    found.length.get() as usize,
                )?;
                for quantity in Quantity::ALL {
                    let count = found.errors[quantity].count() as usize;
                    check::size("a unit of the simulation (trials)", expected(quantity), count)?;
                }
            }
            for quantity in Quantity::ALL {
                let count = unit.joint[quantity].count() as usize;
                check::size("a unit of the simulation (joint trials)", expected(quantity), count)?;
            }
        }
        Ok(())
    }

    /// Simulates the units that are not in `done` and adds them to it, until finished or stopped.
    ///
    /// Starting from an empty [`SampledUnits`] runs everything, starting from a saved one resumes.
    ///
    /// # Errors
    /// Units in `done` that are not of this simulation, and as [`Self::run_unit`].
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
        self.check_units(done)?;
        let mine: Vec<u32> = (0..self.units()).filter(|unit| unit % count == index).collect();
        let total = mine.len();
        let missing: Vec<u32> = mine.into_iter().filter(|unit| !done.units.contains_key(unit)).collect();
        let mut completed = total - missing.len();
        for step in missing.chunks(rayon::current_num_threads().max(1)) {
            if monitor.should_stop() {
                return Ok(Completion::Stopped { completed, total });
            }
            let finished: Vec<(u32, Option<SampledUnit>)> = step
                .par_iter()
                .map(|&unit| Ok((unit, self.run_unit(unit, monitor)?)))
                .collect::<Result<_>>()?;
            let before = done.units.len();
            done.units.extend(finished.into_iter().filter_map(|(number, unit)| Some((number, unit?))));
            let new = done.units.len() - before;
            completed += new;
            if new < step.len() {
                return Ok(Completion::Stopped { completed, total });
            }
            monitor.progress(completed, total);
        }
        Ok(Completion::Finished)
    }

    /// Folds finished units in the order of their numbers: one entry per length.
    ///
    /// Works on any subset of the units; the counts of the summaries say how many trials there are.
    ///
    /// # Errors
    /// [`Error::OtherSimulation`], [`Error::OutOfRange`] or [`Error::Size`] if a unit belongs to another simulation: its
    /// identity, its number, its lengths or its number of trials.
    pub fn fold(&self, done: &SampledUnits) -> Result<SampledUnit> {
        self.check_units(done)?;
        let mut total = self.empty();
        for unit in done.units.values() {
            for quantity in Quantity::ALL {
                for (total, part) in total.lengths.iter_mut().zip(&unit.lengths) {
                    total.errors[quantity].merge(&part.errors[quantity]);
                }
                total.joint[quantity].merge(&unit.joint[quantity])?;
            }
        }
        Ok(total)
    }

    fn empty(&self) -> SampledUnit {
        let lengths = self
            .lengths
            .iter()
            .map(|&length| SampledLength { length, errors: PerQuantity::from_fn(|_| Summary::new()) })
            .collect();
        let joint = PerQuantity::from_fn(|_| JointSummary::new(self.lengths.len()));
        SampledUnit { identity: self.identity, lengths, joint }
    }

    fn run_trials<T: Real>(&self, unit: u32, monitor: &dyn Monitor) -> Result<Option<SampledUnit>> {
        let mut total = self.empty();
        let mut watch = Watch { monitor, scores: 0 };
        for trial in self.trials_of(unit) {
            let queries = self.queries_of(trial)?;
            let limits: Vec<Limit> =
                queries.iter().map(|(_, query)| self.limit(query)).collect::<Result<_>>()?;
            let tilts: Vec<f64> = limits.iter().flat_map(|limit| limit.tilt.iter().copied()).collect();
            let order = if self.options.score_gradient { Order::Second } else { Order::First };
            let mut sums = StripSums::<T>::new(&self.centre, &tilts, order, self.options.instruction_set);
            let mut prompt = TokenStream::new(self, trial);
            let mut errors = PerQuantity::<Vec<f64>>::default();
            for (&length, summary) in self.lengths.iter().zip(&mut total.lengths) {
                let finished = prompt
                    .read_until(length.get(), &mut sums, |tokens| watch.goes_on(tokens, queries.len()))?;
                if !finished {
                    return Ok(None);
                }
                let found = self.measure(&queries, &limits, &sums)?;
                for quantity in self.options.quantities() {
                    summary.errors[quantity].add(found[quantity]);
                    errors[quantity].push(found[quantity]);
                }
            }
            for quantity in self.options.quantities() {
                total.joint[quantity].add(&errors[quantity])?;
            }
        }
        Ok(Some(total))
    }

    /// The weighted queries of a trial.
    fn queries_of(&self, trial: u32) -> Result<Vec<(f64, Vec<f64>)>> {
        let mut stream = Stream::new(self.options.seed ^ QUERY_STREAM, trial, 0)
            .with_instruction_set(self.options.instruction_set);
        match &self.design {
            Design::Radial { parts, refinement } => {
                let mut queries = Vec::new();
                for (share, radial) in parts {
                    if is_point(radial) {
                        queries.push((*share, radial.centre.clone()));
                        continue;
                    }
                    let fraction = stream.uniform();
                    let mut normals = vec![0.0; radial.root.ncols()];
                    for (radius, weight) in radial.radius.shifted_quadrature(*refinement, fraction) {
                        stream.fill_normals(&mut normals);
                        let norm = linalg::norm(&normals).max(f64::MIN_POSITIVE);
                        let direction = linalg::apply(radial.root.as_ref(), &normals);
                        let mut query = radial.centre.clone();
                        linalg::add_scaled(&mut query, radius / norm, &direction);
                        queries.push((share * weight, query));
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
        let mean = linalg::difference(&self.tokens.tilted_mean(&tilt)?, &self.centre);
        let covariance = if self.options.score_gradient {
            let covariance = self.tokens.tilted_covariance(&tilt)?;
            (0..tilt.len()).flat_map(|i| (0..=i).map(|j| covariance[(i, j)]).collect::<Vec<_>>()).collect()
        } else {
            Vec::new()
        };
        Ok(Limit { tilt, mean, covariance })
    }

    /// One trial's errors at one length.
    fn measure<T: Real>(
        &self,
        queries: &[(f64, Vec<f64>)],
        limits: &[Limit],
        sums: &StripSums<T>,
    ) -> Result<PerQuantity<f64>> {
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
        Ok(PerQuantity { output, score_gradient: score, value_gradient: value })
    }
}

/// The deviations of the coordinates of a law whose tokens are to be drawn; none where the law does not tell.
///
/// # Errors
/// [`Error::OutOfRange`] where tokens lie so far from the origin that rounding them takes away how they differ, and
/// [`Error::Underflow`] where their squares vanish.
pub fn deviations_of_draws(tokens: &dyn Measure) -> Result<Option<Vec<f64>>> {
    /// Of a deviation, that rounding may change a drawn token by: far below what a simulation resolves.
    const LOST: f64 = 1e-3;
    let Some(deviations) = deviations(tokens)? else { return Ok(None) };
    for (mean, deviation) in tokens.mean()?.iter().zip(&deviations) {
        if *deviation > 0.0 && mean.abs() * f64::EPSILON > LOST * deviation {
            return Err(Error::OutOfRange {
                what: "the mean of a simulated token",
                value: *mean,
                expected: "at most 4.5e12 of its standard deviations; move the tokens towards the origin",
            });
        }
    }
    Ok(Some(deviations))
}

fn deviations(law: &dyn Measure) -> Result<Option<Vec<f64>>> {
    match law.covariance() {
        Ok(found) => Ok(Some((0..found.nrows()).map(|i| found[(i, i)].max(0.0).sqrt()).collect())),
        Err(error @ Error::Underflow { .. }) => Err(error),
        Err(_) => Ok(None),
    }
}

/// Whether the squares of simulated errors, and the squares of those in their standard errors, are doubles.
///
/// # Errors
/// [`Error::Underflow`]; what is too large shows itself when it is simulated.
fn check_squares(
    head: &Softmax,
    tokens: &dyn Measure,
    queries: &dyn Measure,
    options: SampleOptions,
) -> Result<()> {
    /// Fourth powers of smaller sizes, beside a thousandth of them, leave the doubles.
    const SMALLEST: f64 = 1e-72;
    /// The same of squares in single precision.
    const SMALLEST_SINGLE: f64 = 1e-17;
    let Some(token) = deviations_of_draws(tokens)? else { return Ok(()) };
    let scaled = Mat::from_fn(head.output_dimension(), token.len(), |i, j| head.value()[(i, j)] * token[j]);
    let (output, token) = (check::largest_entry(scaled.as_ref()), linalg::largest(&token));
    if options.precision == Precision::Single && token > 0.0 && token < SMALLEST_SINGLE {
        let expected = "at least 1e-17 in single precision; simulate smaller tokens in double precision";
        return Err(Error::OutOfRange { what: "the standard deviation of a token", value: token, expected });
    }
    let mut sizes = vec![vec![output], vec![token]];
    if options.score_gradient {
        let query = deviations(queries)?.map_or(0.0, |query| linalg::largest(&query));
        let query = queries.mean().map_or(query, |mean| linalg::largest(&mean).max(query));
        sizes.push(vec![output, token, query]);
    }
    for factors in sizes {
        if factors.iter().all(|factor| *factor > 0.0) && factors.iter().product::<f64>() < SMALLEST {
            return Err(Error::Underflow { what: "a simulated error" });
        }
    }
    Ok(())
}

/// Tilt, tilted mean minus the centre, and lower triangle of the tilted covariance at one query.
struct Limit {
    tilt: Vec<f64>,
    mean: Vec<f64>,
    covariance: Vec<f64>,
}
