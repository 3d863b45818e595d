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

/// The grey of the palette, for guides and theory that belong to no curve alone.
pub(crate) const GREY: usize = 7;

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

    /// The same where nothing tells the error.
    #[cfg(feature = "training")]
    pub(crate) fn without_error(self) -> Self {
        Measured { error: None, ..self }
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

impl From<Accuracy> for Class {
    fn from(accuracy: Accuracy) -> Self {
        match accuracy {
            Accuracy::Exact { .. } => Class::Exact,
            Accuracy::QuasiMonteCarlo { .. } => Class::QuasiMonteCarlo,
            Accuracy::Sampled { .. } => Class::Sampled,
        }
    }
}

impl From<Estimate> for Measured {
    fn from(estimate: Estimate) -> Self {
        let class = estimate.accuracy.into();
        Measured { value: estimate.value, error: Some(estimate.absolute_error()), class }
    }
}

/// A prompt length for legends and sentences: `L = 400`, `L = 10⁶`, `infinite prompt`.
pub(crate) fn length_name(length: Option<i64>) -> String {
    match length {
        None => "infinite prompt".to_string(),
        Some(length) if length >= 10_000 => format!("L = {}", power(length as f64, 2)),
        Some(length) => format!("L = {length}"),
    }
}

/// A number for prose: three figures.
pub(crate) fn figures(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 {
        "0".to_string()
    } else if (1e-3..1e5).contains(&size) {
        let decimals = (2 - size.log10().floor() as i32).max(0) as usize;
        format!("{value:.decimals$}")
    } else {
        power(value, 1)
    }
}

/// A bound for prose: one figure, rounded up.
pub(crate) fn rounded_up(error: f64) -> String {
    if error <= 0.0 || !error.is_finite() {
        return error.to_string();
    }
    let unit = 10f64.powf(error.log10().floor());
    // A quotient a rounding above a whole number is that number.
    power((error / unit - 1e-9).ceil() * unit, 0)
}

/// A number in powers of ten and Unicode, `1.62·10⁻⁴` or `10⁶`, with at most so many decimals.
fn power(value: f64, decimals: usize) -> String {
    let written = format!("{value:.decimals$e}");
    let (mantissa, exponent) = written.split_once('e').unwrap_or((&written, "0"));
    let mantissa =
        if mantissa.contains('.') { mantissa.trim_end_matches('0').trim_end_matches('.') } else { mantissa };
    let raised: String = exponent.chars().map(superscript).collect();
    match mantissa {
        "1" => format!("10{raised}"),
        "-1" => format!("-10{raised}"),
        _ => format!("{mantissa}·10{raised}"),
    }
}

fn superscript(character: char) -> char {
    match character {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        _ => character.to_digit(10).and_then(|digit| char::from_u32(0x2070 + digit)).unwrap_or(character),
    }
}

#[cfg(test)]
mod tests {
    use super::{figures, length_name, rounded_up};

    #[test]
    fn numbers_in_sentences_are_short() {
        let numbers = [0.0, 0.30637, 1.4777, 2449.1, 1.62234e-4, -1e-20, 3e7];
        let written = ["0", "0.306", "1.48", "2449", "1.6·10⁻⁴", "-10⁻²⁰", "3·10⁷"];
        assert_eq!(numbers.map(figures), written);
        assert_eq!([2.1e-8, 1e-3, 9.5e-8].map(rounded_up), ["3·10⁻⁸", "10⁻³", "10⁻⁷"]);
        let lengths = [None, Some(400), Some(1_000_000), Some(31_623)].map(length_name);
        assert_eq!(lengths, ["infinite prompt", "L = 400", "L = 10⁶", "L = 3.16·10⁴"]);
    }
}
