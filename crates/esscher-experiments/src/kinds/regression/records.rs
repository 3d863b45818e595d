//! The rows of a result: how they are written, read, and averaged over draws.

use super::Job;
use crate::kinds::columns;
use crate::measured::{Measured, NUMBER, length_name};
use esscher_core::numerics::statistics::Summary;
use esscher_lab::{Column, Failure, Row, Table, TableError, Value};
use std::collections::{BTreeMap, BTreeSet};

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

fn all_columns() -> Vec<(&'static str, Column)> {
    COLUMNS.iter().chain(&NUMBER).copied().collect()
}

pub(super) fn empty() -> Table {
    Table::new(&all_columns())
}

/// The table of a unit while it is written.
pub(super) struct Rows {
    pub(super) table: Table,
    head: Vec<Value>,
}

impl Rows {
    pub(super) fn new(job: &Job, dimension: usize, scale: f64, ending: &str) -> Self {
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

    pub(super) fn push(&mut self, time: f64, quantity: &str, number: Measured) -> Result<(), TableError> {
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
    columns::check(result, &all_columns())?;
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
pub(super) fn summarise(all: &Table) -> Result<Table, Failure> {
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
    let draws: BTreeSet<i64> = records.iter().filter_map(|record| record.draw).collect();
    let mut table = empty();
    let mut means = Vec::new();
    for record in &mut records {
        if record.draw.is_some()
            && let Some(summary) = groups.get(&key(record))
            && let (Some(mean), Some(variance), Some(error)) =
                (summary.mean(), summary.variance(), summary.standard_error())
        {
            // A mean over the flows that got so far would say nothing about all of them.
            if record.draw == draws.first().copied() && summary.count() == draws.len() as u64 {
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
