//! Weight matrices as they are stored, and products with them.

pub(crate) mod products;

use crate::Error;
use products::{bfloat_to_single, half_to_single};

/// How the numbers of a matrix are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storage {
    /// IEEE single precision, little endian.
    F32,
    /// IEEE half precision, little endian.
    F16,
    /// bfloat16, little endian.
    Bf16,
    /// Blocks of 32: a half-precision scale d and 32 signed bytes q; the number is d·q.
    Q8_0,
    /// Blocks of 32: half-precision d and m and 16 bytes of nibbles (first the low ones: numbers 0 to 15, then the high
    /// ones: 16 to 31); the number is d·q + m.
    Q4_1,
}

impl Storage {
    /// Numbers and bytes of a block.
    pub fn block(self) -> (usize, usize) {
        match self {
            Storage::F32 => (1, 4),
            Storage::F16 | Storage::Bf16 => (1, 2),
            Storage::Q8_0 => (32, 34),
            Storage::Q4_1 => (32, 20),
        }
    }
}

/// A matrix of `rows` outputs and `columns` inputs, row-major, in the format of its file.
#[derive(Debug, Clone)]
pub struct Matrix {
    rows: usize,
    columns: usize,
    storage: Storage,
    bytes: Vec<u8>,
}

impl Matrix {
    /// A matrix from its stored bytes; `name` is that of the tensor, for messages.
    ///
    /// # Errors
    /// Another number of bytes than the shape needs, rows that are not a whole number of blocks, numbers that are not finite.
    pub fn from_bytes(
        name: &str,
        storage: Storage,
        rows: usize,
        columns: usize,
        bytes: Vec<u8>,
    ) -> Result<Self, Error> {
        let (numbers, size) = storage.block();
        let damaged = |problem: String| Error::Damaged { what: format!("tensor `{name}`"), problem };
        if !columns.is_multiple_of(numbers) {
            return Err(damaged(format!(
                "rows of {columns} numbers are not a whole number of blocks of {numbers}"
            )));
        }
        let expected = rows.checked_mul(columns / numbers).and_then(|blocks| blocks.checked_mul(size));
        if expected != Some(bytes.len()) {
            let found = bytes.len();
            return Err(damaged(format!(
                "{rows} × {columns} numbers as {storage:?} do not take {found} bytes"
            )));
        }
        let matrix = Matrix { rows, columns, storage, bytes };
        matrix.check_finite(name)?;
        Ok(matrix)
    }

    /// Number of rows: the numbers that a product with it has.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns: the numbers that it is multiplied with.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The format in which its numbers are stored.
    pub fn storage(&self) -> Storage {
        self.storage
    }

    /// The bytes of its numbers as they are stored.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn check_finite(&self, name: &str) -> Result<(), Error> {
        let (numbers, size) = self.storage.block();
        let half = |bytes: &[u8]| half::f16::from_le_bytes([bytes[0], bytes[1]]).to_f32();
        // What makes a block infinite: the number itself, or a scale.
        let largest = |block: &[u8]| match self.storage {
            Storage::F32 => f32::from_le_bytes([block[0], block[1], block[2], block[3]]),
            Storage::F16 | Storage::Q8_0 => half(block),
            Storage::Bf16 => half::bf16::from_le_bytes([block[0], block[1]]).to_f32(),
            Storage::Q4_1 => half(block) + half(&block[2..]),
        };
        match self.bytes.chunks_exact(size).position(|block| !largest(block).is_finite()) {
            None => Ok(()),
            Some(block) => {
                let entry = largest(&self.bytes[block * size..]);
                let (row, column) = (block * numbers / self.columns, block * numbers % self.columns);
                Err(Error::Damaged {
                    what: format!("tensor `{name}`"),
                    problem: format!(
                        "row {row}, column {column} is {entry}; weights must be finite numbers: convert the checkpoint again"
                    ),
                })
            }
        }
    }

    /// Writes a row in single precision. `row` is below [`rows`](Self::rows), `out` has [`columns`](Self::columns) numbers.
    pub fn write_row(&self, row: usize, out: &mut [f32]) {
        self.unpack_row(row, out);
    }

    pub(crate) fn bytes_per_row(&self) -> usize {
        let (numbers, size) = self.storage.block();
        self.columns / numbers * size
    }

    /// Inlined into loops that are compiled for the instructions of the machine.
    #[inline(always)]
    fn unpack_row(&self, row: usize, out: &mut [f32]) {
        let length = self.bytes_per_row();
        let bytes = &self.bytes[row * length..(row + 1) * length];
        match self.storage {
            Storage::F32 => {
                for (out, bytes) in out.iter_mut().zip(bytes.as_chunks::<4>().0) {
                    *out = f32::from_le_bytes(*bytes);
                }
            }
            Storage::F16 => {
                for (out, bytes) in out.iter_mut().zip(bytes.as_chunks::<2>().0) {
                    *out = half_to_single(*bytes);
                }
            }
            Storage::Bf16 => {
                for (out, bytes) in out.iter_mut().zip(bytes.as_chunks::<2>().0) {
                    *out = bfloat_to_single(*bytes);
                }
            }
            Storage::Q8_0 => {
                let (blocks, _) = out.as_chunks_mut::<32>();
                for (out, block) in blocks.iter_mut().zip(bytes.as_chunks::<34>().0) {
                    let scale = half_to_single([block[0], block[1]]);
                    for lane in 0..32 {
                        out[lane] = scale * f32::from(block[2 + lane] as i8);
                    }
                }
            }
            Storage::Q4_1 => {
                let (blocks, _) = out.as_chunks_mut::<32>();
                for (out, block) in blocks.iter_mut().zip(bytes.as_chunks::<20>().0) {
                    let scale = half_to_single([block[0], block[1]]);
                    let shift = half_to_single([block[2], block[3]]);
                    for lane in 0..16 {
                        out[lane] = scale * f32::from(block[4 + lane] & 15) + shift;
                    }
                    for lane in 0..16 {
                        out[16 + lane] = scale * f32::from(block[4 + lane] >> 4) + shift;
                    }
                }
            }
        }
    }
}
