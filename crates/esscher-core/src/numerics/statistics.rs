//! Mergeable summary of a stream of numbers: moments, extremes, and how much of the sum a few values carry.

use crate::error::{Entry, Error, Result};

/// How many of the largest absolute values a summary keeps.
pub const LARGEST_KEPT: usize = 16;

/// Numbers in the plain-data form of a summary.
pub const STATE_LENGTH: usize = 8 + LARGEST_KEPT;

/// What is kept of a stream of numbers x₁ … xₙ: enough for moments up to the fourth, a standard error, and
/// a warning where the mean rests on a few values.
///
/// Central moments are merged by the stable formulas of Chan and of Pébay (key `pebay2008`), so a summary
/// costs the same memory for ten values and for 10¹². Adding and merging are deterministic: **the same
/// values folded in the same order and with the same grouping give the same bits** on every machine with
/// IEEE arithmetic. Another order or grouping gives the same numbers up to rounding.
///
/// A value that is not finite turns mean and moments into NaN, and no accessor hands NaN on: they answer
/// `None` from then on.
///
/// ```
/// use esscher_core::numerics::statistics::Summary;
/// let mut first = Summary::of(&[1.0, 2.0]);
/// first.merge(&Summary::of(&[3.0, 4.0]));
/// assert_eq!((first.mean(), first.variance()), (Some(2.5), Some(5.0 / 3.0)));
/// assert!(first.rests_on_few()); // four values are few
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Summary {
    count: u64,
    mean: f64,
    /// Σ (xᵢ − mean)^k for k = 2, 3, 4.
    second: f64,
    third: f64,
    fourth: f64,
    /// 0 while the summary is empty, like all other numbers.
    smallest: f64,
    largest: f64,
    /// Σ |xᵢ|.
    absolute_sum: f64,
    /// The largest |xᵢ|, decreasing, padded with zeros.
    largest_absolute: [f64; LARGEST_KEPT],
}

/// A mean is said to rest on few values if this many carry more than half of Σ |xᵢ| …
const FEW: usize = 10;

/// … or if the effective number of values is below this, where a normal interval is no longer to be trusted.
const FEWEST_EFFECTIVE: f64 = 30.0;

impl Summary {
    /// The summary of no values.
    pub fn new() -> Self {
        Summary::default()
    }

    /// The summary of these values, added one after the other.
    pub fn of(values: &[f64]) -> Self {
        let mut summary = Summary::new();
        values.iter().for_each(|&value| summary.add(value));
        summary
    }

    /// Adds one value: the same bits as merging the summary of that value alone.
    pub fn add(&mut self, value: f64) {
        let single = Summary {
            count: 1,
            mean: value,
            smallest: value,
            largest: value,
            absolute_sum: value.abs(),
            ..Summary::default()
        };
        self.merge_moments(&single);
        self.keep(value.abs());
    }

    /// Adds all values of another summary.
    ///
    /// With n = n_A + n_B and δ = mean_B − mean_A: M₂ = M₂ᴬ + M₂ᴮ + δ² n_A n_B/n, and likewise for M₃ and
    /// M₄. Merging with an empty summary changes no bit. Merging is commutative and associative up to
    /// rounding only: fold parts in a fixed order to get identical bits.
    pub fn merge(&mut self, other: &Summary) {
        self.merge_moments(other);
        for &size in other.largest_absolute.iter().take_while(|&&size| size > 0.0) {
            self.keep(size);
        }
    }

    /// The number of values n.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Σ xᵢ / n, if there is a value.
    pub fn mean(&self) -> Option<f64> {
        self.finite_from(1, self.mean)
    }

    /// Σ (xᵢ − mean)² / (n − 1), if there are two values.
    pub fn variance(&self) -> Option<f64> {
        self.finite_from(2, self.second / (self.count as f64 - 1.0))
    }

    /// The standard error of the mean, (variance/n)^{1/2}, for independent values.
    ///
    /// With heavy tails it is itself an underestimate until the largest typical value has been seen: ask
    /// [`Summary::rests_on_few`] before trusting it.
    pub fn standard_error(&self) -> Option<f64> {
        Some((self.variance()? / self.count as f64).sqrt())
    }

