//! The binary `esscher`: reads arguments, calls the library, prints.
#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable)]

mod arguments;
mod arrays;
mod commands;
mod ending;
mod opening;
mod output;
mod progress;
mod question_arguments;
mod terminal;
mod words;

use arguments::{Arguments, Common};
use clap::{ArgMatches, FromArgMatches};
use ending::{Ending, Trouble};
use esscher_core::visible;
use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    // Before the arguments are understood, and also if they are not: machines read JSON then too. Also behind a `--`: whoever wrote
    // `--tokens -- --json` meant an option.
    let json = std::env::args_os().any(|argument| argument == "--json");
    progress::listen_to_signals(json);
    match carry_out(json) {
        Ok(ending) => ending.code(),
        Err(trouble) => {
            output::tell_end(&trouble, json);
            Ending::from(&trouble).code()
        }
    }
}

fn carry_out(json: bool) -> Result<Ending, Trouble> {
    let matches = match arguments::definition().try_get_matches() {
        Ok(matches) => matches,
        Err(error) => return explained(&in_visible_arguments(error), json),
    };
    let named = |name: &str| question_arguments::quick().find(|question| question.name == name);
    match matches.subcommand().map(|(name, given)| (name, named(name), given)) {
        #[cfg(feature = "audit")]
        Some(("audit", _, given)) => commands::audit::audit(given, &common(given)?),
        Some((_, Some(question), given)) => commands::ask::quick(question, given, &common(given)?),
        _ => match Arguments::from_arg_matches(&matches) {
            Ok(arguments) => commands::execute(arguments),
            Err(error) => explained(&error, json),
        },
    }
}

/// What every command has, of a command whose options are made from keys.
fn common(given: &ArgMatches) -> Result<Common, Trouble> {
    let common = Common::from_arg_matches(given).map_err(|error| Trouble::usage(&error))?;
    commands::prepare(&common)?;
    Ok(common)
}

/// The same mistake in arguments whose control characters are written out: the parser drops them from its messages.
fn in_visible_arguments(error: clap::Error) -> clap::Error {
    let visible =
        |argument: OsString| argument.into_string().map_or_else(|same| same, |text| visible(&text).into());
    arguments::definition().try_get_matches_from(std::env::args_os().map(visible)).err().unwrap_or(error)
}

/// What the parser has to say: help and version are answers, all else is a mistake in the arguments.
fn explained(error: &clap::Error, json: bool) -> Result<Ending, Trouble> {
    use clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand as Nothing;
    if error.use_stderr() && (json || error.kind() != Nothing) {
        return Err(Trouble::usage(error));
    }
    if json {
        return output::hand_out(json, "text", &error.render().to_string());
    }
    // The parser knows whether the terminal has colours; what it could not write it says.
    output::written(error.print())?;
    Ok(if error.use_stderr() { Ending::BadRequest } else { Ending::Done })
}
