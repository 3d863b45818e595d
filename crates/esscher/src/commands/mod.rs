//! The commands, one file each: they translate and nothing more.

pub(crate) mod ask;
#[cfg(feature = "audit")]
mod audit;
mod list;
mod merge;
mod report;
mod reproduce;
mod run;

use crate::arguments::{Arguments, Command, Common, definition};
use crate::ending::{Ending, Trouble};
use crate::output::{tell, write_out};
use esscher_core::numerics::InstructionSet;
use esscher_lab::Origin;
#[cfg(feature = "audit")]
use esscher_questions::conduct::AuditRequest;
use esscher_questions::{Settings, Sources};

pub(crate) fn execute(arguments: Arguments) -> Result<Ending, Trouble> {
    let common = arguments.common;
    prepare(&common)?;
    match arguments.command {
        Command::Reproduce { full, only, run } => reproduce::reproduce(&common, full, &only, &run),
        Command::Run { file, plan: true, run } => run::plan(&common, &file, &run),
        Command::Run { file, plan: false, run } => run::run(&common, &file, &run),
        Command::Shard { file, share, run } => run::shard(&common, &file, &share, &run),
        Command::Merge { folders, out } => merge::merge(&common, &folders, out),
        Command::Report { runs, out } => report::report(&common, &runs, out.as_deref()),
        Command::List { group } => list::list(&common, group),
        #[cfg(feature = "audit")]
        Command::Audit {
            models,
            text,
            test,
            length,
            tolerance,
            criterion,
            candidates,
            texts,
            heads_only,
            run,
        } => {
            let request = AuditRequest {
                models,
                text,
                test,
                lengths: length,
                tolerance,
                criterion: criterion.into(),
                candidates,
                texts,
                heads_only,
                out: run.out,
                settings: settings(&common, run.seed)?,
            };
            audit::audit(&common, &request)
        }
        Command::Ask { file, seed } => ask::ask(&common, &file, seed),
        Command::Schema { question } => ask::schema(question.as_deref()),
        Command::Example { kind } => list::example(&kind),
        Command::Completions { shell } => {
            let mut definition = definition();
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut definition, "esscher", &mut text);
            write_out(&text)?;
            Ok(Ending::Done)
        }
        Command::Manual { command } => {
            let mut definition = definition();
            // Hands the options of all commands down to each.
            definition.build();
            let page = match &command {
                None => definition,
                Some(name) => match definition.find_subcommand(name) {
                    Some(command) => command.clone(),
                    None => {
                        return Err(Trouble::with_hint(
                            format!("there is no command `{name}`"),
                            "`esscher --help` names them",
                        ));
                    }
                },
            };
            let manual = clap_mangen::Man::new(page);
            let mut text = Vec::new();
            manual.render(&mut text).map_err(|error| Trouble::Other(error.into()))?;
            write_out(&text)?;
            Ok(Ending::Done)
        }
    }
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
