//! Decoding with an assignment: a cache per key-value head, constant in memory where all its readers are replaced.

use crate::Error;
use crate::assignment::Assignment;
use crate::calibration::Calibration;
use crate::candidate::{Candidate, Frame};
use crate::head::Order;
use crate::layer::columns;
use crate::model::{ExactCache, LayerAttention, LayerInput, Shape};
use crate::readers::Readers;
use crate::replacement::StreamingCache;
use rayon::prelude::*;

/// The caches of all layers: tokens may come in any pieces, in order.
pub struct MixedCache {
    shape: Shape,
    layers: Vec<Vec<GroupCache>>,
    tokens: Vec<usize>,
}

enum GroupCache {
    /// All tokens, read exactly by every reader.
    Exact(Box<ExactCache>),
    /// A state for every candidate, with the readers that it answers.
    Streaming(Vec<Streamed>),
}

struct Streamed {
    cache: StreamingCache,
    /// Query heads of the group, from 0.
    readers: Vec<usize>,
}

impl MixedCache {
    /// Empty caches. A key-value head whose whole cache one of its readers needs is read exactly by all of them.
    ///
    /// # Errors
    /// An encoder, whose tokens see what comes later; eviction, which is compared on whole texts only; an assignment or a calibration
    /// of another model.
    pub fn new(
        shape: &Shape,
        assignment: &Assignment,
        frame: &Frame,
        calibration: &Calibration,
    ) -> Result<Self, Error> {
        if shape.order == Order::Whole {
            return Err(Error::NeedsCausal {
                what: "decoding with a cache",
                remedy: "replace its heads on whole texts",
            });
        }
        calibration.check(shape)?;
        assignment.check(shape)?;
        let readers = shape.readers().max(1);
        let layers = assignment
            .rows()
            .iter()
            .enumerate()
            .map(|(layer, row)| {
                let groups = row.chunks(readers).zip(calibration.layer(layer));
                groups
                    .map(|(candidates, readers)| GroupCache::new(shape, candidates, frame, readers))
                    .collect()
            })
            .collect::<Result<_, _>>()?;
        Ok(MixedCache { shape: *shape, layers, tokens: vec![0; shape.layers] })
    }

    /// Bytes of keys, values and states held now.
    pub fn bytes(&self) -> usize {
        let of_group = |group: &GroupCache| match group {
            GroupCache::Exact(cache) => cache.bytes(),
            GroupCache::Streaming(states) => states.iter().map(|state| state.cache.bytes()).sum(),
        };
        self.layers.iter().flatten().map(of_group).sum()
    }
}

impl GroupCache {
    fn new(shape: &Shape, candidates: &[Candidate], frame: &Frame, readers: &Readers) -> Result<Self, Error> {
        if candidates.contains(&Candidate::Exact) {
            // A model of one layer with one key-value head.
            let alone = Shape { layers: 1, heads: candidates.len(), key_value_heads: 1, ..*shape };
            return Ok(GroupCache::Exact(Box::new(ExactCache::new(&alone)?)));
        }
        let mut states: Vec<(Candidate, Streamed)> = Vec::new();
        for (reader, candidate) in candidates.iter().enumerate() {
            let Candidate::Measure { top, middle } = *candidate else {
                return Err(Error::WholeTextsOnly { candidate: *candidate });
            };
            match states.iter_mut().find(|(known, _)| known == candidate) {
                Some((_, state)) => state.readers.push(reader),
                None => {
                    let cache =
                        StreamingCache::new(&frame.replacement(top, middle), readers, shape.head_dimension);
                    states.push((*candidate, Streamed { cache, readers: vec![reader] }));
                }
            }
        }
        Ok(GroupCache::Streaming(states.into_iter().map(|(_, state)| state).collect()))
    }

    /// Takes in tokens and answers all readers of each: tokens × readers × dimension.
    fn attend(
        &mut self,
        input: &LayerInput<'_>,
        readers: usize,
        dimension: usize,
    ) -> Result<Vec<f32>, Error> {
        let mut outputs = vec![0.0; input.tilts.len()];
        match self {
            GroupCache::Exact(cache) => cache.attend(input, &mut outputs)?,
            GroupCache::Streaming(states) => {
                for state in states {
                    let own = state.readers.len();
                    let of_reader = |token: usize, reader: usize| {
                        let start = (token * readers + state.readers[reader]) * dimension;
                        start..start + dimension
                    };
                    let tilts: Vec<f32> = (0..input.count * own)
                        .flat_map(|place| &input.tilts[of_reader(place / own, place % own)])
                        .copied()
                        .collect();
                    let mut answered = vec![0.0; tilts.len()];
                    state.cache.attend(input.keys, input.values, &tilts, own, &mut answered)?;
                    for (place, row) in answered.chunks_exact(dimension).enumerate() {
                        outputs[of_reader(place / own, place % own)].copy_from_slice(row);
                    }
                }
            }
        }
        Ok(outputs)
    }
}

impl LayerAttention for MixedCache {
    fn attend(&mut self, input: &LayerInput<'_>, output: &mut [f32]) -> Result<(), Error> {
        input.check(&self.shape)?;
        let expected = self.tokens[input.layer];
        if input.start != expected {
            let remedy = "give the tokens that follow those in the cache";
            return Err(Error::WrongStart { expected, found: input.start, remedy });
        }
        let (d, heads, groups) = (self.shape.head_dimension, self.shape.heads, self.shape.key_value_heads);
        let readers = heads / groups.max(1);
        let answered: Vec<Result<Vec<f32>, Error>> = self.layers[input.layer]
            .par_iter_mut()
            .enumerate()
            .map(|(group, cache)| {
                let own =
                    |table: &[f32]| -> Vec<f32> { columns(table, groups, d, group..group + 1).collect() };
                let tilts: Vec<f32> =
                    columns(input.tilts, heads, d, group * readers..(group + 1) * readers).collect();
                let (keys, values) = (own(input.keys), own(input.values));
                let alone = LayerInput { layer: 0, tilts: &tilts, keys: &keys, values: &values, ..*input };
                cache.attend(&alone, readers, d)
            })
            .collect();
        for (group, outputs) in answered.into_iter().enumerate() {
            for (token, row) in outputs?.chunks_exact(readers * d).enumerate() {
                output[(token * heads + group * readers) * d..][..readers * d].copy_from_slice(row);
            }
        }
        self.tokens[input.layer] += input.count;
        Ok(())
    }
}
