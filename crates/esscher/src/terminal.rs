//! What a terminal can show: colours, links, and how wide it is. Elsewhere lines are plain; nothing else here writes escape codes.

use esscher_core::visible;
use std::fmt::{Display, Write};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// One of the program's two outputs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terminal {
    colours: bool,
    links: bool,
    width: Option<usize>,
}

/// Narrower terminals are written to as if they were so wide: there is nothing left to cut.
const NARROWEST: usize = 40;

impl Terminal {
    /// Standard output.
    pub(crate) fn output() -> Self {
        let stream = std::io::stdout();
        let size = terminal_size::terminal_size_of(&stream);
        Self::of(stream.is_terminal(), size)
    }

    /// Standard error.
    pub(crate) fn errors() -> Self {
        let stream = std::io::stderr();
        let size = terminal_size::terminal_size_of(&stream);
        Self::of(stream.is_terminal(), size)
    }

    fn of(is_terminal: bool, size: Option<(terminal_size::Width, terminal_size::Height)>) -> Self {
        let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_able = is_terminal && std::env::var_os("TERM").is_none_or(|kind| kind != "dumb");
        let width = size.map(|(width, _)| usize::from(width.0)).filter(|width| *width > 0);
        Terminal {
            // https://no-color.org
            colours: is_able && !is_set("NO_COLOR"),
            links: is_able,
            width: width.filter(|_| is_terminal).map(|width| width.max(NARROWEST)),
        }
    }

    pub(crate) fn has_colours(self) -> bool {
        self.colours
    }

    /// Its columns; nothing for a file or a pipe, whose lines may have any length.
    pub(crate) fn width(self) -> Option<usize> {
        self.width
    }
}

/// How a piece of a line is shown where there are colours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    /// A title, a name.
    Strong,
    /// What may be passed over.
    Faint,
    Good,
    Bad,
    /// Words that can be clicked, which open this file.
    Link(PathBuf),
}

/// A line in pieces. What a user wrote cannot steer the terminal: control characters of every piece are written out.
#[derive(Debug, Clone, Default)]
pub(crate) struct Line {
    pieces: Vec<(Style, String)>,
}

impl Line {
    pub(crate) fn new() -> Self {
        Line::default()
    }

    /// The line with one more piece.
    pub(crate) fn with(mut self, style: Style, text: impl Display) -> Self {
        self.pieces.push((style, visible(&text.to_string())));
        self
    }

    /// Its columns.
    pub(crate) fn width(&self) -> usize {
        self.pieces.iter().map(|(_, text)| columns(text)).sum()
    }

    /// The line as it is written to this terminal.
    pub(crate) fn written(&self, terminal: Terminal) -> String {
        let mut out = String::new();
        for (style, text) in &self.pieces {
            let code = match style {
                Style::Strong => "1",
                Style::Faint => "2",
                Style::Good => "32",
                Style::Bad => "1;31",
                Style::Plain | Style::Link(_) => "",
            };
            match style {
                Style::Link(file) if terminal.links => {
                    out += &format!("\u{1b}]8;;{}\u{1b}\\{text}\u{1b}]8;;\u{1b}\\", address(file));
                }
                _ if terminal.colours && !code.is_empty() => {
                    out += &format!("\u{1b}[{code}m{text}\u{1b}[0m");
                }
                _ => out += text,
            }
        }
        out
    }
}

/// A file's address; everything but the plainest characters is written in hexadecimal.
fn address(file: &Path) -> String {
    let path = file.to_string_lossy().replace('\\', "/");
    let mut address = String::from(if path.starts_with('/') { "file://" } else { "file:///" });
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-_.~:".contains(&byte) {
            address.push(char::from(byte));
        } else {
            let _ = write!(address, "%{byte:02X}");
        }
    }
    address
}

/// The columns of a text.
pub(crate) fn columns(text: &str) -> usize {
    // Accents that stand over the letter before them take no room.
    text.chars().filter(|character| !('\u{300}'..='\u{36f}').contains(character)).count()
}

/// A text in so many columns: cut after a word if it is longer.
pub(crate) fn fitted(text: &str, room: usize) -> String {
    if columns(text) <= room {
        return text.to_string();
    }
    let most: String = text.chars().take(room.saturating_sub(1)).collect();
    // A single long word is cut where it must be.
    let end = most.rfind(' ').filter(|end| 2 * columns(&most[..*end]) >= room).unwrap_or(most.len());
    format!("{}…", most[..end].trim_end_matches([' ', ',', ';', ':']))
}

/// A text in lines of so many columns, broken between words; a word that is longer has a line of its own.
pub(crate) fn wrapped(text: &str, room: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if columns(line) + 1 + columns(word) <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_string()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Terminal = Terminal { colours: false, links: false, width: None };
    const ABLE: Terminal = Terminal { colours: true, links: true, width: Some(80) };

    #[test]
    fn what_a_user_wrote_steers_no_terminal() {
        let line = Line::new().with(Style::Good, "✓").with(Style::Plain, " \u{1b}[31mred\n");
        assert_eq!(line.written(PLAIN), "✓ \\u{1b}[31mred\\n");
        assert_eq!(line.written(ABLE), "\u{1b}[32m✓\u{1b}[0m \\u{1b}[31mred\\n");
    }

    #[test]
    fn a_link_is_an_address_where_it_can_be_clicked_and_a_path_elsewhere() {
        let file = PathBuf::from("/a b/\u{1b}ü.html");
        let line = Line::new().with(Style::Link(file.clone()), file.display());
        assert_eq!(line.written(PLAIN), "/a b/\\u{1b}ü.html");
        let written = line.written(ABLE);
        assert!(written.starts_with("\u{1b}]8;;file:///a%20b/%1B%C3%BC.html\u{1b}\\/a b/"), "{written:?}");
    }

    #[test]
    fn texts_are_cut_and_broken_between_words() {
        assert_eq!(fitted("one two three", 13), "one two three");
        assert_eq!(fitted("one two three", 12), "one two…");
        assert_eq!(fitted("one two, three", 11), "one two…");
        assert_eq!(fitted("incomprehensibilities", 6), "incom…");
        assert_eq!(wrapped("one two three", 8), ["one two", "three"]);
        assert_eq!(wrapped("incomprehensibilities of it", 6), ["incomprehensibilities", "of it"]);
    }
}
