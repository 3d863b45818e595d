//! Where covariates come from: rows (x, standard normal) for a prompt, one at a time for its query.

use super::PromptDraw;
use crate::error::Result;
use crate::measure::Law;
use crate::numerics::{Stream, check, linalg};
use crate::regression::LinearRegression;
use faer::{Mat, MatRef, Side};

/// The law of the covariates of a prompt and that of its query's.
#[derive(Debug, Clone)]
pub(super) struct Design {
    prompt: Covariates,
    query: Covariates,
    dimension: usize,
    /// C of a prompt's law that is drawn as any law and yet is N(0, C Cᵀ).
    recognised: Option<Covariates>,
}

#[derive(Debug, Clone)]
enum Covariates {
    /// x = scale · g, coordinate by coordinate.
    Scaled(Vec<f64>),
    /// x = C g, C lower triangular, row by row; without a copy because the last row is written first.
    Root(Vec<Vec<f64>>),
    /// Any law of the core.
    Drawn(Law),
}

/// Covariates of other laws are drawn this many at a time, always a whole block, so that prompts are prefixes.
const BLOCK: usize = 16;

impl Design {
    pub(super) fn new(prompt: Law, query: Law) -> Result<Self> {
        let dimension = prompt.dimension();
        check::at_least_one("the dimension of the covariates", dimension)?;
        check::size("the law of the query (dimension)", dimension, query.dimension())?;
        let (prompt, query) = (Covariates::Drawn(prompt), Covariates::Drawn(query));
        Ok(Design { prompt, query, dimension, recognised: None })
    }

    /// Finds C where the prompt's law is one centred Gaussian of full rank; it is drawn as before.
    pub(super) fn recognise_gaussian(mut self) -> Self {
        if let Covariates::Drawn(law) = &self.prompt {
            self.recognised = centred_gaussian(law);
        }
        self
    }

    pub(super) fn gaussian(task: &LinearRegression) -> Result<Self> {
        Ok(Design {
            prompt: Covariates::gaussian(task.covariance())?,
            query: Covariates::gaussian(task.query_covariance())?,
            dimension: task.dimension(),
            recognised: None,
        })
    }

    pub(super) fn dimension(&self) -> usize {
        self.dimension
    }

    /// Fills the query's covariates and returns a standard normal beside them.
    pub(super) fn draw_query(&self, stream: &mut Stream, prompt: &mut PromptDraw) -> Result<f64> {
        let query = &mut prompt.query[..self.dimension];
        match &self.query {
            Covariates::Drawn(law) => law.sample(stream, query)?,
            gaussian => {
                stream.fill_normals(query);
                gaussian.transform(query);
            }
        }
        Ok(stream.normal())
    }

    /// Fills every token with covariates and, in the place of the label, a standard normal.
    pub(super) fn draw_tokens(&self, stream: &mut Stream, prompt: &mut PromptDraw) -> Result<()> {
        let size = self.dimension + 1;
        let Covariates::Drawn(law) = &self.prompt else {
            stream.fill_normals(&mut prompt.tokens);
            prompt.tokens.chunks_exact_mut(size).for_each(|row| self.prompt.transform(&mut row[..size - 1]));
            return Ok(());
        };
        prompt.block.resize(BLOCK * size, 0.0);
        let (covariates, normals) = prompt.block.split_at_mut(BLOCK * self.dimension);
        for rows in prompt.tokens.chunks_mut(BLOCK * size) {
            law.sample(stream, covariates)?;
            stream.fill_normals(normals);
            let drawn = covariates.chunks_exact(self.dimension).zip(&*normals);
            for (row, (covariate, &normal)) in rows.chunks_exact_mut(size).zip(drawn) {
                row[..self.dimension].copy_from_slice(covariate);
                row[self.dimension] = normal;
            }
        }
        Ok(())
    }

    /// The query and its target, for the hidden vector that stands in `prompt`.
    pub(super) fn draw_target(
        &self,
        noise: Noise,
        link: impl Fn(f64) -> f64,
        stream: &mut Stream,
        prompt: &mut PromptDraw,
    ) -> Result<()> {
        let normal = self.draw_query(stream, prompt)?;
        let score = linalg::dot(&prompt.hidden, &prompt.query[..self.dimension]);
        prompt.target = link(score) + noise.query.sqrt() * normal;
        Ok(())
    }

    /// Whether the prompt's covariates are C g, in law.
    pub(super) fn is_gaussian(&self) -> bool {
        self.recognised.is_some() || !matches!(self.prompt, Covariates::Drawn(_))
    }

