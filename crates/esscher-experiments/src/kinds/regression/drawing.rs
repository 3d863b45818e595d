//! The result as sections of a document, and curves for the claims that draw it too.

use super::Regression;
use super::records::{Record, records};
use crate::measured::{figures, length_name};
use crate::reading::Covariates;
use crate::tabulating::take_constant;
use esscher_core::regression::SpectralTask;
use esscher_lab::{Failure, Table};
use esscher_report::{Axis, Block as DocumentBlock, Cell, DataTable, Figure, Mark, Point, Scale, Series};

/// The curves of a quantity over time: exact ones, and means over draws. The model is named where there are several.
pub(crate) fn curves<'a>(
    records: &'a [Record],
    quantity: &str,
    keep: impl Fn(&Record) -> bool,
) -> Vec<(String, Vec<&'a Record>)> {
    let mut models = records.iter().filter(|record| record.length.is_some() && keep(record));
    let first = models.next().map(|record| record.model.as_str());
    let is_single = models.all(|record| Some(record.model.as_str()) == first);
    let mut found: Vec<(String, Vec<&Record>)> = Vec::new();
    for record in records.iter().filter(|record| {
        record.quantity == quantity && record.draw.is_none() && record.time > 0.0 && keep(record)
    }) {
        let name = if is_single { length_name(record.length) } else { record.curve() };
        match found.iter_mut().find(|(other, _)| *other == name) {
            Some((_, curve)) => curve.push(record),
            None => found.push((name, vec![record])),
        }
    }
    found
}

/// Curves as series, numbered by colour.
pub(crate) fn lines(curves: &[(String, Vec<&Record>)]) -> Vec<Series> {
    curves
        .iter()
        .enumerate()
        .map(|(colour, (name, records))| Series {
            name: name.clone(),
            mark: Mark::Line,
            colour,
            points: records.iter().map(|record| record.number.point(record.time)).collect(),
        })
        .collect()
}

/// Time, by its logarithm.
pub(crate) fn time_axis() -> Axis {
    Axis { label: "training time t".to_string(), scale: Scale::Logarithmic }
}

