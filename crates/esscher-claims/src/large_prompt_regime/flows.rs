//! The rows of training flow by flow, for the claims about training.

use crate::judging::{Judging, undecided};
use esscher_core::concentration::{Dependence, LocalSlope, RatePoint, local_slopes};
use esscher_core::prompt::PromptLength;
use esscher_lab::Failure;
use esscher_questions::measured::{Measured, length_name};
use esscher_questions::training::answer::dimensions;
use esscher_questions::training::answer::{Quantity, Row};
use esscher_questions::training::describe::{curves, lines, time_axis};
use esscher_report::{Axis, Block, Figure, Panel, Panels};
use std::collections::BTreeMap;

/// The rows of one flow, or of the draws of one.
pub(super) struct Flow<'a> {
    pub(super) dimension: i64,
    /// None for the infinite prompt.
    pub(super) length: Option<i64>,
    rows: Vec<&'a Row>,
}

/// Flows by dimension and length, the infinite prompt first.
pub(super) fn flows(rows: &[Row]) -> Vec<Flow<'_>> {
    let mut found: BTreeMap<(i64, Option<i64>), Vec<&Row>> = BTreeMap::new();
    for row in rows {
        found.entry((row.dimension, row.length)).or_default().push(row);
    }
    found.into_iter().map(|((dimension, length), rows)| Flow { dimension, length, rows }).collect()
}

impl<'a> Flow<'a> {
    pub(super) fn name(&self) -> String {
        format!("d = {}, {}", self.dimension, length_name(self.length))
    }

    /// The tokens of a finite prompt.
    pub(super) fn tokens(&self) -> i64 {
        self.length.unwrap_or_default()
    }

    /// The rows about a quantity over time.
    pub(super) fn of(&self, quantity: Quantity) -> impl DoubleEndedIterator<Item = &'a Row> + '_ {
        self.rows.iter().copied().filter(move |row| row.quantity == quantity)
    }

    /// What a quantity is at the end.
    pub(super) fn last(&self, quantity: Quantity) -> Result<&'a Row, Failure> {
        self.of(quantity)
            .next_back()
            .ok_or_else(|| undecided(format!("{}: there is no {quantity}", self.name())))
    }
}

/// A quantity over time in one dimension, a line for each flow.
pub(super) fn over_time(
    rows: &[Row],
    dimension: i64,
    quantity: Quantity,
    [name, title, label, caption]: [&str; 4],
) -> Block {
    Block::Figure(Figure {
        id: format!("{name}-{dimension}"),
        title: format!("{title}, $d = {dimension}$"),
        caption: caption.to_string(),
        x: time_axis(),
        y: Axis::logarithmic(label),
        series: lines(&curves(rows, quantity, |row| row.dimension == dimension)),
    })
}

/// A quantity over time, a panel for each dimension and a line for each flow.
pub(super) fn panels_over_time(
    rows: &[Row],
    quantity: Quantity,
    [id, title, label, caption]: [&str; 4],
) -> Block {
    let panel = |dimension| Panel {
        title: format!("d = {dimension}"),
        series: lines(&curves(rows, quantity, |row| row.dimension == dimension)),
    };
    Block::Panels(Panels {
        id: id.to_string(),
        title: title.to_string(),
        caption: caption.to_string(),
        x: time_axis(),
        y: Axis::logarithmic(label),
        panels: dimensions(rows).into_iter().map(panel).filter(|panel| !panel.series.is_empty()).collect(),
    })
}

/// A fall slower than this is called levelling off.
const LEVELS_OFF: f64 = 0.1;

/// Numbers by length that must fall by more than their errors, and not level off at the longest; their local rates.
pub(super) fn must_fall(
    name: &str,
    numbers: &[(i64, Measured)],
    judging: &mut Judging,
) -> Result<Vec<LocalSlope>, Failure> {
    if numbers.len() < 2 || numbers.iter().any(|(_, number)| number.value <= 0.0) {
        return Err(undecided(format!("{name} must be known and positive at two lengths at least")));
    }
    for pair in numbers.windows(2) {
        let [(short, first), (long, then)] = [pair[0], pair[1]];
        judging.require(first.value - then.value > first.error() + then.error(), || {
            format!("{name} does not fall from {} to {}", length_name(Some(short)), length_name(Some(long)))
        });
    }
    let point = |(length, number): &(i64, Measured)| {
        let length = PromptLength::new(*length as u64)?;
        Ok(RatePoint { length, value: number.value, absolute_error: number.error() })
    };
    let points = numbers.iter().map(point).collect::<Result<Vec<_>, Failure>>()?;
    let rates = local_slopes(&points, Dependence::Independent)?;
    let last = rates[rates.len() - 1].slope;
    judging.require(last >= LEVELS_OFF, || format!("{name} levels off: its local rate is only {last:.3}"));
    Ok(rates)
}
