//! A cache of constant memory: what would be deployed.
//!
//! Everything that it knows in advance are its calibrated [`Readers`]. The rule of the window, the same offline: while the
//! queries of block b (positions b·BLOCK up to (b+1)·BLOCK) read, tokens before max(0, b·BLOCK − window) have left; those of
//! them that are neither atoms nor top tokens are the middle.

use super::clusters::{cluster, nearest};
use super::geometry::Geometry;
use super::moments::{Directions, Moments};
use super::tokens::{add_rows_times, rows_times_rows};
use super::{BLOCK, Middle, Replacement, Tokens};
use crate::head::{Head, Order, Readers};
use esscher_core::numerics::exponentials_f32;

/// The context of one key-value head, shared by the query heads that read it.
///
/// ```
/// use esscher_audit::head::Readers;
/// use esscher_audit::replacement::{Atoms, Middle, Replacement, StreamingCache};
/// let atoms = Atoms { first: 1, light: 0.0, most_light: 0 };
/// let replacement = Replacement { atoms, window: 64, top: 0, middle: Middle::TiltedGaussian };
/// let readers = Readers { mean_tilt: vec![0.5, 0.0], tilt_covariance: vec![1.0, 0.0, 0.0, 1.0], median_value_norm: 1.0 };
/// let mut cache = StreamingCache::new(&replacement, &readers, 2);
/// cache.absorb(&[1.0, 0.0], &[3.0, 4.0]);
/// let mut output = [0.0; 2];
/// cache.read(&[0.7, 0.1], &mut output);
/// assert_eq!(output, [3.0, 4.0]);
/// ```
#[derive(Debug, Clone)]
pub struct StreamingCache {
    replacement: Replacement,
    geometry: Geometry,
    dimension: usize,
    atoms: Tokens,
    light_kept: usize,
    top: Tokens,
    top_scores: Vec<f64>,
    window: Tokens,
    middle: Vec<Moments>,
    /// Centres of the clusters in the metric of the tilts.
    centres: Vec<Vec<f32>>,
    seen: usize,
    /// Offline only: every token of the middle, from which clusters are found again.
    everything: Option<Whole>,
}

/// The whole middle and its size when it was last clustered.
#[derive(Debug, Clone, Default)]
struct Whole {
    tokens: Tokens,
    clustered: usize,
}

impl StreamingCache {
    /// An empty cache for keys and values of this many numbers. Missing numbers of the readers count as zeros.
    pub fn new(replacement: &Replacement, readers: &Readers, dimension: usize) -> Self {
        let geometry = Geometry::new(replacement, readers, dimension);
        StreamingCache {
            replacement: *replacement,
            geometry,
            dimension,
            atoms: Tokens::default(),
            light_kept: 0,
            top: Tokens::default(),
            top_scores: Vec::new(),
            window: Tokens::default(),
            middle: Vec::new(),
            centres: Vec::new(),
            seen: 0,
            everything: None,
        }
    }

    /// A cache that may look at the whole middle whenever it clusters.
    pub(crate) fn offline(replacement: &Replacement, readers: &Readers, dimension: usize) -> Self {
        let mut cache = StreamingCache::new(replacement, readers, dimension);
        if matches!(replacement.middle, Middle::TiltedMeans { .. } | Middle::TiltedGaussians { .. }) {
            cache.everything = Some(Whole::default());
        }
        cache
    }

    /// Takes in the next token. Rows of another length than the cache's are ignored.
    pub fn absorb(&mut self, key: &[f32], value: &[f32]) {
        if key.len() != self.dimension || value.len() != self.dimension || self.dimension == 0 {
            return;
        }
        if self.seen.is_multiple_of(BLOCK) {
            self.let_leave(self.seen.saturating_sub(self.replacement.window));
        }
        self.window.push(self.seen, key, value);
        self.seen += 1;
    }

    /// The attention output for one tilt, over all that was absorbed; zeros if nothing was.
    pub fn read(&self, tilt: &[f32], output: &mut [f32]) {
        if tilt.len() == self.dimension && output.len() == self.dimension && self.dimension > 0 {
            self.read_block(tilt, None, output);
        }
    }

    /// Tokens taken in so far.
    pub fn tokens_seen(&self) -> usize {
        self.seen
    }

    /// Memory that the context takes here, in bytes; what belongs to the readers is not counted, since all contexts share it.
    pub fn bytes(&self) -> usize {
        self.atoms.bytes()
            + self.top.bytes()
            + self.window.bytes()
            + self.top_scores.capacity() * size_of::<f64>()
            + self.middle.iter().map(Moments::bytes).sum::<usize>()
            + self.centres.iter().map(|centre| centre.len() * size_of::<f32>()).sum::<usize>()
    }

