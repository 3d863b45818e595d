//! Softmax sums Σ e^{⟨θ, z⟩} and Σ e^{⟨θ, z⟩} z over the tokens of a prompt, relative to the largest score.
//!
//! Two kernels: [`strips`] puts queries side by side into the lanes of registers, [`single`] the tokens of one query.
//! A long prompt is cut into chunks whose sums are merged along a binary tree. Chunks, batches of queries and the tree
//! depend on the sizes only, so the number of threads does not show in the result.

mod single;
mod strips;

pub(crate) use strips::{BLOCK, Order, StripSums};

use super::InstructionSet;
use crate::error::Result;
use rayon::prelude::*;
use std::ops::Range;

/// Numbers in a chunk of tokens: half a megabyte, tens of microseconds for one query.
const CHUNK_ENTRIES: usize = 1 << 16;

/// Fewer chunks than this are summed where they are: waking other threads takes as long as summing them.
const CHUNKS_WORTH_THREADS: usize = 4;

/// Queries that share one reading of a chunk.
const BATCH: usize = 64;

/// Up to this many queries are summed one by one: strips would waste most of their lanes.
const FEW_QUERIES: usize = 3;

/// Finite tokens of one dimension, one after the other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tokens<'a> {
    pub(crate) dimension: usize,
    pub(crate) entries: &'a [f64],
    /// Added to the scores, where there are any.
    pub(crate) log_weights: Option<&'a [f64]>,
}

impl Tokens<'_> {
    fn tokens_per_chunk(&self) -> usize {
        (CHUNK_ENTRIES / self.dimension).max(1)
    }

    fn chunks(&self) -> usize {
        self.entries.len().div_ceil(self.tokens_per_chunk() * self.dimension)
    }

    fn chunk(&self, index: usize) -> Self {
        let (tokens, count) = (self.tokens_per_chunk(), self.entries.len() / self.dimension);
        let range = index * tokens..count.min((index + 1) * tokens);
        Tokens {
            entries: &self.entries[range.start * self.dimension..range.end * self.dimension],
            log_weights: self.log_weights.map(|log_weights| &log_weights[range]),
            ..*self
        }
    }
}

/// The sums of one query.
#[derive(Debug, Clone)]
pub(crate) struct QuerySums {
    /// The largest score, −∞ before the first token.
    largest: f64,
    /// Σ e^{score − largest}.
    mass: f64,
    /// Σ e^{score − largest} z, coordinate by coordinate; empty where only the mass was asked for.
    sums: Vec<f64>,
}

impl QuerySums {
    fn none(coordinates: usize) -> Self {
        QuerySums { largest: f64::NEG_INFINITY, mass: 0.0, sums: vec![0.0; coordinates] }
    }

    /// log Σ e^{score}; −∞ if every score was.
    pub(crate) fn log_total(&self) -> f64 {
        self.largest + self.mass.ln()
    }

    /// Σ p z, in the place of the sums; infinite or NaN where they overflowed.
    pub(crate) fn into_mean(mut self) -> Vec<f64> {
        self.sums.iter_mut().for_each(|sum| *sum /= self.mass);
        self.sums
    }

    /// Measures the sums from a score that is at least the largest so far.
    fn raise_to(&mut self, largest: f64) {
        if largest > self.largest {
            let factor = (self.largest - largest).exp();
            self.largest = largest;
            self.mass *= factor;
            self.sums.iter_mut().for_each(|sum| *sum *= factor);
        }
    }

    fn merge(&mut self, mut other: QuerySums) {
        self.raise_to(other.largest);
        other.raise_to(self.largest);
        self.mass += other.mass;
        for (sum, other) in self.sums.iter_mut().zip(other.sums) {
            *sum += other;
        }
    }
}

/// Σ e^{score} of one query.
///
/// # Errors
/// [`crate::Error::Overflow`] if a score is +∞ or NaN.
pub(crate) fn mass(tokens: Tokens<'_>, tilt: &[f64], set: InstructionSet) -> Result<QuerySums> {
    of_one_query(tokens, tilt, 0, set)
}

