//! Attention with replaced heads: the forward pass of a model whose heads are answered as an assignment says.

use crate::Error;
use crate::answer::answers_watched;
use crate::assignment::{Assignment, Running};
use crate::calibration::Calibration;
use crate::candidate::{Candidate, Frame};
use crate::layer::{LayerHeads, write_head};
use crate::model::{ExactAttention, LayerAttention, LayerInput, Shape};
use esscher_core::Monitor;
use rayon::prelude::*;

/// A query head and its outputs.
type Answered = (usize, Vec<f32>);

/// Computes every head of a whole text as its candidate does.
pub struct ReplacedAttention<'a> {
    shape: Shape,
    assignment: &'a Assignment,
    frame: &'a Frame,
    running: Running,
    calibration: &'a Calibration,
    exact: ExactAttention<'a>,
    monitor: &'a dyn Monitor,
}

impl<'a> ReplacedAttention<'a> {
    /// For a model of this shape; a call ends with [`Error::Stopped`] soon after the monitor asks for it.
    ///
    /// # Errors
    /// An assignment or a calibration of another model.
    pub fn new(
        shape: &Shape,
        assignment: &'a Assignment,
        frame: &'a Frame,
        running: Running,
        calibration: &'a Calibration,
        monitor: &'a dyn Monitor,
    ) -> Result<Self, Error> {
        assignment.check(shape)?;
        calibration.check(shape)?;
        Ok(ReplacedAttention {
            shape: *shape,
            assignment,
            frame,
            running,
            calibration,
            exact: ExactAttention::watched(shape, monitor),
            monitor,
        })
    }
}

impl LayerAttention for ReplacedAttention<'_> {
    fn attend(&mut self, input: &LayerInput<'_>, output: &mut [f32]) -> Result<(), Error> {
        input.check(&self.shape)?;
        let row = &self.assignment.rows()[input.layer];
        if row.contains(&Candidate::Exact) {
            self.exact.attend(input, output)?;
        }
        if row.iter().all(|candidate| *candidate == Candidate::Exact) {
            return Ok(());
        }
        let heads = LayerHeads::new(&self.shape, input)?;
        let readers = self.calibration.layer(input.layer);
        let replaced: Vec<Result<Vec<Answered>, Error>> = (0..heads.groups())
            .into_par_iter()
            .map(|group| {
                let members = heads.group(group);
                let numbered: Vec<(usize, Candidate)> = (0..members.len())
                    .map(|member| (member, row[group * heads.readers() + member]))
                    .filter(|(_, candidate)| *candidate != Candidate::Exact)
                    .collect();
                let mut distinct: Vec<Candidate> = Vec::new();
                for (_, candidate) in &numbered {
                    if !distinct.contains(candidate) {
                        distinct.push(*candidate);
                    }
                }
                let mut outputs = Vec::new();
                for candidate in distinct {
                    let members_of: Vec<usize> = numbered
                        .iter()
                        .filter(|(_, other)| *other == candidate)
                        .map(|(member, _)| *member)
                        .collect();
                    let asked: Vec<_> = members_of.iter().map(|member| members[*member]).collect();
                    let found = answers_watched(
                        candidate,
                        self.frame,
                        self.running,
                        &asked,
                        &readers[group],
                        self.monitor,
                    )?;
                    outputs
                        .extend(members_of.iter().map(|member| group * heads.readers() + member).zip(found));
                }
                Ok(outputs)
            })
            .collect();
        for group in replaced {
            for (head, rows) in group? {
                write_head(output, self.shape.heads, head, self.shape.head_dimension, &rows);
            }
        }
        Ok(())
    }
}
