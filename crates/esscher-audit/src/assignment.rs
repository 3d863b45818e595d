//! Assignments: which candidate answers which head of a model, and what that saves.

use crate::Error;
use crate::candidate::{Candidate, Frame};
use crate::head::Order;
use crate::model::Shape;
use crate::names::names;
use esscher_core::numerics::Stream;

/// How a candidate's state comes about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Running {
    /// From the whole cache whenever the text has grown by an eighth, about the head's own mean tilt so far. No bound for streaming, whose
    /// tilt was calibrated on whole texts and may suit later queries better.
    Offline,
    /// In constant memory as tokens leave the window, about one calibrated tilt shared by the query heads of a key-value head:
    /// what would be deployed.
    Streaming,
}

names!(Running, "a way of running", { Offline => "offline", Streaming => "streaming" });

impl Running {
    /// How heads would be deployed: in constant memory, unless every token sees all.
    pub fn deployed(order: Order) -> Self {
        match order {
            Order::Causal => Running::Streaming,
            Order::Whole => Running::Offline,
        }
    }
}

/// A candidate for every query head: a row per layer.
#[derive(Debug, Clone, PartialEq)]
pub struct Assignment {
    rows: Vec<Vec<Candidate>>,
}

impl Assignment {
    /// An assignment for a model.
    ///
    /// # Errors
    /// Another number of layers or heads than the model has.
    pub fn new(shape: &Shape, rows: Vec<Vec<Candidate>>) -> Result<Self, Error> {
        let assignment = Assignment { rows };
        assignment.check(shape)?;
        Ok(assignment)
    }

    /// Refuses a model that this assignment is not for.
    ///
    /// # Errors
    /// Another number of layers or heads than the model has.
    pub fn check(&self, shape: &Shape) -> Result<(), Error> {
        let misfit = |what: String, expected: usize, found: usize, unit: &str| {
            Err(Error::other_model(what, format!("{expected} {unit}"), format!("{found} {unit}")))
        };
        if self.rows.len() != shape.layers {
            return misfit("the assignment".to_string(), shape.layers, self.rows.len(), "layers");
        }
        match self.rows.iter().enumerate().find(|(_, row)| row.len() != shape.heads) {
            Some((layer, row)) => {
                misfit(format!("layer {layer} of the assignment"), shape.heads, row.len(), "heads")
            }
            None => Ok(()),
        }
    }

    /// The assignment of one candidate to every head.
    pub fn everywhere(shape: &Shape, candidate: Candidate) -> Self {
        Assignment { rows: vec![vec![candidate; shape.heads]; shape.layers] }
    }

    /// The assignment with another candidate for each.
    pub fn map(&self, other: impl Fn(Candidate) -> Candidate) -> Self {
        Assignment { rows: self.rows.iter().map(|row| row.iter().copied().map(&other).collect()).collect() }
    }

    /// The control: the same candidates on as many random heads (in blocks of `readers` query heads that share keys).
    pub fn shuffled(&self, readers: usize, stream: &mut Stream) -> Self {
        let mut blocks: Vec<&[Candidate]> =
            self.rows.iter().flat_map(|row| row.chunks(readers.max(1))).collect();
        // Fisher and Yates.
        for last in (1..blocks.len()).rev() {
            let other = (stream.uniform() * (last + 1) as f64) as usize;
            blocks.swap(last, other.min(last));
        }
        let heads = self.rows.first().map_or(1, |row| row.len().max(1));
        Assignment { rows: blocks.concat().chunks(heads).map(<[Candidate]>::to_vec).collect() }
    }

    /// The candidates of all query heads, a row per layer.
    pub fn rows(&self) -> &[Vec<Candidate>] {
        &self.rows
    }

    /// Query heads that are not exact.
    pub fn replaced_heads(&self) -> usize {
        self.rows.iter().flatten().filter(|candidate| **candidate != Candidate::Exact).count()
    }

    /// Key-value heads none of whose readers needs the whole cache: only these save memory.
    pub fn freed_groups(&self, shape: &Shape) -> usize {
        self.groups(shape)
            .filter(|group| group.iter().all(|candidate| *candidate != Candidate::Exact))
            .count()
    }

    fn groups<'a>(&'a self, shape: &'a Shape) -> impl Iterator<Item = &'a [Candidate]> {
        self.rows.iter().flat_map(|row| row.chunks(shape.readers().max(1)))
    }

    /// Bytes of the cache at a prompt of `tokens` tokens, with keys and values in `bytes_per_number` and moments in single precision:
    /// exact attention's, and this assignment's. Readers of one key-value head that share a candidate share its state when it is streamed; offline
    /// each has its own. Atoms and window are counted once for all readers, though a `MixedCache` keeps them for each candidate.
    pub fn cache_bytes(
        &self,
        shape: &Shape,
        frame: &Frame,
        running: Running,
        tokens: usize,
        bytes_per_number: usize,
    ) -> (f64, f64) {
        let bytes = |candidate: &Candidate| {
            candidate.bytes(frame, shape.head_dimension, tokens, bytes_per_number) as f64
        };
        let exact = bytes(&Candidate::Exact) * shape.key_value_heads as f64 * shape.layers as f64;
        let ours = self.groups(shape).map(|group| {
            let mut distinct: Vec<Candidate> = Vec::new();
            for candidate in group {
                if running == Running::Offline || !distinct.contains(candidate) {
                    distinct.push(*candidate);
                }
            }
            // A cache that is kept for one reader serves all: the states of the others could be spared.
            if distinct.contains(&Candidate::Exact) {
                return bytes(&Candidate::Exact);
            }
            // The frame's tokens are shared, whatever stands for the middle.
            let frame_bytes = bytes(&Candidate::DROPPED);
            let states: f64 = distinct.iter().map(|candidate| bytes(candidate) - frame_bytes).sum();
            (frame_bytes + states).min(bytes(&Candidate::Exact))
        });
        (exact, ours.sum())
    }
}