pub(super) fn sections(plan: &Regression, result: &Table) -> Result<Vec<esscher_report::Section>, Failure> {
    let records = records(result)?;
    let mut sections = Vec::new();
    for covariates in &plan.covariates {
        for task in &plan.tasks {
            let dimension = task.dimension() as i64;
            let here =
                |record: &Record| record.covariates == covariates.name() && record.dimension == dimension;
            let id = format!("{}-{dimension}", covariates.name());
            let scale = records.iter().find(|record| here(record)).map_or(0.0, |record| record.initial_scale);
            let (spectral, _) = SpectralTask::new(task)?;
            let range = if scale < spectral.proved_scale() { "inside" } else { "outside" };
            let mut prose = format!(
                "Gradient flow of one layer in block form $(A, b)$ from $A = \\alpha I/\\sqrt d$, $b = \\alpha$ with \
                 α = {}, which is {range} the range α < {} of the paper's theorem. Risks are halved mean \
                 squared errors; their floor is {}. ",
                figures(scale),
                figures(spectral.proved_scale()),
                figures(task.noise_floor())
            );
            prose += match covariates {
                Covariates::Gaussian => {
                    "Gaussian covariates: every risk is exact, and the error of a flow is its change when steps are \
                     a hundred times looser."
                }
                _ => "Covariates are drawn: errors are standard errors over independent sets of draws.",
            };
            let mut blocks =
                vec![DocumentBlock::Prose(prose), DocumentBlock::Table(ends(&id, &records, here))];
            let figure =
                |id: String, title: &str, quantity: &str, label: &str, scale: Scale, caption: &str| {
                    // The infinite prompt has no distance to itself.
                    let of_finite = quantity == "distance-to-infinite";
                    let keep = |record: &Record| here(record) && (!of_finite || record.length.is_some());
                    let series = lines(&curves(&records, quantity, keep));
                    (!series.is_empty()).then(|| {
                        DocumentBlock::Figure(Figure {
                            id,
                            title: title.to_string(),
                            caption: caption.to_string(),
                            x: time_axis(),
                            y: Axis { label: label.to_string(), scale },
                            series,
                        })
                    })
                };
            blocks.extend(figure(
                format!("risk-{id}"),
                "Risk during training",
                "risk",
                "risk R",
                Scale::Logarithmic,
                "Halved mean squared error along the flow.",
            ));
            blocks.extend(figure(
                format!("distance-{id}"),
                "Distance to the flow of the infinite prompt",
                "distance-to-infinite",
                "|θ_L(t) − θ_∞(t)|",
                Scale::Logarithmic,
                "Distance of all parameters at the same time, from the same start.",
            ));
            if let Some(DocumentBlock::Figure(mut gain)) = figure(
                format!("gain-{id}"),
                "The gain b during training",
                "gain",
                "b",
                Scale::Linear,
                "Dashed: first-order theory of the drift along the valley $b\\Sigma A = I$, which starts where the \
                 infinite prompt ends.",
            ) {
                let predicted = curves(&records, "predicted-gain", here);
                let mut label = "first order".to_string();
                let theory: Vec<Series> = predicted
                    .iter()
                    .filter_map(|(name, curve)| {
                        let measured = gain.series.iter().find(|series| series.name == *name)?;
                        Some(Series {
                            name: std::mem::take(&mut label),
                            mark: Mark::Dashed,
                            colour: measured.colour,
                            points: curve
                                .iter()
                                .map(|record| Point::new(record.time, record.number.value))
                                .collect(),
                        })
                    })
                    .collect();
                gain.series.extend(theory);
                blocks.push(DocumentBlock::Figure(gain));
            }
            sections.push(esscher_report::Section {
                id,
                title: format!("{} covariates, $d = {dimension}$", capitalised(covariates.name())),
                verdict: None,
                blocks,
            });
        }
    }
    if plan.draws > 0 {
        let prose = format!("{} sets of {} prompts were drawn for each law.", plan.draws, plan.prompts);
        if let Some(last) = sections.last_mut() {
            last.blocks.push(DocumentBlock::Prose(prose));
        }
    }
    Ok(sections)
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// Where each flow ended.
fn ends(id: &str, records: &[Record], here: impl Fn(&Record) -> bool) -> DataTable {
    let shown = [
        ("final-risk", "risk"),
        ("largest-distance-to-infinite", "from the infinite flow"),
        ("distance-to-infinite-limit", "from its limit"),
        ("distance-to-own-limit", "from the own limit"),
    ];
    let mine: Vec<&Record> = records.iter().filter(|record| here(record) && record.draw.is_none()).collect();
    let mut rows: Vec<(String, &Record)> = Vec::new();
    for record in &mine {
        let name = record.curve();
        if !rows.iter().any(|(other, _)| *other == name) {
            rows.push((name, record));
        }
    }
    let mut rows: Vec<Vec<Cell>> = rows
        .into_iter()
        .map(|(name, first)| {
            let mut cells = vec![Cell::Text(name.clone())];
            for (quantity, _) in shown {
                let last =
                    mine.iter().rev().find(|record| record.quantity == quantity && record.curve() == name);
                cells.push(last.map_or(Cell::Missing, |record| record.number.cell()));
            }
            cells.push(Cell::Text(first.number.class.name().to_string()));
            cells.push(Cell::Text(first.ending.clone()));
            cells
        })
        .collect();
    let mut columns = vec!["flow".to_string()];
    columns.extend(shown.iter().map(|(_, name)| name.to_string()));
    columns.extend(["class".to_string(), "ending".to_string()]);
    let mut caption = "Where each flow ended: risk, largest distance from the flow of the infinite prompt, and distances at the \
                       end from its limit and from the closed-form limit at the same length."
        .to_string();
    for heading in ["class", "ending"] {
        if let Some(Cell::Text(text)) = take_constant(&mut columns, &mut rows, heading) {
            let what = if heading == "class" { "Class" } else { "Every flow" };
            caption.push_str(&format!(" {what}: {text}."));
        }
    }
    for (_, heading) in shown {
        let index = columns.iter().position(|column| column == heading);
        if index.is_some_and(|index| rows.iter().all(|row| row[index] == Cell::Missing)) {
            take_constant(&mut columns, &mut rows, heading);
        }
    }
    DataTable { id: format!("ends-{id}"), caption, columns, rows }
}
