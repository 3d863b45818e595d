//! The tilted moments of many tokens: their mass and mean output at any tilt, to second order about the base tilt.
//!
//! With weights p ∝ e^{θ₀·k}, e = θ − θ₀ seen in `directions`, moments under p and Z₀ = log Σ e^{θ₀·k}:
//! Z(θ) = Z₀ + e·m_k + e'C_kk e/2 and o(θ) = m_v + C_vk e.
//!
//! **Guard.** For far tilts the quadratic exceeds what any finite set allows, and the output leaves the hull of the values.
//! The state keeps the smallest box that holds the keys and the one that holds the values. X = e·(k − m_k) has mean 0,
//! variance s² = e'C_kk e and is at most b (from the box), so E_p e^X is at most that of the law on two points with these
//! three numbers (Bennett 1962, key `bennett1962`): (b² e^{−s²/b} + s² e^b)/(b² + s²). Z(θ) is capped there, and o(θ) is
//! clamped into the box of the values. The true log-mass is below the cap and the true output in the box, so that the guard
//! brings neither farther from the truth (with fewer directions: the log-mass at the tilt as seen in them).

use super::tokens::{Tokens, add_rows_times, add_transposed_times};
use crate::head::{inner_product, product_in_double};
use esscher_core::numerics::linalg::dot_in_lanes;

/// Tilted moments; without directions only the means are kept.
#[derive(Debug, Clone)]
pub(crate) struct Moments {
    dimension: usize,
    /// Number of coordinates in which covariances are known; 0 for means.
    rank: usize,
    /// Largest θ₀·k so far: masses are relative to it, so that nothing overflows.
    largest: f64,
    /// Σ e^{θ₀·k − largest}.
    mass: f64,
    pub(crate) mean_key: Vec<f32>,
    pub(crate) mean_value: Vec<f32>,
    /// rank × rank.
    key_covariance: Vec<f32>,
    /// rank × dimension: row i is Cov(key's coordinate i, value).
    cross_covariance: Vec<f32>,
    lowest_key: Vec<f32>,
    highest_key: Vec<f32>,
    lowest_value: Vec<f32>,
    highest_value: Vec<f32>,
}

/// The coordinates in which covariances are known: rows of `rank` × dimension, or every coordinate.
pub(crate) enum Directions<'a> {
    All,
    Rows(&'a [f32]),
}

impl Directions<'_> {
    /// The coordinates of a vector.
    pub(crate) fn coordinates(&self, vector: &[f32], target: &mut Vec<f32>) {
        match self {
            Directions::All => target.extend_from_slice(vector),
            Directions::Rows(rows) => {
                target.extend(rows.chunks_exact(vector.len()).map(|row| dot_in_lanes(row, vector)))
            }
        }
    }
}

