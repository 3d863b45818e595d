//! Gradient-flow training on in-context linear regression: softmax at finite prompts beside infinite prompts and linear
//! attention.

use super::{Kind, Plan, valley};
use crate::measured::{Class, Measured, NUMBER, figures, length_name};
use crate::reading::{self, COVARIATES, Covariates, InitialScale};
use crate::tabulating::take_constant;
use esscher_core::Monitor;
use esscher_core::measure::Law;
use esscher_core::numerics::linalg;
use esscher_core::numerics::statistics::Summary;
use esscher_core::prompt::PromptLength;
use esscher_core::regression::{
    Block, BlockLandscape, ContextLength, DrawnCovariates, FlowEnding, FlowOptions, FlowRow, Landscape,
    LinearAttention, LinearRegression, Method, Response, SpectralLandscape, SpectralTask, Trajectory,
    flow_through,
};
use esscher_lab::specification::{Bounds, Mistake, Section};
use esscher_lab::{Column, Failure, Row, Table, TableError, Unit, Value};
use esscher_report::{Axis, Block as DocumentBlock, Cell, DataTable, Figure, Mark, Point, Scale, Series};
use std::collections::BTreeMap;

pub(super) const KIND: Kind = Kind {
    name: "regression",
    title: "Training on in-context linear regression",
    summary: "Gradient flow of one layer on in-context linear regression, at finite and infinite prompts.",
    example: r#"kind = "regression"
models = ["softmax", "infinite", "linear"]
lengths = [100, 1e4]
end_time = 20
rows = 12
initial_scale = 0.5

[task]
covariance = "toeplitz"
dimensions = [3]
correlation = 0.5
noise = 0.1
"#,
    read,
};

/// Columns of the result; what the quantities are is said in `sections`.
const COLUMNS: [(&str, Column); 9] = [
    ("covariates", Column::Text),
    ("dimension", Column::Integer),
    ("model", Column::Text),
    ("length", Column::Integer),
    ("draw", Column::Integer),
    ("initial_scale", Column::Real),
    ("ending", Column::Text),
    ("time", Column::Real),
    ("quantity", Column::Text),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Model {
    Softmax,
    Infinite,
    Linear,
    OppositeHeads,
}

const MODELS: &[(&str, Model)] = &[
    ("softmax", Model::Softmax),
    ("infinite", Model::Infinite),
    ("linear", Model::Linear),
    ("opposite-heads", Model::OppositeHeads),
];

impl Model {
    fn name(self) -> &'static str {
        MODELS.iter().find(|(_, model)| *model == self).map_or("softmax", |(name, _)| name)
    }
}

struct Regression {
    tasks: Vec<LinearRegression>,
    covariates: Vec<Covariates>,
    initial: InitialScale,
    times: Vec<f64>,
    method: Method,
    tolerance: f64,
    stationary: f64,
    prompts: u32,
    draws: u32,
    seed: u64,
    jobs: Vec<Job>,
    longest: Option<PromptLength>,
}

/// One unit.
#[derive(Debug, Clone, Copy)]
struct Job {
    covariates: Covariates,
    task: usize,
    model: Model,
    length: Option<PromptLength>,
    draw: Option<u32>,
}

