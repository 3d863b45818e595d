//! A number as result tables hold it: its value, how far it may be off, and how it was obtained.

use esscher_core::{Accuracy, Estimate};
use esscher_lab::{Column, Row, TableError, Value};
use esscher_report::{Cell, Point};

/// The columns of a number, to stand after those that say what it is.
pub(crate) const NUMBER: [(&str, Column); 3] =
    [("value", Column::Real), ("error", Column::Real), ("accuracy", Column::Text)];

/// How a number was obtained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// By quadrature, closed form or integration: the error is a bound.
    Exact,
    /// Exact in the tokens, averaged by quasi-Monte-Carlo points: the error is that of their randomisation.
    QuasiMonteCarlo,
    /// Averaged over draws: the error is one standard error.
    Sampled,
}

impl Class {
    /// As tables spell it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Class::Exact => "exact",
            Class::QuasiMonteCarlo => "quasi-monte-carlo",
            Class::Sampled => "sampled",
        }
    }
}

/// A number with its absolute error, none if a single draw does not tell it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Measured {
    pub(crate) value: f64,
    pub(crate) error: Option<f64>,
    pub(crate) class: Class,
}

impl Measured {
    /// An exact number with a bound on its absolute error.
    pub(crate) fn exact(value: f64, error: f64) -> Self {
        Measured { value, error: Some(error), class: Class::Exact }
    }

    /// A sampled number with its standard error.
    pub(crate) fn sampled(value: f64, error: f64) -> Self {
        Measured { value, error: Some(error), class: Class::Sampled }
    }

    /// The same with value and error multiplied.
    pub(crate) fn times(self, factor: f64) -> Self {
        Measured { value: factor * self.value, error: self.error.map(|error| factor.abs() * error), ..self }
    }

    /// The three entries under [`NUMBER`].
    pub(crate) fn values(self) -> [Value; 3] {
        [self.value.into(), self.error.into(), self.class.name().into()]
    }

    /// From the columns of [`NUMBER`].
    pub(crate) fn read(row: &Row<'_>) -> Result<Self, TableError> {
        let class = match row.text("accuracy")? {
            "exact" => Class::Exact,
            "quasi-monte-carlo" => Class::QuasiMonteCarlo,
            _ => Class::Sampled,
        };
        Ok(Measured { value: row.real("value")?, error: row.optional_real("error")?, class })
    }

    /// The error, zero where a single draw does not tell it.
    pub(crate) fn error(&self) -> f64 {
        self.error.unwrap_or(0.0)
    }

    /// For a table of a document.
    pub(crate) fn cell(&self) -> Cell {
        Cell::Number { value: self.value, error: self.error }
    }

    /// For a figure.
    pub(crate) fn point(&self, x: f64) -> Point {
        match self.error {
            Some(error) => Point::with_error(x, self.value, error),
            None => Point::new(x, self.value),
        }
    }
}

impl From<Estimate> for Measured {
    fn from(estimate: Estimate) -> Self {
        let class = match estimate.accuracy {
            Accuracy::Exact { .. } => Class::Exact,
            Accuracy::QuasiMonteCarlo { .. } => Class::QuasiMonteCarlo,
            Accuracy::Sampled { .. } => Class::Sampled,
        };
        Measured { value: estimate.value, error: Some(estimate.absolute_error()), class }
    }
}

/// A prompt length for legends and labels: `L = 400`, `L = 1e6`, `infinite prompt`.
pub(crate) fn length_name(length: Option<i64>) -> String {
    match length {
        None => "infinite prompt".to_string(),
        Some(length) if length >= 10_000 => format!("L = {:e}", length as f64),
        Some(length) => format!("L = {length}"),
    }
}

/// A number for prose: four figures.
pub(crate) fn figures(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 {
        "0".to_string()
    } else if (1e-3..1e5).contains(&size) {
        let decimals = (3 - size.log10().floor() as i32).max(0) as usize;
        format!("{value:.decimals$}")
    } else {
        format!("{value:.2e}")
    }
}
