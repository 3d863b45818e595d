//! Recall: small models of several mechanisms learn to look up values by their keys, seed by seed.

use super::{Kind, Plan};
use crate::measured::{Measured, NUMBER};
use crate::tabulating::take_constant;
use esscher_core::Monitor;
use esscher_core::numerics::InstructionSet;
use esscher_lab::specification::{Bounds, Mistake, Section};
use esscher_lab::{Column, Failure, Table, Unit, Value};
use esscher_report::{Axis, Block, Cell, DataTable, Figure, Mark, Scale, Series};
use esscher_zoo::catalogue::names;
use esscher_zoo::tasks::recall::{Filler, Recall};
use esscher_zoo::tasks::{Segment, Task};
use esscher_zoo::training::{
    Continue, Ended, Model, Progress, Schedule, Streaming, Trained, Trial, evaluate,
};
use std::num::NonZero;

pub(super) const KIND: Kind = Kind {
    name: "recall",
    title: "Recall by small models",
    summary: "Small models of any mechanisms, trained on multi-query associative recall: loss, accuracy, streaming, state.",
    example: r#"kind = "recall"
mechanisms = ["softmax", "gla"]
vocabulary = 32
length = 16
pairs = 2
width = 16
heads = 1
steps = 60
batch = 16
learning_rate = 0.01
warm_up = 5
test_examples = 100
"#,
    read,
};

const COLUMNS: [(&str, Column); 5] = [
    ("mechanism", Column::Text),
    ("seed", Column::Integer),
    ("quantity", Column::Text),
    ("step", Column::Integer),
    ("ending", Column::Text),
];

/// What a row holds.
mod quantity {
    /// Mean over a stretch of training batches, with its standard error over them.
    pub(super) const LOSS: &str = "loss";
    pub(super) const ACCURACY: &str = "accuracy";
    /// Before the first step.
    pub(super) const FIRST_LOSS: &str = "first-loss";
    /// On examples that no training has seen.
    pub(super) const TEST_LOSS: &str = "test-loss";
    pub(super) const TEST_ACCURACY: &str = "test-accuracy";
    /// The share of test answers that are the same token by token.
    pub(super) const STREAMING: &str = "streaming-agreement";
    /// Bytes between two tokens at the end of a sequence.
    pub(super) const STATE: &str = "state-bytes";
    /// Numbers that training changes.
    pub(super) const SIZE: &str = "trained-numbers";
}

/// Points of a training curve.
const STRETCHES: usize = 40;

/// Logits of one sequence at most, so that a batch of them fits into memory.
const MOST_LOGITS: usize = 1 << 24;

/// Test sequences that are run token by token.
const STREAMED: usize = 16;

struct Trials {
    task: Recall,
    trials: Vec<Trial>,
    test_examples: usize,
    /// Accuracy over a stretch at which training stops.
    until: f64,
}

