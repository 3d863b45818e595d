//! A number as result tables hold it: its value, how far it may be off, and how it was obtained.

use esscher_core::{Accuracy, Estimate};
use esscher_lab::{Column, Field, Row, TableError, Value};
use esscher_report::{Cell, Point};

/// The grey of the palette, for guides and theory that belong to no curve alone.
pub const GREY: usize = 7;

/// A number with its absolute error, none if a single draw does not tell it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// The number.
    pub value: f64,
    /// How far it may be off: a bound or one standard error, as the class says.
    pub error: Option<f64>,
    /// How it was obtained.
    pub accuracy: Accuracy,
}

impl Measured {
    /// An exact number with a bound on its absolute error.
    pub fn exact(value: f64, error: f64) -> Self {
        Measured { value, error: Some(error), accuracy: Accuracy::Exact }
    }

    /// A sampled number with its standard error.
    pub fn sampled(value: f64, error: f64) -> Self {
        Measured { value, error: Some(error), accuracy: Accuracy::Sampled }
    }

    /// The same where nothing tells the error.
    #[cfg(feature = "training")]
    pub fn without_error(self) -> Self {
        Measured { error: None, ..self }
    }

    /// The same with value and error multiplied.
    pub fn times(self, factor: f64) -> Self {
        Measured { value: factor * self.value, error: self.error.map(|error| factor.abs() * error), ..self }
    }

    /// The root of a mean square, its error to first order.
    pub fn root(self) -> Self {
        let root = self.value.max(0.0).sqrt();
        Measured {
            value: root,
            error: self.error.map(|error| error / (2.0 * root).max(f64::MIN_POSITIVE)),
            ..self
        }
    }

    /// How it was obtained, in words.
    pub fn class(&self) -> &'static str {
        match self.accuracy {
            Accuracy::Exact => "exact",
            Accuracy::QuasiMonteCarlo => {
                "exact in the tokens, queries averaged over quasi-Monte-Carlo points"
            }
            Accuracy::Sampled => "sampled",
        }
    }

    /// The error, zero where a single draw does not tell it.
    pub fn error(&self) -> f64 {
        self.error.unwrap_or(0.0)
    }

    /// For a table of a document.
    pub fn cell(&self) -> Cell {
        Cell::Number { value: self.value, error: self.error }
    }

    /// For a figure.
    pub fn point(&self, x: f64) -> Point {
        match self.error {
            Some(error) => Point::with_error(x, self.value, error),
            None => Point::new(x, self.value),
        }
    }
}

/// The columns `value`, `error` and `accuracy`, to stand after those that say what the number is.
impl Field for Measured {
    fn columns(_name: &str) -> Vec<(String, Column)> {
        [f64::columns("value"), Option::<f64>::columns("error"), Accuracy::columns("accuracy")].concat()
    }

    fn write(&self, row: &mut Vec<Value>) {
        self.value.write(row);
        self.error.write(row);
        self.accuracy.write(row);
    }

    fn read(row: &Row<'_>, _name: &str) -> Result<Self, TableError> {
        let (value, error) = (Field::read(row, "value")?, Field::read(row, "error")?);
        Ok(Measured { value, error, accuracy: Field::read(row, "accuracy")? })
    }
}

impl From<Estimate> for Measured {
    fn from(estimate: Estimate) -> Self {
        Measured { value: estimate.value, error: Some(estimate.error), accuracy: estimate.accuracy }
    }
}

impl From<Measured> for Cell {
    fn from(number: Measured) -> Self {
        number.cell()
    }
}

/// A prompt length for legends and sentences: `L = 400`, `L = 10⁶`, `infinite prompt`.
pub fn length_name(length: Option<i64>) -> String {
    match length {
        None => "infinite prompt".to_string(),
        Some(length) if length >= 10_000 => format!("L = {}", power(length as f64, 2)),
        Some(length) => format!("L = {length}"),
    }
}

/// A number for prose: three figures.
pub fn figures(value: f64) -> String {
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
pub fn rounded_up(error: f64) -> String {
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