fn read(
    section: &mut Section,
    seed: u64,
    _: esscher_core::numerics::InstructionSet,
) -> Result<Box<dyn Plan>, Mistake> {
    let models = distinct(section.choices("models", MODELS, Some(&["softmax", "infinite"]))?);
    let needs_lengths = models.iter().any(|model| *model != Model::Infinite);
    let lengths = match (needs_lengths, section.form("lengths")) {
        (true, _) => reading::lengths(section, "lengths")?,
        (false, Some(_)) => {
            return Err(
                section.mistake("lengths", "the infinite prompt alone is asked for: it has no length")
            );
        }
        (false, None) => Vec::new(),
    };
    let end_time = section.real("end_time", Bounds::Between(1e-6, 1e15), Some(20.0))?;
    let rows = section.integer("rows", 1..=10_000, Some(40))? as usize;
    let initial = reading::initial_scale(section)?;
    let methods = [("explicit", Method::Explicit), ("stiff", Method::Stiff)];
    let default_method = if end_time > 1e3 { "stiff" } else { "explicit" };
    let method = section.choice("method", &methods, Some(default_method))?;
    let tolerance = section.real("tolerance", Bounds::Between(1e-13, 1e-3), Some(1e-9))?;
    let stationary = section.real("stationary", Bounds::Between(1e-14, 1e-3), Some(1e-10))?;
    let (tasks, covariates) = section.table("task", |table| {
        let tasks = reading::tasks(table)?;
        let covariates = distinct(table.choices("covariates", COVARIATES, Some(&["gaussian"]))?);
        Ok((tasks, covariates))
    })?;
    let sampled = covariates.iter().any(|covariates| *covariates != Covariates::Gaussian);
    let (mut prompts, mut draws) = (0, 0);
    if sampled {
        for model in [Model::Linear, Model::OppositeHeads] {
            if models.contains(&model) {
                let message = format!(
                    "\"{}\" is computed for Gaussian covariates only; leave it out, or the other covariates",
                    model.name()
                );
                return Err(section.mistake("models", message));
            }
        }
        (prompts, draws) = section.table("sampling", |table| {
            let prompts = table.integer("prompts", 1..=1_000_000, Some(128))? as u32;
            // Two draws at least: a single one has no standard error.
            Ok((prompts, table.integer("draws", 2..=1000, Some(4))? as u32))
        })?;
        if let Some(longest) = lengths.last()
            && u64::from(prompts).saturating_mul(longest.get()) > 1 << 27
        {
            let message = format!(
                "{prompts} prompts of {longest} covariates are too many to draw; with covariates that are not \
                 Gaussian, prompts times the longest length may be up to 134217728"
            );
            return Err(section.mistake("lengths", message));
        }
    }
    let times = (1..=rows)
        .map(
            |row| {
                if row == rows { end_time } else { (row as f64 / rows as f64 * end_time.ln_1p()).exp_m1() }
            },
        )
        .collect();
    let mut jobs = Vec::new();
    for &covariates in &covariates {
        for task in 0..tasks.len() {
            for &model in &models {
                let lengths: Vec<Option<PromptLength>> = if model == Model::Infinite {
                    vec![None]
                } else {
                    lengths.iter().copied().map(Some).collect()
                };
                for length in lengths {
                    let draws: Vec<Option<u32>> = match covariates {
                        Covariates::Gaussian => vec![None],
                        _ => (0..draws).map(Some).collect(),
                    };
                    jobs.extend(draws.into_iter().map(|draw| Job { covariates, task, model, length, draw }));
                }
            }
        }
    }
    Ok(Box::new(Regression {
        tasks,
        covariates,
        initial,
        times,
        method,
        tolerance,
        stationary,
        prompts,
        draws,
        seed,
        jobs,
        longest: lengths.last().copied(),
    }))
}

/// Each once, in the order of first mention.
fn distinct<T: PartialEq>(items: Vec<T>) -> Vec<T> {
    let mut found = Vec::new();
    for item in items {
        if !found.contains(&item) {
            found.push(item);
        }
    }
    found
}

impl Plan for Regression {
    fn units(&self) -> Vec<Unit> {
        self.jobs
            .iter()
            .map(|job| {
                let dimension = self.tasks[job.task].dimension();
                let length = length_name(job.length.map(|length| length.get() as i64));
                let mut label = format!("{}, d = {dimension}, {length}", job.model.name());
                let cost = match job.draw {
                    None if job.model == Model::Infinite || job.model == Model::Linear => 0.02,
                    // Two flows of some hundred steps, and the tables of a length; a drift takes longer.
                    None if self.method == Method::Explicit => 1.0,
                    None => 3.0,
                    Some(draw) => {
                        label = format!("{}, {label}, draw {}", job.covariates.name(), draw + 1);
                        let tokens = job.length.map_or(1.0, PromptLength::as_f64);
                        // Some 1,500 evaluations of all draws.
                        3e-6 * f64::from(self.prompts) * tokens * (dimension as f64).powi(2)
                    }
                };
                Unit { label, cost }
            })
            .collect()
    }

