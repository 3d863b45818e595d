//! How numbers are written: a value with its error, rounded to what the error allows.

use crate::formula::superscript_character;

/// Significant digits of a number without an error, or whose error would not show: what people read.
const DIGITS: usize = 4;

/// Of whole numbers, of numbers that would look whole with fewer, and of data.
const MORE_DIGITS: usize = 6;

/// Below this relative error a value counts as exact: its error lies beyond [`DIGITS`].
const EXACT_RELATIVE_ERROR: f64 = 1e-5;

/// A number ready to be written: mantissa, error in its last digits, power of ten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notation {
    /// Digits with an ASCII minus and point, or a word such as `NaN`.
    mantissa: String,
    uncertainty: Uncertainty,
    /// The power of ten by which the mantissa is multiplied.
    exponent: Option<i32>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Uncertainty {
    None,
    /// In units of the last digit of the mantissa: `1.234(5)`.
    LastDigits(String),
    /// As large as the value, so written out: `0.1 ± 0.5`.
    PlusMinus(String),
}

/// The notation of a value with its absolute error.
///
/// The error gets two significant digits if the first is 1 or 2, one otherwise, and the value stops at the same digit.
/// Without an error, or with a relative error below 10⁻⁵, the value gets four significant digits; six if it is whole, or
/// would look whole but is not. Powers of ten stand for values of 10⁶ and more and below 10⁻³.
///
/// ```
/// use esscher_report::number;
/// assert_eq!(number(0.123456, Some(0.0005)).unicode(), "0.1235(5)");
/// assert_eq!(number(0.503553, None).unicode(), "0.5036");
/// assert_eq!(number(1.5e-9, None).unicode(), "1.5×10⁻⁹");
/// assert_eq!(number(1.2345e-4, Some(2.1e-7)).latex(), r"1.2345(21)\times10^{-4}");
/// ```
pub fn number(value: f64, error: Option<f64>) -> Notation {
    let plain = |mantissa: &str| Notation {
        mantissa: mantissa.to_string(),
        uncertainty: Uncertainty::None,
        exponent: None,
    };
    if value.is_nan() {
        return plain("NaN");
    }
    if value.is_infinite() {
        return plain(if value > 0.0 { "∞" } else { "-∞" });
    }
    let error = error.map(f64::abs);
    match error {
        Some(error) if !error.is_finite() => {
            let sign = if error.is_nan() { "?" } else { "∞" };
            Notation { uncertainty: Uncertainty::PlusMinus(sign.to_string()), ..without_error(value) }
        }
        Some(error) if error > value.abs() * EXACT_RELATIVE_ERROR => with_error(value, error),
        _ => without_error(value),
    }
}

/// The notation of a whole number: round ones beyond a million as powers of ten, others with their digits in groups.
pub fn integer(value: i64) -> Notation {
    let mut head = value;
    let mut exponent = 0;
    while head != 0 && head % 10 == 0 {
        head /= 10;
        exponent += 1;
    }
    if value.unsigned_abs() >= 1_000_000 && head.unsigned_abs() < 1_000 {
        return Notation {
            mantissa: head.to_string(),
            uncertainty: Uncertainty::None,
            exponent: Some(exponent),
        };
    }
    Notation { mantissa: value.to_string(), uncertainty: Uncertainty::None, exponent: None }
}

/// A number of data, which keeps six significant digits.
pub(crate) fn datum(value: f64) -> Notation {
    if value.is_finite() { with_digits(value, MORE_DIGITS) } else { number(value, None) }
}

fn without_error(value: f64) -> Notation {
    let looks_whole = || {
        let short: f64 = rounded_value(value, DIGITS);
        short.fract() == 0.0 && value.abs() < 1e3 && value.abs() > 0.5
    };
    with_digits(value, if value.fract() == 0.0 || looks_whole() { MORE_DIGITS } else { DIGITS })
}

