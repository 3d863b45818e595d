//! Prose: text with `$…$` formulas, `` `…` `` code, `**…**` emphasis and `[…](…)` links, parsed once for all outputs.

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
    /// Words that lead to an address, which begins with `https://`, `http://` or `#` and has only signs of addresses.
    Link(Vec<Span>, String),
}

/// Splits prose into its pieces. A mark that is never closed, or that closes at once, means itself.
pub(crate) fn spans(prose: &str) -> Vec<Span> {
    let mut pieces = Vec::new();
    let mut text = String::new();
    let mut rest = prose;
    while let Some(first) = rest.chars().next() {
        if let Some((words, target, after)) = link(rest) {
            if !text.is_empty() {
                pieces.push(Span::Text(std::mem::take(&mut text)));
            }
            pieces.push(Span::Link(spans(words), target.to_string()));
            rest = after;
            continue;
        }
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

/// A link at the beginning of a text: its words, its target, and what comes after. Anything that is no address of the web
/// or of the page is no link.
fn link(text: &str) -> Option<(&str, &str, &str)> {
    let (words, after) = text.strip_prefix('[')?.split_once("](")?;
    let (target, after) = after.split_once(')')?;
    let address = ["https://", "http://", "#"].iter().find_map(|begin| target.strip_prefix(begin))?;
    let of_address = |sign: char| sign.is_ascii_alphanumeric() || "-._~:/?#@!&'*+,;=%".contains(sign);
    let is_link = !words.trim().is_empty() && !words.contains(['[', ']']) && !address.is_empty();
    (is_link && address.chars().all(of_address)).then_some((words, target, after))
}

/// Prose as plain text in Unicode: for terminals, headings of CSV files and titles of windows.
///
/// Control characters and overrides of the direction of reading are written as `\u{1b}`.
pub fn plain(prose: &str) -> String {
    visible(&plain_spans(&spans(prose), false))
}

/// Prose as plain text in which addresses of the web stand after the words that lead to them: for terminals.
pub(crate) fn with_addresses(prose: &str) -> String {
    visible(&plain_spans(&spans(prose), true))
}

fn plain_spans(pieces: &[Span], addresses: bool) -> String {
    pieces
        .iter()
        .map(|piece| match piece {
            Span::Text(text) | Span::Code(text) => text.clone(),
            Span::Formula(source) => formula::unicode(source),
            Span::Strong(inside) => plain_spans(inside, addresses),
            Span::Link(words, target) => {
                let words = plain_spans(words, addresses);
                if addresses && target.starts_with("http") { format!("{words} ({target})") } else { words }
            }
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
    fn only_addresses_of_the_web_and_of_the_page_are_links() {
        let target = |prose: &str| match spans(prose).as_slice() {
            [Span::Link(_, target)] => Some(target.clone()),
            _ => None,
        };
        for address in ["https://arxiv.org/abs/2512.11784", "http://a.b/c?d=e&f=%20#g", "#drift-2"] {
            assert_eq!(target(&format!("[the *paper*]({address})")).as_deref(), Some(address));
        }
        for other in [
            "javascript:alert(1)",
            "data:text/html,x",
            "//a.b",
            "file:///etc",
            "https://a b",
            "#",
            "https://",
            "https://a\"b",
        ] {
            assert_eq!(target(&format!("[words]({other})")), None, "{other}");
        }
        for user in ["[a](https://b.c)", "](https://b.c)", "[a](#b) ["] {
            let prose = format!("{0} [{0}] {0}", crate::literal(user));
            assert!(!spans(&prose).iter().any(|span| matches!(span, Span::Link(..))), "{prose}");
        }
        let prose = "on [0, 1] see **[arXiv](https://arxiv.org)** and [below](#x).";
        assert_eq!(plain(prose), "on [0, 1] see arXiv and below.");
        assert_eq!(with_addresses(prose), "on [0, 1] see arXiv (https://arxiv.org) and below.");
    }

    #[test]
    fn plain_text_keeps_formulas_readable() {
        assert_eq!(plain(r"rate $\sigma^2 L^{-1/2}$ of `run`"), "rate σ² L^(−1/2) of run");
    }
}
