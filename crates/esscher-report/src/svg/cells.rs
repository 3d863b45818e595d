//! A heat map as SVG: coloured cells, the bar of colours at the right, what is no colour explained below.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::escape::xml;
use crate::font;
use crate::heat_map::{HeatMap, name};
use crate::numbers::number;
use crate::palette::{ink_on, ramp};
use crate::shading::{Key, Shade, Shading, Sign, shading};
use crate::subscript::{Piece, unicode, wrapped};

use super::colour_bar::ColourBar;
use super::lettering::{
    LABEL_SIZE, LEADING, LEGEND_SIZE, MARGIN, TICK_SIZE, Units, WIDTH, letters, text, turned,
};
use super::opened;

/// All rows together are at most this high.
const HEIGHT: f64 = 430.0;
const LEAST_BAR: f64 = 100.0;
const TALLEST_CELL: f64 = 44.0;
const WIDEST_CELL: f64 = 72.0;
/// A cell is at most this many times as wide as high, and half as many times as high as wide.
const ASPECT: f64 = 3.0;
/// Names of rows and columns are cut at these widths.
const ROW_ROOM: f64 = 130.0;
const COLUMN_ROOM: f64 = 90.0;
/// Between the cells and their names, and around the bar.
const GAP: f64 = 6.0;
const VALUE_SIZE: f64 = 9.5;
const SWATCH: f64 = 14.0;

/// A heat map as SVG.
pub(super) fn cells(map: &HeatMap) -> String {
    let shading = shading(map);
    let page = Page::new(map, &shading);
    let mut out = opened(&map.title, &map.colour_label, page.height);
    page.paint(&mut out);
    page.signs(&mut out, map);
    page.names(&mut out);
    page.bar.draw(&mut out, (page.right() + 3.0 * GAP, page.top), "#333333");
    for (place, key) in page.key_places.iter().zip(&shading.keys) {
        let _ = writeln!(
            out,
            "<g transform=\"translate({} {})\">{}</g>",
            Units(place.0),
            Units(place.1),
            key_swatch(key, "#ececec", "#8a8a8a")
        );
        let at = (place.0 + SWATCH + 6.0, place.1 + SWATCH / 2.0 + LEGEND_SIZE * 0.36);
        text(&mut out, at, LEGEND_SIZE, "start", &xml(&key.words), "");
    }
    if !shading.has_numbers {
        let at = ((page.left + page.right()) / 2.0, page.top + page.rows_height() / 2.0);
        text(&mut out, at, LABEL_SIZE, "middle", "no data", "#777777");
    }
    out.push_str("</svg>\n");
    out
}

/// Where everything stands.
struct Page<'a> {
    shades: &'a [Vec<Shade>],
    columns: usize,
    /// Width and height of a cell, with the gap to the next.
    cell: (f64, f64),
    left: f64,
    top: f64,
    height: f64,
    row_names: Vec<String>,
    column_names: Vec<String>,
    x_label: Vec<Vec<Piece>>,
    y_label: Vec<Vec<Piece>>,
    bar: ColourBar,
    key_places: Vec<(f64, f64)>,
}

