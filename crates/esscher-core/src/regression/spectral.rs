//! The block form when A shares the eigenvectors of the task: one number per distinct eigenvalue, any dimension.
//!
//! If Σ, Σ_q and A commute, training keeps them so: at every length the risk does not change under sign flips of
//! the eigenvectors. Equal eigenvalues with equal entries stay equal, so an isotropic task has two parameters
//! in any dimension, and costs what dimension one costs.

use super::{Block, LinearRegression, Response};
use crate::error::{Error, Result};
use crate::numerics::{QuadraticForm, check, linalg};
use faer::{Mat, MatRef};

/// A task whose Σ and Σ_q commute, by groups of equal eigenvalues.
#[derive(Debug, Clone, PartialEq)]
pub struct SpectralTask {
    groups: Vec<SpectralGroup>,
    noise: f64,
    query_noise: f64,
    prior_scale: f64,
}

/// Directions in which the task is the same.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SpectralGroup {
    /// Eigenvalue of Σ.
    pub eigenvalue: f64,
    /// Eigenvalue of Σ_q.
    pub query_eigenvalue: f64,
    /// Number of directions.
    pub multiplicity: u32,
}

/// A risk with its gradient: `entries` are ∂R/∂Aᵢᵢ of one direction of each group.
#[derive(Debug, Clone, PartialEq)]
pub struct SpectralGradient {
    /// ½ E (prediction − target)², exact: a relative error of at most 1e-9, that of the tables of the response.
    pub risk: f64,
    /// One per group.
    pub entries: Vec<f64>,
    /// ∂R/∂b.
    pub gain: f64,
}

/// Eigenvalues closer than this fraction of the largest are one group: the eigensolver tells no finer.
const EQUAL: f64 = 1e-12;

impl SpectralTask {
    /// Groups of the task with the matrix of eigenvectors (columns ordered as the groups), if Σ and Σ_q commute.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if they do not.
    pub fn new(task: &LinearRegression) -> Result<(Self, Mat<f64>)> {
        let eigen = linalg::SymmetricEigen::new("the covariance", task.covariance())?;
        let rotated = eigen.vectors.transpose() * task.query_covariance() * &eigen.vectors;
        // Within a group of Σ any basis will do; the query's covariance chooses one.
        let dimension = task.dimension();
        let largest = eigen.values[dimension - 1];
        let mut vectors = eigen.vectors.clone();
        let mut directions: Vec<(f64, f64)> = Vec::with_capacity(dimension);
        let mut start = 0;
        while start < dimension {
            let value = eigen.values[start];
            let end =
                (start..dimension).find(|&i| eigen.values[i] - value > EQUAL * value).unwrap_or(dimension);
            let inner = rotated.submatrix(start, start, end - start, end - start);
            let inner = linalg::SymmetricEigen::new(
                "the covariance of the query",
                linalg::symmetric_part(inner).as_ref(),
            )?;
            let turned = eigen.vectors.subcols(start, end - start) * &inner.vectors;
            vectors.subcols_mut(start, end - start).copy_from(&turned);
            directions.extend(inner.values.iter().map(|&query| (value, query)));
            start = end;
        }
        let rotated = vectors.transpose() * task.query_covariance() * &vectors;
        let scale = check::largest_entry(task.query_covariance());
        for i in 0..dimension {
            for j in 0..i {
                if rotated[(i, j)].abs() > 1e-10 * scale {
                    return Err(Error::Unsupported {
                        family: "a task whose query covariance does not commute with the prompt's",
                        operation: "spectral form",
                        remedy: "use the block form, which takes any two covariances",
                    });
                }
            }
        }
        let mut groups: Vec<SpectralGroup> = Vec::new();
        for (eigenvalue, query_eigenvalue) in directions {
            match groups.last_mut() {
                Some(group)
                    if (group.eigenvalue - eigenvalue).abs() <= EQUAL * largest
                        && (group.query_eigenvalue - query_eigenvalue).abs() <= EQUAL * scale =>
                {
                    group.multiplicity += 1;
                }
                _ => groups.push(SpectralGroup { eigenvalue, query_eigenvalue, multiplicity: 1 }),
            }
        }
        let spectral = SpectralTask {
            groups,
            noise: task.noise(),
            query_noise: task.query_noise(),
            prior_scale: task.prior_scale(),
        };
        Ok((spectral, vectors))
    }

    /// A task by its eigenvalues, without making a matrix; the query's noise is that of the labels.
    ///
    /// # Errors
    /// No group, eigenvalues or a prior that are not positive, a group without directions, a negative noise.
    pub fn from_groups(groups: &[SpectralGroup], noise: f64, prior_scale: f64) -> Result<Self> {
        check::not_empty("the groups of eigenvalues", groups.len())?;
        for group in groups {
            check::positive("an eigenvalue of the covariance", group.eigenvalue)?;
            check::positive("an eigenvalue of the query's covariance", group.query_eigenvalue)?;
            check::not_empty("the directions of a group", group.multiplicity as usize)?;
        }
        check::positive("the scale of the prior", prior_scale)?;
        check::zero_or_more("the variance of the label noise", noise)?;
        Ok(SpectralTask { groups: groups.to_vec(), noise, query_noise: noise, prior_scale })
    }

