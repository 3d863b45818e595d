//! The large-prompt question, asked of any mechanisms: where outputs go as i.i.d. prompts grow, and how far they are at every length.

use super::{Kind, Plan};
use crate::measured::{Measured, NUMBER};
use crate::reading;
use esscher_core::numerics::InstructionSet;
use esscher_core::{Accuracy, Monitor};
use esscher_lab::specification::{Bounds, Mistake, Section};
use esscher_lab::{Column, Failure, Table, Unit, Value};
use esscher_report::{Axis, Block, Cell, DataTable, Figure, Mark, Scale, Series};
use esscher_zoo::catalogue::{Entry, Sizes, catalogue};
use esscher_zoo::large_prompt::{Comparison, Contender, Draws, Setting, Trials, compare};

pub(super) const KIND: Kind = Kind {
    name: "large-prompts",
    title: "Mechanisms on large prompts",
    summary: "Any mechanisms on growing prompts of i.i.d. tokens: limit, distance to softmax's limit, error at every length.",
    example: r#"kind = "large-prompts"
mechanisms = ["softmax", "inline", "linear-elu", "gla"]
query = [1, 0.5]
lengths = [16, 64, 256]
prompts = 40

[tokens]
family = "gaussian"
dimension = 2
"#,
    read,
};

const COLUMNS: [(&str, Column); 4] = [
    ("mechanism", Column::Text),
    ("fate", Column::Text),
    ("quantity", Column::Text),
    ("length", Column::Integer),
];

/// What a row holds.
mod quantity {
    /// |limit − softmax's limit|.
    pub(super) const DISTANCE: &str = "distance-to-softmax";
    /// |limit|, of the output, its mean, or the output per token.
    pub(super) const LIMIT: &str = "limit-norm";
    /// E |output − limit|² at a length.
    pub(super) const ERROR: &str = "mean-squared-error";
    /// κ of its law c L^{−κ}.
    pub(super) const RATE: &str = "rate";
}

/// Longest prompt: tokens are absorbed one by one.
const LONGEST: u64 = 1_000_000;

struct LargePrompts {
    entries: Vec<&'static Entry>,
    setting: Setting,
    trials: Trials,
}

fn read(section: &mut Section, seed: u64, _: InstructionSet) -> Result<Box<dyn Plan>, Mistake> {
    let known: Vec<(&'static str, &'static Entry)> =
        catalogue().iter().map(|entry| (entry.name, entry)).collect();
    let entries = section.choices("mechanisms", &known, None)?;
    let tokens = reading::law(section, "tokens")?;
    let dimension = tokens.dimension();
    section.accept("tokens", Sizes::new(dimension, dimension))?;
    let query = section.reals("query", Bounds::Any, dimension..=dimension, None)?;
    let lengths = reading::lengths(section, "lengths")?;
    if let Some(length) = lengths.iter().find(|length| length.get() > LONGEST) {
        let message = format!("prompts are absorbed token by token, up to {LONGEST} of them; found {length}");
        return Err(section.mistake("lengths", message));
    }
    let prompts = section.integer("prompts", 2..=1_000_000, Some(200))? as u32;
    let lengths = lengths.iter().map(|length| length.get() as usize).collect();
    let setting = Setting::identity(tokens, &query);
    Ok(Box::new(LargePrompts { entries, setting, trials: Trials { lengths, trials: prompts, seed } }))
}

impl Plan for LargePrompts {
    fn units(&self) -> Vec<Unit> {
        let dimension = self.setting.tokens.dimension() as f64;
        let tokens = self.trials.lengths.iter().max().map_or(0.0, |longest| *longest as f64)
            * f64::from(self.trials.trials);
        let cost = 0.1 + 1e-7 * tokens * (1.0 + dimension).powi(2);
        self.entries.iter().map(|entry| Unit { label: entry.name.to_string(), cost }).collect()
    }

    fn run_unit(&self, unit: usize, monitor: &dyn Monitor) -> Result<Option<Table>, Failure> {
        let entry = self.entries.get(unit).ok_or_else(|| format!("there is no unit {unit}"))?;
        if monitor.should_stop() {
            return Ok(None);
        }
        let dimension = self.setting.tokens.dimension();
        let mechanism = (entry.build)(Sizes::new(dimension, dimension)?);
        let contender = Contender { name: entry.name, mechanism: &*mechanism };
        let found = compare(&[contender], &self.setting, &self.trials, &Draws::default())?;
        let columns: Vec<(&str, Column)> = COLUMNS.iter().chain(&NUMBER).copied().collect();
        let mut table = Table::new(&columns);
        for comparison in &found {
            push_all(&mut table, comparison)?;
        }
        Ok(Some(table))
    }

