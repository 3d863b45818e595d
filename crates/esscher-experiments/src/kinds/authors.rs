//! The authors' own experiment: softmax and linear attention trained by SGD at each length, beside what could be had.

use super::{Kind, Plan};
use crate::measured::{GREY, Measured, NUMBER};
use crate::reading;
use esscher_core::Monitor;
use esscher_core::numerics::InstructionSet;
use esscher_core::prompt::PromptLength;
use esscher_core::regression::authors::{AuthorsCovariance, AuthorsExperiment, AuthorsOptions};
use esscher_core::regression::{
    AttentionKind, DescentStop, Draws, FlowEnding, FlowOptions, LinearAttention, PointAverage, Response,
    RiskAverage, SpectralLandscape, SpectralTask, bayes_at_length, flow, linear_risk,
};
use esscher_lab::specification::{Bounds, Mistake, Section};
use esscher_lab::{Column, Failure, Table, TableError, Unit, Value};
use esscher_report::{Axis, Block, Cell, DataTable, Figure, Mark, Point, Scale, Series};

pub(super) const KIND: Kind = Kind {
    name: "authors",
    title: "The authors' experiment",
    summary: "Softmax and linear attention trained by SGD in five dimensions, beside optima and Bayes.",
    example: r#"kind = "authors"
lengths = [10, 40]
steps = 200
rate = 0.1
test_prompts = 1000
bayes_trials = 1000
"#,
    read,
};

const COLUMNS: [(&str, Column); 4] = [
    ("length", Column::Integer),
    ("model", Column::Text),
    ("quantity", Column::Text),
    ("ending", Column::Text),
];

/// One unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Trained(AttentionKind),
    Reference,
}

struct Authors {
    experiment: AuthorsExperiment,
    bayes_trials: u32,
    jobs: Vec<(PromptLength, Part)>,
}

fn read(section: &mut Section, seed: u64, instruction_set: InstructionSet) -> Result<Box<dyn Plan>, Mistake> {
    let covariances =
        [("isotropic", AuthorsCovariance::Isotropic), ("toeplitz", AuthorsCovariance::Toeplitz)];
    let covariance = section.choice("covariance", &covariances, Some("isotropic"))?;
    let covariance_bug = section.truth("covariance_bug", Some(false))?;
    if covariance_bug && covariance == AuthorsCovariance::Isotropic {
        let message =
            "it is a treatment of the Toeplitz covariance and has no effect on isotropic covariates";
        return Err(section.mistake("covariance_bug", message));
    }
    let lengths = reading::lengths(section, "lengths")?;
    if let Some(longest) = lengths.last()
        && longest.get() > 100_000
    {
        return Err(section
            .mistake("lengths", format!("prompts are drawn: expected at most 100000, found {longest}")));
    }
    let steps = section.integer("steps", 1..=10_000_000, Some(3_000))? as u32;
    let rate = section.real("rate", Bounds::Between(1e-9, 10.0), Some(1e-3))?;
    let draws = section.choice(
        "draws",
        &[("projections", Draws::Projections), ("prompts", Draws::Prompts)],
        Some("projections"),
    )?;
    let test_prompts = section.integer("test_prompts", 2..=100_000_000, Some(10_000))? as u32;
    let bayes_trials = section.integer("bayes_trials", 2..=100_000_000, Some(20_000))? as u32;
    let made = AuthorsExperiment::new(AuthorsOptions {
        covariance,
        covariance_bug,
        lengths: lengths.iter().map(|length| length.get() as usize).collect(),
        steps,
        rate,
        draws,
        test_prompts,
        seed,
        instruction_set,
    });
    let experiment = section.accept("lengths", made)?;
    let parts =
        [Part::Trained(AttentionKind::Softmax), Part::Trained(AttentionKind::Linear), Part::Reference];
    let jobs = lengths.iter().flat_map(|length| parts.map(|part| (*length, part))).collect();
    Ok(Box::new(Authors { experiment, bayes_trials, jobs }))
}

fn name(kind: AttentionKind) -> &'static str {
    match kind {
        AttentionKind::Softmax => "softmax",
        AttentionKind::Linear => "linear",
    }
}

impl Plan for Authors {
    fn units(&self) -> Vec<Unit> {
        let options = self.experiment.options();
        self.jobs
            .iter()
            .map(|(length, part)| {
                let tokens = length.as_f64();
                match part {
                    Part::Trained(kind) => {
                        // A step of 128 prompts on one core: what is fixed, and the two projections of each token.
                        let step = 2.5e-4 + 2.2e-6 * tokens;
                        let fixed = if *kind == AttentionKind::Softmax { 0.5 } else { 0.0 };
                        let tests = f64::from(options.test_prompts) * 6e-8 * tokens;
                        Unit {
                            label: format!("{} trained, L = {length}", name(*kind)),
                            cost: fixed + step * f64::from(options.steps) + tests,
                        }
                    }
                    Part::Reference => Unit {
                        label: format!("optima and Bayes, L = {length}"),
                        cost: 1.5 + f64::from(self.bayes_trials) * 5e-6,
                    },
                }
            })
            .collect()
    }

