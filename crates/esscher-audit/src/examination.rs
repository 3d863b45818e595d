//! The examination of a model on a text: the portrait of every head, and how far every candidate is from its outputs.

use crate::Error;
use crate::answer::answers_watched;
use crate::assignment::Running;
use crate::calibration::Calibration;
use crate::candidate::{Candidate, Frame};
use crate::checkpoint::Dump;
use crate::discrepancy::{self, Discrepancy, discrepancy};
use crate::error::{go_on, unless_stopped};
use crate::head::unless_lost;
use crate::layer::{LayerHeads, columns};
use crate::model::{ExactAttention, LayerAttention, LayerInput, Model, OutputProjection, Shape};
use crate::portrait::{Portrait, measured_positions, portrait};
use crate::readers::Readers;
use esscher_core::Monitor;
use esscher_core::numerics::Stream;
use rayon::prelude::*;

/// What is asked of every head.
#[derive(Debug, Clone)]
pub struct Questions {
    /// What every candidate keeps exactly.
    pub frame: Frame,
    /// What may replace a head, and how it runs.
    pub candidates: Vec<(Candidate, Running)>,
    /// The seed of the random halves in portraits.
    pub seed: u64,
}

/// What was found out about one query head on one text.
#[derive(Debug, Clone, PartialEq)]
pub struct Findings {
    /// The number of the layer, from 0.
    pub layer: usize,
    /// The number of the query head in its layer, from 0.
    pub head: usize,
    /// How the head spreads its weight on this text.
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
    calibration.check(model.shape())?;
    let exact = ExactAttention::watched(model.shape(), monitor);
    let mut examiner = Examiner { model, questions, calibration, exact, monitor, findings: Vec::new() };
    let finished = model.forward(text, 0, &mut examiner, monitor)?;
    Ok(finished.map(|_| examiner.findings))
}

/// Examines every head of a dump, which holds its text; nothing if the monitor asked to stop.
///
/// Errors relative to the residual stream are told of the layers whose stream and output projection were recorded.
///
/// # Errors
/// A text of fewer than two tokens, a calibration of another model.
pub fn examine_dump(
    dump: &Dump,
    questions: &Questions,
    calibration: &Calibration,
    monitor: &dyn Monitor,
) -> Result<Option<Vec<Findings>>, Error> {
    calibration.check(&dump.shape)?;
    let mut findings = Vec::new();
    for layer in 0..dump.layers.len() {
        let Some(found) = unless_stopped(examine_dumped(dump, layer, questions, calibration, monitor))?
        else {
            return Ok(None);
        };
        findings.extend(found);
        monitor.progress(layer + 1, dump.layers.len());
    }
    Ok(Some(findings))
}

fn examine_dumped(
    dump: &Dump,
    layer: usize,
    questions: &Questions,
    calibration: &Calibration,
    monitor: &dyn Monitor,
) -> Result<Vec<Findings>, Error> {
    go_on(monitor)?;
    let layers = dump.layers.len();
    let input = dump.layer_input(layer).ok_or(Error::NoLayer { layer, layers })?;
    let mut output = vec![0.0; input.tilts.len()];
    ExactAttention::watched(&dump.shape, monitor).attend(&input, &mut output)?;
    let projection = dump.output_projection(layer).filter(|_| !input.residual.is_empty());
    let readers = calibration.layer(layer);
    examine_layer(&dump.shape, &input, &output, projection.as_ref(), questions, readers, monitor)
}

/// Attends exactly and examines the heads of every layer on the way.
struct Examiner<'a> {
    model: &'a Model,
    questions: &'a Questions,
    calibration: &'a Calibration,
    exact: ExactAttention<'a>,
    monitor: &'a dyn Monitor,
    findings: Vec<Findings>,
}

