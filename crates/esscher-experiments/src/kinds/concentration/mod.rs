//! Concentration: how fast finite prompts approach their limit, by exact integrals and by simulation.

pub(crate) mod drawing;
pub(crate) mod findings;
mod states;

use super::{Kind, Plan};
use crate::measured::{Class, Measured};
use crate::reading;
use esscher_core::concentration::{
    Concentration, Dependence, Engine, Quantity, RatePoint, Study, StudyRow, local_slopes, rate_fit,
};
use esscher_core::measure::Law;
use esscher_core::numerics::InstructionSet;
use esscher_core::prompt::{PromptLength, QueryAverage, SampleOptions, SampledPrompts, rate_exponent};
use esscher_core::softmax_weights::MomentTable;
use esscher_core::{Completion, Error, Mat, Monitor, Unwatched};
use esscher_lab::specification::{Bounds, Mistake, Section};
use esscher_lab::{Column, Failure, Table, Unit};
use findings::{COLUMNS, Finding, statistic};

pub(super) const KIND: Kind = Kind {
    name: "concentration",
    title: "How fast finite prompts approach their limit",
    summary: "Mean squared errors of outputs and gradients against the prompt length, with slopes and fitted rates.",
    example: r#"kind = "concentration"
engine = "both"
quantities = ["output", "score-gradient", "value-gradient"]
sigmas = [1]
lengths = { from = 10, to = 1e6, per_decade = 1 }

[head]
score = 1.0

[[law]]
name = "normal tokens"
family = "gaussian"
dimension = 2

[[law]]
name = "random signs"
family = "rademacher"
dimension = 2

[queries]
family = "gaussian"
dimension = 2

[sampled]
trials = 60
queries = 16
longest = 1000
"#,
    read,
};

/// The words for what is measured.
pub(crate) const QUANTITIES: [(&str, Quantity); 3] = [
    ("output", Quantity::Output),
    ("score-gradient", Quantity::ScoreGradient),
    ("value-gradient", Quantity::ValueGradient),
];

/// Which engines are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Engines {
    Exact,
    Sampled,
    /// Exact where the law allows it, sampled otherwise.
    Best,
    /// Sampled always, and exact where the law allows it: two engines that check each other.
    Both,
}

const ENGINES: [(&str, Engines); 4] = [
    ("exact", Engines::Exact),
    ("sampled", Engines::Sampled),
    ("best", Engines::Best),
    ("both", Engines::Both),
];

struct ConcentrationPlan {
    quantities: Vec<Quantity>,
    /// The shortest length that enters a rate.
    fit_from: PromptLength,
    level: f64,
    cases: Vec<Case>,
}

/// One law at one scale by one engine.
struct Case {
    law: String,
    sigma: f64,
    operator_norm: f64,
    sub_gaussian: Option<f64>,
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
    Sampled {
        options: SampleOptions,
        simulation: Box<SampledPrompts>,
        groups: Vec<std::ops::Range<u32>>,
        cost: f64,
    },
}

