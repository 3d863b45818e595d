//! Risk and its gradient for any task and layer, by simulation in units that can run anywhere in any order.
//!
//! A unit is a pure function of its number and units are folded in the order of their numbers: any number of threads
//! and any interruption give the same bits, on one [`InstructionSet`].

use super::RegressionLayer;
use super::attend::Workspace;
use super::tasks::{PromptDraw, Task, check_prompt};
use crate::error::{Error, Result};
use crate::monitor::{Completion, Monitor};
use crate::numerics::statistics::Summary;
use crate::numerics::{InstructionSet, Stream, check};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How to simulate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RiskOptions {
    /// Number of independent prompts.
    pub prompts: u32,
    /// Whether to estimate the gradient too.
    pub gradient: bool,
    /// Which prompts. Prompts of one seed are the same for every layer, and prefixes of each other over the lengths.
    pub seed: u64,
    /// Instructions of the inner loop; part of the identity of the result.
    pub instruction_set: InstructionSet,
}

impl Default for RiskOptions {
    fn default() -> Self {
        RiskOptions { prompts: 10_000, gradient: false, seed: 0, instruction_set: InstructionSet::best() }
    }
}

/// The risk ½ E (prediction − target)² of a layer on a task at one prompt length, to be simulated.
///
/// ```
/// use esscher_core::regression::tasks::LinearTask;
/// use esscher_core::regression::{AttentionKind, LinearRegression, RegressionHead, RegressionLayer};
/// use esscher_core::regression::{RiskOptions, RiskSimulation};
/// use esscher_core::{Unwatched, mat};
/// use std::sync::Arc;
///
/// let task = Arc::new(LinearTask::gaussian(&LinearRegression::isotropic(1)?)?);
/// let head = RegressionHead::block(mat![[0.0]].as_ref(), 0.0)?; // predicts zero
/// let layer = RegressionLayer::heads(AttentionKind::Softmax, &[head])?;
/// let risk = RiskSimulation::new(task, layer, 10, RiskOptions::default())?.finish(&Unwatched)?.risk;
/// assert!((risk.mean().unwrap() - 0.5).abs() < 5.0 * risk.standard_error().unwrap()); // ½ E ⟨w, x_q⟩²
/// # Ok::<(), esscher_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct RiskSimulation {
    task: Arc<dyn Task>,
    layer: RegressionLayer,
    length: usize,
    options: RiskOptions,
}

/// What one unit, or several folded together, has found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SimulatedRisk {
    /// ½ (prediction − target)², over prompts.
    pub risk: Summary,
    /// (prediction − target) ∂prediction/∂parameter, over prompts; empty unless asked for.
    pub gradient: GradientMoments,
}

impl SimulatedRisk {
    fn merge(&mut self, other: &SimulatedRisk) -> Result<()> {
        self.risk.merge(&other.risk);
        self.gradient.merge(&other.gradient)
    }
}

/// Mean and spread of every entry of a gradient over prompts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GradientMoments {
    count: u64,
    mean: Vec<f64>,
    /// Σ (x − mean)².
    second: Vec<f64>,
}

impl GradientMoments {
    /// Number of prompts.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The estimated gradient.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// The standard error of each entry, if there are two prompts.
    pub fn standard_error(&self) -> Option<Vec<f64>> {
        let count = self.count as f64;
        (self.count > 1).then(|| self.second.iter().map(|sum| (sum / (count - 1.0) / count).sqrt()).collect())
    }

    fn add(&mut self, value: &[f64]) {
        if self.count == 0 {
            self.mean.resize(value.len(), 0.0);
            self.second.resize(value.len(), 0.0);
        }
        self.count += 1;
        let share = (self.count as f64).recip();
        for ((mean, second), value) in self.mean.iter_mut().zip(&mut self.second).zip(value) {
            let gap = value - *mean;
            *mean += share * gap;
            *second += gap * (value - *mean);
        }
    }

    fn merge(&mut self, other: &GradientMoments) -> Result<()> {
        if self.count == 0 {
            self.clone_from(other);
            return Ok(());
        }
        if other.count == 0 {
            return Ok(());
        }
        check::size("a unit of the simulation (gradient)", self.mean.len(), other.mean.len())?;
        let (here, there) = (self.count as f64, other.count as f64);
        let share = there / (here + there);
        for (index, (mean, second)) in self.mean.iter_mut().zip(&mut self.second).enumerate() {
            let gap = other.mean[index] - *mean;
            *mean += share * gap;
            *second += other.second[index] + gap * gap * here * share;
        }
        self.count += other.count;
        Ok(())
    }
}

/// Finished units by number: what a stopped call has, what a resumed one starts from.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RiskUnits {
    /// The finished units.
    pub units: BTreeMap<u32, SimulatedRisk>,
}

/// Tokens worth a unit; units of short prompts hold many.
const TOKENS_PER_UNIT: usize = 1 << 17;

/// Numbers of a unit beside its gradient, at least.
const NUMBERS_PER_UNIT: u64 = 32;

/// Numbers in stored units at most: two gigabytes.
const LARGEST_UNITS: u64 = 1 << 28;

/// Simulation has prompts of its own, which no descent of the same seed has trained on.
const RISK_STREAM: u64 = 0x5249_534B_5F50_524D;

impl RiskSimulation {
    /// Checks the request.
    ///
    /// # Errors
    /// A layer of another dimension than the task, no prompts, a length of zero or one too long to store.
    pub fn new(
        task: Arc<dyn Task>,
        layer: RegressionLayer,
        length: usize,
        options: RiskOptions,
    ) -> Result<Self> {
        check_prompt(task.dimension(), length)?;
        check::size("the layer (dimension)", task.dimension(), layer.dimension())?;
        check::at_least_one("the number of prompts", options.prompts as usize)?;
        Ok(RiskSimulation { task, layer, length, options })
    }

