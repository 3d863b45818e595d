//! Replacements: a head's context as a small measure of atoms, an exact window and a middle.

mod clusters;
mod geometry;
mod moments;
pub mod offline;
mod state;
pub mod streaming;
mod tokens;

pub use state::exact_bytes;
pub use streaming::StreamingCache;

pub(crate) use tokens::{Tokens, add_rows_times, rows_times_rows};

use crate::Error;
use std::fmt;

/// A head's context as a measure: atoms and a window are exact tokens, everything between them is the middle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Replacement {
    /// Which tokens are kept for ever.
    pub atoms: Atoms,
    /// The last tokens, kept exactly; between `window` and `window + BLOCK` of them, since they leave it in blocks. None in
    /// models where every token sees all, at least one elsewhere.
    pub window: usize,
    /// Tokens of the middle kept exactly because the calibrated readers score them highest.
    pub top: usize,
    /// What stands for the other tokens of the middle.
    pub middle: Middle,
}

/// Tokens leave the window in blocks of this many.
pub const BLOCK: usize = 32;

/// Sinks and other tokens that no average should swallow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Atoms {
    /// The first tokens of the text.
    pub first: usize,
    /// Tokens whose value is shorter than this share of the median: heads park weight on them.
    pub light: f32,
    /// At most this many light tokens are kept (the earliest).
    pub most_light: usize,
}

/// What stands for the tokens of the middle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Middle {
    /// All of them, exactly: no replacement.
    Exact,
    /// Nothing: these tokens are left out.
    Dropped,
    /// Their number at their mean.
    Mean,
    /// The Gaussian of their mean and covariance: the paper's limit.
    Gaussian,
    /// The Gaussian expansion about the readers' mean tilt.
    TiltedGaussian,
    /// The same with its covariances known only in the directions in which tilts vary most.
    ReducedGaussian {
        /// Number of directions that are kept.
        rank: usize,
    },
    /// Clusters in the metric of the tilts, each at its tilted mean.
    TiltedMeans {
        /// Number of clusters.
        count: usize,
    },
    /// Clusters, each a tilted Gaussian.
    TiltedGaussians {
        /// Number of clusters.
        count: usize,
    },
}

impl Middle {
    /// The names of all but exact ones, as refusals tell them.
    pub(crate) const NAMES: &'static str = "dropped, mean, gaussian, tilted-gaussian, reduced-gaussian/RANK, tilted-means/COUNT or \
         tilted-gaussians/COUNT, with numbers from 1 to 1024";
}

impl fmt::Display for Middle {
    /// The name in specifications and tables: `tilted-gaussian`, `reduced-gaussian/16`, `tilted-means/32`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Middle::Exact => formatter.write_str("exact"),
            Middle::Dropped => formatter.write_str("dropped"),
            Middle::Mean => formatter.write_str("mean"),
            Middle::Gaussian => formatter.write_str("gaussian"),
            Middle::TiltedGaussian => formatter.write_str("tilted-gaussian"),
            Middle::ReducedGaussian { rank } => write!(formatter, "reduced-gaussian/{rank}"),
            Middle::TiltedMeans { count } => write!(formatter, "tilted-means/{count}"),
            Middle::TiltedGaussians { count } => write!(formatter, "tilted-gaussians/{count}"),
        }
    }
}

impl std::str::FromStr for Middle {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let refused = || Error::UnknownName {
            kind: "a replacement of the middle",
            name: name.to_string(),
            expected: format!("exact, {}", Middle::NAMES),
        };
        let (word, number) = match name.split_once('/') {
            Some((word, number)) => {
                let number: usize = number.parse().map_err(|_| refused())?;
                if !(1..=1024).contains(&number) {
                    return Err(refused());
                }
                (word, Some(number))
            }
            None => (name, None),
        };
        match (word, number) {
            ("exact", None) => Ok(Middle::Exact),
            ("dropped", None) => Ok(Middle::Dropped),
            ("mean", None) => Ok(Middle::Mean),
            ("gaussian", None) => Ok(Middle::Gaussian),
            ("tilted-gaussian", None) => Ok(Middle::TiltedGaussian),
            ("reduced-gaussian", Some(rank)) => Ok(Middle::ReducedGaussian { rank }),
            ("tilted-means", Some(count)) => Ok(Middle::TiltedMeans { count }),
            ("tilted-gaussians", Some(count)) => Ok(Middle::TiltedGaussians { count }),
            _ => Err(refused()),
        }
    }
}