    fn run_unit(&self, unit: usize, monitor: &dyn Monitor) -> Result<Option<Table>, Failure> {
        let job = *self.jobs.get(unit).ok_or_else(|| format!("there is no unit {unit}"))?;
        match job.draw {
            None => self.run_exact(&job, monitor),
            Some(draw) => self.run_drawn(&job, draw, monitor),
        }
    }

    fn merge(&self, units: Vec<Table>) -> Result<Table, Failure> {
        let mut all = empty();
        for unit in units {
            all.append(unit)?;
        }
        summarise(&all)
    }

    fn sections(&self, result: &Table) -> Result<Vec<esscher_report::Section>, Failure> {
        sections(self, result)
    }
}

impl Regression {
    fn run_exact(&self, job: &Job, monitor: &dyn Monitor) -> Result<Option<Table>, Failure> {
        let task = &self.tasks[job.task];
        let (spectral, vectors) = SpectralTask::new(task)?;
        let scale = self.initial.at(&spectral);
        let start = spectral.initial(scale)?;
        let response = match (job.model, job.length) {
            (Model::Softmax, Some(length)) => Response::softmax(length),
            (Model::Linear, Some(length)) => Response::linear(length),
            (Model::OppositeHeads, Some(length)) => Response::opposite_heads(length),
            _ => Response::infinite(),
        };
        let drifts = matches!(job.model, Model::Softmax | Model::OppositeHeads);
        let landscape = SpectralLandscape { task: spectral.clone(), response };
        let fine = self.options(drifts, 1.0);
        let Some(trajectory) = finished(flow_through(&landscape, &start, &self.times, &fine, monitor)?)
        else {
            return Ok(None);
        };
        // The same with looser steps: the difference bounds the error of the finer one.
        let loose = self.options(drifts, 100.0);
        let Some(loose) = finished(flow_through(&landscape, &start, &self.times, &loose, monitor)?) else {
            return Ok(None);
        };
        let infinite = SpectralLandscape { task: spectral.clone(), response: Response::infinite() };
        let times: Vec<f64> = trajectory.rows[1..].iter().map(|row| row.time).collect();
        let beside = if times.is_empty() {
            trajectory.clone()
        } else {
            let options = FlowOptions { stationary: 1e-13, ..FlowOptions::without_drift() };
            let Some(beside) = finished(flow_through(&infinite, &start, &times, &options, monitor)?) else {
                return Ok(None);
            };
            beside
        };
        let balance = landscape.balance(&start);
        let (entries, gain) = spectral.infinite_limit(balance)?;
        let limit: Vec<f64> = entries.into_iter().chain([gain]).collect();
        let own_limit = match job.model {
            Model::Infinite => {
                Some(LinearAttention::new(task, ContextLength::Infinite)?.flow_limit(balance)?)
            }
            Model::Linear => match job.length {
                Some(length) => Some(LinearAttention::new(task, length)?.flow_limit(balance)?),
                None => None,
            },
            _ => None,
        };
        let own_distance = |row: &FlowRow| -> esscher_core::Result<Option<f64>> {
            let Some(limit) = &own_limit else { return Ok(None) };
            let (gain, entries) = row.parameters.split_last().unwrap_or((&0.0, &[]));
            let block = spectral.block(vectors.as_ref(), entries, *gain)?;
            let offset = block.matrix() - limit.matrix();
            Ok(Some((linalg::squared_frobenius(offset.as_ref()) + (gain - limit.gain()).powi(2)).sqrt()))
        };
        let predicted = match job.length {
            Some(length) if job.model == Model::Softmax && !times.is_empty() => {
                let scaled: Vec<f64> = times.iter().map(|time| time / length.as_f64()).collect();
                valley::drift(&spectral, gain, &scaled, monitor)?
            }
            _ => None,
        };

        let mut rows = Rows::new(job, task.dimension(), scale, &trajectory.ending.to_string());
        let mut largest: Option<(f64, Measured)> = None;
        for (index, row) in trajectory.rows.iter().enumerate() {
            let other = counterpart(&loose, row, index + 1 == trajectory.rows.len());
            let step_error = other.map(|other| landscape.distance(&row.parameters, &other.parameters));
            // Risks are exact to 1e-9 of themselves where the steps are.
            let risk_error = other.map_or(0.0, |other| (row.risk - other.risk).abs()) + 1e-9 * row.risk.abs();
            let balance_error = other.map_or(0.0, |other| (row.balance - other.balance).abs()) + 1e-12;
            let step_error = step_error.unwrap_or(0.0) + 1e-12 * landscape.norm(&row.parameters);
            let gain = row.parameters.last().copied().unwrap_or_default();
            rows.push(row.time, "risk", Measured::exact(row.risk, risk_error))?;
            rows.push(row.time, "gain", Measured::exact(gain, step_error))?;
            rows.push(row.time, "balance", Measured::exact(row.balance, balance_error))?;
            if let Some(there) = parameters_at(&beside, row.time) {
                let distance = Measured::exact(landscape.distance(&row.parameters, there), step_error);
                rows.push(row.time, "distance-to-infinite", distance)?;
                if largest.is_none_or(|(_, found)| distance.value > found.value) {
                    largest = Some((row.time, distance));
                }
            }
            let distance = landscape.distance(&row.parameters, &limit);
            rows.push(row.time, "distance-to-infinite-limit", Measured::exact(distance, step_error))?;
            if let Some(distance) = own_distance(row)? {
                rows.push(row.time, "distance-to-own-limit", Measured::exact(distance, step_error))?;
            }
            if let Some(predicted) =
                predicted.as_ref().and_then(|predicted| predicted.get(index.wrapping_sub(1)))
            {
                rows.push(row.time, "predicted-gain", Measured::exact(*predicted, 1e-6 * predicted.abs()))?;
            }
        }
        let last = trajectory.last()?;
        let end_error = counterpart(&loose, last, true)
            .map_or(0.0, |other| landscape.distance(&last.parameters, &other.parameters))
            + 1e-12 * landscape.norm(&last.parameters);
        if let Some((time, distance)) = largest {
            rows.push(time, "largest-distance-to-infinite", distance)?;
        }
        let (_, entries) = last.parameters.split_last().unwrap_or((&0.0, &[]));
        for (index, entry) in entries.iter().take(16).enumerate() {
            rows.push(last.time, &format!("entry-{}", index + 1), Measured::exact(*entry, end_error))?;
        }
        rows.push(last.time, "final-risk", Measured::exact(last.risk, 1e-9 * last.risk.abs() + 1e-12))?;
        rows.push(last.time, "noise-floor", Measured::exact(task.noise_floor(), 0.0))?;
        if job.model == Model::Softmax {
            let (gain, coefficient) = valley::lowest_point(&spectral)?;
            rows.push(last.time, "first-order-gain", Measured::exact(gain, 1e-6 * gain))?;
            rows.push(
                last.time,
                "first-order-coefficient",
                Measured::exact(coefficient, 1e-9 * coefficient),
            )?;
        }
        let context =
            job.length.filter(|_| job.model == Model::Linear).map_or(ContextLength::Infinite, Into::into);
        let bounds = LinearAttention::new(task, context)?.initial_scale(scale)?;
        rows.push(0.0, "paper-bound", Measured::exact(bounds.paper_bound, 1e-12 * bounds.paper_bound))?;
        rows.push(
            0.0,
            "sufficient-bound",
            Measured::exact(bounds.sufficient_bound, 1e-12 * bounds.sufficient_bound),
        )?;
        Ok(Some(rows.table))
    }

