//! Training: batches of a task in, better weights out; same seed, same bits, on any number of threads.

use super::model::Model;
use super::optimiser::{AdamW, Schedule};
use super::specification::ModelSpecification;
use super::tape::{Profile, Spent, Tape, timed};
use crate::error::{Error, Result};
use crate::mechanism::Mechanism;
use crate::tasks::{Segment, Task};
use esscher_core::Ending;
use std::sync::Arc;

/// What an observer sees of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// The step, counted from zero.
    pub step: usize,
    /// The mean loss of its batch, before the step.
    pub loss: f64,
    /// The accuracy on its batch, before the step.
    pub accuracy: f64,
    /// The norm of the gradient before it was shortened.
    pub gradient_norm: f64,
}

/// Whether to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Continue {
    /// Make the next step.
    Yes,
    /// Stop after this step.
    No,
}

/// A trained model and how its training went.
#[derive(Debug, Clone)]
pub struct Trained {
    /// The model.
    pub model: Model,
    /// Steps that were made.
    pub steps: usize,
    /// How it ended: completed, stopped by the observer, or diverged. Then the last loss is not finite, the weights are those
    /// before its step, and a smaller learning rate may help.
    pub ending: Ending,
    /// The loss of the first batch, before any step.
    pub first_loss: f64,
    /// The loss of the last batch.
    pub last_loss: f64,
}

/// The mechanism of (step, layer), where it is not the layer's own.
pub type MechanismAt<'a> = dyn Fn(usize, usize) -> Option<Arc<dyn Mechanism>> + 'a;

/// What may differ from step to step, and what to note on the way.
#[derive(Default)]
pub struct Options<'a> {
    /// The mechanism of a layer at a step, where it is not the layer's own: a window drawn anew for every batch, for example.
    /// It must have the ports and parameters of the layer's own.
    pub mechanism_at: Option<&'a MechanismAt<'a>>,
    /// Where times are noted, by part of the step.
    pub profile: Option<Profile>,
}

/// Trains a new model on a task; the seed decides weights and examples.
///
/// # Errors
/// A specification that makes no model, a task with more tokens than the model, or an empty schedule.
pub fn train(
    specification: ModelSpecification,
    task: &dyn Task,
    schedule: &Schedule,
    seed: u64,
    observer: &mut dyn FnMut(Progress) -> Continue,
) -> Result<Trained> {
    train_from(Model::new(specification, seed)?, task, schedule, seed, &Options::default(), observer)
}

/// Trains a model on from where it is, with options.
///
/// # Errors
/// As [`train`]; also a mechanism in place of another that reads other things.
pub fn train_from(
    mut model: Model,
    task: &dyn Task,
    schedule: &Schedule,
    seed: u64,
    options: &Options<'_>,
    observer: &mut dyn FnMut(Progress) -> Continue,
) -> Result<Trained> {
    check(&model, task, schedule)?;
    keep_pages();
    let profile = options.profile.as_ref();
    let mut optimiser = AdamW::default();
    let (mut first_loss, mut last_loss) = (f64::NAN, f64::NAN);
    for step in 0..schedule.steps {
        // Whole batches, so that none reads beyond the examples.
        let batches = (schedule.examples.unwrap_or(1 << 31) as usize / schedule.batch).max(1);
        let first = step % batches * schedule.batch;
        let batch = timed(
            profile,
            "batch",
            |spent: &mut Spent| &mut spent.forward,
            || task.batch(seed, Segment::Train, first as u32, schedule.batch),
        );
        let mechanisms = mechanisms_at(&model, step, options)?;
        let mut tape = Tape::new(options.profile.clone());
        let leaves = model.leaves(Some(&mut tape));
        let judged = model.judge(&mut tape, &leaves, &mechanisms, &batch)?;
        last_loss = f64::from(judged.loss.numbers()[0]);
        if step == 0 {
            first_loss = last_loss;
        }
        let ended = |model, steps, ending| Ok(Trained { model, steps, ending, first_loss, last_loss });
        if !last_loss.is_finite() {
            return ended(model, step, Ending::Diverged);
        }
        let gradients = tape.gradients(judged.loss, &leaves);
        let gradient_norm = timed(
            profile,
            "optimiser",
            |spent: &mut Spent| &mut spent.forward,
            || optimiser.step(schedule, step, model.weights_mut(), &gradients),
        );
        let accuracy = batch.accuracy(&judged.predictions);
        if observer(Progress { step, loss: last_loss, accuracy, gradient_norm }) == Continue::No {
            return ended(model, step + 1, Ending::Stopped);
        }
    }
    Ok(Trained { model, steps: schedule.steps, ending: Ending::Completed, first_loss, last_loss })
}

