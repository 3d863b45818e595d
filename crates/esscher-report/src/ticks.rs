//! Where the ticks of an axis stand, and what they say.

use crate::figure::Scale;
use crate::frame::Range;
use crate::numbers::{machine, number, superscript};

/// Ticks stand at the places of points if these are at most so many, so far apart as parts of the axis, and so long to write.
const MOST_POSITIONS: usize = 7;
const LEAST_APART: f64 = 0.07;
const LONGEST_POSITION: usize = 6;

/// A labelled tick.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tick {
    pub(crate) value: f64,
    pub(crate) label: Label,
}

/// What a tick says: `base` and a raised power, `10` and `−3`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Label {
    pub(crate) base: String,
    pub(crate) power: Option<i32>,
}

impl Label {
    /// In plain Unicode: `10⁻³`.
    pub(crate) fn unicode(&self) -> String {
        self.power.map_or_else(|| self.base.clone(), |power| self.base.clone() + &superscript(power))
    }
}

/// The ticks of an axis from `low` to `high`, at most `most` of them with labels (at least two where there is room
/// for them), and the values of the small ticks between.
pub(crate) fn ticks(scale: Scale, low: f64, high: f64, most: usize) -> (Vec<Tick>, Vec<f64>) {
    match scale {
        Scale::Linear => linear(low, high, most),
        Scale::Logarithmic => logarithmic(low, high, most),
    }
}

/// The ticks of an axis on which points stand at these positions: there, if these are few, or else at nice numbers.
pub(crate) fn axis_ticks(
    range: &Range,
    positions: impl Iterator<Item = f64>,
    most: usize,
) -> (Vec<Tick>, Vec<f64>) {
    match at_positions(range, positions) {
        Some(own) if own.len() <= most => (own, Vec::new()),
        _ => ticks(range.scale, range.low, range.high, most),
    }
}

fn linear(low: f64, high: f64, most: usize) -> (Vec<Tick>, Vec<f64>) {
    let (step, parts) = nice_step((high - low) / most.max(2) as f64);
    let values = multiples(step, low, high);
    let minor = multiples(step / f64::from(parts), low, high);
    let largest = values.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
    let exponent = if largest > 0.0 { floor_log10(largest) } else { 0 };
    let unit = floor_log10(step);
    // Long digits would crowd the axis: 2×10⁶ rather than 2000000, and whole numbers rather than 0.2×10⁷.
    let power = match exponent {
        -3..5 => None,
        _ if exponent - unit < 2 => Some(unit),
        _ => Some(exponent),
    };
    let scale = power.unwrap_or(0);
    let decimals = usize::try_from(scale - floor_log10(step)).unwrap_or(0);
    let ticks = values
        .iter()
        .map(|&value| {
            let digits = format!("{:.decimals$}", value / ten_to(scale)).replace('-', "−");
            let label = match power {
                Some(power) if value != 0.0 => Label { base: format!("{digits}×10"), power: Some(power) },
                Some(_) => Label { base: "0".to_string(), power: None },
                None => Label { base: digits, power: None },
            };
            Tick { value, label }
        })
        .collect();
    let minor = minor
        .into_iter()
        .filter(|small| values.iter().all(|value| (small - value).abs() > step * 1e-6))
        .collect();
    (ticks, minor)
}

/// The smallest of 1, 2, 5 times a power of ten that is not below `rough`, and into how many parts small ticks cut it.
fn nice_step(rough: f64) -> (f64, u32) {
    let exponent = floor_log10(rough);
    let unit = ten_to(exponent);
    [(1.0, 5), (2.0, 4), (5.0, 5)]
        .into_iter()
        .map(|(factor, parts)| (times_ten(factor, exponent), parts))
        .find(|(step, _)| *step >= rough * (1.0 - 1e-9))
        .unwrap_or((10.0 * unit, 5))
}

/// Whole multiples of `step` in a closed range that is allowed the rounding of its ends.
fn multiples(step: f64, low: f64, high: f64) -> Vec<f64> {
    let first = (low / step - 1e-6).ceil();
    let last = (high / step + 1e-6).floor();
    // A range that its numbers cannot resolve would ask for endless ticks.
    let count = (last - first).clamp(0.0, 1000.0) as usize;
    (0..=count)
        .map(|index| (first + index as f64) * step)
        .filter(|value| *value >= low - step * 1e-6 && *value <= high + step * 1e-6)
        .map(|value| if value == 0.0 { 0.0 } else { value })
        .collect()
}

