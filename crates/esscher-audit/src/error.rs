//! What an audit refuses: which input, what was expected, what was found, what to do.

use crate::candidate::Candidate;
use crate::head::LARGEST_VALUE;
use esscher_core::Monitor;

/// A request or a checkpoint that makes no sense, by what is wrong with it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// Bytes that are not what they should be: truncated, damaged, of another format.
    #[error("{what}: {problem}")]
    Damaged {
        /// Which file or part of it.
        what: String,
        /// Expected and found.
        problem: String,
    },
    /// A checkpoint that is sound but not of a kind that is known here.
    #[error("{what} is not supported: {problem}")]
    Unsupported {
        /// The architecture, tensor type or tokeniser by its name.
        what: String,
        /// What is supported, and what to try.
        problem: String,
    },
    /// A checkpoint whose main file needs another one beside it.
    #[error("{file} comes without {part}: put its {beside} beside it")]
    MissingFile {
        /// The name of the main file.
        file: String,
        /// What the missing file would hold.
        part: &'static str,
        /// The names that it may have.
        beside: &'static str,
    },
    /// A dump where a model is needed.
    #[error(
        "{file} is a dump of queries, keys and values, not a model: its heads can be audited, but it cannot be run"
    )]
    NotAModel {
        /// The name of the file.
        file: String,
    },
    /// Anything else where a dump is needed.
    #[error(
        "{file} is not a dump of queries, keys and values: audit checkpoints one by one, and only dumps of one model together"
    )]
    NotADump {
        /// The name of the file.
        file: String,
    },
    /// One dump given twice.
    #[error(
        "{one} and {other} are the same dump: one would calibrate what the other measures; give each dump once"
    )]
    SameDump {
        /// The name of the first.
        one: String,
        /// The name of the second.
        other: String,
    },
    /// A choice of texts beside dumps, which hold their texts.
    #[error(
        "{what} is given beside dumps, which hold what heads saw of their own texts: leave it out, and record other texts as \
         other dumps"
    )]
    BesideDumps {
        /// What was chosen.
        what: &'static str,
    },
    /// An audit of no checkpoint and no dump.
    #[error("there is nothing to audit: give a checkpoint or at least one dump")]
    NothingToAudit,
    /// A text, or a part of one, that is too short for what is asked.
    #[error("{what} has {found} tokens, expected at least {needed} for {purpose}: {remedy}")]
    TooFewTokens {
        /// The text, or the part of it.
        what: &'static str,
        /// Tokens that there are.
        found: usize,
        /// Tokens that would do.
        needed: usize,
        /// What they are needed for.
        purpose: String,
        /// What to do.
        remedy: &'static str,
    },
    /// A model that takes no text that is long enough.
    #[error("{model}: its context of {context} tokens is too short for an audit, which needs {needed}")]
    ShortContext {
        /// The name of the model.
        model: String,
        /// Tokens that the model takes.
        context: usize,
        /// Tokens that would do.
        needed: usize,
    },
    /// A text that the model has no room for.
    #[error("the text reaches token {end}, but the model has room for {context}: shorten the text")]
    TooManyTokens {
        /// Tokens up to the end of the text.
        end: usize,
        /// Tokens that the model takes.
        context: usize,
    },
    /// A token that is not in the vocabulary.
    #[error(
        "token {place} of the text is number {token}, but the vocabulary has {vocabulary} tokens, counted from 0: use the \
         tokeniser of this checkpoint"
    )]
    UnknownToken {
        /// Where it stands in the text, from 0.
        place: usize,
        /// The number of the token.
        token: u32,
        /// Tokens of the vocabulary.
        vocabulary: usize,
    },
    /// A text that the vocabulary has no tokens for.
    #[error("the vocabulary cannot write {what}: {problem}")]
    NotEncodable {
        /// The text, or what it is for.
        what: String,
        /// Why, and what to do.
        problem: String,
    },
    /// A token that nothing stands before is asked of a model that predicts from what came before.
    #[error(
        "the haystack asks for token {position} of {tokens}, counted from 0, but only tokens after the first can be predicted"
    )]
    NotPredictable {
        /// The token, from 0.
        position: usize,
        /// Tokens of the haystack.
        tokens: usize,
    },
    /// An encoder, asked for what needs tokens that see only earlier ones.
    #[error("{what} needs tokens that see only earlier ones, and those of an encoder see all: {remedy}")]
    NeedsCausal {
        /// What was asked for.
        what: &'static str,
        /// What to do.
        remedy: &'static str,
    },
    /// An eviction where measures alone can decode.
    #[error(
        "`{candidate}` cannot decode token by token; use exact heads or measures, such as tilted-gaussian"
    )]
    WholeTextsOnly {
        /// What was asked to decode.
        candidate: Candidate,
    },
    /// Tokens that do not continue those that came before.
    #[error("the call starts at token {found}, expected token {expected}: {remedy}")]
    WrongStart {
        /// Where it had to start.
        expected: usize,
        /// Where it starts.
        found: usize,
        /// What to do.
        remedy: &'static str,
    },
    /// A layer that the model does not have.
    #[error("there is no layer {layer}: the model has {layers}, counted from 0")]
    NoLayer {
        /// The layer, from 0.
        layer: usize,
        /// Layers of the model.
        layers: usize,
    },
    /// Tables of numbers whose sizes do not fit together.
    #[error("{what}: expected {expected}, found {found:?} numbers")]
    WrongSizes {
        /// Which tables, in order.
        what: String,
        /// The sizes that would fit.
        expected: String,
        /// The sizes of the tables, in their order.
        found: Vec<usize>,
    },
    /// Queries and keys whose products single precision does not hold.
    #[error(
        "layer {layer}: scores may reach {reach:.0e}, or values are not finite; models compute in single precision, which ends at 3e38: \
         check that its weights, or what was recorded of it, are those of a trained model"
    )]
    ScoresOverflow {
        /// The layer, from 0.
        layer: usize,
        /// A bound on the size of its scores; infinite where a query, a key or a value is not finite.
        reach: f64,
    },
    /// Values beside which single precision loses the others.
    #[error(
        "{what}: values reach {reach:.2e}, expected at most {LARGEST_VALUE:.0e}, since models compute in single precision: check that \
         its weights, or what was recorded of it, are those of a trained model"
    )]
    ValuesTooLarge {
        /// The layer, or whatever has the values.
        what: String,
        /// The size of the largest.
        reach: f32,
    },
    /// Something that was made with another model, or a dump that was.
    #[error("{what} does not fit {reference}: expected {expected}, found {found}; {remedy}")]
    OtherModel {
        /// What does not fit.
        what: String,
        /// What it must fit.
        reference: String,
        /// Sizes that would fit.
        expected: String,
        /// Sizes that it has.
        found: String,
        /// What to do.
        remedy: &'static str,
    },
    /// The monitor asked to stop; whoever was given one makes nothing of it.
    #[error("the work was stopped before its end")]
    Stopped,
    /// A name that nothing has.
    #[error("`{name}` is not {kind}: expected {expected}")]
    UnknownName {
        /// What the name should be of, with its article.
        kind: &'static str,
        /// As it was given.
        name: String,
        /// The names that there are.
        expected: String,
    },
}

/// Asked inside long loops: an error ends them on all threads.
pub(crate) fn go_on(monitor: &dyn Monitor) -> Result<(), Error> {
    if monitor.should_stop() { Err(Error::Stopped) } else { Ok(()) }
}

/// Nothing of work that the monitor stopped.
pub(crate) fn unless_stopped<T>(found: Result<T, Error>) -> Result<Option<T>, Error> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(Error::Stopped) => Ok(None),
        Err(error) => Err(error),
    }
}

impl Error {
    /// Something made with another model than the one at hand.
    pub(crate) fn other_model(what: String, expected: String, found: String) -> Self {
        let remedy = "make it with this model";
        Error::OtherModel { what, reference: "the model".to_string(), expected, found, remedy }
    }
}
