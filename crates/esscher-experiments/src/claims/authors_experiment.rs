//! Claim: the authors' figure, error against length for softmax and linear attention trained by SGD.

use super::{Claim, Judgement, regression};
use crate::kinds::{AuthorsRecord, authors_errors, authors_figure, authors_table};
use crate::measured::{Measured, figures};
use esscher_lab::{Failure, Table};
use esscher_report::Block;

pub(super) const CLAIM: Claim = Claim {
    name: "authors-experiment",
    title: "The authors' experiment: softmax and linear attention approach each other and the floor",
    statement: "Trained by SGD on in-context linear regression, softmax and linear attention both improve with the prompt length, and the \
                difference of their errors closes.",
    formula: r"\mathrm{MSE}_{\mathrm{softmax}}(L) - \mathrm{MSE}_{\mathrm{linear}}(L) \to 0, \qquad \mathrm{MSE}(L) \downarrow s^2 = 0.1",
    citation: "Boursier & Boyer 2025, arXiv 2512.11784, the experiments.",
    measurement: "Their setting (d = 5, separate Q, K, V, O, noise 0.1, batches of 128 fresh prompts, SGD on the mean squared error), with a test on fresh \
                  prompts; beside it the exact optimum of each attention and the posterior mean. The small form takes a \
                  hundredth of the steps at a hundred times the rate.",
    criterion: "From the shortest to the longest length one of the two test errors, or the size of their difference, does not fall by more than \
                four standard errors; or a test error lies more than four standard errors below Bayes, which no predictor \
                can. If a test error does not change, one of these three falls is claimed with probability at most $10^{-4}$ in all. \
                Standard errors are of the test; a training is one draw of initial layer and prompts.",
    quick: include_str!("../../../../experiments/authors-experiment/quick.toml"),
    full: include_str!("../../../../experiments/authors-experiment/full.toml"),
    judge,
};

/// Standard errors: a one-sided false alarm of 3e-5.
const ERRORS: f64 = 4.0;

fn judge(result: &Table) -> Result<Judgement, Failure> {
    let records = authors_errors(result)?;
    let mut lengths: Vec<i64> = records.iter().map(|record| record.length).collect();
    lengths.sort_unstable();
    lengths.dedup();
    let [shortest, .., longest] = *lengths.as_slice() else {
        return Ok(regression::undecided("two lengths at least are needed"));
    };
    let find = |length: i64, model: &str, quantity: &str| -> Option<&AuthorsRecord> {
        records
            .iter()
            .find(|record| record.length == length && record.model == model && record.quantity == quantity)
    };
    let mut problems = Vec::new();
    let mut ends = Vec::new();
    for length in [shortest, longest] {
        let (Some(softmax), Some(linear)) =
            (find(length, "softmax", "test-error"), find(length, "linear", "test-error"))
        else {
            return Ok(regression::undecided(&format!("a test error at L = {length} is missing")));
        };
        let (softmax, linear) = (softmax.number, linear.number);
        // Both are tested on the same prompts; adding their errors as if independent is on the safe side for a
        // difference of positively correlated numbers.
        let gap =
            Measured::sampled((softmax.value - linear.value).abs(), softmax.error().hypot(linear.error()));
        ends.push([softmax, linear, gap]);
    }
    let names = ["the error of softmax", "the error of linear attention", "the difference of the two"];
    for (index, name) in names.iter().enumerate() {
        let (first, last) = (ends[0][index], ends[1][index]);
        let fall = first.value - last.value;
        if fall <= ERRORS * first.error().hypot(last.error()) {
            problems.push(format!("{name} does not fall from L = {shortest} to L = {longest}"));
        }
    }
    let mut unfinished = Vec::new();
    for record in records.iter().filter(|record| record.quantity == "test-error") {
        if let Some(bayes) = find(record.length, "bayes", "optimum") {
            let error = record.number.error().hypot(bayes.number.error());
            if record.number.value < bayes.number.value - ERRORS * error {
                problems.push(format!("{} at L = {} is better than Bayes", record.model, record.length));
            }
        }
        if record.ending.starts_with("diverged") {
            problems.push(format!("{} at L = {}: {}", record.model, record.length, record.ending));
        }
        let trained = find(record.length, &record.model, "trained-error");
        if let (Some(trained), Some(best)) = (trained, find(record.length, &record.model, "optimum"))
            && trained.number.value > 1.1 * best.number.value
        {
            unfinished.push(format!(
                "{} at L = {} ({}; optimum {})",
                record.model,
                record.length,
                figures(trained.number.value),
                figures(best.number.value)
            ));
        }
    }
    let told = |number: Measured| format!("{:.3} ± {:.3}", number.value, number.error());
    let mut reason = format!(
        "Test errors at L = {shortest} and {longest} (sampled, one standard error): softmax {} and {}, linear {} and {}, difference {} \
         and {}.",
        told(ends[0][0]),
        told(ends[1][0]),
        told(ends[0][1]),
        told(ends[1][1]),
        told(ends[0][2]),
        told(ends[1][2])
    );
    if !unfinished.is_empty() {
        reason += &format!(
            " SGD is still more than a tenth above the optimum of its attention for {}.",
            unfinished.join(" and ")
        );
    }
    let evidence = vec![Block::Figure(authors_figure(&records)), Block::Table(authors_table(&records))];
    Ok(regression::judged(CLAIM.name, problems, reason, evidence))
}