    fn run_drawn(&self, job: &Job, draw: u32, monitor: &dyn Monitor) -> Result<Option<Table>, Failure> {
        let task = &self.tasks[job.task];
        let (spectral, _) = SpectralTask::new(task)?;
        let scale = self.initial.at(&spectral);
        let law: Law = job.covariates.law(task)?;
        // All lengths share their draws, whose queries and prefixes make distances far better known than flows.
        let longest = self.longest.unwrap_or(PromptLength::MIN);
        let seed = self.seed.wrapping_add(u64::from(draw));
        let draws = DrawnCovariates::new(law, task.noise(), task.prior_scale(), self.prompts, longest, seed)?;
        let dimension = task.dimension();
        let block = Block::initial(linalg::identity(dimension).as_ref(), scale)?;
        let start = BlockLandscape::parameters(&block);
        let landscape = draws.landscape(job.length)?;
        let options = FlowOptions {
            method: self.method,
            tolerance: self.tolerance,
            stationary: self.stationary,
            ..FlowOptions::default()
        };
        let Some(trajectory) = finished(flow_through(&landscape, &start, &self.times, &options, monitor)?)
        else {
            return Ok(None);
        };
        let times: Vec<f64> = trajectory.rows[1..].iter().map(|row| row.time).collect();
        let beside = if job.model == Model::Infinite || times.is_empty() {
            trajectory.clone()
        } else {
            let infinite = draws.landscape(None)?;
            let Some(beside) = finished(flow_through(&infinite, &start, &times, &options, monitor)?) else {
                return Ok(None);
            };
            beside
        };
        let mut rows = Rows::new(job, dimension, scale, &trajectory.ending.to_string());
        let one = |value: f64| Measured { value, error: None, class: Class::Sampled };
        let mut largest = 0.0_f64;
        for row in &trajectory.rows {
            rows.push(row.time, "risk", one(row.risk))?;
            rows.push(row.time, "gain", one(row.parameters.last().copied().unwrap_or_default()))?;
            rows.push(row.time, "balance", one(row.balance))?;
            if let Some(there) = parameters_at(&beside, row.time) {
                let distance = landscape.distance(&row.parameters, there);
                rows.push(row.time, "distance-to-infinite", one(distance))?;
                largest = largest.max(distance);
            }
        }
        let last = trajectory.last()?;
        // At the end asked for, where all draws meet.
        let end = self.times.last().copied().unwrap_or_default();
        rows.push(end, "largest-distance-to-infinite", one(largest))?;
        rows.push(end, "final-risk", one(last.risk))?;
        Ok(Some(rows.table))
    }

