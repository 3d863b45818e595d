//! Injectivity: do distinct queries get distinct rows? Normalised linear attention confuses queries that softmax tells apart (key `han2024`).
//!
//! Softmax: if rank K = d and rank [K, 1] = d + 1, equal rows make ⟨p − q, k_i⟩ constant in i, hence p = q. Normalised linear
//! attention with φ = ReLU gives p and αp, α > 0, the same row. InLine subtracts where softmax divides and is injective under the analogous
//! condition on φ(K).

use super::rows::{Rows, query_rows};
use crate::error::{Error, Result};
use crate::mechanism::{Given, Mechanism};
use esscher_core::numerics::linalg;
use faer::Mat;

/// Rows at a smaller Euclidean distance count as the same. The publication's threshold is known to us from recollection only.
pub const SAME_ROW: f64 = 1e-3;

/// How many queries are confused.
#[derive(Debug, Clone, PartialEq)]
pub struct Confusion {
    /// Pairs of distinct queries.
    pub pairs: usize,
    /// Those whose rows are closer than the threshold.
    pub confused: usize,
    /// The smallest distance of the rows of distinct queries; infinite if there is no pair.
    pub smallest_distance: f64,
}

/// Counts pairs of distinct queries (a row each, of this width) whose rows of attention are closer than `threshold`.
///
/// # Errors
/// As many rows as queries are needed.
pub fn confusion(rows: &Rows, queries: &[f64], width: usize, threshold: f64) -> Result<Confusion> {
    if queries.len() != rows.count() * width {
        return Err(Error::Size { name: "queries", expected: rows.count() * width, found: queries.len() });
    }
    let query = |index: usize| &queries[index * width..(index + 1) * width];
    let mut result = Confusion { pairs: 0, confused: 0, smallest_distance: f64::INFINITY };
    for second in 0..rows.count() {
        for first in (0..second).filter(|&first| query(first) != query(second)) {
            let distance = linalg::norm(&linalg::difference(rows.row(first), rows.row(second)));
            result.pairs += 1;
            result.confused += usize::from(distance < threshold);
            result.smallest_distance = result.smallest_distance.min(distance);
        }
    }
    Ok(result)
}

/// Ranks that decide whether softmax attention over these keys is injective.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankCondition {
    /// d, the width of a key.
    pub width: usize,
    /// rank K.
    pub keys: usize,
    /// rank [K, 1].
    pub keys_with_ones: usize,
}

impl RankCondition {
    /// Whether the rows of softmax attention determine the query.
    pub fn holds(&self) -> bool {
        self.keys == self.width && self.keys_with_ones == self.width + 1
    }
}

/// The ranks of keys (a row each), for InLine attention of their features.
///
/// # Errors
/// Keys that are no whole rows, or not finite.
pub fn rank_condition(keys: &[f64], width: usize) -> Result<RankCondition> {
    if width == 0 || keys.is_empty() || !keys.len().is_multiple_of(width) {
        return Err(Error::Size { name: "keys", expected: width, found: keys.len() });
    }
    let count = keys.len() / width;
    let matrix = Mat::from_fn(count, width, |i, j| keys[i * width + j]);
    let bordered = Mat::from_fn(count, width + 1, |i, j| if j < width { keys[i * width + j] } else { 1.0 });
    Ok(RankCondition { width, keys: rank(&matrix)?, keys_with_ones: rank(&bordered)? })
}

/// Singular values above rounding of the largest, by the eigenvalues of the Gram matrix of scaled columns.
fn rank(matrix: &Mat<f64>) -> Result<usize> {
    let scales: Vec<f64> = (0..matrix.ncols()).map(|j| linalg::norm(matrix.col_as_slice(j))).collect();
    let scaled = Mat::from_fn(matrix.nrows(), matrix.ncols(), |i, j| {
        if scales[j] > 0.0 { matrix[(i, j)] / scales[j] } else { 0.0 }
    });
    let gram = scaled.transpose() * &scaled;
    let eigen = linalg::SymmetricEigen::new("the Gram matrix of keys", gram.as_ref())?;
    let largest = eigen.values.last().copied().unwrap_or(0.0);
    // Eigenvalues are squares of singular values: rounding of the Gram matrix hides ratios below 1e-7 or so.
    let rounding = 16.0 * matrix.nrows().max(matrix.ncols()) as f64 * f64::EPSILON * largest;
    Ok(eigen.values.iter().filter(|&&value| value > rounding).count())
}

/// Four keys and four queries of growing length on one ray: the smallest picture of confusion.
///
/// After the figure of key `han2024`. The keys are read off a plot; the queries are fitted to the
/// weights printed there, which softmax, ReLU features and InLine, with their factors 1/√2, then reproduce to 0.01.
#[derive(Debug, Clone, PartialEq)]
pub struct ToyFigure {
    /// Keys, a row of two numbers each.
    pub keys: Vec<f64>,
    /// Queries, a row of two numbers each.
    pub queries: Vec<f64>,
}

/// The figure's points.
pub fn toy_figure() -> ToyFigure {
    let direction = [1.0, 1.717];
    ToyFigure {
        keys: vec![0.6, 1.85, 1.0, 1.0, 1.95, 0.65, 1.8, 0.3],
        queries: [0.42, 0.70, 0.98, 1.19].iter().flat_map(|size| direction.map(|x| size * x)).collect(),
    }
}

impl ToyFigure {
    /// The rows of a mechanism of key width two with ports query, key and value and these parameters.
    ///
    /// # Errors
    /// A mechanism with other ports, or as [`query_rows`].
    pub fn rows(&self, mechanism: &dyn Mechanism, parameters: &[&[f64]]) -> Result<Rows> {
        let signature = mechanism.signature();
        let count = self.keys.len() / 2;
        let blank: Vec<Vec<f64>> =
            signature.tokens.iter().map(|port| vec![0.0; count * port.width]).collect();
        let tokens: Vec<&[f64]> = signature
            .tokens
            .iter()
            .zip(&blank)
            .map(|(port, blank)| if port.name == "key" { &self.keys[..] } else { &blank[..] })
            .collect();
        query_rows(mechanism, &Given::new(&signature, count, &tokens, parameters)?, &self.queries, 0)
    }
}
