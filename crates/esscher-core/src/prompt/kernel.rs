//! The streaming kernel: softmax sums of many queries over a prompt that is never stored.
//!
//! Queries are laid out in tiles of lanes. A block of tokens meets a tile in four steps: scores, their
//! maximum (older sums are rescaled to it), exponentials, and the weighted sums of the *features* of a token:
//! its coordinates and, for gradients, their products. Every sum has a fixed order.

#![allow(clippy::needless_range_loop, reason = "loops over lanes and rows read and write several arrays")]

use crate::numerics::{Arithmetic, InstructionSet, Kernel, Real, exp};

/// Tokens that meet a tile together: their scores stay in the first-level cache.
pub(super) const BLOCK: usize = 256;

/// Queries of a tile, side by side in vector registers.
pub(super) const LANES: usize = 8;

/// Rows of a register tile.
const ROWS: usize = 4;

/// Which sums a prompt is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Σ w and Σ w z: outputs.
    First,
    /// Also Σ w z zᵀ: gradients in U.
    Second,
}

impl Order {
    /// Number of features of a token, rounded up to whole register tiles.
    fn features(self, dimension: usize) -> usize {
        let features = match self {
            Order::First => dimension,
            Order::Second => dimension + dimension * (dimension + 1) / 2,
        };
        features.next_multiple_of(ROWS)
    }
}

/// Softmax sums of all queries over the tokens seen so far, relative to each query's largest score.
#[derive(Debug, Clone)]
pub(super) struct PromptSums<T, const W: usize> {
    dimension: usize,
    order: Order,
    tiles: Vec<Tile<T, W>>,
    set: InstructionSet,
    features: Vec<T>,
    scores: Vec<[T; W]>,
}

#[derive(Debug, Clone)]
struct Tile<T, const W: usize> {
    /// Tilts of the tile's queries, coordinate by coordinate.
    tilts: Vec<[T; W]>,
    largest: [T; W],
    /// Σ e^{score − largest}, and the same times each feature, in double precision whatever T is.
    mass: [f64; W],
    sums: Vec<[f64; W]>,
}

impl<T: Real, const W: usize> PromptSums<T, W> {
    /// No tokens yet, for these tilts (one query after the other).
    pub(super) fn new(dimension: usize, tilts: &[f64], order: Order, set: InstructionSet) -> Self {
        let tiles = tilts
            .chunks(W * dimension)
            .map(|chunk| Tile {
                tilts: (0..dimension)
                    .map(|axis| {
                        // Lanes beyond the last query carry a zero tilt, whose sums nobody reads.
                        std::array::from_fn(|lane| {
                            chunk
                                .get(lane * dimension + axis)
                                .map_or(T::default(), |&entry| T::from_f64(entry))
                        })
                    })
                    .collect(),
                largest: [T::from_f64(f64::NEG_INFINITY); W],
                mass: [0.0; W],
                sums: vec![[0.0; W]; order.features(dimension)],
            })
            .collect();
        PromptSums { dimension, order, tiles, set, features: Vec::new(), scores: Vec::new() }
    }

    /// Adds tokens, one after the other in `tokens`.
    pub(super) fn add(&mut self, tokens: &[f64]) {
        for block in tokens.chunks(BLOCK * self.dimension) {
            self.set.run(AddBlock { sums: self, tokens: block });
        }
    }

    /// Σ p z of one query, into `mean`.
    pub(super) fn mean(&self, query: usize, mean: &mut [f64]) {
        let (tile, lane) = (&self.tiles[query / W], query % W);
        for (entry, sum) in mean.iter_mut().zip(&tile.sums) {
            *entry = sum[lane] / tile.mass[lane];
        }
    }

    /// Σ p zᵢzⱼ − mᵢmⱼ of one query for j ≤ i, row by row of the lower triangle; `mean` as from [`Self::mean`].
    pub(super) fn covariance(&self, query: usize, mean: &[f64], covariance: &mut [f64]) {
        let (tile, lane) = (&self.tiles[query / W], query % W);
        let pairs = (0..self.dimension).flat_map(|i| (0..=i).map(move |j| (i, j)));
        for ((entry, sum), (i, j)) in covariance.iter_mut().zip(&tile.sums[self.dimension..]).zip(pairs) {
            *entry = sum[lane] / tile.mass[lane] - mean[i] * mean[j];
        }
    }
}

struct AddBlock<'a, T, const W: usize> {
    sums: &'a mut PromptSums<T, W>,
    tokens: &'a [f64],
}