    fn options(&self, drifts: bool, factor: f64) -> FlowOptions {
        if drifts {
            FlowOptions {
                method: self.method,
                tolerance: factor * self.tolerance,
                stationary: self.stationary,
                ..FlowOptions::default()
            }
        } else {
            let tight = FlowOptions::without_drift();
            FlowOptions { tolerance: factor * tight.tolerance, stationary: self.stationary, ..tight }
        }
    }
}

/// Nothing if the monitor stopped it.
fn finished(trajectory: Trajectory) -> Option<Trajectory> {
    (!matches!(trajectory.ending, FlowEnding::Stopped { .. })).then_some(trajectory)
}

/// The row of another integration of the same flow: at the same time, or where both ended.
fn counterpart<'a>(other: &'a Trajectory, row: &FlowRow, is_last: bool) -> Option<&'a FlowRow> {
    let same = other.rows.iter().find(|there| there.time == row.time);
    same.or_else(|| other.rows.last().filter(|_| is_last))
}

/// The parameters at this time; after a flow has become stationary, those where it stands.
fn parameters_at(trajectory: &Trajectory, time: f64) -> Option<&[f64]> {
    let same = trajectory.rows.iter().find(|row| row.time == time);
    let standing = trajectory
        .rows
        .last()
        .filter(|last| matches!(trajectory.ending, FlowEnding::Stationary { .. }) && time >= last.time);
    same.or(standing).map(|row| row.parameters.as_slice())
}

fn empty() -> Table {
    let columns: Vec<(&str, Column)> = COLUMNS.iter().chain(&NUMBER).copied().collect();
    Table::new(&columns)
}

