//! The answer as lines of text.

use super::QUESTION;
use super::answer::{Quantity, Row};
use esscher_report::{Block, Section, number};

pub(super) fn sections(queries: &[Vec<f64>], rows: &[Row]) -> Vec<Section> {
    let mut blocks = Vec::new();
    let mut line = |text: String| blocks.push(Block::Prose(text));
    for (number, query) in queries.iter().enumerate() {
        let of =
            |quantity| rows.iter().filter(move |row| row.query == number as u64 && row.quantity == quantity);
        let vector = |quantity| of(quantity).map(|row| row.number.value).collect::<Vec<f64>>();
        let (output, limit) = (vector(Quantity::Output), vector(Quantity::GaussianLimit));
        let away = output.iter().zip(&limit).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
        line(format!("query           {}", numbers(query)));
        line(format!("output          {}", numbers(&output)));
        line(format!("gaussian limit  {}   (linear in the query; {away:.2e} away)", numbers(&limit)));
        for row in of(Quantity::EffectiveTokens) {
            line(format!("effective tokens {:.1}", row.number.value));
        }
        for row in of(Quantity::Error) {
            line(format!(
                "L = {}: root-mean-square error {:.4e} ± {:.1e} ({})",
                row.length.unwrap_or_default(),
                row.number.value,
                row.number.error(),
                row.number.class()
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
