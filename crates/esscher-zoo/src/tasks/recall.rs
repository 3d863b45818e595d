//! Multi-query associative recall: pairs k₁ v₁ k₂ v₂ …, then each key once more, where its value is the answer (key `arora2023`).
//!
//! Of V tokens, 0 is the filler, 1 … V/2 − 1 are keys, V/2 … V − 1 are values. An example of length T shows P distinct keys
//! with P distinct values in its first 2P places. Of the (T − 2P)/2 slots behind, slot g at place 2P + 2g, P distinct ones are
//! drawn one after the other with p(g) ∝ (g + 1)^{a−1}, a = 0.01: near the pairs most likely. Each key stands in one of them,
//! its value is the label there; all other places are filler, or uniform tokens.

use super::{Example, Segment, Task, stream_of};
use crate::error::{Error, Result};
use esscher_core::numerics::Stream;

/// The exponent a of the distribution of slots.
const POWER: f64 = 0.01;

/// Tokens that there are, at most: each example lists them all, and is shorter.
const LARGEST_VOCABULARY: usize = 1 << 24;

/// What stands between the questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filler {
    /// Token 0.
    Zero,
    /// Uniform tokens of the whole vocabulary.
    Uniform,
}

/// Multi-query associative recall.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recall {
    vocabulary: usize,
    length: usize,
    pairs: usize,
    filler: Filler,
}

impl Recall {
    /// Recall of this many pairs in sequences of this length.
    ///
    /// # Errors
    /// An odd vocabulary or length, a vocabulary that is not larger than the length or above 2²⁴, no pairs, or more than fit: 4 P ≤ T.
    pub fn new(vocabulary: usize, length: usize, pairs: usize, filler: Filler) -> Result<Self> {
        let refuse = |name, expected: String, found: usize| {
            Err(Error::Option { name, expected, found: found.to_string() })
        };
        if !length.is_multiple_of(2) {
            return refuse("length", "an even number".to_string(), length);
        }
        if !vocabulary.is_multiple_of(2) || vocabulary <= length {
            return refuse("vocabulary", format!("an even number above the length, {length}"), vocabulary);
        }
        if vocabulary > LARGEST_VOCABULARY {
            return refuse("vocabulary", format!("at most {LARGEST_VOCABULARY}"), vocabulary);
        }
        if pairs == 0 || pairs > length / 4 {
            return refuse("pairs", format!("1 to {}, a quarter of the length", length / 4), pairs);
        }
        Ok(Recall { vocabulary, length, pairs, filler })
    }

    /// Pairs per example.
    pub fn pairs(&self) -> usize {
        self.pairs
    }
}

impl Task for Recall {
    fn vocabulary(&self) -> usize {
        self.vocabulary
    }

    fn length(&self) -> usize {
        self.length
    }

    fn example(&self, seed: u64, segment: Segment, index: u32) -> Example {
        let mut stream = stream_of(seed, segment, index);
        let (half, context) = (self.vocabulary / 2, 2 * self.pairs);
        let keys = distinct(self.pairs, half - 1, &mut stream).map(|key| key + 1);
        let values = distinct(self.pairs, half, &mut stream).map(|value| value + half as u32);
        let pairs: Vec<(u32, u32)> = keys.zip(values).collect();

        let mut tokens: Vec<u32> = pairs.iter().flat_map(|&(key, value)| [key, value]).collect();
        match self.filler {
            Filler::Zero => tokens.resize(self.length, 0),
            Filler::Uniform => {
                tokens.extend((context..self.length).map(|_| below(self.vocabulary, &mut stream)));
            }
        }
        let mut labels = vec![None; self.length];
        let mut weights: Vec<f64> =
            (1..=(self.length - context) / 2).map(|g| (g as f64).powf(POWER - 1.0)).collect();
        for &(key, value) in &pairs {
            let sum: f64 = weights.iter().sum();
            let probabilities: Vec<f64> = weights.iter().map(|weight| weight / sum).collect();
            let slot = stream.index(&probabilities);
            weights[slot] = 0.0;
            tokens[context + 2 * slot] = key;
            labels[context + 2 * slot] = Some(value);
        }
        Example { tokens, labels }
    }
}

/// A uniform number below `count`.
fn below(count: usize, stream: &mut Stream) -> u32 {
    ((stream.uniform() * count as f64) as u32).min(count as u32 - 1)
}