impl<'a> Page<'a> {
    fn new(map: &HeatMap, shading: &'a Shading) -> Self {
        let (rows, columns) = map.size();
        let cut = |names: &[String], count: usize, room: f64| -> Vec<String> {
            (0..count).map(|position| shortened(&unicode(name(names, position)), room)).collect()
        };
        let row_names = cut(&map.rows, rows, ROW_ROOM);
        let column_names = cut(&map.columns, columns, COLUMN_ROOM);
        let widest = row_names.iter().map(|name| font::width(name, TICK_SIZE)).fold(0.0, f64::max);
        let line = LABEL_SIZE * LEADING;

        // The width of the bar depends on its numbers, these on its height, and this on the width that is left.
        let tall = (HEIGHT / rows.max(1) as f64).min(TALLEST_CELL);
        let mut cell = (tall, tall);
        let top = MARGIN + TICK_SIZE / 2.0;
        let mut left = 0.0;
        let mut bar = ColourBar::new(map, shading.range, LEAST_BAR);
        let mut y_label = Vec::new();
        for _ in 0..2 {
            let inner = (cell.1 * rows as f64).max(LEAST_BAR);
            y_label = wrapped(&map.y, LABEL_SIZE, inner);
            bar = ColourBar::new(map, shading.range, inner);
            left = MARGIN + line * y_label.len() as f64 + GAP + widest + GAP;
            let room = (WIDTH - left - 3.0 * GAP - bar.width() - MARGIN).max(60.0);
            let wide = (room / columns.max(1) as f64).min(WIDEST_CELL).min(ASPECT * tall);
            cell = (whole_dots(wide), whole_dots(tall.min(wide * ASPECT / 2.0)));
        }
        let width = left + cell.0 * columns as f64 + 3.0 * GAP + bar.width() + MARGIN;
        let shift = ((WIDTH - width) / 2.0).max(0.0);
        let x_label = wrapped(&map.x, LABEL_SIZE, (cell.0 * columns as f64).max(WIDTH * 0.4));

        let under_names = top + cell.1 * rows as f64 + GAP + TICK_SIZE;
        let under_label = (under_names + 8.0 + line * x_label.len() as f64).max(top + LEAST_BAR + TICK_SIZE);
        let (key_places, foot) = key_places(&shading.keys, left + shift, under_label + 8.0);
        Page {
            shades: &shading.shades,
            columns,
            cell,
            left: left + shift,
            top,
            height: foot + MARGIN / 2.0,
            row_names,
            column_names,
            x_label,
            y_label,
            bar,
            key_places,
        }
    }

    fn right(&self) -> f64 {
        self.left + self.cell.0 * self.columns as f64
    }

    fn rows_height(&self) -> f64 {
        self.cell.1 * self.shades.len() as f64
    }

    /// What each cell shows, with its place without the gap: left, top, width and height.
    fn boxes(&self) -> impl Iterator<Item = (Shade, [f64; 4])> {
        let gap = self.gap();
        self.shades.iter().enumerate().flat_map(move |(row, shades)| {
            shades.iter().enumerate().map(move |(column, shade)| {
                let (x, y) = (self.left + self.cell.0 * column as f64, self.top + self.cell.1 * row as f64);
                (*shade, [x, y, self.cell.0 - gap, self.cell.1 - gap])
            })
        })
    }

    /// Between cells: one, two or three dots of the PNG.
    fn gap(&self) -> f64 {
        match self.cell.0.min(self.cell.1) {
            24.0.. => 1.0,
            12.0.. => 2.0 / 3.0,
            4.0.. => 1.0 / 3.0,
            _ => 0.0,
        }
    }

    /// The colours, one path for each.
    fn paint(&self, out: &mut String) {
        let mut paths: BTreeMap<usize, String> = BTreeMap::new();
        let (mut blank, mut hatches, mut crosses) = (String::new(), String::new(), String::new());
        for (shade, place) in self.boxes() {
            let path = match shade {
                Shade::Level(_, level) => paths.entry(level).or_default(),
                Shade::OffScale(_) => {
                    crosses.push_str(&cross(place));
                    &mut blank
                }
                Shade::Missing => {
                    hatches.push_str(&hatch(place));
                    &mut blank
                }
            };
            path.push_str(&rectangle(place));
        }
        for (level, path) in paths {
            let _ = writeln!(out, "<path d=\"{path}\" fill=\"{}\"/>", ramp(level));
        }
        if !blank.is_empty() {
            let lines = hatches + &crosses;
            let _ = writeln!(
                out,
                "<path d=\"{blank}\" fill=\"#ececec\"/>\n\
                 <path d=\"{lines}\" fill=\"none\" stroke=\"#8a8a8a\" stroke-width=\"0.8\"/>"
            );
        }
    }

