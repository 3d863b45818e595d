//! A layer as a predictor with a flat parameter vector: its prediction, and the gradient in every parameter.

use super::RegressionHead;
use super::attend::{Attend, Moments, Workspace};
use super::tasks::PromptDraw;
use crate::error::{Error, Result};
use crate::numerics::{InstructionSet, Stream, check, linalg};
use faer::{Mat, MatRef};

/// How scores become weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AttentionKind {
    /// Weights e^{score} / Σ e^{score}.
    Softmax,
    /// Weights score / L.
    Linear,
}

/// One attention layer that predicts the query's target: Σ_h v_hᵀ Σ_l p_l token_l, with scores tokenᵀ U_h query.
///
/// Its parameters are one flat vector, in one of two forms:
/// - [heads](Self::heads): for each head U row by row, then v;
/// - [projections](Self::projections): Q, K, V and O, each row by row, with U = KᵀQ / √(d + 1) and v the last row of
///   O V, as in the authors' experiments.
///
/// ```
/// use esscher_core::regression::tasks::PromptDraw;
/// use esscher_core::regression::{AttentionKind, RegressionHead, RegressionLayer};
///
/// let head = RegressionHead::block(esscher_core::mat![[0.5]].as_ref(), 2.0)?;
/// let layer = RegressionLayer::heads(AttentionKind::Linear, &[head])?;
/// let prompt = PromptDraw::from_rows(&[1.0, 3.0, 2.0, 1.0], &[1.0], 0.0)?;
/// // 2 · mean of y · x · 0.5 = (3 + 2) / 2.
/// assert_eq!(layer.predict(&prompt)?, 2.5);
/// # Ok::<(), esscher_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct RegressionLayer {
    attention: AttentionKind,
    form: Form,
    dimension: usize,
    parameters: Vec<f64>,
    /// U row by row, then v, for each head: what predicts.
    effective: Vec<f64>,
}

/// What the flat vector means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Heads,
    Projections,
}

/// The largest d with 4 (d + 1)² ≤ 2²⁷ numbers, a gigabyte.
const LARGEST_PROJECTIONS: usize = 5791;

impl RegressionLayer {
    /// Heads side by side; their predictions add.
    ///
    /// # Errors
    /// No head, or heads of different dimension.
    pub fn heads(attention: AttentionKind, heads: &[RegressionHead]) -> Result<Self> {
        let Some(first) = heads.first() else {
            return Err(Error::Empty { what: "the list of heads" });
        };
        let mut parameters = Vec::new();
        for head in heads {
            check::size("a head (dimension)", first.dimension(), head.dimension())?;
            extend_by_rows(&mut parameters, head.score());
            parameters.extend_from_slice(head.value());
        }
        RegressionLayer::of(attention, Form::Heads, first.dimension(), parameters)
    }

    /// One head in separate square matrices of size d + 1.
    ///
    /// # Errors
    /// Matrices of other sizes, or with entries that are not finite.
    pub fn projections(
        attention: AttentionKind,
        query: MatRef<'_, f64>,
        key: MatRef<'_, f64>,
        value: MatRef<'_, f64>,
        output: MatRef<'_, f64>,
    ) -> Result<Self> {
        let size = query.nrows();
        check::not_empty("the covariates (dimension)", size.saturating_sub(1))?;
        let mut parameters = Vec::new();
        for (what, matrix) in [
            ("the query projection", query),
            ("the key projection", key),
            ("the value projection", value),
            ("the output projection", output),
        ] {
            check::size(what, size, matrix.nrows())?;
            check::size(what, size, matrix.ncols())?;
            check::finite_matrix(what, matrix)?;
            extend_by_rows(&mut parameters, matrix);
        }
        RegressionLayer::of(attention, Form::Projections, size - 1, parameters)
    }

    /// Projections with the default initialisation of a linear layer without bias in PyTorch: every entry uniform
    /// between ∓1/√(d + 1).
    ///
    /// # Errors
    /// A dimension of zero, or matrices of more than 2²⁷ numbers together (d from 5792 on).
    pub fn projections_at_random(
        attention: AttentionKind,
        dimension: usize,
        stream: &mut Stream,
    ) -> Result<Self> {
        check::at_least_one("the dimension of the covariates", dimension)?;
        if dimension > LARGEST_PROJECTIONS {
            return Err(Error::OutOfRange {
                what: "the dimension of a layer of projections",
                value: dimension as f64,
                expected: "at most 5791, 2²⁷ numbers in the four matrices",
            });
        }
        let size = dimension + 1;
        let bound = (size as f64).sqrt().recip();
        let parameters = (0..4 * size * size).map(|_| bound * (2.0 * stream.uniform() - 1.0)).collect();
        RegressionLayer::of(attention, Form::Projections, dimension, parameters)
    }

    fn of(attention: AttentionKind, form: Form, dimension: usize, parameters: Vec<f64>) -> Result<Self> {
        let mut layer = RegressionLayer { attention, form, dimension, parameters, effective: Vec::new() };
        layer.update_effective();
        check::finite_vector("the product of the projections", &layer.effective)?;
        Ok(layer)
    }

