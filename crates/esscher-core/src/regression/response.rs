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
//! | two softmax heads, (b/2)(T₊ − T₋) with tilts ±θ | c₁(σ) | see [`OppositePair`] | ≈ sinh(σ)/L |
//!
//! so that risks, gradients and flows are written once, for all layers and all lengths.

use crate::error::{Error, Result};
use crate::numerics::radius::RadiusLaw;
use crate::numerics::{FormNode, QuadraticForm};
use crate::prompt::PromptLength;
use crate::softmax_weights::{MAX_SCORE_DEVIATION, NODES, OppositePair, Panels, Shrinkage, WeightMoments};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// A layer at a prompt length, as functions of σ. Cheap to clone: clones share their tables.
#[derive(Clone)]
pub struct Response {
    kind: Kind,
    /// By dimension, the functions averaged over the radius of a standard normal vector.
    radial: Arc<Mutex<BTreeMap<usize, Arc<Table>>>>,
}

#[derive(Clone)]
enum Kind {
    Infinite,
    Softmax(Arc<Table>),
    Opposite(Arc<Table>),
    Linear(PromptLength),
}

/// The three functions at one σ with their derivatives in σ; C₁ and C₂ by what they lack to 1.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ResponseAt {
    /// 1 − C₁.
    pub first_deficit: f64,
    /// 1 − C₂.
    pub second_deficit: f64,
    /// The third function, D.
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
        Response::of(Kind::Infinite)
    }

    /// Softmax attention over L tokens: exact, tabulated once where it is needed (to 1e-9 of 1 − C₁).
    pub fn softmax(length: PromptLength) -> Self {
        Response::of(Kind::Softmax(Arc::new(Table::new(length, MAX_SCORE_DEVIATION, move |tau| {
            softmax_at(tau, length)
        }))))
    }

    /// Two softmax heads over the same L tokens with opposite scores and opposite values, (U, v/2) and (−U, −v/2):
    /// what is odd in the scores adds up, and most of what finite length does cancels. Exact, for τ below 19.
    pub fn opposite_heads(length: PromptLength) -> Self {
        let highest = OppositePair::MAX_SCORE_DEVIATION;
        Response::of(Kind::Opposite(Arc::new(Table::new(length, highest, move |tau| {
            opposite_at(tau, length)
        }))))
    }

    /// Linear attention, V (1/L) Σ z zᵀ U z_q, over L tokens: closed form.
    pub fn linear(length: PromptLength) -> Self {
        Response::of(Kind::Linear(length))
    }

    fn of(kind: Kind) -> Self {
        Response { kind, radial: Arc::default() }
    }

    /// Whether this is the infinite prompt.
    pub fn is_infinite(&self) -> bool {
        matches!(self.kind, Kind::Infinite)
    }

    /// L if this is linear attention at finite length.
    pub(super) fn linear_length(&self) -> Option<PromptLength> {
        match self.kind {
            Kind::Linear(length) => Some(length),
            _ => None,
        }
    }

    /// The functions averaged over a radius r² ~ χ² of `dimension` degrees, at σ = r²σ̂: E r²(1 − C₁), E r²(1 − C₂),
    /// E D, E r⁴C₁′, E r⁴C₂′, E r²D′ in the fields of [`ResponseAt`].
    ///
    /// The heavy tail of a query is in its radius: here it is integrated, not sampled.
    pub(super) fn radial(&self, dimension: usize) -> Result<RadialResponse> {
        let mut tables = self.radial.lock().unwrap_or_else(PoisonError::into_inner);
        let table = tables.entry(dimension).or_insert_with(|| {
            let response = Response::of(self.kind.clone());
            let nodes = RadiusLaw::Chi { degrees: dimension }.quadrature();
            let length = self.length().unwrap_or(PromptLength::MAX);
            Arc::new(Table::new(length, MAX_SCORE_DEVIATION, move |tau| radial_at(&response, &nodes, tau)))
        });
        Ok(RadialResponse { table: table.clone(), dimension })
    }

    /// L; none for the infinite prompt.
    pub fn length(&self) -> Option<PromptLength> {
        match &self.kind {
            Kind::Infinite => None,
            Kind::Softmax(table) | Kind::Opposite(table) => Some(table.length),
            Kind::Linear(length) => Some(*length),
        }
    }

    /// Nodes that integrate these functions against the law of a quadratic form; `pairs` for gradients.
    ///
    /// On infinite prompts and for linear attention only E D needs the law at all, and D is linear in σ.
    pub(super) fn nodes(&self, law: &QuadraticForm, pairs: bool) -> Result<Vec<FormNode>> {
        match self.kind {
            Kind::Infinite | Kind::Linear(_) => Ok(vec![law.mean_node()]),
            Kind::Softmax(_) | Kind::Opposite(_) => {
                let mut nodes = law.nodes(pairs)?;
                // Beyond the tables: scores that are too rare to count, or else an error below.
                nodes.retain(|node| node.weight > NEGLIGIBLE || self.at(node.q).is_ok());
                Ok(nodes)
            }
        }
    }

    /// The functions at σ.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if σ is negative or not a number, [`Error::Overflow`] if it is beyond the square of the
    /// largest τ that softmax at finite length is tabulated for (9999; 19 for opposite heads).
    pub fn at(&self, sigma: f64) -> Result<ResponseAt> {
        if !(sigma >= 0.0 && sigma.is_finite()) {
            return Err(out_of_range(sigma));
        }
        Ok(match &self.kind {
            Kind::Infinite => ResponseAt::default(),
            Kind::Softmax(table) | Kind::Opposite(table) => table.at(sigma)?,
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
        match &self.kind {
            Kind::Infinite => formatter.write_str("Response::infinite()"),
            Kind::Softmax(table) => write!(formatter, "Response::softmax({})", table.length.get()),
            Kind::Opposite(table) => write!(formatter, "Response::opposite_heads({})", table.length.get()),
            Kind::Linear(length) => write!(formatter, "Response::linear({})", length.get()),
        }
    }
}

impl fmt::Display for Response {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Infinite => formatter.write_str("infinite prompt"),
            Kind::Softmax(table) => write!(formatter, "softmax, {} tokens", table.length.get()),
            Kind::Opposite(table) => {
                write!(formatter, "two opposite softmax heads, {} tokens", table.length.get())
            }
            Kind::Linear(length) => write!(formatter, "linear, {} tokens", length.get()),
        }
    }
}

