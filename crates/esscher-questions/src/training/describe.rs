//! The answer as sections of a document, and curves for the claims that draw it too.

use super::answer::{Quantity, Row};
use super::ask::Sampling;
use super::compute::Training;
use crate::asking::Covariates;
use crate::document::capitalised;
use crate::measured::{figures, length_name};
use crate::tabulating::{Tabulation, distinct};
use esscher_core::Ending;
use esscher_core::regression::{LinearRegression, SpectralTask};
use esscher_lab::{Failure, Named};
use esscher_report::{Axis, Block, DataTable, Figure, Mark, Point, Section, Series};

/// The rows of a curve under its name.
pub type Curve<'a> = (String, Vec<&'a Row>);

/// The curves of a quantity over time: exact ones, and means over draws. The model is named where there are several.
pub fn curves<'a>(rows: &'a [Row], quantity: Quantity, keep: impl Fn(&Row) -> bool) -> Vec<Curve<'a>> {
    let mut models = rows.iter().filter(|row| row.length.is_some() && keep(row)).map(|row| row.model);
    let first = models.next();
    let is_single = models.all(|model| Some(model) == first);
    let mut found: Vec<Curve<'a>> = Vec::new();
    let is_of_curve = |row: &&Row| row.quantity == quantity && row.draw.is_none() && row.time > 0.0;
    for row in rows.iter().filter(|row| is_of_curve(row) && keep(row)) {
        let name = if is_single { length_name(row.length) } else { row.curve() };
        match found.iter_mut().find(|(other, _)| *other == name) {
            Some((_, curve)) => curve.push(row),
            None => found.push((name, vec![row])),
        }
    }
    found
}

