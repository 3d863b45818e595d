//! Tiles as SVG: coloured fields with words, the legend with its counts below.

use std::fmt::Write;

use crate::escape::xml;
use crate::font;
use crate::heat_map::name;
use crate::subscript::{unicode, wrapped};
use crate::tiles::{Tiles, Tone};

use super::cells::{shortened, step};
use super::lettering::{
    LABEL_SIZE, LEADING, LEGEND_SIZE, MARGIN, TICK_SIZE, Units, WIDTH, letters, text, turned,
};
use super::opened;

const ROW_ROOM: f64 = 130.0;
const COLUMN_ROOM: f64 = 90.0;
const GAP: f64 = 6.0;
const WORD_SIZE: f64 = 8.5;
const WIDEST: f64 = 72.0;
const TALLEST: f64 = 22.0;
/// All rows together are at most this high.
const HEIGHT: f64 = 620.0;
const SWATCH: f64 = 14.0;

/// Paper and ink of a tone: dark, middle and light also without colour.
pub(super) fn colours(tone: Tone) -> (&'static str, &'static str) {
    match tone {
        Tone::Good => ("#0b6e69", "#ffffff"),
        Tone::Bad => ("#f0a35e", "#1a1a1a"),
        Tone::Open => ("#e6e6e3", "#1a1a1a"),
    }
}

/// Tiles as SVG.
pub(super) fn tiles(tiles: &Tiles) -> String {
    let (rows, columns) = tiles.size();
    let cut = |names: &[String], count: usize, room: f64| -> Vec<String> {
        (0..count).map(|position| shortened(&unicode(name(names, position)), room)).collect()
    };
    let row_names = cut(&tiles.rows, rows, ROW_ROOM);
    let column_names = cut(&tiles.columns, columns, COLUMN_ROOM);
    let widest = row_names.iter().map(|name| font::width(name, TICK_SIZE)).fold(0.0, f64::max);
    let line = LABEL_SIZE * LEADING;
    let tall = (HEIGHT / rows.max(1) as f64).min(TALLEST);
    let y_label = wrapped(&tiles.y, LABEL_SIZE, (tall * rows as f64).max(80.0));
    let left = MARGIN + line * y_label.len() as f64 + GAP + widest + GAP;
    let wide = ((WIDTH - left - MARGIN).max(60.0) / columns.max(1) as f64).min(WIDEST);
    let (wide, tall) = (wide, tall.min(wide * 1.2));
    let shift = ((WIDTH - MARGIN - left - wide * columns as f64) / 2.0).max(0.0);
    let left = left + shift;
    let x_label = wrapped(&tiles.x, LABEL_SIZE, WIDTH * 0.6);
    let names_line = if column_names.iter().any(|name| !name.is_empty()) { TICK_SIZE + GAP } else { 0.0 };
    let top = MARGIN + line * x_label.len() as f64 + names_line;
    let bottom = top + tall * rows as f64;

    let keys = tiles.counted();
    let (mut places, mut at) = (Vec::new(), (left, bottom + 12.0));
    for (kind, count) in &keys {
        let width =
            SWATCH + 6.0 + font::width(&format!("{}: {count}", unicode(&kind.name)), LEGEND_SIZE) + 22.0;
        if at.0 > left && at.0 + width > WIDTH - MARGIN {
            at = (left, at.1 + SWATCH + 6.0);
        }
        places.push(at);
        at.0 += width;
    }
    let height = if keys.is_empty() { bottom } else { at.1 + SWATCH } + MARGIN;

    let mut out = opened(&tiles.title, &tiles.y, height);
    for (index, words) in x_label.iter().enumerate() {
        let at = (left + wide * columns as f64 / 2.0, MARGIN + (index as f64 + 0.7) * line);
        text(&mut out, at, LABEL_SIZE, "middle", &letters(words, LABEL_SIZE), "");
    }
    turned(
        &mut out,
        (left - 2.0 * GAP - widest - line * y_label.len() as f64, (top + bottom) / 2.0),
        &y_label,
    );
    let widths: Vec<f64> = column_names.iter().map(|name| font::width(name, TICK_SIZE) + 5.0).collect();
    for (column, name) in column_names.iter().enumerate().step_by(step(&widths, wide)) {
        let at = (left + wide * (column as f64 + 0.5), top - GAP);
        text(&mut out, at, TICK_SIZE, "middle", &xml(name), "");
    }
    for (row, name) in row_names.iter().enumerate().step_by(step(&vec![TICK_SIZE * 1.15; rows], tall)) {
        let y = top + tall * (row as f64 + 0.5) + TICK_SIZE * 0.36;
        text(&mut out, (left - GAP, y), TICK_SIZE, "end", &xml(name), "");
    }
    let gap = if wide.min(tall) > 8.0 { 1.5 } else { 0.5 };
    for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
        let Some(tile) = tiles.tile(row, column) else { continue };
        let (paper, ink) = colours(tiles.kind(tile).map_or(Tone::Open, |kind| kind.tone));
        let (x, y) = (left + wide * column as f64, top + tall * row as f64);
        let _ = writeln!(
            out,
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{paper}\"/>",
            Units(x),
            Units(y),
            Units(wide - gap),
            Units(tall - gap)
        );
        let words = if tiles.has_words() { unicode(&tile.words) } else { String::new() };
        if font::width(&words, WORD_SIZE) <= wide - gap - 3.0 && WORD_SIZE * 1.2 <= tall && !words.is_empty()
        {
            let at = (x + (wide - gap) / 2.0, y + (tall - gap) / 2.0 + WORD_SIZE * 0.36);
            text(&mut out, at, WORD_SIZE, "middle", &xml(&words), ink);
        }
    }
    for ((kind, count), (x, y)) in keys.iter().zip(places) {
        let (paper, _) = colours(kind.tone);
        let _ = writeln!(
            out,
            "<rect x=\"{}\" y=\"{}\" width=\"{SWATCH}\" height=\"{SWATCH}\" fill=\"{paper}\"/>",
            Units(x),
            Units(y)
        );
        let at = (x + SWATCH + 6.0, y + SWATCH / 2.0 + LEGEND_SIZE * 0.36);
        text(&mut out, at, LEGEND_SIZE, "start", &xml(&format!("{}: {count}", unicode(&kind.name))), "");
    }
    if rows * columns == 0 {
        text(&mut out, (WIDTH / 2.0, height / 2.0), LABEL_SIZE, "middle", "no data", "#777777");
    }
    out.push_str("</svg>\n");
    out
}
