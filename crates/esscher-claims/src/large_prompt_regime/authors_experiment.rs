//! Claim: the authors' figure, error against length for softmax and linear attention trained from random matrices.

use super::evidence::{and, listed, two_figures};
use crate::judging::{Found, Judging, undecided};
use esscher_core::Ending;
use esscher_core::regression::authors::NOISE;
use esscher_lab::{Failure, Named, Table};
use esscher_questions::authors::answer::{Model, Quantity, Row, find};
use esscher_questions::authors::describe;
use esscher_questions::measured::{Measured, figures};
use esscher_report::{Block, Figure, Mark, Point, Series};
use std::collections::BTreeSet;

claim! {
    name: "authors-experiment",
    title: "The authors' experiment: softmax and linear attention approach each other",
    statement: "Trained on in-context linear regression, softmax and linear attention both improve from the shortest to the \
                longest prompt length, and the difference of their errors closes. Once training has arrived, neither is significantly \
                worse at a length than at the length before.",
    formula: r"\mathrm{MSE}_{\mathrm{softmax}}(L) - \mathrm{MSE}_{\mathrm{linear}}(L) \to 0, \qquad \mathrm{MSE}(L) \downarrow s^2 = 0.1",
    citation: "[Boursier & Boyer 2025](https://arxiv.org/abs/2512.11784), Section 6, the numerical experiments.",
    measurement: "Their setting (d = 5, separate Q, K, V, O from random matrices, noise 0.1, batches of 128 fresh prompts, the mean squared \
                  error), with a test on fresh prompts; beside it the optimum of each attention (softmax: the limit of its block-form \
                  flow) and the posterior mean. The quick form trains with Adam, which needs a hundredth of the steps, from twelve random starts, of which \
                  the one with the smallest exact error counts: of linear attention on 100 tokens and more, most starts stop far above the \
                  optimum. The full form trains once with the authors' own SGD, rate and 300,000 steps. A training has not arrived if it is not finished, or if its \
                  error, exact in the tokens, is more than a tenth above the optimum: it then measures the optimiser, not attention.",
    criterion: "Among the lengths where training has arrived: an error, or the size of the difference, rises by more than four standard \
                errors from one length to the next. Or its fall from the shortest to the longest is, four standard errors \
                included, less than a tenth of its size. Lengths where it has not are named and left out. Nothing is \
                decided if the shortest or the longest is one of them, if a fall is smaller than its errors, or if a test error \
                lies more than four standard errors below Bayes, which no predictor can reach. If nothing changes with the \
                length, a false alarm has probability $3 \\cdot 10^{-5}$ for each comparison. Standard errors are of the test; a \
                training is one draw of initial layer and prompts, or the best of several.",
    decided_by: "trainings that come within a tenth of the optimum at the shortest and the longest length. The full form of this claim, with \
                 the authors' own SGD for their 300,000 steps, takes about three hours of one core",
    judge: judge,
}

/// Standard errors: a one-sided false alarm of 3e-5.
const ERRORS: f64 = 4.0;

/// A fall by less than this part of a number is called none.
const NO_FALL: f64 = 0.1;

/// A training has arrived up to this many times the optimum.
const ARRIVED: f64 = 1.1;

/// Test errors by length.
type Curve = Vec<(i64, Measured)>;

