//! Mergeable mean and covariance of vectors: what a fit needs when its points share their prompts.

use crate::error::Result;
use crate::numerics::check;
use faer::Mat;

/// Count, mean and co-moments of a stream of vectors of one size, by stable updates.
///
/// Folding parts in a fixed order gives identical bits.
///
/// ```
/// use esscher_core::numerics::JointSummary;
/// let mut joint = JointSummary::new(2);
/// for value in [[1.0, 2.0], [3.0, 6.0]] {
///     joint.add(&value)?;
/// }
/// assert_eq!(joint.mean_covariance().unwrap()[(0, 1)], 2.0); // Cov = 4, of the mean of two
/// # Ok::<(), esscher_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct JointSummary {
    count: u64,
    mean: Vec<f64>,
    /// Σ (xᵢ − mᵢ)(xⱼ − mⱼ), row by row of the lower triangle.
    co_moments: Vec<f64>,
}

impl JointSummary {
    /// No vectors yet, of this size.
    pub fn new(size: usize) -> Self {
        JointSummary { count: 0, mean: vec![0.0; size], co_moments: vec![0.0; size * (size + 1) / 2] }
    }

    /// Number of vectors.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The mean vector (zero before the first).
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// Adds one vector.
    pub fn add(&mut self, value: &[f64]) -> Result<()> {
        check::size("a vector of a joint summary", self.mean.len(), value.len())?;
        let single =
            JointSummary { count: 1, mean: value.to_vec(), co_moments: vec![0.0; self.co_moments.len()] };
        self.merge(&single)
    }

    /// Adds the vectors of another summary: C = C₁ + C₂ + δδᵀ n₁n₂/(n₁ + n₂), δ the distance of the means.
    pub fn merge(&mut self, other: &JointSummary) -> Result<()> {
        check::size("a joint summary", self.mean.len(), other.mean.len())?;
        if other.count == 0 {
            return Ok(());
        }
        let (mine, theirs) = (self.count as f64, other.count as f64);
        let total = mine + theirs;
        let gap: Vec<f64> = other.mean.iter().zip(&self.mean).map(|(a, b)| a - b).collect();
        let pairs = (0..gap.len()).flat_map(|i| (0..=i).map(move |j| (i, j)));
        for (((i, j), sum), part) in pairs.zip(&mut self.co_moments).zip(&other.co_moments) {
            *sum += part + gap[i] * gap[j] * (mine * theirs / total);
        }
        for (mean, gap) in self.mean.iter_mut().zip(&gap) {
            *mean += gap * (theirs / total);
        }
        self.count += other.count;
        Ok(())
    }

    /// The covariance of the mean vector, Σ co-moments / (n (n − 1)); nothing before two vectors.
    pub fn mean_covariance(&self) -> Option<Mat<f64>> {
        if self.count < 2 {
            return None;
        }
        let scale = 1.0 / (self.count as f64 * (self.count as f64 - 1.0));
        let size = self.mean.len();
        Some(Mat::from_fn(size, size, |i, j| {
            let (row, column) = (i.max(j), i.min(j));
            scale * self.co_moments[row * (row + 1) / 2 + column]
        }))
    }
}
