//! The output projection of a layer, head by head: how large an error of a head is where it is added to the stream.

use crate::weights::Matrix;
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatMut, MatRef, Par};
use rayon::prelude::*;

/// For every head h the triangle R with W_h = Q R, where W_h are the columns of W_O that read the head: |W_h e| = |R e|.
///
/// R is as small as the head and, unlike W_hᵀ W_h, loses no digits of small norms.
#[derive(Debug, Clone)]
pub struct OutputProjection {
    dimension: usize,
    triangles: Vec<Vec<f32>>,
}

impl OutputProjection {
    pub(super) fn new(output: &Matrix, heads: usize) -> Self {
        let (rows, columns) = (output.rows(), output.columns());
        let mut unpacked = vec![0.0; rows * columns];
        for (row, to) in unpacked.chunks_exact_mut(columns).enumerate() {
            output.write_row(row, to);
        }
        Self::of_rows(&unpacked, columns, heads)
    }

    /// Of a matrix given row by row.
    pub(crate) fn of_rows(unpacked: &[f32], columns: usize, heads: usize) -> Self {
        let rows = unpacked.len() / columns.max(1);
        let dimension = columns / heads.max(1);
        let triangles = (0..heads).into_par_iter().map(|head| {
            let part = Mat::from_fn(rows, dimension, |row, column| {
                f64::from(unpacked[row * columns + head * dimension + column])
            });
            let decomposition = part.qr();
            let triangle = decomposition.R();
            let mut numbers = vec![0.0; dimension * dimension];
            for row in 0..dimension.min(triangle.nrows()) {
                for column in row..dimension {
                    numbers[row * dimension + column] = triangle[(row, column)] as f32;
                }
            }
            numbers
        });
        OutputProjection { dimension, triangles: triangles.collect() }
    }

    /// |W_h e| for every row e of `errors`; nothing if there is no such head.
    pub fn norms(&self, head: usize, errors: &[f32]) -> Option<Vec<f32>> {
        let triangle =
            MatRef::from_row_major_slice(self.triangles.get(head)?, self.dimension, self.dimension);
        let count = errors.len() / self.dimension;
        let errors = MatRef::from_row_major_slice(&errors[..count * self.dimension], count, self.dimension);
        let mut projected = vec![0.0; count * self.dimension];
        let to = MatMut::from_row_major_slice_mut(&mut projected, count, self.dimension);
        matmul(to, Accum::Replace, errors, triangle.transpose(), 1.0, Par::Seq);
        let rows = projected.chunks_exact(self.dimension);
        Some(rows.map(|row| row.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt() as f32).collect())
    }
}
