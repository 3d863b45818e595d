//! What is printed: answers on standard output, progress and errors on standard error.

use crate::ending::Trouble;
use std::fmt::Display;
use std::io::{self, Write};

/// Prints an answer and ends the line.
pub(crate) fn say(answer: impl Display) -> Result<(), Trouble> {
    write_out(format!("{answer}\n").as_bytes())
}

/// Prints bytes as they are.
pub(crate) fn write_out(bytes: &[u8]) -> Result<(), Trouble> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
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
