//! Owen-scrambled Sobol points: quasi-random points whose randomisations give an honest error.
//!
//! Direction numbers of Joe and Kuo (key `joe2008`); nested scrambling by a hash of the bit-reversed
//! digits (Burley 2020, key `burley2020`). Each randomisation is unbiased; the spread over a few
//! independent ones estimates the error.

use crate::error::{Error, Result};
use std::sync::OnceLock;

/// Dimensions for which direction numbers are shipped.
pub const MAX_DIMENSION: usize = 1024;

const DIGITS: usize = 32;

/// One randomisation of the Sobol sequence in a fixed dimension.
///
/// ```
/// use esscher_core::numerics::ScrambledSobol;
/// let points = ScrambledSobol::new(2, 0)?;
/// let mean: f64 = (0..1024).map(|index| points.point(index)[1]).sum::<f64>() / 1024.0;
/// assert!((mean - 0.5).abs() < 1e-3);
/// # Ok::<(), esscher_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct ScrambledSobol {
    dimension: usize,
    seed: u64,
}

impl ScrambledSobol {
    /// The randomisation `seed` of the Sobol sequence in this dimension.
    pub fn new(dimension: usize, seed: u64) -> Result<Self> {
        if dimension == 0 || dimension > MAX_DIMENSION {
            return Err(Error::OutOfRange {
                what: "the dimension of a Sobol sequence",
                value: dimension as f64,
                expected: "a whole number from 1 to 1024",
            });
        }
        Ok(ScrambledSobol { dimension, seed })
    }

    /// Number of coordinates of a point.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// The point of this index, in the open unit cube.
    pub fn point(&self, index: u32) -> Vec<f64> {
        direction_numbers()[..self.dimension]
            .iter()
            .enumerate()
            .map(|(axis, columns)| self.coordinate(index, axis, columns))
            .collect()
    }

    fn coordinate(&self, index: u32, axis: usize, columns: &[u32; DIGITS]) -> f64 {
        let mut digits = 0;
        let mut rest = index;
        while rest != 0 {
            digits ^= columns[rest.trailing_zeros() as usize];
            rest &= rest - 1;
        }
        let key = mix(self.seed ^ mix(axis as u64 + 1));
        (f64::from(owen_scramble(digits, key as u32)) + 0.5) / 2f64.powi(DIGITS as i32)
    }
}

/// Nested uniform scrambling: flips each digit by a hash of the digits above it.
fn owen_scramble(digits: u32, key: u32) -> u32 {
    let mut x = digits.reverse_bits();
    x ^= x.wrapping_mul(0x3d20_adea);
    x = x.wrapping_add(key);
    x = x.wrapping_mul((key >> 16) | 1);
    x ^= x.wrapping_mul(0x0552_6c56);
    x ^= x.wrapping_mul(0x53a2_2864);
    x.reverse_bits()
}

/// The finaliser of SplitMix64: neighbouring keys give unrelated scrambles.
fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// For every axis the 32 columns of its generating matrix, highest digit first.
fn direction_numbers() -> &'static [[u32; DIGITS]] {
    static TABLE: OnceLock<Vec<[u32; DIGITS]>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut first = [0; DIGITS];
        for (k, column) in first.iter_mut().enumerate() {
            *column = 1 << (DIGITS - 1 - k);
        }
        let mut table = vec![first];
        for line in include_str!("joe_kuo.txt").lines().filter(|line| !line.starts_with('#')) {
            let numbers: Vec<u32> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
            table.push(columns(numbers[0], &numbers[1..]));
        }
        table
    })
}

/// Columns from a primitive polynomial and its initial numbers, by the Sobol recurrence.
fn columns(polynomial: u32, initial: &[u32]) -> [u32; DIGITS] {
    let degree = initial.len();
    let mut columns = [0; DIGITS];
    for k in 0..DIGITS {
        columns[k] = if k < degree {
            initial[k] << (DIGITS - 1 - k)
        } else {
            let mut column = columns[k - degree] ^ (columns[k - degree] >> degree);
            for lag in 1..degree {
                if polynomial >> (degree - lag) & 1 == 1 {
                    column ^= columns[k - lag];
                }
            }
            column
        };
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_axis_is_stratified_in_one_dimension() {
        let points = ScrambledSobol::new(MAX_DIMENSION, 7).unwrap();
        let points: Vec<Vec<f64>> = (0..64).map(|index| points.point(index)).collect();
        for axis in 0..MAX_DIMENSION {
            let mut cells = [0; 64];
            for point in &points {
                cells[(point[axis] * 64.0) as usize] += 1;
            }
            assert_eq!(cells, [1; 64], "axis {axis}");
        }
    }

    /// Values of scipy.stats.qmc.Sobol(d=5, scramble=False), rows 5 to 8 (scipy walks in Gray-code
    /// order, so its row n is our index n ^ (n >> 1)).
    #[test]
    fn unscrambled_points_are_those_of_joe_and_kuo() {
        let scipy = [
            [0.875, 0.875, 0.125, 0.375, 0.875],
            [0.625, 0.125, 0.875, 0.625, 0.625],
            [0.125, 0.625, 0.375, 0.125, 0.125],
            [0.1875, 0.3125, 0.9375, 0.4375, 0.5625],
        ];
        for (row, expected) in (5u32..).zip(scipy) {
            let index = row ^ (row >> 1);
            for (axis, value) in expected.iter().enumerate() {
                let columns = &direction_numbers()[axis];
                let digits = (0..DIGITS).filter(|&k| index >> k & 1 == 1).fold(0, |d, k| d ^ columns[k]);
                assert_eq!(f64::from(digits) / 2f64.powi(32), *value, "row {row}, axis {axis}");
            }
        }
    }
}
