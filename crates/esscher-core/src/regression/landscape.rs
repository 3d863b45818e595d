//! What training walks on: a risk and its gradient as functions of a list of parameters.

use super::{Block, LinearRegression, RegressionLayer, Response, RiskAverage, SpectralTask};
use crate::error::Result;
use crate::numerics::check;

/// A risk with its gradient, for gradient flows of any parametrisation.
///
/// Parameters that score come first, those that read values out last. A parameter may stand for several equal
/// entries of the layer: its `weight` is their number, and its gradient is that of one entry.
pub trait Landscape: Sync {
    /// Number of parameters.
    fn size(&self) -> usize;

    /// How many of them score; the others read values out.
    fn scores(&self) -> usize;

    /// How many entries of the layer parameter `index` stands for.
    fn weight(&self, index: usize) -> f64;

    /// The risk, and into `gradient` its gradient per entry.
    fn slope(&self, parameters: &[f64], gradient: &mut [f64]) -> Result<f64>;

    /// ‖scores‖² − ‖values‖²: conserved by the flow of the infinite prompt and of linear attention, where scaling
    /// scores up and values down changes nothing. What softmax at finite length does to it is the drift.
    fn balance(&self, parameters: &[f64]) -> f64 {
        let part = |range: std::ops::Range<usize>| -> f64 {
            range.map(|index| self.weight(index) * parameters[index] * parameters[index]).sum()
        };
        part(0..self.scores()) - part(self.scores()..parameters.len())
    }

    /// ‖a − b‖ over all entries of the layer.
    fn distance(&self, a: &[f64], b: &[f64]) -> f64 {
        let square = |(index, (a, b)): (usize, (&f64, &f64))| self.weight(index) * (a - b).powi(2);
        a.iter().zip(b).enumerate().map(square).sum::<f64>().sqrt()
    }

    /// ‖gradient‖ over all entries of the layer.
    fn norm(&self, gradient: &[f64]) -> f64 {
        self.distance(gradient, &vec![0.0; gradient.len()])
    }
}

/// The block form in the eigenvectors of the task: the entries of its groups, then b.
#[derive(Debug, Clone)]
pub struct SpectralLandscape {
    /// The task.
    pub task: SpectralTask,
    /// The layer and its prompt length.
    pub response: Response,
}

impl Landscape for SpectralLandscape {
    fn size(&self) -> usize {
        self.task.groups().len() + 1
    }

    fn scores(&self) -> usize {
        self.task.groups().len()
    }

    fn weight(&self, index: usize) -> f64 {
        self.task.groups().get(index).map_or(1.0, |group| f64::from(group.multiplicity))
    }

    fn slope(&self, parameters: &[f64], gradient: &mut [f64]) -> Result<f64> {
        let groups = self.scores();
        check::size("the parameters", groups + 1, parameters.len())?;
        check::size("the gradient", groups + 1, gradient.len())?;
        let found = self.task.risk_and_gradient(&parameters[..groups], parameters[groups], &self.response)?;
        gradient[..groups].copy_from_slice(&found.entries);
        gradient[groups] = found.gain;
        Ok(found.risk)
    }
}

/// The block form: A column by column, then b.
#[derive(Debug, Clone)]
pub struct BlockLandscape {
    /// The task.
    pub task: LinearRegression,
    /// The layer and its prompt length.
    pub response: Response,
}

impl BlockLandscape {
    /// The parameters of a block.
    pub fn parameters(block: &Block) -> Vec<f64> {
        block.parameters()
    }

    /// The block with these parameters.
    pub fn block(&self, parameters: &[f64]) -> Result<Block> {
        Block::from_parameters(self.task.dimension(), parameters)
    }
}

impl Landscape for BlockLandscape {
    fn size(&self) -> usize {
        self.scores() + 1
    }

    fn scores(&self) -> usize {
        self.task.dimension().pow(2)
    }

    fn weight(&self, _index: usize) -> f64 {
        1.0
    }

    fn slope(&self, parameters: &[f64], gradient: &mut [f64]) -> Result<f64> {
        self.block(parameters)?.risk_and_gradient(&self.task, &self.response)?.write(gradient)
    }
}

/// One head in any parametrisation, full (U, v) or separate Q, K, V, O: the flat parameters of a
/// [`RegressionLayer`]; the points over (w, x_q) stay fixed.
#[derive(Debug, Clone)]
pub struct LayerLandscape {
    average: RiskAverage,
    response: Response,
    layer: RegressionLayer,
}

impl LayerLandscape {
    /// The parametrisation of `layer` with the attention and prompt length of `response`.
    ///
    /// # Errors
    /// A layer of several heads, which share the prompt and have no exact risk here, or of another dimension.
    pub fn new(average: RiskAverage, response: Response, layer: &RegressionLayer) -> Result<Self> {
        check::size("the layer (dimension of the task)", average.task().dimension(), layer.dimension())?;
        check::size("the layer (heads; several are simulated)", 1, layer.effective_heads()?.len())?;
        Ok(LayerLandscape { average, response, layer: layer.clone() })
    }
}

impl Landscape for LayerLandscape {
    fn size(&self) -> usize {
        self.layer.parameters().len()
    }

    fn scores(&self) -> usize {
        let size = self.layer.dimension() + 1;
        // Q and K of four matrices, or U of (U, v).
        if self.size() == 4 * size * size { 2 * size * size } else { size * size }
    }

    fn weight(&self, _index: usize) -> f64 {
        1.0
    }

    fn slope(&self, parameters: &[f64], gradient: &mut [f64]) -> Result<f64> {
        check::size("the gradient", self.size(), gradient.len())?;
        let layer = self.layer.with_parameters(parameters)?;
        let heads = layer.effective_heads()?;
        let found = self.average.evaluate(&heads[0], &self.response)?;
        let mut effective: Vec<f64> =
            found.score.row_iter().flat_map(|row| row.iter().copied().collect::<Vec<_>>()).collect();
        effective.extend_from_slice(&found.value);
        layer.pull_back(&effective, gradient);
        Ok(found.risk.value)
    }
}
