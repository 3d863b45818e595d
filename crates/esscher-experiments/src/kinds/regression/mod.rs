//! Gradient-flow training on in-context linear regression: softmax at finite prompts beside infinite prompts and linear
//! attention.

mod drawing;
mod records;
mod running;

pub(crate) use drawing::{curves, lines, time_axis};
pub(crate) use records::{Record, records};

use super::{Kind, Plan};
use crate::measured::length_name;
use crate::planned::MOST_UNITS;
use crate::reading::{self, COVARIATES, Covariates, InitialScale};
use esscher_core::Monitor;
use esscher_core::prompt::PromptLength;
use esscher_core::regression::{LinearRegression, Method};
use esscher_lab::specification::{Bounds, Mistake, Section};
use esscher_lab::{Failure, Table, Unit};

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
    // Counted before they are listed: a slip of a zero must not fill the memory.
    let infinite = usize::from(models.contains(&Model::Infinite));
    let flows = (models.len() - infinite).saturating_mul(lengths.len()).saturating_add(infinite);
    let repeats: usize = covariates
        .iter()
        .map(|covariates| if *covariates == Covariates::Gaussian { 1 } else { draws as usize })
        .sum();
    let units = flows.saturating_mul(repeats).saturating_mul(tasks.len());
    if units > MOST_UNITS {
        let key = if needs_lengths { "lengths" } else { "models" };
        let message = format!(
            "with the models, dimensions, covariates and draws that makes {units} flows, at most {MOST_UNITS} are planned"
        );
        return Err(section.mistake(key, message));
    }
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
    fn unit_count(&self) -> usize {
        self.jobs.len()
    }

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
        let mut all = records::empty();
        for unit in units {
            all.append(unit)?;
        }
        records::summarise(&all)
    }

    fn sections(&self, result: &Table) -> Result<Vec<esscher_report::Section>, Failure> {
        drawing::sections(self, result)
    }
}
