//! What is printed: answers on standard output, progress and errors on standard error. Nothing that is printed steers a terminal.

use crate::arguments::Common;
use crate::ending::{Ending, Trouble};
use crate::terminal::{Line, Style, Terminal, wrapped};
use esscher_core::{steers, visible};
use esscher_lab::{ErrorKind, Named};
use serde_json::{Value, json};
use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Prints one JSON object for machines, or lines for people; a command that has nothing more to say is done.
pub(crate) fn answer(common: &Common, json: Value, text: impl Display) -> Result<Ending, Trouble> {
    if common.json { say_json(&json) } else { say(text) }
}

/// Prints a text that is for machines anyhow, such as completions: as it is, or inside a JSON object.
pub(crate) fn hand_out(json: bool, name: &str, text: &str) -> Result<Ending, Trouble> {
    if json { say_json(&json!({ name: text })) } else { write_out(text) }
}

/// Prints lines for people.
pub(crate) fn say(text: impl Display) -> Result<Ending, Trouble> {
    let text = text.to_string();
    let lines: Vec<String> = text.split('\n').map(visible).collect();
    write_out(&(lines.join("\n") + "\n"))
}

/// Prints a line for people in pieces, with colours where there is a terminal.
pub(crate) fn say_line(line: &Line) -> Result<Ending, Trouble> {
    write_out(&(line.written(Terminal::output()) + "\n"))
}

/// Prints a JSON object on one line.
pub(crate) fn say_json(value: &Value) -> Result<Ending, Trouble> {
    write_out(&(line_of(value) + "\n"))
}

/// A JSON value on one line; control characters that JSON allows inside its strings are escapes too.
fn line_of(value: &Value) -> String {
    let mut line = String::new();
    for character in value.to_string().chars() {
        if steers(character) {
            line += &format!("\\u{:04x}", u32::from(character));
        } else {
            line.push(character);
        }
    }
    line
}

/// A path in JSON: bytes that are no text become the replacement character.
pub(crate) fn path(path: &Path) -> Value {
    path.to_string_lossy().into()
}

/// A path inside a line for people.
pub(crate) fn shown(path: &Path) -> String {
    visible(&path.to_string_lossy())
}

fn write_out(text: &str) -> Result<Ending, Trouble> {
    written(io::stdout().write_all(text.as_bytes()))
}

/// What became of writing to standard output.
pub(crate) fn written(wrote: io::Result<()>) -> Result<Ending, Trouble> {
    match wrote.and_then(|()| io::stdout().flush()) {
        Ok(()) => Ok(Ending::Done),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Trouble::NobodyListens),
        Err(error) => {
            let message = format!("cannot write to standard output: {error}");
            Err(Trouble::failed(ErrorKind::File, message))
        }
    }
}

/// A reader that went away, as `head` does, does not end work that goes on without it.
pub(crate) fn even_unheard(said: Result<Ending, Trouble>) -> Result<(), Trouble> {
    match said {
        Ok(_) | Err(Trouble::NobodyListens) => Ok(()),
        Err(other) => Err(other),
    }
}

/// Tells a line on standard error; a log that cannot be written is no reason to stop.
pub(crate) fn tell(message: impl Display) {
    tell_line(&broken(&visible(&message.to_string())));
}

/// A line in several, between words, where a terminal would break it anywhere.
fn broken(line: &str) -> String {
    match Terminal::errors().width() {
        Some(width) => wrapped(line, width).join("\n"),
        None => line.to_string(),
    }
}

/// In one piece: the lines of two threads do not mix.
fn tell_line(line: &str) {
    let _ = io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// Says why the program ends; only once, whichever thread comes first.
pub(crate) fn tell_end(trouble: &Trouble, json: bool) {
    static IS_SAID: AtomicBool = AtomicBool::new(false);
    if matches!(trouble, Trouble::NobodyListens) || IS_SAID.swap(true, Ordering::SeqCst) {
        return;
    }
    let (message, hint) = (visible(&trouble.message()), trouble.hint().map(|hint| visible(&hint)));
    let marked = |style, mark: &str, text: &str| {
        let whole = broken(&format!("{mark} {text}"));
        let rest = whole.strip_prefix(mark).unwrap_or_default();
        tell_line(&(Line::new().with(style, mark).written(Terminal::errors()) + rest));
    };
    if json {
        let mut error = json!({ "error": message, "hint": hint, "kind": trouble.kind().name() });
        if let Trouble::Interrupted { folder: Some(folder), .. } = trouble {
            error["folder"] = path(folder);
        }
        tell_line(&line_of(&error));
        return;
    }
    match trouble {
        // How far it came is an answer.
        Trouble::Interrupted { folder: Some(folder), .. } => {
            let _ = say(format_args!("{}: {message}", shown(folder)));
        }
        Trouble::Interrupted { folder: None, .. } => tell_line(&message),
        _ => marked(Style::Bad, "error:", &message),
    }
    if let Some(hint) = hint {
        marked(Style::Strong, "hint:", &hint);
    }
}
