//! The commands, one file each: they translate and nothing more.

pub(crate) mod ask;
#[cfg(feature = "audit")]
pub(crate) mod audit;
mod list;
mod reproduce;
mod run;

use crate::arguments::{Arguments, Command, Common, definition};
use crate::ending::{Ending, Trouble};
use crate::output::{tell, write_out};
use crate::progress::Progress;
use esscher_core::numerics::InstructionSet;
use esscher_lab::{Origin, Outcome, RunFolder, Share};
use esscher_questions::{Planned, Settings, Sources};

pub(crate) fn execute(arguments: Arguments) -> Result<Ending, Trouble> {
    let common = arguments.common;
    prepare(&common)?;
    match arguments.command {
        Command::Reproduce { full, only, run } => reproduce::reproduce(&common, full, only, run),
        Command::Run { file, plan: true, run } => run::plan(&common, &file, &run),
        Command::Run { file, plan: false, run } => run::run(&common, &file, &run),
        Command::Shard { file, share, run } => run::shard(&common, &file, &share, &run),
        Command::Merge { folders, out } => run::merge(&common, &folders, out),
        Command::Report { runs, out, force } => run::report(&common, &runs, out.as_deref(), force),
        Command::List { group } => list::list(&common, group.as_deref()),
        Command::Ask { file, seed } => ask::ask(&common, &file, seed),
        Command::Schema { question } => ask::schema(question.as_deref()),
        Command::Example { kind } => list::example(&kind),
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut definition(), "esscher", &mut text);
            write_out(&text)
        }
        Command::Manual { command } => manual(command.as_deref()),
    }
}

/// Prints the manual page of the program or of one command.
fn manual(command: Option<&str>) -> Result<Ending, Trouble> {
    let mut page = definition();
    // Hands the options of all commands down to each.
    page.build();
    if let Some(name) = command {
        let found = page.find_subcommand(name).cloned();
        page = found.ok_or_else(|| {
            Trouble::with_hint(format!("there is no command `{name}`"), "`esscher --help` names them")
        })?;
    }
    let mut text = Vec::new();
    clap_mangen::Man::new(page).render(&mut text).map_err(Trouble::other)?;
    write_out(&text)
}

/// Computes a share of an experiment in its folder and shows how far it is.
fn compute(
    common: &Common,
    label: &str,
    planned: &Planned,
    folder: &RunFolder,
    share: Share,
) -> Result<Outcome, Trouble> {
    let progress = Progress::new(label, common.quiet);
    let outcome = esscher_lab::run(planned, folder, share, &origin(), &progress);
    progress.clear();
    Ok(outcome?)
}

/// Threads, Ctrl-C and messages, for every command.
pub(crate) fn prepare(common: &Common) -> Result<(), Trouble> {
    if let Some(threads) = common.threads {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(usize::from(threads)).build_global();
        pool.map_err(|error| Trouble::request(format!("--threads {threads}: {error}")))?;
    }
    crate::progress::stop_on_interrupt();
    Ok(())
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
    let quiet = common.quiet;
    Sources::of_user(move |what| {
        if !quiet {
            tell(what);
        }
    })
}

fn settings(common: &Common, seed: Option<u64>) -> Result<Settings, Trouble> {
    let instruction_set = match &common.instruction_set {
        Some(name) => InstructionSet::named(name)
            .map_err(|error| Trouble::request(format!("--instruction-set: {error}")))?,
        None => InstructionSet::best(),
    };
    Ok(Settings { seed, instruction_set })
}
