//! Labels with subscripts: `T[μ_L]` and `θ_{in}` as letters on and below the line, measured, broken and written.

use crate::escape::xml;
use crate::font;
use crate::formula;
use crate::literal::{unhidden, visible};

/// Size of lowered letters relative to the others, as in the raised powers of ticks.
pub(crate) const SIZE: f64 = 0.72;
/// How far they stand below the line, in sizes of the others.
pub(crate) const DROP: f64 = 0.2;

/// A piece of a label that stands on the line, or below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) text: String,
    pub(crate) lowered: bool,
}

/// The pieces of a label; neighbours differ in height.
///
/// `_{…}` lowers what it holds. `_x` lowers one letter, digit or sign, unless more letters or digits of a word follow:
/// `quasi_monte_carlo` means itself. So does an underscore after nothing or after a space.
pub(crate) fn pieces(label: &str) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut rest = label;
    let mut before = ' ';
    while let Some(first) = rest.chars().next() {
        match subscript(rest).filter(|_| !before.is_whitespace()) {
            Some((inside, after)) => {
                push(&mut pieces, inside, true);
                rest = after;
                before = '}';
            }
            None => {
                // What follows an underscore that means itself belongs to its word: `run_1_2`.
                let in_word = |next: char| next == '_' || next.is_ascii_alphanumeric();
                let end =
                    if first == '_' { rest.find(|next| !in_word(next)) } else { Some(first.len_utf8()) };
                let (one, after) = rest.split_at(end.unwrap_or(rest.len()));
                push(&mut pieces, one, false);
                rest = after;
                before = first;
            }
        }
    }
    pieces
}

/// What an underscore at the beginning of the text lowers, and what comes after.
fn subscript(text: &str) -> Option<(&str, &str)> {
    let after = text.strip_prefix('_')?;
    if let Some(inside) = after.strip_prefix('{') {
        let end = inside.find('}')?;
        return Some((&inside[..end], &inside[end + 1..])).filter(|(inside, _)| !inside.trim().is_empty());
    }
    let first = after.chars().next()?;
    let (one, after) = after.split_at(first.len_utf8());
    let may_be_lowered = first.is_alphanumeric() || "∞*⋆∗+−±".contains(first);
    let ends_here = !after.starts_with(|next: char| next.is_ascii_alphanumeric() || next == '_');
    (may_be_lowered && ends_here).then_some((one, after))
}

fn push(pieces: &mut Vec<Piece>, text: &str, lowered: bool) {
    // What is drawn is measured first, so that it must be visible here already.
    let text = visible(&unhidden(text));
    match pieces.last_mut() {
        Some(last) if last.lowered == lowered => last.text.push_str(&text),
        _ => pieces.push(Piece { text, lowered }),
    }
}

/// Width of a line at a font size.
pub(crate) fn width(line: &[Piece], size: f64) -> f64 {
    line.iter().map(|piece| font::width(&piece.text, if piece.lowered { size * SIZE } else { size })).sum()
}

/// A label takes at most this many lines, then an ellipsis says that it goes on.
const MOST_LINES: usize = 8;

/// A label in lines no wider than `room`, broken at spaces; a word that is wider is cut, and so is what takes too many lines.
pub(crate) fn wrapped(label: &str, size: f64, room: f64) -> Vec<Vec<Piece>> {
    let mut lines: Vec<Vec<Piece>> = Vec::new();
    let mut line: Vec<Piece> = Vec::new();
    for word in words(label) {
        if lines.len() > MOST_LINES {
            break;
        }
        let mut joined = line.clone();
        if !joined.is_empty() {
            push(&mut joined, " ", false);
        }
        word.iter().for_each(|piece| push(&mut joined, &piece.text, piece.lowered));
        if width(&joined, size) <= room {
            line = joined;
            continue;
        }
        if !line.is_empty() {
            lines.push(std::mem::take(&mut line));
        }
        for piece in &word {
            for character in piece.text.chars() {
                if lines.len() > MOST_LINES {
                    break;
                }
                let one = [Piece { text: character.to_string(), lowered: piece.lowered }];
                if !line.is_empty() && width(&line, size) + width(&one, size) > room {
                    lines.push(std::mem::take(&mut line));
                }
                push(&mut line, &one[0].text, piece.lowered);
            }
        }
    }
    if !line.is_empty() {
        lines.push(line);
    }
    if lines.len() > MOST_LINES {
        lines.truncate(MOST_LINES);
        if let Some(last) = lines.last_mut() {
            shorten(last, size, room - font::width("…", size));
            push(last, "…", false);
        }
    }
    lines
}

