//! Mergeable mean and covariance of vectors: what a fit needs when its points share their prompts.

use crate::error::{Error, Result};
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
        if self.count == 0 {
            // Not by the formula below: 0 · ∞ if the square of a mean overflows.
            self.clone_from(other);
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

    /// All that the summary knows, as plain numbers: count, means, then the co-moments row by row of the lower
    /// triangle.
    ///
    /// [`JointSummary::from_state`] gives the same summary back, bit for bit, for counts below 2⁵³.
    pub fn state(&self) -> Vec<f64> {
        std::iter::once(self.count as f64)
            .chain(self.mean.iter().copied())
            .chain(self.co_moments.iter().copied())
            .collect()
    }

    /// The summary with this state.
    ///
    /// # Errors
    /// A list whose length belongs to no size, an entry that is not finite, or numbers that no summary has.
    pub fn from_state(state: &[f64]) -> Result<Self> {
        let length = |size: usize| 1 + size + size * (size + 1) / 2;
        let size = (0..=state.len()).find(|&size| length(size) >= state.len()).unwrap_or(0);
        check::size("the state of a joint summary", length(size), state.len())?;
        check::finite_vector("the state of a joint summary", state)?;
        let refuse = |what, value, expected| Err(Error::OutOfRange { what, value, expected });
        let (count, rest) = (state[0], &state[1..]);
        if !(count >= 0.0 && count.fract() == 0.0 && count <= 2f64.powi(53)) {
            return refuse("the count of a joint summary", count, "a whole number from 0 to 2⁵³");
        }
        let (mean, co_moments) = rest.split_at(size);
        if count == 0.0
            && let Some(&value) = rest.iter().find(|&&value| value != 0.0)
        {
            return refuse("a number of an empty joint summary", value, "0");
        }
        if count == 1.0
            && let Some(&value) = co_moments.iter().find(|&&value| value != 0.0)
        {
            return refuse("a co-moment of a single vector", value, "0");
        }
        let diagonal = |i: usize| co_moments[i * (i + 1) / 2 + i];
        for i in 0..size {
            if diagonal(i) < 0.0 {
                return refuse("a squared co-moment of a joint summary", diagonal(i), "a number from 0 up");
            }
            for (j, &value) in co_moments[i * (i + 1) / 2..][..i].iter().enumerate() {
                // Cauchy and Schwarz, with room for rounding.
                if value.abs() > diagonal(i).sqrt() * diagonal(j).sqrt() * (1.0 + 1e-9) + f64::MIN_POSITIVE {
                    let what = "a co-moment of a joint summary";
                    return refuse(what, value, "at most the root of the product of its squared ones");
                }
            }
        }
        Ok(JointSummary { count: count as u64, mean: mean.to_vec(), co_moments: co_moments.to_vec() })
    }
}
