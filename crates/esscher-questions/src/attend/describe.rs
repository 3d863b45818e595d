//! The answer as lines of text.

use super::QUESTION;
use super::answer::{Quantity, Row};
use esscher_core::numerics::linalg;
use esscher_report::{Block, Section, number};

pub(super) fn sections(queries: &[Vec<f64>], rows: &[Row]) -> Vec<Section> {
    let mut blocks = Vec::new();
    let mut line = |text: String| blocks.push(Block::Prose(text));
    for (number, query) in queries.iter().enumerate() {
        let of =
            |quantity| rows.iter().filter(move |row| row.query == number as u64 && row.quantity == quantity);
        let vector = |quantity| of(quantity).map(|row| row.number.value).collect::<Vec<f64>>();
        let (output, limit) = (vector(Quantity::Output), vector(Quantity::GaussianLimit));
        let away = linalg::norm(&linalg::difference(&output, &limit));
        line(format!("query           {}", numbers(query)));
        line(format!("output          {}", numbers(&output)));
        line(format!("gaussian limit  {}   (linear in the query; {away:.2e} away)", numbers(&limit)));
        let size = output.iter().fold(0.0_f64, |largest, entry| largest.max(entry.abs()));
        let lost = of(Quantity::Output).map(|row| row.number.error()).fold(0.0, f64::max);
        if lost > 1e-6 * size {
            line(format!("                known to ± {lost:.1e}: large terms cancel in double precision"));
        }
        for row in of(Quantity::EffectiveTokens) {
            let (value, error) = (row.number.value, row.number.error());
            let lost = if error > 0.05 { format!(" ± {error:.1}") } else { String::new() };
            line(format!("effective tokens {value:.1}{lost}"));
        }
        for row in of(Quantity::Error) {
            line(format!(
                "L = {}: root-mean-square error {:.4e} ± {:.1e} ({}{})",
                row.length.unwrap_or_default(),
                row.number.value,
                row.number.error(),
                row.number.class(),
                row.note.as_ref().map_or(String::new(), |note| format!("; {note}, so that ± is too small"))
            ));
        }
    }
    vec![Section::new("attend", QUESTION.title, blocks)]
}

fn numbers(vector: &[f64]) -> String {
    let shown: Vec<String> = vector.iter().take(16).map(|entry| number(*entry, None).unicode()).collect();
    let more = if vector.len() > 16 { format!(", … ({} entries)", vector.len()) } else { String::new() };
    format!("[{}{more}]", shown.join(", "))
}