fn read(section: &mut Section, seed: u64, instructions: InstructionSet) -> Result<Box<dyn Plan>, Mistake> {
    let laws = reading::token_laws(section)?;
    let dimension = laws[0].law.dimension();
    let head = reading::head(section, dimension)?;
    let queries = reading::law(section, "queries")?;
    if queries.dimension() != dimension {
        let message = format!("expected dimension {dimension} as the tokens, found {}", queries.dimension());
        return Err(section.mistake("queries", message));
    }
    let sigmas = reading::sigmas(section)?;
    let lengths = reading::lengths(section, "lengths")?;
    let names = QUANTITIES.map(|(name, _)| name);
    let mut quantities = section.choices("quantities", &QUANTITIES, Some(&names[..1]))?;
    quantities.sort_by_key(|quantity| *quantity as u8);
    quantities.dedup();
    let engines = section.choice("engine", &ENGINES, Some("best"))?;
    let level = section.real("level", Bounds::Between(0.5, 1.0 - 1e-9), Some(0.95))?;
    let fit_from = section.integer("fit_from", 1..=PromptLength::MAX.get(), Some(1))?;
    let fit_from = section.accept("fit_from", PromptLength::new(fit_from))?;
    let average = section.table("exact", |table| {
        let directions = table.integer("directions", 1..=1 << 20, Some(32))? as u32;
        let randomisations = table.integer("randomisations", 2..=1 << 16, Some(8))? as u32;
        Ok(QueryAverage { directions, randomisations, seed })
    })?;
    let (options, longest) = section.table("sampled", |table| {
        let options = SampleOptions {
            trials: table.integer("trials", 2..=1 << 24, Some(400))? as u32,
            queries: table.integer("queries", 1..=1 << 20, Some(32))? as u32,
            precision: table.choice("precision", &reading::PRECISIONS, Some("double"))?,
            score_gradient: quantities.contains(&Quantity::ScoreGradient),
            seed,
            instruction_set: instructions,
        };
        Ok((options, table.integer("longest", 1..=LONGEST_SAMPLED, Some(100_000))?))
    })?;
    let short: Vec<PromptLength> = lengths.iter().copied().filter(|length| length.get() <= longest).collect();
    let mut cases = Vec::new();
    for law in &laws {
        for &sigma in &sigmas {
            let tokens = section.accept("sigmas", law.scaled(sigma))?;
            let is_exact = tokens.as_gaussian_mixture().is_some();
            let (exact, sampled) = match engines {
                Engines::Exact => (true, false),
                Engines::Sampled => (false, true),
                Engines::Best => (is_exact, !is_exact),
                Engines::Both => (is_exact, true),
            };
            if exact && !is_exact {
                let message = format!(
                    "\"{}\" has no exact theory of finite prompts; expected \"sampled\", \"best\" or \"both\"",
                    law.name
                );
                return Err(section.mistake("engine", message));
            }
            if sampled && short.is_empty() {
                let message = format!("simulated prompts have at most `sampled.longest` = {longest} tokens");
                return Err(section.mistake("lengths", message));
            }
            for (wanted, is_exact, lengths) in [(exact, true, &lengths), (sampled, false, &short)] {
                if !wanted {
                    continue;
                }
                let setting = Concentration::new(head.clone(), tokens.clone(), queries.clone(), lengths);
                let setting = section.accept("lengths", setting)?;
                let operator_norm = section.accept("head", setting.operator_norm())?;
                let work = if is_exact {
                    let cost = exact_cost(&tokens, average, lengths.len());
                    Work::Exact { average, cost }
                } else {
                    let simulation = section.accept("sampled", setting.simulation(options))?;
                    Work::sampled(simulation, options, dimension)
                };
                let exponent = section.accept("head", exponent(&tokens, &queries, operator_norm))?;
                cases.push(Case {
                    law: law.name.clone(),
                    sigma,
                    operator_norm,
                    sub_gaussian: tokens.sub_gaussian().map(|found| found.parameter),
                    exponent,
                    setting,
                    work,
                });
            }
        }
    }
    Ok(Box::new(ConcentrationPlan { quantities, fit_from, level, cases }))
}

/// Tokens of a simulated prompt at most: hours.
const LONGEST_SAMPLED: u64 = 10_000_000_000;

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

/// Seconds that a unit of the run should take.
const UNIT_SECONDS: f64 = 1.0;