    /// Numbers where all of them fit, and dots on marked cells.
    fn signs(&self, out: &mut String, map: &HeatMap) {
        let (wide, tall) = (self.cell.0 - 6.0, self.cell.1 - 6.0);
        let fits = |words: &str| font::width(words, VALUE_SIZE) <= wide && VALUE_SIZE * 1.6 <= tall;
        let written = self.boxes().all(|(shade, _)| match shade {
            Shade::Level(value, _) | Shade::OffScale(value) => fits(&brief(value)),
            Shade::Missing => true,
        });
        for (shade, [x, y, width, height]) in self.boxes() {
            let (value, ink) = match shade {
                Shade::Level(value, level) => (value, ink_on(level)),
                Shade::OffScale(value) => (value, "#000000"),
                Shade::Missing => continue,
            };
            let middle = (x + width / 2.0, y + height / 2.0);
            if written && matches!(shade, Shade::Level(..)) {
                let at = (middle.0, middle.1 + VALUE_SIZE * 0.36);
                text(out, at, VALUE_SIZE, "middle", &xml(&brief(value)), ink);
            }
            if map.marks(value) {
                let radius = (0.16 * width.min(height)).clamp(0.6, 2.6);
                // Beside the number where there is one.
                let at = if written { (x + width - 6.0, y + 6.0) } else { middle };
                let _ = writeln!(
                    out,
                    "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"{ink}\"/>",
                    Units(at.0),
                    Units(at.1),
                    Units(radius)
                );
            }
        }
    }

    fn names(&self, out: &mut String) {
        let half = (self.cell.0 / 2.0, self.cell.1 / 2.0);
        let every = step(&vec![TICK_SIZE * 1.15; self.row_names.len()], self.cell.1);
        for (row, name) in self.row_names.iter().enumerate().step_by(every) {
            let y = self.top + self.cell.1 * row as f64 + half.1 + TICK_SIZE * 0.36;
            text(out, (self.left - GAP, y), TICK_SIZE, "end", &xml(name), "");
        }
        let widths: Vec<f64> =
            self.column_names.iter().map(|name| font::width(name, TICK_SIZE) + 5.0).collect();
        let bottom = self.top + self.rows_height();
        for (column, name) in self.column_names.iter().enumerate().step_by(step(&widths, self.cell.0)) {
            let at = (self.left + self.cell.0 * column as f64 + half.0, bottom + GAP + TICK_SIZE * 0.8);
            text(out, at, TICK_SIZE, "middle", &xml(name), "");
        }
        let first = bottom + GAP + TICK_SIZE + 8.0 + LABEL_SIZE * 0.8;
        for (index, words) in self.x_label.iter().enumerate() {
            let at = ((self.left + self.right()) / 2.0, first + index as f64 * LABEL_SIZE * LEADING);
            text(out, at, LABEL_SIZE, "middle", &letters(words, LABEL_SIZE), "");
        }
        let names = self.row_names.iter().map(|name| font::width(name, TICK_SIZE)).fold(0.0, f64::max);
        let lines = LABEL_SIZE * LEADING * self.y_label.len() as f64;
        let from = self.left - 2.0 * GAP - names - lines;
        turned(out, (from, self.top + self.rows_height() / 2.0), &self.y_label);
    }
}

/// Each how many names there is room to write one: 1, 2, 5, 10, …
pub(super) fn step(lengths: &[f64], apart: f64) -> usize {
    let fits = |every: usize| {
        let shown: Vec<f64> = lengths.iter().copied().step_by(every).collect();
        shown.windows(2).all(|pair| (pair[0] + pair[1]) / 2.0 <= apart * every as f64)
    };
    let steps = (0..).flat_map(|power| [1, 2, 5].map(|digit| digit * 10_usize.saturating_pow(power)));
    steps.into_iter().find(|every| *every >= lengths.len() || fits(*every)).unwrap_or(1)
}

