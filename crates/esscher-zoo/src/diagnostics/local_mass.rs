//! Local mass: which share of the absolute weight of a row stays in the neighbourhood of its token, against chance.

use super::rows::Rows;
use crate::error::{Error, Result};

/// What is near.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Neighbourhood {
    /// Tokens on a line at a distance of at most `radius`.
    Line {
        /// The largest distance.
        radius: usize,
    },
    /// Tokens row by row on a grid of so many columns, at most `radius` away in either direction: 3 × 3 for 1.
    Grid {
        /// Columns of the grid.
        columns: usize,
        /// The largest distance in either direction.
        radius: usize,
    },
}

impl Neighbourhood {
    /// Whether two tokens are near each other.
    pub fn near(&self, one: usize, other: usize) -> bool {
        match *self {
            Neighbourhood::Line { radius } => one.abs_diff(other) <= radius,
            Neighbourhood::Grid { columns, radius } => {
                let columns = columns.max(1);
                (one / columns).abs_diff(other / columns) <= radius
                    && (one % columns).abs_diff(other % columns) <= radius
            }
        }
    }
}

/// The average over tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LocalMass {
    /// The share of Σ |weight| that is near.
    pub share: f64,
    /// The share of visible tokens that are near: what equal weights give.
    pub chance: f64,
}

/// The local mass of an attention matrix; rows without any weight are left out.
///
/// # Errors
/// Rows that do not belong to the tokens (of queries, for example), or no weight at all.
pub fn local_mass(rows: &Rows, neighbourhood: Neighbourhood) -> Result<LocalMass> {
    if rows.count() != rows.tokens {
        return Err(Error::Size { name: "rows", expected: rows.tokens, found: rows.count() });
    }
    let (mut share, mut chance, mut counted) = (0.0, 0.0, 0.0);
    for token in 0..rows.tokens {
        let visible = rows.visible(token);
        let near = |other: &usize| neighbourhood.near(token, *other);
        let row = rows.row(token);
        let total: f64 = visible.clone().map(|other| row[other].abs()).sum();
        if total > 0.0 {
            share += visible.clone().filter(near).map(|other| row[other].abs()).sum::<f64>() / total;
            chance += visible.clone().filter(near).count() as f64 / visible.len() as f64;
            counted += 1.0;
        }
    }
    if counted == 0.0 {
        return Err(Error::Missing {
            mechanism: "this attention matrix".to_string(),
            what: "local mass",
            reason: "all weights are zero",
        });
    }
    Ok(LocalMass { share: share / counted, chance: chance / counted })
}
