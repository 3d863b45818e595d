//! The legend of a static drawing: beside the axes at the heights where lines end, or below them in columns.

use std::fmt::Write;

use crate::legend::{Entry, spread};
use crate::palette::LIGHT;
use crate::subscript::{self, Piece, wrapped};

use super::lettering::{LEADING, LEGEND_SIZE, MARGIN, Units, WIDTH, letters, text};
use super::marks::swatch;

const SWATCH: f64 = 26.0;
/// A legend takes at most this part of the width before it moves below the axes.
const SHARE: f64 = 0.3;
/// So many entries may stand beside.
const MOST_BESIDE: usize = 13;
/// Above each entry and the next.
const GAP: f64 = 4.0;
/// Between the axes and a legend beside them, for lines that lead to the entries.
const LEADERS: f64 = 16.0;

/// Names of series with what they look like.
pub(super) struct Legend<'a> {
    entries: Vec<Entry<'a>>,
    /// The name of each entry in lines.
    names: Vec<Vec<Vec<Piece>>>,
    column_width: f64,
    columns: usize,
    /// Zero if it stands below.
    pub(super) width_beside: f64,
    pub(super) height_beside: f64,
    /// Zero if it stands beside.
    pub(super) height_below: f64,
}

fn broken(entries: &[Entry], room: f64) -> Vec<Vec<Vec<Piece>>> {
    entries.iter().map(|entry| wrapped(entry.name, LEGEND_SIZE, room)).collect()
}

fn widest(names: &[Vec<Vec<Piece>>]) -> f64 {
    names.iter().flatten().map(|line| subscript::width(line, LEGEND_SIZE)).fold(0.0, f64::max)
}

fn height(lines: &[Vec<Piece>]) -> f64 {
    lines.len().max(1) as f64 * LEGEND_SIZE * LEADING + GAP
}

impl<'a> Legend<'a> {
    /// Beside axes of this height if it fits there, below otherwise.
    pub(super) fn new(mut entries: Vec<Entry<'a>>, room: f64) -> Self {
        let beside = broken(&entries, WIDTH * SHARE - SWATCH - 24.0);
        let tall: f64 = beside.iter().map(|lines| height(lines)).sum();
        if entries.len() > MOST_BESIDE || beside.iter().any(|lines| lines.len() > 2) || tall > room {
            return Legend::below(entries);
        }
        // From the top, those that end nowhere last.
        entries.sort_by(|one, other| other.end.unwrap_or(-1.0).total_cmp(&one.end.unwrap_or(-1.0)));
        let names = broken(&entries, WIDTH * SHARE - SWATCH - 24.0);
        let width_beside = if entries.is_empty() { 0.0 } else { LEADERS + SWATCH + 8.0 + widest(&names) };
        Legend {
            entries,
            names,
            column_width: 0.0,
            columns: 1,
            width_beside,
            height_beside: tall,
            height_below: 0.0,
        }
    }

    /// Below the axes in any case.
    pub(super) fn below(entries: Vec<Entry<'a>>) -> Self {
        let room = WIDTH - 2.0 * MARGIN;
        let names = broken(&entries, room - SWATCH - 26.0);
        let column_width = SWATCH + 8.0 + widest(&names) + 18.0;
        let columns = ((room / column_width).floor() as usize).clamp(1, entries.len().max(1));
        let rows = names.chunks(columns).map(|row| row.iter().map(|lines| height(lines)).fold(0.0, f64::max));
        let height_below = if entries.is_empty() { 0.0 } else { 12.0 + rows.sum::<f64>() };
        Legend { entries, names, column_width, columns, width_beside: 0.0, height_beside: 0.0, height_below }
    }

    /// Beside axes of which the right end, the top and the bottom are known.
    pub(super) fn draw_beside(&self, out: &mut String, right: f64, top: f64, bottom: f64) {
        let boxes: Vec<(f64, f64)> = self
            .entries
            .iter()
            .zip(&self.names)
            .map(|(entry, lines)| (bottom - entry.end.unwrap_or(-1.0) * (bottom - top), height(lines)))
            .collect();
        for (((entry, lines), (wanted, height)), middle) in
            self.entries.iter().zip(&self.names).zip(&boxes).zip(spread(&boxes, top - 4.0, bottom + 4.0))
        {
            if entry.ends_once && (middle - wanted).abs() > 1.0 {
                let _ = writeln!(
                    out,
                    "<path d=\"M{} {}L{} {}\" fill=\"none\" stroke=\"{}\" stroke-width=\"0.7\" stroke-opacity=\"0.6\"/>",
                    Units(right + 2.0),
                    Units(*wanted),
                    Units(right + LEADERS - 2.0),
                    Units(middle),
                    LIGHT[entry.colour]
                );
            }
            draw(out, entry, lines, (right + LEADERS, middle - height / 2.0 + GAP / 2.0));
        }
    }

    /// Below, from its upper left corner, as far to the left as it needs to be.
    pub(super) fn draw_below(&self, out: &mut String, (left, top): (f64, f64)) {
        let left = left.min(WIDTH - MARGIN - self.column_width * self.columns as f64).max(MARGIN);
        let mut y = top;
        for (entries, names) in self.entries.chunks(self.columns).zip(self.names.chunks(self.columns)) {
            for (column, (entry, lines)) in entries.iter().zip(names).enumerate() {
                draw(out, entry, lines, (left + column as f64 * self.column_width, y));
            }
            y += names.iter().map(|lines| height(lines)).fold(0.0, f64::max);
        }
    }
}

fn draw(out: &mut String, entry: &Entry, lines: &[Vec<Piece>], (x, y): (f64, f64)) {
    let line = LEGEND_SIZE * LEADING;
    let _ = writeln!(
        out,
        "<g transform=\"translate({} {})\">{}</g>",
        Units(x),
        Units(y + line / 2.0 - 7.0),
        swatch(entry, LIGHT[entry.colour])
    );
    for (offset, words) in lines.iter().enumerate() {
        let baseline = y + line * offset as f64 + line * 0.5 + LEGEND_SIZE * 0.36;
        text(out, (x + SWATCH + 8.0, baseline), LEGEND_SIZE, "start", &letters(words, LEGEND_SIZE), "");
    }
}
