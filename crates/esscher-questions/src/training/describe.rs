//! The answer as sections of a document, and curves for the claims that draw it too.

use super::answer::{Quantity, Row};
use super::ask::Sampling;
use super::compute::Training;
use crate::asking::Covariates;
use crate::measured::{figures, length_name};
use crate::tabulating::take_constant;
use esscher_core::Ending;
use esscher_core::regression::{LinearRegression, SpectralTask};
use esscher_lab::{Failure, Named};
use esscher_report::{Axis, Block, Cell, DataTable, Figure, Mark, Point, Scale, Section, Series};

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
    Axis { label: "training time t".to_string(), scale: Scale::Logarithmic }
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
    let figure = |name: &str, title: &str, quantity: Quantity, label: &str, scale: Scale, caption: &str| {
        // The infinite prompt has no distance to itself.
        let of_finite = quantity == Quantity::DistanceToInfinite;
        let keep = |row: &Row| here(row) && (!of_finite || row.length.is_some());
        Figure {
            id: format!("{name}-{id}"),
            title: title.to_string(),
            caption: caption.to_string(),
            x: time_axis(),
            y: Axis { label: label.to_string(), scale },
            series: lines(&curves(rows, quantity, keep)),
        }
    };
    let risk = figure(
        "risk",
        "Risk during training",
        Quantity::Risk,
        "risk R",
        Scale::Logarithmic,
        "Halved mean squared error along the flow.",
    );
    let distance = figure(
        "distance",
        "Distance to the flow of the infinite prompt",
        Quantity::DistanceToInfinite,
        "|θ_L(t) − θ_∞(t)|",
        Scale::Logarithmic,
        "Distance of all parameters at the same time, from the same start.",
    );
    let mut gain = figure(
        "gain",
        "The gain b during training",
        Quantity::Gain,
        "b",
        Scale::Linear,
        "Dashed: first-order theory of the drift along the valley $b\\Sigma A = I$, which starts where the infinite prompt ends.",
    );
    let mut label = "first order".to_string();
    for (name, curve) in curves(rows, Quantity::PredictedGain, here) {
        let Some(measured) = gain.series.iter().find(|series| series.name == name) else { continue };
        let points = curve.iter().map(|row| Point::new(row.time, row.number.value)).collect();
        let colour = measured.colour;
        gain.series.push(Series { name: std::mem::take(&mut label), mark: Mark::Dashed, colour, points });
    }
    let mut blocks = vec![Block::Prose(prose), Block::Table(ends(&id, rows, here))];
    let drawn = [risk, distance, gain].into_iter().filter(|figure| !figure.series.is_empty());
    blocks.extend(drawn.map(Block::Figure));
    let title = format!("{} covariates, $d = {dimension}$", capitalised(covariates.name()));
    Ok(Section { id, title, verdict: None, blocks })
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// Where each flow ended.
fn ends(id: &str, answer: &[Row], here: impl Fn(&Row) -> bool) -> DataTable {
    let shown = [
        (Quantity::FinalRisk, "risk"),
        (Quantity::LargestDistanceToInfinite, "from the infinite flow"),
        (Quantity::DistanceToInfiniteLimit, "from its limit"),
        (Quantity::DistanceToOwnLimit, "from the own limit"),
    ];
    let mine: Vec<&Row> = answer.iter().filter(|row| here(row) && row.draw.is_none()).collect();
    let mut flows: Vec<(String, &Row)> = Vec::new();
    for row in &mine {
        let name = row.curve();
        if !flows.iter().any(|(other, _)| *other == name) {
            flows.push((name, row));
        }
    }
    let mut rows: Vec<Vec<Cell>> = flows
        .into_iter()
        .map(|(name, first)| {
            let last =
                |quantity| mine.iter().rev().find(|row| row.quantity == quantity && row.curve() == name);
            let mut cells = vec![Cell::Text(name.clone())];
            cells.extend(
                shown
                    .iter()
                    .map(|(quantity, _)| last(*quantity).map_or(Cell::Missing, |row| row.number.cell())),
            );
            cells.push(Cell::Text(first.number.accuracy.name().to_string()));
            let time = last(Quantity::FinalRisk).map_or(0.0, |row| row.time);
            cells.push(Cell::Text(match first.ending {
                None => "mean over draws".to_string(),
                Some(Ending::Completed) => "reached the end time".to_string(),
                Some(ending) => format!("{} at time {}", ending.name(), figures(time)),
            }));
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
