//! Prose: text with `$…$` formulas, `` `…` `` code and `**…**` emphasis, parsed once for all outputs.

use crate::formula;
use crate::literal::{meant, unhidden, visible};

/// A piece of prose.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Span {
    /// Means itself.
    Text(String),
    /// LaTeX between dollar signs. Literal text in it loses its marks: no text of a user becomes LaTeX.
    Formula(String),
    /// Between backquotes.
    Code(String),
    /// Between double asterisks; may hold formulas and code.
    Strong(Vec<Span>),
}

/// Splits prose into its pieces. A mark that is never closed, or that closes at once, means itself.
pub(crate) fn spans(prose: &str) -> Vec<Span> {
    let mut pieces = Vec::new();
    let mut text = String::new();
    let mut rest = prose;
    while let Some(first) = rest.chars().next() {
        let marked = ["$", "`", "**"].iter().find_map(|mark| {
            let after = rest.strip_prefix(mark)?;
            let end = after.find(mark).filter(|&end| end > 0)?;
            Some((*mark, &after[..end], &after[end + mark.len()..]))
        });
        match marked {
            Some((mark, inside, after)) => {
                if !text.is_empty() {
                    pieces.push(Span::Text(std::mem::take(&mut text)));
                }
                pieces.push(match mark {
                    "$" => Span::Formula(inside.chars().filter(|sign| meant(*sign) == *sign).collect()),
                    "`" => Span::Code(unhidden(inside)),
                    _ => Span::Strong(spans(inside)),
                });
                rest = after;
            }
            None => {
                text.push(meant(first));
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    if !text.is_empty() {
        pieces.push(Span::Text(text));
    }
    pieces
}

/// Prose as plain text in Unicode: for terminals, headings of CSV files and titles of windows.
///
/// Control characters and overrides of the direction of reading are written as `\u{1b}`.
pub fn plain(prose: &str) -> String {
    visible(&unmarked(prose))
}

/// Prose without its marks, every other character as it is: for data.
pub(crate) fn unmarked(prose: &str) -> String {
    plain_spans(&spans(prose))
}

fn plain_spans(pieces: &[Span]) -> String {
    pieces
        .iter()
        .map(|piece| match piece {
            Span::Text(text) | Span::Code(text) => text.clone(),
            Span::Formula(source) => formula::unicode(source),
            Span::Strong(inside) => plain_spans(inside),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_make_pieces_and_everything_else_means_itself() {
        assert_eq!(
            spans("a < b & $x^2$, `c$d` **e $f$**"),
            vec![
                Span::Text("a < b & ".into()),
                Span::Formula("x^2".into()),
                Span::Text(", ".into()),
                Span::Code("c$d".into()),
                Span::Text(" ".into()),
                Span::Strong(vec![Span::Text("e ".into()), Span::Formula("f".into())]),
            ]
        );
    }

    #[test]
    fn an_open_mark_means_itself() {
        for open in ["5$ each", "a ` b", "2 ** 3", "$$", "****", "`` "] {
            assert_eq!(spans(open), vec![Span::Text(open.into())], "{open}");
        }
    }

    #[test]
    fn plain_text_keeps_formulas_readable() {
        assert_eq!(plain(r"rate $\sigma^2 L^{-1/2}$ of `run`"), "rate σ² L^(−1/2) of run");
    }
}
