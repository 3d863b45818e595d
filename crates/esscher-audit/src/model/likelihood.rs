//! Log-likelihoods of next tokens, panel after panel of the vocabulary.

use crate::weights::Matrix;
use crate::weights::products::PANEL;
use esscher_core::numerics::{MultiplyAdd, VectorLoops, exponentials_f32, vectorised};
use faer::MatMut;
use rayon::prelude::*;

/// Rows of hidden states that are worked on together.
pub(crate) const ROWS: usize = 512;

/// What a panel of the vocabulary adds for one row: the largest logit, Σ e^{logit − largest}, and the logit of the next token
/// if it is in the panel.
#[derive(Debug, Clone, Copy)]
struct Part {
    largest: f32,
    sum: f32,
    target: Option<f32>,
}

/// ln p(next) for every row of `hidden`. Callers have checked that tokens are below the vocabulary.
pub(super) fn log_likelihoods(unembedding: &Matrix, hidden: &[f32], next: &[u32]) -> Vec<f64> {
    let width = unembedding.columns();
    let chunks = hidden.chunks(ROWS * width).zip(next.chunks(ROWS));
    chunks.flat_map(|(hidden, next)| of_chunk(unembedding, hidden, next)).collect()
}

fn of_chunk(unembedding: &Matrix, hidden: &[f32], next: &[u32]) -> Vec<f64> {
    let panels: Vec<Vec<Part>> = (0..unembedding.rows().div_ceil(PANEL))
        .into_par_iter()
        .map_init(
            || (Vec::new(), Vec::new()),
            |(unpacked, logits), panel| {
                let first = panel * PANEL;
                let count = PANEL.min(unembedding.rows() - first);
                logits.resize(next.len() * count, 0.0);
                let to = MatMut::from_row_major_slice_mut(logits, next.len(), count);
                unembedding.multiply_panel(first, hidden, to, unpacked);
                let rows = logits.chunks_exact_mut(count).zip(next);
                rows.map(|(logits, next)| {
                    let target =
                        (*next as usize).checked_sub(first).and_then(|place| logits.get(place)).copied();
                    // A logit that is not finite would be passed over.
                    let sound = logits.iter().all(|logit| logit.is_finite());
                    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                    logits.iter_mut().for_each(|logit| *logit -= largest);
                    exponentials_f32(logits);
                    Part { largest, sum: if sound { vectorised(Sum(logits)) } else { f32::NAN }, target }
                })
                .collect()
            },
        )
        .collect();
    (0..next.len())
        .map(|row| {
            let parts = || panels.iter().map(|panel| panel[row]);
            let largest = parts().map(|part| part.largest).fold(f32::NEG_INFINITY, f32::max);
            let sum: f64 =
                parts().map(|part| f64::from(part.largest - largest).exp() * f64::from(part.sum)).sum();
            let target = parts().find_map(|part| part.target).unwrap_or(f32::NEG_INFINITY);
            f64::from(target) - f64::from(largest) - sum.ln()
        })
        .collect()
}

struct Sum<'a>(&'a [f32]);

impl VectorLoops for Sum<'_> {
    type Output = f32;

    #[inline(always)]
    fn run<M: MultiplyAdd>(self) -> f32 {
        let (blocks, rest) = self.0.as_chunks::<16>();
        let mut lanes = [0.0; 16];
        for block in blocks {
            for lane in 0..16 {
                lanes[lane] += block[lane];
            }
        }
        lanes.iter().sum::<f32>() + rest.iter().sum::<f32>()
    }
}