impl Work {
    /// Units of the simulation in groups of about a second: fixed by the request, not by the machine.
    fn sampled(simulation: SampledPrompts, options: SampleOptions, dimension: usize) -> Self {
        let longest = simulation.lengths().last().map_or(1.0, |length| length.as_f64());
        let queries = f64::from(options.queries.max(20));
        let dimension = dimension as f64;
        let order = if options.score_gradient { 1.0 + 0.5 * dimension } else { 1.0 };
        let per_token = 20e-9 * dimension + 3e-9 * queries * (1.0 + 0.2 * dimension) * order;
        let per_trial = longest * per_token + 2e-6 * queries * simulation.lengths().len() as f64;
        let units = simulation.units();
        let per_unit = per_trial * f64::from(options.trials) / f64::from(units.max(1));
        let size = (UNIT_SECONDS / per_unit).clamp(1.0, f64::from(units.max(1))) as u32;
        let groups =
            (0..units).step_by(size as usize).map(|start| start..(start + size).min(units)).collect();
        Work::Sampled { options, simulation: Box::new(simulation), groups, cost: per_unit }
    }

    fn units(&self) -> usize {
        match self {
            Work::Exact { .. } => 1,
            Work::Sampled { groups, .. } => groups.len(),
        }
    }
}

/// Columns of the table of a unit of the exact engine.
const EXACT_COLUMNS: [(&str, Column); 5] = [
    ("quantity", Column::Integer),
    ("length", Column::Integer),
    ("value", Column::Real),
    ("error", Column::Real),
    ("accuracy", Column::Text),
];

impl Plan for ConcentrationPlan {
    fn units(&self) -> Vec<Unit> {
        let mut units = Vec::new();
        for case in &self.cases {
            let label = format!("{}, σ = {}", case.law, case.sigma);
            match &case.work {
                Work::Exact { cost, .. } => {
                    units.push(Unit { label: format!("{label}: exact"), cost: *cost });
                }
                Work::Sampled { groups, cost, .. } => units.extend(groups.iter().map(|group| Unit {
                    label: format!("{label}: simulated units {} to {}", group.start + 1, group.end),
                    cost: cost * group.len() as f64,
                })),
            }
        }
        units
    }

    fn run_unit(&self, unit: usize, monitor: &dyn Monitor) -> Result<Option<Table>, Failure> {
        let mut first = 0;
        for case in &self.cases {
            let count = case.work.units();
            if unit < first + count {
                return case.run(unit - first, &self.quantities, monitor);
            }
            first += count;
        }
        let (what, expected) = ("the unit of a plan", "a number below the number of units");
        Err(Error::OutOfRange { what, value: unit as f64, expected }.into())
    }

    fn merge(&self, units: Vec<Table>) -> Result<Table, Failure> {
        let mut result = Table::new(&COLUMNS);
        let mut units = units.into_iter();
        for case in &self.cases {
            let mine: Vec<Table> = units.by_ref().take(case.work.units()).collect();
            for finding in self.findings(case, &mine)? {
                result.push(finding.row())?;
            }
        }
        Ok(result)
    }

    fn sections(&self, result: &Table) -> Result<Vec<esscher_report::Section>, Failure> {
        drawing::sections(&findings::findings(result)?)
    }
}

impl Case {
    fn run(
        &self,
        part: usize,
        quantities: &[Quantity],
        monitor: &dyn Monitor,
    ) -> Result<Option<Table>, Failure> {
        match &self.work {
            Work::Exact { average, .. } => {
                let study = self.setting.run(Engine::Exact(*average), monitor)?;
                if study.completion != Completion::Finished {
                    return Ok(None);
                }
                let mut table = Table::new(&EXACT_COLUMNS);
                for &quantity in quantities {
                    for row in &study.rows {
                        let Some(found) = estimate_of(row, quantity) else { continue };
                        let [value, _, accuracy] = Measured::from(found).values();
                        // An average is no better than what is averaged, also where all directions agree.
                        let error = found.absolute_error().max(MomentTable::TOLERANCE * found.value.abs());
                        let length = row.length.get() as i64;
                        table.push([
                            (quantity as i64).into(),
                            length.into(),
                            value,
                            error.into(),
                            accuracy,
                        ])?;
                    }
                }
                Ok(Some(table))
            }
            Work::Sampled { simulation, groups, .. } => {
                let mut table = Table::new(&states::COLUMNS);
                for number in groups[part].clone() {
                    let Some(found) = simulation.run_unit(number, monitor)? else { return Ok(None) };
                    states::write(&mut table, number, &found)?;
                }
                Ok(Some(table))
            }
        }
    }
}

