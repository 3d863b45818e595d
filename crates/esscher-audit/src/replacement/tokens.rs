//! Exact tokens with their positions, and products of rows by the fastest safe kernel.

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};

/// Exact tokens: a key, a value and a position each.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tokens {
    pub(crate) keys: Vec<f32>,
    pub(crate) values: Vec<f32>,
    pub(crate) positions: Vec<usize>,
}

impl Tokens {
    pub(crate) fn len(&self) -> usize {
        self.positions.len()
    }

    pub(crate) fn push(&mut self, position: usize, key: &[f32], value: &[f32]) {
        self.keys.extend_from_slice(key);
        self.values.extend_from_slice(value);
        self.positions.push(position);
    }

    /// (position, key, value) of every token.
    pub(crate) fn iter(&self, dimension: usize) -> impl Iterator<Item = (usize, &[f32], &[f32])> {
        let rows = self.keys.chunks_exact(dimension).zip(self.values.chunks_exact(dimension));
        self.positions.iter().zip(rows).map(|(&position, (key, value))| (position, key, value))
    }

    /// Takes away the first tokens.
    pub(crate) fn take_first(&mut self, dimension: usize, count: usize) -> Tokens {
        let count = count.min(self.len());
        Tokens {
            keys: self.keys.drain(..count * dimension).collect(),
            values: self.values.drain(..count * dimension).collect(),
            positions: self.positions.drain(..count).collect(),
        }
    }

    /// Bytes of the tokens that are held.
    pub(crate) fn bytes(&self) -> usize {
        (self.keys.len() + self.values.len()) * size_of::<f32>() + self.positions.len() * size_of::<usize>()
    }
}

/// target (n × m) = x yᵀ of n rows and m rows of `width` numbers.
pub(crate) fn rows_times_rows(target: &mut [f32], x: &[f32], y: &[f32], width: usize) {
    let (n, m) = (x.len() / width.max(1), y.len() / width.max(1));
    if n == 0 || m == 0 {
        return;
    }
    matmul(
        MatMut::from_row_major_slice_mut(&mut target[..n * m], n, m),
        Accum::Replace,
        MatRef::from_row_major_slice(&x[..n * width], n, width),
        MatRef::from_row_major_slice(&y[..m * width], m, width).transpose(),
        1.0,
        Par::Seq,
    );
}

/// target (n × width) += x y, x of n × m and y of m rows of `width` numbers.
pub(crate) fn add_rows_times(target: &mut [f32], x: &[f32], y: &[f32], width: usize) {
    let (n, m) = (target.len() / width.max(1), y.len() / width.max(1));
    if n == 0 || m == 0 {
        return;
    }
    matmul(
        MatMut::from_row_major_slice_mut(&mut target[..n * width], n, width),
        Accum::Add,
        MatRef::from_row_major_slice(&x[..n * m], n, m),
        MatRef::from_row_major_slice(&y[..m * width], m, width),
        1.0,
        Par::Seq,
    );
}

/// target (m × width) += xᵀ y of n rows of m and of `width` numbers.
pub(crate) fn add_transposed_times(target: &mut [f32], x: &[f32], m: usize, y: &[f32], width: usize) {
    let n = y.len() / width.max(1);
    if n == 0 || m == 0 {
        return;
    }
    matmul(
        MatMut::from_row_major_slice_mut(&mut target[..m * width], m, width),
        Accum::Add,
        MatRef::from_row_major_slice(&x[..n * m], n, m).transpose(),
        MatRef::from_row_major_slice(&y[..n * width], n, width),
        1.0,
        Par::Seq,
    );
}