fn logarithmic(low: f64, high: f64, most: usize) -> (Vec<Tick>, Vec<f64>) {
    let first = (low.log10() - 1e-9).ceil() as i32;
    let last = (high.log10() + 1e-9).floor() as i32;
    let decades = (last - first).max(-1) + 1;
    if decades < 2 {
        return within_decades(low, high, most).unwrap_or_else(|| linear(low, high, most));
    }
    // Two powers of ten are too few.
    if decades == 2
        && let Some(digits) = within_decades(low, high, most)
    {
        return digits;
    }
    let every = (1..).find(|every| decades as usize <= most.max(2) * *every as usize).unwrap_or(1);
    let at = |exponent: i32| exponent.rem_euclid(every) == 0;
    let ticks = (first..=last)
        .filter(|exponent| at(*exponent))
        .map(|exponent| Tick { value: ten_to(exponent), label: power_of_ten(exponent) })
        .collect();
    let minor = if every == 1 {
        (first - 1..=last)
            .flat_map(|exponent| (2..10).map(move |digit| times_ten(f64::from(digit), exponent)))
            .filter(|value| *value >= low && *value <= high)
            .collect()
    } else if every <= 10 {
        (first..=last).filter(|exponent| !at(*exponent)).map(ten_to).collect()
    } else {
        Vec::new()
    };
    (ticks, minor)
}

/// Where fewer than three powers of ten lie, all digits, or 1, 2, 5, or 1 and 3 get labels, if at most `most` of them fit.
fn within_decades(low: f64, high: f64, most: usize) -> Option<(Vec<Tick>, Vec<f64>)> {
    let exponents = floor_log10(low)..=floor_log10(high);
    let all: Vec<(f64, u32, i32)> = exponents
        .flat_map(|exponent| {
            (1..10).map(move |digit| (times_ten(f64::from(digit), exponent), digit, exponent))
        })
        .filter(|(value, ..)| *value >= low * (1.0 - 1e-9) && *value <= high * (1.0 + 1e-9))
        .collect();
    let choices: [&[u32]; 3] = [&[1, 2, 3, 4, 5, 6, 7, 8, 9], &[1, 2, 5], &[1, 3]];
    let chosen = |digits: &[u32]| all.iter().filter(|(_, digit, _)| digits.contains(digit)).count();
    let digits = choices.into_iter().find(|digits| (2..=most.max(3)).contains(&chosen(digits)))?;
    let ticks = all
        .iter()
        .filter(|(_, digit, _)| digits.contains(digit))
        .map(|&(value, digit, exponent)| {
            let label = match digit {
                _ if (-2..4).contains(&exponent) => Label { base: format!("{value}"), power: None },
                1 => power_of_ten(exponent),
                _ => Label { base: format!("{digit}×10"), power: Some(exponent) },
            };
            Tick { value, label }
        })
        .collect();
    let minor =
        all.iter().filter(|(_, digit, _)| !digits.contains(digit)).map(|(value, ..)| *value).collect();
    Some((ticks, minor))
}

/// Ticks at the places where all points stand, if these are few, apart and short to write: 10, 40, 100, 400.
fn at_positions(range: &Range, positions: impl Iterator<Item = f64>) -> Option<Vec<Tick>> {
    let mut places: Vec<f64> = Vec::new();
    for position in positions {
        if !places.contains(&position) {
            places.push(position);
        }
        if places.len() > MOST_POSITIONS {
            return None;
        }
    }
    places.sort_by(f64::total_cmp);
    let powers = |value: &f64| range.scale == Scale::Logarithmic && ten_to(floor_log10(*value)) == *value;
    let apart = |pair: &[f64]| range.place(pair[1]) - range.place(pair[0]) >= LEAST_APART;
    if places.len() < 3 || places.iter().all(powers) || !places.windows(2).all(apart) {
        return None;
    }
    let ticks: Vec<Tick> = places
        .into_iter()
        .map(|value| Tick { value, label: Label { base: number(value, None).unicode(), power: None } })
        .collect();
    let is_short = |tick: &Tick| {
        tick.label.base.chars().count() <= LONGEST_POSITION && machine(tick.value).len() <= LONGEST_POSITION
    };
    ticks.iter().all(is_short).then_some(ticks)
}

fn power_of_ten(exponent: i32) -> Label {
    Label { base: "10".to_string(), power: Some(exponent) }
}

/// `10^exponent` correctly rounded: `powi` is off by an ulp for some, and labels compare equal to data.
fn ten_to(exponent: i32) -> f64 {
    times_ten(1.0, exponent)
}