    fn run_unit(&self, unit: usize, monitor: &dyn Monitor) -> Result<Option<Table>, Failure> {
        let (length, part) = *self.jobs.get(unit).ok_or_else(|| format!("there is no unit {unit}"))?;
        match part {
            Part::Trained(kind) => self.trained(length, kind, monitor),
            Part::Reference => self.reference(length, monitor),
        }
    }

    fn sections(&self, result: &Table) -> Result<Vec<esscher_report::Section>, Failure> {
        let records = records(result)?;
        let options = self.experiment.options();
        let covariance = match (options.covariance, options.covariance_bug) {
            (AuthorsCovariance::Isotropic, _) => "isotropic covariates",
            (AuthorsCovariance::Toeplitz, false) => "Toeplitz covariates, $\\Sigma_{ij} = 0.5^{|i-j|}$",
            (AuthorsCovariance::Toeplitz, true) => {
                "Toeplitz covariates as the authors' public code draws them (the Cholesky factor twice on prompts, \
                 never on queries)"
            }
        };
        let flow_time = options.rate * f64::from(options.steps);
        let prose = format!(
            "$d = 5$, one head in separate $Q, K, V, O$, label noise of variance 0.1, {covariance}; {} steps of SGD at rate \
             {} with 128 fresh prompts each, which is as far along the gradient flow as {:.0} of the authors' 300,000 \
             steps at rate 0.001. Numbers are mean squared errors; no predictor is below 0.1.",
            options.steps,
            options.rate,
            flow_time / 1e-3
        );
        Ok(vec![esscher_report::Section {
            id: "authors".to_string(),
            title: "Error against prompt length".to_string(),
            verdict: None,
            blocks: vec![Block::Prose(prose), Block::Table(table(&records)), Block::Figure(figure(&records))],
        }])
    }
}

impl Authors {
    fn trained(
        &self,
        length: PromptLength,
        kind: AttentionKind,
        monitor: &dyn Monitor,
    ) -> Result<Option<Table>, Failure> {
        let Some(found) = self.experiment.train(length.get() as usize, kind, monitor)? else {
            return Ok(None);
        };
        let law = self.experiment.law();
        // The same layer with the average over tokens done exactly: no noise of tests.
        let in_tokens = match kind {
            AttentionKind::Softmax => {
                let average = RiskAverage::new(law, PointAverage::default())?;
                average.evaluate(&found.head, &Response::softmax(length))?.risk
            }
            AttentionKind::Linear => linear_risk(&found.head, law, length)?.risk,
        };
        let ending = match found.stop {
            DescentStop::Finished => "all steps were taken".to_string(),
            DescentStop::Diverged { step, .. } => format!("diverged after {step} steps"),
            DescentStop::Stopped { step } => format!("stopped after {step} steps"),
        };
        let mut rows = Rows { table: empty(), length, model: name(kind), ending };
        let tested = Measured::sampled(found.test_error.mean, found.test_error.standard_error);
        rows.push("test-error", tested)?;
        rows.push("trained-error", Measured::from(in_tokens).times(2.0))?;
        Ok(Some(rows.table))
    }

    fn reference(&self, length: PromptLength, monitor: &dyn Monitor) -> Result<Option<Table>, Failure> {
        let law = self.experiment.law();
        let (task, _) = SpectralTask::new(law)?;
        let start = task.initial(0.5)?;
        let landscape = SpectralLandscape { task, response: Response::softmax(length) };
        let options = FlowOptions { end_time: 1e12, rows: 1, ..FlowOptions::default() };
        let trajectory = flow(&landscape, &start, &options, monitor)?;
        if matches!(trajectory.ending, FlowEnding::Stopped { .. }) {
            return Ok(None);
        }
        let mut rows =
            Rows { table: empty(), length, model: "softmax", ending: trajectory.ending.to_string() };
        // A flow that does not stand still has no limit to report.
        if matches!(trajectory.ending, FlowEnding::Stationary { .. }) {
            let optimum = 2.0 * trajectory.last()?.risk;
            rows.push("optimum", Measured::exact(optimum, 1e-8 * optimum))?;
        }
        let optimum = 2.0 * LinearAttention::new(law, length)?.minimal_risk()?;
        (rows.model, rows.ending) = ("linear", "closed form".to_string());
        rows.push("optimum", Measured::exact(optimum, 1e-12 * optimum))?;
        let seed = self.experiment.options().seed;
        let bayes = bayes_at_length(law, length, self.bayes_trials, seed)?;
        (rows.model, rows.ending) = ("bayes", "averaged over prompts".to_string());
        if let (Some(mean), Some(error)) = (bayes.mean(), bayes.standard_error()) {
            rows.push("optimum", Measured::sampled(2.0 * mean, 2.0 * error))?;
        }
        Ok(Some(rows.table))
    }
}

