//! What readers of a table are spared: columns that say the same in every row, and digits beyond three.

use esscher_report::{Block, Cell, DataTable, Section};

/// Takes a column out of a table if all its entries are equal, and returns that entry for the caption.
pub fn take_constant(columns: &mut Vec<String>, rows: &mut [Vec<Cell>], heading: &str) -> Option<Cell> {
    let index = columns.iter().position(|column| column == heading)?;
    let first = rows.first()?.get(index)?.clone();
    if rows.iter().any(|row| row.get(index) != Some(&first)) {
        return None;
    }
    columns.remove(index);
    for row in rows {
        row.remove(index);
    }
    Some(first)
}

/// A number without an error, rounded to three significant digits.
pub fn rounded(value: f64) -> Cell {
    Cell::Number { value: format!("{value:.2e}").parse().unwrap_or(value), error: None }
}

/// A whole number.
pub fn whole(count: usize) -> Cell {
    Cell::Integer(count as i64)
}

/// Prose.
pub fn words(text: impl ToString) -> Cell {
    Cell::Text(text.to_string())
}

/// A name as specifications write it.
pub fn code(name: impl std::fmt::Display) -> Cell {
    Cell::Text(format!("`{name}`"))
}

/// A table whose rows have every cell beside its heading; all rows have the same headings.
pub fn table(id: &str, caption: impl ToString, rows: Vec<Vec<(&str, Cell)>>) -> Block {
    let headings = rows.first().into_iter().flatten().map(|(heading, _)| (*heading).to_string());
    Block::Table(DataTable {
        id: id.to_string(),
        caption: caption.to_string(),
        columns: headings.collect(),
        rows: rows.into_iter().map(|row| row.into_iter().map(|(_, cell)| cell).collect()).collect(),
    })
}

/// Named entries.
pub fn facts<'a>(facts: impl IntoIterator<Item = (&'a str, String)>) -> Block {
    Block::Facts(facts.into_iter().map(|(name, value)| (name.to_string(), value)).collect())
}

/// A section that judges nothing.
pub fn section(id: &str, title: &str, blocks: Vec<Block>) -> Section {
    Section { id: id.to_string(), title: title.to_string(), verdict: None, blocks }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_constant_columns_are_taken_out() {
        let mut columns = vec!["d".to_string(), "L".to_string()];
        let mut rows = [10, 20].map(|length| vec![Cell::Integer(2), Cell::Integer(length)]);
        assert_eq!(take_constant(&mut columns, &mut rows, "L"), None);
        assert_eq!(take_constant(&mut columns, &mut rows, "d"), Some(Cell::Integer(2)));
        assert_eq!((columns, &rows[1]), (vec!["L".to_string()], &vec![Cell::Integer(20)]));
        assert_eq!(rounded(0.279298), Cell::Number { value: 0.279, error: None });
    }
}
