//! Tokens as rows of a table, plus rows of positions where a model has them.

use super::tape::{Tape, Tensor};
use std::sync::Arc;

/// table[token_t] + positions[t mod length] on the tape.
pub(super) fn embed(
    tape: &mut Tape,
    table: &Tensor,
    positions: Option<&Tensor>,
    tokens: &Arc<[u32]>,
    length: usize,
) -> Tensor {
    let width = table.columns();
    let inputs: Vec<&Tensor> = [table].into_iter().chain(positions).collect();
    let tokens_back = Arc::clone(tokens);
    tape.operation(
        "embedding",
        &inputs,
        width,
        |given| {
            let mut rows = Vec::with_capacity(tokens.len() * width);
            for &token in tokens.iter() {
                rows.extend_from_slice(&given[0][token as usize * width..(token as usize + 1) * width]);
            }
            if let Some(positions) = given.get(1) {
                for sequence in rows.chunks_mut(length * width) {
                    sequence.iter_mut().zip(*positions).for_each(|(row, position)| *row += position);
                }
            }
            (rows, ())
        },
        move |(), given, slopes| {
            let mut of_table = vec![0.0; given[0].len()];
            for (&token, slope) in tokens_back.iter().zip(slopes.chunks_exact(width)) {
                let row = &mut of_table[token as usize * width..(token as usize + 1) * width];
                row.iter_mut().zip(slope).for_each(|(sum, x)| *sum += x);
            }
            let mut found = vec![of_table];
            if let Some(positions) = given.get(1) {
                let mut of_positions = vec![0.0; positions.len()];
                for sequence in slopes.chunks(length * width) {
                    of_positions.iter_mut().zip(sequence).for_each(|(sum, x)| *sum += x);
                }
                found.push(of_positions);
            }
            found
        },
    )
}
