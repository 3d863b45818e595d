//! A Gaussian measure through residual attention layers: continuous flow or a stack of layers.

use super::{Kind, Plan};
use crate::measured::{Measured, NUMBER};
use crate::reading::square;
use crate::tabulating::take_constant;
use esscher_core::layers::{AtCollapse, Flow, FlowOptions, FlowStop, Layer, depth, exact_softmax_flow, flow};
use esscher_core::measure::Gaussian;
use esscher_core::numerics::InstructionSet;
use esscher_core::numerics::linalg::{self, SymmetricEigen};
use esscher_core::{Mat, MatRef, Monitor};
use esscher_lab::specification::{Bounds, Mistake, Section};
use esscher_lab::{Column, Failure, Table, TableError, Unit, Value};
use esscher_report::{Axis, Block, Cell, DataTable, Figure, Mark, Point, Scale, Series};

pub(super) const KIND: Kind = Kind {
    name: "layers",
    title: "A Gaussian through residual layers",
    summary: "Mean and covariance of Gaussian tokens through residual softmax, linear, L2 or Sinkhorn attention.",
    example: r#"kind = "layers"
attentions = ["softmax", "linear", "l2", "sinkhorn"]
dimension = 2
score = [[0.3, 0.0], [0.0, -0.5]]
value = 1.0
end_time = 1.5
rows = 30

[start]
mean = [0.5, 0.0]
covariance = [[1.0, 0.3], [0.3, 0.5]]
"#,
    read,
};

