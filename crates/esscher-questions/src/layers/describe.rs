//! The answer as sections: how far each attention came, then eigenvalues and mean on the way of each.

use super::answer::{Quantity, Row};
use super::{Ask, Attention};
use crate::document::capitalised;
use crate::drawing::Drawing;
use crate::measured::figures;
use crate::tabulating::{Tabulation, rounded};
use esscher_core::Ending;
use esscher_lab::Named;
use esscher_report::{Axis, Block, Mark, Point, Section};

/// Curves that a figure shows at most; the table has them all.
const MOST_CURVES: i64 = 6;
/// Where a comparison of attentions ends, as a multiple of the largest eigenvalue at the start: beyond, a blow-up would press
/// all other curves flat.
const HIGHEST: f64 = 100.0;

/// A comparison if there are several attentions, then a section for each.
pub(super) fn sections(ask: &Ask, rows: &[Row]) -> Vec<Section> {
    let comparison = (ask.attentions.len() > 1).then(|| comparison(ask, rows));
    let each = ask.attentions.iter().map(|attention| section(ask, *attention, rows));
    comparison.into_iter().chain(each).collect()
}

/// The largest eigenvalues of all attentions over one another.
fn comparison(ask: &Ask, rows: &[Row]) -> Section {
    let mut drawing = Drawing::default();
    let mut is_cut = false;
    let mut told = Vec::new();
    for (colour, attention) in ask.attentions.iter().enumerate() {
        let way = Way::of(*attention, rows);
        told.push(format!("{} {}", in_words(*attention), way.briefly(ask)));
        let points = way.curve(Quantity::Eigenvalue, 1);
        let most = HIGHEST * points.first().map_or(0.0, |first| first.y);
        is_cut |= points.iter().any(|point| point.y > most);
        drawing.line(
            in_words(*attention),
            colour,
            points.into_iter().filter(|point| point.y <= most).collect(),
        );
    }
    let mut caption =
        "The largest eigenvalue of the covariance: how far tokens spread along their widest direction."
            .to_string();
    if is_cut {
        caption += &format!(
            " What grows beyond {HIGHEST} times the start is not drawn here; its own section has all of it."
        );
    }
    let title = "The same tokens through layers of different attention";
    let axes = (Axis::linear(depth(ask)), Axis::logarithmic("largest eigenvalue"));
    let lead = format!("{}.", capitalised(&told.join("; ")));
    let figure = drawing.figure("largest-eigenvalues", title, caption, axes);
    Section::new("layers", "All attentions side by side", vec![Block::Lead(lead), Block::Figure(figure)])
}

/// The rows of one attention.
struct Way<'a> {
    rows: Vec<&'a Row>,
    /// The last time at which the law is known.
    last: f64,
}

impl<'a> Way<'a> {
    fn of(attention: Attention, rows: &'a [Row]) -> Self {
        let rows: Vec<&Row> = rows.iter().filter(|row| row.attention == attention).collect();
        let of_law = |row: &&&Row| matches!(row.quantity, Quantity::Eigenvalue | Quantity::Mean);
        let last = rows.iter().filter(of_law).map(|row| row.time).fold(f64::NEG_INFINITY, f64::max);
        Way { rows, last }
    }

    fn single(&self, quantity: Quantity) -> Option<&'a Row> {
        self.rows.iter().copied().find(|row| row.quantity == quantity)
    }

    fn curve(&self, quantity: Quantity, index: i64) -> Vec<Point> {
        let mine = self.rows.iter().filter(|row| row.quantity == quantity && row.index == Some(index));
        mine.map(|row| row.number.point(row.time)).collect()
    }

    fn ending(&self) -> Option<Ending> {
        self.rows.first().map(|row| row.ending)
    }

    /// When something happened; the last time if it did not.
    fn event(&self, quantity: Quantity) -> String {
        figures(self.single(quantity).map_or(self.last, |row| row.time))
    }

    /// How it ended, as the predicate of a sentence about the attention.
    fn briefly(&self, ask: &Ask) -> String {
        let last = figures(self.last);
        match self.ending() {
            None => "has no rows".to_string(),
            Some(Ending::Completed) => match (ask.layers, ask.step_size) {
                (Some(layers), Some(size)) => {
                    format!("passes {layers} layers of step size {}", figures(size))
                }
                _ => format!("reaches time {last}"),
            },
            Some(Ending::BlownUp) => format!("blows up at time {}", self.event(Quantity::BlowUpTime)),
            Some(Ending::Collapsed) => {
                format!("loses a direction of its covariance at time {}", self.event(Quantity::CollapseTime))
            }
            Some(Ending::Diverged) => format!("makes tokens too large to go on after time {last}"),
            Some(Ending::Stuck) => format!("is stuck after time {last}"),
            Some(other) => format!("ends after time {last}: {}", other.name()),
        }
    }

    /// What to do about an ending that came too early; nothing if it did not.
    fn advice(&self, attention: Attention) -> &'static str {
        match self.ending() {
            None | Some(Ending::Completed) => "",
            Some(Ending::BlownUp) => match attention {
                Attention::Softmax => {
                    " To go further, make the scores smaller: half the score matrix doubles the time."
                }
                _ => " To go further, make the scores smaller.",
            },
            Some(Ending::Collapsed) => {
                " To go on from there, set `at_collapse = \"continue\"`, or lower `collapse_threshold`."
            }
            Some(Ending::Diverged) => {
                " No blow-up in finite time was seen before. End earlier, or scale the value matrix or the tokens down."
            }
            Some(Ending::Stuck) => {
                " No step is short enough. End earlier (a blow-up may be near), or rescale tokens whose entries differ \
                 by many orders of magnitude."
            }
            Some(_) => " End earlier.",
        }
    }
}