/// The number that so many significant digits write.
fn rounded_value(value: f64, digits: usize) -> f64 {
    let (mantissa, exponent) = rounded(value, digits - 1);
    format!("{mantissa}e{exponent}").parse().unwrap_or(value)
}

fn with_digits(value: f64, count: usize) -> Notation {
    if value == 0.0 {
        return Notation { mantissa: "0".to_string(), uncertainty: Uncertainty::None, exponent: None };
    }
    // Rounding first: 999999.7 is a million, and belongs to the other branch.
    let (digits, exponent) = rounded(value, count - 1);
    if (-3..6).contains(&exponent) {
        let decimals = usize::try_from(count as i32 - 1 - exponent).unwrap_or(0);
        let mantissa = trimmed(&format!("{value:.decimals$}"));
        return Notation { mantissa, uncertainty: Uncertainty::None, exponent: None };
    }
    Notation { mantissa: trimmed(&digits), uncertainty: Uncertainty::None, exponent: Some(exponent) }
}

fn with_error(value: f64, error: f64) -> Notation {
    let (leading, _) = rounded(error, 1);
    let digits = if leading.starts_with(['1', '2']) { 2 } else { 1 };
    let (_, error_exponent) = rounded(error, digits - 1);
    // The decimal place of the last digit that is written.
    let last = error_exponent - (digits as i32 - 1);
    let (_, value_exponent) = rounded(value, 15);
    let top = if value == 0.0 { error_exponent } else { value_exponent.max(error_exponent) };
    let exponent = if (-3..6).contains(&top) && last <= 0 { None } else { Some(top) };
    let scale = exponent.unwrap_or(0);
    let decimals = usize::try_from(scale - last).unwrap_or(0);
    let mantissa = without_negative_zero(scaled(value, scale, decimals));
    let spread = scaled(error, scale, decimals);
    let uncertainty = if error > value.abs() {
        Uncertainty::PlusMinus(spread)
    } else {
        let digits: String = spread.chars().filter(char::is_ascii_digit).collect();
        Uncertainty::LastDigits(digits.trim_start_matches('0').to_string())
    };
    Notation { mantissa, uncertainty, exponent }
}

/// Mantissa with `decimals` digits after the point, and exponent, of a finite number.
fn rounded(value: f64, decimals: usize) -> (String, i32) {
    let written = format!("{value:.decimals$e}");
    let (mantissa, exponent) = written.split_once('e').unwrap_or((&written, "0"));
    (mantissa.to_string(), exponent.parse().unwrap_or(0))
}

/// `value / 10^exponent`, through its decimal digits: dividing would lose the range of very small numbers.
fn scaled(value: f64, exponent: i32, decimals: usize) -> String {
    let (mantissa, own) = rounded(value, 16);
    let shifted: f64 = format!("{mantissa}e{}", own - exponent).parse().unwrap_or(0.0);
    format!("{shifted:.decimals$}")
}

fn trimmed(digits: &str) -> String {
    let trimmed =
        if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits };
    without_negative_zero(trimmed.to_string())
}

fn without_negative_zero(digits: String) -> String {
    match digits.strip_prefix('-') {
        Some(rest) if rest.chars().all(|digit| digit == '0' || digit == '.') => rest.to_string(),
        _ => digits,
    }
}

/// The signs of one way of writing numbers.
struct Signs {
    minus: &'static str,
    group: &'static str,
    plus_minus: &'static str,
    times_ten: &'static str,
    raise: fn(i32) -> String,
    infinity: &'static str,
}

impl Notation {
    /// Whether it has its error in brackets, `1.02(6)`, which wants to be explained.
    pub(crate) fn is_bracketed(&self) -> bool {
        matches!(self.uncertainty, Uncertainty::LastDigits(_))
    }

