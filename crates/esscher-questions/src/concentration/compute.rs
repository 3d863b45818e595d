//! One unit for an exact average over the queries, units of about a second for a simulation; merged into errors and rates.

use super::answer::{self, Row, Statistic};
use super::ask::Engines;
use super::states::{self, UnitNumber};
use super::{Ask, describe, rates};
use crate::Planned;
use crate::asking::{self, ScaledLaw};
use crate::question::{Failure, Given, Mistake, Monitor, Plan, Section, Unit};
use esscher_core::concentration::{Concentration, Engine, Study, StudyRow};
use esscher_core::measure::Law;
use esscher_core::prompt::{PromptLength, QueryAverage, SampleOptions, SampledPrompts, rate_exponent};
use esscher_core::{Completion, Error, Estimate, Mat, Quantity, Unwatched};
use esscher_lab::{Record, Table, TableError};
use std::ops::Range;

pub(super) struct ConcentrationPlan {
    quantities: Vec<Quantity>,
    rates: rates::Fit,
    cases: Vec<Case>,
}

/// One law at one scale by one engine.
struct Case {
    law: ScaledLaw,
    operator_norm: f64,
    /// The exponent that theory gives to output and value gradient, where it gives one.
    exponent: Option<f64>,
    setting: Concentration,
    work: Work,
}

enum Work {
    Exact {
        average: QueryAverage,
        cost: f64,
    },
    /// Units of the simulation in groups, with the seconds of one unit.
    Sampled {
        options: SampleOptions,
        simulation: Box<SampledPrompts>,
        groups: Vec<Range<u32>>,
        per_unit: f64,
    },
}

pub(super) fn plan(ask: Ask, section: &mut Section, given: Given) -> Result<ConcentrationPlan, Mistake> {
    let mut quantities = ask.quantities;
    quantities.sort_by_key(|quantity| *quantity as u8);
    quantities.dedup();
    let fit_from = section.accept("fit_from", PromptLength::new(ask.fit_from))?;
    let average = QueryAverage {
        directions: ask.exact.directions as u32,
        randomisations: ask.exact.randomisations as u32,
        seed: given.seed,
    };
    asking::check_directions(section, "exact", &average, ask.queries.dimension())?;
    let options = SampleOptions {
        trials: ask.sampled.trials as u32,
        queries: ask.sampled.queries as u32,
        precision: ask.sampled.precision,
        score_gradient: quantities.contains(&Quantity::ScoreGradient),
        seed: given.seed,
        instruction_set: given.instruction_set,
    };
    let longest = ask.sampled.longest;
    let short: Vec<PromptLength> =
        ask.lengths.iter().copied().filter(|length| length.get() <= longest).collect();
    let mut cases = Vec::new();
    for law in ScaledLaw::all(section, &ask.laws, &ask.sigmas)? {
        let is_exact = law.tokens.as_gaussian_mixture().is_some();
        let (exact, sampled) = match ask.engine {
            Engines::Exact => (true, false),
            Engines::Sampled => (false, true),
            Engines::Best => (is_exact, !is_exact),
            Engines::Both => (is_exact, true),
        };
        if exact && !is_exact {
            let message = format!(
                "\"{}\" has no exact theory of finite prompts; use \"sampled\" or \"best\"",
                law.name
            );
            return Err(section.mistake("engine", message));
        }
        if sampled && short.is_empty() {
            let message =
                format!("all are above `sampled.longest` = {longest}; add a shorter length, or raise it");
            return Err(section.mistake("lengths", message));
        }
        for (is_exact, lengths) in
            [exact.then_some((true, &ask.lengths)), sampled.then_some((false, &short))].into_iter().flatten()
        {
            let setting =
                Concentration::new(ask.head.clone(), law.tokens.clone(), ask.queries.clone(), lengths);
            let setting = section.accept("lengths", setting)?;
            let operator_norm = section.accept("head", setting.operator_norm())?;
            let work = if is_exact {
                Work::Exact { average, cost: exact_cost(&law.tokens, average, lengths.len()) }
            } else {
                let simulation = section.accept("sampled", setting.simulation(options))?;
                let (units, count) = (f64::from(simulation.units()), lengths.len() as f64);
                if units * count * count > LARGEST_JOINT_ERRORS {
                    let message = format!(
                        "the joint errors of {units} simulated units at {count} lengths do not fit into memory; ask for \
                         fewer trials or fewer lengths"
                    );
                    return Err(section.mistake("sampled", message));
                }
                Work::sampled(simulation, options, &law)
            };
            let exponent = section.accept("head", exponent(&law.tokens, &ask.queries, operator_norm))?;
            cases.push(Case { law: law.clone(), operator_norm, exponent, setting, work });
        }
    }
    let rates = rates::Fit { from: fit_from, level: ask.level };
    Ok(ConcentrationPlan { quantities, rates, cases })
}