    /// The dimension d.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// How scores become weights.
    pub fn attention(&self) -> AttentionKind {
        self.attention
    }

    /// The same parameters with the other kind of attention.
    pub fn with_attention(mut self, attention: AttentionKind) -> Self {
        self.attention = attention;
        self
    }

    /// All parameters.
    pub fn parameters(&self) -> &[f64] {
        &self.parameters
    }

    /// ‖scores‖² − ‖values‖² over the parameters: U against v of every head, or Q and K against V and O, as
    /// [`Landscape::balance`](super::Landscape::balance). None where a square exceeds double precision.
    ///
    /// Gradient flow conserves it for linear attention and for the infinite prompt.
    ///
    /// ```
    /// use esscher_core::regression::{AttentionKind, RegressionHead, RegressionLayer};
    /// let head = RegressionHead::block(esscher_core::mat![[3.0]].as_ref(), 2.0)?;
    /// let layer = RegressionLayer::heads(AttentionKind::Linear, &[head.clone(), head])?;
    /// assert_eq!(layer.balance(), Some(10.0)); // twice 3² − 2²
    /// # Ok::<(), esscher_core::Error>(())
    /// ```
    pub fn balance(&self) -> Option<f64> {
        let size = self.dimension + 1;
        let (part, scores) = match self.form {
            Form::Heads => (size * (size + 1), size * size),
            Form::Projections => (4 * size * size, 2 * size * size),
        };
        let balance = |part: &[f64]| {
            let (scores, values) = part.split_at(scores);
            linalg::squared_norm(scores) - linalg::squared_norm(values)
        };
        Some(self.parameters.chunks_exact(part).map(balance).sum::<f64>()).filter(|sum| sum.is_finite())
    }

    /// A layer of the same form with other parameters.
    ///
    /// # Errors
    /// A vector of another length, or with entries that are not finite.
    pub fn with_parameters(&self, parameters: &[f64]) -> Result<Self> {
        check::vector("the parameters of the layer", self.parameters.len(), parameters)?;
        RegressionLayer::of(self.attention, self.form, self.dimension, parameters.to_vec())
    }

    /// (U, v) of each head, whatever the form: what another engine needs to evaluate the same layer.
    ///
    /// # Errors
    /// Products of projections beyond double precision, which the constructors have refused.
    pub fn effective_heads(&self) -> Result<Vec<RegressionHead>> {
        let size = self.dimension + 1;
        self.effective
            .chunks_exact(size * (size + 1))
            .map(|head| {
                let (score, value) = head.split_at(size * size);
                RegressionHead::new(Mat::from_fn(size, size, |i, j| score[i * size + j]).as_ref(), value)
            })
            .collect()
    }

    /// The prediction for one prompt.
    ///
    /// # Errors
    /// A prompt of another dimension, an empty prompt, scores or predictions beyond double precision.
    pub fn predict(&self, prompt: &PromptDraw) -> Result<f64> {
        self.check_prompt(prompt)?;
        let prediction = self.forward(prompt, InstructionSet::PORTABLE, &mut Workspace::default());
        check::finite_number("the prediction", prediction)
    }

    /// The prediction for one prompt and its gradient in all parameters.
    ///
    /// # Errors
    /// As [`Self::predict`], and a gradient beyond double precision.
    pub fn predict_with_gradient(&self, prompt: &PromptDraw) -> Result<(f64, Vec<f64>)> {
        self.check_prompt(prompt)?;
        let mut workspace = Workspace::default();
        let mut effective = vec![0.0; self.effective.len()];
        let prediction =
            self.forward_with_gradient(prompt, InstructionSet::PORTABLE, &mut workspace, &mut effective);
        let mut gradient = vec![0.0; self.parameters.len()];
        self.pull_back(&effective, &mut gradient);
        Ok((
            check::finite_number("the prediction", prediction)?,
            check::finite_result("the gradient of the prediction", gradient)?,
        ))
    }

    fn check_prompt(&self, prompt: &PromptDraw) -> Result<()> {
        check::size("the prompt (dimension)", self.dimension, prompt.dimension())?;
        check::at_least_one("the prompt length", prompt.length())
    }

    /// Numbers in the gradient of [`Self::forward_with_gradient`].
    pub(super) fn effective_length(&self) -> usize {
        self.effective.len()
    }

    /// Whether parameters and their products are numbers.
    pub(super) fn is_finite(&self) -> bool {
        self.parameters.iter().chain(&self.effective).all(|entry| entry.is_finite())
    }

    /// Writes new parameters without checking them: ask [`Self::is_finite`].
    pub(super) fn set_parameters(&mut self, parameters: &[f64]) {
        self.parameters.copy_from_slice(parameters);
        self.update_effective();
    }

    /// The prediction; NaN where it overflows. Sizes have been checked.
    pub(super) fn forward(&self, prompt: &PromptDraw, set: InstructionSet, workspace: &mut Workspace) -> f64 {
        self.for_each_head(prompt, set, workspace, Moments::Prediction, |_, _| {})
    }