    /// With its error written out: `1.02 ± 0.06` for `1.02(6)`.
    pub(crate) fn spread_out(&self) -> Notation {
        let Uncertainty::LastDigits(digits) = &self.uncertainty else { return self.clone() };
        let decimals = self.mantissa.split_once('.').map_or(0, |(_, fraction)| fraction.len());
        let padded = format!("{digits:0>width$}", width = decimals + 1);
        let (whole, fraction) = padded.split_at(padded.len() - decimals);
        let spread = if fraction.is_empty() { whole.to_string() } else { format!("{whole}.{fraction}") };
        Notation { uncertainty: Uncertainty::PlusMinus(spread), ..self.clone() }
    }

    /// In Unicode: `1.23(4)×10⁻⁵`.
    pub fn unicode(&self) -> String {
        self.write(&Signs {
            minus: "−",
            group: "\u{202f}",
            plus_minus: " ± ",
            times_ten: "×10",
            raise: superscript,
            infinity: "∞",
        })
    }

    /// In LaTeX, for mathematics mode: `1.23(4)\times10^{-5}`.
    pub fn latex(&self) -> String {
        self.write(&Signs {
            minus: "-",
            group: r"\,",
            plus_minus: r" \pm ",
            times_ten: r"\times10",
            raise: |exponent| format!("^{{{exponent}}}"),
            infinity: r"\infty",
        })
    }

    /// In HTML, with raised powers.
    pub(crate) fn html(&self) -> String {
        self.write(&Signs {
            minus: "−",
            group: "\u{202f}",
            plus_minus: "\u{a0}±\u{a0}",
            times_ten: "×10",
            raise: |exponent| format!("<sup>{}</sup>", exponent.to_string().replace('-', "−")),
            infinity: "∞",
        })
    }

    fn write(&self, signs: &Signs) -> String {
        let signed = |digits: &str| match digits {
            "NaN" if signs.minus == "-" => r"\text{NaN}".to_string(),
            _ => grouped(digits, signs.group).replace('-', signs.minus).replace('∞', signs.infinity),
        };
        let raised = self.exponent.map(signs.raise);
        let mantissa = signed(&self.mantissa);
        match (&self.uncertainty, raised) {
            (Uncertainty::None, Some(raised)) if self.mantissa == "1" => {
                format!("{}{raised}", signs.times_ten.trim_start_matches(r"\times").trim_start_matches('×'))
            }
            (Uncertainty::None, Some(raised)) => format!("{mantissa}{}{raised}", signs.times_ten),
            (Uncertainty::None, None) => mantissa,
            (Uncertainty::LastDigits(digits), raised) => {
                let power = raised.map_or_else(String::new, |raised| signs.times_ten.to_string() + &raised);
                format!("{mantissa}({digits}){power}")
            }
            (Uncertainty::PlusMinus(spread), None) => {
                format!("{mantissa}{}{}", signs.plus_minus, signed(spread))
            }
            (Uncertainty::PlusMinus(spread), Some(raised)) => {
                format!("({mantissa}{}{}){}{raised}", signs.plus_minus, signed(spread), signs.times_ten)
            }
        }
    }
}

/// Groups of three before the point, from five digits on.
fn grouped(digits: &str, separator: &str) -> String {
    let (sign, rest) = match digits.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", digits),
    };
    let (whole, fraction) = rest.split_at(rest.find('.').unwrap_or(rest.len()));
    if whole.len() < 5 || !whole.is_ascii() {
        return digits.to_string();
    }
    let mut text = sign.to_string();
    for (position, digit) in whole.chars().enumerate() {
        if position > 0 && (whole.len() - position) % 3 == 0 {
            text.push_str(separator);
        }
        text.push(digit);
    }
    text + fraction
}

/// A whole number as raised characters: `⁻³`.
pub(crate) fn superscript(exponent: i32) -> String {
    exponent.to_string().chars().filter_map(superscript_character).collect()
}

