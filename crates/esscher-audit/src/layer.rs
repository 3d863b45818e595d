//! The heads of one layer on one text, each with its own contiguous tokens.

use crate::Error;
use crate::head::{Head, Order};
use crate::model::{LayerInput, Shape};

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
            return Err(Error::Request(format!(
                "a whole text is expected, found tokens from position {} on: decode with a streaming cache instead",
                input.start
            )));
        }
        input.check(shape)?;
        let d = shape.head_dimension;
        let split = |table: &[f32], heads: usize| -> Vec<Vec<f32>> {
            let head = |head: usize| {
                table.chunks_exact(heads * d).flat_map(move |token| &token[head * d..(head + 1) * d]).copied()
            };
            (0..heads).map(|number| head(number).collect()).collect()
        };
        Ok(LayerHeads {
            order: shape.order,
            dimension: d,
            tilts: split(input.tilts, shape.heads),
            keys: split(input.keys, shape.key_value_heads),
            values: split(input.values, shape.key_value_heads),
        })
    }

    /// Key-value heads.
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

/// Writes the output of one head, a row per token, into a layer's outputs, tokens × heads × dimension.
pub fn write_head(output: &mut [f32], heads: usize, head: usize, dimension: usize, rows: &[f32]) {
    for (token, row) in output.chunks_exact_mut(heads * dimension).zip(rows.chunks_exact(dimension)) {
        token[head * dimension..(head + 1) * dimension].copy_from_slice(row);
    }
}