    /// Tokens before this position leave the window.
    pub(crate) fn let_leave(&mut self, before: usize) {
        if self.replacement.middle == Middle::Exact {
            return;
        }
        let d = self.dimension;
        let leaving = self.window.positions.iter().take_while(|&&position| position < before).count();
        let leaving = self.window.take_first(d, leaving);
        let mut fallen = Tokens::default();
        for (position, key, value) in leaving.iter(d) {
            let light = self.light_kept < self.replacement.atoms.most_light
                && super::dot(value, value).sqrt() < self.geometry.light;
            if position < self.replacement.atoms.first {
                self.atoms.push(position, key, value);
            } else if light {
                self.light_kept += 1;
                self.atoms.push(position, key, value);
            } else if self.replacement.top > 0 {
                self.challenge_top(position, key, value, &mut fallen);
            } else {
                fallen.push(position, key, value);
            }
        }
        if fallen.len() > 0 {
            self.swallow(&fallen);
        }
    }

    /// A token takes the place of the least expected top token if it is expected more; what falls out goes to the middle.
    fn challenge_top(&mut self, position: usize, key: &[f32], value: &[f32], fallen: &mut Tokens) {
        let d = self.dimension;
        let score = self.geometry.log_expected_attention(key);
        if self.top.len() < self.replacement.top {
            self.top.push(position, key, value);
            self.top_scores.push(score);
            return;
        }
        let least = self.top_scores.iter().enumerate().fold((0, f64::INFINITY), |least, (index, &score)| {
            if score < least.1 { (index, score) } else { least }
        });
        if !(score > least.1) {
            fallen.push(position, key, value);
            return;
        }
        let at = least.0;
        let row = at * d..(at + 1) * d;
        fallen.push(self.top.positions[at], &self.top.keys[row.clone()], &self.top.values[row.clone()]);
        self.top.keys[row.clone()].copy_from_slice(key);
        self.top.values[row].copy_from_slice(value);
        self.top.positions[at] = position;
        self.top_scores[at] = score;
    }

    /// Tokens become part of the middle.
    fn swallow(&mut self, tokens: &Tokens) {
        let d = self.dimension;
        match self.replacement.middle {
            Middle::Exact | Middle::Dropped => {}
            Middle::Mean | Middle::Gaussian | Middle::TiltedGaussian | Middle::ReducedGaussian { .. } => {
                if self.middle.is_empty() {
                    self.middle.push(Moments::new(d, self.geometry.rank));
                }
                self.absorb_into(0, tokens);
            }
            Middle::TiltedMeans { count } | Middle::TiltedGaussians { count } => {
                if let Some(whole) = &mut self.everything {
                    for (position, key, value) in tokens.iter(d) {
                        whole.tokens.push(position, key, value);
                    }
                    // By an eighth each time: the work stays proportional to the length.
                    if whole.tokens.len() >= whole.clustered + whole.clustered / 8 {
                        whole.clustered = whole.tokens.len();
                        self.middle = cluster(&whole.tokens, count, &self.geometry);
                        self.centres =
                            self.middle.iter().map(|part| self.geometry.place(&part.mean_key)).collect();
                        return;
                    }
                }
                self.join_clusters(tokens, count);
            }
        }
    }

    /// Tokens open clusters until there are `count`, then join the nearest.
    fn join_clusters(&mut self, tokens: &Tokens, count: usize) {
        let d = self.dimension;
        let mut joined: Vec<Tokens> = vec![Tokens::default(); self.middle.len()];
        for (position, key, value) in tokens.iter(d) {
            let place = self.geometry.place(key);
            let mut owner = nearest(&self.centres, &place);
            let known = self.centres.get(owner).is_some_and(|centre| *centre == place);
            if self.centres.len() < count && !known {
                owner = self.centres.len();
                self.centres.push(place);
                self.middle.push(Moments::new(d, self.geometry.rank));
                joined.push(Tokens::default());
            }
            joined[owner].push(position, key, value);
        }
        for (owner, own) in joined.iter().enumerate() {
            if own.len() > 0 {
                self.absorb_into(owner, own);
                self.centres[owner] = self.geometry.place(&self.middle[owner].mean_key);
            }
        }
    }

    fn absorb_into(&mut self, part: usize, tokens: &Tokens) {
        self.middle[part].absorb(tokens, &self.geometry.base, &self.geometry.directions());
    }