    fn prompts_per_unit(&self) -> u32 {
        (TOKENS_PER_UNIT / self.length).clamp(1, 1024) as u32
    }

    /// Number of units of the whole simulation.
    pub fn units(&self) -> u32 {
        self.options.prompts.div_ceil(self.prompts_per_unit())
    }

    /// Simulates one unit, on any machine.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if there is no such unit, [`Error::Overflow`] where a prediction or its square exceeds
    /// double precision, what the task refuses.
    pub fn run_unit(&self, unit: u32) -> Result<SimulatedRisk> {
        if unit >= self.units() {
            return Err(Error::OutOfRange {
                what: "the unit of a simulation",
                value: f64::from(unit),
                expected: "a number below the number of units",
            });
        }
        let first = unit * self.prompts_per_unit();
        let last = first.saturating_add(self.prompts_per_unit()).min(self.options.prompts);
        let (mut prompt, mut workspace) = (PromptDraw::new(), Workspace::default());
        let mut effective = vec![0.0; self.layer.effective_length()];
        let mut gradient = vec![0.0; self.layer.parameters().len()];
        let mut found = SimulatedRisk::default();
        let set = self.options.instruction_set;
        for index in first..last {
            let mut stream = Stream::new(self.options.seed ^ RISK_STREAM, index, 0).with_instruction_set(set);
            self.task.draw(self.length, &mut stream, &mut prompt)?;
            check::size("the drawn prompt (dimension)", self.layer.dimension(), prompt.dimension())?;
            let prediction = if self.options.gradient {
                self.layer.forward_with_gradient(&prompt, set, &mut workspace, &mut effective)
            } else {
                self.layer.forward(&prompt, set, &mut workspace)
            };
            let residual = prediction - prompt.target();
            found.risk.add(check::finite_number("the risk of a prompt", 0.5 * residual * residual)?);
            if self.options.gradient {
                effective.iter_mut().for_each(|entry| *entry *= residual);
                self.layer.pull_back(&effective, &mut gradient);
                if !gradient.iter().all(|entry| entry.is_finite()) {
                    return Err(Error::Overflow { what: "the gradient of the risk of a prompt" });
                }
                found.gradient.add(&gradient);
            }
        }
        Ok(found)
    }

    /// Simulates the units that are not in `done` and adds them to it, until finished or stopped.
    ///
    /// # Errors
    /// As [`Self::run_unit`]; [`Error::OutOfRange`] if all units together would hold more than 2²⁸ numbers, two
    /// gigabytes: [`Self::finish`] keeps none of them.
    pub fn run(&self, done: &mut RiskUnits, monitor: &dyn Monitor) -> Result<Completion> {
        let gradient = if self.options.gradient { 2 * self.layer.parameters().len() } else { 0 };
        let numbers = u64::from(self.units()) * (gradient as u64).saturating_add(NUMBERS_PER_UNIT);
        if numbers > LARGEST_UNITS {
            return Err(Error::OutOfRange {
                what: "the numbers in all units of a simulation",
                value: numbers as f64,
                expected: "at most 2²⁸; take fewer prompts, or finish in one call, which keeps no units",
            });
        }
        let before: Vec<u32> = done.units.range(..self.units()).map(|(&unit, _)| unit).collect();
        let missing = (0..self.units()).filter(|unit| before.binary_search(unit).is_err());
        self.run_units(before.len(), missing, monitor, |unit, found| {
            done.units.insert(unit, found);
            Ok(())
        })
    }

    /// Simulates units and hands them on in order, a few at a time, until none is left or the monitor stops it.
    fn run_units(
        &self,
        before: usize,
        mut missing: impl Iterator<Item = u32>,
        monitor: &dyn Monitor,
        mut take: impl FnMut(u32, SimulatedRisk) -> Result<()>,
    ) -> Result<Completion> {
        let total = self.units() as usize;
        let mut completed = before;
        loop {
            let step: Vec<u32> = missing.by_ref().take(rayon::current_num_threads().max(1)).collect();
            if step.is_empty() {
                return Ok(Completion::Finished);
            }
            if monitor.should_stop() {
                return Ok(Completion::Stopped { completed, total });
            }
            let finished: Vec<SimulatedRisk> =
                step.par_iter().map(|&unit| self.run_unit(unit)).collect::<Result<_>>()?;
            completed += step.len();
            step.into_iter().zip(finished).try_for_each(|(unit, found)| take(unit, found))?;
            monitor.progress(completed, total);
        }
    }

    /// Folds finished units in the order of their numbers; counts say how many prompts there are.
    ///
    /// # Errors
    /// [`Error::Size`] if a unit has a gradient of another size: it belongs to another simulation.
    pub fn fold(&self, done: &RiskUnits) -> Result<SimulatedRisk> {
        let mut total = SimulatedRisk::default();
        done.units.values().try_for_each(|unit| total.merge(unit))?;
        Ok(total)
    }

    /// Everything in one call that keeps no units; if the monitor stops it, what has been simulated by then.
    ///
    /// # Errors
    /// As [`Self::run_unit`].
    pub fn finish(&self, monitor: &dyn Monitor) -> Result<SimulatedRisk> {
        let mut total = SimulatedRisk::default();
        self.run_units(0, 0..self.units(), monitor, |_, found| total.merge(&found))?;
        Ok(total)
    }
}