fn empty() -> Table {
    let columns: Vec<(&str, Column)> = COLUMNS.iter().chain(&NUMBER).copied().collect();
    Table::new(&columns)
}

struct Rows {
    table: Table,
    length: PromptLength,
    model: &'static str,
    ending: String,
}

impl Rows {
    fn push(&mut self, quantity: &str, number: Measured) -> Result<(), TableError> {
        let head: [Value; 4] = [
            (self.length.get() as i64).into(),
            self.model.into(),
            quantity.into(),
            self.ending.as_str().into(),
        ];
        self.table.push(head.into_iter().chain(number.values()))
    }
}

/// A row of the result.
#[derive(Debug, Clone)]
pub(crate) struct AuthorsRecord {
    pub(crate) length: i64,
    pub(crate) model: String,
    pub(crate) quantity: String,
    pub(crate) ending: String,
    pub(crate) number: Measured,
}

/// The rows of a result of this kind.
pub(crate) fn records(result: &Table) -> Result<Vec<AuthorsRecord>, TableError> {
    result
        .rows()
        .map(|row| {
            Ok(AuthorsRecord {
                length: row.integer("length")?,
                model: row.text("model")?.to_string(),
                quantity: row.text("quantity")?.to_string(),
                ending: row.text("ending")?.to_string(),
                number: Measured::read(&row)?,
            })
        })
        .collect()
}

/// Errors at each length.
pub(crate) fn table(records: &[AuthorsRecord]) -> DataTable {
    let shown = [
        ("softmax", "test-error", "softmax, test"),
        ("softmax", "trained-error", "softmax, exact"),
        ("softmax", "optimum", "softmax, best"),
        ("linear", "test-error", "linear, test"),
        ("linear", "trained-error", "linear, exact"),
        ("linear", "optimum", "linear, best"),
        ("bayes", "optimum", "Bayes"),
    ];
    let mut lengths: Vec<i64> = records.iter().map(|record| record.length).collect();
    lengths.dedup();
    let rows = lengths
        .into_iter()
        .map(|length| {
            let mut cells = vec![Cell::Integer(length)];
            cells.extend(shown.iter().map(|(model, quantity, _)| {
                let found = records.iter().find(|record| {
                    record.length == length && record.model == *model && record.quantity == *quantity
                });
                found.map_or(Cell::Missing, |record| record.number.cell())
            }));
            cells
        })
        .collect();
    let mut columns = vec!["$L$".to_string()];
    columns.extend(shown.iter().map(|(_, _, title)| title.to_string()));
    DataTable {
        id: "errors".to_string(),
        caption: "Mean squared errors of the trained layer on test prompts (sampled, one standard error), of the same \
                  layer exactly in the tokens (softmax: quasi-Monte-Carlo; linear: exact), of the best layer (linear: closed form; \
                  softmax: limit of the block-form flow), and of the posterior mean (sampled)."
            .to_string(),
        columns,
        rows,
    }
}

/// The authors' figure: test errors over L, with optima dashed and Bayes.
pub(crate) fn figure(records: &[AuthorsRecord]) -> Figure {
    let line = |name: &str, model: &str, quantity: &str, mark: Mark, colour: usize| Series {
        name: name.to_string(),
        mark,
        colour,
        points: records
            .iter()
            .filter(|record| record.model == model && record.quantity == quantity)
            .map(|record| match mark {
                Mark::Dashed => Point::new(record.length as f64, record.number.value),
                _ => record.number.point(record.length as f64),
            })
            .collect(),
    };
    let mut series = vec![
        line("softmax", "softmax", "test-error", Mark::Dots, 0),
        line("linear", "linear", "test-error", Mark::Dots, 1),
        line("Bayes", "bayes", "optimum", Mark::Line, 2),
        line("optimum", "softmax", "optimum", Mark::Dashed, 0),
        line("", "linear", "optimum", Mark::Dashed, 1),
    ];
    let lengths = records.iter().map(|record| record.length as f64);
    let (low, high) = lengths.fold((f64::INFINITY, 0.0_f64), |(low, high), x| (low.min(x), high.max(x)));
    if low < high {
        let noise = esscher_core::regression::authors::NOISE;
        series.push(Series {
            name: "noise floor".to_string(),
            mark: Mark::Dashed,
            colour: GREY,
            points: vec![Point::new(low, noise), Point::new(high, noise)],
        });
    }
    Figure {
        id: "errors-figure".to_string(),
        title: "Test error of trained layers against prompt length".to_string(),
        caption: "Dots: trained by SGD, with one standard error of the test. Dashed, in the same colours: the optimum \
                  of each attention (softmax: limit of the block-form flow); in grey: the noise floor. Line: the posterior mean, \
                  sampled."
            .to_string(),
        x: Axis { label: "prompt length L".to_string(), scale: Scale::Logarithmic },
        y: Axis { label: "mean squared error".to_string(), scale: Scale::Logarithmic },
        series,
    }
}
