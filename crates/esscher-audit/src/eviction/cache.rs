//! A cache that forgets the tokens that matter least.

use super::{Eviction, Policy};
use crate::head::{product_in_double, squared_norm, weigh};
use crate::readers::Readers;
use crate::replacement::{Tokens, add_rows_times, rows_times_rows};
use esscher_core::numerics::log_sum_exp;

/// Tokens that are still there, each with its worth.
pub(crate) struct EvictingCache<'a> {
    eviction: &'a Eviction,
    readers: &'a Readers,
    dimension: usize,
    tokens: Tokens,
    worth: Vec<f64>,
    /// For expected attention: what each query head is expected to score the token, in logarithms.
    expected: Vec<Vec<f64>>,
    seen: usize,
}

impl<'a> EvictingCache<'a> {
    pub(crate) fn new(eviction: &'a Eviction, readers: &'a Readers, dimension: usize) -> Self {
        EvictingCache {
            eviction,
            readers,
            dimension,
            tokens: Tokens::default(),
            worth: Vec::new(),
            expected: Vec::new(),
            seen: 0,
        }
    }

    pub(crate) fn push(&mut self, key: &[f32], value: &[f32]) {
        self.tokens.push(self.seen, key, value);
        self.seen += 1;
        self.worth.push(match self.eviction.policy {
            // Gathered by reading, or weighed against the others when it matters.
            Policy::ObservedAttention | Policy::ExpectedAttention => 0.0,
            // The latest.
            Policy::SinkWindow | Policy::ClusterMeans => self.seen as f64,
        });
        if self.eviction.policy == Policy::ExpectedAttention {
            let of_head = self.readers.by_head().iter().map(|tilts| tilts.log_expected_score(key));
            self.expected.push(of_head.collect());
        }
    }

    /// The attention that every token is expected to receive among those that are there, sinks left out: a softmax for each query
    /// head, their mean, times the norm of the value; in logarithms.
    fn weigh_expected(&mut self) {
        let (d, sinks) = (self.dimension, self.eviction.sinks);
        let heads = self.readers.by_head().len();
        let totals: Vec<f64> = (0..heads)
            .map(|head| {
                let rivals = self.expected.iter().zip(&self.tokens.positions);
                let rivals = rivals.filter(|(_, position)| **position >= sinks);
                log_sum_exp(&rivals.map(|(scores, _)| scores[head]).collect::<Vec<_>>())
            })
            .collect();
        for ((worth, scores), value) in
            self.worth.iter_mut().zip(&self.expected).zip(self.tokens.values.chunks_exact(d))
        {
            let shares: Vec<f64> = scores.iter().zip(&totals).map(|(score, total)| score - total).collect();
            *worth = log_sum_exp(&shares) + squared_norm(value).sqrt().ln();
        }
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
        if self.eviction.policy == Policy::ExpectedAttention {
            self.weigh_expected();
        }
        rest.sort_by(|&x, &y| self.worth[y].total_cmp(&self.worth[x]).then(y.cmp(&x)));
        let mut gone = vec![false; self.tokens.len()];
        rest[room..].iter().for_each(|&index| gone[index] = true);
        let mut kept = Tokens::default();
        let (mut worth, mut expected) = (Vec::new(), Vec::new());
        for (index, (position, key, value)) in self.tokens.iter(d).enumerate() {
            if !gone[index] {
                kept.push(position, key, value);
                worth.push(self.worth[index]);
                expected.extend(self.expected.get_mut(index).map(std::mem::take));
            }
        }
        self.tokens = kept;
        self.worth = worth;
        self.expected = expected;
    }

    /// Softmax attention over the tokens that are there; observes what each receives. Queries of consecutive positions from
    /// `start` see no later token.
    pub(crate) fn read(&mut self, tilts: &[f32], start: Option<usize>, output: &mut [f32]) {
        let d = self.dimension;
        let count = self.tokens.len();
        let mut weights = vec![0.0; tilts.len() / d * count];
        rows_times_rows(&mut weights, tilts, &self.tokens.keys, d);
        for (query, (row, tilt)) in
            weights.chunks_exact_mut(count.max(1)).zip(tilts.chunks_exact(d)).enumerate()
        {
            let sees = |position: usize| start.is_none_or(|start| position <= start + query);
            if row.iter().all(|score| score.is_finite()) {
                for (entry, &position) in row.iter_mut().zip(&self.tokens.positions) {
                    if !sees(position) {
                        *entry = f32::NEG_INFINITY;
                    }
                }
                let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                row.iter_mut().for_each(|entry| *entry -= largest);
                weigh(row);
                let total: f32 = row.iter().sum();
                row.iter_mut().for_each(|entry| *entry /= total);
            } else {
                self.weigh_in_double(tilt, sees, row);
            }
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

    /// The weights of a query whose scores single precision does not hold: no numbers if they are not finite in double precision.
    fn weigh_in_double(&self, tilt: &[f32], sees: impl Fn(usize) -> bool, weights: &mut [f32]) {
        let keys = self.tokens.keys.chunks_exact(self.dimension);
        let scores: Vec<f64> = keys.map(|key| product_in_double(tilt, key)).collect();
        let seen = || scores.iter().zip(&self.tokens.positions).filter(|(_, position)| sees(**position));
        if seen().any(|(score, _)| !score.is_finite()) {
            return weights.fill(f32::NAN);
        }
        let largest = seen().map(|(score, _)| *score).fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = seen().map(|(score, _)| (score - largest).exp()).sum();
        for ((weight, score), position) in weights.iter_mut().zip(&scores).zip(&self.tokens.positions) {
            *weight = if sees(*position) { ((score - largest).exp() / total) as f32 } else { 0.0 };
        }
    }
}
