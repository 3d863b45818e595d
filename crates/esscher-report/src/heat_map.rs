//! A heat map: a number for each row and column, as colour. One description feeds the interactive and the static drawing.

use crate::figure::Scale;

/// A table of numbers drawn as coloured cells: layer by head, token by token.
///
/// ```
/// use esscher_report::{HeatMap, Scale};
/// let map = HeatMap {
///     id: "error".into(),
///     title: "Error of the replacement".into(),
///     x: "head".into(),
///     y: "layer".into(),
///     columns: vec!["0".into(), "1".into()],
///     rows: vec!["0".into(), "1".into()],
///     cells: vec![vec![Some(0.5), Some(0.01)], vec![None, Some(0.002)]],
///     colour_label: "relative error".into(),
///     scale: Scale::Logarithmic,
///     threshold: Some(0.01),
///     ..HeatMap::default()
/// };
/// assert!(esscher_report::svg(&map).starts_with("<svg"));
/// assert_eq!(
///     esscher_report::csv::heat_map(&map),
///     "layer,head,relative error\n0,0,0.5\n0,1,0.01\n1,0,\n1,1,0.002\n"
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HeatMap {
    /// Lower case with hyphens: the name of its files. If it is taken in its document, pages append a number.
    pub id: String,
    /// Above the map, prose.
    pub title: String,
    /// Below it, prose: what is seen.
    pub caption: String,
    /// What the columns are, plain text with subscripts as in [`crate::Axis::label`].
    pub x: String,
    /// What the rows are, likewise.
    pub y: String,
    /// Names of the columns from left to right, likewise.
    pub columns: Vec<String>,
    /// Names of the rows, the first on top, likewise.
    pub rows: Vec<String>,
    /// Row by row, each as long as `columns`; where nothing was measured, nothing.
    pub cells: Vec<Vec<Option<f64>>>,
    /// What the colour measures, with its unit where there is one, likewise.
    pub colour_label: String,
    /// How numbers become colours. Numbers that are not positive have no colour on a logarithmic scale: their cells are
    /// crossed out, and the map says how many.
    pub scale: Scale,
    /// Cells at or below this number get a dot, and the legend counts them.
    pub threshold: Option<f64>,
}

impl HeatMap {
    /// Rows and columns: of the names or of the numbers, whichever are more.
    pub(crate) fn size(&self) -> (usize, usize) {
        let columns = self.cells.iter().map(Vec::len).chain([self.columns.len()]).max().unwrap_or(0);
        (self.rows.len().max(self.cells.len()), columns)
    }

    /// The number of a cell; none outside of the map.
    pub(crate) fn cell(&self, row: usize, column: usize) -> Option<f64> {
        self.cells.get(row).and_then(|cells| cells.get(column)).copied().flatten()
    }

    /// Whether the number lies at or below the threshold, if there is one.
    pub(crate) fn marks(&self, value: f64) -> bool {
        self.threshold.is_some_and(|threshold| value <= threshold)
    }
}

/// A name by its position; empty if there is none.
pub(crate) fn name(names: &[String], position: usize) -> &str {
    names.get(position).map_or("", String::as_str)
}
