//! Products of inputs with stored matrices: panels in single precision for many inputs, fused loops for few.

use super::{Matrix, Storage};
use esscher_core::numerics::{MultiplyAdd, VectorLoops, vectorised};
use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use rayon::prelude::*;

/// Up to this many inputs are multiplied straight from the stored blocks.
const FEW: usize = 8;

/// Rows of the matrix that are unpacked together for many inputs: a multiple of the 24 rows of the kernels of AVX2, so that
/// none of them works on a rest. It does not depend on the number of threads, so that no
/// sum does.
pub(crate) const PANEL: usize = 96;

/// Rows of the matrix that one task of the fused loops takes.
const ROWS_PER_TASK: usize = 64;

impl Matrix {
    /// Writes W x for every row x of `inputs`: `inputs` has n rows of [`columns`](Self::columns) numbers, `outputs` n rows of
    /// [`rows`](Self::rows). Nothing is written past the shorter of the two.
    pub fn multiply(&self, inputs: &[f32], outputs: &mut [f32]) {
        let (Some(count), true) = (inputs.len().checked_div(self.columns), self.rows > 0) else {
            return outputs.fill(0.0);
        };
        let count = count.min(outputs.len() / self.rows);
        let (inputs, outputs) = (&inputs[..count * self.columns], &mut outputs[..count * self.rows]);
        if count <= FEW {
            for (input, output) in inputs.chunks_exact(self.columns).zip(outputs.chunks_exact_mut(self.rows))
            {
                self.multiply_one(input, output);
            }
        } else {
            self.multiply_many(count, inputs, outputs);
        }
    }

    fn multiply_many(&self, count: usize, inputs: &[f32], outputs: &mut [f32]) {
        let mut rest = MatMut::from_row_major_slice_mut(outputs, count, self.rows);
        let mut panels = Vec::with_capacity(self.rows.div_ceil(PANEL));
        for first in (0..self.rows).step_by(PANEL) {
            let (panel, others) = rest.split_at_col_mut(PANEL.min(self.rows - first));
            panels.push((first, panel));
            rest = others;
        }
        panels.into_par_iter().for_each_init(Vec::new, |unpacked, (first, panel)| {
            self.multiply_panel(first, inputs, panel, unpacked);
        });
    }

    /// The outputs of the rows from `first` on, as many as `outputs` has columns.
    pub(crate) fn multiply_panel(
        &self,
        first: usize,
        inputs: &[f32],
        outputs: MatMut<'_, f32>,
        unpacked: &mut Vec<f32>,
    ) {
        let (count, rows) = (outputs.nrows(), outputs.ncols());
        unpacked.resize(rows * self.columns, 0.0);
        vectorised(Unpack { matrix: self, first, to: unpacked });
        let inputs = MatRef::from_row_major_slice(inputs, count, self.columns);
        let weights = MatRef::from_row_major_slice(unpacked, rows, self.columns);
        matmul(outputs, Accum::Replace, inputs, weights.transpose(), 1.0, Par::Seq);
    }

    fn multiply_one(&self, input: &[f32], output: &mut [f32]) {
        // What the shift of a block of Q4_1 is multiplied by.
        let sums: Vec<f32> = match self.storage {
            Storage::Q4_1 => input.chunks_exact(32).map(|block| block.iter().sum()).collect(),
            _ => Vec::new(),
        };
        let task = |(number, output): (usize, &mut [f32])| {
            vectorised(Dots { matrix: self, first: number * ROWS_PER_TASK, input, sums: &sums, output });
        };
        if self.rows * self.columns < 1 << 16 {
            output.chunks_mut(ROWS_PER_TASK).enumerate().for_each(task);
        } else {
            output.par_chunks_mut(ROWS_PER_TASK).enumerate().for_each(task);
        }
    }
}

/// Writes rows of a matrix in single precision.
struct Unpack<'a> {
    matrix: &'a Matrix,
    first: usize,
    to: &'a mut [f32],
}

impl VectorLoops for Unpack<'_> {
    type Output = ();

    #[inline(always)]
    fn run<M: MultiplyAdd>(self) {
        for (number, row) in self.to.chunks_exact_mut(self.matrix.columns).enumerate() {
            self.matrix.unpack_row(self.first + number, row);
        }
    }
}

/// Lanes of a sum.
const LANES: usize = 16;

/// The products of consecutive rows of a matrix with one input.
struct Dots<'a> {
    matrix: &'a Matrix,
    first: usize,
    input: &'a [f32],
    /// Of every 32 inputs; for Q4_1 only.
    sums: &'a [f32],
    output: &'a mut [f32],
}