    fn sections(&self, result: &Table) -> Result<Vec<esscher_report::Section>, Failure> {
        Ok(vec![section(&records(result)?)])
    }
}

fn push_all(table: &mut Table, found: &Comparison) -> Result<(), Failure> {
    let mut push = |quantity: &str, length: Option<usize>, number: Measured| {
        let head: [Value; 4] = [
            found.name.as_str().into(),
            found.fate.name().into(),
            quantity.into(),
            length.map(|length| length as i64).into(),
        ];
        table.push(head.into_iter().chain(number.values()))
    };
    let norm = found.limit.value.iter().map(|x| x * x).sum::<f64>().sqrt();
    // The distance to an exact limit errs as much as the limit does.
    let of_limit = |value: f64| match found.limit.accuracy {
        Accuracy::Exact { tolerance } => Measured::exact(value, tolerance * norm),
        Accuracy::QuasiMonteCarlo { randomisation_error: standard_error }
        | Accuracy::Sampled { standard_error } => Measured::sampled(value, standard_error),
    };
    push(quantity::LIMIT, None, of_limit(norm))?;
    if let Some(distance) = found.distance_to_softmax {
        push(quantity::DISTANCE, None, of_limit(distance))?;
    }
    for at in &found.lengths {
        if let Some(estimate) = at.squared_distance {
            push(quantity::ERROR, Some(at.length), Measured::from(estimate))?;
        }
    }
    if let Some(rate) = &found.rate {
        push(quantity::RATE, None, Measured::sampled(rate.exponent, rate.standard_error))?;
    }
    Ok(())
}

struct Record {
    mechanism: String,
    fate: String,
    quantity: String,
    length: Option<i64>,
    number: Measured,
}

fn records(result: &Table) -> Result<Vec<Record>, Failure> {
    result
        .rows()
        .map(|row| {
            Ok(Record {
                mechanism: row.text("mechanism")?.to_string(),
                fate: row.text("fate")?.to_string(),
                quantity: row.text("quantity")?.to_string(),
                length: match row.value("length")? {
                    Value::Missing => None,
                    _ => Some(row.integer("length")?),
                },
                number: Measured::read(&row)?,
            })
        })
        .collect()
}

fn section(records: &[Record]) -> esscher_report::Section {
    let mut names: Vec<&str> = Vec::new();
    for record in records {
        if !names.contains(&record.mechanism.as_str()) {
            names.push(&record.mechanism);
        }
    }
    let of = |name: &str, quantity: &str| -> Vec<&Record> {
        records.iter().filter(|record| record.mechanism == name && record.quantity == quantity).collect()
    };
    let cell = |name: &str, quantity: &str| {
        of(name, quantity).first().map_or(Cell::Missing, |record| record.number.cell())
    };
    let rows = names
        .iter()
        .map(|name| {
            let limit = of(name, quantity::LIMIT);
            vec![
                Cell::Text((*name).to_string()),
                Cell::Text(limit.first().map_or(String::new(), |record| record.fate.clone())),
                cell(name, quantity::LIMIT),
                cell(name, quantity::DISTANCE),
                Cell::Text(
                    limit.first().map_or(String::new(), |record| record.number.class.name().to_string()),
                ),
                cell(name, quantity::RATE),
            ]
        })
        .collect();
    let columns = ["mechanism", "long prompts", "|limit|", "distance to softmax", "class", "rate κ"];
    let table = DataTable {
        id: "limits".to_string(),
        caption: "Where outputs go: the limit of the output, of its mean where a stationary law remains, of the output per \
                  token where it grows; its distance to softmax's limit; κ of the mean squared error c L^{−κ}. Gates that \
                  tokens would set are constant: decays 0.9, step sizes 0.1, fractions one half, arguments of gates zero."
            .to_string(),
        columns: columns.map(String::from).to_vec(),
        rows,
    };
    let figure = Figure {
        id: "errors".to_string(),
        title: "Mean squared distance to the limit".to_string(),
        caption: "Simulated prompts, one standard error. Averages approach their limit like 1/L; what decays does not settle."
            .to_string(),
        x: Axis { label: "prompt length L".to_string(), scale: Scale::Logarithmic },
        y: Axis { label: "mean squared distance".to_string(), scale: Scale::Logarithmic },
        series: names
            .iter()
            .enumerate()
            .map(|(colour, name)| Series {
                name: (*name).to_string(),
                mark: Mark::Line,
                colour,
                points: of(name, quantity::ERROR)
                    .iter()
                    .map(|record| record.number.point(record.length.unwrap_or(0) as f64))
                    .collect(),
            })
            .collect(),
    };
    esscher_report::Section {
        id: "large-prompts".to_string(),
        title: "The large-prompt question".to_string(),
        verdict: None,
        blocks: vec![Block::Table(table), Block::Figure(figure)],
    }
}