fn judge(result: &Table, judging: &mut Judging) -> Result<Found, Failure> {
    let rows: Vec<Row> = result.read()?;
    let lengths: Vec<i64> = BTreeSet::from_iter(rows.iter().map(|row| row.length)).into_iter().collect();
    if lengths.len() < 2 {
        return Err(undecided("two lengths at least are needed"));
    }
    let Arrived { curves, left_out, stopped } = arrived(&rows, &lengths, judging);
    let names = ["the error of softmax", "the error of linear attention", "the difference of the two"];
    let falls = names.iter().zip(&curves).filter_map(|(name, curve)| fall(name, curve, &lengths, judging));
    let mut told = format!(
        "Where training has arrived, on test prompts (sampled, one standard error): {}.",
        listed(falls, "; ")
    );
    if !left_out.is_empty() {
        let left_out = left_out.join("; ");
        told +=
            &format!(" Left out, because training has not come within a tenth of the optimum: {left_out}.");
    }
    let mut found = Found {
        number: "–".to_string(),
        meaning: "not known from this result".to_string(),
        told,
        main: Some(Block::Figure(drawn(&rows, &stopped))),
        headline: "Longer prompts bring softmax and linear attention together".to_string(),
        tables: vec![Block::Table(describe::table(&rows))],
        ..Found::default()
    };
    let [softmax, linear, gap] = curves.each_ref().map(|curve| curve.first().zip(curve.last()));
    if let (Some(softmax), Some(linear), Some(gap)) = (softmax, linear, gap) {
        let (short, long) = (gap.0.0, gap.1.0);
        let ends =
            |ends: (&(i64, Measured), &(i64, Measured))| [ends.0.1, ends.1.1].map(|end| figures(end.value));
        let above = |at: &(i64, Measured), other: &(i64, Measured)| {
            two_figures((at.1.value - NOISE) / (other.1.value - NOISE))
        };
        found.explained.push(format!(
            "Both errors tend to the label noise, so their difference must close in the end. Above the noise softmax stays worse: {} times as \
             much as linear attention at {short} tokens, {} times at {long}.",
            above(softmax.0, linear.0),
            above(softmax.1, linear.1)
        ));
        let has_several = rows.iter().any(|row| row.quantity == Quantity::StartError);
        let how = if has_several { ", with Adam from several starts of which the best counts" } else { "" };
        let [[softmax, softmax_end], [linear, linear_end], [apart, together]] =
            [softmax, linear, gap].map(ends);
        found.lead = format!(
            "Trained from random matrices on prompts of {short} to {long} tokens{how}, softmax improves from an error of {softmax} to {softmax_end} \
             and linear attention from {linear} to {linear_end}, where the label noise alone is 0.1. Their difference closes from {apart} to \
             {together}."
        );
        found.number = format!("{apart} to {together}");
        found.meaning = format!("the gap between their errors from {short} to {long} tokens");
        if lengths.last().is_some_and(|longest| *longest > long) {
            found.meaning += "; beyond, a training did not reach its optimum";
        }
    }
    found.explained.extend(starts_in_words(&rows, &lengths));
    Ok(found)
}

/// How many of several starts arrive at the longest length.
fn starts_in_words(rows: &[Row], lengths: &[i64]) -> Option<String> {
    let longest = *lengths.last()?;
    let told = |model: Model| -> Option<String> {
        let best = find(rows, longest, model, Quantity::Optimum)?.number.value;
        let of_start =
            |row: &&Row| (row.length, row.model, row.quantity) == (longest, model, Quantity::StartError);
        let starts: Vec<&Row> = rows.iter().filter(of_start).collect();
        let has_arrived =
            |row: &&&Row| row.ending == Some(Ending::Completed) && row.number.value <= ARRIVED * best;
        let arrive = starts.iter().filter(has_arrived).count();
        let lost = find(rows, longest, model, Quantity::LostStarts).map_or(0.0, |row| row.number.value);
        let all = starts.len() as f64 + lost;
        (!starts.is_empty()).then(|| format!("{arrive} of {all} starts of {model} attention"))
    };
    Some(format!(
        "The coloured dots are the best of several starts, the grey ones all of them. At {longest} tokens {} and {} come within a tenth of \
         the optimum; the others stop above it or diverge. Which start counts is decided by the exact error, not by the test.",
        told(Model::Softmax)?,
        told(Model::Linear)?
    ))
}

/// The trainings by whether they have arrived.
#[derive(Default)]
struct Arrived {
    /// Of those that have: softmax, linear attention and their difference.
    curves: [Curve; 3],
    /// Those that have not, in words.
    left_out: Vec<String>,
    /// The same as models and lengths.
    stopped: Vec<(Model, i64)>,
}