/// Lets the allocator keep the memory of a step for the next one.
///
/// glibc gives it back to the system after every step, which then clears it again: a fifth of a step's time. Its thresholds
/// for doing so rise to twice the largest block that was ever freed, of at most 32 MiB. Elsewhere this does nothing.
fn keep_pages() {
    drop(std::hint::black_box(vec![0u8; (32 << 20) - (1 << 14)]));
}

fn check(model: &Model, task: &dyn Task, schedule: &Schedule) -> Result<()> {
    let refuse = |name, expected: String, found: String| Err(Error::Option { name, expected, found });
    let vocabulary = model.specification().vocabulary;
    if task.vocabulary() > vocabulary {
        return refuse(
            "vocabulary of the task",
            format!("at most the model's, {vocabulary}"),
            task.vocabulary().to_string(),
        );
    }
    if schedule.batch == 0 {
        return refuse("batch", "at least 1".to_string(), "0".to_string());
    }
    for (name, number) in [
        ("learning rate", schedule.learning_rate),
        ("weight decay", schedule.weight_decay),
        ("clip", schedule.clip),
    ] {
        if !(number.is_finite() && number >= 0.0) {
            return refuse(name, "a finite number, at least 0".to_string(), number.to_string());
        }
    }
    Ok(())
}

fn mechanisms_at(model: &Model, step: usize, options: &Options<'_>) -> Result<Vec<Arc<dyn Mechanism>>> {
    let mut mechanisms = model.mechanisms();
    let Some(mechanism_at) = options.mechanism_at else { return Ok(mechanisms) };
    for (layer, own) in mechanisms.iter_mut().enumerate() {
        if let Some(other) = mechanism_at(step, layer) {
            if other.signature() != own.signature() {
                return Err(Error::Option {
                    name: "mechanism of a step",
                    expected: format!("one with the ports and parameters of {own:?}"),
                    found: format!("{other:?}"),
                });
            }
            *own = other;
        }
    }
    Ok(mechanisms)
}

/// How a model does on a task.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evaluation {
    /// The mean loss.
    pub loss: f64,
    /// The accuracy.
    pub accuracy: f64,
}

/// Loss and accuracy on test examples, which no training of the same seed has seen.
///
/// # Errors
/// No examples, or a task with more tokens than the model.
pub fn evaluate(model: &Model, task: &dyn Task, seed: u64, examples: usize) -> Result<Evaluation> {
    const BATCH: usize = 128;
    if examples == 0 {
        return Err(Error::Option {
            name: "examples",
            expected: "at least 1".to_string(),
            found: "0".to_string(),
        });
    }
    let leaves = model.leaves(None);
    let mechanisms = model.mechanisms();
    let (mut loss, mut accuracy) = (0.0, 0.0);
    for from in (0..examples).step_by(BATCH) {
        let count = BATCH.min(examples - from);
        let batch = task.batch(seed, Segment::Test, from as u32, count);
        let judged = model.judge(&mut Tape::default(), &leaves, &mechanisms, &batch)?;
        let part = count as f64 / examples as f64;
        loss += part * f64::from(judged.loss.numbers()[0]);
        accuracy += part * batch.accuracy(&judged.predictions);
    }
    Ok(Evaluation { loss, accuracy })
}
