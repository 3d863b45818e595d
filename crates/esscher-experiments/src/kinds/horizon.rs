//! How long prompts must be for training to end within ε of the noise floor: L(ε), by dimension.

use super::{Kind, Plan, valley};
use crate::measured::{Measured, NUMBER, figures};
use crate::reading::{self, InitialScale};
use esscher_core::Monitor;
use esscher_core::concentration::Horizon as Found;
use esscher_core::numerics::InstructionSet;
use esscher_core::prompt::PromptLength;
use esscher_core::regression::{
    FlowEnding, FlowOptions, LinearRegression, Method, Response, SpectralLandscape, SpectralTask, flow,
    training_horizon,
};
use esscher_lab::specification::{Bounds, Mistake, Section};
use esscher_lab::{Column, Failure, Table, TableError, Unit, Value};
use esscher_report::{Axis, Block, Cell, DataTable, Figure, Mark, Point, Scale, Series};

pub(super) const KIND: Kind = Kind {
    name: "horizon",
    title: "How long prompts must be",
    summary: "The smallest prompt length at which gradient flow ends within a given excess of the noise floor.",
    example: r#"kind = "horizon"
excesses = [5.0]
initial_fraction = 0.5

[task]
covariance = "isotropic"
dimensions = [100]
noise = 0.1
"#,
    read,
};

const COLUMNS: [(&str, Column); 6] = [
    ("dimension", Column::Integer),
    ("initial_scale", Column::Real),
    ("excess", Column::Real),
    ("outcome", Column::Text),
    ("length", Column::Integer),
    ("quantity", Column::Text),
];

/// Excess risks of limits are known to this fraction of the excess asked for: what the search checks itself to.
const LIMIT_TOLERANCE: f64 = 1e-6;

struct Horizon {
    tasks: Vec<LinearRegression>,
    initial: InitialScale,
    excesses: Vec<f64>,
    beyond: Vec<u64>,
}

fn read(section: &mut Section, _seed: u64, _: InstructionSet) -> Result<Box<dyn Plan>, Mistake> {
    let excesses = section.reals("excesses", Bounds::Between(1e-9, 1e6), 1..=50, None)?;
    let mut falling = excesses.clone();
    falling.sort_by(|a, b| b.total_cmp(a));
    falling.dedup();
    if falling.len() < excesses.len() {
        return Err(section.mistake("excesses", "an excess stands twice; each is run once"));
    }
    let initial = reading::initial_scale(section)?;
    let beyond = section.integers("beyond", 2..=1_000_000, 0..=10, Some(&[]))?;
    let tasks = section.table("task", reading::tasks)?;
    Ok(Box::new(Horizon { tasks, initial, excesses: falling, beyond }))
}

impl Plan for Horizon {
    fn units(&self) -> Vec<Unit> {
        let mut units = Vec::new();
        for task in &self.tasks {
            for excess in &self.excesses {
                let dimension = task.dimension();
                units.push(Unit {
                    label: format!("d = {dimension}, excess {excess}"),
                    cost: 3.5 + self.beyond.len() as f64,
                });
            }
        }
        units
    }

