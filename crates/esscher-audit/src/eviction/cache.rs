//! A cache that forgets the tokens that matter least.

use super::{Eviction, Policy};
use crate::head::Readers;
use crate::replacement::{Geometry, Tokens, add_rows_times, dot, rows_times_rows};
use esscher_core::numerics::exponentials_f32;

/// Tokens that are still there, each with its worth.
pub(crate) struct EvictingCache<'a> {
    eviction: &'a Eviction,
    geometry: Geometry,
    dimension: usize,
    tokens: Tokens,
    worth: Vec<f64>,
    seen: usize,
}

impl<'a> EvictingCache<'a> {
    pub(crate) fn new(eviction: &'a Eviction, readers: &Readers, dimension: usize) -> Self {
        EvictingCache {
            eviction,
            geometry: Geometry::of_readers(readers, dimension),
            dimension,
            tokens: Tokens::default(),
            worth: Vec::new(),
            seen: 0,
        }
    }

    pub(crate) fn push(&mut self, key: &[f32], value: &[f32]) {
        self.tokens.push(self.seen, key, value);
        self.seen += 1;
        self.worth.push(match self.eviction.policy {
            // In logarithms, since e^{θ·k} overflows; 0 values are worth −∞.
            Policy::ExpectedAttention => {
                self.geometry.log_expected_attention(key) + f64::from(dot(value, value)).sqrt().ln()
            }
            // Gathered by reading.
            Policy::ObservedAttention => 0.0,
            // The latest.
            Policy::SinkWindow | Policy::ClusterMeans => self.seen as f64,
        });
    }

    /// Keeps sinks, recent tokens and the worthiest of the rest (the latest of equals).
    pub(crate) fn evict(&mut self) {
        let d = self.dimension;
        let recent_from = self.seen.saturating_sub(self.eviction.recent);
        let mut rest: Vec<usize> = (0..self.tokens.len())
            .filter(|&index| {
                let position = self.tokens.positions[index];
                position >= self.eviction.sinks && position < recent_from
            })
            .collect();
        // While there are few sinks or recent tokens, their places are free for others.
        let protected = self.tokens.len() - rest.len();
        let room = self.eviction.kept().saturating_sub(protected);
        if rest.len() <= room {
            return;
        }
        rest.sort_by(|&x, &y| self.worth[y].total_cmp(&self.worth[x]).then(y.cmp(&x)));
        let mut gone = vec![false; self.tokens.len()];
        rest[room..].iter().for_each(|&index| gone[index] = true);
        let mut kept = Tokens::default();
        let mut worth = Vec::new();
        for (index, (position, key, value)) in self.tokens.iter(d).enumerate() {
            if !gone[index] {
                kept.push(position, key, value);
                worth.push(self.worth[index]);
            }
        }
        self.tokens = kept;
        self.worth = worth;
    }

    /// Softmax attention over the tokens that are there; observes what each receives. Queries of consecutive positions from
    /// `start` see no later token.
    pub(crate) fn read(&mut self, tilts: &[f32], start: Option<usize>, output: &mut [f32]) {
        let d = self.dimension;
        let count = self.tokens.len();
        let mut weights = vec![0.0; tilts.len() / d * count];
        rows_times_rows(&mut weights, tilts, &self.tokens.keys, d);
        for (query, row) in weights.chunks_exact_mut(count.max(1)).enumerate() {
            for (entry, &position) in row.iter_mut().zip(&self.tokens.positions) {
                if start.is_some_and(|start| position > start + query) {
                    *entry = f32::NEG_INFINITY;
                }
            }
            let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            row.iter_mut().for_each(|entry| *entry -= largest);
            exponentials_f32(row);
            let total: f32 = row.iter().sum();
            row.iter_mut().for_each(|entry| *entry /= total);
            if self.eviction.policy == Policy::ObservedAttention {
                self.worth
                    .iter_mut()
                    .zip(row.iter())
                    .for_each(|(worth, weight)| *worth += f64::from(*weight));
            }
        }
        output.fill(0.0);
        add_rows_times(output, &weights, &self.tokens.values, d);
    }
}
