//! Calibration: what texts tell about the readers of every key-value head of a model.

use crate::Error;
use crate::checkpoint::Dump;
use crate::layer::LayerHeads;
use crate::model::{ExactAttention, LayerAttention, LayerInput, Model, Shape};
use crate::readers::{ReaderSums, Readers};
use esscher_core::Monitor;
use rayon::prelude::*;

/// What is known in advance of the readers of every key-value head.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibration {
    layers: Vec<Vec<Readers>>,
}

impl Calibration {
    /// The readers of a layer's key-value heads; none if there is no such layer.
    pub fn layer(&self, layer: usize) -> &[Readers] {
        self.layers.get(layer).map_or(&[], Vec::as_slice)
    }

    /// Refuses a model that this calibration is not of.
    ///
    /// # Errors
    /// Another number of layers, of key-value heads or of numbers per tilt.
    pub fn check(&self, shape: &Shape) -> Result<(), Error> {
        let expected = [shape.layers, shape.key_value_heads, shape.head_dimension];
        let first = self.layers.first().and_then(|layer| layer.first());
        let dimension = first.map_or(0, |readers| readers.pooled.mean.len());
        let found = [self.layers.len(), self.layers.first().map_or(0, Vec::len), dimension];
        if found == expected {
            return Ok(());
        }
        let words = |[layers, groups, dimension]: [usize; 3]| {
            format!("{layers} layers of {groups} key-value heads of dimension {dimension}")
        };
        Err(Error::other_model("the calibration".to_string(), words(expected), words(found)))
    }
}

/// Runs the model over texts and keeps what its readers did; nothing if the monitor asked to stop.
///
/// # Errors
/// No text, or one that the model refuses.
pub fn calibrate(
    model: &Model,
    texts: &[Vec<u32>],
    monitor: &dyn Monitor,
) -> Result<Option<Calibration>, Error> {
    let mut observations = None;
    for text in texts {
        let exact = ExactAttention::watched(model.shape(), monitor);
        let so_far = observations.take().unwrap_or_else(|| Observations::none(model.shape()));
        let mut observer = Observer { exact, observations: so_far };
        if model.forward(text, 0, &mut observer, monitor)?.is_none() {
            return Ok(None);
        }
        observations = Some(observer.observations);
    }
    Observations::calibration(&observations).map(Some)
}

/// What texts told of the readers of every key-value head: sums, so that those of several texts are added.
#[derive(Debug, Clone)]
pub struct Observations {
    shape: Shape,
    layers: Vec<Vec<ReaderSums>>,
}

impl Observations {
    /// Of the text of a dump; nothing if the monitor asked to stop.
    ///
    /// # Errors
    /// Layers whose sizes are not those that the dump states.
    pub fn of_dump(dump: &Dump, monitor: &dyn Monitor) -> Result<Option<Self>, Error> {
        let mut observations = Self::none(&dump.shape);
        for input in (0..dump.layers.len()).filter_map(|layer| dump.layer_input(layer)) {
            if monitor.should_stop() {
                return Ok(None);
            }
            observations.observe(&input)?;
        }
        Ok(Some(observations))
    }

    /// What several texts tell together; every tilt counts alike.
    ///
    /// # Errors
    /// No text, or texts that models of different sizes read.
    pub fn calibration<'a>(
        observed: impl IntoIterator<Item = &'a Observations>,
    ) -> Result<Calibration, Error> {
        let mut observed = observed.into_iter();
        let nothing = || Error::TooFewTokens {
            what: "the calibration",
            found: 0,
            needed: 1,
            purpose: "the tilts of readers".to_string(),
            remedy: "give at least one text",
        };
        let mut all = observed.next().ok_or_else(nothing)?.clone();
        for one in observed {
            if sizes(&one.shape) != sizes(&all.shape) {
                return Err(Error::OtherModel {
                    what: "a text that calibrates".to_string(),
                    reference: "the first one".to_string(),
                    expected: format!("the sizes {:?}", sizes(&all.shape)),
                    found: format!("{:?}", sizes(&one.shape)),
                    remedy: "let one model read all of them",
                });
            }
            for (sums, other) in all.layers.iter_mut().flatten().zip(one.layers.iter().flatten()) {
                sums.merge(other);
            }
        }
        let of_layer = |groups: &Vec<ReaderSums>| groups.iter().map(ReaderSums::readers).collect();
        Ok(Calibration { layers: all.layers.iter().map(of_layer).collect() })
    }

    fn none(shape: &Shape) -> Self {
        let readers = shape.readers();
        let layer = vec![ReaderSums::new(shape.head_dimension, readers); shape.key_value_heads];
        Observations { shape: *shape, layers: vec![layer; shape.layers] }
    }

    /// Adds what a layer is given for a whole text.
    fn observe(&mut self, input: &LayerInput<'_>) -> Result<(), Error> {
        let heads = LayerHeads::new(&self.shape, input)?;
        self.layers[input.layer]
            .par_iter_mut()
            .enumerate()
            .for_each(|(group, sums)| sums.add(&heads.group(group)));
        Ok(())
    }
}

/// What calibrations must have in common.
fn sizes(shape: &Shape) -> [usize; 4] {
    [shape.layers, shape.heads, shape.key_value_heads, shape.head_dimension]
}

/// Attends exactly and sums what it sees.
struct Observer<'a> {
    exact: ExactAttention<'a>,
    observations: Observations,
}

impl LayerAttention for Observer<'_> {
    fn attend(&mut self, input: &LayerInput<'_>, output: &mut [f32]) -> Result<(), Error> {
        self.exact.attend(input, output)?;
        self.observations.observe(input)
    }
}
