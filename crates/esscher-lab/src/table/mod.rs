//! A table of named, typed columns: what a unit yields, what a run results in, as Parquet bytes.
//!
//! The bytes depend on the content only, so equal results are equal files.

mod rows;

pub use rows::{Field, Record, Scalar};

use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::record::Field as ParquetField;
use parquet::schema::types::{Type, TypePtr};

/// An entry of a table.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A finite number.
    Real(f64),
    /// A whole number.
    Integer(i64),
    /// A word or sentence.
    Text(String),
    /// Nothing was measured.
    Missing,
}

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// Finite numbers.
    Real,
    /// Whole numbers.
    Integer,
    /// Text of any length.
    Text,
}

impl Column {
    /// What it takes, for messages.
    fn words(self) -> &'static str {
        match self {
            Column::Real => "finite numbers",
            Column::Integer => "whole numbers",
            Column::Text => "text",
        }
    }
}

/// Rows of values under named columns.
///
/// ```
/// use esscher_lab::{Column, Table};
/// let mut table = Table::new(&[("law", Column::Text), ("length", Column::Integer), ("error", Column::Real)]);
/// table.push(["gaussian".into(), 100_i64.into(), 0.5.into()])?;
/// let first = table.rows().next().unwrap();
/// assert_eq!((first.text("law")?, first.integer("length")?, first.real("error")?), ("gaussian", 100, 0.5));
/// assert_eq!(Table::from_parquet(&table.to_parquet(&[])?)?.0, table);
/// # Ok::<(), esscher_lab::TableError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    columns: Vec<(String, Column)>,
    rows: Vec<Vec<Value>>,
}

/// What a table refuses.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// A row of another length.
    #[error("a row has {found} values, but the table has {expected} columns")]
    Width {
        /// Columns of the table.
        expected: usize,
        /// Values of the row.
        found: usize,
    },
    /// A number that has left the doubles.
    #[error("the {column}{} is {}, which is no finite number", of(words), sign(*value))]
    NotFinite {
        /// The column that the number was meant for.
        column: String,
        /// The number.
        value: f64,
        /// What else the row says of it: the law, the quantity.
        words: Vec<String>,
    },
    /// A value of another type.
    #[error("column `{column}` takes {}, found {found:?}", expected.words())]
    Kind {
        /// The column that the value was meant for.
        column: String,
        /// The column's type.
        expected: Column,
        /// What was given.
        found: Value,
    },
    /// A word that is none of those that the column may hold.
    #[error(
        "column `{column}` holds \"{found}\", a word of another version of esscher, which wrote this table; run its \
         specification in a new folder (the numbers of this one stay readable)"
    )]
    Word {
        /// The column that the word stands in.
        column: String,
        /// The word.
        found: String,
    },
    /// A column that is not there.
    #[error("there is no column `{column}`; the columns are {present}")]
    NoColumn {
        /// The name that was asked for.
        column: String,
        /// Those that are there.
        present: String,
    },
    /// A value that is not there.
    #[error("column `{column}` has no value in this row")]
    Missing {
        /// The column without a value.
        column: String,
    },
    /// Tables of different columns.
    #[error("tables with different columns cannot be joined: {first}, and {second}")]
    Columns {
        /// Columns of the one table.
        first: String,
        /// Columns of the other table.
        second: String,
    },
    /// Bytes that are not a table.
    #[error("this is not a table that esscher wrote: {0}")]
    Parquet(#[from] ParquetError),
}

type Result<T> = std::result::Result<T, TableError>;

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Value::Real(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Value::Integer(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Value::Text(value.to_string())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Value::Text(value)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Missing, Into::into)
    }
}

/// One row of a table.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    table: &'a Table,
    values: &'a [Value],
}

impl<'a> Row<'a> {
    /// The value of a column.
    ///
    /// # Errors
    /// No such column.
    pub fn value(&self, column: &str) -> Result<&'a Value> {
        match self.table.columns.iter().position(|(name, _)| name == column) {
            Some(index) => Ok(&self.values[index]),
            None => Err(TableError::NoColumn {
                column: column.to_string(),
                present: self.table.names().join(", "),
            }),
        }
    }

    /// A real number, or a whole one as a real.
    ///
    /// # Errors
    /// No such column, no value in it, or a value that is no number.
    pub fn real(&self, column: &str) -> Result<f64> {
        match self.value(column)? {
            Value::Real(value) => Ok(*value),
            Value::Integer(value) => Ok(*value as f64),
            other => Err(wrong(column, Column::Real, other)),
        }
    }

    /// A real number where there is one.
    ///
    /// # Errors
    /// No such column, or a value that is no number.
    pub fn optional_real(&self, column: &str) -> Result<Option<f64>> {
        match self.value(column)? {
            Value::Missing => Ok(None),
            _ => self.real(column).map(Some),
        }
    }

    /// A whole number.
    ///
    /// # Errors
    /// No such column, no value in it, or a value that is no whole number.
    pub fn integer(&self, column: &str) -> Result<i64> {
        match self.value(column)? {
            Value::Integer(value) => Ok(*value),
            other => Err(wrong(column, Column::Integer, other)),
        }
    }

    /// A word.
    ///
    /// # Errors
    /// No such column, no value in it, or a value that is no text.
    pub fn text(&self, column: &str) -> Result<&'a str> {
        match self.value(column)? {
            Value::Text(value) => Ok(value),
            other => Err(wrong(column, Column::Text, other)),
        }
    }
}

