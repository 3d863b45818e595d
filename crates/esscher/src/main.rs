//! The binary `esscher`: reads arguments, calls the library, prints.
#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable)]

mod arguments;
mod arrays;
mod commands;
mod ending;
mod progress;

use arguments::Arguments;
use clap::Parser;
use ending::{Ending, Trouble};
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
    if json {
        eprintln!("{}", serde_json::json!({ "error": trouble.message(), "hint": trouble.hint() }));
    } else {
        eprintln!("error: {}", trouble.message());
        if let Some(hint) = trouble.hint() {
            eprintln!("hint: {hint}");
        }
    }
    Ending::from(trouble).code()
}