fn times_ten(factor: f64, exponent: i32) -> f64 {
    format!("{factor}e{exponent}").parse().unwrap_or(f64::NAN)
}

fn floor_log10(value: f64) -> i32 {
    // The tolerance keeps 0.001, whose logarithm may come out as -3 - 4e-16, in its own decade.
    (value.log10() + 1e-9).floor() as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: Scale, low: f64, high: f64, most: usize) -> Vec<String> {
        ticks(scale, low, high, most).0.iter().map(|tick| tick.label.unicode()).collect()
    }

    #[test]
    fn logarithmic_ticks_are_powers_of_ten() {
        assert_eq!(labels(Scale::Logarithmic, 1e-3, 1.0, 8), ["10⁻³", "10⁻²", "10⁻¹", "10⁰"]);
        assert_eq!(
            labels(Scale::Logarithmic, 0.7, 1.5e12, 7),
            ["10⁰", "10²", "10⁴", "10⁶", "10⁸", "10¹⁰", "10¹²"]
        );
        assert_eq!(labels(Scale::Logarithmic, 1e-14, 1.0, 5), ["10⁻¹²", "10⁻⁹", "10⁻⁶", "10⁻³", "10⁰"]);
    }

    #[test]
    fn small_ticks_stand_at_digits_or_at_powers_without_a_label() {
        let (_, digits) = ticks(Scale::Logarithmic, 1.0, 100.0, 8);
        assert_eq!(digits.len(), 16);
        let (_, powers) = ticks(Scale::Logarithmic, 1.0, 1e6, 4);
        assert_eq!(powers, [10.0, 1e3, 1e5]);
    }

    #[test]
    fn less_than_a_decade_gets_digits() {
        assert_eq!(labels(Scale::Logarithmic, 1.5, 8.0, 8), ["2", "3", "4", "5", "6", "7", "8"]);
        assert_eq!(labels(Scale::Logarithmic, 1.5e-5, 7e-5, 4), ["2×10⁻⁵", "5×10⁻⁵"]);
        assert!(labels(Scale::Logarithmic, 4.1, 4.3, 6).len() >= 2);
    }

    #[test]
    fn less_than_two_decades_get_digits_too() {
        assert_eq!(labels(Scale::Logarithmic, 8.0, 500.0, 8), ["10", "20", "50", "100", "200", "500"]);
        assert_eq!(labels(Scale::Logarithmic, 0.08, 1.1, 8), ["0.1", "0.2", "0.5", "1"]);
    }

    #[test]
    fn few_places_of_points_are_ticks() {
        let range = Range { scale: Scale::Logarithmic, low: 8.0, high: 500.0 };
        let written = |positions: &[f64]| {
            let ticks = at_positions(&range, positions.iter().copied());
            ticks.map(|ticks| ticks.iter().map(|tick| tick.label.unicode()).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(written(&[100.0, 10.0, 400.0, 40.0, 10.0]).as_deref(), Some("10 40 100 400"));
        assert_eq!(written(&[10.0, 100.0]), None);
        assert_eq!(written(&[10.0, 11.0, 100.0]), None);
        assert_eq!(written(&[10.0, 33.333333333, 100.0]), None);
    }

    #[test]
    fn linear_ticks_are_nice_numbers() {
        assert_eq!(labels(Scale::Linear, 0.0, 1.0, 6), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels(Scale::Linear, -2.0, 2.0, 5), ["−2", "−1", "0", "1", "2"]);
        assert_eq!(labels(Scale::Linear, 0.0, 4e6, 4), ["0", "1×10⁶", "2×10⁶", "3×10⁶", "4×10⁶"]);
        assert_eq!(labels(Scale::Linear, 0.0, 2e-5, 4), ["0", "5×10⁻⁶", "10×10⁻⁶", "15×10⁻⁶", "20×10⁻⁶"]);
    }

    #[test]
    fn any_range_gets_a_bounded_number_of_ticks() {
        for scale in [Scale::Linear, Scale::Logarithmic] {
            for (low, high) in [
                (1e-300, 1e300),
                (1.0, 1.0 + 1e-9),
                (1e-300, 2e-300),
                (1e299, 1e300),
                (9.99, 10.01),
                (0.9, 1.1),
            ] {
                let (ticks, minor) = ticks(scale, low, high, 8);
                assert!(ticks.len() <= 12 && minor.len() < 200, "{scale:?} {low} {high} {}", ticks.len());
                assert!(ticks.iter().all(|tick| tick.value.is_finite()));
            }
        }
    }
}