fn read(section: &mut Section, seed: u64, instructions: InstructionSet) -> Result<Box<dyn Plan>, Mistake> {
    if instructions != InstructionSet::best() {
        let message = format!(
            "trainings use this machine's best instructions, {}; found {instructions}",
            InstructionSet::best()
        );
        return Err(section.mistake("kind", message));
    }
    let known: Vec<(&'static str, &'static str)> = names().map(|name| (name, name)).collect();
    let mechanisms = section.choices("mechanisms", &known, None)?;
    let vocabulary = section.integer("vocabulary", 4..=65_536, Some(128))? as usize;
    let length = section.integer("length", 4..=4096, Some(64))? as usize;
    let pairs = section.integer("pairs", 1..=1024, Some(4))? as usize;
    let fillers = [("zero", Filler::Zero), ("uniform", Filler::Uniform)];
    let filler = section.choice("filler", &fillers, Some("zero"))?;
    let made = Recall::new(vocabulary, length, pairs, filler);
    let task = accept(section, "vocabulary", made)?;
    if vocabulary * length > MOST_LOGITS {
        let message =
            format!("vocabulary times length is at most {MOST_LOGITS}, found {}", vocabulary * length);
        return Err(section.mistake("vocabulary", message));
    }
    let width = section.integer("width", 1..=1024, Some(64))? as usize;
    let heads = section.integer("heads", 1..=64, Some(2))? as usize;
    let layers = section.integer("layers", 1..=32, Some(2))? as usize;
    let convolution = section.integer("convolution", 0..=16, Some(4))? as usize;
    let defaults = Schedule::default();
    let schedule = Schedule {
        steps: section.integer("steps", 1..=10_000_000, Some(1500))? as usize,
        batch: section.integer("batch", 1..=8192, Some(defaults.batch as u64))? as usize,
        learning_rate: section.real(
            "learning_rate",
            Bounds::Between(0.0, 10.0),
            Some(defaults.learning_rate),
        )?,
        warm_up: section.integer("warm_up", 0..=1_000_000, Some(defaults.warm_up as u64))? as usize,
        weight_decay: section.real(
            "weight_decay",
            Bounds::Between(0.0, 10.0),
            Some(defaults.weight_decay),
        )?,
        ..defaults
    };
    let until = section.real("until_accuracy", Bounds::Between(0.0, 2.0), Some(0.995))?;
    let seeds = section.integer("seeds", 1..=1000, Some(1))?;
    let test_examples = section.integer("test_examples", 1..=1_000_000, Some(1000))? as usize;
    let mut trials = Vec::new();
    for name in mechanisms {
        for number in 0..seeds {
            let trial = Trial {
                name: name.to_string(),
                width,
                heads,
                layers,
                convolution: NonZero::new(convolution).map(NonZero::get),
                schedule,
                seed: seed + number,
            };
            accept(section, "mechanisms", trial.specification(vocabulary))?;
            trials.push(trial);
        }
    }
    Ok(Box::new(Trials { task, trials, test_examples, until }))
}

/// What the zoo refuses, as a mistake at the key that it names.
fn accept<T>(
    section: &mut Section,
    otherwise: &'static str,
    made: esscher_zoo::Result<T>,
) -> Result<T, Mistake> {
    let key = match &made {
        Err(esscher_zoo::Error::Option { name, .. }) => {
            ["length", "pairs", "heads", "layers"].into_iter().find(|key| key == name)
        }
        _ => None,
    };
    section.accept(key.unwrap_or(otherwise), made)
}

impl Plan for Trials {
    fn units(&self) -> Vec<Unit> {
        self.trials
            .iter()
            .map(|trial| {
                let tokens = (trial.schedule.batch * self.task.length()) as f64;
                // Measured on a slow core: some nanoseconds per multiplication of the projections.
                let work = tokens
                    * (trial.layers * 8 * trial.width.pow(2) + trial.width * self.task.vocabulary()) as f64;
                let cost = trial.schedule.steps as f64 * (1e-3 + 1e-9 * work);
                Unit { label: format!("{}, seed {}", trial.name, trial.seed), cost }
            })
            .collect()
    }

    fn run_unit(&self, unit: usize, monitor: &dyn Monitor) -> Result<Option<Table>, Failure> {
        let trial = self.trials.get(unit).ok_or_else(|| format!("there is no unit {unit}"))?;
        let steps = trial.schedule.steps;
        let stretch = steps.div_ceil(STRETCHES);
        let mut curve: Vec<Stretch> = Vec::new();
        let mut current: Vec<Progress> = Vec::new();
        let mut interrupted = false;
        let trained = trial.run(&self.task, &mut |progress| {
            monitor.progress(progress.step + 1, steps);
            if monitor.should_stop() {
                interrupted = true;
                return Continue::No;
            }
            current.push(progress);
            if current.len() < stretch && progress.step + 1 < steps {
                return Continue::Yes;
            }
            let done = Stretch::of(&current);
            current.clear();
            let enough = done.accuracy.value >= self.until;
            curve.push(done);
            if enough { Continue::No } else { Continue::Yes }
        })?;
        if interrupted {
            return Ok(None);
        }
        self.table(trial, &trained, &curve).map(Some)
    }

