//! The answer: distances along single prompts, and what is expected of them.

use crate::measured::Measured;
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
#[derive(Debug, Default)]
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
    let mut all: Vec<Paths> = Vec::new();
    for row in rows {
        let index = match all.iter().position(|known| known.law == row.law && known.sigma == row.sigma) {
            Some(index) => index,
            None => {
                all.push(Paths { law: row.law.clone(), sigma: row.sigma, ..Paths::default() });
                all.len() - 1
            }
        };
        let known = &mut all[index];
        let point = (row.length.unwrap_or(0) as f64, row.number.value);
        match row.statistic {
            Statistic::Limit => known.limit = row.number.value,
            Statistic::Distance => {
                let prompt = row.prompt.unwrap_or(1).max(1) as usize;
                if known.prompts.len() < prompt {
                    known.prompts.resize(prompt, Vec::new());
                }
                known.prompts[prompt - 1].push(point);
            }
            Statistic::Expected | Statistic::Asymptote => {
                known.theory_is_exact = row.statistic == Statistic::Expected;
                known.theory.push(point);
            }
        }
    }
    all
}
