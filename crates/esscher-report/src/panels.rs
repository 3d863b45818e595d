//! Panels: figures side by side on the same axes, with one legend, so that they can be compared at a glance.

use crate::figure::{Axis, Figure, Series};

/// Figures on the same axes.
///
/// A colour means the same in every panel.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Panels {
    /// Lower case with hyphens: the name of its files. If it is taken in its document, pages append a number.
    pub id: String,
    /// Above the panels, prose.
    pub title: String,
    /// Below them, prose: what is seen, and what errors are drawn.
    pub caption: String,
    /// The horizontal axis of every panel.
    pub x: Axis,
    /// The vertical axis of every panel.
    pub y: Axis,
    /// In reading order.
    pub panels: Vec<Panel>,
}

/// One of several figures on the same axes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Panel {
    /// What it shows that the others do not, plain text in Unicode with subscripts as in [`Axis::label`].
    pub title: String,
    /// Drawn in this order.
    pub series: Vec<Series>,
}

impl Panels {
    /// All series over one another, each with the name of its panel: for data files and for the range of the axes.
    pub(crate) fn merged(&self) -> Figure {
        let series = self.panels.iter().flat_map(|panel| {
            // Colours mean the same in every panel, but a series without a name belongs to one of its own panel.
            let alone = self.alone(panel);
            let name = |series: &Series| format!("{}: {}", panel.title, alone.data_name(series));
            panel
                .series
                .iter()
                .map(|series| Series { name: name(series), ..series.clone() })
                .collect::<Vec<_>>()
        });
        self.drawn_with(series.collect())
    }

    /// All series with their own names: for the legend.
    pub(crate) fn overlaid(&self) -> Figure {
        self.drawn_with(self.panels.iter().flat_map(|panel| panel.series.clone()).collect())
    }

    /// One panel as a figure.
    pub(crate) fn alone(&self, panel: &Panel) -> Figure {
        self.drawn_with(panel.series.clone())
    }

    fn drawn_with(&self, series: Vec<Series>) -> Figure {
        Figure {
            id: self.id.clone(),
            title: self.title.clone(),
            caption: self.caption.clone(),
            x: self.x.clone(),
            y: self.y.clone(),
            series,
        }
    }
}