    fn sections(&self, result: &Table) -> Result<Vec<esscher_report::Section>, Failure> {
        let records = records(result)?;
        Ok(vec![self.section(&records)])
    }
}

/// Some steps of training together.
struct Stretch {
    last_step: usize,
    loss: Measured,
    accuracy: Measured,
}

impl Stretch {
    fn of(steps: &[Progress]) -> Self {
        let mean = |pick: fn(&Progress) -> f64| {
            let count = steps.len() as f64;
            let mean = steps.iter().map(pick).sum::<f64>() / count;
            let squares = steps.iter().map(|step| (pick(step) - mean).powi(2)).sum::<f64>();
            let error = (steps.len() > 1).then(|| (squares / (count * (count - 1.0))).sqrt());
            Measured { error, ..Measured::sampled(mean, 0.0) }
        };
        Stretch {
            last_step: steps.last().map_or(0, |step| step.step + 1),
            loss: mean(|step| step.loss),
            accuracy: mean(|step| step.accuracy),
        }
    }
}

impl Trials {
    fn table(&self, trial: &Trial, trained: &Trained, curve: &[Stretch]) -> Result<Table, Failure> {
        let columns: Vec<(&str, Column)> = COLUMNS.iter().chain(&NUMBER).copied().collect();
        let mut table = Table::new(&columns);
        let ending = match trained.ended {
            Ended::Stopped => "reached the accuracy asked for".to_string(),
            ended => ended.to_string(),
        };
        let mut push = |quantity: &str, step: Option<usize>, number: Measured| {
            let head: [Value; 5] = [
                trial.name.as_str().into(),
                (trial.seed as i64).into(),
                quantity.into(),
                step.map(|step| step as i64).into(),
                ending.as_str().into(),
            ];
            table.push(head.into_iter().chain(number.values()))
        };
        if trained.first_loss.is_finite() {
            push(quantity::FIRST_LOSS, None, Measured::sampled(trained.first_loss, 0.0).without_error())?;
        }
        for stretch in curve {
            push(quantity::LOSS, Some(stretch.last_step), stretch.loss)?;
            push(quantity::ACCURACY, Some(stretch.last_step), stretch.accuracy)?;
        }
        if trained.ended == Ended::Diverged {
            return Ok(table);
        }
        let test = evaluate(&trained.model, &self.task, trial.seed, self.test_examples)?;
        push(quantity::TEST_LOSS, Some(trained.steps), Measured::sampled(test.loss, 0.0).without_error())?;
        // Answers of one sequence are not independent: the variance of a sequence's share is at most that of one answer.
        let error = (test.accuracy * (1.0 - test.accuracy) / self.test_examples as f64).sqrt();
        push(quantity::TEST_ACCURACY, Some(trained.steps), Measured::sampled(test.accuracy, error))?;
        if let Some((agreement, bytes)) = self.streamed(&trained.model, trial.seed)? {
            push(quantity::STREAMING, None, Measured::exact(agreement, 0.0))?;
            push(quantity::STATE, None, Measured::exact(bytes as f64, 0.0))?;
        }
        push(quantity::SIZE, None, Measured::exact(trained.model.size() as f64, 0.0))?;
        Ok(table)
    }

    /// The share of all predictions that are the same token by token, and the bytes of the state; none where a model cannot stream.
    fn streamed(&self, model: &Model, seed: u64) -> Result<Option<(f64, usize)>, Failure> {
        let Ok(fresh) = Streaming::new(model) else { return Ok(None) };
        let (vocabulary, length) = (self.task.vocabulary(), self.task.length());
        let batch = self.task.batch(seed, Segment::Test, 0, STREAMED);
        let best = |logits: &[f32]| (0..logits.len()).max_by(|&a, &b| logits[a].total_cmp(&logits[b]));
        let (mut same, mut bytes) = (0usize, 0);
        for tokens in batch.tokens.chunks(length) {
            let whole = model.logits(tokens, length)?;
            let mut streaming = fresh.clone();
            for (&token, row) in tokens.iter().zip(whole.chunks(vocabulary)) {
                same += usize::from(best(&streaming.step(token)?) == best(row));
            }
            bytes = streaming.bytes();
        }
        Ok(Some((same as f64 / batch.tokens.len() as f64, bytes)))
    }

