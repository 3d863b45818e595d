//! The answer as a document: a table of limits, a figure of errors.

use super::answer::{Quantity, Row};
use crate::drawing::Drawing;
use crate::measured::figures;
use crate::tabulating::{Tabulation, distinct};
use esscher_report::{Axis, Block, Section, literal};
use esscher_zoo::large_prompt::Fate;

pub(super) fn section(rows: &[Row]) -> Section {
    let names = distinct(rows.iter().map(|row| row.mechanism.as_str()));
    let of = |name: &str, quantity: Quantity| -> Vec<&Row> {
        rows.iter().filter(|row| row.mechanism == name && row.quantity == quantity).collect()
    };
    let first = |name: &str, quantity| of(name, quantity).first().copied();
    let number = |name: &str, quantity| first(name, quantity).map(|row| row.number);
    let class = |name: &str| number(name, Quantity::Limit).map(|number| number.accuracy.name());
    let table = Tabulation::of(&names)
        .column("mechanism", |name| *name)
        .column("long prompts", |name| first(name, Quantity::Limit).map(|row| row.fate.clone()))
        .column("|limit|", |name| number(name, Quantity::Limit))
        .column("distance to softmax", |name| number(name, Quantity::Distance))
        .column("class", |name| class(name))
        .column("rate κ", |name| number(name, Quantity::Rate))
        .table(
            "limits",
            "Where outputs go: the limit of the output, of its mean where a stationary law remains, of the output per \
             token where it grows; its distance to softmax's limit; κ of the mean squared error, which falls like $L^{-\\kappa}$. Gates that \
             tokens would set are constant: decays 0.9, step sizes 0.1, fractions one half, arguments of gates zero.",
        );
    let mut drawing = Drawing::default();
    for (colour, name) in names.iter().enumerate() {
        let errors = of(name, Quantity::Error);
        let points = errors.iter().map(|row| row.number.point(row.length.unwrap_or(0) as f64));
        drawing.line(*name, colour, points.collect());
    }
    let figure = drawing.figure(
        "errors",
        "How far prompts of each length are from where they go",
        "Mean squared distance to the limit over simulated prompts; bands are one standard error. Plain averages approach \
         their limit like $1/L$. A mechanism that forgets sees a window of its last tokens only, so its output does not settle.",
        (Axis::logarithmic("prompt length L"), Axis::logarithmic("mean squared distance")),
    );
    let method = Block::Folded {
        id: String::new(),
        title: "Limits and rates, and what was held fixed".to_string(),
        blocks: vec![Block::Table(table)],
    };
    let blocks = vec![Block::Lead(lead(rows)), Block::Figure(figure), method];
    Section::new("large-prompts", "Where outputs go as prompts grow", blocks)
}

/// Who has a limit, who goes where softmax goes, and who does not settle.
fn lead(rows: &[Row]) -> String {
    let limits: Vec<&Row> = rows.iter().filter(|row| row.quantity == Quantity::Limit).collect();
    let with_fate = |fate: Fate| -> Vec<&str> {
        limits.iter().filter(|row| row.fate == fate.name()).map(|row| row.mechanism.as_str()).collect()
    };
    let settled = with_fate(Fate::Limit);
    let mut told = format!(
        "On long prompts the outputs of {} of {} mechanisms settle: {}.",
        settled.len(),
        limits.len(),
        if settled.is_empty() { "none".to_string() } else { listed(&settled) }
    );
    let distance = |name: &str| {
        let is_it = |row: &&Row| row.mechanism == name && row.quantity == Quantity::Distance;
        rows.iter().find(is_it).map(|row| row.number)
    };
    let others = settled.iter().filter(|name| **name != "softmax");
    let measured = others.filter_map(|name| Some((*name, distance(name)?)));
    let (same, apart): (Vec<_>, Vec<_>) =
        measured.partition(|(_, number)| number.value <= number.error().max(1e-9));
    if !same.is_empty() {
        let names: Vec<&str> = same.iter().map(|(name, _)| *name).collect();
        told += &format!(" To the limit of softmax itself, as far as the numbers tell: {}.", listed(&names));
    }
    if let Some((name, number)) =
        apart.iter().min_by(|(_, one), (_, other)| one.value.total_cmp(&other.value))
    {
        let others = if apart.len() == 1 { "Another limit is" } else { "Of the other limits the nearest is" };
        told +=
            &format!(" {others} that of {}, {} from that of softmax.", literal(*name), figures(number.value));
    }
    for (fate, says) in [
        (Fate::StationaryLaw, "Not settling but fluctuating with the last tokens"),
        (Fate::Grows, "Growing with the prompt"),
    ] {
        let names = with_fate(fate);
        if !names.is_empty() {
            told += &format!(" {says}: {}.", listed(&names));
        }
    }
    told
}

fn listed(names: &[&str]) -> String {
    names.iter().map(|name| literal(*name)).collect::<Vec<_>>().join(", ")
}
