//! A small model around one name of the catalogue, and its training: what experiments run.

use super::normalisation::Normalisation;
use super::run::{Continue, Options, Progress, Trained, train_from};
use super::specification::{LayerSpecification, ModelSpecification};
use super::{Model, Schedule};
use crate::catalogue::{Sizes, hybrids, layers_of};
use crate::error::{Error, Result};
use crate::swax::{LayerKind, WindowSchedule, layout};
use crate::tasks::Task;

/// A model of equal layers: convolution, mechanism, norm per head, output gate; SWAX has its own two layers in turn.
///
/// The same around every mechanism, so that mechanisms are compared and not blocks: InLine has no local residual here, angles
/// of selective rotations are a linear function of the token, mLSTM is gated by SiLU.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// A mechanism or hybrid of the catalogue.
    pub name: String,
    /// Numbers per token between layers.
    pub width: usize,
    /// Heads of every layer, which share the width.
    pub heads: usize,
    /// How many layers.
    pub layers: usize,
    /// Taps of the convolution before the projections; none without.
    pub convolution: Option<usize>,
    /// How long and how fast.
    pub schedule: Schedule,
    /// Decides weights and examples.
    pub seed: u64,
}

/// The short and the long window of SWAX in sequences as short as those of a trial.
const WINDOWS: (usize, usize) = (8, 64);

/// How often the window is short.
const SHORT: f64 = 0.5;

impl Trial {
    /// The model.
    ///
    /// # Errors
    /// An unknown name, or a width that the heads do not divide.
    pub fn specification(&self, vocabulary: usize) -> Result<ModelSpecification> {
        if self.heads == 0 || !self.width.is_multiple_of(self.heads) {
            return Err(Error::Option {
                name: "heads",
                expected: format!("a divisor of the width, {}", self.width),
                found: self.heads.to_string(),
            });
        }
        if self.is_hybrid() && self.layers < 2 {
            return Err(Error::Option {
                name: "layers",
                expected: format!("at least 2, since {} has layers in turn", self.name),
                found: self.layers.to_string(),
            });
        }
        let layers = layers_of(&self.name, self.sizes()?, self.layers)?
            .into_iter()
            .enumerate()
            .map(|(index, mechanism)| LayerSpecification {
                mechanism,
                convolution: self.convolution,
                norm: Some(self.norm(index)),
                gate: true,
                mlp: None,
            })
            .collect();
        Ok(ModelSpecification { vocabulary, width: self.width, heads: self.heads, positions: None, layers })
    }

    fn is_hybrid(&self) -> bool {
        hybrids().iter().any(|hybrid| hybrid.name == self.name)
    }

    /// The norm per head that the papers have: MetaLA's also removes the constant with which its augmentation starts.
    fn norm(&self, layer: usize) -> Normalisation {
        let is_mlstm =
            self.name == "mlstm" || self.is_hybrid() && layout(self.layers)[layer] == LayerKind::Mlstm;
        match is_mlstm || self.name == "metala" {
            true => Normalisation::Layer,
            false => Normalisation::RootMeanSquare,
        }
    }

    fn sizes(&self) -> Result<Sizes> {
        Sizes::new(self.width / self.heads, self.width / self.heads)
    }

    /// Trains the model on a task.
    ///
    /// # Errors
    /// As [`specification`](Self::specification) and [`train`](super::train).
    pub fn run(&self, task: &dyn Task, observer: &mut dyn FnMut(Progress) -> Continue) -> Result<Trained> {
        let model = Model::new(self.specification(task.vocabulary())?, self.seed)?;
        let mut options = Options::default();
        let (short, long) = WINDOWS;
        let windows = WindowSchedule::new(self.schedule.steps, short, long, SHORT, self.seed)?;
        let (kinds, sizes) = (layout(self.layers), self.sizes()?);
        let draw = |step: usize, layer: usize| {
            let kind = kinds[layer];
            (kind == LayerKind::SlidingWindow).then(|| kind.mechanism(sizes, windows.window_at(step)))
        };
        if self.is_hybrid() {
            options.mechanism_at = Some(&draw);
        }
        train_from(model, task, &self.schedule, self.seed, &options, observer)
    }
}