fn estimate_of(row: &StudyRow, quantity: Quantity) -> Option<esscher_core::Estimate> {
    match quantity {
        Quantity::Output => Some(row.output_error),
        Quantity::ScoreGradient => row.score_gradient_error,
        Quantity::ValueGradient => Some(row.value_gradient_error),
    }
}

impl ConcentrationPlan {
    /// All rows of a case: errors, slopes, the fitted rate.
    fn findings(&self, case: &Case, units: &[Table]) -> Result<Vec<Finding>, Failure> {
        let mut found = Vec::new();
        match &case.work {
            Work::Exact { .. } => {
                for &quantity in &self.quantities {
                    let points = exact_points(case, quantity, units, &mut found)?;
                    self.rates(case, quantity, &points, None, &mut found)?;
                }
            }
            Work::Sampled { options, simulation, .. } => {
                let done = states::read(simulation, units)?;
                let folded = simulation.fold(&done)?;
                let study = case.setting.resume(*options, done, &Unwatched)?;
                for &quantity in &self.quantities {
                    sampled_errors(case, quantity, &study, &mut found);
                    let joint = match quantity {
                        Quantity::Output => &folded.joint.output,
                        Quantity::ScoreGradient => &folded.joint.score_gradient,
                        Quantity::ValueGradient => &folded.joint.value_gradient,
                    };
                    let mean = joint.mean();
                    let covariance = joint.mean_covariance().map(|covariance| {
                        let relative = |i, j| covariance[(i, j)] / mean[i] / mean[j];
                        (Mat::from_fn(mean.len(), mean.len(), relative), joint.count())
                    });
                    self.rates(case, quantity, &study.points(quantity), covariance, &mut found)?;
                }
            }
        }
        Ok(found)
    }

    /// Slopes between all neighbours and the rate of the lengths that enter it.
    ///
    /// Simulated lengths are prefixes of the same prompts: `covariance` is that of their logarithms over so many trials.
    fn rates(
        &self,
        case: &Case,
        quantity: Quantity,
        points: &[RatePoint],
        covariance: Option<(Mat<f64>, u64)>,
        found: &mut Vec<Finding>,
    ) -> Result<(), Failure> {
        let accuracy = match found.iter().rev().find(|one| one.statistic == statistic::ERROR) {
            Some(last) => last.accuracy.clone(),
            None => return Ok(()),
        };
        let theory = if quantity == Quantity::ScoreGradient { None } else { case.exponent };
        let blank = || {
            let length = points.last().map_or(0, |point| point.length.get());
            Finding { theory, accuracy: accuracy.clone(), ..case.finding(quantity, statistic::RATE, length) }
        };
        let positive = points.iter().all(|point| point.value > 0.0);
        if !positive {
            let note = "an error of exactly 0 has no logarithm".to_string();
            found.push(Finding { note: Some(note), ..blank() });
            return Ok(());
        }
        let slopes = match &covariance {
            Some((covariance, draws)) => {
                let (covariance, draws) = (covariance.as_ref(), *draws);
                local_slopes(points, Dependence::EstimatedLogCovariance { covariance, draws })?
            }
            None => local_slopes(points, Dependence::Independent)?,
        };
        // A slope between means that rest on few trials is no better than they are.
        let doubtful = |found: &[Finding], length: u64| {
            let is_it = |one: &&Finding| {
                one.statistic == statistic::ERROR && one.length == length && one.quantity == blank().quantity
            };
            found.iter().rev().find(is_it).and_then(|one| one.note.clone())
        };
        for slope in slopes {
            let note = doubtful(found, slope.from.get()).or_else(|| doubtful(found, slope.to.get()));
            found.push(Finding {
                note,
                statistic: statistic::SLOPE.to_string(),
                from_length: Some(slope.from.get()),
                length: slope.to.get(),
                value: Some(slope.slope),
                error: Some(slope.standard_error),
                ..blank()
            });
        }
        let kept: Vec<usize> =
            (0..points.len()).filter(|&index| points[index].length >= self.fit_from).collect();
        let fitted: Vec<RatePoint> = kept.iter().map(|&index| points[index]).collect();
        let fit = match &covariance {
            Some((covariance, draws)) => {
                let part = Mat::from_fn(kept.len(), kept.len(), |i, j| covariance[(kept[i], kept[j])]);
                let (covariance, draws) = (part.as_ref(), *draws);
                rate_fit(&fitted, Dependence::EstimatedLogCovariance { covariance, draws }, self.level)
            }
            None => rate_fit(&fitted, Dependence::Independent, self.level),
        };
        found.push(match fit {
            Ok(fit) => Finding {
                from_length: fitted.first().map(|point| point.length.get()),
                value: Some(fit.exponent),
                error: Some(fit.standard_error),
                interval: Some((fit.interval.lower, fit.interval.upper)),
                note: Some(findings::basis(&fit)),
                ..blank()
            },
            // Too few lengths for a rate: the row says so.
            Err(error) => Finding { note: Some(error.to_string()), ..blank() },
        });
        Ok(())
    }
}

