//! A document: sections of prose, formulas, tables and drawings, and where they come from.

use crate::{Drawing, Figure, HeatMap, Panels, Tiles, literal};

/// A whole report.
///
/// Prose, captions and cells of text are plain text with `$…$` for formulas in LaTeX, `` `…` `` for code, `**…**`
/// for emphasis and `[words](https://…)` or `[words](#id)` for links; anything else, also `<` and `&`, means itself. Text
/// that a user chose is put into it by [`literal`], which takes the meaning of all marks away.
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
    /// The finding of a section in a sentence or two, set larger than what follows.
    Lead(String),
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
    /// Figures side by side on the same axes.
    Panels(Panels),
    /// Numbers as colours.
    HeatMap(HeatMap),
    /// Words and kinds as coloured tiles.
    Tiles(Tiles),
    /// A grid of cards that lead to sections: the whole at a glance.
    Cards(Vec<Card>),
    /// What most readers skip: a line, and below it what a click shows.
    Folded {
        /// Lower case with hyphens: a target of links, which unfolds it; empty for none.
        id: String,
        /// The line, prose.
        title: String,
        /// In reading order.
        blocks: Vec<Block>,
    },
}

impl Block {
    /// The drawing, if the block is one.
    pub fn drawing(&self) -> Option<Drawing<'_>> {
        match self {
            Block::Figure(figure) => Some(Drawing::Figure(figure)),
            Block::Panels(panels) => Some(Drawing::Panels(panels)),
            Block::HeatMap(map) => Some(Drawing::HeatMap(map)),
            Block::Tiles(tiles) => Some(Drawing::Tiles(tiles)),
            Block::Lead(_)
            | Block::Prose(_)
            | Block::Formula(_)
            | Block::Facts(_)
            | Block::Table(_)
            | Block::Cards(_)
            | Block::Folded { .. } => None,
        }
    }

    /// All drawings of the block: its own, or those that are folded inside. The pictures of cards are not among them.
    pub fn drawings(&self) -> Vec<Drawing<'_>> {
        match self {
            Block::Folded { blocks, .. } => blocks.iter().flat_map(Block::drawings).collect(),
            other => other.drawing().into_iter().collect(),
        }
    }

    /// Puts a name in front of the ids of its drawings and tables: a document may hold several of one kind.
    pub fn name_under(&mut self, name: &str) {
        match self {
            Block::Figure(Figure { id, .. })
            | Block::Panels(Panels { id, .. })
            | Block::HeatMap(HeatMap { id, .. })
            | Block::Tiles(Tiles { id, .. })
            | Block::Table(DataTable { id, .. }) => *id = format!("{name}-{id}"),
            Block::Folded { blocks, .. } => blocks.iter_mut().for_each(|block| block.name_under(name)),
            Block::Lead(_) | Block::Prose(_) | Block::Formula(_) | Block::Facts(_) | Block::Cards(_) => {}
        }
    }

    /// What is folded inside.
    pub fn folded(&self) -> &[Block] {
        match self {
            Block::Folded { blocks, .. } => blocks,
            _ => &[],
        }
    }
}

/// A section in a card: a verdict, a number, a small picture.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Card {
    /// The id of the section that it leads to.
    pub section: String,
    /// What the section is about, prose.
    pub title: String,
    /// Whether it holds.
    pub verdict: Option<Verdict>,
    /// The number that decides, as a person writes it: `14 digits`, prose.
    pub number: String,
    /// What the number is, in a few words, prose.
    pub meaning: String,
    /// Drawn small, without numbers on its axes.
    pub picture: Option<Figure>,
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
