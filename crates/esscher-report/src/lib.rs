//! What a document is: prose, formulas, tables, figures, panels, maps and tiles, written as HTML, SVG, PNG, PDF, CSV and
//! LaTeX.
//!
//! Knows no kind of experiment and touches no file: a [`Document`] goes in, text and bytes come out, the same ones
//! each time.
//!
//! ```
//! use esscher_report::{Axis, Block, Document, Figure, Mark, Point, Section, Series};
//! let measured = (0..7).map(|k| 10f64.powi(k)).map(|length| Point::with_error(length, 1.0 / length, 0.1 / length));
//! let figure = Figure {
//!     id: "rate".to_string(),
//!     title: r"The error falls like $L^{-1}$".to_string(),
//!     x: Axis::logarithmic("prompt length L"),
//!     y: Axis::logarithmic("error ε"),
//!     series: vec![Series { name: "measured".into(), mark: Mark::Dots, colour: 0, points: measured.collect() }],
//!     ..Figure::default()
//! };
//! assert!(esscher_report::svg(&figure).starts_with("<svg"));
//! assert!(esscher_report::csv::figure(&figure).starts_with("series,prompt length L,error ε,low,high\nmeasured,1,1,0.9,1.1\n"));
//! let section = Section { id: "rate".into(), title: "Rate".into(), verdict: None, blocks: vec![Block::Figure(figure)] };
//! let document = Document { title: "A report".into(), sections: vec![section], ..Document::default() };
//! assert!(esscher_report::html(&document).starts_with("<!DOCTYPE html>"));
//! ```

mod braille;
mod colours;
mod compare;
pub mod csv;
mod document;
mod drawing;
mod error;
mod escape;
mod figure;
mod font;
mod formula;
mod frame;
mod heat_map;
mod html;
pub mod latex;
mod legend;
mod literal;
mod numbers;
mod palette;
mod panels;
mod pdf;
mod prose;
mod raster;
mod shading;
mod subscript;
mod svg;
mod text;
mod ticks;
mod tiles;
mod vega;

pub use compare::{Compared, compare};
pub use document::{Block, Card, Cell, DataTable, Document, Section, Verdict};
pub use drawing::Drawing;
pub use error::DrawingError;
pub use figure::{Axis, Figure, Mark, Point, Scale, Series};
pub use heat_map::HeatMap;
pub use html::{BEGINNING, html};
pub use literal::literal;
pub use numbers::{Notation, integer, machine as shortest, number};
pub use panels::{Panel, Panels};
pub use pdf::pdf;
pub use prose::plain;
pub use raster::png;
pub use svg::svg;
pub use text::{brief, text};
pub use tiles::{Kind, Tile, Tiles, Tone};
