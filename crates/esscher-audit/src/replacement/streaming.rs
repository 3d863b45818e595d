//! A cache of constant memory: what would be deployed.
//!
//! Everything that it knows in advance are its calibrated [`Readers`]. The rule of the window, the same offline: while the
//! queries of block b (positions b·BLOCK up to (b+1)·BLOCK) read, tokens before max(0, b·BLOCK − window) have left; those of
//! them that are neither atoms nor top tokens are the middle.

use super::clusters::{cluster, nearest};
use super::geometry::Geometry;
use super::moments::Moments;
use super::tokens::{add_rows_times, rows_times_rows};
use super::{BLOCK, Middle, Replacement, Tokens};
use crate::Error;
use crate::error::go_on;
use crate::head::{Head, Order, mean_in_double, product_in_double, squared_norm, weigh};
use crate::readers::Readers;
use esscher_core::Monitor;

/// The context of one key-value head, shared by the query heads that read it.
///
/// ```
/// use esscher_audit::readers::{Readers, Tilts};
/// use esscher_audit::replacement::{Atoms, Middle, Replacement, StreamingCache};
/// let atoms = Atoms { first: 1, light: 0.0, most_light: 0 };
/// let replacement = Replacement { atoms, window: 64, top: 0, middle: Middle::TiltedGaussian };
/// let pooled = Tilts { mean: vec![0.5, 0.0], covariance: vec![1.0, 0.0, 0.0, 1.0] };
/// let readers = Readers { pooled, heads: Vec::new(), median_value_norm: 1.0 };
/// let mut cache = StreamingCache::new(&replacement, &readers, 2);
/// cache.absorb(&[1.0, 0.0], &[3.0, 4.0])?;
/// let mut output = [0.0; 2];
/// cache.read(&[0.7, 0.1], &mut output)?;
/// assert_eq!(output, [3.0, 4.0]);
/// # Ok::<(), esscher_audit::Error>(())
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
    centres: Vec<f32>,
    seen: usize,
    /// Offline only: every token of the middle, from which it is made again.
    everything: Option<Tokens>,
}

/// Who asks: queries of consecutive positions, several of each.
#[derive(Debug, Clone, Copy)]
struct Asked {
    start: usize,
    readers: usize,
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

    /// A cache that keeps every token, so that it can be made again for other readers.
    pub(crate) fn offline(replacement: &Replacement, readers: &Readers, dimension: usize) -> Self {
        StreamingCache {
            everything: Some(Tokens::default()),
            ..StreamingCache::new(replacement, readers, dimension)
        }
    }

    /// Makes top tokens and middle again from all tokens that have left, for these readers; only offline are they there. An error if
    /// the monitor asked to stop: then the cache is of no use any more.
    pub(crate) fn remake(&mut self, readers: &Readers, monitor: &dyn Monitor) -> Result<(), Error> {
        let Some(mut pool) = self.everything.take() else { return Ok(()) };
        let d = self.dimension;
        self.geometry = Geometry::new(&self.replacement, readers, d);
        for (position, key, value) in std::mem::take(&mut self.top).iter(d) {
            pool.push(position, key, value);
        }
        self.top_scores.clear();
        self.middle.clear();
        self.centres.clear();
        self.everything = Some(Tokens::default());
        let mut fallen = Tokens::default();
        for (position, key, value) in pool.iter(d) {
            self.place(position, key, value, &mut fallen);
        }
        if fallen.len() == 0 {
            return Ok(());
        }
        match self.replacement.middle {
            Middle::TiltedMeans { count } | Middle::TiltedGaussians { count } => {
                let places = self.geometry.places(&fallen.keys);
                self.middle = cluster(&fallen, &places, count, &self.geometry, monitor)?;
                self.centres =
                    self.middle.iter().flat_map(|part| self.geometry.places(&part.mean_key)).collect();
                self.everything = Some(fallen);
            }
            _ => self.swallow(&fallen),
        }
        Ok(())
    }