/// Σ e^{score} and Σ e^{score} z of one query; errors as of [`mass`].
pub(crate) fn first_order(tokens: Tokens<'_>, tilt: &[f64], set: InstructionSet) -> Result<QuerySums> {
    of_one_query(tokens, tilt, tokens.dimension, set)
}

/// As [`first_order`], for many tilts one after the other.
pub(crate) fn first_order_of_all(
    tokens: Tokens<'_>,
    tilts: &[f64],
    set: InstructionSet,
) -> Result<Vec<QuerySums>> {
    let of_batch = |tilts: &[f64]| of_batch(tokens, tilts, set);
    let batch = BATCH * tokens.dimension;
    if tilts.len() <= batch {
        return of_batch(tilts);
    }
    let batches: Vec<Vec<QuerySums>> = tilts.par_chunks(batch).map(of_batch).collect::<Result<_>>()?;
    Ok(batches.into_iter().flatten().collect())
}

fn of_one_query(
    tokens: Tokens<'_>,
    tilt: &[f64],
    coordinates: usize,
    set: InstructionSet,
) -> Result<QuerySums> {
    let leaf = |chunk| {
        let mut sums = QuerySums::none(coordinates);
        single::add(set, tokens.chunk(chunk), tilt, &mut sums)?;
        Ok(sums)
    };
    over_chunks(tokens, leaf, QuerySums::merge)
}

fn of_batch(tokens: Tokens<'_>, tilts: &[f64], set: InstructionSet) -> Result<Vec<QuerySums>> {
    let one_by_one = || {
        tilts
            .chunks_exact(tokens.dimension)
            .map(|tilt| of_one_query(tokens, tilt, tokens.dimension, set))
            .collect()
    };
    // Strips have no place for weights.
    if tokens.log_weights.is_some() || tilts.len() <= FEW_QUERIES * tokens.dimension {
        return one_by_one();
    }
    let origin = vec![0.0; tokens.dimension];
    let leaf = |chunk| {
        let mut strips = StripSums::<f64>::new(&origin, tilts, Order::First, set);
        strips.add(tokens.chunk(chunk).entries)?;
        Ok(strips.first_order(tilts.len() / tokens.dimension))
    };
    let merge = |left: &mut Vec<QuerySums>, right: Vec<QuerySums>| {
        left.iter_mut().zip(right).for_each(|(left, right)| left.merge(right));
    };
    // Strips refuse scores that might overflow, one by one only those that do are refused.
    over_chunks(tokens, leaf, merge).or_else(|_| one_by_one())
}

/// The sums of all chunks.
fn over_chunks<S: Send>(
    tokens: Tokens<'_>,
    leaf: impl Fn(usize) -> Result<S> + Sync,
    merge: impl Fn(&mut S, S) + Sync,
) -> Result<S> {
    let chunks = tokens.chunks();
    tree(0..chunks, chunks >= CHUNKS_WORTH_THREADS, &leaf, &merge)
}

