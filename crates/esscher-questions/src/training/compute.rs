//! A unit is one flow: one law of covariates, task, model, length and set of draws.

use super::answer::{self, Row};
use super::ask::{Model, Sampling};
use super::{Ask, describe};
use crate::asking::Covariates;
use crate::measured::length_name;
use crate::planned::MOST_UNITS;
use crate::question::{Compute, Failure, Given, Mistake, Monitor, Section, Unit};
use crate::tabulating::distinct;
use esscher_core::prompt::PromptLength;
use esscher_core::regression::Method;

pub(super) struct Training {
    pub(super) ask: Ask,
    pub(super) sampling: Sampling,
    pub(super) times: Vec<f64>,
    pub(super) seed: u64,
    jobs: Vec<Job>,
}

/// One unit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Job {
    pub(super) covariates: Covariates,
    pub(super) task: usize,
    pub(super) model: Model,
    pub(super) length: Option<PromptLength>,
    pub(super) draw: Option<u32>,
}

pub(super) fn plan(mut ask: Ask, section: &mut Section, given: Given) -> Result<Training, Mistake> {
    ask.models = distinct(ask.models);
    ask.task.covariates = distinct(ask.task.covariates);
    if let Some(sampling) = &ask.sampling {
        for model in [Model::Linear, Model::OppositeHeads] {
            if ask.models.contains(&model) {
                let message = format!(
                    "\"{model}\" is computed for Gaussian covariates only; leave out this model, or the covariates that are not Gaussian"
                );
                return Err(section.mistake("models", message));
            }
        }
        if let Some(longest) = ask.lengths.iter().flatten().last()
            && sampling.prompts.saturating_mul(longest.get()) > 1 << 27
        {
            let message = format!(
                "{} prompts of {longest} covariates are too many to draw; with covariates that are not Gaussian, prompts \
                 times the longest length is at most 134217728: use fewer prompts or shorter lengths",
                sampling.prompts
            );
            return Err(section.mistake("lengths", message));
        }
    }
    let sampling = ask.sampling.take().unwrap_or(Sampling { prompts: 0, draws: 0 });
    check_units(section, &ask, &sampling)?;
    let (rows, end_time) = (ask.rows as usize, ask.end_time);
    let time = |row| {
        if row == rows { end_time } else { (row as f64 / rows as f64 * end_time.ln_1p()).exp_m1() }
    };
    let (times, jobs) = ((1..=rows).map(time).collect(), jobs(&ask, &sampling));
    Ok(Training { ask, sampling, times, seed: given.seed, jobs })
}

/// Counted before they are listed: a slip of a zero must not fill the memory.
fn check_units(section: &mut Section, ask: &Ask, sampling: &Sampling) -> Result<(), Mistake> {
    let lengths = ask.lengths.as_ref().map_or(0, Vec::len);
    let infinite = usize::from(ask.models.contains(&Model::Infinite));
    let flows = (ask.models.len() - infinite).saturating_mul(lengths).saturating_add(infinite);
    let draws = |covariates: &Covariates| match covariates {
        Covariates::Gaussian => 1,
        _ => sampling.draws as usize,
    };
    let repeats: usize = ask.task.covariates.iter().map(draws).sum();
    let units = flows.saturating_mul(repeats).saturating_mul(ask.task.tasks.0.len());
    if units <= MOST_UNITS {
        return Ok(());
    }
    let key = if ask.lengths.is_some() { "lengths" } else { "models" };
    let message = format!(
        "this asks for {units} flows, at most {MOST_UNITS} are planned; use fewer lengths, models, dimensions, covariates or draws"
    );
    Err(section.mistake(key, message))
}

fn jobs(ask: &Ask, sampling: &Sampling) -> Vec<Job> {
    let mut jobs = Vec::new();
    for &covariates in &ask.task.covariates {
        let draws: Vec<Option<u32>> = match covariates {
            Covariates::Gaussian => vec![None],
            _ => (0..sampling.draws as u32).map(Some).collect(),
        };
        for task in 0..ask.task.tasks.0.len() {
            for &model in &ask.models {
                let lengths: Vec<Option<PromptLength>> = match model {
                    Model::Infinite => vec![None],
                    _ => ask.lengths.iter().flatten().copied().map(Some).collect(),
                };
                for length in lengths {
                    jobs.extend(draws.iter().map(|&draw| Job { covariates, task, model, length, draw }));
                }
            }
        }
    }
    jobs
}

impl Compute for Training {
    type Row = Row;

    fn unit_count(&self) -> usize {
        self.jobs.len()
    }

    fn units(&self) -> Vec<Unit> {
        self.jobs
            .iter()
            .map(|job| {
                let dimension = self.ask.task.tasks.0[job.task].dimension();
                let length = length_name(job.length.map(|length| length.get() as i64));
                let mut label = format!("{}, d = {dimension}, {length}", job.model);
                let cost = match job.draw {
                    None if job.model == Model::Infinite || job.model == Model::Linear => 0.02,
                    // Two flows of some hundred steps, and the tables of a length; a drift takes longer.
                    None => {
                        let flows = if self.ask.method == Method::Explicit { 1.0 } else { 3.0 };
                        flows + self.ask.initial.seconds_of_tables()
                    }
                    Some(draw) => {
                        label = format!("{}, {label}, draw {}", job.covariates, draw + 1);
                        let tokens = job.length.map_or(1.0, PromptLength::as_f64);
                        // Some 1,500 evaluations of all draws.
                        3e-6 * self.sampling.prompts as f64 * tokens * (dimension as f64).powi(2)
                    }
                };
                Unit { label, cost }
            })
            .collect()
    }

    fn run_unit(&self, unit: usize, monitor: &dyn Monitor) -> Result<Option<Vec<Row>>, Failure> {
        let job = &self.jobs[unit];
        match job.draw {
            None => self.run_exact(job, monitor),
            Some(draw) => self.run_drawn(job, draw, monitor),
        }
    }

    fn merge(&self, units: Vec<Vec<Row>>) -> Result<Vec<Row>, Failure> {
        Ok(answer::summarised(units.into_iter().flatten().collect()))
    }

    fn describe(&self, rows: &[Row]) -> Result<Vec<esscher_report::Section>, Failure> {
        describe::sections(self, rows)
    }
}
