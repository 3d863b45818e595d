//! Full matrices at any length: exact in the tokens, averaged over (w, x_q) by randomised quasi-Monte-Carlo points.
//!
//! Given w and x_q a prompt enters through σ, a and q alone (see [`Response`]). The query is a radius times a direction,
//! x_q = r Σ_q^{1/2}u: then σ = r²σ̂, a = râ, target = rŷ, and q does not know r, so the radius, where the heavy tail
//! is, is integrated once for all into functions of σ̂, and points average over (w, u). The infinite prompt's share
//! is closed ([`infinite_risk`]): points average only what a finite prompt adds.

use super::response::RadialResponse;
use super::{LinearRegression, RegressionHead, Response, infinite_risk, linear_risk};
use crate::accuracy::{Accuracy, Estimate};
use crate::error::{Error, Result};
use crate::numerics::{ScrambledSobol, check, linalg, normal, sobol};
use faer::Mat;
use rayon::prelude::*;

/// Coordinates of all points together: 2 GB.
const MOST_NUMBERS: u64 = 1 << 28;

/// How finely to average over (w, x_q).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PointAverage {
    /// Points per randomisation; powers of two are best.
    pub points: u32,
    /// Independent randomisations, at least 2: their spread is the reported error.
    pub randomisations: u32,
    /// The seed of the randomisations.
    pub seed: u64,
}

impl Default for PointAverage {
    /// 2¹¹ points in 8 randomisations: 2¹⁴ in all.
    fn default() -> Self {
        PointAverage { points: 1 << 11, randomisations: 8, seed: 0 }
    }
}

/// A risk with its gradient in U and v.
#[derive(Debug, Clone, PartialEq)]
pub struct HeadGradient {
    /// ½ E (prediction − target)², with its class.
    pub risk: Estimate,
    /// ∂R/∂U; its last column is zero, because the query's last coordinate is.
    pub score: Mat<f64>,
    /// ∂R/∂v.
    pub value: Vec<f64>,
    /// Root of the summed squared errors of all entries of the gradient over randomisations; 0 where exact.
    pub gradient_error: f64,
}

/// The points of a task, drawn once and used for every head and length.
#[derive(Debug, Clone)]
pub struct RiskAverage {
    task: LinearRegression,
    /// Eigenvalues and eigenvectors of Σ: in this basis Σ is diagonal.
    spectrum: linalg::SymmetricEigen,
    /// By randomisation: w and Σ_q^{1/2}u in the eigenbasis, point after point.
    points: Vec<Vec<f64>>,
}

impl RiskAverage {
    /// Draws the points.
    ///
    /// # Errors
    /// Numbers of points or randomisations that make no sense; more than 512 dimensions.
    pub fn new(task: &LinearRegression, options: PointAverage) -> Result<Self> {
        let d = task.dimension();
        if 2 * d > sobol::MAX_DIMENSION {
            return Err(Error::OutOfRange {
                what: "the dimension of the covariates",
                value: d as f64,
                expected: "at most 512; the block form has no such limit",
            });
        }
        let numbers = 2 * d as u64 * u64::from(options.points) * u64::from(options.randomisations);
        if !(2..=4096).contains(&options.randomisations) || options.points == 0 || numbers > MOST_NUMBERS {
            return Err(Error::OutOfRange {
                what: "the number of points or of randomisations",
                value: f64::from(options.points.max(options.randomisations)),
                expected: "at least 1 point in 2 to 4096 randomisations, and 2^28 coordinates in all",
            });
        }
        let spectrum = linalg::SymmetricEigen::new("the covariance", task.covariance())?;
        let query = linalg::SymmetricEigen::new("the covariance of the query", task.query_covariance())?;
        let root = spectrum.vectors.transpose() * query.map(|value| value.max(0.0).sqrt());
        let deviation = task.prior_scale().sqrt();
        let points = (0..options.randomisations)
            .into_par_iter()
            .map(|randomisation| {
                // An odd multiplier: seeds and randomisations do not fall on each other.
                let seed =
                    options.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(u64::from(randomisation));
                let sequence = ScrambledSobol::new(2 * d, seed)?;
                let mut points = Vec::with_capacity(2 * d * options.points as usize);
                for index in 0..options.points {
                    let normals: Vec<f64> = sequence.point(index).into_iter().map(normal::quantile).collect();
                    // A prior N(0, kI) looks the same in every basis.
                    points.extend(normals[..d].iter().map(|entry| deviation * entry));
                    let norm = linalg::norm(&normals[d..]).max(f64::MIN_POSITIVE);
                    points
                        .extend(linalg::apply(root.as_ref(), &normals[d..]).iter().map(|entry| entry / norm));
                }
                Ok(points)
            })
            .collect::<Result<_>>()?;
        Ok(RiskAverage { task: task.clone(), spectrum, points })
    }