/// Distinct uniform numbers below `from`, in random order (a partial shuffle).
fn distinct(count: usize, from: usize, stream: &mut Stream) -> impl Iterator<Item = u32> + use<> {
    let mut all: Vec<u32> = (0..from as u32).collect();
    for place in 0..count {
        let other = place + below(from - place, stream) as usize;
        all.swap(place, other);
    }
    all.into_iter().take(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_question_has_been_answered_before() {
        for filler in [Filler::Zero, Filler::Uniform] {
            let task = Recall::new(66, 64, 16, filler).unwrap();
            for index in 0..50 {
                let Example { tokens, labels } = task.example(3, Segment::Train, index);
                assert_eq!((tokens.len(), labels.len()), (64, 64));
                let pairs: Vec<(u32, u32)> = tokens[..32].chunks(2).map(|pair| (pair[0], pair[1])).collect();
                assert!(pairs.iter().all(|(key, value)| (1..33).contains(key) && (33..66).contains(value)));
                assert_eq!(pairs.iter().map(|pair| pair.0).collect::<HashSet<_>>().len(), 16);
                assert_eq!(pairs.iter().map(|pair| pair.1).collect::<HashSet<_>>().len(), 16);
                let asked: Vec<usize> = (0..64).filter(|&place| labels[place].is_some()).collect();
                assert_eq!(asked.len(), 16);
                assert!(asked.iter().all(|&place| place >= 32 && place % 2 == 0));
                let answered: HashSet<(u32, u32)> =
                    asked.iter().map(|&place| (tokens[place], labels[place].unwrap())).collect();
                assert_eq!(answered, pairs.into_iter().collect());
                if filler == Filler::Zero {
                    assert!((32..64).all(|place| labels[place].is_some() || tokens[place] == 0));
                }
            }
        }
    }

    /// With one pair the slot has the stated law: at 4000 draws the frequency of each slot is within 5 deviations of it, which
    /// 28 true slots miss with probability below 28 · 6e-7 (normal approximation; the seed is fixed).
    #[test]
    fn slots_near_the_pairs_are_the_likeliest() {
        let task = Recall::new(64, 58, 1, Filler::Zero).unwrap();
        let draws = 4000;
        let mut counts = vec![0.0; 28];
        for index in 0..draws {
            let example = task.example(11, Segment::Train, index);
            let place = example.labels.iter().position(Option::is_some).unwrap();
            counts[(place - 2) / 2] += 1.0;
        }
        let weights: Vec<f64> = (1..=28).map(|g| f64::from(g).powf(-0.99)).collect();
        let sum: f64 = weights.iter().sum();
        for (count, weight) in counts.iter().zip(&weights) {
            let (p, n) = (weight / sum, f64::from(draws));
            assert!((count - n * p).abs() < 5.0 * (n * p * (1.0 - p)).sqrt(), "{count} against {}", n * p);
        }
    }

    #[test]
    fn examples_depend_on_seed_segment_and_index_alone() {
        let task = Recall::new(128, 64, 4, Filler::Zero).unwrap();
        let train = task.example(1, Segment::Train, 5);
        assert_eq!(train, task.example(1, Segment::Train, 5));
        assert_ne!(train, task.example(1, Segment::Test, 5));
        assert_ne!(train, task.example(1, Segment::Train, 6));
        assert_ne!(train, task.example(2, Segment::Train, 5));
        let batch = task.batch(1, Segment::Train, 4, 3);
        assert_eq!(batch.tokens[64..128], train.tokens);
        assert_eq!(batch.sequences(), 3);
        assert_eq!(batch.labelled().len(), 12);
    }

    #[test]
    fn training_and_test_examples_share_no_sequence() {
        let task = Recall::new(128, 64, 4, Filler::Zero).unwrap();
        let of =
            |segment| (0..2000).map(|index| task.example(7, segment, index).tokens).collect::<HashSet<_>>();
        assert!(of(Segment::Train).is_disjoint(&of(Segment::Test)));
    }

    #[test]
    fn accuracy_is_the_mean_over_sequences() {
        let task = Recall::new(64, 16, 4, Filler::Zero).unwrap();
        let batch = task.batch(1, Segment::Test, 0, 2);
        let mut predictions: Vec<u32> = batch.labelled().iter().map(|&(_, label)| label).collect();
        assert_eq!(batch.accuracy(&predictions), 1.0);
        predictions[5] = 0;
        assert_eq!(batch.accuracy(&predictions), 0.875);
    }

    #[test]
    fn impossible_tasks_are_refused_by_name() {
        let refused = |vocabulary, length, pairs| {
            Recall::new(vocabulary, length, pairs, Filler::Zero).unwrap_err().to_string()
        };
        assert_eq!(refused(64, 33, 4), "length: expected an even number, found 33");
        assert_eq!(refused(64, 64, 4), "vocabulary: expected an even number above the length, 64, found 64");
        assert_eq!(refused(128, 64, 17), "pairs: expected 1 to 16, a quarter of the length, found 17");
    }
}