    /// √n M₃ / M₂^{3/2}: 0 for symmetric laws; `None` where all values are equal.
    pub fn skewness(&self) -> Option<f64> {
        self.finite_from(2, (self.count as f64).sqrt() * self.third / (self.second * self.second.sqrt()))
    }

    /// n M₄ / M₂²: 3 for normal values; `None` where all values are equal.
    pub fn kurtosis(&self) -> Option<f64> {
        self.finite_from(2, self.count as f64 * self.fourth / (self.second * self.second))
    }

    /// The smallest value.
    pub fn min(&self) -> Option<f64> {
        self.mean().map(|_| self.smallest)
    }

    /// The largest value.
    pub fn max(&self) -> Option<f64> {
        self.mean().map(|_| self.largest)
    }

    /// Σ |xᵢ|.
    pub fn absolute_sum(&self) -> Option<f64> {
        self.finite_from(1, self.absolute_sum)
    }

    /// The share of Σ |xᵢ| that the k largest absolute values carry, k ≤ [`LARGEST_KEPT`]; larger k are
    /// taken for [`LARGEST_KEPT`].
    ///
    /// `None` without values and where all values are zero.
    pub fn share_of_largest(&self, k: usize) -> Option<f64> {
        let carried: f64 = self.largest_absolute.iter().take(k).sum();
        let share = carried / self.absolute_sum;
        // Rounding may carry the share past 1; `min` alone would turn the NaN of 0/0 into 1.
        self.finite_from(1, if share > 1.0 { 1.0 } else { share })
    }

    /// Kish's effective number of values, (Σ |xᵢ|)² / Σ xᵢ²: n if all have the same size, 1 if a single
    /// one carries everything; `None` where the squares of the values overflowed or underflowed.
    pub fn effective_sample_size(&self) -> Option<f64> {
        if !self.second.is_normal() && self.smallest < self.largest {
            return None;
        }
        // Both terms of Σ x² = M₂ + n mean² are positive: nothing cancels. Scaled by the largest value, so
        // that the squares here neither overflow nor vanish.
        let scale = self.largest_absolute[0];
        if scale == 0.0 {
            return self.finite_from(1, self.count as f64);
        }
        let sum = self.absolute_sum / scale;
        let mean = self.mean / scale;
        let squares = self.second / scale / scale + self.count as f64 * mean * mean;
        self.finite_from(1, sum * sum / squares)
    }

    /// Whether the mean rests on a few values: ten carry more than half of Σ |xᵢ|, or fewer than 30 values
    /// are effective.
    ///
    /// A warning in one direction only. Where it is raised, mean and standard error are not to be trusted.
    /// Where it is not, a rare value that would carry the mean may still be waiting outside the sample.
    pub fn rests_on_few(&self) -> bool {
        self.share_of_largest(FEW).is_some_and(|share| share > 0.5)
            || self.effective_sample_size().is_none_or(|size| size < FEWEST_EFFECTIVE)
    }

    /// All that the summary knows, as plain numbers: count, mean, M₂, M₃, M₄, smallest, largest, Σ |xᵢ|, then
    /// the largest absolute values in decreasing order, padded with zeros.
    ///
    /// [`Summary::from_state`] gives the same summary back, bit for bit, for counts below 2⁵³.
    pub fn state(&self) -> [f64; STATE_LENGTH] {
        let head = [
            self.count as f64,
            self.mean,
            self.second,
            self.third,
            self.fourth,
            self.smallest,
            self.largest,
            self.absolute_sum,
        ];
        let mut state = [0.0; STATE_LENGTH];
        state[..8].copy_from_slice(&head);
        state[8..].copy_from_slice(&self.largest_absolute);
        state
    }