/// A name that is no wider than its room, with an ellipsis where it was cut.
pub(super) fn shortened(name: &str, room: f64) -> String {
    if font::width(name, TICK_SIZE) <= room {
        return name.to_string();
    }
    let room = room - font::width("…", TICK_SIZE);
    let mut width = 0.0;
    let fits = |letter: &char| {
        width += font::width(&letter.to_string(), TICK_SIZE);
        width <= room
    };
    name.chars().take_while(fits).chain(['…']).collect()
}

/// A number with two significant digits.
fn brief(value: f64) -> String {
    number(format!("{value:.1e}").parse().unwrap_or(value), None).unicode()
}

/// A length in whole dots of the PNG, which draws three for each unit: cells of one size look it.
fn whole_dots(length: f64) -> f64 {
    if length < 1.0 { length } else { (length * 3.0).floor() / 3.0 }
}

fn key_places(keys: &[Key], left: f64, top: f64) -> (Vec<(f64, f64)>, f64) {
    let line = SWATCH + 6.0;
    let (mut x, mut y) = (left, top);
    let mut places = Vec::new();
    for key in keys {
        let width = SWATCH + 6.0 + font::width(&key.words, LEGEND_SIZE);
        if x > left && x + width > WIDTH - MARGIN {
            (x, y) = (left, y + line);
        }
        places.push((x, y));
        x += width + 22.0;
    }
    (places, if keys.is_empty() { top - 4.0 } else { y + line })
}

/// A cell that shows what a key stands for, in a box of 14 by 14; `paper` and `ink` are of cells without a colour.
pub(crate) fn key_swatch(key: &Key, paper: &str, ink: &str) -> String {
    let place = [0.0, 0.0, SWATCH, SWATCH];
    let blank = |lines: String| {
        format!(
            "<path d=\"{}\" style=\"fill:{paper}\"/><path d=\"{lines}\" style=\"fill:none;stroke:{ink};stroke-width:0.9\"/>",
            rectangle(place)
        )
    };
    match key.sign {
        Sign::Dot(level) => format!(
            "<path d=\"{}\" fill=\"{}\"/><circle cx=\"7\" cy=\"7\" r=\"2.4\" fill=\"{}\"/>",
            rectangle(place),
            ramp(level),
            ink_on(level)
        ),
        Sign::Hatched => blank(hatch(place)),
        Sign::Crossed => blank(cross(place)),
    }
}

fn rectangle([x, y, width, height]: [f64; 4]) -> String {
    format!("M{} {}h{}v{}h{}Z", Units(x), Units(y), Units(width), Units(height), Units(-width))
}

/// Three lines that rise to the right.
fn hatch([x, y, width, height]: [f64; 4]) -> String {
    let line = |from: (f64, f64), to: (f64, f64)| {
        let at = |(across, down): (f64, f64)| {
            format!("{} {}", Units(x + across * width), Units(y + down * height))
        };
        format!("M{}L{}", at(from), at(to))
    };
    line((0.0, 0.5), (0.5, 0.0)) + &line((0.0, 1.0), (1.0, 0.0)) + &line((0.5, 1.0), (1.0, 0.5))
}

fn cross([x, y, width, height]: [f64; 4]) -> String {
    let size = 0.25 * width.min(height);
    let (x, y) = (x + width / 2.0, y + height / 2.0);
    let end = |dx: f64, dy: f64| format!("{} {}", Units(x + dx * size), Units(y + dy * size));
    format!("M{}L{}M{}L{}", end(-1.0, -1.0), end(1.0, 1.0), end(-1.0, 1.0), end(1.0, -1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_thinned_to_nice_steps() {
        assert_eq!(step(&[10.0; 9], 30.0), 1);
        assert_eq!(step(&[20.0; 64], 7.5), 5);
        assert_eq!(step(&[1000.0; 64], 7.5), 100);
        assert_eq!(step(&[], 7.5), 1);
    }

    #[test]
    fn long_names_are_cut() {
        assert_eq!(shortened("head 3", 90.0), "head 3");
        let cut = shortened("a name that nobody would give to a head", 90.0);
        assert!(cut.ends_with('…') && font::width(&cut, TICK_SIZE) <= 90.0);
    }
}