    /// The outputs for several tilts; those of consecutive positions from `start` see no later token.
    pub(crate) fn read_block(&self, tilts: &[f32], start: Option<usize>, output: &mut [f32]) {
        let d = self.dimension;
        let queries = tilts.len() / d;
        let sections = [&self.atoms, &self.top, &self.window];
        let mut scores: Vec<Vec<f32>> = Vec::with_capacity(sections.len());
        let mut largest = vec![f64::NEG_INFINITY; queries];
        for tokens in sections {
            let count = tokens.len();
            let mut section = vec![0.0; queries * count];
            rows_times_rows(&mut section, tilts, &tokens.keys, d);
            for (query, row) in section.chunks_exact_mut(count.max(1)).enumerate() {
                if let Some(start) = start {
                    for (entry, &position) in row.iter_mut().zip(&tokens.positions) {
                        if position > start + query {
                            *entry = f32::NEG_INFINITY;
                        }
                    }
                }
                let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                largest[query] = largest[query].max(f64::from(most));
            }
            scores.push(section);
        }
        let directions = self.geometry.directions();
        let mut parts = Vec::new();
        if !self.middle.is_empty() {
            let offsets: Vec<f32> = tilts
                .chunks_exact(d)
                .flat_map(|tilt| tilt.iter().zip(&self.geometry.base).map(|(tilt, base)| tilt - base))
                .collect();
            let mut coordinates = Vec::new();
            match &directions {
                Directions::All => coordinates.extend_from_slice(&offsets),
                Directions::Rows(_) => {
                    offsets.chunks_exact(d).for_each(|e| directions.coordinates(e, &mut coordinates));
                }
            }
            for part in self.middle.iter().filter(|part| !part.is_empty()) {
                let (mut masses, mut outputs) = (Vec::new(), Vec::new());
                part.read(&offsets, &coordinates, &directions, &mut masses, &mut outputs);
                largest.iter_mut().zip(&masses).for_each(|(largest, mass)| *largest = largest.max(*mass));
                parts.push((masses, outputs));
            }
        }
        output.fill(0.0);
        let mut total = vec![0f32; queries];
        for (tokens, section) in sections.iter().zip(&mut scores) {
            let count = tokens.len();
            for (row, largest) in section.chunks_exact_mut(count.max(1)).zip(&largest) {
                row.iter_mut().for_each(|entry| *entry -= *largest as f32);
            }
            exponentials_f32(section);
            for (row, total) in section.chunks_exact(count.max(1)).zip(&mut total) {
                *total += row.iter().sum::<f32>();
            }
            add_rows_times(output, section, &tokens.values, d);
        }
        for (masses, outputs) in &parts {
            for (query, (row, part)) in output.chunks_exact_mut(d).zip(outputs.chunks_exact(d)).enumerate() {
                let weight = (masses[query] - f64::from(largest[query] as f32)).exp() as f32;
                total[query] += weight;
                row.iter_mut().zip(part).for_each(|(entry, number)| *entry += weight * number);
            }
        }
        for (row, total) in output.chunks_exact_mut(d).zip(&total) {
            if *total > 0.0 {
                row.iter_mut().for_each(|entry| *entry /= total);
            }
        }
    }
}

/// The outputs of every query of the heads that share one key-value head: heads × tokens × dimension.
///
/// The tokens are those of the first head. The same numbers as [`StreamingCache`] gives token by token, in blocks.
pub fn outputs(replacement: &Replacement, heads: &[Head<'_>], readers: &Readers) -> Vec<f32> {
    let Some(first) = heads.first() else { return Vec::new() };
    run(StreamingCache::new(replacement, readers, first.dimension), heads)
}

/// Runs a cache over a whole text. Tokens without key, value or tilt are left out, and their outputs are zero.
pub(crate) fn run(mut cache: StreamingCache, heads: &[Head<'_>]) -> Vec<f32> {
    let Some(first) = heads.first() else { return Vec::new() };
    let d = first.dimension;
    let tokens = first.len();
    let mut result = vec![0.0; heads.len() * tokens * d];
    if d == 0 || tokens == 0 {
        return result;
    }
    let block = if first.order == Order::Whole { tokens } else { BLOCK };
    for start in (0..tokens).step_by(block) {
        let end = (start + block).min(tokens);
        let rows = first.keys.chunks_exact(d).zip(first.values.chunks_exact(d));
        for (key, value) in rows.skip(start).take(end - start) {
            match first.order {
                Order::Causal => cache.absorb(key, value),
                Order::Whole => {
                    cache.window.push(cache.seen, key, value);
                    cache.seen += 1;
                }
            }
        }
        if first.order == Order::Whole {
            cache.let_leave(tokens);
        }
        let mask = (first.order == Order::Causal).then_some(start);
        for (head, output) in heads.iter().zip(result.chunks_exact_mut(tokens * d)) {
            if let Some(tilts) = head.tilts.get(start * d..end * d) {
                cache.read_block(tilts, mask, &mut output[start * d..end * d]);
            }
        }
    }
    result
}
