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
use clap::FromArgMatches;
use ending::{Ending, Trouble};
use output::tell;
use std::process::ExitCode;

fn main() -> ExitCode {
    let matches = arguments::definition().get_matches();
    let question = matches.subcommand().and_then(|(name, given)| {
        question_arguments::quick().find(|question| question.name == name).map(|question| (question, given))
    });
    let (json, ended) = match question {
        Some((question, given)) => match Common::from_arg_matches(given) {
            Ok(common) => {
                let ended = commands::prepare(&common);
                (common.json, ended.and_then(|()| commands::ask::quick(question, given, &common)))
            }
            Err(error) => error.exit(),
        },
        None => match Arguments::from_arg_matches(&matches) {
            Ok(arguments) => (arguments.common.json, commands::execute(arguments)),
            Err(error) => error.exit(),
        },
    };
    match ended {
        Ok(ending) => ending.code(),
        Err(trouble) => report(&trouble, json),
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
