//! The audit's kinds: what is measured of the heads of a checkpoint, and of a checkpoint whose heads are replaced.

mod calibrated;
pub(crate) mod dumps;
pub(crate) mod evidence;
mod excerpt;
pub(crate) mod heads;
mod heads_sections;
pub(crate) mod model;
mod model_sections;
pub(crate) mod subject;

pub(crate) use excerpt::Excerpt;

use esscher_audit::candidate::Frame;
use esscher_audit::head::Order;
use esscher_audit::model::Shape;
use esscher_audit::replacement::BLOCK;
use esscher_core::numerics::InstructionSet;
use esscher_lab::specification::{Mistake, Section};

/// Reads `window` and makes the frame of a model: where every token sees all there is none.
fn frame(section: &mut Section, shape: &Shape) -> Result<Frame, Mistake> {
    let frame = Frame::default();
    let default = match shape.order {
        Order::Causal => frame.window,
        Order::Whole => 0,
    };
    let window = section.integer("window", 0..=65_536, Some(default as u64))? as usize;
    if shape.order == Order::Whole && window > 0 {
        let message =
            format!("every token of this model sees all: there is no window, expected 0, found {window}");
        return Err(section.mistake("window", message));
    }
    Ok(Frame { window, ..frame })
}

/// What is kept exactly, in words.
fn frame_in_words(frame: &Frame) -> String {
    let window = match frame.window {
        0 => String::new(),
        window => format!(", the last {window} to {}", window + BLOCK),
    };
    format!(
        "the first {} tokens{window}, and the first {} whose value is shorter than {} of the median",
        frame.atoms.first, frame.atoms.most_light, frame.atoms.light
    )
}

/// Refuses texts that the model does not take.
fn check_context(
    section: &mut Section,
    key: &'static str,
    length: usize,
    context: usize,
) -> Result<(), Mistake> {
    if length <= context {
        return Ok(());
    }
    Err(section.mistake(key, format!("{length} tokens are more than the model's context of {context}")))
}

/// Refuses texts in which everything is kept exactly.
fn check_replaced(
    section: &mut Section,
    key: &'static str,
    length: usize,
    frame: &Frame,
) -> Result<(), Mistake> {
    let least = frame.first_replaced() + BLOCK;
    if length >= least {
        return Ok(());
    }
    let message = format!(
        "of {length} tokens too few would be replaced to measure: ask for at least {least}, or for a smaller `window`"
    );
    Err(section.mistake(key, message))
}

/// Forward passes use the best instructions of the machine: others are refused, since a result names those that made it.
fn check_instruction_set(section: &mut Section, asked: InstructionSet) -> Result<(), Mistake> {
    let best = InstructionSet::best();
    if asked == best {
        return Ok(());
    }
    Err(section.mistake(
        "kind",
        format!("an audit runs with the instruction set {best}, found {asked}: leave it out"),
    ))
}

/// No text is shorter.
const SHORTEST: u64 = 2;
