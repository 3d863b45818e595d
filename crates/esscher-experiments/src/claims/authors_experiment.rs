//! Claim: the authors' figure, error against length for softmax and linear attention trained by SGD.

use super::{Claim, Judgement, regression};
use crate::kinds::{AuthorsRecord, authors_errors, authors_figure, authors_table};
use crate::measured::{Measured, figures};
use esscher_lab::{Failure, Table};
use esscher_report::Block;

pub(super) const CLAIM: Claim = Claim {
    name: "authors-experiment",
    title: "The authors' experiment: softmax and linear attention approach each other and the floor",
    statement: "Trained by SGD on in-context linear regression, softmax and linear attention both improve from the shortest to the longest \
                prompt length, nowhere on the way significantly worse than at the length before once SGD has arrived, and \
                the difference of their errors closes.",
    formula: r"\mathrm{MSE}_{\mathrm{softmax}}(L) - \mathrm{MSE}_{\mathrm{linear}}(L) \to 0, \qquad \mathrm{MSE}(L) \downarrow s^2 = 0.1",
    citation: "Boursier & Boyer 2025, arXiv 2512.11784, the experiments.",
    measurement: "Their setting (d = 5, separate Q, K, V, O, noise 0.1, batches of 128 fresh prompts, SGD on the mean squared error), with a test on fresh \
                  prompts; beside it the optimum of each attention (softmax: the limit of its block-form flow) and the \
                  posterior mean. The small form takes a hundredth of the steps at a hundred times the rate. A training \
                  that is not finished, or whose error, exactly in the tokens, is more than a tenth above the optimum, \
                  has not arrived: it measures SGD, not attention.",
    criterion: "Among the lengths where SGD has arrived: an error, or the size of the difference, rises by more than four standard errors from \
                one length to the next, or its fall from the shortest to the longest is, four standard errors included, \
                less than a tenth of its size. Lengths where SGD has not arrived are named and left out; nothing is decided if \
                the shortest or the longest is one of them, if a fall is not resolved, or if a test error lies more than four standard errors below Bayes, which no predictor can. If \
                nothing changes with the length, a false alarm has probability $3 \\cdot 10^{-5}$ for each comparison. Standard \
                errors are of the test; a training is one draw of initial layer and prompts.",
    quick: include_str!("../../../../experiments/authors-experiment/quick.toml"),
    full: include_str!("../../../../experiments/authors-experiment/full.toml"),
    judge,
};

/// Standard errors: a one-sided false alarm of 3e-5.
const ERRORS: f64 = 4.0;

/// A fall by less than this part of a number is called none.
const NO_FALL: f64 = 0.1;

/// SGD has arrived up to this many times the optimum.
const ARRIVED: f64 = 1.1;

fn judge(result: &Table) -> Result<Judgement, Failure> {
    let records = authors_errors(result)?;
    let mut lengths: Vec<i64> = records.iter().map(|record| record.length).collect();
    lengths.sort_unstable();
    lengths.dedup();
    if lengths.len() < 2 {
        return Ok(regression::undecided("two lengths at least are needed"));
    }
    let find = |length: i64, model: &str, quantity: &str| -> Option<&AuthorsRecord> {
        records
            .iter()
            .find(|record| record.length == length && record.model == model && record.quantity == quantity)
    };
    let (mut problems, mut open, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    // By length, where SGD has arrived: softmax, linear attention, their difference.
    let mut curves: [Vec<(i64, Measured)>; 3] = Default::default();
    for &length in &lengths {
        let mut tested = Vec::new();
        for (curve, model) in ["softmax", "linear"].into_iter().enumerate() {
            let (Some(test), Some(trained), Some(best), Some(bayes)) = (
                find(length, model, "test-error"),
                find(length, model, "trained-error"),
                find(length, model, "optimum"),
                find(length, "bayes", "optimum"),
            ) else {
                open.push(format!("{model} at L = {length} has no test error, optimum or Bayes beside it"));
                continue;
            };
            let error = test.number.error().hypot(bayes.number.error());
            if test.number.value < bayes.number.value - ERRORS * error {
                open.push(format!(
                    "{model} at L = {length} is better than Bayes, so none of the numbers is to be trusted"
                ));
            }
            let (trained, best) = (trained.number.value, best.number.value);
            if !test.ending.starts_with("all steps") {
                left_out.push(format!("{model} at L = {length} (SGD {})", test.ending));
            } else if trained <= ARRIVED * best {
                curves[curve].push((length, test.number));
                tested.push(test.number);
            } else {
                left_out.push(format!(
                    "{model} at L = {length} (error {}, optimum {})",
                    figures(trained),
                    figures(best)
                ));
            }
        }
        if let [softmax, linear] = tested[..] {
            // Both are tested on the same prompts; adding their errors as if independent is on the safe side for a
            // difference of positively correlated numbers.
            let error = softmax.error().hypot(linear.error());
            curves[2].push((length, Measured::sampled((softmax.value - linear.value).abs(), error)));
        }
    }
    let told = |number: Measured| format!("{:.3} ± {:.3}", number.value, number.error());
    let mut sentences = Vec::new();
    for (name, curve) in
        ["the error of softmax", "the error of linear attention", "the difference of the two"]
            .iter()
            .zip(&curves)
    {
        for pair in curve.windows(2) {
            let [(before, first), (after, then)] = [pair[0], pair[1]];
            if then.value - first.value > ERRORS * first.error().hypot(then.error()) {
                problems.push(format!(
                    "{name} rises from {} at L = {before} to {} at L = {after}",
                    told(first),
                    told(then)
                ));
            }
        }
        let [(shortest, first), .., (longest, last)] = curve[..] else {
            open.push(format!("{name} is known at fewer than two lengths"));
            continue;
        };
        if (Some(&shortest), Some(&longest)) != (lengths.first(), lengths.last()) {
            open.push(format!("{name} is not known at the shortest and the longest length"));
        }
        let (fall, error) = (first.value - last.value, ERRORS * first.error().hypot(last.error()));
        if fall + error < NO_FALL * first.value {
            problems.push(format!("{name} does not fall from L = {shortest} to L = {longest}"));
        } else if fall <= error {
            open.push(format!("the fall of {name} from L = {shortest} to L = {longest} is not resolved"));
        }
        sentences.push(format!(
            "{name} {} at L = {shortest} and {} at L = {longest}",
            told(first),
            told(last)
        ));
    }
    let mut reason = format!(
        "Where SGD has arrived, on test prompts (sampled, one standard error): {}.",
        sentences.join("; ")
    );
    if !left_out.is_empty() {
        reason +=
            &format!(" Not measurable, and left out, because SGD has not arrived: {}.", left_out.join("; "));
    }
    let evidence = vec![Block::Figure(authors_figure(&records)), Block::Table(authors_table(&records))];
    Ok(regression::weighed(CLAIM.name, problems, open, reason, evidence))
}