impl Moments {
    /// Of no token; `rank` 0 keeps means only.
    pub(crate) fn new(dimension: usize, rank: usize) -> Self {
        // The guard is for covariances: means alone can neither explode nor leave the hull.
        let guarded = if rank > 0 { dimension } else { 0 };
        Moments {
            dimension,
            rank,
            largest: f64::NEG_INFINITY,
            mass: 0.0,
            mean_key: vec![0.0; dimension],
            mean_value: vec![0.0; dimension],
            key_covariance: vec![0.0; rank * rank],
            cross_covariance: vec![0.0; rank * dimension],
            lowest_key: vec![f32::INFINITY; rank],
            highest_key: vec![f32::NEG_INFINITY; rank],
            lowest_value: vec![f32::INFINITY; guarded],
            highest_value: vec![f32::NEG_INFINITY; guarded],
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.mass == 0.0
    }

    /// The logarithm of Z₀ = Σ e^{θ₀·k}.
    pub(crate) fn log_mass(&self) -> f64 {
        self.largest + self.mass.ln()
    }

    /// Bytes of the moments that are held.
    pub(crate) fn bytes(&self) -> usize {
        let numbers = 2 * self.dimension
            + self.key_covariance.len()
            + self.cross_covariance.len()
            + 2 * (self.lowest_key.len() + self.lowest_value.len());
        numbers * size_of::<f32>() + 2 * size_of::<f64>()
    }

    /// Adds tokens: their own centred moments, then the merging of two (Pébay 2008, key `pebay2008`).
    pub(crate) fn absorb(&mut self, tokens: &Tokens, base: &[f32], directions: &Directions<'_>) {
        let (d, rank) = (self.dimension, self.rank);
        if tokens.len() == 0 {
            return;
        }
        // In double precision: they are compared between blocks.
        let scores: Vec<f64> = tokens.keys.chunks_exact(d).map(|key| product_in_double(base, key)).collect();
        let largest = scores.iter().copied().fold(self.largest, f64::max);
        let weights: Vec<f64> = scores.iter().map(|score| (score - largest).exp()).collect();
        let mass: f64 = weights.iter().sum();
        self.mass *= if self.mass > 0.0 { (self.largest - largest).exp() } else { 0.0 };
        self.largest = largest;
        let total = self.mass + mass;
        let share = mass / total;
        // Every token counts for the guard, even one whose weight at the base tilt has vanished.
        let mut coordinates = Vec::with_capacity(rank * tokens.len());
        if rank > 0 {
            for key in tokens.keys.chunks_exact(d) {
                directions.coordinates(key, &mut coordinates);
            }
            widen(&mut self.lowest_key, &mut self.highest_key, &coordinates);
            widen(&mut self.lowest_value, &mut self.highest_value, &tokens.values);
        }
        if share.is_nan() || share <= 0.0 {
            return;
        }
        let block_key = weighted_mean(&tokens.keys, &weights, mass, d);
        let block_value = weighted_mean(&tokens.values, &weights, mass, d);
        if rank > 0 {
            let mut mean_coordinates = Vec::with_capacity(rank);
            let block_key: Vec<f32> = block_key.iter().map(|&entry| entry as f32).collect();
            directions.coordinates(&block_key, &mut mean_coordinates);
            let mut centred_values = tokens.values.clone();
            let rows = coordinates.chunks_exact_mut(rank).zip(centred_values.chunks_exact_mut(d));
            for ((key, value), weight) in rows.zip(&weights) {
                let root = (weight / total).sqrt() as f32;
                key.iter_mut()
                    .zip(&mean_coordinates)
                    .for_each(|(entry, mean)| *entry = root * (*entry - mean));
                value
                    .iter_mut()
                    .zip(&block_value)
                    .for_each(|(entry, mean)| *entry = root * (*entry - *mean as f32));
            }
            let mut before = Vec::with_capacity(rank);
            directions.coordinates(&self.mean_key, &mut before);
            // Between the two means: share (1 − share) times the outer product of their difference.
            let between = (share * (1.0 - share)) as f32;
            let gap_key: Vec<f32> =
                mean_coordinates.iter().zip(&before).map(|(new, old)| new - old).collect();
            let gap_value: Vec<f32> =
                block_value.iter().zip(&self.mean_value).map(|(new, old)| *new as f32 - old).collect();
            let keep = (1.0 - share) as f32;
            for (i, row) in self.key_covariance.chunks_exact_mut(rank).enumerate() {
                let scale = between * gap_key[i];
                row.iter_mut().zip(&gap_key).for_each(|(entry, gap)| *entry = keep * *entry + scale * gap);
            }
            for (i, row) in self.cross_covariance.chunks_exact_mut(d).enumerate() {
                let scale = between * gap_key[i];
                row.iter_mut().zip(&gap_value).for_each(|(entry, gap)| *entry = keep * *entry + scale * gap);
            }
            add_transposed_times(&mut self.key_covariance, &coordinates, rank, &coordinates, rank);
            add_transposed_times(&mut self.cross_covariance, &coordinates, rank, &centred_values, d);
        }
        move_mean(&mut self.mean_key, &block_key, share);
        move_mean(&mut self.mean_value, &block_value, share);
        self.mass = total;
    }

    /// Z(θ) for every e of `offsets` (n × d), whose coordinates in the directions are `coordinates` (n × rank), and o(θ) for
    /// each, written as rows of d.
    pub(crate) fn read(
        &self,
        offsets: &[f32],
        coordinates: &[f32],
        directions: &Directions<'_>,
        masses: &mut Vec<f64>,
        outputs: &mut Vec<f32>,
    ) {
        let (d, rank) = (self.dimension, self.rank);
        let z0 = self.log_mass();
        masses.clear();
        outputs.clear();
        let queries = offsets.len() / d.max(1);
        for _ in 0..queries {
            outputs.extend_from_slice(&self.mean_value);
        }
        let mut transformed = vec![0.0; queries * rank];
        if rank > 0 {
            add_rows_times(&mut transformed, coordinates, &self.key_covariance, rank);
            add_rows_times(outputs, coordinates, &self.cross_covariance, d);
        }
        let mut mean = Vec::with_capacity(rank);
        if rank > 0 {
            directions.coordinates(&self.mean_key, &mut mean);
        }
        let below: Vec<f32> = self.lowest_key.iter().zip(&mean).map(|(low, mean)| low - mean).collect();
        let above: Vec<f32> = self.highest_key.iter().zip(&mean).map(|(high, mean)| high - mean).collect();
        for (row, e) in offsets.chunks_exact(d).enumerate() {
            let mut z = z0 + inner_product(e, &self.mean_key);
            if rank > 0 {
                let own = &coordinates[row * rank..(row + 1) * rank];
                let variance = inner_product(own, &transformed[row * rank..(row + 1) * rank]);
                // Covariances that overflow tell no mass: `max` and `min` would make some number of them.
                let variance = if variance.is_finite() { variance.max(0.0) } else { f64::NAN };
                let box_sides = below.iter().zip(&above);
                let bound: f64 =
                    own.iter().zip(box_sides).map(|(e, (l, h))| f64::from((e * l).max(e * h))).sum();
                z += match variance.is_nan() {
                    true => f64::NAN,
                    false => (variance / 2.0).min(two_point_log_mean(variance, bound)),
                };
                for (entry, (l, h)) in outputs[row * d..(row + 1) * d]
                    .iter_mut()
                    .zip(self.lowest_value.iter().zip(&self.highest_value))
                {
                    if !entry.is_nan() {
                        *entry = entry.max(*l).min(*h);
                    }
                }
            }
            masses.push(z);
        }
    }
}

/// log of the largest E e^X over laws of mean 0, variance s² and X ≤ b.
pub(crate) fn two_point_log_mean(variance: f64, bound: f64) -> f64 {
    if bound.is_nan() || bound <= 0.0 {
        return 0.0;
    }
    let ratio = variance / (bound * bound);
    // (e^{−ratio b} + ratio e^b)/(1 + ratio), with e^b taken out. A mean of 0 makes it at least 1 (Jensen), also where the
    // first exponential underflows.
    (bound + ((-(ratio + 1.0) * bound).exp() + ratio).ln() - ratio.ln_1p()).max(0.0)
}

fn weighted_mean(rows: &[f32], weights: &[f64], mass: f64, dimension: usize) -> Vec<f64> {
    let mut mean = vec![0.0; dimension];
    for (row, weight) in rows.chunks_exact(dimension).zip(weights) {
        mean.iter_mut().zip(row).for_each(|(entry, number)| *entry += weight / mass * f64::from(*number));
    }
    mean
}

fn move_mean(mean: &mut [f32], towards: &[f64], share: f64) {
    for (entry, target) in mean.iter_mut().zip(towards) {
        *entry = (f64::from(*entry) + share * (target - f64::from(*entry))) as f32;
    }
}

fn widen(lowest: &mut [f32], highest: &mut [f32], rows: &[f32]) {
    for row in rows.chunks_exact(lowest.len()) {
        for ((low, high), number) in lowest.iter_mut().zip(highest.iter_mut()).zip(row) {
            *low = low.min(*number);
            *high = high.max(*number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::two_point_log_mean;
    use esscher_core::numerics::{Stream, log_sum_exp};

    /// Laws on ten points, from flat to nearly degenerate: the bound is above the truth, which is at least 0.
    #[test]
    fn no_finite_law_exceeds_the_bound() {
        let mut stream = Stream::new(1, 0, 0);
        for trial in 0..2000 {
            let scale = [0.1, 3.0, 40.0][trial % 3];
            let points: Vec<f64> = (0..10).map(|_| scale * stream.normal()).collect();
            let weights: Vec<f64> = (0..10).map(|_| (4.0 * stream.normal()).exp()).collect();
            let total: f64 = weights.iter().sum();
            let mean = points.iter().zip(&weights).map(|(x, w)| x * w / total).sum::<f64>();
            let variance =
                points.iter().zip(&weights).map(|(x, w)| (x - mean).powi(2) * w / total).sum::<f64>();
            let bound = points.iter().map(|x| x - mean).fold(0.0, f64::max);
            let logs: Vec<f64> =
                points.iter().zip(&weights).map(|(x, w)| x - mean + (w / total).ln()).collect();
            let truth = log_sum_exp(&logs);
            let allowed = two_point_log_mean(variance, bound);
            // Rounding of numbers as large as the bound.
            assert!(truth <= allowed + 1e-12 * (1.0 + bound), "{truth} {allowed} {variance} {bound}");
        }
    }

    #[test]
    fn without_variance_the_mass_stays() {
        assert_eq!(two_point_log_mean(0.0, 800.0), 0.0);
        assert_eq!(two_point_log_mean(0.0, 0.0), 0.0);
    }
}