    /// C g in place.
    pub(super) fn transform(&self, covariates: &mut [f64]) {
        self.recognised.as_ref().unwrap_or(&self.prompt).transform(covariates);
    }

    /// Cᵀ θ in place.
    pub(super) fn transform_transpose(&self, tilt: &mut [f64]) {
        self.recognised.as_ref().unwrap_or(&self.prompt).transform_transpose(tilt);
    }

    /// The usual prompt: y = link(⟨w, x⟩) + noise, for the hidden vector that stands in `prompt`.
    pub(super) fn draw_labelled(
        &self,
        noise: Noise,
        link: impl Fn(f64) -> f64,
        stream: &mut Stream,
        prompt: &mut PromptDraw,
    ) -> Result<()> {
        self.draw_target(noise, &link, stream, prompt)?;
        self.draw_tokens(stream, prompt)?;
        let deviation = noise.prompt.sqrt();
        for row in prompt.tokens.chunks_exact_mut(self.dimension + 1) {
            if let Some((label, covariates)) = row.split_last_mut() {
                *label = link(linalg::dot(&prompt.hidden, covariates)) + deviation * *label;
            }
        }
        Ok(())
    }
}

/// The builders of a task with fields `noise` and `prior_scale`.
macro_rules! noise_and_prior {
    () => {
        /// Noise of this variance on the labels of the prompt and on the query's target.
        pub fn with_noise(mut self, variance: f64) -> Result<Self> {
            check::zero_or_more("the variance of the label noise", variance)?;
            self.noise = Noise { prompt: variance, query: variance };
            Ok(self)
        }

        /// Prior w ~ N(0, scale · I), or of the entries of w that are not zero.
        pub fn with_prior(mut self, scale: f64) -> Result<Self> {
            check::positive("the scale of the prior", scale)?;
            self.prior_scale = scale;
            Ok(self)
        }
    };
}
pub(super) use noise_and_prior;

/// Variances of the label noise.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Noise {
    pub(super) prompt: f64,
    pub(super) query: f64,
}

impl Covariates {
    fn gaussian(covariance: MatRef<'_, f64>) -> Result<Self> {
        let root = root("the covariance", covariance)?;
        let size = root.nrows();
        if (0..size).all(|i| (0..i).all(|j| root[(i, j)] == 0.0)) {
            return Ok(Covariates::Scaled((0..size).map(|i| root[(i, i)]).collect()));
        }
        Ok(Covariates::Root((0..size).map(|i| (0..=i).map(|j| root[(i, j)]).collect()).collect()))
    }

    /// Standard normals to covariates, in place.
    fn transform(&self, covariates: &mut [f64]) {
        match self {
            Covariates::Scaled(scales) => {
                covariates.iter_mut().zip(scales).for_each(|(entry, scale)| *entry *= scale);
            }
            Covariates::Root(rows) => {
                for (index, row) in rows.iter().enumerate().rev() {
                    covariates[index] = linalg::dot(row, covariates);
                }
            }
            Covariates::Drawn(_) => {}
        }
    }

    fn transform_transpose(&self, tilt: &mut [f64]) {
        let Covariates::Root(rows) = self else {
            // A diagonal root is its own transpose.
            self.transform(tilt);
            return;
        };
        for index in 0..tilt.len() {
            // Entry j reads entries from j on, which are not yet written.
            tilt[index] = (index..tilt.len()).map(|row| rows[row][index] * tilt[row]).sum();
        }
    }
}

/// C of a law that is N(0, C Cᵀ) and says so, with C triangular.
fn centred_gaussian(law: &Law) -> Option<Covariates> {
    let components = law.as_gaussian_mixture()?;
    let [only] = components.as_slice() else { return None };
    let centred = only.gaussian.mean_vector().iter().all(|&entry| entry == 0.0);
    if centred { Covariates::gaussian(only.gaussian.covariance_matrix()).ok() } else { None }
}

/// The lower triangular C with C Cᵀ = the matrix.
pub(crate) fn root(what: &'static str, matrix: MatRef<'_, f64>) -> Result<Mat<f64>> {
    let root = matrix.llt(Side::Lower).map_err(|_| {
        let eigenvalue = linalg::SymmetricEigen::new(what, matrix)
            .map_or(0.0, |eigen| eigen.values.first().copied().unwrap_or(0.0));
        crate::Error::Singular { what, eigenvalue }
    })?;
    let root = root.L();
    Ok(Mat::from_fn(matrix.nrows(), matrix.nrows(), |i, j| if j <= i { root[(i, j)] } else { 0.0 }))
}