fn wrong(column: &str, expected: Column, found: &Value) -> TableError {
    match found {
        Value::Missing => TableError::Missing { column: column.to_string() },
        Value::Text(found) if expected == Column::Text => {
            TableError::Word { column: column.to_string(), found: found.clone() }
        }
        other => TableError::Kind { column: column.to_string(), expected, found: other.clone() },
    }
}

/// The words of a row, which say what its numbers are.
fn words(row: &[Value]) -> Vec<String> {
    let word = |value: &Value| if let Value::Text(text) = value { Some(text.clone()) } else { None };
    row.iter().filter_map(word).collect()
}

/// ` (law, quantity)`, nothing of no words.
fn of(words: &[String]) -> String {
    if words.is_empty() { String::new() } else { format!(" ({})", words.join(", ")) }
}

/// What is no finite number, as a person writes it.
fn sign(value: f64) -> &'static str {
    match value {
        f64::INFINITY => "∞",
        f64::NEG_INFINITY => "−∞",
        _ => "undefined",
    }
}

impl Table {
    /// An empty table.
    pub fn new(columns: &[(&str, Column)]) -> Self {
        let columns = columns.iter().map(|(name, kind)| (name.to_string(), *kind)).collect();
        Table { columns, rows: Vec::new() }
    }

    /// Adds a row.
    ///
    /// # Errors
    /// Another number of values than columns, a value of another type, a number that is not finite.
    pub fn push(&mut self, row: impl IntoIterator<Item = Value>) -> Result<()> {
        let row: Vec<Value> = row.into_iter().collect();
        if row.len() != self.columns.len() {
            return Err(TableError::Width { expected: self.columns.len(), found: row.len() });
        }
        for (value, (name, kind)) in row.iter().zip(&self.columns) {
            if let Value::Real(real) = *value
                && !real.is_finite()
            {
                let (column, words) = (name.replace('_', " "), words(&row));
                return Err(TableError::NotFinite { column, value: real, words });
            }
            let fits = matches!(
                (value, kind),
                (Value::Missing, _)
                    | (Value::Integer(_), Column::Integer)
                    | (Value::Text(_), Column::Text)
                    | (Value::Real(_), Column::Real)
            );
            if !fits {
                return Err(TableError::Kind { column: name.clone(), expected: *kind, found: value.clone() });
            }
        }
        self.rows.push(row);
        Ok(())
    }

    /// Adds the rows of a table with the same columns.
    ///
    /// # Errors
    /// Other columns.
    pub fn append(&mut self, other: Table) -> Result<()> {
        if self.columns != other.columns {
            return Err(TableError::Columns {
                first: self.names().join(", "),
                second: other.names().join(", "),
            });
        }
        self.rows.extend(other.rows);
        Ok(())
    }

    /// The columns' names in order.
    pub fn names(&self) -> Vec<&str> {
        self.columns.iter().map(|(name, _)| name.as_str()).collect()
    }

    /// The columns' names and types in order.
    pub fn columns(&self) -> &[(String, Column)] {
        &self.columns
    }

    /// The rows in order.
    pub fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        self.rows.iter().map(move |values| Row { table: self, values })
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The rows as JSON: an object each, a value that was not measured is null.
    pub fn to_json(&self) -> serde_json::Value {
        let row = |values: &Vec<Value>| -> serde_json::Value {
            let entries = self.names().into_iter().zip(values).map(|(name, value)| {
                let value = match value {
                    Value::Real(real) => (*real).into(),
                    Value::Integer(whole) => (*whole).into(),
                    Value::Text(text) => text.as_str().into(),
                    Value::Missing => serde_json::Value::Null,
                };
                (name.to_string(), value)
            });
            serde_json::Value::Object(entries.collect())
        };
        self.rows.iter().map(row).collect()
    }

