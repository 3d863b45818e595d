//! What the audits of heads and of models share: checkpoints, dumps, texts, and the tokens that are kept exactly.

pub(crate) mod calibrated;
pub(crate) mod counts;
pub(crate) mod dumps;
pub(crate) mod excerpt;
pub mod files;
pub(crate) mod subject;

pub use excerpt::Excerpt;

use esscher_audit::candidate::Frame;
use esscher_audit::head::Order;
use esscher_audit::model::Shape;
use esscher_audit::replacement::BLOCK;
use esscher_audit::verdict::Spread;
use esscher_core::numerics::InstructionSet;
use esscher_lab::specification::{Mistake, Section, Written};
use esscher_report::Cell;
use std::ops::RangeInclusive;

/// The frame of a model with this window, or with the usual one: where every token sees all there is none.
pub(crate) fn frame(section: &mut Section, window: Option<u64>, shape: &Shape) -> Result<Frame, Mistake> {
    let frame = Frame::default();
    let window = match (shape.order, window) {
        (Order::Causal, Some(0)) => {
            let message = format!("expected a whole number from 1 to {}, found 0", WINDOWS.end());
            return Err(section.mistake("window", message));
        }
        (Order::Whole, Some(window @ 1..)) => {
            let message =
                format!("every token of this model sees all: there is no window, expected 0, found {window}");
            return Err(section.mistake("window", message));
        }
        (_, Some(window)) => window as usize,
        (Order::Causal, None) => frame.window,
        (Order::Whole, None) => 0,
    };
    section.fill("window", &Written::number(window as f64));
    Ok(Frame { window, ..frame })
}

/// What is kept exactly, in words.
pub(crate) fn frame_in_words(frame: &Frame) -> String {
    let window = match frame.window {
        0 => String::new(),
        window => format!(", the last {window} to {}", window + BLOCK),
    };
    format!(
        "the first {} tokens{window}, and the first {} whose value is shorter than {} of the median",
        frame.atoms.first, frame.atoms.most_light, frame.atoms.light
    )
}

/// How many of the tokens that the last query of a text sees are the middle, at least and at most: how many light ones are kept is the
/// head's affair.
pub(crate) fn middle_at_the_end(frame: &Frame, order: Order, length: usize) -> (usize, usize) {
    let left = match order {
        Order::Causal => (length.saturating_sub(1) / BLOCK * BLOCK).saturating_sub(frame.window),
        Order::Whole => length,
    };
    let most = left.saturating_sub(frame.atoms.first);
    (most.saturating_sub(frame.atoms.most_light), most)
}

/// Refuses texts that the model does not take.
pub(crate) fn check_context(
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
pub(crate) fn check_replaced(
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
        "of {length} tokens too few would be replaced to measure: ask for at least {least}, or for a smaller `window` than {}",
        frame.window
    );
    Err(section.mistake(key, message))
}

/// Forward passes use the best instructions of the machine: others are refused, since a result names those that made it.
pub(crate) fn check_instruction_set(section: &mut Section, asked: InstructionSet) -> Result<(), Mistake> {
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
pub(crate) const SHORTEST: u64 = 2;

/// Tokens of a text.
pub(crate) const LENGTHS: RangeInclusive<u64> = SHORTEST..=1 << 20;

/// Last tokens that are kept exactly.
pub(crate) const WINDOWS: RangeInclusive<u64> = 0..=65_536;

/// More dumps would hardly be recorded.
pub(crate) const MOST_DUMPS: usize = 256;

/// A mean over texts with its standard error, for a table. There is none where something is not finite: the reader is told.
pub(crate) fn number_cell(spread: Option<Spread>) -> Cell {
    match spread.filter(|spread| spread.mean.is_finite()) {
        Some(spread) => Cell::Number { value: spread.mean, error: spread.standard_error },
        None => Cell::Text(NOT_FINITE.to_string()),
    }
}

/// What stands for a number that a table cannot show.
pub(crate) const NOT_FINITE: &str = "not finite";

#[cfg(test)]
mod tests {
    use super::middle_at_the_end;
    use esscher_audit::candidate::Frame;
    use esscher_audit::head::Order;
    use esscher_audit::readers::{Readers, Tilts};
    use esscher_audit::replacement::{Middle, StreamingCache};

    #[test]
    fn the_middle_is_what_a_cache_no_longer_holds() {
        let frame = Frame::default();
        let replacement = frame.replacement(0, Middle::Dropped);
        // Without scores the output is a mean: of n kept tokens, of which the last alone has the value 1, it is 1/n.
        let dropped = |length: usize, median_value_norm: f32| {
            let pooled = Tilts { mean: vec![0.0], covariance: vec![0.0] };
            let readers = Readers { pooled, heads: Vec::new(), median_value_norm };
            let mut cache = StreamingCache::new(&replacement, &readers, 1);
            for token in 0..length {
                cache.absorb(&[0.0], &[f32::from(u8::from(token + 1 == length))]).unwrap();
            }
            let mut output = [0.0];
            cache.read(&[0.0], &mut output).unwrap();
            length - (1.0 / output[0]).round() as usize
        };
        for length in [96, 128, 129, 200, 256, 1000] {
            // Values of norm 0 are light unless nothing is.
            let expected = (dropped(length, 1.0), dropped(length, 0.0));
            assert_eq!(middle_at_the_end(&frame, Order::Causal, length), expected, "{length}");
        }
        assert_eq!(middle_at_the_end(&frame, Order::Causal, 128), (12, 28));
        assert_eq!(middle_at_the_end(&frame, Order::Whole, 128), (108, 124));
    }
}