impl Case {
    fn finding(&self, quantity: Quantity, statistic: &str, length: u64) -> Finding {
        let engine = match self.work {
            Work::Exact { .. } => findings::EXACT_ENGINE,
            Work::Sampled { .. } => findings::SAMPLED_ENGINE,
        };
        Finding {
            law: self.law.clone(),
            sigma: self.sigma,
            operator_norm: self.operator_norm,
            sub_gaussian: self.sub_gaussian,
            engine: engine.to_string(),
            quantity: findings::name_of(quantity).to_string(),
            statistic: statistic.to_string(),
            from_length: None,
            length,
            value: None,
            error: None,
            interval: None,
            accuracy: String::new(),
            theory: None,
            note: None,
        }
    }
}

/// The errors that the unit of an exact case holds, added to the findings and as points for a rate.
fn exact_points(
    case: &Case,
    quantity: Quantity,
    units: &[Table],
    found: &mut Vec<Finding>,
) -> Result<Vec<RatePoint>, Failure> {
    let mut points = Vec::new();
    for row in units.iter().flat_map(Table::rows) {
        if row.integer("quantity")? != quantity as i64 {
            continue;
        }
        let length = PromptLength::new(row.integer("length")?.max(0) as u64)?;
        let (value, absolute_error) = (row.real("value")?, row.real("error")?);
        points.push(RatePoint { length, value, absolute_error });
        found.push(Finding {
            value: Some(value),
            error: Some(absolute_error),
            accuracy: row.text("accuracy")?.to_string(),
            ..case.finding(quantity, statistic::ERROR, length.get())
        });
    }
    Ok(points)
}

fn sampled_errors(case: &Case, quantity: Quantity, study: &Study, found: &mut Vec<Finding>) {
    for row in &study.rows {
        let Some(estimate) = estimate_of(row, quantity) else { continue };
        let heavy = study.warnings.iter().find(|one| one.length == row.length && one.quantity == quantity);
        let note = heavy.map(|heavy| {
            format!("rests on few trials: about {:.0} are effective", heavy.effective_sample_size)
        });
        found.push(Finding {
            value: Some(estimate.value),
            error: Some(estimate.absolute_error()),
            accuracy: Class::from(estimate.accuracy).name().to_string(),
            note,
            ..case.finding(quantity, statistic::ERROR, row.length.get())
        });
    }
}