/// leaf(first) + … + leaf(last), halves first.
fn tree<S: Send>(
    leaves: Range<usize>,
    on_threads: bool,
    leaf: &(impl Fn(usize) -> Result<S> + Sync),
    merge: &(impl Fn(&mut S, S) + Sync),
) -> Result<S> {
    if leaves.len() <= 1 {
        return leaf(leaves.start);
    }
    let middle = leaves.start + leaves.len() / 2;
    let half = |leaves| move || tree(leaves, on_threads, leaf, merge);
    let (left, right) = (half(leaves.start..middle), half(middle..leaves.end));
    let (left, right) = if on_threads { rayon::join(left, right) } else { (left(), right()) };
    let mut sums = left?;
    merge(&mut sums, right?);
    Ok(sums)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;
    use crate::numerics::Stream;

    /// high + low, about 32 digits.
    #[derive(Clone, Copy)]
    struct Double {
        high: f64,
        low: f64,
    }

    impl Double {
        const ZERO: Double = Double { high: 0.0, low: 0.0 };

        fn add(self, value: f64) -> Double {
            let high = self.high + value;
            let back = high - self.high;
            let lost = (self.high - (high - back)) + (value - back);
            Double { high, low: self.low + lost }
        }

        fn add_product(self, a: f64, b: f64) -> Double {
            let product = a * b;
            let sum = self.add(product);
            Double { high: sum.high, low: sum.low + a.mul_add(b, -product) }
        }

        fn value(self) -> f64 {
            self.high + self.low
        }
    }

    /// What the kernels compute, in twice the precision.
    struct Exact {
        mean: Vec<f64>,
        log_total: f64,
        /// How far rounding may take a result: of sums and exponentials, and of scores.
        allowance: f64,
    }

    fn exact(tokens: Tokens<'_>, tilt: &[f64]) -> Exact {
        let points = || tokens.entries.chunks_exact(tokens.dimension);
        let scores: Vec<Double> = points()
            .enumerate()
            .map(|(index, point)| {
                let score = tilt.iter().zip(point).fold(Double::ZERO, |sum, (&a, &b)| sum.add_product(a, b));
                score.add(tokens.log_weights.map_or(0.0, |log_weights| log_weights[index]))
            })
            .collect();
        let largest = scores.iter().map(|score| score.value()).fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = scores.iter().map(|score| (score.high - largest + score.low).exp()).collect();
        let mass = weights.iter().fold(Double::ZERO, |sum, &weight| sum.add(weight)).value();
        let mean: Vec<f64> = (0..tokens.dimension)
            .map(|axis| {
                let terms = points().zip(&weights);
                terms.fold(Double::ZERO, |sum, (point, &weight)| sum.add_product(weight, point[axis])).value()
                    / mass
            })
            .collect();
        let size = tokens.entries.iter().fold(0.0, |size: f64, entry| size.max(entry.abs()));
        let spread = points()
            .flat_map(|point| point.iter().zip(&mean).map(|(entry, mean)| (entry - mean).abs()))
            .fold(0.0, f64::max);
        let terms = points()
            .map(|point| tilt.iter().zip(point).map(|(a, b)| (a * b).abs()).sum::<f64>())
            .fold(0.0, f64::max);
        Exact {
            mean,
            log_total: largest + mass.ln(),
            allowance: 2e-15 * size + 4.0 * f64::EPSILON * terms * spread,
        }
    }

    fn normals(key: u32, count: usize, scale: f64, shift: f64) -> Vec<f64> {
        let mut values = vec![0.0; count];
        Stream::new(u64::from(key), 0, 0).fill_normals(&mut values);
        values.iter().map(|value| shift + scale * value).collect()
    }

    /// Prompts of every awkward size: ordinary scores, scores to ±700 and beyond, tokens far from the origin.
    #[test]
    fn sums_agree_with_twice_the_precision_on_every_set() {
        let mut worst: f64 = 0.0;
        for (dimension, counts) in [
            (1, vec![1, 2, 31, 32, 33, 127, 128, 129, 70_000]),
            (3, vec![1, 5, 128, 1000, 25_000]),
            (5, vec![1, 17, 500]),
            (8, vec![3, 300]),
            (16, vec![1, 100, 129, 5000]),
            (17, vec![2, 121, 9001]),
            (40, vec![1, 51, 700]),
            (300, vec![1, 33]),
        ] {
            for count in counts {
                for (score_size, shift) in
                    [(1.0, 0.0), (12.0, 0.0), (230.0, 0.0), (1.0, 1e3), (0.0, 1e6), (1e5, 0.0)]
                {
                    let entries = normals(1, count * dimension, 1.0, shift);
                    let log_weights = normals(2, count, 3.0, 0.0);
                    let tilts = normals(3, 5 * dimension, score_size / (dimension as f64).sqrt(), 0.0);
                    for log_weights in [None, Some(log_weights.as_slice())] {
                        let tokens = Tokens { dimension, entries: &entries, log_weights };
                        let references: Vec<Exact> =
                            tilts.chunks_exact(dimension).map(|tilt| exact(tokens, tilt)).collect();
                        for set in InstructionSet::available() {
                            let strips = of_batch(tokens, &tilts, set).unwrap();
                            for ((tilt, strips), exact) in
                                tilts.chunks_exact(dimension).zip(strips).zip(&references)
                            {
                                let single = of_one_query(tokens, tilt, dimension, set).unwrap();
                                for sums in [single, strips] {
                                    for (found, exact_mean) in
                                        sums.clone().into_mean().iter().zip(&exact.mean)
                                    {
                                        let error = (found - exact_mean).abs() / exact.allowance;
                                        worst = worst.max(error);
                                        assert!(
                                            error <= 1.0,
                                            "{set} {count} × {dimension}, scores {score_size}, shift {shift}: {error}"
                                        );
                                    }
                                    let error = (sums.log_total() - exact.log_total).abs();
                                    assert!(error <= 1e-14 * (1.0 + exact.log_total.abs()) + exact.allowance);
                                }
                                let mass = of_one_query(tokens, tilt, 0, set).unwrap();
                                assert!(
                                    (mass.log_total() - exact.log_total).abs()
                                        <= 1e-14 * (1.0 + exact.log_total.abs()) + exact.allowance
                                );
                            }
                        }
                    }
                }
            }
        }
        println!("largest error: {worst:.2} of what is allowed");
    }

    #[test]
    fn the_number_of_threads_does_not_show() {
        let (dimension, queries) = (5, 70);
        let entries = normals(1, 60_000 * dimension, 1.0, 0.0);
        let tokens = Tokens { dimension, entries: &entries, log_weights: None };
        assert!(tokens.chunks() > CHUNKS_WORTH_THREADS && queries > BATCH);
        let tilts = normals(2, queries * dimension, 1.0, 0.0);
        let on = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let all = first_order_of_all(tokens, &tilts, InstructionSet::best()).unwrap();
                let one = first_order(tokens, &tilts[..dimension], InstructionSet::best()).unwrap();
                all.into_iter().chain([one]).flat_map(QuerySums::into_mean).collect::<Vec<f64>>()
            })
        };
        assert_eq!(on(1), on(3));
    }

    #[test]
    fn avx2_and_avx512_give_the_same_bits() {
        let sets = InstructionSet::fused();
        for dimension in [1, 3, 16, 29] {
            let (entries, tilt) = (normals(1, 777 * dimension, 1.0, 0.0), normals(2, dimension, 1.0, 0.0));
            let tokens = Tokens { dimension, entries: &entries, log_weights: None };
            let mean = |set| of_one_query(tokens, &tilt, dimension, set).unwrap().into_mean();
            for set in &sets[1..] {
                assert_eq!(mean(sets[0]), mean(*set), "{} and {set}, dimension {dimension}", sets[0]);
            }
        }
    }

    #[test]
    fn infinite_scores_are_refused_unless_they_have_no_weight() {
        for set in InstructionSet::available() {
            for queries in [1, 5] {
                let mean = |entries: &[f64], tilt: f64| {
                    let tokens = Tokens { dimension: 1, entries, log_weights: None };
                    of_batch(tokens, &vec![tilt; queries], set)
                        .map(|mut sums| sums.swap_remove(queries - 1).into_mean()[0])
                };
                assert_eq!(mean(&[-1e200, 1.0, 0.5], 1e200), Ok(1.0), "{set}");
                assert!(matches!(mean(&[1e200, 1.0], 1e200), Err(Error::Overflow { .. })), "{set}");
            }
            let both = Tokens { dimension: 2, entries: &[1e200, 1e200, 0.0, 0.0], log_weights: None };
            assert!(of_one_query(both, &[1e200, -1e200], 2, set).is_err(), "∞ − ∞");
            assert!(of_one_query(both, &[-1e200, 1e200], 2, set).is_err(), "−∞ + ∞, also where it is fused");
            let none = Tokens { dimension: 1, entries: &[-1e200; 40], log_weights: None };
            let sums = of_one_query(none, &[1e200], 1, set).unwrap();
            assert!(!sums.log_total().is_finite(), "nothing but −∞");
        }
    }
}
