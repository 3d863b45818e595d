//! How attention answers Gaussian tokens: the three functions of σ = τ² through which a risk knows the layer.
//!
//! For centred Gaussian tokens of covariance G, a tilt θ and a value direction v put σ = ⟨θ, Gθ⟩, a = ⟨v, Gθ⟩
//! and q = ⟨v, Gv⟩. Every layer here predicts with mean C₁a and second moment C₂a² + Dq:
//!
//! | layer | C₁ | C₂ | D |
//! |---|---|---|---|
//! | infinite prompt, softmax or linear | 1 | 1 | 0 |
//! | softmax, L tokens | c₁(σ) | c₂(σ) | 1 − c₁(σ) |
//! | linear, L tokens | 1 | 1 + 1/L | σ/L |
//!
//! so that risks, gradients and flows are written once, for all layers and all lengths.

use crate::error::{Error, Result};
use crate::numerics::{FormNode, QuadraticForm};
use crate::prompt::PromptLength;
use crate::softmax_weights::{MAX_SCORE_DEVIATION, NODES, Panels, WeightMoments};
use std::fmt;
use std::sync::{Arc, OnceLock};

/// A layer at a prompt length, as functions of σ.
#[derive(Clone)]
pub struct Response(Kind);

#[derive(Clone)]
enum Kind {
    Infinite,
    Softmax(Arc<SoftmaxTable>),
    Linear(PromptLength),
}

/// The three functions at one σ with their derivatives in σ; C₁ and C₂ by what they lack to 1.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ResponseAt {
    /// 1 − C₁.
    pub first_deficit: f64,
    /// 1 − C₂.
    pub second_deficit: f64,
    /// D.
    pub spread: f64,
    /// dC₁/dσ.
    pub first_slope: f64,
    /// dC₂/dσ.
    pub second_slope: f64,
    /// dD/dσ.
    pub spread_slope: f64,
}

impl Response {
    /// The infinite prompt, where softmax and linear attention agree.
    pub fn infinite() -> Self {
        Response(Kind::Infinite)
    }

    /// Softmax attention over L tokens: exact, tabulated once where it is needed (to 1e-9 of 1 − C₁).
    pub fn softmax(length: PromptLength) -> Self {
        Response(Kind::Softmax(Arc::new(SoftmaxTable::new(length))))
    }

    /// Linear attention, V (1/L) Σ z zᵀ U z_q, over L tokens: closed form.
    pub fn linear(length: PromptLength) -> Self {
        Response(Kind::Linear(length))
    }

    /// L; none for the infinite prompt.
    pub fn length(&self) -> Option<PromptLength> {
        match &self.0 {
            Kind::Infinite => None,
            Kind::Softmax(table) => Some(table.length),
            Kind::Linear(length) => Some(*length),
        }
    }

    /// Nodes that integrate these functions against the law of a quadratic form; `pairs` for gradients.
    ///
    /// On infinite prompts and for linear attention only E D needs the law at all, and D is linear in σ.
    pub(super) fn nodes(&self, law: &QuadraticForm, pairs: bool) -> Vec<FormNode> {
        match self.0 {
            Kind::Infinite | Kind::Linear(_) => vec![law.mean_node()],
            Kind::Softmax(_) => law.nodes(pairs),
        }
    }

    /// The functions at σ.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if σ is negative, not a number, or beyond the square of
    /// [`MAX_SCORE_DEVIATION`] for softmax at finite length.
    pub fn at(&self, sigma: f64) -> Result<ResponseAt> {
        if !(sigma >= 0.0 && sigma.is_finite()) {
            return Err(out_of_range(sigma));
        }
        Ok(match &self.0 {
            Kind::Infinite => ResponseAt::default(),
            Kind::Softmax(table) => table.at(sigma)?,
            Kind::Linear(length) => ResponseAt {
                second_deficit: -1.0 / length.as_f64(),
                spread: sigma / length.as_f64(),
                spread_slope: 1.0 / length.as_f64(),
                ..ResponseAt::default()
            },
        })
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Infinite => formatter.write_str("Response::infinite()"),
            Kind::Softmax(table) => write!(formatter, "Response::softmax({})", table.length.get()),
            Kind::Linear(length) => write!(formatter, "Response::linear({})", length.get()),
        }
    }
}

