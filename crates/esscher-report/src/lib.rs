//! What a document is: prose, formulas, tables and figures, written as HTML, SVG, PNG, PDF, CSV and LaTeX.
//!
//! Knows no kind of experiment and touches no file: a [`Document`] goes in, text and bytes come out.

mod document;
mod figure;

pub use document::{Block, Cell, DataTable, Document, Section, Verdict};
pub use figure::{Axis, Figure, Mark, Point, Scale, Series};