/// The table of a unit while it is written.
struct Rows {
    table: Table,
    head: Vec<Value>,
}

impl Rows {
    fn new(job: &Job, dimension: usize, scale: f64, ending: &str) -> Self {
        let head = vec![
            job.covariates.name().into(),
            (dimension as i64).into(),
            job.model.name().into(),
            job.length.map(|length| length.get() as i64).into(),
            job.draw.map(i64::from).into(),
            scale.into(),
            ending.into(),
        ];
        Rows { table: empty(), head }
    }

    fn push(&mut self, time: f64, quantity: &str, number: Measured) -> Result<(), TableError> {
        let head = self.head.iter().cloned();
        self.table.push(head.chain([time.into(), quantity.into()]).chain(number.values()))
    }
}

/// A row of the result.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub(crate) covariates: String,
    pub(crate) dimension: i64,
    pub(crate) model: String,
    pub(crate) length: Option<i64>,
    pub(crate) draw: Option<i64>,
    pub(crate) initial_scale: f64,
    pub(crate) ending: String,
    pub(crate) time: f64,
    pub(crate) quantity: String,
    pub(crate) number: Measured,
}

/// The rows of a result of this kind.
pub(crate) fn records(result: &Table) -> Result<Vec<Record>, TableError> {
    let whole = |row: &Row<'_>, column: &str| -> Result<Option<i64>, TableError> {
        match row.value(column)? {
            Value::Missing => Ok(None),
            _ => row.integer(column).map(Some),
        }
    };
    result
        .rows()
        .map(|row| {
            Ok(Record {
                covariates: row.text("covariates")?.to_string(),
                dimension: row.integer("dimension")?,
                model: row.text("model")?.to_string(),
                length: whole(&row, "length")?,
                draw: whole(&row, "draw")?,
                initial_scale: row.real("initial_scale")?,
                ending: row.text("ending")?.to_string(),
                time: row.real("time")?,
                quantity: row.text("quantity")?.to_string(),
                number: Measured::read(&row)?,
            })
        })
        .collect()
}

impl Record {
    /// Whose curve it belongs to: `softmax, L = 1e6`, `infinite prompt`.
    pub(crate) fn curve(&self) -> String {
        match self.length {
            None => length_name(None),
            length => format!("{}, {}", self.model, length_name(length)),
        }
    }

    fn values(&self) -> Vec<Value> {
        let mut values: Vec<Value> = vec![
            self.covariates.as_str().into(),
            self.dimension.into(),
            self.model.as_str().into(),
            self.length.into(),
            self.draw.into(),
            self.initial_scale.into(),
            self.ending.as_str().into(),
            self.time.into(),
            self.quantity.as_str().into(),
        ];
        values.extend(self.number.values());
        values
    }
}

/// Adds to draws what only all of them tell: the error of each, and their mean as rows without a draw.
fn summarise(all: &Table) -> Result<Table, Failure> {
    let mut records = records(all)?;
    type Key = (String, i64, String, Option<i64>, u64, String);
    let key = |record: &Record| -> Key {
        (
            record.covariates.clone(),
            record.dimension,
            record.model.clone(),
            record.length,
            record.time.to_bits(),
            record.quantity.clone(),
        )
    };
    let mut groups: BTreeMap<Key, Summary> = BTreeMap::new();
    for record in records.iter().filter(|record| record.draw.is_some()) {
        groups.entry(key(record)).or_default().add(record.number.value);
    }
    let mut table = empty();
    let mut means = Vec::new();
    for record in &mut records {
        if record.draw.is_some()
            && let Some(summary) = groups.get(&key(record))
            && let (Some(mean), Some(variance), Some(error)) =
                (summary.mean(), summary.variance(), summary.standard_error())
        {
            if record.draw == Some(0) {
                let number = Measured::sampled(mean, error);
                let ending = format!("mean of {} draws", summary.count());
                means.push(Record { draw: None, number, ending, ..record.clone() });
            }
            // One draw errs by the spread of them.
            record.number.error = Some(variance.sqrt());
        }
        table.push(record.values())?;
    }
    for record in means {
        table.push(record.values())?;
    }
    Ok(table)
}

