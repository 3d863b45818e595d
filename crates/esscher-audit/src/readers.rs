//! The readers of a key-value head: what texts tell in advance about the tilts that will ask it.

use crate::Error;
use crate::head::{Head, inner_product, squared_norm};
use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};

/// What calibration texts tell about the readers of a key-value head: all that a streaming cache may know in advance.
#[derive(Debug, Clone, PartialEq)]
pub struct Readers {
    /// The tilts of all query heads that share these keys, every one alike.
    pub pooled: Tilts,
    /// The tilts of each of these query heads; none if they are not told apart.
    pub heads: Vec<Tilts>,
    /// The median norm of the values: light values are judged by it.
    pub median_value_norm: f32,
}

/// The first two moments of tilts.
#[derive(Debug, Clone, PartialEq)]
pub struct Tilts {
    /// The mean E θ.
    pub mean: Vec<f32>,
    /// E (θ − mean)(θ − mean)ᵀ, row-major: the metric in which keys are compared.
    pub covariance: Vec<f32>,
}

impl Tilts {
    /// log E e^{θ·k} as if tilts were Gaussian: mean·k + k'Σk/2.
    pub(crate) fn log_expected_score(&self, key: &[f32]) -> f64 {
        let d = key.len().max(1);
        let fits = self.covariance.len() == d * d;
        let variance: f64 = self
            .covariance
            .chunks_exact(d)
            .filter(|_| fits)
            .zip(key)
            .map(|(row, entry)| f64::from(*entry) * inner_product(row, key))
            .sum();
        inner_product(&self.mean, key) + variance / 2.0
    }
}

impl Readers {
    /// The readers of one head on one text.
    pub fn of_head(head: &Head<'_>) -> Readers {
        let mut sums = ReaderSums::new(head.dimension, 1);
        sums.add(std::slice::from_ref(head));
        sums.readers()
    }

    /// Of the query heads of one key-value head over several texts: `texts[i]` are these heads on text i, which share keys
    /// and values. Every tilt counts alike.
    ///
    /// # Errors
    /// No tilt, or heads of different dimensions.
    pub fn from_heads(texts: &[Vec<Head<'_>>]) -> Result<Readers, Error> {
        let mut heads = texts.iter().flatten();
        let dimension = heads.clone().next().map_or(0, |head| head.dimension);
        if let Some(other) = heads.find(|head| head.dimension != dimension) {
            return Err(Error::WrongSizes {
                what: "a tilt of one of the readers of a key-value head".to_string(),
                expected: format!("{dimension}, as the others have"),
                found: vec![other.dimension],
            });
        }
        if dimension == 0 || texts.iter().flatten().all(|head| head.tilts.is_empty()) {
            return Err(Error::TooFewTokens {
                what: "the calibration",
                found: 0,
                needed: 1,
                purpose: "the tilts of readers".to_string(),
                remedy: "give a text that is not empty",
            });
        }
        let mut sums = ReaderSums::new(dimension, texts.iter().map(Vec::len).max().unwrap_or(0));
        texts.iter().for_each(|heads| sums.add(heads));
        Ok(sums.readers())
    }

    /// The tilts of each query head, as far as they are told apart.
    pub(crate) fn by_head(&self) -> &[Tilts] {
        if self.heads.is_empty() { std::slice::from_ref(&self.pooled) } else { &self.heads }
    }
}

/// Sums over texts, or over a text that grows: those of several are added.
#[derive(Debug, Clone)]
pub(crate) struct ReaderSums {
    dimension: usize,
    heads: Vec<TiltSums>,
    value_norms: Vec<f32>,
}

impl ReaderSums {
    /// Of no text, for so many query heads.
    pub(crate) fn new(dimension: usize, heads: usize) -> Self {
        ReaderSums { dimension, heads: vec![TiltSums::new(dimension); heads], value_norms: Vec::new() }
    }

    /// Adds a text, or the next part of one, as the query heads see it; the values are the first head's.
    pub(crate) fn add(&mut self, heads: &[Head<'_>]) {
        let d = self.dimension.max(1);
        self.heads.iter_mut().zip(heads).for_each(|(sums, head)| sums.add(head.tilts, d));
        if let Some(head) = heads.first() {
            let norms = head.values.chunks_exact(d).map(|value| squared_norm(value).sqrt() as f32);
            self.value_norms.extend(norms);
        }
    }

    /// Adds what other texts told.
    pub(crate) fn merge(&mut self, other: &ReaderSums) {
        self.heads.iter_mut().zip(&other.heads).for_each(|(sums, other)| sums.merge(other));
        self.value_norms.extend(&other.value_norms);
    }

    /// What all that was added tells.
    pub(crate) fn readers(&self) -> Readers {
        let mut all = TiltSums::new(self.dimension);
        self.heads.iter().for_each(|sums| all.merge(sums));
        let mut norms = self.value_norms.clone();
        norms.sort_by(f32::total_cmp);
        let told_apart = self.heads.len() > 1;
        Readers {
            pooled: all.tilts(),
            heads: self.heads.iter().filter(|_| told_apart).map(TiltSums::tilts).collect(),
            median_value_norm: norms.get(norms.len() / 2).copied().unwrap_or(0.0),
        }
    }
}

/// Sums over the tilts of one query head, in double precision: a covariance is what large numbers leave of each other.
#[derive(Debug, Clone)]
struct TiltSums {
    count: f64,
    /// Σ θ.
    sum: Vec<f64>,
    /// Σ θθᵀ, row-major.
    products: Vec<f64>,
}

impl TiltSums {
    fn new(dimension: usize) -> Self {
        TiltSums { count: 0.0, sum: vec![0.0; dimension], products: vec![0.0; dimension * dimension] }
    }

    fn add(&mut self, tilts: &[f32], dimension: usize) {
        let d = dimension;
        let mut rows = Vec::new();
        for block in tilts.chunks(256 * d) {
            rows.clear();
            rows.extend(block.iter().map(|entry| f64::from(*entry)));
            let count = rows.len() / d;
            if count == 0 || self.products.len() != d * d {
                continue;
            }
            self.count += count as f64;
            for row in rows.chunks_exact(d) {
                self.sum.iter_mut().zip(row).for_each(|(sum, entry)| *sum += entry);
            }
            let block = MatRef::from_row_major_slice(&rows[..count * d], count, d);
            let products = MatMut::from_row_major_slice_mut(&mut self.products, d, d);
            matmul(products, Accum::Add, block.transpose(), block, 1.0, Par::Seq);
        }
    }

    fn merge(&mut self, other: &TiltSums) {
        self.count += other.count;
        self.sum.iter_mut().zip(&other.sum).for_each(|(sum, entry)| *sum += entry);
        self.products.iter_mut().zip(&other.products).for_each(|(sum, entry)| *sum += entry);
    }

    fn tilts(&self) -> Tilts {
        let (count, d) = (self.count.max(1.0), self.sum.len());
        let mean: Vec<f64> = self.sum.iter().map(|sum| sum / count).collect();
        let entry = |place: usize| self.products[place] / count - mean[place / d] * mean[place % d];
        Tilts {
            covariance: (0..d * d).map(|place| entry(place) as f32).collect(),
            mean: mean.iter().map(|entry| *entry as f32).collect(),
        }
    }
}