    fn run_unit(&self, unit: usize, monitor: &dyn Monitor) -> Result<Option<Table>, Failure> {
        let (task, excess) = (unit / self.excesses.len(), unit % self.excesses.len());
        let task = self.tasks.get(task).ok_or_else(|| format!("there is no unit {unit}"))?;
        let excess = self.excesses[excess];
        let (spectral, _) = SpectralTask::new(task)?;
        let scale = self.initial.at(&spectral);
        let found = training_horizon(&spectral, scale, excess, monitor)?;
        let (outcome, length) = match found {
            Found::Found { length, .. } => ("found", length),
            Found::AlreadyBelow { .. } => ("one token is enough", PromptLength::MIN),
            Found::BeyondLongest { longest, .. } => ("beyond 1e12 tokens", longest),
            Found::Stopped { .. } => return Ok(None),
        };
        let mut table = empty();
        let mut push = |length: Option<PromptLength>, quantity: &str, number: Measured| {
            let head: [Value; 6] = [
                (task.dimension() as i64).into(),
                scale.into(),
                excess.into(),
                outcome.into(),
                length.map(|length| length.get() as i64).into(),
                quantity.into(),
            ];
            table.push(head.into_iter().chain(number.values()))
        };
        let near = |value: f64| Measured::exact(value, LIMIT_TOLERANCE * excess);
        match found {
            Found::Found { error, error_before, .. } => {
                push(Some(length), "horizon", Measured::exact(length.as_f64(), 0.0))?;
                push(Some(length), "excess-risk", near(error))?;
                push(Some(PromptLength::new(length.get() - 1)?), "excess-risk-before", near(error_before))?;
            }
            Found::AlreadyBelow { error } => {
                push(Some(length), "horizon", Measured::exact(length.as_f64(), 0.0))?;
                push(Some(length), "excess-risk", near(error))?;
            }
            _ => {}
        }
        if !matches!(found, Found::BeyondLongest { .. }) {
            for multiple in &self.beyond {
                let Ok(longer) = PromptLength::new(length.get().saturating_mul(*multiple)) else { continue };
                let Some(limit) = excess_at_limit(&spectral, scale, longer, excess, monitor)? else {
                    return Ok(None);
                };
                push(Some(longer), "excess-risk-beyond", near(limit))?;
            }
        }
        let (_, coefficient) = valley::lowest_point(&spectral)?;
        push(
            None,
            "first-order-horizon",
            Measured::exact(coefficient / excess, 1e-9 * coefficient / excess),
        )?;
        let proved = spectral.proved_scale();
        push(None, "proved-scale", Measured::exact(proved, 1e-12 * proved))?;
        push(None, "noise-floor", Measured::exact(task.noise_floor(), 0.0))?;
        Ok(Some(table))
    }

    fn sections(&self, result: &Table) -> Result<Vec<esscher_report::Section>, Failure> {
        let rows = records(result)?;
        let scales: Vec<String> = self
            .tasks
            .iter()
            .map(|task| SpectralTask::new(task).map(|(spectral, _)| figures(self.initial.at(&spectral))))
            .collect::<Result<_, _>>()?;
        let prose = format!(
            "The smallest $L$ at which gradient flow from $A = \\alpha I/\\sqrt d$, $b = \\alpha$ (α = {}) becomes stationary \
             with a risk of at most the noise floor plus ε. Exact: nothing is sampled; limits are known to {LIMIT_TOLERANCE:e} ε. That the \
             excess falls with $L$ is assumed by the search.",
            scales.join(", ")
        );
        Ok(vec![esscher_report::Section {
            id: "horizon".to_string(),
            title: "Prompt lengths that suffice".to_string(),
            verdict: None,
            blocks: vec![Block::Prose(prose), Block::Table(table(&rows)), Block::Figure(figure(&rows))],
        }])
    }
}

/// Where the flow at this length ends, above the noise floor; nothing if the monitor asked to stop.
fn excess_at_limit(
    task: &SpectralTask,
    scale: f64,
    length: PromptLength,
    excess: f64,
    monitor: &dyn Monitor,
) -> Result<Option<f64>, Failure> {
    let landscape = SpectralLandscape { task: task.clone(), response: Response::softmax(length) };
    // As the search: the limit of a flow at finite length does not remember its steps.
    let options = FlowOptions {
        end_time: 1e15,
        stationary: (1e-4 * excess).min(1e-8),
        rows: 1,
        tolerance: 1e-5,
        largest: 1e6,
        method: Method::Stiff,
    };
    let trajectory = flow(&landscape, &task.initial(scale)?, &options, monitor)?;
    match trajectory.ending {
        FlowEnding::Stationary { .. } => Ok(Some(trajectory.last()?.risk - task.noise_floor())),
        FlowEnding::Stopped { .. } => Ok(None),
        other => Err(format!("the flow at {length} tokens has no limit to report: {other}").into()),
    }
}

fn empty() -> Table {
    let columns: Vec<(&str, Column)> = COLUMNS.iter().chain(&NUMBER).copied().collect();
    Table::new(&columns)
}