impl VectorLoops for Dots<'_> {
    type Output = ();

    #[inline(always)]
    fn run<M: MultiplyAdd>(self) {
        let length = self.matrix.bytes_per_row();
        let rows = self.matrix.bytes[self.first * length..].chunks_exact(length);
        for (output, row) in self.output.iter_mut().zip(rows) {
            *output = match self.matrix.storage {
                Storage::F32 => dot_numbers::<M, 4>(row, self.input, f32::from_le_bytes),
                Storage::F16 => dot_numbers::<M, 2>(row, self.input, half_to_single),
                Storage::Bf16 => dot_numbers::<M, 2>(row, self.input, bfloat_to_single),
                Storage::Q8_0 => dot_q8::<M>(row, self.input),
                Storage::Q4_1 => dot_q4::<M>(row, self.input, self.sums),
            };
        }
    }
}

#[inline(always)]
fn dot_numbers<M: MultiplyAdd, const BYTES: usize>(
    row: &[u8],
    input: &[f32],
    decode: impl Fn([u8; BYTES]) -> f32,
) -> f32 {
    let (row, _) = row.as_chunks::<BYTES>();
    let (blocks, rest) = row.as_chunks::<LANES>();
    let (inputs, input_rest) = input.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for (block, input) in blocks.iter().zip(inputs) {
        for lane in 0..LANES {
            sums[lane] = M::multiply_add(decode(block[lane]), input[lane], sums[lane]);
        }
    }
    for (lane, (number, input)) in rest.iter().zip(input_rest).enumerate() {
        sums[lane] = M::multiply_add(decode(*number), *input, sums[lane]);
    }
    add_lanes(sums)
}

#[inline(always)]
fn dot_q8<M: MultiplyAdd>(row: &[u8], input: &[f32]) -> f32 {
    let (blocks, _) = row.as_chunks::<34>();
    let (inputs, _) = input.as_chunks::<32>();
    let mut sums = [0.0; LANES];
    for (block, input) in blocks.iter().zip(inputs) {
        let scale = half_to_single([block[0], block[1]]);
        let mut partial = [0.0; LANES];
        for lane in 0..LANES {
            partial[lane] = f32::from(block[2 + lane] as i8) * input[lane];
        }
        for lane in 0..LANES {
            partial[lane] =
                M::multiply_add(f32::from(block[2 + LANES + lane] as i8), input[LANES + lane], partial[lane]);
        }
        for lane in 0..LANES {
            sums[lane] = M::multiply_add(scale, partial[lane], sums[lane]);
        }
    }
    add_lanes(sums)
}

#[inline(always)]
fn dot_q4<M: MultiplyAdd>(row: &[u8], input: &[f32], input_sums: &[f32]) -> f32 {
    let (blocks, _) = row.as_chunks::<20>();
    let (inputs, _) = input.as_chunks::<32>();
    let (mut sums, mut shifts) = ([0.0; LANES], 0.0);
    for ((block, input), input_sum) in blocks.iter().zip(inputs).zip(input_sums) {
        let scale = half_to_single([block[0], block[1]]);
        let shift = half_to_single([block[2], block[3]]);
        let mut partial = [0.0; LANES];
        for lane in 0..LANES {
            partial[lane] = f32::from(block[4 + lane] & 15) * input[lane];
        }
        for lane in 0..LANES {
            partial[lane] =
                M::multiply_add(f32::from(block[4 + lane] >> 4), input[LANES + lane], partial[lane]);
        }
        for lane in 0..LANES {
            sums[lane] = M::multiply_add(scale, partial[lane], sums[lane]);
        }
        shifts = M::multiply_add(shift, *input_sum, shifts);
    }
    add_lanes(sums) + shifts
}

#[inline(always)]
fn add_lanes(mut sums: [f32; LANES]) -> f32 {
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            sums[lane] += sums[lane + half];
        }
        half /= 2;
    }
    sums[0]
}

/// A finite half-precision number. Through the bits, since a library call per block would cost more than the block.
#[inline(always)]
pub(super) fn half_to_single(bytes: [u8; 2]) -> f32 {
    let bits = u32::from(u16::from_le_bytes(bytes));
    let magnitude = f32::from_bits((bits & 0x7fff) << 13) * f32::from_bits((127 + 112) << 23);
    f32::from_bits(magnitude.to_bits() | (bits & 0x8000) << 16)
}

#[inline(always)]
pub(super) fn bfloat_to_single(bytes: [u8; 2]) -> f32 {
    f32::from_bits(u32::from(u16::from_le_bytes(bytes)) << 16)
}