/// κ(H) for Gaussian tokens and queries.
fn exponent(tokens: &Law, queries: &Law, operator_norm: f64) -> esscher_core::Result<Option<f64>> {
    let is_one = |law: &Law| law.as_gaussian_mixture().is_some_and(|components| components.len() == 1);
    if is_one(tokens) && is_one(queries) { rate_exponent(operator_norm).map(Some) } else { Ok(None) }
}

/// Seconds that an exact average takes, roughly.
fn exact_cost(tokens: &Law, average: QueryAverage, lengths: usize) -> f64 {
    let components = tokens.as_gaussian_mixture().map_or(1, |components| components.len());
    let queries = f64::from(average.directions) * f64::from(average.randomisations);
    let dimension = tokens.dimension() as f64;
    if components == 1 {
        0.2 + 5e-5 * queries + 0.02 * lengths as f64
    } else {
        let per_query = 1e-2 * components as f64 * (1.0 + 0.2 * dimension.powi(4) / 16.0);
        per_query * queries * 40.0
    }
}

/// Numbers in the joint errors of all simulated units, about: 8 GB for each quantity.
const LARGEST_JOINT_ERRORS: f64 = 2e9;

/// Seconds that a unit of the run should take.
const UNIT_SECONDS: f64 = 1.0;

impl Work {
    /// Units of the simulation in groups of about a second: fixed by the request, not by the machine.
    fn sampled(simulation: SampledPrompts, options: SampleOptions, law: &ScaledLaw) -> Self {
        let longest = simulation.lengths().last().map_or(1.0, |length| length.as_f64());
        let queries = f64::from(options.queries.max(20));
        let dimension = law.tokens.dimension() as f64;
        let order = if options.score_gradient { 1.0 + 0.5 * dimension } else { 1.0 };
        let per_token = 20e-9 * dimension + 3e-9 * queries * (1.0 + 0.2 * dimension) * order;
        let per_trial = longest * per_token + 2e-6 * queries * simulation.lengths().len() as f64;
        let count = simulation.units();
        let per_unit = per_trial * f64::from(options.trials) / f64::from(count.max(1));
        let size = (UNIT_SECONDS / per_unit).clamp(1.0, f64::from(count.max(1))) as u32;
        let groups = (0..count).step_by(size as usize).map(|start| start..(start + size).min(count));
        let groups = groups.collect();
        Work::Sampled { options, simulation: Box::new(simulation), groups, per_unit }
    }
}

// Units are tables of other rows than the answer, so that merging them is left to this question.
impl Plan for ConcentrationPlan {
    fn units(&self) -> Vec<Unit> {
        self.cases.iter().flat_map(Case::units).collect()
    }

    fn unit_count(&self) -> usize {
        self.cases.iter().map(Case::unit_count).sum()
    }

    fn run_unit(&self, mut unit: usize, monitor: &dyn Monitor) -> Result<Option<Table>, Failure> {
        for case in &self.cases {
            if unit < case.unit_count() {
                return case.run(unit, &self.quantities, monitor);
            }
            unit -= case.unit_count();
        }
        Err("there is no such unit".into())
    }

    fn merge(&self, units: Vec<Table>) -> Result<Table, Failure> {
        let mut rows = Vec::new();
        let mut units = units.into_iter();
        for case in &self.cases {
            let mine: Vec<Table> = units.by_ref().take(case.unit_count()).collect();
            rows.extend(self.rows(case, &mine)?);
        }
        Ok(Table::of(&rows)?)
    }

    fn sections(&self, result: &Table) -> Result<Vec<esscher_report::Section>, Failure> {
        Ok(describe::sections(&result.read::<Row>()?))
    }
}

impl ConcentrationPlan {
    /// All rows of a case: errors, slopes, the fitted rate.
    fn rows(&self, case: &Case, units: &[Table]) -> Result<Vec<Row>, Failure> {
        let (mut errors, study) = match &case.work {
            Work::Exact { .. } => (read_all(units)?, None),
            Work::Sampled { options, simulation, .. } => {
                let study = case.simulated(*options, simulation, units)?;
                (case.errors(&self.quantities, &study), Some(study))
            }
        };
        let mut rows = Vec::new();
        for &quantity in &self.quantities {
            let mine = errors.extract_if(.., |row: &mut Row| row.quantity == quantity).collect();
            let covariance = study.as_ref().and_then(|study| study.log_covariance(quantity));
            rows.extend(self.rates.with_rates(mine, case.exponent, covariance)?);
        }
        Ok(rows)
    }
}