    /// Σ = Σ_q = I in any dimension, without making a matrix.
    pub fn isotropic(dimension: u32, noise: f64, prior_scale: f64) -> Result<Self> {
        let group = SpectralGroup { eigenvalue: 1.0, query_eigenvalue: 1.0, multiplicity: dimension };
        SpectralTask::from_groups(&[group], noise, prior_scale)
    }

    /// The groups.
    pub fn groups(&self) -> &[SpectralGroup] {
        &self.groups
    }

    /// The dimension d.
    pub fn dimension(&self) -> u64 {
        self.groups.iter().map(|group| u64::from(group.multiplicity)).sum()
    }

    /// Half the variance of the query's noise.
    pub fn noise_floor(&self) -> f64 {
        0.5 * self.query_noise
    }

    /// The entries of a block in these eigenvectors, one per group; none if it is not of that form.
    pub fn entries_of(&self, vectors: MatRef<'_, f64>, block: &Block) -> Option<Vec<f64>> {
        let dimension = block.matrix().nrows();
        if dimension as u64 != self.dimension() || vectors.shape() != (dimension, dimension) {
            return None;
        }
        let rotated = vectors.transpose() * block.matrix() * vectors;
        let scale = check::largest_entry(block.matrix());
        let mut entries = Vec::with_capacity(self.groups.len());
        let mut start = 0;
        for group in &self.groups {
            let end = start + group.multiplicity as usize;
            for i in start..end {
                for j in 0..rotated.ncols() {
                    let expected = if i == j { rotated[(start, start)] } else { 0.0 };
                    if (rotated[(i, j)] - expected).abs() > EQUAL * scale {
                        return None;
                    }
                }
            }
            entries.push(rotated[(start, start)]);
            start = end;
        }
        Some(entries)
    }

    /// The block with these entries in these eigenvectors.
    pub fn block(&self, vectors: MatRef<'_, f64>, entries: &[f64], gain: f64) -> Result<Block> {
        check::size("the entries of the block", self.groups.len(), entries.len())?;
        let diagonal: Vec<f64> = self
            .groups
            .iter()
            .zip(entries)
            .flat_map(|(group, &entry)| std::iter::repeat_n(entry, group.multiplicity as usize))
            .collect();
        check::size("the eigenvectors", diagonal.len(), vectors.ncols())?;
        let scaled = Mat::from_fn(vectors.nrows(), vectors.ncols(), |i, j| vectors[(i, j)] * diagonal[j]);
        Block::new((scaled * vectors.transpose()).as_ref(), gain)
    }

    /// The coefficient of 1/L in the risk of softmax at long prompts; none where it is infinite (2λᵢ ≥ 1 for some
    /// λᵢ = entryᵢ²sᵢs_qᵢ), where the risk approaches its limit more slowly than 1/L.
    pub fn first_order(&self, entries: &[f64], gain: f64) -> Result<Option<f64>> {
        check::vector("the entries of the block", self.groups.len(), entries)?;
        check::finite_vector("the gain b", &[gain])?;
        let mut log = 0.0;
        let mut forms = 0.0;
        let mut trace = 0.0;
        for (group, entry) in self.groups.iter().zip(entries) {
            let SpectralGroup { eigenvalue: s, query_eigenvalue: query, multiplicity } = *group;
            let (m, rest) = (f64::from(multiplicity), 1.0 - 2.0 * entry * entry * s * query);
            if rest <= 0.0 {
                return Ok(None);
            }
            log -= 0.5 * m * rest.ln();
            let along = gain * s * entry;
            forms += m * self.prior_scale * query * along * (1.0 - 0.5 * along) / rest;
            trace += m * s;
        }
        let noise = 0.5 * gain * gain * (self.prior_scale * trace + self.noise);
        Ok(Some(check::finite_number("the first-order coefficient", log.exp() * (noise + forms))?))
    }

    /// The floor of the infinite prompt's valley, bΣA = I, at gain b: the entries 1/(b sᵢ).
    pub fn valley(&self, gain: f64) -> Result<Vec<f64>> {
        check::positive("the gain b", gain)?;
        let floor = self.groups.iter().map(|group| 1.0 / (gain * group.eigenvalue)).collect();
        check::finite_result("the floor of the valley", floor)
    }

