//! The answer as a sentence.

use super::QUESTION;
use super::answer::{Outcome, Row};
use crate::counted::tokens;
use esscher_core::Accuracy;
use esscher_report::{Block, Section, number, shortest};

pub(super) fn sections(rows: &[Row]) -> Vec<Section> {
    let mut blocks = Vec::new();
    for row in rows {
        blocks.extend(row.tokens.iter().map(|taken| Block::Prose(format!("tokens: {taken}"))));
        // An exact number is good to more digits than are shown; an average says its standard error.
        let class = match row.number.accuracy {
            Accuracy::Exact => row.number.class().to_string(),
            _ => format!("to ± {:.0e}, {}", row.number.error(), row.number.class()),
        };
        let error = number(row.number.value, None).unicode();
        // Where the last token makes no difference that shows, the error is the tolerance.
        let most = format!("at most {}", shortest(row.tolerance));
        let found = match number(row.tolerance, None).unicode() == error {
            true => most,
            false => format!("{error}, {most}"),
        };
        let suffice = if row.length == Some(1) { "suffices" } else { "suffice" };
        blocks.push(Block::Prose(match (row.outcome, row.length) {
            (Outcome::Found, Some(length)) => {
                format!("{} {suffice}: the root-mean-square error is {found} ({class})", tokens(length))
            }
            _ => format!(
                "more than {} are needed: with so many the root-mean-square error is still {error} ({class})",
                tokens(row.too_short.unwrap_or_default()),
            ),
        }));
    }
    vec![Section::new("horizon", QUESTION.title, blocks)]
}