/// Curves as series, numbered by colour.
pub fn lines(curves: &[Curve<'_>]) -> Vec<Series> {
    let line = |(colour, (name, rows)): (usize, &Curve<'_>)| Series {
        name: name.clone(),
        mark: Mark::Line,
        colour,
        points: rows.iter().map(|row| row.number.point(row.time)).collect(),
    };
    curves.iter().enumerate().map(line).collect()
}

/// Time, by its logarithm.
pub fn time_axis() -> Axis {
    Axis::logarithmic("training time t")
}

pub(super) fn sections(training: &Training, rows: &[Row]) -> Result<Vec<Section>, Failure> {
    let mut sections = Vec::new();
    for covariates in &training.ask.task.covariates {
        for task in &training.ask.task.tasks.0 {
            sections.push(section(*covariates, task, rows)?);
        }
    }
    let Sampling { prompts, draws } = training.sampling;
    if let Some(last) = sections.last_mut().filter(|_| draws > 0) {
        let prose = format!("{draws} sets of {prompts} prompts were drawn for each law.");
        last.blocks.push(Block::Prose(prose));
    }
    Ok(sections)
}

fn section(covariates: Covariates, task: &LinearRegression, rows: &[Row]) -> Result<Section, Failure> {
    let dimension = task.dimension() as i64;
    let here = |row: &Row| row.covariates == covariates && row.dimension == dimension;
    let id = format!("{covariates}-{dimension}");
    let scale = rows.iter().find(|row| here(row)).map_or(0.0, |row| row.initial_scale);
    let (spectral, _) = SpectralTask::new(task)?;
    let range = if scale < spectral.proved_scale() { "inside" } else { "outside" };
    let mut prose = format!(
        "Gradient flow of one layer in block form $(A, b)$ from $A = \\alpha I/\\sqrt d$, $b = \\alpha$ with α = {}, \
         which is {range} the range α < {} of the paper's theorem. Risks are halved mean squared errors; their floor is {}. ",
        figures(scale),
        figures(spectral.proved_scale()),
        figures(task.noise_floor())
    );
    prose += match covariates {
        Covariates::Gaussian => {
            "Gaussian covariates: every risk is exact, and the error of a flow is its change when steps are a hundred \
             times looser."
        }
        _ => "Covariates are drawn: errors are standard errors over independent sets of draws.",
    };
    // A flow has one colour on the whole page, also where others are not drawn.
    let flows = distinct(rows.iter().filter(|row| here(row)).map(Row::curve));
    let recoloured = |curves: &[Curve<'_>]| -> Vec<Series> {
        let place =
            |rows: &[&Row]| rows.first().and_then(|row| flows.iter().position(|flow| *flow == row.curve()));
        let drawn = lines(curves).into_iter().zip(curves);
        drawn
            .map(|(series, (_, rows))| Series { colour: place(rows).unwrap_or(series.colour), ..series })
            .collect()
    };
    let figure = |name: &str, title: &str, quantity: Quantity, y: Axis, caption: &str| {
        // The infinite prompt has no distance to itself.
        let of_finite = quantity == Quantity::DistanceToInfinite;
        let keep = |row: &Row| here(row) && (!of_finite || row.length.is_some());
        Figure {
            id: format!("{name}-{id}"),
            title: title.to_string(),
            caption: caption.to_string(),
            x: time_axis(),
            y,
            series: recoloured(&curves(rows, quantity, keep)),
        }
    };
    let risk = figure(
        "risk",
        "The risk while the layer trains",
        Quantity::Risk,
        Axis::logarithmic("risk R"),
        "Halved mean squared error along the flow. A curve ends where its flow ended; the table says how.",
    );
    let distance = figure(
        "distance",
        "How far each flow is from training on infinite prompts",
        Quantity::DistanceToInfinite,
        Axis::logarithmic("|θ_L(t) − θ_∞(t)|"),
        "Distance of all parameters at the same time, from the same start.",
    );
    let mut gain = figure(
        "gain",
        "The gain $b$ while the layer trains",
        Quantity::Gain,
        Axis::linear("b"),
        "Dashed: first-order theory of the drift along the valley $b\\Sigma A = I$, which starts where the infinite prompt ends.",
    );
    let mut label = "first order".to_string();
    for (name, curve) in curves(rows, Quantity::PredictedGain, here) {
        let Some(measured) = gain.series.iter().find(|series| series.name == name) else { continue };
        let points = curve.iter().map(|row| Point::new(row.time, row.number.value)).collect();
        let colour = measured.colour;
        gain.series.push(Series { name: std::mem::take(&mut label), mark: Mark::Dashed, colour, points });
    }
    let mut drawn =
        [risk, distance, gain].into_iter().filter(|figure| !figure.series.is_empty()).map(Block::Figure);
    let mut blocks: Vec<Block> = largest_distances(rows, here).map(Block::Lead).into_iter().collect();
    blocks.push(Block::Prose(prose));
    blocks.extend(drawn.by_ref().take(2));
    let mut folded: Vec<Block> = drawn.collect();
    folded.push(Block::Table(ends(&id, rows, here)));
    let title = "The gain, and where each flow ended".to_string();
    blocks.push(Block::Folded { id: String::new(), title, blocks: folded });
    let title = format!("{} covariates, $d = {dimension}$", capitalised(covariates.name()));
    Ok(Section::new(id, title, blocks))
}

/// How far each flow went from that of the infinite prompt, and what its risk came to.
fn largest_distances(rows: &[Row], here: impl Fn(&Row) -> bool) -> Option<String> {
    let mine: Vec<&Row> = rows.iter().filter(|row| here(row) && row.draw.is_none()).collect();
    let of =
        |flow: &str, quantity| mine.iter().rev().find(|row| row.quantity == quantity && row.curve() == flow);
    let finite = distinct(mine.iter().filter(|row| row.length.is_some()).map(|row| row.curve()));
    let told = finite.iter().filter_map(|flow| {
        let largest = of(flow, Quantity::LargestDistanceToInfinite)?;
        let risk = of(flow, Quantity::FinalRisk)
            .map_or(String::new(), |row| format!(" (risk {} at its end)", figures(row.number.value)));
        Some(format!("{flow}: {}{risk}", figures(largest.number.value)))
    });
    let told: Vec<String> = told.collect();
    let infinite = of(&length_name(None), Quantity::FinalRisk).map_or(String::new(), |row| {
        format!(" The infinite prompt ends with risk {}.", figures(row.number.value))
    });
    (!told.is_empty()).then(|| {
        format!(
            "How far the parameters go at most from those of training on infinite prompts. {}.{infinite}",
            told.join("; ")
        )
    })
}

/// Where each flow ended.
fn ends(id: &str, answer: &[Row], here: impl Fn(&Row) -> bool) -> DataTable {
    let mine: Vec<&Row> = answer.iter().filter(|row| here(row) && row.draw.is_none()).collect();
    let flows = distinct(mine.iter().map(|row| row.curve()));
    let of = |flow: &str| -> Vec<&Row> { mine.iter().filter(|row| row.curve() == flow).copied().collect() };
    let last = |flow: &str, quantity| of(flow).into_iter().rev().find(|row| row.quantity == quantity);
    let number = |flow: &str, quantity| last(flow, quantity).map(|row| row.number);
    let ending = |flow: &str| match of(flow).first()?.ending {
        None => Some("mean over draws".to_string()),
        Some(Ending::Completed) => Some("reached the end time".to_string()),
        Some(ending) => {
            let time = last(flow, Quantity::FinalRisk).map_or(0.0, |row| row.time);
            Some(format!("{} at time {}", ending.name(), figures(time)))
        }
    };
    Tabulation::of(&flows)
        .column("flow", |flow| flow.as_str())
        .column("risk", |flow| number(flow, Quantity::FinalRisk))
        .column("from the infinite flow", |flow| number(flow, Quantity::LargestDistanceToInfinite))
        .column("from its limit", |flow| number(flow, Quantity::DistanceToInfiniteLimit))
        .column("from the own limit", |flow| number(flow, Quantity::DistanceToOwnLimit))
        .column("class", |flow| of(flow).first().map(|row| row.number.accuracy.name()))
        .column("ending", |flow| ending(flow))
        .constant("class", "Class")
        .constant("ending", "Every flow")
        .table(
            format!("ends-{id}"),
            "Where each flow ended: risk, largest distance from the flow of the infinite prompt, and distances at the end \
             from its limit and from the closed-form limit at the same length.",
        )
}