    /// Takes in the next token.
    ///
    /// # Errors
    /// A key or a value of another length than the cache's.
    pub fn absorb(&mut self, key: &[f32], value: &[f32]) -> Result<(), Error> {
        let d = self.dimension;
        if key.len() != d || value.len() != d || d == 0 {
            return Err(Error::WrongSizes {
                what: "a key and a value".to_string(),
                expected: format!("{d} each"),
                found: vec![key.len(), value.len()],
            });
        }
        self.take_in(key, value);
        Ok(())
    }

    fn take_in(&mut self, key: &[f32], value: &[f32]) {
        if self.seen.is_multiple_of(BLOCK) {
            self.let_leave(self.seen.saturating_sub(self.replacement.window));
        }
        self.window.push(self.seen, key, value);
        self.seen += 1;
    }

    /// The attention output for one or several tilts, over all that was absorbed; zeros if nothing was.
    ///
    /// # Errors
    /// Tilts that are not rows of the cache's dimension, or outputs that are not as many.
    pub fn read(&self, tilts: &[f32], outputs: &mut [f32]) -> Result<(), Error> {
        let d = self.dimension;
        if d == 0 || !tilts.len().is_multiple_of(d) || outputs.len() != tilts.len() {
            return Err(Error::WrongSizes {
                what: "tilts and outputs".to_string(),
                expected: format!("equally many rows of {d}"),
                found: vec![tilts.len(), outputs.len()],
            });
        }
        self.read_block(tilts, None, outputs);
        Ok(())
    }

    /// Takes in several tokens and answers `readers` tilts of each, which see no later token: the same as token by token
    /// [`Self::absorb`] and [`Self::read`], faster. Tilts and outputs are tokens × readers × dimension.
    ///
    /// # Errors
    /// Sizes that do not fit each other; then nothing has happened.
    pub fn attend(
        &mut self,
        keys: &[f32],
        values: &[f32],
        tilts: &[f32],
        readers: usize,
        outputs: &mut [f32],
    ) -> Result<(), Error> {
        let d = self.dimension;
        let fits = d > 0 && keys.len().is_multiple_of(d) && values.len() == keys.len();
        if !fits || keys.len().checked_mul(readers) != Some(tilts.len()) || outputs.len() != tilts.len() {
            return Err(Error::WrongSizes {
                what: "keys, values, tilts and outputs".to_string(),
                expected: format!("tokens of {d} numbers with {readers} tilts each"),
                found: vec![keys.len(), values.len(), tilts.len(), outputs.len()],
            });
        }
        let tokens = keys.len() / d;
        let mut done = 0;
        while done < tokens {
            let start = self.seen;
            let end = tokens.min(done + BLOCK - start % BLOCK);
            let rows = keys.chunks_exact(d).zip(values.chunks_exact(d));
            rows.skip(done).take(end - done).for_each(|(key, value)| self.take_in(key, value));
            let asked = done * readers * d..end * readers * d;
            self.read_block(&tilts[asked.clone()], Some(Asked { start, readers }), &mut outputs[asked]);
            done = end;
        }
        Ok(())
    }

    /// Tokens taken in so far.
    pub fn tokens_seen(&self) -> usize {
        self.seen
    }