impl LayerAttention for Examiner<'_> {
    fn attend(&mut self, input: &LayerInput<'_>, output: &mut [f32]) -> Result<(), Error> {
        self.exact.attend(input, output)?;
        let readers = self.calibration.layer(input.layer);
        let projection = self.model.output_projection(input.layer);
        let shape = self.model.shape();
        self.findings.extend(examine_layer(
            shape,
            input,
            output,
            projection.as_ref(),
            self.questions,
            readers,
            self.monitor,
        )?);
        Ok(())
    }
}

/// Examines the heads of a layer on a whole text, given their exact outputs, tokens × heads × head dimension, and who reads the
/// layer's key-value heads. With an output projection errors are also told relative to the residual stream.
///
/// # Errors
/// A part of a text or one of fewer than two tokens, a stream that is not of this text, readers of another model;
/// [`Error::Stopped`] if the monitor asked to stop.
pub fn examine_layer(
    shape: &Shape,
    input: &LayerInput<'_>,
    exact: &[f32],
    projection: Option<&OutputProjection>,
    questions: &Questions,
    readers: &[Readers],
    monitor: &dyn Monitor,
) -> Result<Vec<Findings>, Error> {
    let heads = LayerHeads::new(shape, input)?;
    if readers.len() != heads.groups() {
        let words = |count: usize| format!("{count} key-value heads");
        let what = format!("the calibration of layer {}", input.layer);
        return Err(Error::other_model(what, words(heads.groups()), words(readers.len())));
    }
    if projection.is_some() && (shape.width == 0 || input.residual.len() != input.count * shape.width) {
        return Err(Error::WrongSizes {
            what: format!("the residual stream of layer {}", input.layer),
            expected: format!("{} for each of {} tokens", shape.width, input.count),
            found: vec![input.residual.len()],
        });
    }
    let d = shape.head_dimension;
    let norms: Vec<f32> = input
        .residual
        .chunks_exact(shape.width.max(1))
        .map(|token| unless_lost(token.iter().map(|entry| entry * entry).sum(), token).sqrt() as f32)
        .collect();
    let first = questions.frame.first_replaced();
    let positions = measured_positions(shape.order, input.count, first, discrepancy::QUERIES);
    let short = |needed, purpose: &str, remedy| {
        let purpose = purpose.to_string();
        Error::TooFewTokens { what: "the text", found: input.count, needed, purpose, remedy }
    };
    let of_group = |(group, readers): (usize, &Readers)| {
        let members = heads.group(group);
        let candidates = questions
            .candidates
            .iter()
            .map(|(candidate, running)| {
                answers_watched(*candidate, &questions.frame, *running, &members, readers, monitor)
            })
            .collect::<Result<Vec<Vec<Vec<f32>>>, Error>>()?;
        let mut findings = Vec::new();
        for (member, seen) in members.iter().enumerate() {
            go_on(monitor)?;
            let head = group * heads.readers() + member;
            let place = (input.layer * shape.heads + head) as u32;
            let portrait = portrait(seen, &mut Stream::new(questions.seed, place, 0))
                .ok_or_else(|| short(2, "the portrait of a head", "give a longer text"))?;
            let exact: Vec<f32> = columns(exact, shape.heads, d, head..head + 1).collect();
            let projected = |rows: &[f32]| {
                projection.and_then(|projection| projection.norms(head, rows)).unwrap_or_default()
            };
            let stream = discrepancy::Stream { projected_norms: &projected, norms: &norms };
            let stream = projection.map(|_| &stream);
            let errors = candidates
                .iter()
                .map(|outputs| discrepancy(&outputs[member], &exact, d, &positions, stream))
                .collect::<Option<Vec<Discrepancy>>>();
            let errors = errors.ok_or_else(|| {
                short(
                    first + 1,
                    "something to be replaced",
                    "give a longer text, or ask for a smaller window",
                )
            })?;
            findings.push(Findings { layer: input.layer, head, portrait, errors });
        }
        Ok(findings)
    };
    let found: Vec<Result<Vec<Findings>, Error>> = readers.par_iter().enumerate().map(of_group).collect();
    Ok(found.into_iter().collect::<Result<Vec<_>, Error>>()?.into_iter().flatten().collect())
}
