//! Whether a table is a result of the kind that is asked to describe it.

use esscher_lab::{Column, Table, TableError};

/// Refuses a table with other columns.
pub(crate) fn check(result: &Table, expected: &[(&str, Column)]) -> Result<(), TableError> {
    let same = result.columns().len() == expected.len()
        && result
            .columns()
            .iter()
            .zip(expected)
            .all(|((name, kind), known)| (name.as_str(), *kind) == *known);
    if same {
        return Ok(());
    }
    let first = expected.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    Err(TableError::Columns { first, second: result.names().join(", ") })
}
