//! Compares documents: figures of the same name drawn over each other, tables of the same columns and heat maps under
//! each other.

use crate::{Block, Cell, DataTable, Document, Figure, HeatMap, Section, Verdict, literal};
use std::collections::BTreeMap;

/// One document out of several, each with the name that tells it apart, in plain text.
///
/// ```
/// use esscher_report::{Block, Document, Figure, Mark, Point, Section, Series, compare};
/// let run = |height| {
///     let series = Series { name: "error".into(), mark: Mark::Line, colour: 0, points: vec![Point::new(1.0, height)] };
///     let figure = Figure { id: "errors".into(), series: vec![series], ..Figure::default() };
///     let section = Section { id: "a".into(), blocks: vec![Block::Figure(figure)], ..Section::default() };
///     Document { sections: vec![section], ..Document::default() }
/// };
/// let both = compare(&[("first".into(), run(1.0)), ("second".into(), run(2.0))]);
/// let Block::Figure(figure) = &both.sections[0].blocks[0] else { panic!() };
/// let names: Vec<&str> = figure.series.iter().map(|series| series.name.as_str()).collect();
/// assert_eq!(names, ["first: error", "second: error"]);
/// ```
pub fn compare(documents: &[(String, Document)]) -> Document {
    let names: Vec<String> = documents.iter().map(|(name, _)| literal(name)).collect();
    let mut sections: Vec<Section> = Vec::new();
    for (run, (name, (_, document))) in names.iter().zip(documents).enumerate() {
        for section in &document.sections {
            let joined = match sections.iter().position(|known| known.id == section.id) {
                Some(index) => &mut sections[index],
                None => {
                    let (id, title) = (section.id.clone(), section.title.clone());
                    sections.push(Section { id, title, verdict: None, blocks: Vec::new() });
                    let last = sections.len() - 1;
                    &mut sections[last]
                }
            };
            if let Some(verdict) = section.verdict {
                joined.blocks.push(Block::Facts(vec![(name.clone(), word(verdict).to_string())]));
            }
            for block in &section.blocks {
                join(joined, run, name, block);
            }
        }
    }
    let provenance = documents
        .iter()
        .flat_map(|(name, document)| {
            document.provenance.iter().map(move |(key, value)| (format!("{name}: {key}"), value.clone()))
        })
        .collect();
    Document {
        title: "Comparison of runs".to_string(),
        summary: format!("{} side by side: {}.", documents.len(), names.join(", ")),
        sections,
        provenance,
    }
}

/// Adds a block of one run to a section: to a block of the same name if there is one.
fn join(section: &mut Section, run: usize, name: &str, block: &Block) {
    match block {
        Block::Figure(figure) => {
            let same = section.blocks.iter_mut().find_map(|known| match known {
                Block::Figure(known) if known.id == figure.id && axes(known) == axes(figure) => Some(known),
                _ => None,
            });
            match same {
                Some(known) => overlay(known, name, figure),
                None => {
                    let taken = section
                        .blocks
                        .iter()
                        .any(|known| matches!(known, Block::Figure(known) if known.id == figure.id));
                    let id = if taken { format!("{}-{}", figure.id, run + 1) } else { figure.id.clone() };
                    let mut first = Figure { series: Vec::new(), id, ..figure.clone() };
                    overlay(&mut first, name, figure);
                    section.blocks.push(Block::Figure(first));
                }
            }
        }
        Block::Table(table) => {
            let mut columns = vec!["run".to_string()];
            columns.extend(table.columns.iter().cloned());
            let rows = table.rows.iter().map(|row| {
                let mut cells = vec![Cell::Text(name.to_string())];
                cells.extend(row.iter().cloned());
                cells
            });
            let same = section.blocks.iter_mut().find_map(|known| match known {
                Block::Table(known) if known.id == table.id && known.columns == columns => Some(known),
                _ => None,
            });
            match same {
                Some(known) => known.rows.extend(rows),
                None => {
                    let taken = section
                        .blocks
                        .iter()
                        .any(|known| matches!(known, Block::Table(known) if known.id == table.id));
                    let id = if taken { format!("{}-{}", table.id, run + 1) } else { table.id.clone() };
                    let rows = rows.collect();
                    let caption = table.caption.clone();
                    section.blocks.push(Block::Table(DataTable { id, caption, columns, rows }));
                }
            }
        }
        // Colours cannot lie over each other: each map stands under the name of its run.
        Block::HeatMap(map) => {
            let taken = |known: &Block| matches!(known, Block::HeatMap(known) if known.id == map.id);
            let id = match section.blocks.iter().any(taken) {
                true => format!("{}-{}", map.id, run + 1),
                false => map.id.clone(),
            };
            let title = format!("{name}: {}", map.title);
            // Maps of the same id follow each other, so that they can be compared at a glance.
            let number = |known: &str| known.strip_prefix(&map.id)?.strip_prefix('-')?.parse::<usize>().ok();
            let same = |known: &Block| matches!(known, Block::HeatMap(known) if known.id == map.id || number(&known.id).is_some());
            let after = section.blocks.iter().rposition(same).map_or(section.blocks.len(), |last| last + 1);
            section.blocks.insert(after, Block::HeatMap(HeatMap { id, title, ..map.clone() }));
        }
        // What several runs say alike is said once; what one says differently is said under its name.
        Block::Prose(prose) => {
            let named = Block::Prose(format!("**{name}.** {prose}"));
            if run == 0 || !section.blocks.contains(block) {
                section.blocks.push(if run == 0 { block.clone() } else { named });
            }
        }
        Block::Formula(_) | Block::Facts(_) => {
            if !section.blocks.contains(block) {
                section.blocks.push(block.clone());
            }
        }
    }
}

fn axes(figure: &Figure) -> (&crate::Axis, &crate::Axis) {
    (&figure.x, &figure.y)
}

/// Draws the series of one run into a figure, in colours that are not taken.
fn overlay(figure: &mut Figure, name: &str, other: &Figure) {
    let mut next = figure.series.iter().map(|series| series.colour + 1).max().unwrap_or(0);
    let mut colours: BTreeMap<usize, usize> = BTreeMap::new();
    for series in &other.series {
        let colour = *colours.entry(series.colour).or_insert_with(|| {
            next += 1;
            next - 1
        });
        let mut series = series.clone();
        series.colour = colour;
        // A series that the legend leaves out stays out.
        if !series.name.trim().is_empty() {
            series.name = format!("{name}: {}", series.name);
        }
        figure.series.push(series);
    }
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "holds",
        Verdict::Fails => "fails",
        Verdict::NotMeasurable => "not measurable here",
    }
}