/// A row of the result.
#[derive(Debug, Clone)]
pub(crate) struct HorizonRecord {
    pub(crate) dimension: i64,
    pub(crate) initial_scale: f64,
    pub(crate) excess: f64,
    pub(crate) outcome: String,
    pub(crate) length: Option<i64>,
    pub(crate) quantity: String,
    pub(crate) number: Measured,
}

/// The rows of a result of this kind.
pub(crate) fn records(result: &Table) -> Result<Vec<HorizonRecord>, TableError> {
    result
        .rows()
        .map(|row| {
            Ok(HorizonRecord {
                dimension: row.integer("dimension")?,
                initial_scale: row.real("initial_scale")?,
                excess: row.real("excess")?,
                outcome: row.text("outcome")?.to_string(),
                length: match row.value("length")? {
                    Value::Missing => None,
                    _ => Some(row.integer("length")?),
                },
                quantity: row.text("quantity")?.to_string(),
                number: Measured::read(&row)?,
            })
        })
        .collect()
}

/// The dimensions of a result in order.
fn dimensions(rows: &[HorizonRecord]) -> Vec<i64> {
    let mut found: Vec<i64> = rows.iter().map(|row| row.dimension).collect();
    found.dedup();
    found
}

/// L(ε) with what is found there.
pub(crate) fn table(rows: &[HorizonRecord]) -> DataTable {
    let mut lines = Vec::new();
    for row in rows.iter().filter(|row| row.quantity == "noise-floor") {
        let here = |quantity: &str| {
            rows.iter().find(|other| {
                other.quantity == quantity && other.dimension == row.dimension && other.excess == row.excess
            })
        };
        let number = |quantity: &str| here(quantity).map_or(Cell::Missing, |row| row.number.cell());
        lines.push(vec![
            Cell::Integer(row.dimension),
            Cell::Number { value: row.excess, error: None },
            here("horizon").and_then(|row| row.length).map_or(Cell::Text(row.outcome.clone()), Cell::Integer),
            number("excess-risk"),
            number("excess-risk-before"),
            number("first-order-horizon"),
        ]);
    }
    DataTable {
        id: "horizons".to_string(),
        caption: "$L(\\varepsilon)$, the excess risk at the limit of the flow there and with one token less, and the \
                  first-order prediction $\\min_b R_1(b)/\\varepsilon$ of $L(\\varepsilon)$. Exact."
            .to_string(),
        columns: [
            "$d$",
            "$\\varepsilon$",
            "$L(\\varepsilon)$",
            "excess",
            "excess before",
            "first order",
        ]
        .map(String::from)
        .to_vec(),
        rows: lines,
    }
}

/// L(ε) over ε, dots, with the first-order prediction dashed.
pub(crate) fn figure(rows: &[HorizonRecord]) -> Figure {
    let (mut series, mut dashed) = (Vec::new(), Vec::new());
    let mut prediction = "first order".to_string();
    for (colour, dimension) in dimensions(rows).into_iter().enumerate() {
        let points = |quantity: &str| -> Vec<Point> {
            rows.iter()
                .filter(|row| row.dimension == dimension && row.quantity == quantity)
                .map(|row| Point::new(row.excess, row.number.value))
                .collect()
        };
        series.push(Series {
            name: format!("d = {dimension}"),
            mark: Mark::Dots,
            colour,
            points: points("horizon"),
        });
        dashed.push(Series {
            name: std::mem::take(&mut prediction),
            mark: Mark::Dashed,
            colour,
            points: points("first-order-horizon"),
        });
    }
    series.extend(dashed);
    Figure {
        id: "horizons-figure".to_string(),
        title: "Prompts that suffice for an excess risk".to_string(),
        caption: "Dots: exact, a whole number each. Dashed: the first-order prediction $\\min_b R_1(b)/\\varepsilon$, with $R_1$ \
                  the coefficient of $1/L$ in the risk along the valley of the infinite prompt."
            .to_string(),
        x: Axis { label: "excess risk ε above the noise floor".to_string(), scale: Scale::Logarithmic },
        y: Axis { label: "prompt length L(ε)".to_string(), scale: Scale::Logarithmic },
        series,
    }
}