    /// Bytes of the tokens and states that are held; what belongs to the readers is not counted, since all contexts share it.
    pub fn bytes(&self) -> usize {
        self.atoms.bytes()
            + self.top.bytes()
            + self.window.bytes()
            + self.top_scores.len() * size_of::<f64>()
            + self.middle.iter().map(Moments::bytes).sum::<usize>()
            + self.centres.len() * size_of::<f32>()
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
                && (squared_norm(value).sqrt() as f32) < self.geometry.light;
            if position < self.replacement.atoms.first {
                self.atoms.push(position, key, value);
            } else if light {
                self.light_kept += 1;
                self.atoms.push(position, key, value);
            } else {
                self.place(position, key, value, &mut fallen);
            }
        }
        if fallen.len() > 0 {
            self.swallow(&fallen);
        }
    }

    /// A token that is no atom goes to the top tokens or falls to the middle.
    fn place(&mut self, position: usize, key: &[f32], value: &[f32], fallen: &mut Tokens) {
        if self.replacement.top > 0 {
            self.challenge_top(position, key, value, fallen);
        } else {
            fallen.push(position, key, value);
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
        if score.is_nan() || score <= least.1 {
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
        if let Some(everything) = &mut self.everything {
            tokens
                .iter(self.dimension)
                .for_each(|(position, key, value)| everything.push(position, key, value));
        }
        match self.replacement.middle {
            Middle::Exact | Middle::Dropped => {}
            Middle::Mean | Middle::Gaussian | Middle::TiltedGaussian | Middle::ReducedGaussian { .. } => {
                if self.middle.is_empty() {
                    self.middle.push(Moments::new(self.dimension, self.geometry.rank));
                }
                self.absorb_into(0, tokens);
            }
            Middle::TiltedMeans { count } | Middle::TiltedGaussians { count } => {
                self.join_clusters(tokens, count)
            }
        }
    }

    /// Tokens open clusters until there are `count`, then join the nearest.
    fn join_clusters(&mut self, tokens: &Tokens, count: usize) {
        let (d, count) = (self.dimension, count.max(1));
        let mut joined: Vec<Tokens> = vec![Tokens::default(); self.middle.len()];
        let places = self.geometry.places(&tokens.keys);
        for ((position, key, value), place) in tokens.iter(d).zip(places.chunks_exact(d)) {
            let (mut owner, distance) = nearest(&self.centres, place);
            // Equal keys differ by rounding, once one of them has become the mean of a cluster.
            // Without any cluster the distance is infinite, and so is the size of a place that overflows.
            let known = distance.is_finite() && distance <= 1e-10 * squared_norm(place);
            if self.middle.len() < count && !known {
                owner = self.middle.len();
                self.centres.extend_from_slice(place);
                self.middle.push(Moments::new(d, self.geometry.rank));
                joined.push(Tokens::default());
            }
            joined[owner].push(position, key, value);
        }
        for (owner, own) in joined.iter().enumerate() {
            if own.len() > 0 {
                self.absorb_into(owner, own);
                let centre = self.geometry.places(&self.middle[owner].mean_key);
                self.centres[owner * d..(owner + 1) * d].copy_from_slice(&centre);
            }
        }
    }

    fn absorb_into(&mut self, part: usize, tokens: &Tokens) {
        self.middle[part].absorb(tokens, &self.geometry.base, &self.geometry.directions());
    }

    /// The outputs for several tilts; those of known positions see no later token.
    fn read_block(&self, tilts: &[f32], asked: Option<Asked>, output: &mut [f32]) {
        let d = self.dimension;
        let queries = tilts.len() / d;
        let mut largest = vec![f64::NEG_INFINITY; queries];
        // Tokens and means alike have a score and a value.
        let mut scored: Vec<(Vec<f32>, &[f32])> = Vec::with_capacity(4);
        let mut sound = true;
        for tokens in [&self.atoms, &self.top, &self.window] {
            let mut scores = vec![0.0; queries * tokens.len()];
            rows_times_rows(&mut scores, tilts, &tokens.keys, d);
            sound &= scores.iter().all(|score| score.is_finite());
            if let Some(Asked { start, readers }) = asked {
                for (query, row) in scores.chunks_exact_mut(tokens.len().max(1)).enumerate() {
                    for (entry, &position) in row.iter_mut().zip(&tokens.positions) {
                        if position > start + query / readers {
                            *entry = f32::NEG_INFINITY;
                        }
                    }
                }
            }
            scored.push((scores, &tokens.values));
        }
        let parts: Vec<&Moments> = self.middle.iter().filter(|part| !part.is_empty()).collect();
        let mut gaussians = Vec::new();
        let mut mean_values = Vec::new();
        if !parts.is_empty() {
            let base = self.geometry.base.iter();
            let offsets: Vec<f32> = tilts
                .chunks_exact(d)
                .flat_map(|tilt| tilt.iter().zip(base.clone()).map(|(t, b)| t - b))
                .collect();
            if self.geometry.rank == 0 {
                let mean_keys: Vec<f32> = parts.iter().flat_map(|part| &part.mean_key).copied().collect();
                mean_values.extend(parts.iter().flat_map(|part| &part.mean_value).copied());
                let log_masses: Vec<f32> = parts.iter().map(|part| part.log_mass() as f32).collect();
                let mut scores = vec![0.0; queries * parts.len()];
                rows_times_rows(&mut scores, &offsets, &mean_keys, d);
                for row in scores.chunks_exact_mut(parts.len()) {
                    row.iter_mut().zip(&log_masses).for_each(|(entry, mass)| *entry += mass);
                }
                sound &= scores.iter().all(|score| score.is_finite());
                scored.push((scores, &mean_values));
            } else {
                let directions = self.geometry.directions();
                let mut coordinates = Vec::with_capacity(queries * self.geometry.rank);
                offsets.chunks_exact(d).for_each(|e| directions.coordinates(e, &mut coordinates));
                for part in parts {
                    let (mut masses, mut outputs) = (Vec::new(), Vec::new());
                    part.read(&offsets, &coordinates, &directions, &mut masses, &mut outputs);
                    largest.iter_mut().zip(&masses).for_each(|(largest, mass)| *largest = largest.max(*mass));
                    gaussians.push((masses, outputs));
                }
            }
        }
        for (scores, values) in &scored {
            for (row, largest) in scores.chunks_exact((values.len() / d).max(1)).zip(&mut largest) {
                *largest = largest.max(f64::from(row.iter().copied().fold(f32::NEG_INFINITY, f32::max)));
            }
        }
        // One rounding for all, so that the weights of tokens and Gaussians are of the same scale.
        let exact_largest = largest;
        let largest: Vec<f32> = exact_largest.iter().map(|&largest| largest as f32).collect();
        output.fill(0.0);
        let mut total = vec![0f32; queries];
        for (scores, values) in &mut scored {
            let count = (values.len() / d).max(1);
            for (row, largest) in scores.chunks_exact_mut(count).zip(&largest) {
                row.iter_mut().for_each(|entry| *entry -= largest);
            }
            weigh(scores);
            for (row, total) in scores.chunks_exact(count).zip(&mut total) {
                *total += row.iter().sum::<f32>();
            }
            add_rows_times(output, scores, values, d);
        }
        for (masses, outputs) in &gaussians {
            for (query, (row, part)) in output.chunks_exact_mut(d).zip(outputs.chunks_exact(d)).enumerate() {
                let weight = (masses[query] - f64::from(largest[query])).exp() as f32;
                total[query] += weight;
                row.iter_mut().zip(part).for_each(|(entry, number)| *entry += weight * number);
            }
        }
        for (query, (row, total)) in output.chunks_exact_mut(d).zip(&total).enumerate() {
            row.iter_mut().for_each(|entry| *entry /= total);
            // Scores or sums that single precision does not hold, or scores so large that one rounding of them moves all weight.
            let rounded = (exact_largest[query] - f64::from(largest[query])).abs() > 1.0;
            if !sound || rounded || !row.iter().all(|entry| entry.is_finite()) {
                let seen = asked.map(|Asked { start, readers }| start + query / readers);
                let gaussians = gaussians.iter().map(|(masses, outputs): &(Vec<f64>, Vec<f32>)| {
                    (masses[query], &outputs[query * d..(query + 1) * d])
                });
                self.read_in_double(&tilts[query * d..(query + 1) * d], seen, gaussians, row);
            }
        }
    }

    /// The output for one tilt in double precision, given what the Gaussians of the middle answer; zeros if there is nothing to read.
    fn read_in_double<'a>(
        &'a self,
        tilt: &[f32],
        seen: Option<usize>,
        gaussians: impl Iterator<Item = (f64, &'a [f32])> + Clone,
        output: &mut [f32],
    ) {
        let d = self.dimension;
        let tokens = [&self.atoms, &self.top, &self.window].into_iter().flat_map(|tokens| tokens.iter(d));
        let tokens = tokens.filter(|(position, ..)| seen.is_none_or(|seen| *position <= seen));
        let tokens = tokens.map(|(_, key, value)| (product_in_double(tilt, key), value));
        let means = self.middle.iter().filter(|part| self.geometry.rank == 0 && !part.is_empty());
        let base = &self.geometry.base;
        let means = means.map(|part| {
            let score = product_in_double(tilt, &part.mean_key) - product_in_double(base, &part.mean_key);
            (part.log_mass() + score, part.mean_value.as_slice())
        });
        let parts: Vec<(f64, &[f32])> = tokens.chain(means).chain(gaussians).collect();
        match parts.is_empty() {
            true => output.fill(0.0),
            false => mean_in_double(parts.iter().copied(), output),
        }
    }
}

/// The outputs of every query of the heads that share one key-value head: a table of tokens × dimension for each.
///
/// The tokens are those of the first head. The same numbers as [`StreamingCache`] gives token by token, in blocks. Where a token has
/// no value it is left out; outputs of tokens without a tilt are zero.
///
/// # Errors
/// [`Error::Stopped`] if the monitor asked to stop.
pub fn outputs(
    replacement: &Replacement,
    heads: &[Head<'_>],
    readers: &Readers,
    monitor: &dyn Monitor,
) -> Result<Vec<Vec<f32>>, Error> {
    let Some(first) = heads.first() else { return Ok(Vec::new()) };
    let mut cache = StreamingCache::new(replacement, readers, first.dimension);
    let mut result = vec![vec![0.0; first.keys.len()]; heads.len()];
    if first.order == Order::Whole {
        cache.absorb_whole(first);
    }
    for start in (0..first.len()).step_by(BLOCK) {
        go_on(monitor)?;
        cache.run_block(start, heads, &mut result);
    }
    Ok(result)
}

impl StreamingCache {
    /// Takes in all tokens of a text at once: every query sees them.
    pub(crate) fn absorb_whole(&mut self, head: &Head<'_>) {
        let d = self.dimension;
        if d == 0 {
            return;
        }
        for (key, value) in head.keys.chunks_exact(d).zip(head.values.chunks_exact(d)) {
            self.window.push(self.seen, key, value);
            self.seen += 1;
        }
        self.let_leave(self.seen);
    }

    /// Takes in the block of tokens from `start` on, unless all are there already, and answers its queries.
    pub(crate) fn run_block(&mut self, start: usize, heads: &[Head<'_>], results: &mut [Vec<f32>]) {
        let Some(first) = heads.first().filter(|head| head.dimension > 0) else { return };
        let d = first.dimension;
        let end = (start + BLOCK).min(first.len());
        let mut asked = None;
        if first.order == Order::Causal {
            let rows = first.keys.chunks_exact(d).zip(first.values.chunks_exact(d));
            rows.skip(start).take(end - start).for_each(|(key, value)| self.take_in(key, value));
            asked = Some(Asked { start, readers: 1 });
        }
        for (head, output) in heads.iter().zip(results) {
            if let Some(tilts) = head.tilts.get(start * d..end * d) {
                self.read_block(tilts, asked, &mut output[start * d..end * d]);
            }
        }
    }
}
