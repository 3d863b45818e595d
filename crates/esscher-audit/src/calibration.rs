//! Calibration: what texts tell about the readers of every key-value head of a model.

use crate::Error;
use crate::checkpoint::Dump;
use crate::head::Readers;
use crate::layer::LayerHeads;
use crate::model::{ExactAttention, LayerAttention, LayerInput, Model, Shape};
use esscher_core::Monitor;
use rayon::prelude::*;

/// The readers of every key-value head.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibration {
    layers: Vec<Vec<Readers>>,
}

impl Calibration {
    /// The readers of a layer's key-value heads; none if there is no such layer.
    pub fn layer(&self, layer: usize) -> &[Readers] {
        self.layers.get(layer).map_or(&[], Vec::as_slice)
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
    let mut observed = Vec::with_capacity(texts.len());
    for text in texts {
        let exact = ExactAttention::new(model.shape());
        let mut observer = Observer { exact, observations: Observations::none(model.shape()) };
        if model.forward(text, 0, &mut observer, monitor)?.is_none() {
            return Ok(None);
        }
        observed.push(observer.observations);
    }
    Observations::calibration(&observed).map(Some)
}

/// What one text told of the readers of every key-value head: sums, so that those of several texts are added.
#[derive(Debug, Clone)]
pub struct Observations {
    shape: Shape,
    layers: Vec<Vec<Sums>>,
}

impl Observations {
    /// Of the text of a dump.
    ///
    /// # Errors
    /// Layers whose sizes are not those that the dump states.
    pub fn of_dump(dump: &Dump) -> Result<Self, Error> {
        let mut observations = Self::none(&dump.shape);
        for input in (0..dump.layers.len()).filter_map(|layer| dump.layer_input(layer)) {
            observations.observe(&input)?;
        }
        Ok(observations)
    }

    /// What several texts tell together; every tilt counts alike.
    ///
    /// # Errors
    /// No text, or texts that models of different sizes read.
    pub fn calibration<'a>(
        observed: impl IntoIterator<Item = &'a Observations>,
    ) -> Result<Calibration, Error> {
        let mut observed = observed.into_iter();
        let first = observed.next();
        let mut all =
            first.ok_or_else(|| Error::Request("calibration needs at least one text".to_string()))?.clone();
        for one in observed {
            if sizes(&one.shape) != sizes(&all.shape) {
                return Err(Error::Request("the texts that calibrate are of different models".to_string()));
            }
            for (sums, other) in all.layers.iter_mut().flatten().zip(one.layers.iter().flatten()) {
                sums.add(other);
            }
        }
        let of_layer = |groups: Vec<Sums>| groups.into_iter().map(Sums::readers).collect();
        Ok(Calibration { layers: all.layers.into_iter().map(of_layer).collect() })
    }

    fn none(shape: &Shape) -> Self {
        let layer = vec![Sums::new(shape.head_dimension); shape.key_value_heads];
        Observations { shape: *shape, layers: vec![layer; shape.layers] }
    }

    /// Adds what a layer is given for a whole text.
    fn observe(&mut self, input: &LayerInput<'_>) -> Result<(), Error> {
        let heads = LayerHeads::new(&self.shape, input)?;
        let count = self.layers.len();
        let layer = self.layers.get_mut(input.layer).ok_or_else(|| {
            Error::Request(format!("there are {count} layers, counted from 0: no layer {}", input.layer))
        })?;
        layer.par_iter_mut().enumerate().for_each(|(group, sums)| {
            for head in heads.group(group) {
                head.tilts.chunks_exact(head.dimension).for_each(|tilt| sums.add_tilt(tilt));
            }
            if let Some(head) = heads.group(group).first() {
                sums.value_norms.extend(head.values.chunks_exact(head.dimension).map(norm));
            }
        });
        Ok(())
    }
}

/// What calibrations must have in common.
fn sizes(shape: &Shape) -> [usize; 4] {
    [shape.layers, shape.heads, shape.key_value_heads, shape.head_dimension]
}

/// Attends exactly and sums what it sees.
struct Observer {
    exact: ExactAttention,
    observations: Observations,
}

impl LayerAttention for Observer {
    fn attend(&mut self, input: &LayerInput<'_>, output: &mut [f32]) -> Result<(), Error> {
        self.exact.attend(input, output)?;
        self.observations.observe(input)
    }
}

/// Sums over the tilts of one group.
#[derive(Debug, Clone)]
struct Sums {
    count: f64,
    mean: Vec<f64>,
    /// Σ θθᵀ, row-major.
    products: Vec<f64>,
    value_norms: Vec<f32>,
}

impl Sums {
    fn new(dimension: usize) -> Self {
        let products = vec![0.0; dimension * dimension];
        Sums { count: 0.0, mean: vec![0.0; dimension], products, value_norms: Vec::new() }
    }

    fn add_tilt(&mut self, tilt: &[f32]) {
        self.count += 1.0;
        for (row, &entry) in tilt.iter().enumerate() {
            let entry = f64::from(entry);
            self.mean[row] += entry;
            let products = &mut self.products[row * tilt.len()..(row + 1) * tilt.len()];
            for (product, &other) in products.iter_mut().zip(tilt) {
                *product += entry * f64::from(other);
            }
        }
    }

    fn add(&mut self, other: &Sums) {
        self.count += other.count;
        self.mean.iter_mut().zip(&other.mean).for_each(|(sum, entry)| *sum += entry);
        self.products.iter_mut().zip(&other.products).for_each(|(sum, entry)| *sum += entry);
        self.value_norms.extend(&other.value_norms);
    }

    fn readers(mut self) -> Readers {
        let count = self.count.max(1.0);
        let mean: Vec<f64> = self.mean.iter().map(|sum| sum / count).collect();
        let dimension = mean.len();
        let covariance = (0..dimension * dimension)
            .map(|entry| {
                (self.products[entry] / count - mean[entry / dimension] * mean[entry % dimension]) as f32
            })
            .collect();
        self.value_norms.sort_by(f32::total_cmp);
        Readers {
            mean_tilt: mean.iter().map(|entry| *entry as f32).collect(),
            tilt_covariance: covariance,
            median_value_norm: self.value_norms.get(self.value_norms.len() / 2).copied().unwrap_or(0.0),
        }
    }
}

fn norm(vector: &[f32]) -> f32 {
    vector.iter().map(|entry| entry * entry).sum::<f32>().sqrt()
}
