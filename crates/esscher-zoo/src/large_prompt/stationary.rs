//! The stationary law of what decays: with constant Λ and readout, y = Σ_j C Λʲ b_j over independent b = B u, a geometric sum.
//!
//! Mean C(I − Λ)⁻¹E b + D E u; variance C P Cᵀ + terms with D, where P = ΛPΛᵀ + Cov(b), that is Cov(b_i, b_k)/(1 − λ_i λ_k) for diagonal Λ;
//! horizon 1/(1 − max |λ|), λ the eigenvalues.
//!
//! Where ports are projections of the token, b is a polynomial of degree two in it (key times value). Then E b depends on mean and
//! covariance of the token law alone, whatever the law, and a few points with weights give it exactly; for mixtures of Gaussians three
//! Gauss-Hermite nodes per direction give the covariance of b, of degree four, exactly, too. Everything else is sampled.

use super::setting::{Feed, Source};
use super::{Draws, Limit, Setting};
use crate::dynamical_system::{DynamicalSystem, SystemStep, Transition};
use crate::error::{Error, Result};
use crate::mechanism::{Given, Mechanism};
use esscher_core::Accuracy;
use esscher_core::measure::Gaussian;
use esscher_core::numerics::{Stream, linalg};
use faer::Mat;

/// A stationary law, as far as its first two moments and its memory go.
#[derive(Debug, Clone, PartialEq)]
pub struct Stationary {
    /// E y.
    pub mean: Limit,
    /// Σ_c Var(y_c), the variance that no prompt length removes.
    pub variance: f64,
    /// Whether the variance is a sum over nodes that is exact, and not over draws.
    pub variance_is_exact: bool,
    /// 1/(1 − max |λ|), tokens after which 1/e is left of the slowest state.
    pub horizon: f64,
}

/// Relative error of the exact moments: rounding of sums over nodes, and what may hide a polynomial of higher degree.
const TOLERANCE: f64 = 1e-10;

/// The stationary law of a mechanism with a realisation whose transition and readout do not depend on the token.
///
/// # Errors
/// A mechanism without realisation, a transition or readout that changes from token to token, or one that does not decay.
pub fn stationary(mechanism: &dyn Mechanism, setting: &Setting, draws: &Draws) -> Result<Stationary> {
    let system = mechanism
        .dynamical_system()
        .ok_or_else(|| missing(mechanism, "it is no linear dynamical system; simulate it instead"))?;
    let feed = setting.feed(&mechanism.signature())?;
    let mut evaluator = Evaluator { mechanism, system, feed: &feed, law: None };

    let mean = evaluator.exact_mean(setting)?;
    let nodes = mean.as_ref().and_then(|_| gauss_hermite(setting));
    let (drawn_mean, covariance, count) = match &nodes {
        Some(nodes) => evaluator.moments(nodes)?,
        None => evaluator.moments(&Points::drawn(setting, draws)?)?,
    };
    let law = evaluator.law.ok_or_else(|| missing(mechanism, "it realises no step"))?;
    let slowest = law.slowest().ok_or_else(|| missing(mechanism, "its transition has no eigenvalues"))?;
    if slowest >= 1.0 {
        return Err(missing(mechanism, "a state does not decay"));
    }
    let (value, squared_error, variance) = law.answer(mean.as_ref().unwrap_or(&drawn_mean), &covariance);
    let (error, accuracy) = match mean {
        Some(_) => (TOLERANCE * linalg::root_of_squares(&value), Accuracy::Exact),
        None => ((squared_error / count).max(0.0).sqrt(), Accuracy::Sampled),
    };
    Ok(Stationary {
        mean: Limit { value, error, accuracy },
        variance,
        variance_is_exact: nodes.is_some(),
        horizon: 1.0 / (1.0 - slowest),
    })
}

fn missing(mechanism: &dyn Mechanism, reason: &'static str) -> Error {
    Error::Missing { mechanism: format!("{mechanism:?}"), what: "stationary law in closed form", reason }
}