impl fmt::Display for Response {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Infinite => formatter.write_str("infinite prompt"),
            Kind::Softmax(table) => write!(formatter, "softmax, {} tokens", table.length.get()),
            Kind::Linear(length) => write!(formatter, "linear, {} tokens", length.get()),
        }
    }
}

/// Chebyshev coefficients of (1 − c₁, 1 − c₂, c₁′, c₂′) in τ, panel by panel, computed when first asked for.
struct SoftmaxTable {
    length: PromptLength,
    panels: Vec<OnceLock<Panel>>,
}

type Panel = Box<[[f64; 4]; NODES]>;

impl SoftmaxTable {
    fn new(length: PromptLength) -> Self {
        let panels = Panels::panel(MAX_SCORE_DEVIATION) + 1;
        SoftmaxTable { length, panels: std::iter::repeat_with(OnceLock::new).take(panels).collect() }
    }

    fn at(&self, sigma: f64) -> Result<ResponseAt> {
        let tau = sigma.sqrt();
        let index = Panels::panel(tau);
        let cell = self.panels.get(index).ok_or_else(|| out_of_range(sigma))?;
        let panel = match cell.get() {
            Some(panel) => panel,
            None => {
                let panel = self.compute(index)?;
                cell.get_or_init(|| panel)
            }
        };
        let (start, width) = Panels::span(index);
        let x = 2.0 * (tau - start) / width - 1.0;
        // Clenshaw's recurrence, the four functions side by side.
        let (mut last, mut before) = ([0.0; 4], [0.0; 4]);
        for coefficients in panel[1..].iter().rev() {
            let mut next = [0.0; 4];
            for lane in 0..4 {
                next[lane] = 2.0 * x * last[lane] - before[lane] + coefficients[lane];
            }
            (before, last) = (last, next);
        }
        let mut value = [0.0; 4];
        for lane in 0..4 {
            value[lane] = x * last[lane] - before[lane] + panel[0][lane];
        }
        let [first_deficit, second_deficit, first_slope, second_slope] = value;
        Ok(ResponseAt {
            first_deficit,
            second_deficit,
            spread: first_deficit,
            first_slope,
            second_slope,
            spread_slope: -first_slope,
        })
    }

    fn compute(&self, index: usize) -> Result<Panel> {
        let mut values = [[0.0; 4]; NODES];
        for (value, tau) in values.iter_mut().zip(Panels::nodes(index)) {
            let found = WeightMoments::at(tau.min(MAX_SCORE_DEVIATION), &[self.length])?;
            let shrinkage = found[0].shrinkage();
            *value = [
                shrinkage.first_deficit,
                shrinkage.second_deficit,
                shrinkage.first_slope,
                shrinkage.second_slope,
            ];
        }
        // Coefficients of the interpolating polynomial at Chebyshev nodes of the first kind.
        let mut panel = Box::new([[0.0; 4]; NODES]);
        for (degree, coefficients) in panel.iter_mut().enumerate() {
            let scale = if degree == 0 { 1.0 } else { 2.0 } / NODES as f64;
            for (node, value) in values.iter().enumerate() {
                let angle = std::f64::consts::PI * (node as f64 + 0.5) / NODES as f64;
                let factor = scale * (degree as f64 * angle).cos();
                for lane in 0..4 {
                    coefficients[lane] += factor * value[lane];
                }
            }
        }
        Ok(panel)
    }
}

fn out_of_range(sigma: f64) -> Error {
    Error::OutOfRange {
        what: "the variance of the scores, τ²",
        value: sigma,
        expected: "a finite number from 0 to 1e8: make the score matrix or the covariates smaller",
    }
}
