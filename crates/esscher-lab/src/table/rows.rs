//! `rows!`: the rows of an answer as a plain struct, written to tables and read from them by one mechanism.

use super::{Column, Row, Table, TableError, Value};

/// A type that fills one column.
pub trait Scalar: Sized {
    /// The column's type.
    const COLUMN: Column;

    /// The entry of a table.
    fn to_value(&self) -> Value;

    /// What the entry stands for; nothing if it is none of ours.
    fn from_value(value: &Value) -> Option<Self>;
}

/// A type that fills one or more columns.
pub trait Field: Sized {
    /// Its columns, for a field of this name.
    fn columns(name: &str) -> Vec<(String, Column)>;

    /// Adds its entries to a row.
    fn write(&self, row: &mut Vec<Value>);

    /// Reads it from a row.
    ///
    /// # Errors
    /// No such column, or an entry that does not fit.
    fn read(row: &Row<'_>, name: &str) -> Result<Self, TableError>;
}

/// A struct that is a row of a table; made by [`rows!`](crate::rows).
pub trait Record: Sized {
    /// The columns in order.
    fn columns() -> Vec<(String, Column)>;

    /// The entries in order.
    fn values(&self) -> Vec<Value>;

    /// Reads a row.
    ///
    /// # Errors
    /// A row of another table.
    fn read(row: &Row<'_>) -> Result<Self, TableError>;
}

impl Table {
    /// A table of these rows.
    ///
    /// # Errors
    /// A number that is not finite.
    pub fn of<R: Record>(rows: &[R]) -> Result<Self, TableError> {
        let mut table = Table { columns: R::columns(), rows: Vec::with_capacity(rows.len()) };
        rows.iter().try_for_each(|row| table.push(row.values()))?;
        Ok(table)
    }

    /// The rows of this table as records.
    ///
    /// # Errors
    /// Other columns, or entries that do not fit.
    pub fn read<R: Record>(&self) -> Result<Vec<R>, TableError> {
        if self.columns != R::columns() {
            let names: Vec<String> = R::columns().into_iter().map(|(name, _)| name).collect();
            return Err(TableError::Columns { first: self.names().join(", "), second: names.join(", ") });
        }
        self.rows().map(|row| R::read(&row)).collect()
    }
}

macro_rules! scalar {
    ($type:ty, $column:ident, $value:ident => $to:expr, $pattern:pat => $from:expr) => {
        impl Scalar for $type {
            const COLUMN: Column = Column::$column;

            fn to_value(&self) -> Value {
                let $value = self;
                $to
            }

            fn from_value(value: &Value) -> Option<Self> {
                match value {
                    $pattern => $from,
                    _ => None,
                }
            }
        }
    };
}

scalar!(f64, Real, value => Value::Real(*value), Value::Real(value) => Some(*value));
scalar!(i64, Integer, value => Value::Integer(*value), Value::Integer(value) => Some(*value));
scalar!(u64, Integer, value => Value::Integer(*value as i64), Value::Integer(value) => u64::try_from(*value).ok());
scalar!(usize, Integer, value => Value::Integer(*value as i64), Value::Integer(value) => usize::try_from(*value).ok());
scalar!(String, Text, value => Value::Text(value.clone()), Value::Text(value) => Some(value.clone()));

impl<T: Scalar> Field for T {
    fn columns(name: &str) -> Vec<(String, Column)> {
        vec![(name.to_string(), T::COLUMN)]
    }

    fn write(&self, row: &mut Vec<Value>) {
        row.push(self.to_value());
    }

    fn read(row: &Row<'_>, name: &str) -> Result<Self, TableError> {
        let value = row.value(name)?;
        T::from_value(value).ok_or_else(|| super::wrong(name, T::COLUMN, value))
    }
}

impl<T: Scalar> Field for Option<T> {
    fn columns(name: &str) -> Vec<(String, Column)> {
        T::columns(name)
    }

    fn write(&self, row: &mut Vec<Value>) {
        row.push(self.as_ref().map_or(Value::Missing, Scalar::to_value));
    }

    fn read(row: &Row<'_>, name: &str) -> Result<Self, TableError> {
        match row.value(name)? {
            Value::Missing => Ok(None),
            _ => <T as Field>::read(row, name).map(Some),
        }
    }
}

/// Makes a struct that is a row of a table, a column for each field.
///
/// ```
/// use esscher_lab::{Record, Table, named, rows};
/// named! {
///     /// What is counted.
///     pub enum Counted {
///         /// Tokens.
///         Tokens = "tokens",
///     }
/// }
/// rows! {
///     /// A count.
///     #[derive(Debug, PartialEq)]
///     pub struct Count {
///         /// What is counted.
///         counted: Counted,
///         /// How many there are, if that is known.
///         number: Option<u64>,
///     }
/// }
/// let rows = [Count { counted: Counted::Tokens, number: Some(3) }];
/// let table = Table::of(&rows)?;
/// assert_eq!((table.names(), table.read::<Count>()?), (vec!["counted", "number"], rows.into()));
/// # Ok::<(), esscher_lab::TableError>(())
/// ```
#[macro_export]
macro_rules! rows {
    ($(#[$meta:meta])* $vis:vis struct $name:ident {
        $($(#[$field_meta:meta])* $field:ident: $type:ty),* $(,)?
    }) => {
        $(#[$meta])*
        $vis struct $name {
            $($(#[$field_meta])* pub $field: $type,)*
        }

        impl $crate::Record for $name {
            fn columns() -> Vec<(String, $crate::Column)> {
                let mut all = Vec::new();
                $(all.extend(<$type as $crate::Field>::columns(stringify!($field)));)*
                all
            }

            fn values(&self) -> Vec<$crate::Value> {
                let mut row = Vec::new();
                $($crate::Field::write(&self.$field, &mut row);)*
                row
            }

            fn read(row: &$crate::Row<'_>) -> Result<Self, $crate::TableError> {
                Ok($name { $($field: $crate::Field::read(row, stringify!($field))?,)* })
            }
        }
    };
}