/// Weighted tokens, one after the other.
struct Points {
    dimension: usize,
    weights: Vec<f64>,
    tokens: Vec<f64>,
    /// For unbiased covariances: how many draws these are, infinite for exact nodes.
    draws: f64,
}

/// Draws beyond which the covariance of b is known well enough.
const MOST_DRAWS: usize = 16_384;

/// Nodes beyond which a product rule is not worth it.
const MOST_NODES: usize = 16_384;

impl Points {
    fn drawn(setting: &Setting, draws: &Draws) -> Result<Self> {
        let dimension = setting.tokens.dimension();
        let count = (draws.tokens * draws.prompts as usize).clamp(2, MOST_DRAWS);
        let mut tokens = vec![0.0; count * dimension];
        setting.tokens.sample(&mut Stream::new(draws.seed, 0, 2), &mut tokens)?;
        Ok(Points { dimension, weights: vec![1.0 / count as f64; count], tokens, draws: count as f64 })
    }

    /// The mean, and pairs at this distance (in units of √rank) along every direction of the root: exact for polynomials of degree two.
    fn around(gaussian: &Gaussian, distance: f64) -> Self {
        let (mean, root) = (gaussian.mean_vector(), gaussian.root());
        let rank = root.ncols() as f64;
        let outer = 1.0 / (distance * distance);
        let mut points = Points {
            dimension: mean.len(),
            weights: vec![if root.ncols() == 0 { 1.0 } else { 1.0 - outer }],
            tokens: mean.to_vec(),
            draws: f64::INFINITY,
        };
        for axis in 0..root.ncols() {
            for sign in [-1.0, 1.0] {
                let step = sign * distance * rank.sqrt();
                points.weights.push(0.5 * outer / rank);
                points.tokens.extend((0..mean.len()).map(|i| mean[i] + step * root[(i, axis)]));
            }
        }
        points
    }
}

/// Three nodes per direction of every Gaussian component: exact for polynomials of degree five; none if that is too many.
fn gauss_hermite(setting: &Setting) -> Option<Points> {
    let components = setting.tokens.as_gaussian_mixture()?;
    let dimension = setting.tokens.dimension();
    let nodes = |rank: usize| 3usize.checked_pow(u32::try_from(rank).ok()?);
    let total = components.iter().try_fold(0usize, |sum, component| {
        sum.checked_add(nodes(component.gaussian.root().ncols())?).filter(|&sum| sum <= MOST_NODES)
    });
    let mut points = Points {
        dimension,
        weights: Vec::with_capacity(total?),
        tokens: Vec::with_capacity(total? * dimension),
        draws: f64::INFINITY,
    };
    for component in &components {
        let (mean, root) = (component.gaussian.mean_vector(), component.gaussian.root());
        for index in 0..nodes(root.ncols())? {
            let (mut weight, mut token, mut rest) = (component.weight(), mean.to_vec(), index);
            for axis in 0..root.ncols() {
                let (node, share) =
                    [(0.0, 2.0 / 3.0), (3f64.sqrt(), 1.0 / 6.0), (-(3f64.sqrt()), 1.0 / 6.0)][rest % 3];
                rest /= 3;
                weight *= share;
                linalg::add_scaled(&mut token, node, root.col(axis).try_as_col_major()?.as_slice());
            }
            points.weights.push(weight);
            points.tokens.append(&mut token);
        }
    }
    Some(points)
}

/// Evaluates (B u, u) at tokens and remembers the part of the system that must not change.
struct Evaluator<'a> {
    mechanism: &'a dyn Mechanism,
    system: &'a dyn DynamicalSystem,
    feed: &'a Feed,
    law: Option<Law>,
}

/// Tokens realised at once: dense matrices per token.
const BLOCK: usize = 64;

