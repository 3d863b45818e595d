//! The binary `esscher`: reads arguments, calls the library, prints.
#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable)]

mod arguments;
mod arrays;
mod commands;
mod ending;
mod output;
mod progress;

use arguments::Arguments;
use clap::Parser;
use ending::{Ending, Trouble};
use output::tell;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let json = arguments.common.json;
    match commands::execute(arguments) {
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
