//! A unit is a training: its curve, and its test on examples that it has not seen.

use super::answer::{Quantity, Row};
use super::{Ask, describe};
use crate::measured::Measured;
use crate::question::{Compute, Failure, Given, Mistake, Monitor, Section, Unit};
use esscher_core::Ending;
use esscher_core::numerics::InstructionSet;
use esscher_zoo::tasks::recall::Recall;
use esscher_zoo::tasks::{Segment, Task};
use esscher_zoo::training::{Continue, Model, Progress, Schedule, Streaming, Trained, Trial, evaluate};
use std::num::NonZero;

/// Points of a training curve.
const STRETCHES: usize = 40;

/// Logits of one sequence at most, so that a batch of them fits into memory.
const MOST_LOGITS: u64 = 1 << 24;

/// Test sequences that are run token by token.
pub(super) const STREAMED: usize = 16;

pub(super) struct Trials {
    pub(super) task: Recall,
    pub(super) trials: Vec<Trial>,
    pub(super) test_examples: usize,
    /// Accuracy over a stretch at which training stops.
    until: f64,
}

pub(super) fn plan(ask: Ask, section: &mut Section, given: Given) -> Result<Trials, Mistake> {
    let (best, found) = (InstructionSet::best(), given.instruction_set);
    if found != best {
        let message = format!("trainings use this machine's best instructions, {best}; found {found}");
        return Err(section.mistake("kind", message));
    }
    let made = Recall::new(ask.vocabulary as usize, ask.length as usize, ask.pairs as usize, ask.filler);
    let task = accept(section, "vocabulary", made)?;
    if ask.vocabulary * ask.length > MOST_LOGITS {
        let found = ask.vocabulary * ask.length;
        let message = format!("vocabulary times length is at most {MOST_LOGITS}, found {found}");
        return Err(section.mistake("vocabulary", message));
    }
    let schedule = Schedule {
        steps: ask.steps as usize,
        batch: ask.batch as usize,
        learning_rate: ask.learning_rate,
        warm_up: ask.warm_up as usize,
        weight_decay: ask.weight_decay,
        ..Schedule::default()
    };
    let mut trials = Vec::new();
    for name in ask.mechanisms {
        for number in 0..ask.seeds {
            let trial = Trial {
                name: name.to_string(),
                width: ask.width as usize,
                heads: ask.heads as usize,
                layers: ask.layers as usize,
                convolution: NonZero::new(ask.convolution as usize).map(NonZero::get),
                schedule,
                seed: given.seed + number,
            };
            accept(section, "mechanisms", trial.specification(ask.vocabulary as usize))?;
            trials.push(trial);
        }
    }
    let test_examples = ask.test_examples as usize;
    Ok(Trials { task, trials, test_examples, until: ask.until_accuracy })
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

impl Compute for Trials {
    type Row = Row;

    fn units(&self) -> Vec<Unit> {
        let unit = |trial: &Trial| {
            let tokens = (trial.schedule.batch * self.task.length()) as f64;
            // Measured on a slow core: some nanoseconds per multiplication of the projections.
            let per_token = trial.layers * 8 * trial.width.pow(2) + trial.width * self.task.vocabulary();
            let cost = trial.schedule.steps as f64 * (1e-3 + 1e-9 * (tokens * per_token as f64));
            Unit { label: format!("{}, seed {}", trial.name, trial.seed), cost }
        };
        self.trials.iter().map(unit).collect()
    }

    fn run_unit(&self, unit: usize, monitor: &dyn Monitor) -> Result<Option<Vec<Row>>, Failure> {
        let trial = &self.trials[unit];
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
        self.rows(trial, &trained, &curve).map(Some)
    }

    fn describe(&self, rows: &[Row]) -> Result<Vec<esscher_report::Section>, Failure> {
        Ok(vec![describe::section(self, rows)])
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
    fn rows(&self, trial: &Trial, trained: &Trained, curve: &[Stretch]) -> Result<Vec<Row>, Failure> {
        let ending = match trained.ending {
            // We stop it when the accuracy is reached; the user's stop ends the unit before.
            Ending::Stopped => Ending::GoalReached,
            other => other,
        };
        let mut rows = Vec::new();
        let mut push = |quantity, step: Option<usize>, number| {
            rows.push(Row {
                mechanism: trial.name.clone(),
                seed: trial.seed,
                quantity,
                step: step.map(|step| step as u64),
                ending,
                number,
            });
        };
        if trained.first_loss.is_finite() {
            push(Quantity::FirstLoss, None, Measured::sampled(trained.first_loss, 0.0).without_error());
        }
        for stretch in curve {
            push(Quantity::Loss, Some(stretch.last_step), stretch.loss);
            push(Quantity::Accuracy, Some(stretch.last_step), stretch.accuracy);
        }
        if trained.ending == Ending::Diverged {
            return Ok(rows);
        }
        let test = evaluate(&trained.model, &self.task, trial.seed, self.test_examples)?;
        push(Quantity::TestLoss, Some(trained.steps), Measured::sampled(test.loss, 0.0).without_error());
        // Answers of one sequence are not independent: the variance of a sequence's share is at most that of one answer.
        let error = (test.accuracy * (1.0 - test.accuracy) / self.test_examples as f64).sqrt();
        push(Quantity::TestAccuracy, Some(trained.steps), Measured::sampled(test.accuracy, error));
        if let Some((agreement, bytes)) = self.streamed(&trained.model, trial.seed)? {
            push(Quantity::Streaming, None, Measured::exact(agreement, 0.0));
            push(Quantity::State, None, Measured::exact(bytes as f64, 0.0));
        }
        push(Quantity::Size, None, Measured::exact(trained.model.size() as f64, 0.0));
        Ok(rows)
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
}