    /// The prediction; its gradient in (U, v) of every head is written to `gradient`, of [`Self::effective_length`].
    pub(super) fn forward_with_gradient(
        &self,
        prompt: &PromptDraw,
        set: InstructionSet,
        workspace: &mut Workspace,
        gradient: &mut [f64],
    ) -> f64 {
        let size = self.dimension + 1;
        let mut heads = gradient.chunks_exact_mut(size * (size + 1));
        self.for_each_head(prompt, set, workspace, Moments::Gradient, |mean, slope| {
            if let Some(head) = heads.next() {
                self.write_gradient(prompt.query(), mean, slope, head);
            }
        })
    }

    /// The gradient of one head: ∂f/∂U = slope · queryᵀ, ∂f/∂v = mean.
    pub(super) fn write_gradient(&self, query: &[f64], mean: &[f64], slope: &[f64], head: &mut [f64]) {
        let size = self.dimension + 1;
        let (score, value) = head.split_at_mut(size * size);
        for (row, slope) in score.chunks_exact_mut(size).zip(slope) {
            row.iter_mut().zip(query).for_each(|(entry, query)| *entry = slope * query);
        }
        value.copy_from_slice(mean);
    }

    /// Whether a single head predicts.
    pub(super) fn has_one_head(&self) -> bool {
        self.effective.len() == (self.dimension + 1) * (self.dimension + 2)
    }

    /// U row by row and v of the first head.
    pub(super) fn only_head(&self, size: usize) -> (&[f64], &[f64]) {
        self.effective[..size * (size + 1)].split_at(size * size)
    }

    fn for_each_head(
        &self,
        prompt: &PromptDraw,
        set: InstructionSet,
        workspace: &mut Workspace,
        moments: Moments,
        mut take: impl FnMut(&[f64], &[f64]),
    ) -> f64 {
        let size = self.dimension + 1;
        workspace.read(prompt.tokens(), size);
        let mut prediction = 0.0;
        for head in self.effective.chunks_exact(size * (size + 1)) {
            let (score, value) = head.split_at(size * size);
            for (entry, row) in workspace.tilt.iter_mut().zip(score.chunks_exact(size)) {
                *entry = linalg::dot(row, prompt.query());
            }
            prediction += set.run(Attend { attention: self.attention, value, moments, workspace });
            take(&workspace.mean, &workspace.slope);
        }
        prediction
    }

    /// Turns a gradient in (U, v) into one in the parameters; linear in the gradient.
    pub(super) fn pull_back(&self, effective: &[f64], gradient: &mut [f64]) {
        if self.form == Form::Heads {
            gradient.copy_from_slice(effective);
            return;
        }
        let size = self.dimension + 1;
        let scale = (size as f64).sqrt().recip();
        let [query, key, value, output] = parts(&self.parameters, size * size);
        let (score, row) = effective.split_at(size * size);
        let (to_query, rest) = gradient.split_at_mut(size * size);
        let (to_key, rest) = rest.split_at_mut(size * size);
        let (to_value, to_output) = rest.split_at_mut(size * size);
        // U = KᵀQ s: dQ = s K dU, dK = s Q dUᵀ.
        for i in 0..size {
            for j in 0..size {
                let (mut of_query, mut of_key) = (0.0, 0.0);
                for l in 0..size {
                    of_query += key[i * size + l] * score[l * size + j];
                    of_key += query[i * size + l] * score[j * size + l];
                }
                to_query[i * size + j] = scale * of_query;
                to_key[i * size + j] = scale * of_key;
            }
        }
        // v = Vᵀ o with o the last row of O: dV = o dvᵀ, do = V dv.
        let last = &output[(size - 1) * size..];
        to_output[..(size - 1) * size].fill(0.0);
        for i in 0..size {
            to_output[(size - 1) * size + i] = linalg::dot(&value[i * size..(i + 1) * size], row);
            for j in 0..size {
                to_value[i * size + j] = last[i] * row[j];
            }
        }
    }

    fn update_effective(&mut self) {
        if self.form == Form::Heads {
            self.effective.clone_from(&self.parameters);
            return;
        }
        let size = self.dimension + 1;
        let scale = (size as f64).sqrt().recip();
        self.effective.clear();
        self.effective.resize(size * (size + 1), 0.0);
        let [query, key, value, output] = parts(&self.parameters, size * size);
        let (score, row) = self.effective.split_at_mut(size * size);
        for l in 0..size {
            for i in 0..size {
                linalg::add_scaled(
                    &mut score[i * size..(i + 1) * size],
                    scale * key[l * size + i],
                    &query[l * size..(l + 1) * size],
                );
            }
            linalg::add_scaled(row, output[(size - 1) * size + l], &value[l * size..(l + 1) * size]);
        }
    }
}

/// Q, K, V and O out of the flat vector.
fn parts(parameters: &[f64], size: usize) -> [&[f64]; 4] {
    std::array::from_fn(|index| &parameters[index * size..(index + 1) * size])
}

fn extend_by_rows(parameters: &mut Vec<f64>, matrix: MatRef<'_, f64>) {
    for i in 0..matrix.nrows() {
        parameters.extend((0..matrix.ncols()).map(|j| matrix[(i, j)]));
    }
}
