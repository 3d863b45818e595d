//! Products with stored matrices against sums over numbers decoded one by one.

use crate::worlds::{STORAGES, decoded, difference, matrix, numbers};
use esscher_audit::weights::{Matrix, Storage};

/// Single-precision sums of up to 352 terms in another order: √352 · 2⁻²⁴ ≈ 1e-6 of the terms' size.
const ROUNDING: f32 = 3e-6;

#[test]
fn stored_rows_are_what_their_format_says() {
    for storage in STORAGES {
        let matrix = matrix(1, storage, 7, 64);
        let mut row = vec![0.0; 64];
        for (number, expected) in decoded(&matrix).iter().enumerate() {
            matrix.write_row(number, &mut row);
            // Q4_1 may be rounded once or twice.
            assert!(difference(&row, expected) <= f32::EPSILON, "{storage:?}, row {number}");
        }
    }
}

#[test]
fn half_precision_keeps_its_smallest_numbers() {
    let bytes: Vec<u8> =
        [1_u16, 0x3ff, 0x400, 0x8001, 0x7bff, 0x8000].iter().flat_map(|bits| bits.to_le_bytes()).collect();
    let matrix = Matrix::from_bytes("halves", Storage::F16, 1, 6, bytes).unwrap();
    let mut row = [0.0; 6];
    matrix.write_row(0, &mut row);
    let expected =
        [1_u16, 0x3ff, 0x400, 0x8001, 0x7bff, 0x8000].map(|bits| half::f16::from_bits(bits).to_f32());
    assert_eq!(row.map(f32::to_bits), expected.map(f32::to_bits));
}

#[test]
fn infinite_weights_are_refused_in_every_format() {
    for storage in STORAGES {
        let mut bytes = matrix(1, storage, 3, 64).bytes().to_vec();
        let place = bytes.len() / 3;
        match storage {
            Storage::F32 => bytes[place..place + 4].copy_from_slice(&f32::INFINITY.to_le_bytes()),
            Storage::Bf16 => bytes[place..place + 2].copy_from_slice(&[0x80, 0x7f]),
            _ => bytes[place..place + 2].copy_from_slice(&[0x01, 0xfc]),
        }
        let error = Matrix::from_bytes("m", storage, 3, 64, bytes).unwrap_err().to_string();
        assert!(error.contains("row 1") && error.contains("column 0"), "{storage:?}: {error}");
    }
}

#[test]
fn products_of_one_and_of_many_inputs_are_sums_over_columns() {
    for storage in STORAGES {
        // More than a panel and no multiple of it; enough numbers for several threads.
        let matrix = matrix(2, storage, 197, 352);
        let rows = decoded(&matrix);
        for count in [1, 2, 8, 9, 33] {
            let inputs = numbers(3, count * 352, 1.0);
            let mut outputs = vec![f32::NAN; count * 197];
            matrix.multiply(&inputs, &mut outputs);
            let expected: Vec<f32> = inputs
                .chunks(352)
                .flat_map(|input| {
                    rows.iter().map(move |row| {
                        row.iter().zip(input).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>() as f32
                    })
                })
                .collect();
            let found = difference(&outputs, &expected);
            assert!(found < ROUNDING, "{storage:?}, {count} inputs: {found}");
        }
    }
}