impl Evaluator<'_> {
    /// (B u, u) of every token.
    fn vectors(&mut self, points: &Points) -> Result<Vec<Vec<f64>>> {
        let parameters: Vec<&[f64]> = self.feed.parameters.iter().map(Vec::as_slice).collect();
        let mut vectors = Vec::with_capacity(points.weights.len());
        for block in points.tokens.chunks(BLOCK * points.dimension) {
            // The first step may start a system: it stands for itself and is left out.
            let tokens = [&block[..points.dimension], block].concat();
            let ports = self.feed.rows(&tokens)?;
            let rows: Vec<&[f64]> = ports.iter().map(Vec::as_slice).collect();
            let length = tokens.len() / points.dimension;
            let given = Given { length, tokens: &rows, parameters: &parameters };
            for (token, step) in self.system.realise(&given).iter().enumerate().skip(1) {
                let found = Law::of(step);
                match &self.law {
                    None => self.law = Some(found),
                    Some(law) if law.same(&found) => {}
                    Some(_) => {
                        let reason = "its transition or readout changes from token to token";
                        return Err(missing(self.mechanism, reason));
                    }
                }
                let input = given.row(self.system.input_port(), token);
                let written = step.input.chunks_exact(input.len()).map(|row| linalg::dot(row, input));
                vectors.push(written.chain(input.iter().copied()).collect());
            }
        }
        Ok(vectors)
    }

    /// Mean and covariance of (B u, u), and the number of draws behind them.
    fn moments(&mut self, points: &Points) -> Result<(Vec<f64>, Mat<f64>, f64)> {
        let vectors = self.vectors(points)?;
        let size = vectors.first().map_or(0, Vec::len);
        let mut mean = vec![0.0; size];
        for (weight, vector) in points.weights.iter().zip(&vectors) {
            linalg::add_scaled(&mut mean, *weight, vector);
        }
        let mut covariance = Mat::zeros(size, size);
        for (weight, vector) in points.weights.iter().zip(&vectors) {
            let gap = linalg::difference(vector, &mean);
            linalg::add_outer(&mut covariance, *weight, &gap, &gap);
        }
        if points.draws.is_finite() {
            let unbiased = points.draws / (points.draws - 1.0);
            covariance = Mat::from_fn(size, size, |i, j| unbiased * covariance[(i, j)]);
        }
        Ok((mean, covariance, points.draws))
    }

    /// E (B u, u) where it is of degree two in the token, which two different rules agree upon; none otherwise.
    fn exact_mean(&mut self, setting: &Setting) -> Result<Option<Vec<f64>>> {
        if self.feed.ports.iter().any(|(_, source)| matches!(source, Source::Function(_))) {
            return Ok(None);
        }
        let tokens = &setting.tokens;
        let gaussian = Gaussian::new(&tokens.mean()?, tokens.covariance()?.as_ref())?;
        let (near, _, _) = self.moments(&Points::around(&gaussian, 1.0))?;
        let (far, _, _) = self.moments(&Points::around(&gaussian, 2.0))?;
        let size = near.iter().fold(0.0, |size: f64, entry| size.max(entry.abs()));
        let agree = near.iter().zip(&far).all(|(a, b)| (a - b).abs() <= TOLERANCE * size);
        Ok(agree.then_some(near))
    }
}

/// The part of a system that must not change: transition, readout, feedthrough.
struct Law {
    transition: Transition,
    readout: Vec<f64>,
    feedthrough: Vec<f64>,
}

/// Doublings after which the sum of a geometric series has 2⁶⁰ terms.
const DOUBLINGS: usize = 60;

impl Law {
    fn of(step: &SystemStep) -> Self {
        Law {
            transition: step.transition.clone(),
            readout: step.readout.clone(),
            feedthrough: step.feedthrough.clone(),
        }
    }

    fn same(&self, other: &Law) -> bool {
        let close = |a: &[f64], b: &[f64]| {
            a.len() == b.len() && a.iter().zip(b).all(|(x, y)| (x - y).abs() <= 1e-12 * x.abs().max(y.abs()))
        };
        let transitions = match (&self.transition, &other.transition) {
            (Transition::Diagonal(a), Transition::Diagonal(b))
            | (Transition::Dense(a), Transition::Dense(b)) => close(a, b),
            _ => false,
        };
        transitions && close(&self.readout, &other.readout) && close(&self.feedthrough, &other.feedthrough)
    }

