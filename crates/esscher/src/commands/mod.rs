//! The commands, one file each: they translate and nothing more.

pub(crate) mod ask;
#[cfg(feature = "audit")]
pub(crate) mod audit;
mod list;
mod reproduce;
mod run;

use crate::arguments::{Arguments, Command, Common, definition};
use crate::ending::{Ending, Trouble};
use crate::opening;
use crate::output::{hand_out, tell};
use crate::progress::{Progress, Whole};
use esscher_core::numerics::InstructionSet;
use esscher_lab::{ErrorKind, Origin, Outcome, RunFolder, Share};
use esscher_questions::{Planned, Settings, Sources};

pub(crate) fn execute(arguments: Arguments) -> Result<Ending, Trouble> {
    let common = arguments.common;
    if arguments.command.computes() {
        prepare(&common)?;
    }
    match arguments.command {
        Command::Reproduce { full, only, run, opening } => {
            reproduce::reproduce(&common, full, only, run, &opening)
        }
        Command::Run { file, plan: true, run, .. } => run::plan(&common, &file, &run),
        Command::Run { file, verbose, run, opening, .. } => run::run(&common, &file, verbose, &run, &opening),
        Command::Shard { file, share, run } => run::shard(&common, &file, &share, &run),
        Command::Merge { folders, out } => run::merge(&common, &folders, out),
        Command::Report { runs, out, force, opening } => {
            run::report(&common, &runs, out.as_deref(), force, &opening)
        }
        Command::Open { run, out } => opening::open(&common, run.as_deref(), &out),
        Command::List { group } => list::list(&common, group.as_deref()),
        Command::Ask { file, seed } => ask::ask(&common, &file, seed),
        Command::Schema { question } => ask::schema(&common, question.as_deref()),
        Command::Example { kind: Some(kind) } => list::example(&common, &kind),
        Command::Example { kind: None } => list::examples(&common),
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut definition(), "esscher", &mut text);
            hand_out(common.json, "text", &String::from_utf8_lossy(&text))
        }
        Command::Manual { command } => manual(&common, command.as_deref()),
    }
}

/// Prints the manual page of the program or of one command.
fn manual(common: &Common, command: Option<&str>) -> Result<Ending, Trouble> {
    let mut page = definition();
    // Hands the options of all commands down to each.
    page.build();
    if let Some(name) = command {
        let found = page.find_subcommand(name).cloned();
        page = found.ok_or_else(|| {
            let message = format!("there is no command `{name}`");
            Trouble::with_hint(ErrorKind::Unknown, message, "`esscher --help` names them")
        })?;
    }
    let mut text = Vec::new();
    let rendered = clap_mangen::Man::new(page).render(&mut text);
    rendered.map_err(|error| Trouble::failed(ErrorKind::Internal, error.to_string()))?;
    hand_out(common.json, "text", &String::from_utf8_lossy(&text))
}

/// Computes a share of an experiment in its folder and shows how far it is; a stop ends the command.
fn compute(
    common: &Common,
    label: &str,
    planned: &Planned,
    folder: &RunFolder,
    share: Share,
    whole: Option<Whole>,
) -> Result<Outcome, Trouble> {
    let progress = Progress::of_one(label, common, whole);
    let outcome = esscher_lab::run(planned, folder, share, &origin(), &progress);
    let is_stopped = progress.end();
    match outcome? {
        Outcome::Stopped { done, total } => {
            Err(Trouble::stopped(folder.path(), &format!(" with {done} of {total} units done")))
        }
        _ if is_stopped => Err(Trouble::stopped(folder.path(), " after the last unit")),
        outcome => Ok(outcome),
    }
}

/// Threads, for every command that computes.
pub(crate) fn prepare(common: &Common) -> Result<(), Trouble> {
    // None stands for all cores. Asked for here and now: later a refusal would be a panic.
    let threads = common.threads.map_or(0, usize::from);
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().map_err(|error| Trouble::Failed {
        kind: ErrorKind::File,
        message: format!("threads cannot be started: {error}"),
        hint: Some("ask for fewer with --threads, or raise the limit on processes".to_string()),
    })
}

/// What this program is.
fn origin() -> Origin {
    let commit = env!("ESSCHER_COMMIT");
    Origin {
        program: "esscher".to_string(),
        version: env!("CARGO_PKG_VERSION").to_string(),
        commit: (!commit.is_empty()).then(|| commit.to_string()),
    }
}

/// The user's models; what takes long is told, such as a download.
fn sources(common: &Common) -> Sources {
    let is_told = common.shows_progress();
    Sources::of_user(move |what| {
        if is_told {
            tell(what);
        }
    })
}

fn settings(common: &Common, seed: Option<u64>) -> Result<Settings, Trouble> {
    let instruction_set = match &common.instruction_set {
        Some(name) => InstructionSet::named(name)
            .map_err(|error| Trouble::request(ErrorKind::Usage, format!("--instruction-set: {error}")))?,
        None => InstructionSet::best(),
    };
    Ok(Settings { seed, instruction_set })
}