/// The curves of a quantity over time: exact ones, and means over draws. The model is named where there are several.
pub(crate) fn curves<'a>(
    records: &'a [Record],
    quantity: &str,
    keep: impl Fn(&Record) -> bool,
) -> Vec<(String, Vec<&'a Record>)> {
    let mut models = records.iter().filter(|record| record.length.is_some() && keep(record));
    let first = models.next().map(|record| record.model.as_str());
    let is_single = models.all(|record| Some(record.model.as_str()) == first);
    let mut found: Vec<(String, Vec<&Record>)> = Vec::new();
    for record in records.iter().filter(|record| {
        record.quantity == quantity && record.draw.is_none() && record.time > 0.0 && keep(record)
    }) {
        let name = if is_single { length_name(record.length) } else { record.curve() };
        match found.iter_mut().find(|(other, _)| *other == name) {
            Some((_, curve)) => curve.push(record),
            None => found.push((name, vec![record])),
        }
    }
    found
}

/// Curves as series, numbered by colour.
pub(crate) fn lines(curves: &[(String, Vec<&Record>)]) -> Vec<Series> {
    curves
        .iter()
        .enumerate()
        .map(|(colour, (name, records))| Series {
            name: name.clone(),
            mark: Mark::Line,
            colour,
            points: records.iter().map(|record| record.number.point(record.time)).collect(),
        })
        .collect()
}

/// Time, by its logarithm.
pub(crate) fn time_axis() -> Axis {
    Axis { label: "training time t".to_string(), scale: Scale::Logarithmic }
}

