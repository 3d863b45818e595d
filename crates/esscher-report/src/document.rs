//! A document: sections of prose, formulas, tables, figures and heat maps, and where they come from.

use crate::{Drawing, Figure, HeatMap, literal};

/// A whole report.
///
/// Prose, captions and cells of text are plain text with `$…$` for formulas in LaTeX, `` `…` `` for code and `**…**`
/// for emphasis; anything else, also `<` and `&`, means itself. Text that a user chose is put into it by [`literal`], which
/// takes the meaning of all marks away.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Document {
    /// The heading.
    pub title: String,
    /// What the reader should know first, a few sentences of prose.
    pub summary: String,
    /// In reading order.
    pub sections: Vec<Section>,
    /// What was run, where, when and by which program: names and values in plain text.
    pub provenance: Vec<(String, String)>,
}

/// A part of a document under one heading.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Section {
    /// Lower case with hyphens: the target of links. If it is taken in its document, pages append a number.
    pub id: String,
    /// The heading, prose.
    pub title: String,
    /// Whether what the section is about holds, if that is the question.
    pub verdict: Option<Verdict>,
    /// In reading order.
    pub blocks: Vec<Block>,
}

impl Section {
    /// A section without a verdict.
    pub fn new(id: impl Into<String>, title: impl Into<String>, blocks: Vec<Block>) -> Self {
        Section { id: id.into(), title: title.into(), verdict: None, blocks }
    }
}

/// How a claim fared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The measured numbers agree with the claim.
    Holds,
    /// They do not.
    Fails,
    /// They cannot decide.
    NotMeasurable,
}

/// A piece of a section.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// A paragraph.
    Prose(String),
    /// A displayed formula in LaTeX.
    Formula(String),
    /// Named entries, each a line of prose: statement, criterion, citation.
    Facts(Vec<(String, String)>),
    /// Numbers in rows.
    Table(DataTable),
    /// A figure.
    Figure(Figure),
    /// Numbers as colours.
    HeatMap(HeatMap),
}

impl Block {
    /// The drawing, if the block is one.
    pub fn drawing(&self) -> Option<Drawing<'_>> {
        match self {
            Block::Figure(figure) => Some(Drawing::Figure(figure)),
            Block::HeatMap(map) => Some(Drawing::HeatMap(map)),
            Block::Prose(_) | Block::Formula(_) | Block::Facts(_) | Block::Table(_) => None,
        }
    }
}

/// A table of results.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DataTable {
    /// Lower case with hyphens: the name of its files. If it is taken in its document, pages append a number.
    pub id: String,
    /// What the table shows, prose.
    pub caption: String,
    /// Headings, prose.
    pub columns: Vec<String>,
    /// Each as long as `columns`.
    pub rows: Vec<Vec<Cell>>,
}

/// An entry of a table.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Prose. What becomes a cell by `into()` is a text that means itself.
    Text(String),
    /// A whole number, such as a prompt length.
    Integer(i64),
    /// A number with its error: a standard error, or the bound on the error of an exact value; none if it is a
    /// parameter.
    Number {
        /// The number.
        value: f64,
        /// Its absolute error.
        error: Option<f64>,
    },
    /// Nothing was measured here.
    Missing,
}

macro_rules! cells {
    ($($type:ty: $value:ident => $cell:expr),* $(,)?) => {
        $(impl From<$type> for Cell {
            fn from($value: $type) -> Self {
                $cell
            }
        })*
    };
}

cells! {
    &str: text => Cell::Text(literal(text)),
    String: text => Cell::Text(literal(text)),
    i64: number => Cell::Integer(number),
    u64: number => Cell::Integer(number as i64),
    f64: value => Cell::Number { value, error: None },
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(known: Option<T>) -> Self {
        known.map_or(Cell::Missing, T::into)
    }
}