    fn states(&self) -> usize {
        match &self.transition {
            Transition::Diagonal(decays) => decays.len(),
            Transition::Dense(matrix) => matrix.len().isqrt(),
        }
    }

    /// Λ as a matrix.
    fn dense(matrix: &[f64], states: usize) -> Mat<f64> {
        Mat::from_fn(states, states, |i, j| matrix[i * states + j])
    }

    /// max |λ|.
    fn slowest(&self) -> Option<f64> {
        let sizes: Vec<f64> = match &self.transition {
            Transition::Diagonal(decays) => decays.iter().map(|decay| decay.abs()).collect(),
            Transition::Dense(matrix) => {
                let eigenvalues = Self::dense(matrix, self.states()).eigenvalues().ok()?;
                eigenvalues.iter().map(|value| value.re.hypot(value.im)).collect()
            }
        };
        Some(sizes.into_iter().fold(0.0, f64::max))
    }

    /// (I − Λ)⁻¹ᵀ applied to a row of C: what the row takes of all past b.
    fn summed(&self, readout: &[f64]) -> Vec<f64> {
        match &self.transition {
            Transition::Diagonal(decays) => {
                readout.iter().zip(decays).map(|(c, decay)| c / (1.0 - decay)).collect()
            }
            Transition::Dense(matrix) => {
                // Σ_{j < 2n} Λʲ = (I + Λⁿ) Σ_{j < n} Λʲ.
                let mut power = Self::dense(matrix, self.states());
                let mut sum = readout.to_vec();
                for _ in 0..DOUBLINGS {
                    let further = linalg::apply_transpose(power.as_ref(), &sum);
                    linalg::add_scaled(&mut sum, 1.0, &further);
                    power = &power * &power;
                }
                sum
            }
        }
    }

    /// P = ΛPΛᵀ + Q, the covariance of the stationary state.
    fn state_covariance(&self, written: &Mat<f64>) -> Mat<f64> {
        match &self.transition {
            Transition::Diagonal(decays) => Mat::from_fn(decays.len(), decays.len(), |i, k| {
                written[(i, k)] / (1.0 - decays[i] * decays[k])
            }),
            Transition::Dense(matrix) => {
                let mut power = Self::dense(matrix, self.states());
                let mut sum = written.clone();
                for _ in 0..DOUBLINGS {
                    sum = &sum + &power * &sum * power.transpose();
                    power = &power * &power;
                }
                sum
            }
        }
    }

    /// From the moments of (b, u): E y, the variance of one draw's contribution to that mean, and Σ_c Var(y_c).
    fn answer(&self, mean: &[f64], covariance: &Mat<f64>) -> (Vec<f64>, f64, f64) {
        let states = self.states();
        let inputs = mean.len() - states;
        let state_covariance =
            self.state_covariance(&Mat::from_fn(states, states, |i, k| covariance[(i, k)]));
        let mut value = Vec::new();
        let (mut one_draw, mut variance) = (0.0, 0.0);
        for (c, readout) in self.readout.chunks_exact(states.max(1)).enumerate() {
            // The feedthrough sees the newest token only.
            let direct =
                if self.feedthrough.is_empty() { &[][..] } else { &self.feedthrough[c * inputs..][..inputs] };
            let mut summed = self.summed(readout);
            summed.extend_from_slice(direct);
            value.push(linalg::dot(&summed, &mean[..summed.len()]));
            for i in 0..summed.len() {
                for k in 0..summed.len() {
                    one_draw += summed[i] * summed[k] * covariance[(i, k)];
                    variance += match (i < states, k < states) {
                        (true, true) => readout[i] * readout[k] * state_covariance[(i, k)],
                        (true, false) => readout[i] * direct[k - states] * covariance[(i, k)],
                        (false, true) => direct[i - states] * readout[k] * covariance[(i, k)],
                        (false, false) => direct[i - states] * direct[k - states] * covariance[(i, k)],
                    };
                }
            }
        }
        (value, one_draw, variance)
    }
}
