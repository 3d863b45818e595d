//! The answer as a sentence.

use super::QUESTION;
use super::answer::{Outcome, Row};
use esscher_core::Accuracy;
use esscher_report::{Block, Section, shortest};

pub(super) fn sections(rows: &[Row]) -> Vec<Section> {
    let mut blocks = Vec::new();
    for row in rows {
        blocks.extend(row.tokens.iter().map(|tokens| Block::Prose(format!("tokens: {tokens}"))));
        // An exact number is good to more digits than are shown; an average says its standard error.
        let class = match row.number.accuracy {
            Accuracy::Exact => row.number.class().to_string(),
            _ => format!("± {:.1e}, {}", row.number.error(), row.number.class()),
        };
        blocks.push(Block::Prose(match (row.outcome, row.length) {
            (Outcome::Found, Some(length)) => format!(
                "L = {length} tokens: root-mean-square error {:.6e}, at most {} ({class})",
                row.number.value,
                shortest(row.tolerance)
            ),
            _ => format!(
                "more than {} tokens: the root-mean-square error there is still {:.3e} ({class})",
                row.too_short.unwrap_or_default(),
                row.number.value
            ),
        }));
    }
    vec![Section::new("horizon", QUESTION.title, blocks)]
}