    fn section(&self, records: &[Record]) -> esscher_report::Section {
        let mut lines: Vec<(&str, i64)> = Vec::new();
        for record in records {
            if !lines.contains(&(record.mechanism.as_str(), record.seed)) {
                lines.push((&record.mechanism, record.seed));
            }
        }
        let of = |line: (&str, i64), quantity: &str| -> Vec<&Record> {
            records
                .iter()
                .filter(|record| {
                    (record.mechanism.as_str(), record.seed) == line && record.quantity == quantity
                })
                .collect()
        };
        let several = lines.iter().any(|line| line.1 != lines[0].1);
        let name = |line: (&str, i64)| match several {
            true => format!("{}, seed {}", line.0, line.1),
            false => line.0.to_string(),
        };
        let number =
            |line, quantity| of(line, quantity).last().map_or(Cell::Missing, |record| record.number.cell());
        let mut rows: Vec<Vec<Cell>> = lines
            .iter()
            .map(|&line| {
                let test = of(line, quantity::TEST_ACCURACY);
                let ending = records.iter().find(|record| (record.mechanism.as_str(), record.seed) == line);
                vec![
                    Cell::Text(line.0.to_string()),
                    Cell::Integer(line.1),
                    test.last().map_or(Cell::Missing, |record| record.number.cell()),
                    number(line, quantity::FIRST_LOSS),
                    number(line, quantity::TEST_LOSS),
                    test.last().and_then(|record| record.step).map_or(Cell::Missing, Cell::Integer),
                    number(line, quantity::STREAMING),
                    number(line, quantity::STATE),
                    number(line, quantity::SIZE),
                    Cell::Text(ending.map_or(String::new(), |record| record.ending.clone())),
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
            self.test_examples
        );
        for column in ["seed", "ending"] {
            match take_constant(&mut columns, &mut rows, column) {
                Some(Cell::Text(text)) => caption.push_str(&format!(" All: {column} {text}.")),
                Some(Cell::Integer(number)) => caption.push_str(&format!(" All: {column} {number}.")),
                _ => {}
            }
        }
        let curves = |id: &str, title: &str, quantity: &str, scale: Scale| {
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
            self.task.pairs(),
            self.task.vocabulary()
        );
        esscher_report::Section {
            id: "recall".to_string(),
            title: "Multi-query associative recall".to_string(),
            verdict: None,
            blocks: vec![
                Block::Prose(prose),
                Block::Table(DataTable { id: "recall".to_string(), caption, columns, rows }),
                Block::Figure(curves(
                    "recall-accuracy",
                    "Accuracy in training",
                    quantity::ACCURACY,
                    Scale::Linear,
                )),
                Block::Figure(curves("recall-loss", "Loss in training", quantity::LOSS, Scale::Logarithmic)),
            ],
        }
    }
}

struct Record {
    mechanism: String,
    seed: i64,
    quantity: String,
    step: Option<i64>,
    ending: String,
    number: Measured,
}

fn records(result: &Table) -> Result<Vec<Record>, Failure> {
    result
        .rows()
        .map(|row| {
            Ok(Record {
                mechanism: row.text("mechanism")?.to_string(),
                seed: row.integer("seed")?,
                quantity: row.text("quantity")?.to_string(),
                step: match row.value("step")? {
                    Value::Missing => None,
                    _ => Some(row.integer("step")?),
                },
                ending: row.text("ending")?.to_string(),
                number: Measured::read(&row)?,
            })
        })
        .collect()
}
