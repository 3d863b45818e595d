//! What a model is made of: sizes, and for every layer its mechanism and what stands around it.

use super::normalisation::Normalisation;
use crate::error::{Error, Result};
use crate::mechanism::Mechanism;
use std::fmt::Write;
use std::sync::Arc;

/// The map between mixers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mlp {
    /// Numbers inside: (x U ⊙ silu(x G)) D, with U and G `width` × `hidden`.
    pub hidden: usize,
}

/// One layer: x + mixer(norm x), then x + mlp(norm x).
#[derive(Debug, Clone)]
pub struct LayerSpecification {
    /// What mixes tokens.
    pub mechanism: Arc<dyn Mechanism>,
    /// Taps of a causal convolution with SiLU before the projections.
    pub convolution: Option<usize>,
    /// What every head's output is normalised by.
    pub norm: Option<Normalisation>,
    /// Whether the output is gated by silu(x G).
    pub gate: bool,
    /// The map after the mixer.
    pub mlp: Option<Mlp>,
}

impl LayerSpecification {
    /// A mechanism alone: no convolution, norm, gate or map.
    pub fn plain(mechanism: impl Mechanism + 'static) -> Self {
        LayerSpecification {
            mechanism: Arc::new(mechanism),
            convolution: None,
            norm: None,
            gate: false,
            mlp: None,
        }
    }
}

/// A model: embedding, layers, norm, and the embedding again as its head.
#[derive(Debug, Clone)]
pub struct ModelSpecification {
    /// How many tokens there are.
    pub vocabulary: usize,
    /// Numbers per token between layers.
    pub width: usize,
    /// Heads of every mechanism.
    pub heads: usize,
    /// Learned positions for sequences up to this length; for mechanisms that have no order of their own.
    pub positions: Option<usize>,
    /// The layers, in order.
    pub layers: Vec<LayerSpecification>,
}

/// Numbers per token, at most.
const LARGEST_WIDTH: usize = 1 << 14;

/// Numbers of a matrix, at most: 4 GB.
const LARGEST_MATRIX: usize = 1 << 30;

impl ModelSpecification {
    /// Refuses sizes that make no model.
    ///
    /// # Errors
    /// A size of zero, or one whose matrices fit into no memory.
    pub fn check(&self) -> Result<()> {
        let sized = |name, size: usize, most: usize| {
            if (1..=most).contains(&size) {
                return Ok(());
            }
            Err(Error::Option { name, expected: format!("1 to {most}"), found: size.to_string() })
        };
        sized("width", self.width, LARGEST_WIDTH)?;
        let rows = LARGEST_MATRIX / self.width;
        sized("vocabulary", self.vocabulary, rows)?;
        sized("heads", self.heads, LARGEST_WIDTH)?;
        sized("positions", self.positions.unwrap_or(1), rows)?;
        for layer in &self.layers {
            sized("convolution", layer.convolution.unwrap_or(1), LARGEST_WIDTH)?;
            sized("hidden", layer.mlp.map_or(1, |mlp| mlp.hidden), rows)?;
        }
        Ok(())
    }

    /// The specification in words, one `name = value` per line: equal words, equal models.
    pub fn describe(&self) -> String {
        let mut text = format!(
            "vocabulary = {}\nwidth = {}\nheads = {}\npositions = {:?}\nlayers = {}\n",
            self.vocabulary,
            self.width,
            self.heads,
            self.positions,
            self.layers.len()
        );
        for (index, layer) in self.layers.iter().enumerate() {
            let LayerSpecification { mechanism, convolution, norm, gate, mlp } = layer;
            let _ = write!(
                text,
                "layers.{index}.mechanism = {mechanism:?}\nlayers.{index}.convolution = {convolution:?}\n\
                 layers.{index}.norm = {norm:?}\nlayers.{index}.gate = {gate}\nlayers.{index}.mlp = {mlp:?}\n"
            );
        }
        text
    }
}