/// A number as machines read it: the shortest digits that give back the same value.
pub fn machine(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_string();
    }
    let digits = format!("{value:?}");
    digits.strip_suffix(".0").map_or(digits.clone(), str::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_stops_where_its_error_starts() {
        for (value, error, expected) in [
            (1.23456, Some(0.005), "1.235(5)"),
            (1.23456, Some(0.0012), "1.2346(12)"),
            (1.23456, Some(0.0096), "1.23(1)"),
            (-0.5, Some(0.03), "−0.50(3)"),
            (123456.0, Some(30.0), "1.2346(3)×10⁵"),
            (123456.0, Some(3.0), "123\u{202f}456(3)"),
            (12.0, Some(1.0), "12.0(10)"),
            (1.5e-9, Some(3.1e-11), "1.50(3)×10⁻⁹"),
            (1e-12, Some(5e-12), "(1 ± 5)×10⁻¹²"),
            (0.1, Some(0.5), "0.1 ± 0.5"),
            (0.0, Some(0.5), "0.0 ± 0.5"),
            (0.0, Some(0.0), "0"),
            (-0.001, Some(0.5), "0.0 ± 0.5"),
            (2.0 / 3.0, Some(1e-12), "0.6667"),
            (0.503553, None, "0.5036"),
            (12345.678, None, "12\u{202f}346"),
            (1.00003, None, "1.00003"),
            (0.99997, None, "0.99997"),
            (0.500003, None, "0.5"),
            (1.0000000001, None, "1"),
            (8.437e-16, Some(1e-30), "8.437×10⁻¹⁶"),
            (2.5, None, "2.5"),
            (1e6, None, "10⁶"),
            (999_999.7, None, "10⁶"),
            (65536.0, None, "65\u{202f}536"),
            (-1e-4, None, "−1×10⁻⁴"),
            (0.001, None, "0.001"),
            (f64::NAN, Some(1.0), "NaN"),
            (f64::NEG_INFINITY, None, "−∞"),
            (1.0, Some(f64::INFINITY), "1 ± ∞"),
            (1.0, Some(f64::NAN), "1 ± ?"),
        ] {
            assert_eq!(number(value, error).unicode(), expected, "{value} {error:?}");
        }
    }

    #[test]
    fn brackets_can_be_written_out() {
        for (value, error, expected) in [
            (1.02, 0.06, "1.02 ± 0.06"),
            (12.0, 1.0, "12.0 ± 1.0"),
            (-0.5003, 0.0012, "−0.5003 ± 0.0012"),
            (123456.0, 3.0, "123\u{202f}456 ± 3"),
            (1.5e-9, 3.1e-11, "(1.50 ± 0.03)×10⁻⁹"),
            (0.1, 0.5, "0.1 ± 0.5"),
        ] {
            assert_eq!(number(value, Some(error)).spread_out().unicode(), expected);
        }
    }

    #[test]
    fn whole_numbers_are_read_at_a_glance() {
        for (value, expected) in [
            (0, "0"),
            (1000, "1000"),
            (65_536, "65\u{202f}536"),
            (1_000_000, "10⁶"),
            (-30_000_000, "−3×10⁷"),
            (1_048_576, "1\u{202f}048\u{202f}576"),
            (i64::MIN, "−9\u{202f}223\u{202f}372\u{202f}036\u{202f}854\u{202f}775\u{202f}808"),
        ] {
            assert_eq!(integer(value).unicode(), expected);
        }
    }

    #[test]
    fn latex_and_html_share_the_digits() {
        assert_eq!(number(1.5e-9, Some(3.1e-11)).latex(), r"1.50(3)\times10^{-9}");
        assert_eq!(number(1e-9, None).latex(), r"10^{-9}");
        assert_eq!(number(1.5e-9, None).html(), "1.5×10<sup>−9</sup>");
    }

    #[test]
    fn machines_read_back_the_same_value() {
        for value in [1.0, 0.1, 1e-14, 1.7976931348623157e308, 5e-324, -2.5, 1e300] {
            assert_eq!(machine(value).parse::<f64>().ok(), Some(value));
        }
        assert_eq!(machine(3.0), "3");
    }
}