    /// The point of the infinite prompt's valley with ‖A‖²_F − b² = `conserved` and b > 0: bΣA = I, b⁴ + C b² = tr Σ⁻².
    ///
    /// Flows from starts like the paper's end here; others may end in the mirror image (−A, −b).
    pub fn infinite_limit(&self, conserved: f64) -> Result<(Vec<f64>, f64)> {
        check::finite_vector("the conserved quantity", &[conserved])?;
        let inverse = |group: &SpectralGroup| f64::from(group.multiplicity) / group.eigenvalue.powi(2);
        let squares: f64 = self.groups.iter().map(inverse).sum();
        let root = conserved.hypot(2.0 * squares.sqrt());
        let square =
            if conserved > 0.0 { 2.0 * squares / (conserved + root) } else { 0.5 * (root - conserved) };
        let gain = check::finite_number("the limit of the flow", square.sqrt())?;
        if gain == 0.0 {
            return Err(Error::Underflow { what: "the gain of the limit" });
        }
        Ok((self.valley(gain)?, gain))
    }

    /// The paper's initialisation with ΘΘᵀ proportional to the identity: every entry α/√d, b = α.
    ///
    /// # Errors
    /// An α that is not positive and finite.
    pub fn initial(&self, scale: f64) -> Result<Vec<f64>> {
        check::positive("the initial scale α", scale)?;
        let entry = scale / (self.dimension() as f64).sqrt();
        Ok(self.groups.iter().map(|_| entry).chain([scale]).collect())
    }

    /// √2/(d^{1/4}‖Σ‖): the paper's theorem is proved for α below this; beyond, flows run and usually converge.
    pub fn proved_scale(&self) -> f64 {
        let largest = self.groups.iter().map(|group| group.eigenvalue).fold(0.0, f64::max);
        2f64.sqrt() / (self.dimension() as f64).powf(0.25) / largest
    }

    /// The risk of A = Σ entryᵢ (projection on group i) and gain b, with its gradient.
    pub fn risk_and_gradient(
        &self,
        entries: &[f64],
        gain: f64,
        response: &Response,
    ) -> Result<SpectralGradient> {
        check::vector("the entries of the block", self.groups.len(), entries)?;
        check::finite_vector("the gain b", &[gain])?;
        let prior = self.prior_scale;
        let count: Vec<f64> = self.groups.iter().map(|group| f64::from(group.multiplicity)).collect();
        let trace: f64 = self.groups.iter().zip(&count).map(|(group, m)| m * group.eigenvalue).sum();
        let noise_of_gain = gain * (prior * trace + self.noise);
        let mut forms = Vec::with_capacity(entries.len());
        let (mut risk, mut slope_of_gain) = (0.0, 0.0);
        let mut gradient = Vec::with_capacity(entries.len());
        for ((group, m), entry) in self.groups.iter().zip(&count).zip(entries) {
            let SpectralGroup { eigenvalue: s, query_eigenvalue: query, .. } = *group;
            let miss = gain * s * entry - 1.0;
            risk += 0.5 * m * prior * query * miss * miss;
            gradient.push(prior * query * miss * gain * s);
            slope_of_gain += m * prior * query * miss * s * entry;
            forms.push((
                prior * (s * entry).powi(2) * query, // M₂/b²
                prior * s * entry * query,           // M₁/b
            ));
        }
        let values: Vec<f64> = self
            .groups
            .iter()
            .zip(entries)
            .map(|(group, entry)| entry * entry * group.eigenvalue * group.query_eigenvalue)
            .collect();
        for node in response.nodes(&QuadraticForm::new(&values, &count)?, true)? {
            let at = response.at(node.q)?;
            risk += 0.5 * gain * noise_of_gain * at.spread * node.weight;
            slope_of_gain += noise_of_gain * at.spread * node.weight;
            let slopes: Vec<f64> = forms
                .iter()
                .map(|(square, product)| {
                    0.5 * gain * gain * square * at.second_slope - gain * product * at.first_slope
                })
                .collect();
            for (i, group) in self.groups.iter().enumerate() {
                let (square, product) = forms[i];
                let single = node.single[i];
                let (first, second) = (at.first_deficit * single, at.second_deficit * single);
                risk += count[i] * (gain * product * first - 0.5 * gain * gain * square * second);
                slope_of_gain += count[i] * (product * first - gain * square * second);
                let SpectralGroup { eigenvalue: s, query_eigenvalue: query, .. } = *group;
                gradient[i] += gain * prior * s * query * (first - gain * s * entries[i] * second);
                let mut by_sigma = 0.5 * gain * noise_of_gain * at.spread_slope * single;
                for (j, slope) in slopes.iter().enumerate() {
                    let (row, column) = (i.max(j), i.min(j));
                    let different = if i == j { count[j] + 2.0 } else { count[j] };
                    by_sigma += different * slope * node.pair[row * (row + 1) / 2 + column];
                }
                gradient[i] += 2.0 * entries[i] * s * query * by_sigma;
            }
        }
        check::finite_vector("the gradient in A", &gradient)
            .map_err(|_| Error::Overflow { what: "the gradient in A" })?;
        Ok(SpectralGradient {
            risk: check::finite_number("the risk", risk + self.noise_floor())?,
            entries: gradient,
            gain: check::finite_number("the gradient in b", slope_of_gain)?,
        })
    }
}