/// Takes letters from the end of a line until it fits.
fn shorten(line: &mut Vec<Piece>, size: f64, room: f64) {
    while width(line, size) > room
        && let Some(last) = line.last_mut()
    {
        if last.text.pop().is_none() {
            line.pop();
        }
    }
}

/// A label cut at the spaces on the line.
fn words(label: &str) -> Vec<Vec<Piece>> {
    let mut words: Vec<Vec<Piece>> = vec![Vec::new()];
    for piece in pieces(label) {
        let texts: Vec<&str> =
            if piece.lowered { vec![&piece.text] } else { piece.text.split(char::is_whitespace).collect() };
        for (index, text) in texts.into_iter().enumerate() {
            if index > 0 {
                words.push(Vec::new());
            }
            if let Some(word) = words.last_mut().filter(|_| !text.is_empty()) {
                push(word, text, piece.lowered);
            }
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// A label as HTML.
pub(crate) fn html(label: &str) -> String {
    let written = |piece: Piece| match piece.lowered {
        true => format!("<sub>{}</sub>", xml(&piece.text)),
        false => xml(&piece.text),
    };
    pieces(label).into_iter().map(written).collect()
}

/// A label in one line of Unicode, for places that cannot lower letters: `x₀`, and `μ_L` where there is no sign for it.
pub(crate) fn unicode(label: &str) -> String {
    let written = |piece: Piece| if piece.lowered { formula::lowered(&piece.text) } else { piece.text };
    pieces(label).into_iter().map(written).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::literal;

    /// Lowered pieces in square brackets.
    fn shown(label: &str) -> String {
        pieces(label)
            .into_iter()
            .map(|piece| if piece.lowered { format!("[{}]", piece.text) } else { piece.text })
            .collect()
    }

    #[test]
    fn one_sign_or_a_group_is_lowered() {
        for (label, expected) in [
            ("|θ_L(t) − θ_∞(t)|", "|θ[L](t) − θ[∞](t)|"),
            ("T(μ_L)", "T(μ[L])"),
            ("x_0² + x_{in context}", "x[0]² + x[in context]"),
            ("c_{1}_{2}", "c[12]"),
        ] {
            assert_eq!(shown(label), expected);
        }
    }

    #[test]
    fn other_underscores_mean_themselves() {
        for label in [
            "quasi_monte_carlo",
            "a_",
            "_a",
            "a _b",
            "a_{",
            "a_{}",
            "a_{ }",
            "a__b",
            "run_1_2",
            "a_(b)",
            "",
            "run_12",
        ] {
            assert_eq!(shown(label), label);
        }
    }

    #[test]
    fn lowered_letters_are_narrower_and_never_leave_their_line() {
        assert!(width(&pieces("μ_L"), 10.0) < font::width("μL", 10.0));
        let label = "the distance T(μ_L) of x_{in context} and averyveryverylongword_{withoutanyspace}";
        let lines = wrapped(label, 11.0, 90.0);
        assert!(lines.len() > 3 && lines.iter().all(|line| width(line, 11.0) <= 90.0));
        let together: String = lines.iter().flatten().map(|piece| piece.text.as_str()).collect();
        assert_eq!(together.replace(' ', "").len(), label.replace([' ', '_', '{', '}'], "").len());
        assert_eq!(wrapped("", 11.0, 90.0), Vec::<Vec<Piece>>::new());
        let endless = wrapped(&"x".repeat(10_000), 11.0, 90.0);
        assert!(endless.len() == MOST_LINES && endless.iter().all(|line| width(line, 11.0) <= 90.0));
        assert!(
            endless.last().is_some_and(|line| line.last().is_some_and(|piece| piece.text.ends_with('…')))
        );
    }

    #[test]
    fn literal_underscores_mean_themselves() {
        assert_eq!(shown(&format!("θ_L of {}", literal("x_1, y_{2}\u{1b}"))), "θ[L] of x_1, y_{2}\\u{1b}");
    }

    #[test]
    fn each_output_lowers_in_its_own_way() {
        assert_eq!(html("μ_L, x_{<b>}"), "μ<sub>L</sub>, x<sub>&lt;b&gt;</sub>");
        assert_eq!(unicode("x_0, μ_L, θ_{in}"), "x₀, μ_L, θ_in");
    }
}
