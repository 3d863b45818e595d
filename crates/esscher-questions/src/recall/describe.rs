//! The answer as a document: who recalls, curves of accuracy and loss, a table of trainings.

use super::answer::{Quantity, Row};
use super::compute::{STREAMED, Trials};
use crate::drawing::Drawing;
use crate::tabulating::{Tabulation, distinct};
use esscher_core::Ending;
use esscher_report::{Axis, Block, Section, literal};
use esscher_zoo::tasks::Task;

pub(super) fn section(trials: &Trials, rows: &[Row]) -> Section {
    let lines = distinct(rows.iter().map(|row| (row.mechanism.as_str(), row.seed, row.ending)));
    let of = |(name, seed, _): (&str, u64, Ending), quantity: Quantity| -> Vec<&Row> {
        let is_mine = |row: &&Row| row.mechanism == name && row.seed == seed && row.quantity == quantity;
        rows.iter().filter(is_mine).collect()
    };
    let number = |line, quantity| of(line, quantity).last().map(|row| row.number);
    let steps = |line| of(line, Quantity::TestAccuracy).last().and_then(|row| row.step);
    let table = Tabulation::of(&lines)
        .column("mechanism", |line| line.0)
        .column("seed", |line| line.1)
        .column("test accuracy", |line| number(*line, Quantity::TestAccuracy))
        .column("first loss", |line| number(*line, Quantity::FirstLoss))
        .column("test loss", |line| number(*line, Quantity::TestLoss))
        .column("steps", |line| steps(*line))
        .column("same when streamed", |line| number(*line, Quantity::Streaming))
        .column("state, bytes", |line| number(*line, Quantity::State))
        .column("trained numbers", |line| number(*line, Quantity::Size))
        .column("ending", |line| in_words(line.2))
        .constant("seed", "The seed")
        .constant("ending", "Every training")
        .table(
            "recall",
            format!(
                "Accuracy over {} test examples with one standard error; the share of predictions that are the same \
                 token by token, over {STREAMED} sequences.",
                trials.test_examples
            ),
        );
    let several = trials.trials.iter().any(|trial| trial.seed != trials.trials[0].seed);
    let curves = |title: &str, quantity: Quantity, y: Axis| {
        let mut drawing = Drawing::default();
        for (colour, &line) in lines.iter().enumerate() {
            let seed = if several { format!(", seed {}", line.1) } else { String::new() };
            let curve = of(line, quantity);
            let points = curve.iter().map(|row| row.number.point(row.step.unwrap_or(0) as f64));
            drawing.line(format!("{}{seed}", line.0), colour, points.collect());
        }
        let caption = "Means over stretches of training batches, before the steps; bars are one standard error over the batches.";
        Block::Figure(drawing.figure(format!("recall-{quantity}"), title, caption, (Axis::linear("step"), y)))
    };
    // Any value that the sequence has shown, at random.
    let chance = 1.0 / trials.task.pairs() as f64;
    let named = |line: &(&str, u64, Ending)| {
        let seed = if several { format!(" (seed {})", line.1) } else { String::new() };
        format!("{}{seed}", literal(line.0))
    };
    let told = lines.iter().filter_map(|line| {
        let accuracy = number(*line, Quantity::TestAccuracy)?;
        let after = steps(*line).map_or(String::new(), |steps| format!(" after {steps} steps"));
        let share = percent(accuracy.value);
        let doubt = accuracy.error.map_or(String::new(), |error| format!(" ± {}", percent(error)));
        Some(format!("{} {share}{doubt} %{after}", named(line)))
    });
    let told = told.collect::<Vec<_>>().join("; ");
    let mut lead = match told.is_empty() {
        true => "No model could be asked for what it was told before.".to_string(),
        false => format!(
            "Asked for what they were told before, the models answer rightly: {told}. Naming one of the {} values that a \
             sequence shows, at random, is right in about {} %.",
            trials.task.pairs(),
            percent(chance)
        ),
    };
    // What diverged is not tested, and may have left no number at all.
    let trained = trials.trials.iter().map(|trial| (trial.name.as_str(), trial.seed, Ending::Diverged));
    let diverged = trained.filter(|line| number(*line, Quantity::TestAccuracy).is_none());
    let diverged = diverged.map(|line| named(&line)).collect::<Vec<_>>();
    if !diverged.is_empty() {
        lead += &format!(" Training diverged: {}. Try a smaller learning rate.", diverged.join(", "));
    }
    let prose = format!(
        "Every sequence shows {} keys with their values and asks for each once more; of {} tokens, half are \
         keys. The model must name the value at the place of the key.",
        trials.task.pairs(),
        trials.task.vocabulary()
    );
    let rest = Block::Folded {
        id: String::new(),
        title: "Loss, sizes, and the same answers token by token".to_string(),
        blocks: vec![
            curves("Loss in training", Quantity::Loss, Axis::logarithmic("loss")),
            Block::Table(table),
        ],
    };
    let blocks = vec![
        Block::Lead(lead),
        Block::Prose(prose),
        curves(
            "The share of right answers while the models learn",
            Quantity::Accuracy,
            Axis::from_zero("share of right answers"),
        ),
        rest,
    ];
    Section::new("recall", "Which small models recall", blocks)
}

/// A share in per cent, to a tenth.
fn percent(share: f64) -> f64 {
    (1e3 * share).round() / 10.0
}

fn in_words(ending: Ending) -> &'static str {
    match ending {
        Ending::GoalReached => "reached the accuracy asked for",
        Ending::Diverged => "diverged: the loss is not finite, try a smaller learning rate",
        _ => "finished",
    }
}
