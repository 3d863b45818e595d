//! Tiles: a kind and a few words for each row and column, as coloured fields: which heads of which layers are accepted.

use crate::document::{Cell, DataTable};
use crate::literal::{literal, unhidden};

/// Tiles in more columns than this have no room for words.
const MOST_WORDED: usize = 16;

/// A table of few kinds drawn as coloured tiles.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tiles {
    /// Lower case with hyphens: the name of its files. If it is taken in its document, pages append a number.
    pub id: String,
    /// Above the tiles, prose.
    pub title: String,
    /// Below them, prose: what is seen.
    pub caption: String,
    /// What the columns are, plain text with subscripts as in [`crate::Axis::label`].
    pub x: String,
    /// What the rows are, likewise.
    pub y: String,
    /// Names of the columns from left to right, likewise.
    pub columns: Vec<String>,
    /// Names of the rows, the first on top, likewise.
    pub rows: Vec<String>,
    /// What a tile can be, in the order of the legend, which counts the tiles of each.
    pub kinds: Vec<Kind>,
    /// Row by row, each as long as `columns`; where there is nothing, nothing.
    pub cells: Vec<Vec<Option<Tile>>>,
}

/// What a tile can be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kind {
    /// In the legend, plain text.
    pub name: String,
    /// Its colour.
    pub tone: Tone,
}

/// What a colour says; each is told from the others without colour vision, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// The answer that was hoped for.
    Good,
    /// Not decided.
    Open,
    /// The opposite of what was hoped for.
    Bad,
}

/// One tile.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tile {
    /// Its place among the kinds.
    pub kind: usize,
    /// At most about eight characters inside of it, plain text.
    pub words: String,
    /// What is told of it when it is pointed at, plain text.
    pub detail: String,
    /// The id of a section or of a folded block to which a click leads; empty for none.
    pub target: String,
}

impl Tiles {
    /// The tiles as a table: for terminals and data files.
    pub(crate) fn table(&self) -> DataTable {
        let rows = self.rows.iter().zip(&self.cells).flat_map(|(row, cells)| {
            self.columns.iter().zip(cells).filter_map(move |(column, tile)| {
                let tile = tile.as_ref()?;
                let kind = self.kind(tile).map_or("", |kind| kind.name.as_str());
                Some(
                    [row.as_str(), column, kind, &tile.words, &tile.detail]
                        .map(|words| Cell::Text(prose(words)))
                        .to_vec(),
                )
            })
        });
        DataTable {
            id: self.id.clone(),
            caption: self.title.clone(),
            columns: [or(&self.y, "row"), or(&self.x, "column"), "kind", "words", "detail"]
                .map(prose)
                .to_vec(),
            rows: rows.collect(),
        }
    }

    /// Rows and columns: of the names or of the tiles, whichever are more.
    pub(crate) fn size(&self) -> (usize, usize) {
        let columns = self.cells.iter().map(Vec::len).chain([self.columns.len()]).max().unwrap_or(0);
        (self.rows.len().max(self.cells.len()), columns)
    }

    /// Whether there is room for words in tiles.
    pub(crate) fn has_words(&self) -> bool {
        self.size().1 <= MOST_WORDED
    }

    /// The tile at a place, if there is one.
    pub(crate) fn tile(&self, row: usize, column: usize) -> Option<&Tile> {
        self.cells.get(row)?.get(column)?.as_ref()
    }

    /// Each kind with the number of its tiles.
    pub(crate) fn counted(&self) -> Vec<(&Kind, usize)> {
        let count =
            |kind: usize| self.cells.iter().flatten().flatten().filter(|tile| tile.kind == kind).count();
        self.kinds.iter().enumerate().map(|(place, kind)| (kind, count(place))).collect()
    }

    /// The kind of a tile, if there is a tile and it has one.
    pub(crate) fn kind(&self, tile: &Tile) -> Option<&Kind> {
        self.kinds.get(tile.kind)
    }
}

/// A label as prose: the same signs, none of which is a mark.
fn prose(label: &str) -> String {
    literal(unhidden(label))
}

fn or<'a>(label: &'a str, otherwise: &'a str) -> &'a str {
    if label.trim().is_empty() { otherwise } else { label }
}
