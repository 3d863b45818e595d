//! The answer as lines of text.

use super::QUESTION;
use super::answer::{Quantity, Row};
use crate::counted::{grouped, tokens};
use esscher_core::numerics::linalg;
use esscher_report::{Block, Section, number};

/// The answer at each query; a prompt has so many tokens.
pub(super) fn sections(queries: &[Vec<f64>], prompt: Option<usize>, rows: &[Row]) -> Vec<Section> {
    let mut blocks = Vec::new();
    let mut line = |text: String| blocks.push(Block::Prose(text));
    for (place, query) in queries.iter().enumerate() {
        let of =
            |quantity| rows.iter().filter(move |row| row.query == place as u64 && row.quantity == quantity);
        let vector = |quantity| of(quantity).map(|row| row.number.value).collect::<Vec<f64>>();
        let (output, limit) = (vector(Quantity::Output), vector(Quantity::GaussianLimit));
        let away = linalg::norm(&linalg::difference(&output, &limit));
        let mut say = |name: &str, told: String| line(format!("{name:<16} {told}"));
        say("query", numbers(query));
        say("output", numbers(&output));
        let distance = match away == 0.0 {
            true => "identical".to_string(),
            false => format!("{} away", rounded(away, 3)),
        };
        say("gaussian limit", format!("{}   (linear in the query; {distance})", numbers(&limit)));
        let size = output.iter().fold(0.0_f64, |largest, entry| largest.max(entry.abs()));
        let lost = of(Quantity::Output).map(|row| row.number.error()).fold(0.0, f64::max);
        if lost > 1e-6 * size {
            say("", format!("known to ± {lost:.1e}: large terms cancel in double precision"));
        }
        for row in of(Quantity::EffectiveTokens) {
            let (value, error) = (row.number.value, row.number.error());
            let lost = if error > 0.05 { format!(" ± {error:.1}") } else { String::new() };
            let of_all = prompt.map_or(String::new(), |count| format!(" of {}", grouped(count as u64)));
            let meaning = "as many that share the weight equally would be as concentrated";
            say("effective tokens", format!("{value:.1}{lost}{of_all}   ({meaning})"));
        }
        for row in of(Quantity::Error) {
            let length = tokens(row.length.unwrap_or_default());
            let note =
                row.note.as_ref().map_or(String::new(), |note| format!("; {note}, so that ± is too small"));
            let value = rounded(row.number.value, 3);
            // Errors of exact numbers are below what is shown.
            let doubt = match row.number.error() > 1e-4 * row.number.value {
                true => format!(" ± {}", rounded(row.number.error(), 2)),
                false => String::new(),
            };
            let class = row.number.class();
            say("", format!("{length}: root-mean-square error {value}{doubt} ({class}{note})"));
        }
    }
    vec![Section::new("attend", QUESTION.title, blocks)]
}

/// So many digits of a number.
fn rounded(value: f64, digits: usize) -> String {
    let decimals = digits.saturating_sub(1);
    number(format!("{value:.decimals$e}").parse().unwrap_or(value), None).unicode()
}

/// A coordinate, which somebody may go on computing with: six digits, more than a report shows of a number.
fn coordinate(value: f64) -> String {
    if !(1e-3..1e6).contains(&value.abs()) {
        return number(value, None).unicode();
    }
    let decimals = (5.0 - value.abs().log10().floor()).max(0.0) as usize;
    let digits = format!("{value:.decimals$}");
    let trimmed =
        if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { &digits };
    trimmed.replace('-', "−")
}

fn numbers(vector: &[f64]) -> String {
    let shown: Vec<String> = vector.iter().take(16).map(|entry| coordinate(*entry)).collect();
    let more = if vector.len() > 16 { format!(", … ({} entries)", vector.len()) } else { String::new() };
    format!("[{}{more}]", shown.join(", "))
}
