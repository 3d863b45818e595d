//! Tasks: sequences of tokens with labels, drawn from a seed.

pub mod recall;

use esscher_core::numerics::Stream;

/// Which side of a split an example is on; the two share no stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Segment {
    /// What a model is trained on.
    Train,
    /// What it is judged by.
    Test,
}

/// One sequence: at every place a token, and where it is judged the token that the model should name there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// The tokens.
    pub tokens: Vec<u32>,
    /// What the model should answer at every place.
    pub labels: Vec<Option<u32>>,
}

/// Equally long sequences, one behind the other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// Tokens per sequence.
    pub length: usize,
    /// The tokens of all sequences.
    pub tokens: Vec<u32>,
    /// The labels of all sequences.
    pub labels: Vec<Option<u32>>,
}

impl Batch {
    /// How many sequences.
    pub fn sequences(&self) -> usize {
        self.tokens.len() / self.length.max(1)
    }

    /// Rows with a label, and the label.
    pub fn labelled(&self) -> Vec<(usize, u32)> {
        self.labels.iter().enumerate().filter_map(|(row, label)| Some((row, (*label)?))).collect()
    }

    /// The mean over sequences of the fraction of labelled places that were answered rightly; `predictions` are those at the
    /// labelled places, in order. Sequences without a label do not count.
    pub fn accuracy(&self, predictions: &[u32]) -> f64 {
        let mut predictions = predictions.iter();
        let (mut sum, mut judged) = (0.0, 0usize);
        for labels in self.labels.chunks(self.length.max(1)) {
            let (mut right, mut asked) = (0usize, 0usize);
            for (label, prediction) in labels.iter().flatten().zip(&mut predictions) {
                right += usize::from(label == prediction);
                asked += 1;
            }
            if asked > 0 {
                sum += right as f64 / asked as f64;
                judged += 1;
            }
        }
        sum / judged.max(1) as f64
    }
}

/// A source of examples: a pure function of seed, segment and index.
pub trait Task: Send + Sync {
    /// How many tokens there are; tokens and labels are less.
    fn vocabulary(&self) -> usize;

    /// Tokens per sequence.
    fn length(&self) -> usize;

    /// The example of this index, of which 31 bits count.
    fn example(&self, seed: u64, segment: Segment, index: u32) -> Example;

    /// The examples `first`, `first + 1`, … as a batch.
    fn batch(&self, seed: u64, segment: Segment, first: u32, count: usize) -> Batch {
        let mut batch = Batch { length: self.length(), ..Batch::default() };
        for index in 0..count as u32 {
            let example = self.example(seed, segment, first.wrapping_add(index));
            batch.tokens.extend(example.tokens);
            batch.labels.extend(example.labels);
        }
        batch
    }
}

/// The stream of an example: trials below 2³¹ are for training, the others for tests.
pub(crate) fn stream_of(seed: u64, segment: Segment, index: u32) -> Stream {
    let trial = index & (u32::MAX >> 1);
    match segment {
        Segment::Train => Stream::new(seed, trial, STREAM_BLOCK),
        Segment::Test => Stream::new(seed, trial | 1 << 31, STREAM_BLOCK),
    }
}

/// The block of the streams of examples; a model that starts from the same seed reads others.
const STREAM_BLOCK: u32 = 0;