fn sections(plan: &Regression, result: &Table) -> Result<Vec<esscher_report::Section>, Failure> {
    let records = records(result)?;
    let mut sections = Vec::new();
    for covariates in &plan.covariates {
        for task in &plan.tasks {
            let dimension = task.dimension() as i64;
            let here =
                |record: &Record| record.covariates == covariates.name() && record.dimension == dimension;
            let id = format!("{}-{dimension}", covariates.name());
            let scale = records.iter().find(|record| here(record)).map_or(0.0, |record| record.initial_scale);
            let (spectral, _) = SpectralTask::new(task)?;
            let range = if scale < spectral.proved_scale() { "inside" } else { "outside" };
            let mut prose = format!(
                "Gradient flow of one layer in block form $(A, b)$ from $A = \\alpha I/\\sqrt d$, $b = \\alpha$ with \
                 α = {}, which is {range} the range α < {} of the paper's theorem. Risks are halved mean \
                 squared errors; their floor is {}. ",
                figures(scale),
                figures(spectral.proved_scale()),
                figures(task.noise_floor())
            );
            prose += match covariates {
                Covariates::Gaussian => {
                    "Gaussian covariates: every risk is exact, and the error of a flow is its change when steps are \
                     a hundred times looser."
                }
                _ => "Covariates are drawn: errors are standard errors over independent sets of draws.",
            };
            let mut blocks =
                vec![DocumentBlock::Prose(prose), DocumentBlock::Table(ends(&id, &records, here))];
            let figure =
                |id: String, title: &str, quantity: &str, label: &str, scale: Scale, caption: &str| {
                    // The infinite prompt has no distance to itself.
                    let of_finite = quantity == "distance-to-infinite";
                    let keep = |record: &Record| here(record) && (!of_finite || record.length.is_some());
                    let series = lines(&curves(&records, quantity, keep));
                    (!series.is_empty()).then(|| {
                        DocumentBlock::Figure(Figure {
                            id,
                            title: title.to_string(),
                            caption: caption.to_string(),
                            x: time_axis(),
                            y: Axis { label: label.to_string(), scale },
                            series,
                        })
                    })
                };
            blocks.extend(figure(
                format!("risk-{id}"),
                "Risk during training",
                "risk",
                "risk R",
                Scale::Logarithmic,
                "Halved mean squared error along the flow.",
            ));
            blocks.extend(figure(
                format!("distance-{id}"),
                "Distance to the flow of the infinite prompt",
                "distance-to-infinite",
                "|θ_L(t) − θ_∞(t)|",
                Scale::Logarithmic,
                "Distance of all parameters at the same time, from the same start.",
            ));
            if let Some(DocumentBlock::Figure(mut gain)) = figure(
                format!("gain-{id}"),
                "The gain b during training",
                "gain",
                "b",
                Scale::Linear,
                "Dashed: first-order theory of the drift along the valley $b\\Sigma A = I$, which starts where the \
                 infinite prompt ends.",
            ) {
                let predicted = curves(&records, "predicted-gain", here);
                let mut label = "first order".to_string();
                let theory: Vec<Series> = predicted
                    .iter()
                    .filter_map(|(name, curve)| {
                        let measured = gain.series.iter().find(|series| series.name == *name)?;
                        Some(Series {
                            name: std::mem::take(&mut label),
                            mark: Mark::Dashed,
                            colour: measured.colour,
                            points: curve
                                .iter()
                                .map(|record| Point::new(record.time, record.number.value))
                                .collect(),
                        })
                    })
                    .collect();
                gain.series.extend(theory);
                blocks.push(DocumentBlock::Figure(gain));
            }
            sections.push(esscher_report::Section {
                id,
                title: format!("{} covariates, $d = {dimension}$", capitalised(covariates.name())),
                verdict: None,
                blocks,
            });
        }
    }
    if plan.draws > 0 {
        let prose = format!("{} sets of {} prompts were drawn for each law.", plan.draws, plan.prompts);
        if let Some(last) = sections.last_mut() {
            last.blocks.push(DocumentBlock::Prose(prose));
        }
    }
    Ok(sections)
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// Where each flow ended.
fn ends(id: &str, records: &[Record], here: impl Fn(&Record) -> bool) -> DataTable {
    let shown = [
        ("final-risk", "risk"),
        ("largest-distance-to-infinite", "from the infinite flow"),
        ("distance-to-infinite-limit", "from its limit"),
        ("distance-to-own-limit", "from the own limit"),
    ];
    let mine: Vec<&Record> = records.iter().filter(|record| here(record) && record.draw.is_none()).collect();
    let mut rows: Vec<(String, &Record)> = Vec::new();
    for record in &mine {
        let name = record.curve();
        if !rows.iter().any(|(other, _)| *other == name) {
            rows.push((name, record));
        }
    }
    let mut rows: Vec<Vec<Cell>> = rows
        .into_iter()
        .map(|(name, first)| {
            let mut cells = vec![Cell::Text(name.clone())];
            for (quantity, _) in shown {
                let last =
                    mine.iter().rev().find(|record| record.quantity == quantity && record.curve() == name);
                cells.push(last.map_or(Cell::Missing, |record| record.number.cell()));
            }
            cells.push(Cell::Text(first.number.class.name().to_string()));
            cells.push(Cell::Text(first.ending.clone()));
            cells
        })
        .collect();
    let mut columns = vec!["flow".to_string()];
    columns.extend(shown.iter().map(|(_, name)| name.to_string()));
    columns.extend(["class".to_string(), "ending".to_string()]);
    let mut caption = "Where each flow ended: risk, largest distance from the flow of the infinite prompt, and distances at the \
                       end from its limit and from the closed-form limit at the same length."
        .to_string();
    for heading in ["class", "ending"] {
        if let Some(Cell::Text(text)) = take_constant(&mut columns, &mut rows, heading) {
            let what = if heading == "class" { "Class" } else { "Every flow" };
            caption.push_str(&format!(" {what}: {text}."));
        }
    }
    for (_, heading) in shown {
        let index = columns.iter().position(|column| column == heading);
        if index.is_some_and(|index| rows.iter().all(|row| row[index] == Cell::Missing)) {
            take_constant(&mut columns, &mut rows, heading);
        }
    }
    DataTable { id: format!("ends-{id}"), caption, columns, rows }
}
