//! The scale of a heat map's colours: a bar with ticks, beside the map and on pages.

use std::fmt::Write;

use crate::font::FAMILIES;
use crate::frame::{Range, can_be_placed};
use crate::heat_map::HeatMap;
use crate::palette::{LEVELS, ramp};
use crate::subscript::{Piece, wrapped};
use crate::ticks::{Tick, ticks};

use super::lettering::{LABEL_SIZE, LEADING, TICK_LENGTH, TICK_SIZE, Units, label_width, tick_label, turned};

const BAR: f64 = 13.0;
/// Height for each tick with a label.
const SPACING: f64 = 30.0;

/// A bar of some height, its ticks and its label at the right.
pub(super) struct ColourBar {
    range: Range,
    threshold: Option<f64>,
    height: f64,
    ticks: (Vec<Tick>, Vec<f64>),
    label: Vec<Vec<Piece>>,
}

impl ColourBar {
    pub(super) fn new(map: &HeatMap, range: Range, height: f64) -> Self {
        let threshold = map.threshold.filter(|threshold| {
            can_be_placed(map.scale, *threshold) && (range.low..=range.high).contains(threshold)
        });
        let ticks = ticks(range.scale, range.low, range.high, (height / SPACING) as usize);
        ColourBar { range, threshold, height, ticks, label: wrapped(&map.colour_label, LABEL_SIZE, height) }
    }

    pub(super) fn width(&self) -> f64 {
        self.numbers() + 6.0 + LABEL_SIZE * LEADING * self.label.len() as f64
    }

    /// Where its numbers end.
    fn numbers(&self) -> f64 {
        let widest = self.ticks.0.iter().map(|tick| label_width(&tick.label)).fold(0.0, f64::max);
        BAR + TICK_LENGTH + 4.0 + widest
    }

    /// Draws the bar with its upper left corner at a point. Lines have the colour `ink`, letters that of what is around.
    pub(super) fn draw(&self, out: &mut String, (x, y): (f64, f64), ink: &str) {
        let bottom = y + self.height;
        // Each colour reaches down to the foot and is covered by the next: no seams.
        let step = LEVELS / 64;
        for level in (0..LEVELS).step_by(step).rev() {
            let from = bottom - self.height * (level + step) as f64 / LEVELS as f64;
            let _ = writeln!(
                out,
                "<path d=\"M{} {}h{}V{}h{}Z\" fill=\"{}\"/>",
                Units(x),
                Units(from),
                Units(BAR),
                Units(bottom),
                Units(-BAR),
                ramp(level + step / 2)
            );
        }
        let at = |value: f64| bottom - self.range.place(value).clamp(0.0, 1.0) * self.height;
        let mut marks = String::new();
        for tick in &self.ticks.0 {
            let _ = write!(marks, "M{} {}h{}", Units(x + BAR), Units(at(tick.value)), Units(TICK_LENGTH));
        }
        for value in &self.ticks.1 {
            let _ = write!(marks, "M{} {}h{}", Units(x + BAR), Units(at(*value)), Units(TICK_LENGTH * 0.55));
        }
        let _ = writeln!(
            out,
            "<path d=\"M{} {}h{}v{}h{}Z{marks}\" fill=\"none\" stroke=\"{ink}\" stroke-width=\"0.9\"/>",
            Units(x),
            Units(y),
            Units(BAR),
            Units(self.height),
            Units(-BAR),
        );
        if let Some(threshold) = self.threshold {
            // White under black: seen on every colour.
            for (paint, width) in [("#ffffff", 3.2), ("#000000", 1.4)] {
                let _ = writeln!(
                    out,
                    "<path d=\"M{} {}h{}\" fill=\"none\" stroke=\"{paint}\" stroke-width=\"{width}\"/>",
                    Units(x + 0.45),
                    Units(at(threshold)),
                    Units(BAR - 0.9)
                );
            }
        }
        for tick in &self.ticks.0 {
            let place = (x + BAR + TICK_LENGTH + 4.0, at(tick.value) + TICK_SIZE * 0.36);
            tick_label(out, place, "start", &tick.label);
        }
        turned(out, (x + self.numbers() + 6.0, y + self.height / 2.0), &self.label);
    }
}

/// The bar of a heat map as a drawing of its own, in the colours of the text around it.
pub(crate) fn standing_alone(map: &HeatMap, range: Range, height: f64) -> String {
    let bar = ColourBar::new(map, range, height);
    // Numbers at the ends reach beyond the bar.
    let air = TICK_SIZE / 2.0 + 1.0;
    let (w, h) = (Units(bar.width() + 2.0), Units(height + 2.0 * air));
    let mut out = format!(
        "<svg width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" font-family=\"{FAMILIES}\" fill=\"currentColor\" \
         aria-hidden=\"true\">\n"
    );
    bar.draw(&mut out, (1.0, air), "currentColor");
    out.push_str("</svg>");
    out
}