    /// The summary with this state.
    ///
    /// # Errors
    /// A list of the wrong length, an entry that is not finite, or numbers that no summary has.
    pub fn from_state(state: &[f64]) -> Result<Self> {
        crate::numerics::check::size("the state of a summary", STATE_LENGTH, state.len())?;
        if let Some(index) = state.iter().position(|value| !value.is_finite()) {
            let (what, entry) = ("the state of a summary", Entry::Index(index));
            return Err(Error::NotFinite { what, entry, value: state[index] });
        }
        let refuse = |what, value, expected| Err(Error::OutOfRange { what, value, expected });
        let count = state[0];
        if !(count >= 0.0 && count.fract() == 0.0 && count <= 2f64.powi(53)) {
            return refuse("the count of a summary", count, "a whole number from 0 to 2⁵³");
        }
        for (what, value) in [("M₂ of a summary", state[2]), ("M₄ of a summary", state[4])] {
            if value < 0.0 {
                return refuse(what, value, "a number from 0 up");
            }
        }
        if count == 0.0
            && let Some(&value) = state.iter().find(|&&value| value != 0.0)
        {
            return refuse("a number of an empty summary", value, "0");
        }
        let (mean, smallest, largest, absolute_sum) = (state[1], state[5], state[6], state[7]);
        if largest < smallest {
            return refuse("the largest value of a summary", largest, "at least the smallest value");
        }
        // The mean is a sum of rounded steps.
        let room = 1e-9 * smallest.abs().max(largest.abs());
        if !(smallest - room..=largest + room).contains(&mean) {
            return refuse("the mean of a summary", mean, "a number from the smallest to the largest value");
        }
        if absolute_sum < 0.0 {
            return refuse("Σ |x| of a summary", absolute_sum, "a number from 0 up");
        }
        let mut largest_absolute = [0.0; LARGEST_KEPT];
        largest_absolute.copy_from_slice(&state[8..]);
        let mut pairs = largest_absolute.windows(2);
        if pairs.any(|pair| pair[1] > pair[0]) || largest_absolute[LARGEST_KEPT - 1] < 0.0 {
            let expected = "absolute values in decreasing order";
            return refuse("a largest value kept by a summary", largest_absolute[0], expected);
        }
        Ok(Summary {
            count: count as u64,
            mean: state[1],
            second: state[2],
            third: state[3],
            fourth: state[4],
            smallest: state[5],
            largest: state[6],
            absolute_sum: state[7],
            largest_absolute,
        })
    }

    /// A number that is defined from `least` values on, if it is finite.
    fn finite_from(&self, least: u64, value: f64) -> Option<f64> {
        (self.count >= least && value.is_finite()).then_some(value)
    }

    /// Everything but the list of largest absolute values.
    fn merge_moments(&mut self, other: &Summary) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            *self = Summary { largest_absolute: self.largest_absolute, ..*other };
            return;
        }
        let (here, there) = (self.count as f64, other.count as f64);
        let total = here + there;
        let (share_here, share_there) = (here / total, there / total);
        let gap = other.mean - self.mean;
        let square = gap * gap;
        // Pébay 2008, equations 2.1 to 2.3, written in the shares so that large counts do not overflow.
        self.fourth += other.fourth
            + square
                * square
                * here
                * share_there
                * (share_here * share_here - share_here * share_there + share_there * share_there)
            + 6.0
                * square
                * (share_here * share_here * other.second + share_there * share_there * self.second)
            + 4.0 * gap * (share_here * other.third - share_there * self.third);
        self.third += other.third
            + square * gap * here * share_there * (share_here - share_there)
            + 3.0 * gap * (share_here * other.second - share_there * self.second);
        self.second += other.second + square * here * share_there;
        self.mean += gap * share_there;
        self.count += other.count;
        self.smallest = self.smallest.min(other.smallest);
        self.largest = self.largest.max(other.largest);
        self.absolute_sum += other.absolute_sum;
    }

    /// Puts an absolute value in its place among the largest, if it belongs there.
    fn keep(&mut self, size: f64) {
        let place = self.largest_absolute.partition_point(|&kept| kept >= size);
        if place < LARGEST_KEPT && size > 0.0 {
            self.largest_absolute[place..].rotate_right(1);
            self.largest_absolute[place] = size;
        }
    }
}
