//! Which cells of a heat map have a colour, and which: shared by all drawings.

use crate::frame::{Range, can_be_placed};
use crate::heat_map::HeatMap;
use crate::numbers::number;
use crate::palette::LEVELS;

/// What a cell shows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Shade {
    /// A number and its level on the ramp of colours.
    Level(f64, usize),
    /// A number without a place on the scale.
    OffScale(f64),
    /// Nothing was measured.
    Missing,
}

/// The cells of a heat map as colours.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shading {
    pub(crate) range: Range,
    /// Row by row, all of the same length.
    pub(crate) shades: Vec<Vec<Shade>>,
    /// Names and explanations of what is no colour, in the order of the legend.
    pub(crate) keys: Vec<Key>,
    /// Whether some cell has a number.
    pub(crate) has_numbers: bool,
}

/// What the legend explains beside the colours.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Key {
    pub(crate) sign: Sign,
    pub(crate) words: String,
}

/// What a cell may bear beside a colour.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Sign {
    /// A dot, on the colour of the threshold.
    Dot(usize),
    /// A hatched cell.
    Hatched,
    /// A crossed cell.
    Crossed,
}

/// The colours of a heat map, from its least number to its greatest.
pub(crate) fn shading(map: &HeatMap) -> Shading {
    let numbers = map.cells.iter().flatten().filter_map(|cell| *cell);
    let range = Range::spanning(map.scale, numbers.clone().filter(|value| can_be_placed(map.scale, *value)));
    let level = |value: f64| (range.place(value).clamp(0.0, 1.0) * (LEVELS - 1) as f64).round() as usize;
    let shade = |cell: Option<f64>| match cell {
        None => Shade::Missing,
        Some(value) if can_be_placed(map.scale, value) => Shade::Level(value, level(value)),
        Some(value) => Shade::OffScale(value),
    };
    let (rows, columns) = map.size();
    let shades: Vec<Vec<Shade>> =
        (0..rows).map(|row| (0..columns).map(|column| shade(map.cell(row, column))).collect()).collect();

    let count = |is: fn(&Shade) -> bool| shades.iter().flatten().filter(|shade| is(shade)).count();
    let missing = count(|shade| matches!(shade, Shade::Missing));
    let off_scale = count(|shade| matches!(shade, Shade::OffScale(_)));
    let marked = numbers.clone().filter(|value| map.marks(*value)).count();
    let mut keys = Vec::new();
    if let Some(threshold) = map.threshold {
        let at = if can_be_placed(map.scale, threshold) { level(threshold) } else { 0 };
        let words = format!(
            "at or below {}: {marked} of {}",
            number(threshold, None).unicode(),
            rows * columns - missing
        );
        keys.push(Key { sign: Sign::Dot(at), words });
    }
    if missing > 0 {
        keys.push(Key { sign: Sign::Hatched, words: format!("not measured: {missing}") });
    }
    if off_scale > 0 {
        let words = format!("not on the scale: {off_scale}");
        keys.push(Key { sign: Sign::Crossed, words });
    }
    Shading { range, shades, keys, has_numbers: numbers.clone().next().is_some() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scale;

    fn map(scale: Scale, cells: Vec<Vec<Option<f64>>>) -> HeatMap {
        HeatMap { cells, scale, threshold: Some(0.01), ..HeatMap::default() }
    }

    #[test]
    fn colours_run_from_the_least_number_to_the_greatest() {
        let shading = shading(&map(Scale::Logarithmic, vec![vec![Some(1e-4), Some(1e-2), Some(1.0)]]));
        let levels: Vec<_> = shading.shades.concat();
        assert_eq!(levels[0], Shade::Level(1e-4, 0));
        assert_eq!(levels[1], Shade::Level(1e-2, LEVELS / 2));
        assert_eq!(levels[2], Shade::Level(1.0, LEVELS - 1));
    }

    #[test]
    fn what_has_no_colour_is_counted_and_short_rows_are_filled_up() {
        let cells = vec![vec![Some(0.0), Some(f64::NAN), Some(0.5)], vec![Some(0.005)]];
        let shading = shading(&map(Scale::Logarithmic, cells));
        assert_eq!(shading.shades[1][1..], [Shade::Missing, Shade::Missing]);
        let words: Vec<_> = shading.keys.iter().map(|key| key.words.as_str()).collect();
        // Zero has no logarithm, but it lies below the threshold all the same.
        assert_eq!(words, ["at or below 0.01: 2 of 4", "not measured: 2", "not on the scale: 2"]);
    }

    #[test]
    fn equal_numbers_and_no_numbers_have_a_scale() {
        for scale in [Scale::Linear, Scale::Logarithmic] {
            for cells in [vec![], vec![vec![]], vec![vec![None]], vec![vec![Some(3.0); 4]]] {
                let range = shading(&map(scale, cells)).range;
                assert!(range.low < range.high, "{range:?}");
            }
        }
    }
}
