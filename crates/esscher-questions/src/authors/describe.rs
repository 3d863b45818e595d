//! The answer as the authors show it: errors over the length, beside what could be had.

use super::answer::{Model, Quantity, Row, find};
use crate::drawing::Drawing;
use crate::measured::GREY;
use crate::tabulating::{Tabulation, distinct};
use esscher_core::regression::authors::{AuthorsCovariance, AuthorsOptimiser, AuthorsOptions, NOISE};
use esscher_report::{Axis, Block, DataTable, Figure, Point, Section};

pub(super) fn sections(options: &AuthorsOptions, starts: u64, rows: &[Row]) -> Vec<Section> {
    let covariance = match (options.covariance, options.covariance_bug) {
        (AuthorsCovariance::Isotropic, _) => "isotropic covariates",
        (AuthorsCovariance::Toeplitz, false) => "Toeplitz covariates, $\\Sigma_{ij} = 0.5^{|i-j|}$",
        (AuthorsCovariance::Toeplitz, true) => {
            "Toeplitz covariates as the authors' public code draws them (the Cholesky factor twice on prompts, \
             never on queries)"
        }
    };
    let training = match options.optimiser {
        AuthorsOptimiser::Sgd => format!(
            "{} steps of SGD at rate {}, which is as far along the gradient flow as {:.0} of the authors' 300,000 steps at rate 0.001",
            options.steps,
            options.rate,
            options.rate * f64::from(options.steps) / 1e-3
        ),
        AuthorsOptimiser::Adam => format!(
            "{} steps of Adam at rate {}, in place of the authors' 300,000 steps of SGD at rate 0.001",
            options.steps, options.rate
        ),
    };
    let starts = match starts {
        1 => String::new(),
        several => format!(
            " Each layer was trained from {several} different random starts; of the trainings that complete, the one with the smallest exact error counts."
        ),
    };
    let prose = format!(
        "$d = 5$, one head in separate $Q, K, V, O$, label noise of variance 0.1, {covariance}; {training}, with 128 fresh prompts each.{starts} \
         Numbers are mean squared errors; no predictor is below 0.1."
    );
    let blocks = vec![Block::Prose(prose), Block::Table(table(rows)), Block::Figure(figure(rows))];
    vec![Section::new("authors", "Error against prompt length", blocks)]
}

/// Errors at each length.
pub fn table(answer: &[Row]) -> DataTable {
    let lengths = distinct(answer.iter().map(|row| row.length));
    let mut table = Tabulation::of(&lengths).column("$L$", |length| *length);
    for (model, quantity, heading) in [
        (Model::Softmax, Quantity::TestError, "softmax, test"),
        (Model::Softmax, Quantity::TrainedError, "softmax, exact"),
        (Model::Softmax, Quantity::Optimum, "softmax, best"),
        (Model::Linear, Quantity::TestError, "linear, test"),
        (Model::Linear, Quantity::TrainedError, "linear, exact"),
        (Model::Linear, Quantity::Optimum, "linear, best"),
        (Model::Bayes, Quantity::Optimum, "Bayes"),
    ] {
        let number = |length: &i64| find(answer, *length, model, quantity).map(|row| row.number);
        table = table.column(heading, number);
    }
    table.table(
        "errors",
        "Mean squared errors of the trained layer on test prompts (sampled, one standard error), of the \
         same layer exactly in the tokens (softmax: quasi-Monte-Carlo; linear: exact), of the best layer \
         (linear: closed form; softmax: limit of the block-form flow), and of the posterior mean (sampled).",
    )
}

/// The authors' figure: test errors over L, with optima dashed and Bayes.
pub fn figure(answer: &[Row]) -> Figure {
    let of = |model: Model, quantity: Quantity| {
        answer.iter().filter(move |row| row.model == model && row.quantity == quantity)
    };
    let measured = |model, quantity| -> Vec<Point> {
        of(model, quantity).map(|row| row.number.point(row.length as f64)).collect()
    };
    let optimum = |model| -> Vec<Point> {
        let optima = of(model, Quantity::Optimum);
        optima.map(|row| Point::new(row.length as f64, row.number.value)).collect()
    };
    let starts: Vec<Point> = answer
        .iter()
        .filter(|row| row.quantity == Quantity::StartError)
        .map(|row| Point::new(row.length as f64, row.number.value))
        .collect();
    let told = match starts.is_empty() {
        true => "",
        false => " In grey: every start, exactly in the tokens; the best of each layer counts.",
    };
    let mut drawing = Drawing::default();
    if !starts.is_empty() {
        drawing.dots("every start", GREY, starts);
    }
    drawing.dots("softmax", 0, measured(Model::Softmax, Quantity::TestError));
    drawing.dots("linear", 1, measured(Model::Linear, Quantity::TestError));
    drawing.line("posterior mean (Bayes)", 2, measured(Model::Bayes, Quantity::Optimum));
    drawing.dashed("optimum of softmax", 0, optimum(Model::Softmax));
    drawing.dashed("optimum of linear", 1, optimum(Model::Linear));
    drawing.level("noise floor", GREY, NOISE);
    drawing.figure(
        "errors-figure",
        "Test error of trained layers against prompt length",
        format!(
            "Dots: trained from random matrices, with one standard error of the test. Dashed, in the same colours: the \
             optimum of each attention (softmax: limit of the block-form flow); in grey: the noise floor. Line: \
             the posterior mean, sampled.{told}"
        ),
        (Axis::logarithmic("prompt length L (tokens)"), Axis::logarithmic("mean squared error")),
    )
}
