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
use esscher_report::{Block, Cell};
use std::ops::RangeInclusive;

/// The frame of a model with this window, or with the usual one: where every token sees all there is none.
pub(crate) fn frame(section: &mut Section, window: Option<u64>, shape: &Shape) -> Result<Frame, Mistake> {
    let usual = Frame::of(shape.order);
    let message = match (shape.order, window) {
        (Order::Causal, Some(0)) => format!("expected a whole number from 1 to {}, found 0", WINDOWS.end()),
        (Order::Whole, Some(window @ 1..)) => {
            format!("every token of this model sees all: there is no window, expected 0, found {window}")
        }
        _ => {
            let window = window.map_or(usual.window, |window| window as usize);
            section.fill("window", &Written::number(window as f64));
            return Ok(Frame { window, ..usual });
        }
    };
    Err(section.mistake("window", message))
}

/// The words of a report that only an audit has, folded.
pub(crate) fn glossary(order: Order) -> Block {
    let mut words = vec![
        (
            "head, key-value head",
            "A head reads the prompt: it gives every token a weight and returns the weighted mean of their values. Some heads share the \
             keys and values that they read, a key-value head; its cache is freed only if all its readers are replaced.",
        ),
        (
            "middle",
            "What is replaced of a head’s context. The rest is kept exactly: the first tokens and some whose values are short (atoms), \
             and in language models the last ones (window).",
        ),
        (
            "candidate",
            "What stands for the middle: nothing (`dropped`), its `mean`, a Gaussian with its mean and covariance (`gaussian`), the mean of \
             each of K clusters (`tilted-means/K`), or M of its tokens beside one of these (`top-M+…`). `tilted` ones are fitted to the middle \
             as the readers of the head weigh it, about their mean tilt, and `reduced-gaussian/R` keeps covariances in R directions only.",
        ),
        (
            "tilt",
            "What a query asks for, seen from the keys: the score of a token is the product of its key with the tilt.",
        ),
        (
            "evictions",
            "What is used today: B tokens are kept and the rest is forgotten. `sink-window/B` keeps the first and the last ones, as \
             StreamingLLM does; `observed-attention/B` those that queries so far gave most weight, as H2O does; `expected-attention/B` \
             those to which later queries are expected to; `cluster-means/B` merges tokens.",
        ),
        (
            "error",
            "How far a head’s output is from that of exact attention. A head is accepted if the mean error of some candidate is within \
             the tolerance with confidence over texts, refused if that of every candidate is above it, else uncertain.",
        ),
    ];
    match order {
        Order::Causal => words.push((
            "offline, streaming",
            "Streaming is what would be deployed: constant memory, updated as tokens leave the window. Offline looks at the whole cache \
             so far again and again.",
        )),
        Order::Whole => words.push(("offline", "Every token of this model sees all: nothing streams.")),
    }
    let words = words.into_iter().map(|(word, meaning)| (word.to_string(), meaning.to_string()));
    Block::Folded {
        id: GLOSSARY.to_string(),
        title: "The words of this report".to_string(),
        blocks: vec![Block::Facts(words.collect())],
    }
}

/// The id of the words: a report on heads and model tells them once.
pub(crate) const GLOSSARY: &str = "words";

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
    Err(section.mistake(
        key,
        format!("{length} tokens are more than the model's context of {context}; use at most {context}"),
    ))
}

/// Refuses texts in which everything is kept exactly; `whose` tokens are meant, if the key does not say it.
pub(crate) fn check_replaced(
    section: &mut Section,
    key: &'static str,
    length: usize,
    whose: Option<String>,
    frame: &Frame,
) -> Result<(), Mistake> {
    let least = frame.first_replaced() + BLOCK;
    if length >= least {
        return Ok(());
    }
    let whose = whose.map_or(String::new(), |whose| format!(" of {whose}"));
    let or = match frame.window {
        0 => String::new(),
        window => format!(", or a `window` below {window}"),
    };
    let message = format!(
        "{length} tokens{whose} are too few: almost all would be kept exactly; use at least {least}{or}"
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
        format!(
            "an audit always uses the best instruction set of the machine, {best}, found {asked}: leave the instruction set out"
        ),
    ))
}

/// No text is shorter.
pub(crate) const SHORTEST: u64 = 2;

/// Tokens of a text.
pub(crate) const LENGTHS: RangeInclusive<u64> = SHORTEST..=1 << 20;

/// Tokens of a text with the usual window: with fewer, an encoder keeps almost all exactly. Language models need 128.
pub(crate) const LENGTHS_OF_AUDITS: RangeInclusive<u64> = 64..=1 << 20;

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
