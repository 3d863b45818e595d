//! A figure: curves, points and bands over two axes. One description feeds the interactive and the static drawing.

/// Curves over two axes.
///
/// Up to about a dozen series have their names beside the drawing, at the heights where they end.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Figure {
    /// Lower case with hyphens: the name of its files. If it is taken in its document, pages append a number.
    pub id: String,
    /// Above the figure, prose.
    pub title: String,
    /// Below it, prose: what is seen, and what errors are drawn.
    pub caption: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// Drawn in this order.
    pub series: Vec<Series>,
}

/// An axis.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Axis {
    /// What it measures, plain text in Unicode (`prompt length L`), with its unit where there is one. Subscripts are
    /// written `_x` (one sign, as in `T[μ_L]` or `θ_∞(t)`) or `_{…}`; the underscores of `snake_case` mean themselves.
    pub label: String,
    /// Linear or logarithmic.
    pub scale: Scale,
    /// A number that the axis reaches in any case: 0 where lengths of bars and shares are compared.
    pub includes: Option<f64>,
}

impl Axis {
    /// With evenly placed numbers.
    pub fn linear(label: impl Into<String>) -> Self {
        Axis { label: label.into(), scale: Scale::Linear, includes: None }
    }

    /// With evenly placed numbers that begin at 0 or end there.
    pub fn from_zero(label: impl Into<String>) -> Self {
        Axis { includes: Some(0.0), ..Axis::linear(label) }
    }

    /// With numbers placed by their logarithm.
    pub fn logarithmic(label: impl Into<String>) -> Self {
        Axis { label: label.into(), scale: Scale::Logarithmic, includes: None }
    }
}

/// How numbers are placed on an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scale {
    /// Equal differences take equal room.
    #[default]
    Linear,
    /// By their logarithm; points that are not positive are left out of the drawing, and the figure says how many.
    Logarithmic,
}

/// One curve or set of points.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Its name in the legend, plain text in Unicode with subscripts as in [`Axis::label`].
    ///
    /// The legend has one entry for each name, colour and mark: series that share all three share it, and stand out
    /// together when it is clicked. A series with an empty name has no entry.
    pub name: String,
    /// How it is drawn.
    pub mark: Mark,
    /// Series with the same number share a colour: a measurement and its theory.
    pub colour: usize,
    /// In drawing order.
    pub points: Vec<Point>,
}

/// How a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// A line, with a band between `low` and `high` where points have them.
    Line,
    /// A dashed line: theory, bounds, guides.
    Dashed,
    /// Dots, with a bar between `low` and `high` where points have them.
    Dots,
}

/// A point of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Place along the horizontal axis.
    pub x: f64,
    /// Place along the vertical axis.
    pub y: f64,
    /// Lower and upper end of its uncertainty.
    pub interval: Option<(f64, f64)>,
}

impl Figure {
    /// The name of a series in data files: its own, or for one without a legend entry that of its colour and how it is drawn.
    pub(crate) fn data_name(&self, series: &Series) -> String {
        if !series.name.is_empty() {
            return series.name.clone();
        }
        let drawn = match series.mark {
            Mark::Line => "line",
            Mark::Dashed => "dashed",
            Mark::Dots => "dots",
        };
        let namesake =
            self.series.iter().find(|other| other.colour == series.colour && !other.name.is_empty());
        namesake.map_or(drawn.to_string(), |other| format!("{} ({drawn})", other.name))
    }
}

impl Point {
    /// A point without uncertainty.
    pub fn new(x: f64, y: f64) -> Self {
        Point { x, y, interval: None }
    }

    /// A point with a symmetric uncertainty.
    pub fn with_error(x: f64, y: f64, error: f64) -> Self {
        Point { x, y, interval: Some((y - error, y + error)) }
    }
}
