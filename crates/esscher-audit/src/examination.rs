//! The examination of a model on a text: the portrait of every head, and how far every candidate is from its outputs.

use crate::Error;
use crate::answer::answers;
use crate::assignment::Running;
use crate::calibration::Calibration;
use crate::candidate::{Candidate, Frame};
use crate::discrepancy::{self, Discrepancy, discrepancy};
use crate::layer::LayerHeads;
use crate::model::{ExactAttention, LayerAttention, LayerInput, Model};
use crate::portrait::{Portrait, measured_positions, portrait};
use esscher_core::Monitor;
use esscher_core::numerics::Stream;
use rayon::prelude::*;

/// What is asked of every head.
#[derive(Debug, Clone)]
pub struct Questions {
    /// What all candidates share.
    pub frame: Frame,
    /// What may replace a head, and how it runs.
    pub candidates: Vec<(Candidate, Running)>,
    /// Of the random halves in portraits.
    pub seed: u64,
}

/// What was found out about one query head on one text.
#[derive(Debug, Clone, PartialEq)]
pub struct Findings {
    /// From 0.
    pub layer: usize,
    /// Query head, from 0.
    pub head: usize,
    /// What it looks like.
    pub portrait: Portrait,
    /// An error for each of the candidates asked, in their order.
    pub errors: Vec<Discrepancy>,
}

/// Examines every head on a text; nothing if the monitor asked to stop.
///
/// # Errors
/// A text of fewer than two tokens, or one that the model refuses.
pub fn examine(
    model: &Model,
    text: &[u32],
    questions: &Questions,
    calibration: &Calibration,
    monitor: &dyn Monitor,
) -> Result<Option<Vec<Findings>>, Error> {
    let exact = ExactAttention::new(model.shape());
    let mut examiner = Examiner { model, questions, calibration, exact, findings: Vec::new() };
    let finished = model.forward(text, 0, &mut examiner, monitor)?;
    Ok(finished.map(|_| examiner.findings))
}

/// Attends exactly and examines the heads of every layer on the way.
struct Examiner<'a> {
    model: &'a Model,
    questions: &'a Questions,
    calibration: &'a Calibration,
    exact: ExactAttention,
    findings: Vec<Findings>,
}

impl LayerAttention for Examiner<'_> {
    fn attend(&mut self, input: &LayerInput<'_>, output: &mut [f32]) -> Result<(), Error> {
        self.exact.attend(input, output)?;
        let shape = *self.model.shape();
        let heads = LayerHeads::new(&shape, input)?;
        let norms: Vec<f32> = input
            .residual
            .chunks_exact(shape.width)
            .map(|token| token.iter().map(|entry| entry * entry).sum::<f32>().sqrt())
            .collect();
        let readers = self.calibration.layer(input.layer);
        let projection = self.model.output_projection(input.layer);
        let output: &[f32] = output;
        let found: Vec<Result<Vec<Findings>, Error>> = (0..heads.groups())
            .into_par_iter()
            .map(|group| {
                let members = heads.group(group);
                let first = self.questions.frame.first_replaced();
                let positions = measured_positions(shape.order, input.count, first, discrepancy::QUERIES);
                let candidates = self
                    .questions
                    .candidates
                    .iter()
                    .map(|(candidate, running)| {
                        answers(*candidate, &self.questions.frame, *running, &members, &readers[group])
                    })
                    .collect::<Result<Vec<Vec<Vec<f32>>>, Error>>()?;
                let mut findings = Vec::new();
                for (member, seen) in members.iter().enumerate() {
                    let head = group * heads.readers() + member;
                    let place = (input.layer * shape.heads + head) as u32;
                    let portrait = portrait(seen, &mut Stream::new(self.questions.seed, place, 0))
                        .ok_or_else(|| {
                            Error::Request(
                                "a text of fewer than two tokens shows nothing of a head".to_string(),
                            )
                        })?;
                    let exact: Vec<f32> = output
                        .chunks_exact(shape.heads * shape.head_dimension)
                        .flat_map(|token| &token[head * shape.head_dimension..][..shape.head_dimension])
                        .copied()
                        .collect();
                    let projected = |rows: &[f32]| {
                        projection.as_ref().and_then(|projection| projection.norms(head, rows)).unwrap_or_default()
                    };
                    let stream = discrepancy::Stream { projected_norms: &projected, norms: &norms };
                    let stream = projection.as_ref().map(|_| &stream);
                    let errors = candidates
                        .iter()
                        .map(|outputs| {
                            discrepancy(&outputs[member], &exact, shape.head_dimension, &positions, stream)
                        })
                        .collect::<Option<Vec<Discrepancy>>>()
                        .ok_or_else(|| {
                            Error::Request(format!(
                                "of {} tokens none is replaced before the last query: give a longer text or a smaller window",
                                seen.len()
                            ))
                        })?;
                    findings.push(Findings { layer: input.layer, head, portrait, errors });
                }
                Ok(findings)
            })
            .collect();
        for found in found {
            self.findings.extend(found?);
        }
        Ok(())
    }
}