    /// The task.
    pub fn task(&self) -> &LinearRegression {
        &self.task
    }

    /// The risk of a head at this length, with its gradient: in closed form on infinite prompts and for linear
    /// attention, by points over (w, direction of x_q) otherwise.
    ///
    /// ```
    /// use esscher_core::prompt::PromptLength;
    /// use esscher_core::regression::{LinearRegression, PointAverage, RegressionHead, Response, RiskAverage};
    /// let task = LinearRegression::isotropic(2)?.with_noise(0.1)?;
    /// let head = RegressionHead::block(esscher_core::mat![[0.6, 0.1], [0.0, 0.7]].as_ref(), 1.2)?;
    /// let average = RiskAverage::new(&task, PointAverage::default())?;
    /// let found = average.evaluate(&head, &Response::softmax(PromptLength::new(1_000_000)?))?;
    /// assert!(found.risk.error < 1e-5);
    /// # Ok::<(), esscher_core::Error>(())
    /// ```
    pub fn evaluate(&self, head: &RegressionHead, response: &Response) -> Result<HeadGradient> {
        if response.is_infinite() {
            return infinite_risk(head, &self.task);
        }
        if let Some(length) = response.linear_length() {
            return linear_risk(head, &self.task, length);
        }
        self.add_points(infinite_risk(head, &self.task)?, head, response, Share::FiniteLength)
    }

    /// The same with nothing in closed form: an independent check, and what a comparison of costs at different
    /// lengths should use.
    pub fn evaluate_by_points(&self, head: &RegressionHead, response: &Response) -> Result<HeadGradient> {
        let size = self.task.dimension() + 1;
        let nothing = HeadGradient {
            risk: Estimate::exact_to(self.task.noise_floor(), 1e-12),
            score: Mat::zeros(size, size),
            value: vec![0.0; size],
            gradient_error: 0.0,
        };
        self.add_points(nothing, head, response, Share::Everything)
    }

    fn add_points(
        &self,
        mut total: HeadGradient,
        head: &RegressionHead,
        response: &Response,
        share: Share,
    ) -> Result<HeadGradient> {
        let d = self.task.dimension();
        check::size("the head (dimension of the task)", d, head.dimension())?;
        let vectors = &self.spectrum.vectors;
        let rotated = Rotated {
            values: &self.spectrum.values,
            block: vectors.transpose() * head.score().submatrix(0, 0, d, d) * vectors,
            row: linalg::apply_transpose(
                vectors.as_ref(),
                &(0..d).map(|j| head.score()[(d, j)]).collect::<Vec<_>>(),
            ),
            value: linalg::apply_transpose(vectors.as_ref(), &head.value()[..d]),
            gain: head.value()[d],
            noise: self.task.noise(),
            response: &response.radial(d)?,
            share,
        };
        let batches: Vec<Correction> =
            self.points.par_iter().map(|points| rotated.correction(points)).collect::<Result<_>>()?;
        let count = batches.len() as f64;
        let mut mean = Correction::zero(d);
        for batch in &batches {
            mean.add(1.0 / count, batch);
        }
        let (mut risk_spread, mut gradient_spread) = (0.0, 0.0);
        for batch in &batches {
            risk_spread += (batch.risk - mean.risk).powi(2);
            for (mine, average) in
                batch.score.iter().chain(&batch.value).zip(mean.score.iter().chain(&mean.value))
            {
                gradient_spread += (mine - average).powi(2);
            }
        }
        // Back from the eigenbasis.
        let block = Mat::from_fn(d, d, |i, j| mean.score[i * d + j]);
        let block = vectors * block * vectors.transpose();
        let row = linalg::apply(vectors.as_ref(), &mean.score[d * d..]);
        for j in 0..d {
            for i in 0..d {
                total.score[(i, j)] += block[(i, j)];
            }
            total.score[(d, j)] += row[j];
        }
        let value = linalg::apply(vectors.as_ref(), &mean.value[..d]);
        for (entry, added) in total.value.iter_mut().zip(value.iter().chain(&mean.value[d..])) {
            *entry += added;
        }
        let scale = 1.0 / (count * (count - 1.0));
        total.gradient_error = (gradient_spread * scale).sqrt();
        total.risk.value = check::finite_number("the risk", total.risk.value + mean.risk)?;
        if mean.risk != 0.0 {
            total.risk.error = (risk_spread * scale).sqrt();
            total.risk.accuracy = Accuracy::QuasiMonteCarlo;
        }
        check::finite_matrix("the gradient in U", total.score.as_ref())?;
        check::finite_vector("the gradient in v", &total.value)?;
        Ok(total)
    }
}

