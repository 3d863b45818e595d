//! The heads of one layer on one text, each with its own contiguous tokens.

use crate::Error;
use crate::head::{Head, Order};
use crate::model::{LayerInput, Shape};
use std::ops::Range;

/// The heads of a layer, taken apart.
#[derive(Debug, Clone)]
pub struct LayerHeads {
    order: Order,
    dimension: usize,
    tilts: Vec<Vec<f32>>,
    keys: Vec<Vec<f32>>,
    values: Vec<Vec<f32>>,
}

impl LayerHeads {
    /// Takes apart what a layer is given for a whole text.
    ///
    /// # Errors
    /// A part of a text: replacements are evaluated on whole ones. Tables of other sizes than the shape says.
    pub fn new(shape: &Shape, input: &LayerInput<'_>) -> Result<Self, Error> {
        if input.start != 0 {
            let remedy = "give the whole text in one call, or decode with a streaming cache";
            return Err(Error::WrongStart { expected: 0, found: input.start, remedy });
        }
        input.check(shape)?;
        let d = shape.head_dimension;
        let split = |table: &[f32], heads: usize| {
            let mut split = vec![Vec::new(); heads];
            append_heads(&mut split, table, d);
            split
        };
        Ok(LayerHeads {
            order: shape.order,
            dimension: d,
            tilts: split(input.tilts, shape.heads),
            keys: split(input.keys, shape.key_value_heads),
            values: split(input.values, shape.key_value_heads),
        })
    }

    /// Number of key-value heads.
    pub fn groups(&self) -> usize {
        self.keys.len()
    }

    /// Query heads that share a key-value head.
    pub fn readers(&self) -> usize {
        self.tilts.len() / self.keys.len().max(1)
    }

    /// The query heads that read a key-value head.
    pub fn group(&self, group: usize) -> Vec<Head<'_>> {
        let readers = self.readers();
        (group * readers..(group + 1) * readers)
            .map(|head| Head {
                order: self.order,
                dimension: self.dimension,
                tilts: &self.tilts[head],
                keys: &self.keys[group],
                values: &self.values[group],
            })
            .collect()
    }
}

/// The numbers of some heads, token by token, of a table of tokens × heads × dimension.
pub(crate) fn columns(
    table: &[f32],
    heads: usize,
    dimension: usize,
    wanted: Range<usize>,
) -> impl Iterator<Item = f32> {
    let wanted = wanted.start * dimension..wanted.end * dimension;
    table.chunks_exact((heads * dimension).max(1)).flat_map(move |token| &token[wanted.clone()]).copied()
}

/// Appends to each head its numbers of a table of tokens × heads × dimension.
pub(crate) fn append_heads(heads: &mut [Vec<f32>], table: &[f32], dimension: usize) {
    let width = heads.len() * dimension;
    for (number, head) in heads.iter_mut().enumerate() {
        head.reserve(table.len() / width.max(1) * dimension);
        for token in table.chunks_exact(width.max(1)) {
            head.extend_from_slice(&token[number * dimension..(number + 1) * dimension]);
        }
    }
}

/// Writes the output of one head, a row per token, into a layer's outputs, tokens × heads × dimension.
pub fn write_head(output: &mut [f32], heads: usize, head: usize, dimension: usize, rows: &[f32]) {
    for (token, row) in output.chunks_exact_mut(heads * dimension).zip(rows.chunks_exact(dimension)) {
        token[head * dimension..(head + 1) * dimension].copy_from_slice(row);
    }
}
