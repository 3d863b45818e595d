//! The tied head and its loss in one operation: mean over labelled rows of −ln softmax(x Tᵀ)_target.
//!
//! Derivatives are formed beside the loss, while a block of logits is in the cache; rows without a label cost nothing.

use super::slices::sum_in_order;
use super::tape::{Tape, Tensor};
use crate::kernels::matrix::{Matrix, set_product};
use rayon::prelude::*;

/// Labelled rows per task.
const BLOCK: usize = 256;

/// What a head says about a batch.
#[derive(Debug, Clone)]
pub(super) struct Judged {
    /// The mean loss of labelled rows, on the tape.
    pub(super) loss: Tensor,
    /// The likeliest token of every labelled row, in their order.
    pub(super) predictions: Vec<u32>,
}

struct Part {
    loss: f64,
    predictions: Vec<u32>,
    of_rows: Vec<f32>,
    of_table: Vec<f32>,
}

/// Loss and predictions at the rows `labelled` = (row, target).
pub(super) fn judge(tape: &mut Tape, x: &Tensor, table: &Tensor, labelled: &[(usize, u32)]) -> Judged {
    let width = table.columns();
    let asked = x.is_tracked() || table.is_tracked();
    let mut predictions = Vec::with_capacity(labelled.len());
    let rows_labelled: Vec<usize> = labelled.iter().map(|&(row, _)| row).collect();
    let loss = tape.operation(
        "head and loss",
        &[x, table],
        1,
        |given| {
            let parts: Vec<Part> = labelled
                .par_chunks(BLOCK)
                .map(|labelled| part(given[0], given[1], labelled, width, asked))
                .collect();
            let mut loss = 0.0;
            let mut of_rows = Vec::with_capacity(labelled.len() * width);
            let mut of_table = Vec::with_capacity(parts.len());
            for part in parts {
                loss += part.loss;
                predictions.extend(part.predictions);
                of_rows.extend(part.of_rows);
                of_table.push(part.of_table);
            }
            (vec![(loss / labelled.len() as f64) as f32], (of_rows, of_table))
        },
        move |(of_rows, of_table), given, slopes| {
            let factor = slopes[0] / rows_labelled.len() as f32;
            let mut of_x = vec![0.0; given[0].len()];
            for (&row, slopes) in rows_labelled.iter().zip(of_rows.chunks_exact(width)) {
                let to = &mut of_x[row * width..(row + 1) * width];
                to.iter_mut().zip(slopes).for_each(|(to, slope)| *to += factor * slope);
            }
            let mut of_table = sum_in_order(of_table.into_par_iter());
            of_table.iter_mut().for_each(|slope| *slope *= factor);
            vec![of_x, of_table]
        },
    );
    Judged { loss, predictions }
}

/// Logits of rows: x Tᵀ.
pub(super) fn logits(x: &[f32], table: &[f32], width: usize) -> Vec<f32> {
    let (rows, vocabulary) = (x.len() / width, table.len() / width);
    let mut logits = vec![0.0; rows * vocabulary];
    set_product(
        &mut logits,
        1.0,
        Matrix::new(x, rows, width),
        Matrix::new(table, vocabulary, width).transposed(),
    );
    logits
}

fn part(x: &[f32], table: &[f32], labelled: &[(usize, u32)], width: usize, asked: bool) -> Part {
    let vocabulary = table.len() / width;
    let mut rows = Vec::with_capacity(labelled.len() * width);
    for &(row, _) in labelled {
        rows.extend_from_slice(&x[row * width..(row + 1) * width]);
    }
    let mut logits = logits(&rows, table, width);
    let mut loss = 0.0;
    let mut predictions = Vec::with_capacity(labelled.len());
    for (logits, &(_, target)) in logits.chunks_exact_mut(vocabulary).zip(labelled) {
        let highest =
            logits.iter().fold(f32::NEG_INFINITY, |highest, &x| if x > highest { x } else { highest });
        predictions.push(logits.iter().position(|&x| x == highest).unwrap_or(0) as u32);
        let own = logits[target as usize] - highest;
        logits.iter_mut().for_each(|x| *x -= highest);
        esscher_core::numerics::exponentials_f32(logits);
        let mut sums = [0.0f32; 8];
        for (index, x) in logits.iter().enumerate() {
            sums[index % 8] += x;
        }
        let sum: f32 = sums.iter().sum();
        loss += f64::from(sum.ln() - own);
        if asked {
            let factor = 1.0 / sum;
            logits.iter_mut().for_each(|x| *x *= factor);
            logits[target as usize] -= 1.0;
        }
    }
    if !asked {
        return Part { loss, predictions, of_rows: Vec::new(), of_table: Vec::new() };
    }
    let slopes = Matrix::new(&logits, labelled.len(), vocabulary);
    let mut of_rows = vec![0.0; rows.len()];
    set_product(&mut of_rows, 1.0, slopes, Matrix::new(table, vocabulary, width));
    let mut of_table = vec![0.0; table.len()];
    set_product(&mut of_table, 1.0, slopes.transposed(), Matrix::new(&rows, labelled.len(), width));
    Part { loss, predictions, of_rows, of_table }
}
