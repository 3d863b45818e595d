//! What is printed: answers on standard output, progress and errors on standard error.

use crate::arguments::Common;
use crate::ending::{Ending, Trouble};
use serde_json::Value;
use std::fmt::Display;
use std::io::{self, Write};

/// Prints an answer and ends the line; a command that has nothing more to say is done.
pub(crate) fn say(answer: impl Display) -> Result<Ending, Trouble> {
    write_out(format!("{answer}\n").as_bytes())
}

/// Prints one JSON value for machines, or text for people.
pub(crate) fn answer(common: &Common, json: Value, text: impl Display) -> Result<Ending, Trouble> {
    if common.json { say(json) } else { say(text) }
}

/// Prints bytes as they are.
pub(crate) fn write_out(bytes: &[u8]) -> Result<Ending, Trouble> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Ok(()) => Ok(Ending::Done),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Trouble::NobodyListens),
        Err(error) => {
            Err(Trouble::Other(anyhow::Error::new(error).context("cannot write to standard output")))
        }
    }
}

/// Tells something on standard error; a log that cannot be written is no reason to stop.
pub(crate) fn tell(message: impl Display) {
    let _ = writeln!(io::stderr(), "{message}");
}
