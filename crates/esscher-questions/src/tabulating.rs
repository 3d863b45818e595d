//! What readers of a table are spared: columns that say the same in every row or nothing, and digits beyond three.

use esscher_report::{Block, Cell, DataTable, literal};

/// A table that is made column by column, with a row for each of some lines.
pub struct Tabulation<'a, T> {
    lines: &'a [T],
    columns: Vec<String>,
    rows: Vec<Vec<Cell>>,
    said: String,
}

impl<'a, T> Tabulation<'a, T> {
    /// A row for each line, no column yet.
    pub fn of(lines: &'a [T]) -> Self {
        Tabulation { lines, columns: Vec::new(), rows: vec![Vec::new(); lines.len()], said: String::new() }
    }

    /// One more column.
    pub fn column<C: Into<Cell>>(mut self, heading: &str, cell: impl Fn(&'a T) -> C) -> Self {
        self.columns.push(heading.to_string());
        self.rows.iter_mut().zip(self.lines).for_each(|(row, line)| row.push(cell(line).into()));
        self
    }

    /// Says in the caption what a column says in every row, if it does, `Class: exact.` for the word `Class`.
    pub fn constant(mut self, heading: &str, word: &str) -> Self {
        match take_constant(&mut self.columns, &mut self.rows, heading) {
            Some(Cell::Text(text)) => self.said += &format!(" {word}: {text}."),
            Some(Cell::Integer(number)) => self.said += &format!(" {word} is {number}."),
            Some(Cell::Number { value, .. }) => {
                self.said += &format!(" {word} is {}.", (1e3 * value).round() / 1e3)
            }
            _ => {}
        }
        self
    }

    /// The table, without columns that have no entry.
    pub fn table(mut self, id: impl Into<String>, caption: impl Into<String>) -> DataTable {
        for index in (0..self.columns.len()).rev() {
            if !self.rows.is_empty() && self.rows.iter().all(|row| row[index] == Cell::Missing) {
                self.columns.remove(index);
                self.rows.iter_mut().for_each(|row| drop(row.remove(index)));
            }
        }
        let caption = caption.into() + &self.said;
        DataTable { id: id.into(), caption, columns: self.columns, rows: self.rows }
    }
}

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

/// Each once, in the order of first mention.
pub fn distinct<T: PartialEq>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for item in items {
        if !found.contains(&item) {
            found.push(item);
        }
    }
    found
}

/// A whole number.
pub fn whole(count: usize) -> Cell {
    Cell::Integer(count as i64)
}

/// Words that mean themselves: no marks of prose.
pub fn words(text: impl std::fmt::Display) -> Cell {
    Cell::Text(literal(text))
}

/// A name as specifications write it.
pub fn code(name: impl std::fmt::Display) -> Cell {
    Cell::Text(format!("`{}`", literal(name)))
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