/// A head in the eigenbasis of Σ.
struct Rotated<'a> {
    values: &'a [f64],
    /// P, r, u and b of U = [P ·; rᵀ ·], v = (u, b).
    block: Mat<f64>,
    row: Vec<f64>,
    value: Vec<f64>,
    gain: f64,
    noise: f64,
    response: &'a RadialResponse,
    share: Share,
}

/// What the points average.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Share {
    /// What a finite prompt adds to the infinite one.
    FiniteLength,
    Everything,
}

/// What a finite prompt adds to the risk and its gradient: the d + 1 rows of U, then v.
struct Correction {
    risk: f64,
    score: Vec<f64>,
    value: Vec<f64>,
}

impl Correction {
    fn zero(dimension: usize) -> Self {
        Correction {
            risk: 0.0,
            score: vec![0.0; dimension * (dimension + 1)],
            value: vec![0.0; dimension + 1],
        }
    }

    fn add(&mut self, weight: f64, other: &Correction) {
        self.risk += weight * other.risk;
        linalg::add_scaled(&mut self.score, weight, &other.score);
        linalg::add_scaled(&mut self.value, weight, &other.value);
    }
}

impl Rotated<'_> {
    /// The average over one set of points.
    fn correction(&self, points: &[f64]) -> Result<Correction> {
        let d = self.values.len();
        let mut total = Correction::zero(d);
        // 1 − C₁ and 1 − C₂, or −C₁ and −C₂: E r² = d.
        let (base, own) = match self.share {
            Share::FiniteLength => (0.0, 0.0),
            Share::Everything => (self.response.dimension as f64, 0.5 * self.response.dimension as f64),
        };
        let (mut tilt, mut tilted) = (vec![0.0; d], vec![0.0; d + 1]);
        let mut valued = vec![0.0; d + 1];
        for point in points.chunks_exact(2 * d) {
            let (w, query) = point.split_at(d);
            // θ = (Px, ρ), G_wθ = (Σt, ⟨w, Σt⟩ + s²ρ) for t = Px + ρw; likewise G_w v for u + bw and b.
            let last = linalg::dot(&self.row, query);
            tilt.fill(0.0);
            for (entry, column) in query.iter().zip(self.block.col_iter()) {
                for (tilt, &block) in tilt.iter_mut().zip(column.iter()) {
                    *tilt += entry * block;
                }
            }
            let (mut sigma, mut tilted_last) = (self.noise * last * last, self.noise * last);
            let (mut a, mut q) = (0.0, self.gain * self.gain * self.noise);
            let (mut valued_last, mut target) = (self.gain * self.noise, 0.0);
            for i in 0..d {
                let along = tilt[i] + last * w[i];
                let value = self.value[i] + self.gain * w[i];
                tilted[i] = self.values[i] * along;
                valued[i] = self.values[i] * value;
                sigma += along * tilted[i];
                tilted_last += w[i] * tilted[i];
                a += self.value[i] * tilted[i];
                q += value * valued[i];
                valued_last += w[i] * valued[i];
                target += w[i] * query[i];
            }
            tilted[d] = tilted_last;
            valued[d] = valued_last;
            a += self.gain * tilted_last;
            let at = self.response.at(sigma)?;
            let (first, second) = (at.first_deficit - base, at.second_deficit - base);
            total.risk +=
                first * a * target - 0.5 * second * a * a + 0.5 * at.spread * q + own * target * target;
            let by_a = first * target - second * a;
            let by_sigma =
                0.5 * (at.second_slope * a * a + at.spread_slope * q) - at.first_slope * a * target;
            for i in 0..=d {
                let factor = by_a * valued[i] + 2.0 * by_sigma * tilted[i];
                let row = &mut total.score[i * d..(i + 1) * d];
                for (entry, query) in row.iter_mut().zip(query) {
                    *entry += factor * query;
                }
                total.value[i] += by_a * tilted[i] + at.spread * valued[i];
            }
        }
        let weight = 2.0 * d as f64 / points.len() as f64;
        let mut mean = Correction::zero(d);
        mean.add(weight, &total);
        Ok(mean)
    }
}