fn arrived(rows: &[Row], lengths: &[i64], judging: &mut Judging) -> Arrived {
    let Arrived { mut curves, mut left_out, mut stopped } = Arrived::default();
    for &length in lengths {
        let mut tested = Vec::new();
        for (curve, model) in [Model::Softmax, Model::Linear].into_iter().enumerate() {
            let of = |model, quantity| find(rows, length, model, quantity);
            let (Some(test), Some(trained), Some(best), Some(bayes)) = (
                of(model, Quantity::TestError),
                of(model, Quantity::TrainedError),
                of(model, Quantity::Optimum),
                of(Model::Bayes, Quantity::Optimum),
            ) else {
                judging.leave_open(format!(
                    "{model} at L = {length} has no test error, optimum or Bayes beside it"
                ));
                continue;
            };
            let error = test.number.error().hypot(bayes.number.error());
            judging.trust(test.number.value >= bayes.number.value - ERRORS * error, || {
                format!(
                    "{model} at L = {length} is better than Bayes, so none of the numbers is to be trusted"
                )
            });
            let (trained, best) = (trained.number.value, best.number.value);
            if test.ending != Some(Ending::Completed) {
                let ending = test.ending.map_or("without an ending", Ending::name);
                left_out.push(format!("{model} at L = {length} (training: {ending})"));
                stopped.push((model, length));
            } else if trained <= ARRIVED * best {
                curves[curve].push((length, test.number));
                tested.push(test.number);
            } else {
                let (trained, best) = (figures(trained), figures(best));
                left_out.push(format!("{model} at L = {length} (error {trained}, optimum {best})"));
                stopped.push((model, length));
            }
        }
        if let [softmax, linear] = tested[..] {
            // Where the same start counts for both they are tested on the same prompts, which makes their errors positively
            // correlated; else on others. Adding the errors as if independent is right for others and on the safe side for the same.
            let error = softmax.error().hypot(linear.error());
            curves[2].push((length, Measured::sampled((softmax.value - linear.value).abs(), error)));
        }
    }
    Arrived { curves, left_out, stopped }
}

/// The figure of the experiment, in which trainings that have not arrived are dots of their own: they say nothing of attention.
fn drawn(rows: &[Row], stopped: &[(Model, i64)]) -> Figure {
    let mut figure = describe::figure(rows);
    let has_stopped = |name: &str, point: &Point| {
        stopped.iter().any(|(model, length)| model.name() == name && *length as f64 == point.x)
    };
    let mut apart = Vec::new();
    for series in figure.series.iter_mut().filter(|series| series.mark == Mark::Dots) {
        let (not_arrived, points) =
            series.points.iter().copied().partition(|point| has_stopped(&series.name, point));
        series.points = points;
        if !Vec::is_empty(&not_arrived) {
            let name = format!("{}, not trained to its optimum", series.name);
            apart.push(Series { name, mark: Mark::Dots, colour: 3, points: not_arrived });
        }
    }
    figure.series.extend(apart);
    figure.series.retain(|series| !series.points.is_empty());
    figure
}

/// Judges the fall of a curve and tells its ends.
fn fall(name: &str, curve: &Curve, lengths: &[i64], judging: &mut Judging) -> Option<String> {
    let told = |number: Measured| format!("{:.3} ± {:.3}", number.value, number.error());
    for pair in curve.windows(2) {
        let [(before, first), (after, then)] = [pair[0], pair[1]];
        let rise = then.value - first.value;
        judging.require(rise <= ERRORS * first.error().hypot(then.error()), || {
            format!("{name} rises from {} at L = {before} to {} at L = {after}", told(first), told(then))
        });
    }
    let [(shortest, first), .., (longest, last)] = curve[..] else {
        judging.leave_open(format!("{name} is known at fewer than two lengths"));
        return None;
    };
    if (Some(&shortest), Some(&longest)) != (lengths.first(), lengths.last()) {
        let missing = [lengths.first(), lengths.last()].into_iter().flatten();
        let missing = missing.filter(|length| !curve.iter().any(|(known, _)| known == *length));
        let missing: Vec<String> = missing.map(|length| format!("L = {length}")).collect();
        judging.leave_open(format!(
            "{name} is not known at {}, where training has not come within a tenth of the optimum",
            and(&missing)
        ));
    }
    let (fall, error) = (first.value - last.value, ERRORS * first.error().hypot(last.error()));
    judging.positive(fall, error, NO_FALL * first.value, || {
        format!("{name} goes from {} at L = {shortest} to {} at L = {longest}", told(first), told(last))
    });
    Some(format!("{name} {} at L = {shortest} and {} at L = {longest}", told(first), told(last)))
}
