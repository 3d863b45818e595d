//! Calibration: what texts tell about the readers of every key-value head of a model.

use crate::Error;
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
    /// The readers of a layer's key-value heads.
    pub fn layer(&self, layer: usize) -> &[Readers] {
        &self.layers[layer]
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
    let shape = *model.shape();
    if texts.is_empty() {
        return Err(Error::Request("calibration needs at least one text".to_string()));
    }
    let mut observer =
        Observer { shape, exact: ExactAttention::new(&shape), sums: vec![Vec::new(); shape.layers] };
    for text in texts {
        if model.forward(text, 0, &mut observer, monitor)?.is_none() {
            return Ok(None);
        }
    }
    let layers =
        observer.sums.into_iter().map(|groups| groups.into_iter().map(Sums::readers).collect()).collect();
    Ok(Some(Calibration { layers }))
}

/// Attends exactly and sums what it sees.
struct Observer {
    shape: Shape,
    exact: ExactAttention,
    sums: Vec<Vec<Sums>>,
}

impl LayerAttention for Observer {
    fn attend(&mut self, input: &LayerInput<'_>, output: &mut [f32]) -> Result<(), Error> {
        self.exact.attend(input, output)?;
        let heads = LayerHeads::new(&self.shape, input)?;
        let sums = &mut self.sums[input.layer];
        sums.resize_with(heads.groups(), || Sums::new(self.shape.head_dimension));
        sums.par_iter_mut().enumerate().for_each(|(group, sums)| {
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

/// Sums over the tilts of one group.
#[derive(Clone)]
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
