//! The answer as a document: a table of trainings, curves of accuracy and loss.

use super::answer::{Quantity, Row};
use super::compute::{STREAMED, Trials};
use crate::tabulating::take_constant;
use esscher_core::Ending;
use esscher_report::{Axis, Block, Cell, DataTable, Figure, Mark, Scale, Section, Series};
use esscher_zoo::tasks::Task;

pub(super) fn section(trials: &Trials, records: &[Row]) -> Section {
    let mut lines: Vec<(&str, u64)> = Vec::new();
    for record in records {
        if !lines.contains(&(record.mechanism.as_str(), record.seed)) {
            lines.push((&record.mechanism, record.seed));
        }
    }
    let of = |line: (&str, u64), quantity: Quantity| -> Vec<&Row> {
        records
            .iter()
            .filter(|record| (record.mechanism.as_str(), record.seed) == line && record.quantity == quantity)
            .collect()
    };
    let several = lines.iter().any(|line| line.1 != lines[0].1);
    let name = |line: (&str, u64)| match several {
        true => format!("{}, seed {}", line.0, line.1),
        false => line.0.to_string(),
    };
    let number =
        |line, quantity| of(line, quantity).last().map_or(Cell::Missing, |record| record.number.cell());
    let mut rows: Vec<Vec<Cell>> = lines
        .iter()
        .map(|&line| {
            let test = of(line, Quantity::TestAccuracy);
            let ending = records.iter().find(|record| (record.mechanism.as_str(), record.seed) == line);
            vec![
                Cell::Text(line.0.to_string()),
                Cell::Integer(line.1 as i64),
                test.last().map_or(Cell::Missing, |record| record.number.cell()),
                number(line, Quantity::FirstLoss),
                number(line, Quantity::TestLoss),
                test.last()
                    .and_then(|record| record.step)
                    .map_or(Cell::Missing, |step| Cell::Integer(step as i64)),
                number(line, Quantity::Streaming),
                number(line, Quantity::State),
                number(line, Quantity::Size),
                Cell::Text(ending.map_or(String::new(), |record| in_words(record.ending).to_string())),
            ]
        })
        .collect();
    let mut columns = [
        "mechanism",
        "seed",
        "test accuracy",
        "first loss",
        "test loss",
        "steps",
        "same when streamed",
        "state, bytes",
        "trained numbers",
        "ending",
    ]
    .map(String::from)
    .to_vec();
    let mut caption = format!(
        "Accuracy over {} test examples with one standard error; the share of predictions that are the same token by \
         token, over {STREAMED} sequences.",
        trials.test_examples
    );
    for column in ["seed", "ending"] {
        match take_constant(&mut columns, &mut rows, column) {
            Some(Cell::Text(text)) => caption.push_str(&format!(" All: {column} {text}.")),
            Some(Cell::Integer(number)) => caption.push_str(&format!(" All: {column} {number}.")),
            _ => {}
        }
    }
    let curves = |id: &str, title: &str, quantity: Quantity, scale: Scale| {
        Figure {
        id: id.to_string(),
        title: title.to_string(),
        caption: "Means over stretches of training batches, before the steps; bars are one standard error over the batches."
            .to_string(),
        x: Axis { label: "step".to_string(), scale: Scale::Linear },
        y: Axis { label: quantity.to_string(), scale },
        series: lines
            .iter()
            .enumerate()
            .map(|(colour, &line)| Series {
                name: name(line),
                mark: Mark::Line,
                colour,
                points: of(line, quantity)
                    .iter()
                    .map(|record| record.number.point(record.step.unwrap_or(0) as f64))
                    .collect(),
            })
            .collect(),
    }
    };
    let prose = format!(
        "Every sequence shows {} keys with their values and asks for each once more; of {} tokens, half are keys. The \
         model must name the value at the place of the key.",
        trials.task.pairs(),
        trials.task.vocabulary()
    );
    Section {
        id: "recall".to_string(),
        title: "Multi-query associative recall".to_string(),
        verdict: None,
        blocks: vec![
            Block::Prose(prose),
            Block::Table(DataTable { id: "recall".to_string(), caption, columns, rows }),
            Block::Figure(curves(
                "recall-accuracy",
                "Accuracy in training",
                Quantity::Accuracy,
                Scale::Linear,
            )),
            Block::Figure(curves("recall-loss", "Loss in training", Quantity::Loss, Scale::Logarithmic)),
        ],
    }
}

fn in_words(ending: Ending) -> &'static str {
    match ending {
        Ending::GoalReached => "reached the accuracy asked for",
        Ending::Diverged => "diverged: the loss is not finite, try a smaller learning rate",
        _ => "finished",
    }
}