/// What fits of the first law need beyond the rows of the answer, from the tables of the units: Cov(ln vᵢ, ln vⱼ) over
/// the simulated lengths with the number of trials; nothing of exact errors.
///
/// # Errors
/// Another question, tables of another experiment.
pub fn log_covariances(
    planned: &Planned,
    units: &[Table],
) -> Result<Vec<(Quantity, Mat<f64>, u64)>, Failure> {
    let plan: &ConcentrationPlan = planned.plan_of()?;
    let Some(case) = plan.cases.first() else { return Ok(Vec::new()) };
    let Work::Sampled { options, simulation, groups, .. } = &case.work else { return Ok(Vec::new()) };
    let study = case.simulated(*options, simulation, &units[..groups.len().min(units.len())])?;
    let joint = |&quantity: &Quantity| {
        study.log_covariance(quantity).map(|(covariance, trials)| (quantity, covariance, trials))
    };
    Ok(plan.quantities.iter().filter_map(joint).collect())
}

/// The rows of several tables.
fn read_all<R: Record>(tables: &[Table]) -> Result<Vec<R>, TableError> {
    let read: Vec<Vec<R>> = tables.iter().map(Table::read).collect::<Result<_, _>>()?;
    Ok(read.into_iter().flatten().collect())
}

impl Case {
    fn unit_count(&self) -> usize {
        match &self.work {
            Work::Exact { .. } => 1,
            Work::Sampled { groups, .. } => groups.len(),
        }
    }

    fn units(&self) -> Vec<Unit> {
        let law = self.law.label();
        match &self.work {
            Work::Exact { cost, .. } => vec![Unit { label: format!("{law}: exact"), cost: *cost }],
            Work::Sampled { groups, per_unit, .. } => {
                let unit = |group: &Range<u32>| Unit {
                    label: format!("{law}: simulated units {} to {}", group.start + 1, group.end),
                    cost: per_unit * group.len() as f64,
                };
                groups.iter().map(unit).collect()
            }
        }
    }

    fn run(
        &self,
        part: usize,
        quantities: &[Quantity],
        monitor: &dyn Monitor,
    ) -> Result<Option<Table>, Failure> {
        match &self.work {
            Work::Exact { average, .. } => {
                // Only what is asked for: the others may be beyond the doubles.
                let score_gradient = quantities.contains(&Quantity::ScoreGradient);
                let measured = SampleOptions { score_gradient, ..SampleOptions::default() };
                let study = self.setting.run(Engine::Best(*average, measured), monitor)?;
                if study.completion != Completion::Finished {
                    return Ok(None);
                }
                Ok(Some(Table::of(&self.errors(quantities, &study))?))
            }
            Work::Sampled { simulation, groups, .. } => {
                let mut numbers = Vec::new();
                for number in groups[part].clone() {
                    let Some(found) = simulation.run_unit(number, monitor)? else { return Ok(None) };
                    numbers.extend(states::encode(number, &found));
                }
                if numbers.iter().any(|one| !one.number.is_finite()) {
                    return Err(Error::Overflow { what: "the spread of the simulated errors" }.into());
                }
                Ok(Some(Table::of(&numbers)?))
            }
        }
    }

    /// The study whose simulation is in these tables.
    fn simulated(
        &self,
        options: SampleOptions,
        simulation: &SampledPrompts,
        units: &[Table],
    ) -> Result<Study, Failure> {
        let done = states::read(simulation, &read_all::<UnitNumber>(units)?)?;
        Ok(self.setting.resume(options, done, &Unwatched)?)
    }

    /// The errors of a study, with a note where they rest on few trials.
    fn errors(&self, quantities: &[Quantity], study: &Study) -> Vec<Row> {
        let error = |quantity: Quantity, row: &StudyRow| {
            let note = study.note(row.length, quantity);
            let Estimate { value, error, accuracy } = row.errors[quantity]?;
            let engine = match self.work {
                Work::Exact { .. } => answer::Engine::Exact,
                Work::Sampled { .. } => answer::Engine::Sampled,
            };
            Some(Row {
                law: self.law.name.clone(),
                sigma: self.law.sigma,
                operator_norm: self.operator_norm,
                sub_gaussian: self.law.tokens.sub_gaussian().map(|found| found.parameter),
                engine,
                quantity,
                statistic: Statistic::Error,
                from_length: None,
                length: row.length.get(),
                value: Some(value),
                error: Some(error),
                lower: None,
                upper: None,
                accuracy,
                theory: None,
                note,
            })
        };
        let of = |&quantity: &Quantity| study.rows.iter().filter_map(move |row| error(quantity, row));
        quantities.iter().flat_map(of).collect()
    }
}
