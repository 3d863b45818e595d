//! What readers make of keys: the base tilt, the directions in which tilts vary, the metric, expected attention.

use super::{Middle, Replacement, moments::Directions, rows_times_rows};
use crate::readers::{Readers, Tilts};
use esscher_core::Mat;
use esscher_core::numerics::linalg::SymmetricEigen;

/// Everything that a cache asks of its readers, worked out once.
#[derive(Debug, Clone)]
pub(crate) struct Geometry {
    /// θ₀, the tilt about which moments are expanded.
    pub(crate) base: Vec<f32>,
    /// Rank of the covariances that are kept; 0 for means.
    pub(crate) rank: usize,
    /// Leading eigenvectors as rows, if they are not all.
    rows: Option<Vec<f32>>,
    /// Rows √λᵢ vᵢ: |metric (k − k')| is what readers can distinguish.
    metric: Vec<f32>,
    tilts: Tilts,
    /// Values shorter than this are light.
    pub(crate) light: f32,
}

impl Geometry {
    /// Missing numbers of the readers count as zeros, and so does a covariance of another dimension.
    pub(crate) fn new(replacement: &Replacement, readers: &Readers, dimension: usize) -> Self {
        let d = dimension;
        let mut tilts = readers.pooled.clone();
        tilts.mean.resize(d, 0.0);
        let entry = |i: usize, j: usize| -> f64 {
            let fits = readers.pooled.covariance.len() == d * d;
            let entry = readers.pooled.covariance.get(i * d + j).filter(|entry| fits && entry.is_finite());
            entry.map_or(0.0, |&entry| f64::from(entry))
        };
        // Largest eigenvalue first. A matrix of finite entries has its decomposition; should it fail, every coordinate
        // counts alike.
        let (values, vectors) =
            match SymmetricEigen::new("covariance of the tilts", Mat::from_fn(d, d, entry).as_ref()) {
                Ok(eigen) => {
                    let vectors: Vec<Vec<f32>> = (0..d)
                        .rev()
                        .map(|j| (0..d).map(|i| eigen.vectors[(i, j)] as f32).collect())
                        .collect();
                    (eigen.values.iter().rev().map(|value| value.max(0.0)).collect(), vectors)
                }
                Err(_) => {
                    let unit = |j: usize| (0..d).map(|i| f32::from(u8::from(i == j))).collect();
                    (vec![1.0; d], (0..d).map(unit).collect::<Vec<Vec<f32>>>())
                }
            };
        let metric = values
            .iter()
            .zip(&vectors)
            .flat_map(|(value, vector)| {
                vector.iter().map(move |entry| (f64::from(*entry) * value.sqrt()) as f32)
            })
            .collect();
        let (rank, rows) = match replacement.middle {
            Middle::Gaussian | Middle::TiltedGaussian | Middle::TiltedGaussians { .. } => (d, None),
            Middle::ReducedGaussian { rank } if rank < d => (rank, Some(vectors[..rank].concat())),
            Middle::ReducedGaussian { .. } => (d, None),
            Middle::Exact | Middle::Dropped | Middle::Mean | Middle::TiltedMeans { .. } => (0, None),
        };
        let base = match replacement.middle {
            Middle::Gaussian | Middle::Mean => vec![0.0; d],
            _ => tilts.mean.clone(),
        };
        Geometry {
            base,
            rank,
            rows,
            metric,
            tilts,
            light: replacement.atoms.light * readers.median_value_norm,
        }
    }

    /// The coordinates in which covariances are kept.
    pub(crate) fn directions(&self) -> Directions<'_> {
        self.rows.as_deref().map_or(Directions::All, Directions::Rows)
    }

    /// Σ_θ^{1/2} k of every key, up to a rotation: Euclidean distance there is the standard deviation of the readers'
    /// difference of scores.
    pub(crate) fn places(&self, keys: &[f32]) -> Vec<f32> {
        let mut places = vec![0.0; keys.len()];
        rows_times_rows(&mut places, keys, &self.metric, self.base.len());
        places
    }

    /// log E e^{θ·k} for Gaussian tilts of all readers.
    pub(crate) fn log_expected_attention(&self, key: &[f32]) -> f64 {
        self.tilts.log_expected_score(key)
    }
}