impl<T: Real, const W: usize> Kernel for AddBlock<'_, T, W> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arithmetic>(self) {
        let PromptSums { dimension, order, tiles, features, scores, .. } = self.sums;
        let dimension = *dimension;
        let count = self.tokens.len() / dimension;
        let width = order.features(dimension);
        // Rows beyond the last token are zero tokens with weight zero.
        let rows = count.next_multiple_of(ROWS);
        features.clear();
        features.resize(rows * width, T::default());
        for (token, features) in self.tokens.chunks_exact(dimension).zip(features.chunks_exact_mut(width)) {
            for (feature, &entry) in features.iter_mut().zip(token) {
                *feature = T::from_f64(entry);
            }
            if *order == Order::Second {
                let mut next = dimension;
                for i in 0..dimension {
                    for j in 0..=i {
                        features[next] = T::from_f64(token[i] * token[j]);
                        next += 1;
                    }
                }
            }
        }
        scores.clear();
        scores.resize(rows, [T::default(); W]);
        for tile in tiles {
            fill_scores::<T, A, W>(features, width, &tile.tilts, scores);
            rescale_to_largest::<T, A, W>(tile, &scores[..count]);
            let mut mass = [T::default(); W];
            for (row, score) in scores.iter_mut().enumerate() {
                let weight = if row < count {
                    exp::<T, A, W>(std::array::from_fn(|lane| score[lane] - tile.largest[lane]))
                } else {
                    [T::default(); W]
                };
                *score = weight;
                mass = std::array::from_fn(|lane| mass[lane] + weight[lane]);
            }
            for lane in 0..W {
                tile.mass[lane] += mass[lane].to_f64();
            }
            add_features::<T, A, W>(features, width, scores, &mut tile.sums);
        }
    }
}

/// scores = tokens · tilts, four tokens at a time.
#[inline(always)]
fn fill_scores<T: Real, A: Arithmetic, const W: usize>(
    features: &[T],
    width: usize,
    tilts: &[[T; W]],
    scores: &mut [[T; W]],
) {
    for (rows, scores) in features.chunks_exact(ROWS * width).zip(scores.as_chunks_mut::<ROWS>().0) {
        let mut sums = [[T::default(); W]; ROWS];
        for (axis, tilt) in tilts.iter().enumerate() {
            for row in 0..ROWS {
                let entry = rows[row * width + axis];
                for lane in 0..W {
                    sums[row][lane] = A::multiply_add(entry, tilt[lane], sums[row][lane]);
                }
            }
        }
        *scores = sums;
    }
}

/// Raises `largest` to the scores of the block and rescales what was summed before.
#[inline(always)]
fn rescale_to_largest<T: Real, A: Arithmetic, const W: usize>(tile: &mut Tile<T, W>, scores: &[[T; W]]) {
    let mut largest = tile.largest;
    for score in scores {
        for lane in 0..W {
            largest[lane] = if score[lane] > largest[lane] { score[lane] } else { largest[lane] };
        }
    }
    let raised = (0..W).any(|lane| largest[lane] > tile.largest[lane]);
    if raised {
        // In the first block the old maximum is −∞, its sums are zero, and any finite factor will do.
        let factor = exp::<T, A, W>(std::array::from_fn(|lane| tile.largest[lane] - largest[lane]));
        for lane in 0..W {
            tile.mass[lane] *= factor[lane].to_f64();
        }
        for sum in &mut tile.sums {
            for lane in 0..W {
                sum[lane] *= factor[lane].to_f64();
            }
        }
        tile.largest = largest;
    }
}

/// sums += Σ weight · features, four features at a time.
#[inline(always)]
fn add_features<T: Real, A: Arithmetic, const W: usize>(
    features: &[T],
    width: usize,
    weights: &[[T; W]],
    sums: &mut [[f64; W]],
) {
    for (group, totals) in sums.as_chunks_mut::<ROWS>().0.iter_mut().enumerate() {
        let mut sums = [[T::default(); W]; ROWS];
        for (token, weight) in features.chunks_exact(width).zip(weights) {
            let entries = &token[group * ROWS..group * ROWS + ROWS];
            for row in 0..ROWS {
                for lane in 0..W {
                    sums[row][lane] = A::multiply_add(entries[row], weight[lane], sums[row][lane]);
                }
            }
        }
        for row in 0..ROWS {
            for lane in 0..W {
                totals[row][lane] += sums[row][lane].to_f64();
            }
        }
    }
}
