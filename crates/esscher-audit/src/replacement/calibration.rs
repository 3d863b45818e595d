//! Readers from recorded heads: what calibration texts tell in advance.

use crate::Error;
use crate::head::{Head, Readers};

impl Readers {
    /// Of one head on one text.
    pub fn of_head(head: &Head<'_>) -> Readers {
        gather(std::slice::from_ref(head), &[*head])
    }

    /// Of the query heads of one key-value head over several texts: `texts[i]` are these heads on text i, which share keys
    /// and values. Every tilt counts alike.
    ///
    /// # Errors
    /// [`Error::Request`] if there is no tilt, or heads of different dimensions.
    pub fn from_heads(texts: &[Vec<Head<'_>>]) -> Result<Readers, Error> {
        let heads: Vec<Head<'_>> = texts.iter().flatten().copied().collect();
        let owners: Vec<Head<'_>> = texts.iter().filter_map(|heads| heads.first().copied()).collect();
        let dimension = heads.first().map_or(0, |head| head.dimension);
        if let Some(other) = heads.iter().find(|head| head.dimension != dimension) {
            return Err(Error::Request(format!(
                "the readers of one key-value head have {dimension} numbers per tilt, but one of them has {}",
                other.dimension
            )));
        }
        if dimension == 0 || heads.iter().all(|head| head.tilts.is_empty()) {
            return Err(Error::Request(
                "readers need at least one tilt: give a calibration text with at least one token".to_string(),
            ));
        }
        Ok(gather(&heads, &owners))
    }
}

fn gather(heads: &[Head<'_>], owners: &[Head<'_>]) -> Readers {
    let d = heads.first().map_or(0, |head| head.dimension);
    let rows = || heads.iter().flat_map(|head| head.tilts.chunks_exact(d.max(1)));
    let count = rows().count().max(1) as f64;
    let mut mean = vec![0f64; d];
    for tilt in rows() {
        mean.iter_mut().zip(tilt).for_each(|(sum, entry)| *sum += f64::from(*entry));
    }
    mean.iter_mut().for_each(|sum| *sum /= count);
    let mean_tilt: Vec<f32> = mean.iter().map(|&entry| entry as f32).collect();
    let mut covariance = vec![0f64; d * d];
    // In blocks: the products in single precision, their sum in double.
    let (mut centred, mut product) = (Vec::new(), vec![0f32; d * d]);
    for head in heads {
        for block in head.tilts.chunks(d.max(1) * 256) {
            centred.clear();
            for tilt in block.chunks_exact(d.max(1)) {
                centred.extend(tilt.iter().zip(&mean).map(|(entry, mean)| (f64::from(*entry) - mean) as f32));
            }
            product.fill(0.0);
            super::tokens::add_transposed_times(&mut product, &centred, d, &centred, d);
            covariance.iter_mut().zip(&product).for_each(|(sum, entry)| *sum += f64::from(*entry));
        }
    }
    let tilt_covariance = covariance.iter().map(|sum| (sum / count) as f32).collect();
    let mut norms: Vec<f32> = owners
        .iter()
        .flat_map(|head| head.values.chunks_exact(d.max(1)))
        .map(|value| super::dot(value, value).sqrt())
        .collect();
    norms.sort_by(f32::total_cmp);
    let median_value_norm = norms.get(norms.len() / 2).copied().unwrap_or(0.0);
    Readers { mean_tilt, tilt_covariance, median_value_norm }
}
