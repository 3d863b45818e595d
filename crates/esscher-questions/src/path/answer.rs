//! The answer: distances along single prompts, and what is expected of them.

use crate::measured::Measured;
use crate::tabulating::distinct;
use esscher_lab::{named, rows};

named! {
    /// What a row holds.
    pub enum Statistic {
        /// |T_L − T| of one prompt, the root mean square over the queries: a draw, so it has no error of its own.
        Distance = "distance",
        /// The root of its expected square, exact at every length.
        Expected = "expected",
        /// The root of the constant of the 1/L law over L, for laws without an exact theory.
        Asymptote = "asymptote",
        /// |T|, the root mean square over the queries.
        Limit = "limit",
    }
}

rows! {
    /// A distance or a size.
    #[derive(Debug, Clone)]
    pub struct Row {
        /// The law, by its name.
        law: String,
        /// The factor on its tokens.
        sigma: f64,
        /// What the number is.
        statistic: Statistic,
        /// Which prompt, from 1, where it is of a single one.
        prompt: Option<u64>,
        /// The length of the prompt, but for the limit.
        length: Option<u64>,
        /// The number.
        number: Measured,
    }
}

/// The prompts of one law at one scale.
#[derive(Debug)]
pub struct Paths {
    /// The law, by its name.
    pub law: String,
    /// The factor on its tokens.
    pub sigma: f64,
    /// |T|.
    pub limit: f64,
    /// Length and distance, a list per prompt.
    pub prompts: Vec<Vec<(f64, f64)>>,
    /// Length and expected distance or asymptote; empty where there is neither.
    pub theory: Vec<(f64, f64)>,
    /// Whether the theory holds at every length or at long ones only.
    pub theory_is_exact: bool,
}

/// The paths of an answer by law and σ, in its order.
pub fn paths(rows: &[Row]) -> Vec<Paths> {
    let path = |(law, sigma): (&str, f64)| {
        let of = |statistic| -> Vec<&Row> {
            let mine = rows.iter().filter(|row| row.law == law && row.sigma == sigma);
            mine.filter(|row| row.statistic == statistic).collect()
        };
        let points = |rows: &[&Row]| -> Vec<(f64, f64)> {
            rows.iter().map(|row| (row.length.unwrap_or(0) as f64, row.number.value)).collect()
        };
        let (expected, asymptote) = (of(Statistic::Expected), of(Statistic::Asymptote));
        Paths {
            law: law.to_string(),
            sigma,
            limit: of(Statistic::Limit).last().map_or(0.0, |row| row.number.value),
            prompts: of(Statistic::Distance).chunk_by(|a, b| a.prompt == b.prompt).map(points).collect(),
            theory_is_exact: !expected.is_empty(),
            theory: points(if expected.is_empty() { &asymptote } else { &expected }),
        }
    };
    distinct(rows.iter().map(|row| (row.law.as_str(), row.sigma))).into_iter().map(path).collect()
}