/// A response averaged over the radius of the query.
#[derive(Clone)]
pub(super) struct RadialResponse {
    table: Arc<Table>,
    pub(super) dimension: usize,
}

impl RadialResponse {
    pub(super) fn at(&self, sigma: f64) -> Result<ResponseAt> {
        self.table.at(sigma)
    }
}

/// Nodes of less weight may lie beyond the tables.
const NEGLIGIBLE: f64 = 1e-16;

fn radial_at(response: &Response, nodes: &[(f64, f64)], tau: f64) -> Result<[f64; FUNCTIONS]> {
    let mut total = [0.0; FUNCTIONS];
    for &(radius, weight) in nodes {
        let square = radius * radius;
        let at = match response.at(square * tau * tau) {
            Ok(at) => at,
            Err(_) if weight * square * square < NEGLIGIBLE => continue,
            Err(error) => return Err(error),
        };
        let fourth = square * square;
        total[0] += weight * square * at.first_deficit;
        total[1] += weight * square * at.second_deficit;
        total[2] += weight * at.spread;
        total[3] += weight * fourth * at.first_slope;
        total[4] += weight * fourth * at.second_slope;
        total[5] += weight * square * at.spread_slope;
    }
    Ok(total)
}

/// Values that are tabulated, in the order of the fields of [`ResponseAt`].
const FUNCTIONS: usize = 6;

/// Chebyshev coefficients in τ of the functions and their slopes, panel by panel, computed when first asked for.
struct Table {
    length: PromptLength,
    values_at: Box<dyn Fn(f64) -> Result<[f64; FUNCTIONS]> + Send + Sync>,
    panels: Vec<OnceLock<Panel>>,
}

type Panel = Box<[[f64; FUNCTIONS]; NODES]>;

fn softmax_at(tau: f64, length: PromptLength) -> Result<[f64; FUNCTIONS]> {
    let shrinkage = WeightMoments::at(tau, &[length])?[0].shrinkage();
    let Shrinkage { first_deficit, second_deficit, first_slope, second_slope } = shrinkage;
    Ok([first_deficit, second_deficit, first_deficit, first_slope, second_slope, -first_slope])
}

fn opposite_at(tau: f64, length: PromptLength) -> Result<[f64; FUNCTIONS]> {
    let pair = OppositePair::at(tau, length)?;
    Ok([
        pair.first_deficit,
        pair.second_deficit,
        pair.spread,
        pair.first_slope,
        pair.second_slope,
        pair.spread_slope,
    ])
}

impl Table {
    fn new(
        length: PromptLength,
        highest: f64,
        values_at: impl Fn(f64) -> Result<[f64; FUNCTIONS]> + Send + Sync + 'static,
    ) -> Self {
        // Whole panels below the highest τ.
        let panels = std::iter::repeat_with(OnceLock::new).take(Panels::panel(highest)).collect();
        Table { length, values_at: Box::new(values_at), panels }
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
        // Clenshaw's recurrence, the functions side by side.
        let (mut last, mut before) = ([0.0; FUNCTIONS], [0.0; FUNCTIONS]);
        for coefficients in panel[1..].iter().rev() {
            let mut next = [0.0; FUNCTIONS];
            for lane in 0..FUNCTIONS {
                next[lane] = 2.0 * x * last[lane] - before[lane] + coefficients[lane];
            }
            (before, last) = (last, next);
        }
        let mut value = [0.0; FUNCTIONS];
        for lane in 0..FUNCTIONS {
            value[lane] = x * last[lane] - before[lane] + panel[0][lane];
        }
        let [first_deficit, second_deficit, spread, first_slope, second_slope, spread_slope] = value;
        Ok(ResponseAt { first_deficit, second_deficit, spread, first_slope, second_slope, spread_slope })
    }

    fn compute(&self, index: usize) -> Result<Panel> {
        let values: Vec<[f64; FUNCTIONS]> =
            Panels::nodes(index).into_par_iter().map(|tau| (self.values_at)(tau)).collect::<Result<_>>()?;
        // Coefficients of the interpolating polynomial at Chebyshev nodes of the first kind.
        let mut panel = Box::new([[0.0; FUNCTIONS]; NODES]);
        for (degree, coefficients) in panel.iter_mut().enumerate() {
            let scale = if degree == 0 { 1.0 } else { 2.0 } / NODES as f64;
            for (node, value) in values.iter().enumerate() {
                let angle = std::f64::consts::PI * (node as f64 + 0.5) / NODES as f64;
                let factor = scale * (degree as f64 * angle).cos();
                for lane in 0..FUNCTIONS {
                    coefficients[lane] += factor * value[lane];
                }
            }
        }
        Ok(panel)
    }
}

/// Not a number, or scores that no table reaches: for a flow, a step that went too far.
fn out_of_range(sigma: f64) -> Error {
    if sigma.is_nan() || sigma < 0.0 {
        return Error::OutOfRange {
            what: "the variance of the scores, τ²",
            value: sigma,
            expected: "zero or more",
        };
    }
    Error::Overflow { what: "the variance of the scores (from 9999² on, or 19² for opposite heads)" }
}