const COLUMNS: [(&str, Column); 5] = [
    ("attention", Column::Text),
    ("time", Column::Real),
    ("quantity", Column::Text),
    ("index", Column::Integer),
    ("ending", Column::Text),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attention {
    Softmax,
    Linear,
    L2,
    Sinkhorn,
}

const ATTENTIONS: &[(&str, Attention)] = &[
    ("softmax", Attention::Softmax),
    ("linear", Attention::Linear),
    ("l2", Attention::L2),
    ("sinkhorn", Attention::Sinkhorn),
];

/// How deep.
enum Depth {
    Flow { end_time: f64, rows: usize, collapse: AtCollapse, threshold: f64 },
    Stack { layers: usize, step_size: f64 },
}

struct Layers {
    attentions: Vec<(&'static str, Attention)>,
    query: Mat<f64>,
    key: Mat<f64>,
    value: Mat<f64>,
    start: Gaussian,
    depth: Depth,
}

fn read(section: &mut Section, _seed: u64, _: InstructionSet) -> Result<Box<dyn Plan>, Mistake> {
    let asked = section.choices("attentions", ATTENTIONS, Some(&["softmax"]))?;
    let attentions = ATTENTIONS.iter().filter(|(_, attention)| asked.contains(attention)).copied().collect();
    let dimension = section.integer("dimension", 1..=256, None)? as usize;
    let (query, key) = match (section.form("score"), section.form("query").or(section.form("key"))) {
        (Some(_), Some(_)) => {
            return Err(section.mistake("score", "`query` or `key` is given as well; give scores one way"));
        }
        // U = KᵀQ with K = I.
        (None, Some(_)) => {
            (square(section, "query", dimension, Some(1.0))?, square(section, "key", dimension, Some(1.0))?)
        }
        _ => (square(section, "score", dimension, Some(1.0))?, linalg::identity(dimension)),
    };
    let value = square(section, "value", dimension, Some(1.0))?;
    let is_stack = section.form("layers").is_some();
    let depth = if is_stack {
        for key in ["end_time", "rows", "at_collapse", "collapse_threshold"] {
            if section.form(key).is_some() {
                let message = "a number of `layers` is given as well; a stack of layers has no flow time";
                return Err(section.mistake(key, message));
            }
        }
        let layers = section.integer("layers", 1..=100_000, None)? as usize;
        Depth::Stack { layers, step_size: section.real("step_size", Bounds::Any, Some(1.0))? }
    } else {
        if section.form("step_size").is_some() {
            return Err(section.mistake("step_size", "a flow has no step size; give `layers` for a stack"));
        }
        let end_time = section.real("end_time", Bounds::Between(1e-9, 1e9), Some(1.0))?;
        let rows = section.integer("rows", 1..=10_000, Some(50))? as usize;
        let collapses = [("stop", AtCollapse::Stop), ("continue", AtCollapse::Continue)];
        let collapse = section.choice("at_collapse", &collapses, Some("stop"))?;
        let threshold = section.real("collapse_threshold", Bounds::Between(1e-14, 0.5), Some(1e-6))?;
        Depth::Flow { end_time, rows, collapse, threshold }
    };
    let start = section.table("start", |table| {
        let zero = vec![0.0; dimension];
        let mean = table.reals("mean", Bounds::Any, dimension..=dimension, Some(&zero))?;
        let covariance = square(table, "covariance", dimension, Some(1.0))?;
        let made = Gaussian::new(&mean, covariance.as_ref());
        table.accept("covariance", made)
    })?;
    Ok(Box::new(Layers { attentions, query, key, value, start, depth }))
}

impl Layers {
    fn layer(&self, attention: Attention) -> esscher_core::Result<Layer> {
        let (query, key, value) = (self.query.as_ref(), self.key.as_ref(), self.value.as_ref());
        let score = key.transpose() * query;
        match attention {
            Attention::Softmax => Layer::softmax(score.as_ref(), value),
            Attention::Linear => Layer::linear(score.as_ref(), value),
            Attention::L2 => Layer::l2(query, key, value),
            Attention::Sinkhorn => Layer::sinkhorn(query, key, value),
        }
    }

    /// The closed form, where there is one.
    fn has_closed_form(&self, attention: Attention) -> bool {
        attention == Attention::Softmax && self.value == linalg::identity(self.value.nrows())
    }
}

impl Plan for Layers {
    fn units(&self) -> Vec<Unit> {
        let dimension = self.value.nrows() as f64;
        let evaluations = match self.depth {
            Depth::Flow { rows, .. } => 2_000.0 + rows as f64,
            Depth::Stack { layers, .. } => layers as f64,
        };
        let cost = 1e-8 * evaluations * (10.0 + dimension).powi(3);
        self.attentions.iter().map(|(name, _)| Unit { label: name.to_string(), cost }).collect()
    }

    fn run_unit(&self, unit: usize, monitor: &dyn Monitor) -> Result<Option<Table>, Failure> {
        let (name, attention) =
            *self.attentions.get(unit).ok_or_else(|| format!("there is no unit {unit}"))?;
        let layer = self.layer(attention)?;
        match self.depth {
            Depth::Stack { layers, step_size } => {
                let stack = vec![layer; layers];
                let laws = depth(&self.start, &stack, step_size)?;
                let mut rows = Rows::new(name, format!("passed {layers} layers of step size {step_size}"));
                for (index, law) in laws.iter().enumerate() {
                    rows.law(index as f64 * step_size, law, law)?;
                }
                Ok(Some(rows.table))
            }
            Depth::Flow { end_time, rows, collapse, threshold } => {
                let options = FlowOptions {
                    at_collapse: collapse,
                    collapse_threshold: threshold,
                    ..FlowOptions::evenly(end_time, rows)
                };
                let fine = flow(&layer, &self.start, &options, monitor)?;
                // The same with steps a hundred times looser: the difference bounds the error.
                let options = FlowOptions {
                    relative_tolerance: 100.0 * options.relative_tolerance,
                    absolute_tolerance: 100.0 * options.absolute_tolerance,
                    ..options
                };
                let loose = flow(&layer, &self.start, &options, monitor)?;
                if [&fine, &loose].iter().any(|flow| matches!(flow.stop, FlowStop::Stopped { .. })) {
                    return Ok(None);
                }
                self.rows_of_flow(name, attention, &fine, &loose).map(Some)
            }
        }
    }

    fn sections(&self, result: &Table) -> Result<Vec<esscher_report::Section>, Failure> {
        let records = records(result)?;
        self.attentions.iter().map(|(name, _)| Ok(section_of(name, &records, &self.depth))).collect()
    }
}

impl Layers {
    fn rows_of_flow(
        &self,
        name: &str,
        attention: Attention,
        fine: &Flow,
        loose: &Flow,
    ) -> Result<Table, Failure> {
        let mut rows = Rows::new(name, fine.stop.to_string());
        for (index, (&time, law)) in fine.times.iter().zip(&fine.laws).enumerate() {
            let other = loose.times.get(index).filter(|other| **other == time).map(|_| &loose.laws[index]);
            rows.law(time, law, other.unwrap_or(law))?;
        }
        let ended = |stop: &FlowStop| match stop {
            FlowStop::BlowUp { time, .. } => Some(("blow-up-time", *time)),
            FlowStop::Collapse(collapse) => Some(("collapse-time", collapse.time)),
            _ => None,
        };
        if let Some((quantity, time)) = ended(&fine.stop) {
            let other = ended(&loose.stop).map_or(time, |(_, other)| other);
            rows.push(time, quantity, None, Measured::exact(time, (time - other).abs() + 1e-9 * time))?;
        }
        for collapse in &fine.collapses {
            let rank = collapse.rank as i64;
            rows.push(collapse.time, "rank-after-collapse", None, Measured::exact(rank as f64, 0.0))?;
        }
        if self.has_closed_form(attention) {
            let score = self.key.transpose() * &self.query;
            let exact = exact_softmax_flow(score.as_ref(), &self.start)?;
            for &time in &fine.times {
                let values = eigenvalues(exact.covariance(time)?.as_ref())?;
                for (index, value) in values.iter().enumerate() {
                    let number = Measured::exact(*value, 1e-12 * values[0].abs());
                    rows.push(time, "closed-form-eigenvalue", Some(index as i64 + 1), number)?;
                }
            }
            if let Some(time) = exact.blow_up_time() {
                rows.push(time, "closed-form-blow-up-time", None, Measured::exact(time, 1e-12 * time))?;
            }
        }
        Ok(rows.table)
    }
}

/// Falling.
fn eigenvalues(covariance: MatRef<'_, f64>) -> esscher_core::Result<Vec<f64>> {
    let symmetric = linalg::symmetric_part(covariance);
    let mut values = SymmetricEigen::new("the covariance", symmetric.as_ref())?.values;
    values.reverse();
    Ok(values)
}

fn empty() -> Table {
    let columns: Vec<(&str, Column)> = COLUMNS.iter().chain(&NUMBER).copied().collect();
    Table::new(&columns)
}

struct Rows {
    table: Table,
    attention: String,
    ending: String,
}

impl Rows {
    fn new(attention: &str, ending: String) -> Self {
        Rows { table: empty(), attention: attention.to_string(), ending }
    }

    fn push(
        &mut self,
        time: f64,
        quantity: &str,
        index: Option<i64>,
        number: Measured,
    ) -> Result<(), TableError> {
        let head: [Value; 5] = [
            self.attention.as_str().into(),
            time.into(),
            quantity.into(),
            index.into(),
            self.ending.as_str().into(),
        ];
        self.table.push(head.into_iter().chain(number.values()))
    }

    /// Eigenvalues and mean of a law, erring as much as `other` differs.
    fn law(&mut self, time: f64, law: &Gaussian, other: &Gaussian) -> Result<(), Failure> {
        let values = eigenvalues(law.covariance_matrix())?;
        let others = eigenvalues(other.covariance_matrix())?;
        let rounding = 1e-13 * values[0].abs();
        for (index, (value, other)) in values.iter().zip(&others).enumerate() {
            let number = Measured::exact(*value, (value - other).abs() + rounding);
            self.push(time, "eigenvalue", Some(index as i64 + 1), number)?;
        }
        for (index, (value, other)) in law.mean_vector().iter().zip(other.mean_vector()).enumerate() {
            let number = Measured::exact(*value, (value - other).abs() + 1e-13 * value.abs());
            self.push(time, "mean", Some(index as i64 + 1), number)?;
        }
        Ok(())
    }
}

struct Record {
    attention: String,
    time: f64,
    quantity: String,
    index: Option<i64>,
    ending: String,
    number: Measured,
}

fn records(result: &Table) -> Result<Vec<Record>, TableError> {
    result
        .rows()
        .map(|row| {
            Ok(Record {
                attention: row.text("attention")?.to_string(),
                time: row.real("time")?,
                quantity: row.text("quantity")?.to_string(),
                index: match row.value("index")? {
                    Value::Missing => None,
                    _ => Some(row.integer("index")?),
                },
                ending: row.text("ending")?.to_string(),
                number: Measured::read(&row)?,
            })
        })
        .collect()
}

/// Curves that a figure shows at most; the table has them all.
const MOST_CURVES: i64 = 6;

fn section_of(name: &str, records: &[Record], depth: &Depth) -> esscher_report::Section {
    let mine: Vec<&Record> = records.iter().filter(|record| record.attention == name).collect();
    let ending = mine.first().map_or("", |record| record.ending.as_str());
    let single = |quantity: &str| mine.iter().find(|record| record.quantity == quantity);
    let mut prose = format!("How it ended: {ending}.");
    if let (Some(found), Some(exact)) = (single("blow-up-time"), single("closed-form-blow-up-time")) {
        prose += &format!(
            " The closed form $1/\\lambda_{{\\max}}(S^{{1/2}}(U + U^\\top)S^{{1/2}})$ blows up at {}: {:.1e} away.",
            exact.number.value,
            (found.number.value - exact.number.value).abs()
        );
    }
    let curve = |quantity: &str, index: i64| -> Vec<&&Record> {
        mine.iter().filter(|record| record.quantity == quantity && record.index == Some(index)).collect()
    };
    let count = mine.iter().filter_map(|record| record.index).max().unwrap_or(0);
    let x = match depth {
        Depth::Flow { .. } => "time t",
        Depth::Stack { .. } => "depth: layers times step size",
    };
    let mut eigen = Vec::new();
    let mut mean = Vec::new();
    for index in 1..=count.min(MOST_CURVES) {
        let line = |name: String, mark: Mark, curve: Vec<&&Record>| Series {
            name,
            mark,
            colour: index as usize - 1,
            points: curve
                .iter()
                .map(|record| match mark {
                    Mark::Dashed => Point::new(record.time, record.number.value),
                    _ => record.number.point(record.time),
                })
                .collect(),
        };
        eigen.push(line(format!("eigenvalue {index}"), Mark::Line, curve("eigenvalue", index)));
        let exact = curve("closed-form-eigenvalue", index);
        if !exact.is_empty() {
            let name = if index == 1 { "closed form" } else { "" };
            eigen.push(line(name.to_string(), Mark::Dashed, exact));
        }
        mean.push(line(format!("mean, entry {index}"), Mark::Line, curve("mean", index)));
    }
    let axes = |label: &str, scale: Scale| {
        (Axis { label: x.to_string(), scale: Scale::Linear }, Axis { label: label.to_string(), scale })
    };
    let (x_axis, y_axis) = axes("eigenvalues of the covariance", Scale::Logarithmic);
    let eigenvalues = Figure {
        id: format!("eigenvalues-{name}"),
        title: "Eigenvalues of the covariance".to_string(),
        caption: "Exact up to the integration, whose error is the width of the line. Dashed: the closed form, where \
                  there is one."
            .to_string(),
        x: x_axis,
        y: y_axis,
        series: eigen,
    };
    let (x_axis, y_axis) = axes("mean", Scale::Linear);
    let means = Figure {
        id: format!("mean-{name}"),
        title: "The mean".to_string(),
        caption: "Entries of the mean.".to_string(),
        x: x_axis,
        y: y_axis,
        series: mean,
    };
    let last = mine
        .iter()
        .filter(|record| record.quantity == "eigenvalue" || record.quantity == "mean")
        .map(|record| record.time)
        .fold(f64::NEG_INFINITY, f64::max);
    let mut rows: Vec<Vec<Cell>> = mine
        .iter()
        .filter(|record| record.time == last || record.index.is_none())
        .map(|record| {
            vec![
                Cell::Text(record.quantity.clone()),
                record.index.map_or(Cell::Missing, Cell::Integer),
                Cell::Number { value: record.time, error: None },
                record.number.cell(),
                Cell::Text(record.number.class.name().to_string()),
            ]
        })
        .collect();
    let mut columns = ["quantity", "index", "time", "value", "class"].map(String::from).to_vec();
    let mut caption = "Where it ended.".to_string();
    if let Some(Cell::Text(class)) = take_constant(&mut columns, &mut rows, "class") {
        caption.push_str(&format!(" All: {class}."));
    }
    let table = DataTable { id: format!("ends-{name}"), caption, columns, rows };
    esscher_report::Section {
        id: format!("layers-{name}"),
        title: format!("Residual {name} attention"),
        verdict: None,
        blocks: vec![
            Block::Prose(prose),
            Block::Table(table),
            Block::Figure(eigenvalues),
            Block::Figure(means),
        ],
    }
}