    /// The bytes of a Parquet file with these notes in its metadata.
    ///
    /// # Errors
    /// What the Parquet library refuses; a valid table is never refused.
    pub fn to_parquet(&self, notes: &[(&str, &str)]) -> Result<Vec<u8>> {
        let notes =
            notes.iter().map(|(key, value)| KeyValue::new(key.to_string(), value.to_string())).collect();
        let properties = WriterProperties::builder()
            .set_created_by("esscher".to_string())
            .set_key_value_metadata(Some(notes))
            .build();
        let mut bytes = Vec::new();
        let mut writer = SerializedFileWriter::new(&mut bytes, self.schema()?, Arc::new(properties))?;
        let mut group = writer.next_row_group()?;
        let mut index = 0;
        while let Some(mut column) = group.next_column()? {
            let values = || self.rows.iter().map(|row| &row[index]);
            let levels: Vec<i16> = values().map(|value| i16::from(*value != Value::Missing)).collect();
            match self.columns[index].1 {
                Column::Real => {
                    let reals: Vec<f64> = values()
                        .filter_map(|value| if let Value::Real(real) = value { Some(*real) } else { None })
                        .collect();
                    column.typed::<DoubleType>().write_batch(&reals, Some(&levels), None)?;
                }
                Column::Integer => {
                    let integers: Vec<i64> = values()
                        .filter_map(
                            |value| if let Value::Integer(whole) = value { Some(*whole) } else { None },
                        )
                        .collect();
                    column.typed::<Int64Type>().write_batch(&integers, Some(&levels), None)?;
                }
                Column::Text => {
                    let texts: Vec<ByteArray> = values()
                        .filter_map(|value| {
                            if let Value::Text(text) = value {
                                Some(ByteArray::from(text.as_str()))
                            } else {
                                None
                            }
                        })
                        .collect();
                    column.typed::<ByteArrayType>().write_batch(&texts, Some(&levels), None)?;
                }
            }
            column.close()?;
            index += 1;
        }
        group.close()?;
        writer.close()?;
        Ok(bytes)
    }

    fn schema(&self) -> Result<TypePtr> {
        let fields = self
            .columns
            .iter()
            .map(|(name, kind)| {
                let (physical, logical) = match kind {
                    Column::Real => (PhysicalType::DOUBLE, None),
                    Column::Integer => (PhysicalType::INT64, None),
                    Column::Text => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
                };
                let field = Type::primitive_type_builder(name, physical)
                    .with_repetition(Repetition::OPTIONAL)
                    .with_logical_type(logical)
                    .build()?;
                Ok(Arc::new(field))
            })
            .collect::<std::result::Result<Vec<TypePtr>, ParquetError>>()?;
        Ok(Arc::new(Type::group_type_builder("result").with_fields(fields).build()?))
    }

    /// A table from the bytes of a Parquet file of ours, with its notes.
    ///
    /// # Errors
    /// Bytes that are not Parquet, or columns of types that we do not write.
    pub fn from_parquet(bytes: &[u8]) -> Result<(Self, Vec<(String, String)>)> {
        let reader = SerializedFileReader::new(bytes::Bytes::copy_from_slice(bytes))?;
        let metadata = reader.metadata().file_metadata();
        let notes = metadata
            .key_value_metadata()
            .into_iter()
            .flatten()
            .map(|note| (note.key.clone(), note.value.clone().unwrap_or_default()))
            .collect();
        let columns = metadata
            .schema()
            .get_fields()
            .iter()
            .map(|field| {
                let kind = match field.is_primitive().then(|| field.get_physical_type()) {
                    Some(PhysicalType::DOUBLE) => Column::Real,
                    Some(PhysicalType::INT64) => Column::Integer,
                    Some(PhysicalType::BYTE_ARRAY) => Column::Text,
                    _ => {
                        return Err(ParquetError::General(format!(
                            "column {} is of another type",
                            field.name()
                        )));
                    }
                };
                Ok((field.name().to_string(), kind))
            })
            .collect::<std::result::Result<_, _>>()?;
        let mut table = Table { columns, rows: Vec::new() };
        for row in reader.get_row_iter(None)? {
            let values = row?.into_columns().into_iter().map(|(_, field)| match field {
                ParquetField::Double(real) => Value::Real(real),
                ParquetField::Long(whole) => Value::Integer(whole),
                ParquetField::Str(text) => Value::Text(text),
                _ => Value::Missing,
            });
            let values: Vec<Value> = values.collect();
            table.push(values)?;
        }
        Ok((table, notes))
    }
}
