//! Weight matrices as they are stored, and products with them.

use crate::Error;

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
    /// Another number of bytes than the shape needs, rows that are no whole number of blocks, numbers that are not finite.
    pub fn from_bytes(
        name: &str,
        storage: Storage,
        rows: usize,
        columns: usize,
        bytes: Vec<u8>,
    ) -> Result<Self, Error> {
        let (numbers, size) = storage.block();
        let damaged = |problem: String| Error::Damaged { what: format!("tensor `{name}`"), problem };
        if columns % numbers != 0 {
            return Err(damaged(format!(
                "rows of {columns} numbers are no whole number of blocks of {numbers}"
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

    /// Outputs.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Inputs.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The format.
    pub fn storage(&self) -> Storage {
        self.storage
    }

    /// The stored bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn check_finite(&self, name: &str) -> Result<(), Error> {
        let mut row = vec![0.0; self.columns];
        for number in 0..self.rows {
            self.write_row(number, &mut row);
            if let Some(column) = row.iter().position(|entry| !entry.is_finite()) {
                let entry = row[column];
                return Err(Error::Damaged {
                    what: format!("tensor `{name}`"),
                    problem: format!(
                        "row {number}, column {column} is {entry}; weights must be finite numbers"
                    ),
                });
            }
        }
        Ok(())
    }

    /// Writes a row in single precision. `row` is below [`rows`](Self::rows), `out` has [`columns`](Self::columns) numbers.
    pub fn write_row(&self, row: usize, out: &mut [f32]) {
        let (numbers, size) = self.storage.block();
        let length = self.columns / numbers * size;
        let bytes = &self.bytes[row * length..(row + 1) * length];
        let half = |low: u8, high: u8| half::f16::from_le_bytes([low, high]).to_f32();
        match self.storage {
            Storage::F32 => {
                for (out, bytes) in out.iter_mut().zip(bytes.chunks_exact(4)) {
                    *out = f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
                }
            }
            Storage::F16 => {
                for (out, bytes) in out.iter_mut().zip(bytes.chunks_exact(2)) {
                    *out = half(bytes[0], bytes[1]);
                }
            }
            Storage::Bf16 => {
                for (out, bytes) in out.iter_mut().zip(bytes.chunks_exact(2)) {
                    *out = half::bf16::from_le_bytes([bytes[0], bytes[1]]).to_f32();
                }
            }
            Storage::Q8_0 => {
                for (out, block) in out.chunks_exact_mut(32).zip(bytes.chunks_exact(34)) {
                    let scale = half(block[0], block[1]);
                    for (out, byte) in out.iter_mut().zip(&block[2..]) {
                        *out = scale * f32::from(*byte as i8);
                    }
                }
            }
            Storage::Q4_1 => {
                for (out, block) in out.chunks_exact_mut(32).zip(bytes.chunks_exact(20)) {
                    let (scale, shift) = (half(block[0], block[1]), half(block[2], block[3]));
                    let (low, high) = out.split_at_mut(16);
                    for ((low, high), byte) in low.iter_mut().zip(high).zip(&block[4..]) {
                        *low = scale * f32::from(byte & 15) + shift;
                        *high = scale * f32::from(byte >> 4) + shift;
                    }
                }
            }
        }
    }
}
