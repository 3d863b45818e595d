//! The answer as the authors show it: errors over the length, beside what could be had.

use super::answer::{Model, Quantity, Row, find};
use crate::measured::GREY;
use esscher_core::regression::authors::{AuthorsCovariance, AuthorsOptions};
use esscher_report::{Axis, Block, Cell, DataTable, Figure, Mark, Point, Scale, Section, Series};

pub(super) fn sections(options: &AuthorsOptions, rows: &[Row]) -> Vec<Section> {
    let covariance = match (options.covariance, options.covariance_bug) {
        (AuthorsCovariance::Isotropic, _) => "isotropic covariates",
        (AuthorsCovariance::Toeplitz, false) => "Toeplitz covariates, $\\Sigma_{ij} = 0.5^{|i-j|}$",
        (AuthorsCovariance::Toeplitz, true) => {
            "Toeplitz covariates as the authors' public code draws them (the Cholesky factor twice on prompts, \
             never on queries)"
        }
    };
    let flow_time = options.rate * f64::from(options.steps);
    let prose = format!(
        "$d = 5$, one head in separate $Q, K, V, O$, label noise of variance 0.1, {covariance}; {} steps of SGD at rate \
         {} with 128 fresh prompts each, which is as far along the gradient flow as {:.0} of the authors' 300,000 \
         steps at rate 0.001. Numbers are mean squared errors; no predictor is below 0.1.",
        options.steps,
        options.rate,
        flow_time / 1e-3
    );
    vec![Section {
        id: "authors".to_string(),
        title: "Error against prompt length".to_string(),
        verdict: None,
        blocks: vec![Block::Prose(prose), Block::Table(table(rows)), Block::Figure(figure(rows))],
    }]
}

/// Errors at each length.
pub fn table(answer: &[Row]) -> DataTable {
    let shown = [
        (Model::Softmax, Quantity::TestError, "softmax, test"),
        (Model::Softmax, Quantity::TrainedError, "softmax, exact"),
        (Model::Softmax, Quantity::Optimum, "softmax, best"),
        (Model::Linear, Quantity::TestError, "linear, test"),
        (Model::Linear, Quantity::TrainedError, "linear, exact"),
        (Model::Linear, Quantity::Optimum, "linear, best"),
        (Model::Bayes, Quantity::Optimum, "Bayes"),
    ];
    let mut lengths: Vec<i64> = answer.iter().map(|row| row.length).collect();
    lengths.dedup();
    let rows = lengths
        .into_iter()
        .map(|length| {
            let mut cells = vec![Cell::Integer(length)];
            cells.extend(shown.iter().map(|(model, quantity, _)| {
                find(answer, length, *model, *quantity).map_or(Cell::Missing, |row| row.number.cell())
            }));
            cells
        })
        .collect();
    let mut columns = vec!["$L$".to_string()];
    columns.extend(shown.iter().map(|(_, _, title)| title.to_string()));
    DataTable {
        id: "errors".to_string(),
        caption: "Mean squared errors of the trained layer on test prompts (sampled, one standard error), of the same \
                  layer exactly in the tokens (softmax: quasi-Monte-Carlo; linear: exact), of the best layer (linear: closed form; \
                  softmax: limit of the block-form flow), and of the posterior mean (sampled)."
            .to_string(),
        columns,
        rows,
    }
}

/// The authors' figure: test errors over L, with optima dashed and Bayes.
pub fn figure(answer: &[Row]) -> Figure {
    let line = |name: &str, model: Model, quantity: Quantity, mark: Mark, colour: usize| Series {
        name: name.to_string(),
        mark,
        colour,
        points: answer
            .iter()
            .filter(|row| row.model == model && row.quantity == quantity)
            .map(|row| match mark {
                Mark::Dashed => Point::new(row.length as f64, row.number.value),
                _ => row.number.point(row.length as f64),
            })
            .collect(),
    };
    let mut series = vec![
        line("softmax", Model::Softmax, Quantity::TestError, Mark::Dots, 0),
        line("linear", Model::Linear, Quantity::TestError, Mark::Dots, 1),
        line("Bayes", Model::Bayes, Quantity::Optimum, Mark::Line, 2),
        line("optimum", Model::Softmax, Quantity::Optimum, Mark::Dashed, 0),
        line("", Model::Linear, Quantity::Optimum, Mark::Dashed, 1),
    ];
    let lengths = answer.iter().map(|row| row.length as f64);
    let (low, high) = lengths.fold((f64::INFINITY, 0.0_f64), |(low, high), x| (low.min(x), high.max(x)));
    if low < high {
        let noise = esscher_core::regression::authors::NOISE;
        series.push(Series {
            name: "noise floor".to_string(),
            mark: Mark::Dashed,
            colour: GREY,
            points: vec![Point::new(low, noise), Point::new(high, noise)],
        });
    }
    Figure {
        id: "errors-figure".to_string(),
        title: "Test error of trained layers against prompt length".to_string(),
        caption: "Dots: trained by SGD, with one standard error of the test. Dashed, in the same colours: the optimum \
                  of each attention (softmax: limit of the block-form flow); in grey: the noise floor. Line: the posterior mean, \
                  sampled."
            .to_string(),
        x: Axis { label: "prompt length L".to_string(), scale: Scale::Logarithmic },
        y: Axis { label: "mean squared error".to_string(), scale: Scale::Logarithmic },
        series,
    }
}