/// The attention as the subject of a sentence.
fn in_words(attention: Attention) -> &'static str {
    match attention {
        Attention::Softmax => "softmax attention",
        Attention::Linear => "linear attention",
        Attention::L2 => "L2 attention",
        Attention::Sinkhorn => "Sinkhorn attention",
    }
}

fn depth(ask: &Ask) -> &'static str {
    if ask.layers.is_some() { "depth: layers times step size" } else { "depth t" }
}

fn section(ask: &Ask, attention: Attention, rows: &[Row]) -> Section {
    let name = attention.name();
    let way = Way::of(attention, rows);
    let told = format!("{} {}", capitalised(in_words(attention)), way.briefly(ask));
    let mut lead = format!("{told}.{}", way.advice(attention));
    let widest = way.curve(Quantity::Eigenvalue, 1);
    if let (Some(first), Some(last)) = (widest.first(), widest.last())
        && last.x > first.x
    {
        lead += &format!(
            " The largest eigenvalue of the covariance goes from {} at the start to {} at time {}.",
            figures(first.y),
            figures(last.y),
            figures(last.x)
        );
    }
    let blow_ups = (way.single(Quantity::BlowUpTime), way.single(Quantity::ClosedFormBlowUpTime));
    if let (Some(found), Some(exact)) = blow_ups {
        lead += &format!(
            " The closed form $1/\\lambda_{{\\max}}(S^{{1/2}}(U + U^\\top)S^{{1/2}})$ says {}, and the integration \
             differs from it by {}.",
            figures(exact.number.value),
            figures((found.number.value - exact.number.value).abs())
        );
    }
    let count = way.rows.iter().filter_map(|row| row.index).max().unwrap_or(0);
    let shown = count.min(MOST_CURVES);
    let (mut eigenvalues, mut means) = (Drawing::default(), Drawing::default());
    for index in 1..=shown {
        let colour = index as usize - 1;
        eigenvalues.line(format!("eigenvalue {index}"), colour, way.curve(Quantity::Eigenvalue, index));
        let exact = way.curve(Quantity::ClosedFormEigenvalue, index);
        let exact = exact.into_iter().map(|point| Point::new(point.x, point.y)).collect();
        eigenvalues.dashed("closed form", colour, exact);
        // An entry of the mean belongs to no eigenvalue: another colour while there are some.
        means.line(format!("entry {index}"), (colour + shown as usize) % 7, way.curve(Quantity::Mean, index));
    }
    let mut caption = "Exact up to the integration, whose error is the width of the line.".to_string();
    if eigenvalues.has(Mark::Dashed) {
        caption += " Dashed: the closed form.";
    }
    if count > shown {
        caption += &format!(" The first {shown} of {count} are drawn.");
    }
    let axes = |y: Axis| (Axis::linear(depth(ask)), y);
    let eigenvalues = eigenvalues.figure(
        format!("eigenvalues-{name}"),
        "Eigenvalues of the covariance on the way",
        caption,
        axes(Axis::logarithmic("eigenvalues of the covariance")),
    );
    let means = means.figure(
        format!("mean-{name}"),
        "Entries of the mean on the way",
        "",
        axes(Axis::linear("mean")),
    );
    let ends: Vec<&Row> =
        way.rows.iter().copied().filter(|row| row.time == way.last || row.index.is_none()).collect();
    let table = Tabulation::of(&ends)
        .column("quantity", |row| row.quantity.name())
        .column("index", |row| row.index)
        .column("time", |row| rounded(row.time))
        .column("value", |row| row.number)
        .column("class", |row| row.number.accuracy.name())
        .constant("class", "Class")
        .table(format!("ends-{name}"), "The law of the tokens where it ended.");
    let rest = Block::Folded {
        id: String::new(),
        title: "The mean, and the numbers at the end".to_string(),
        blocks: vec![Block::Figure(means), Block::Table(table)],
    };
    let blocks = vec![Block::Lead(lead), Block::Figure(eigenvalues), rest];
    Section::new(format!("layers-{name}"), told, blocks)
}
