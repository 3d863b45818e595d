//! The binary `esscher`: reads arguments, calls the library, prints.
#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable)]

mod arguments;
mod arrays;
mod commands;
mod ending;
mod output;
mod progress;
mod question_arguments;

use arguments::{Arguments, Common};
use clap::{ArgMatches, FromArgMatches};
use ending::{Ending, Trouble};
use output::tell;
use std::process::ExitCode;

fn main() -> ExitCode {
    let matches = arguments::definition().get_matches();
    let named = |name: &str| question_arguments::quick().find(|question| question.name == name);
    let (json, ended) = match matches.subcommand().map(|(name, given)| (name, named(name), given)) {
        #[cfg(feature = "audit")]
        Some(("audit", _, given)) => with_options(given, |common| commands::audit::audit(given, common)),
        Some((_, Some(question), given)) => {
            with_options(given, |common| commands::ask::quick(question, given, common))
        }
        _ => match Arguments::from_arg_matches(&matches) {
            Ok(arguments) => (arguments.common.json, commands::execute(arguments)),
            Err(error) => error.exit(),
        },
    };
    match ended {
        Ok(ending) => ending.code(),
        Err(trouble) => report(&trouble, json),
    }
}

/// Carries out a command whose options are made from keys.
fn with_options(
    given: &ArgMatches,
    command: impl FnOnce(&Common) -> Result<Ending, Trouble>,
) -> (bool, Result<Ending, Trouble>) {
    match Common::from_arg_matches(given) {
        Ok(common) => (common.json, commands::prepare(&common).and_then(|()| command(&common))),
        Err(error) => error.exit(),
    }
}

/// One line on what went wrong and one on what to try.
fn report(trouble: &Trouble, json: bool) -> ExitCode {
    if matches!(trouble, Trouble::NobodyListens) {
        return Ending::Done.code();
    }
    if json {
        tell(serde_json::json!({ "error": trouble.message(), "hint": trouble.hint() }));
    } else {
        tell(format_args!("error: {}", trouble.message()));
        if let Some(hint) = trouble.hint() {
            tell(format_args!("hint: {hint}"));
        }
    }
    Ending::from(trouble).code()
}
