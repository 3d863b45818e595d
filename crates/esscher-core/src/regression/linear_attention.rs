//! Linear attention on linear regression: risk, gradient and minimiser in closed form, at any prompt length.
//!
//! With h = (1/N) Σ yₗxₗ the prediction is hᵀA x_q. By Isserlis' theorem E yₗ²xₗxₗᵀ = k(2Σ² + tr Σ · Σ) + s²Σ, and
//! E h wᵀ = kΣ, so E hhᵀ = k ΣΓ with the [`gamma`](LinearAttention::gamma) below. Given h and w the query is
//! independent, which leaves
//!
//! R(A) = k/2 [tr(Σ_q AᵀΣΓA) − 2 tr(Σ_qΣA) + tr Σ_q] + s_q²/2,
//!
//! for every square A and every Σ_q. Σ and Γ commute, so with E = A − Γ⁻¹ the square is completed to
//!
//! R(A) = R(Γ⁻¹) + k/2 ‖(ΣΓ)^{1/2} E Σ_q^{1/2}‖²_F, R(Γ⁻¹) = k/2 tr(Σ_q(Γ − Σ)Γ⁻¹) + s_q²/2,
//!
//! which is what is computed: a sum of positive terms loses no digits near the minimum or at long prompts.

use super::{Block, BlockGradient, Landscape, LinearRegression};
use crate::error::Result;
use crate::numerics::check;
use crate::numerics::linalg::{self, SymmetricEigen};
use crate::prompt::PromptLength;
use faer::{Mat, MatRef};

/// The number N of examples in a prompt, or infinitely many.
///
/// On Gaussian covariates the infinite prompt is also that of softmax attention: the two have one risk there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ContextLength {
    /// N examples.
    Finite(PromptLength),
    /// The prompt is the law of the examples itself.
    Infinite,
}

impl ContextLength {
    /// 1/N, zero for the infinite prompt.
    pub fn reciprocal(self) -> f64 {
        match self {
            ContextLength::Finite(length) => 1.0 / length.as_f64(),
            ContextLength::Infinite => 0.0,
        }
    }
}

impl From<PromptLength> for ContextLength {
    fn from(length: PromptLength) -> Self {
        ContextLength::Finite(length)
    }
}

/// Linear attention with prediction (1/N) Σ yₗ xₗᵀA x_q on the prompts of one task at one length.
///
/// A = b · A_block includes the gain b of the value matrix; [`Block`] keeps the two apart, as training does.
/// A shift at test time is the [`risk`](Self::risk) of the same A on another task, at another length:
///
/// ```
/// use esscher_core::mat;
/// use esscher_core::prompt::PromptLength;
/// use esscher_core::regression::{LinearAttention, LinearRegression};
/// let train = LinearRegression::new(mat![[1.0, 0.5], [0.5, 1.0]].as_ref())?.with_noise(0.1)?;
/// let trained = LinearAttention::new(&train, PromptLength::new(20)?)?.minimiser();
/// let test = train.with_query_covariance(mat![[3.0, 0.0], [0.0, 0.1]].as_ref())?;
/// let at_test = LinearAttention::new(&test, PromptLength::new(200)?)?;
/// // What was trained at 20 examples is not what is best at 200.
/// assert!(at_test.risk(trained.as_ref())? > at_test.minimal_risk()?);
/// # Ok::<(), esscher_core::Error>(())
/// ```
///
/// Zhang, Frei and Bartlett 2024 (key `zhang2024`), extended to noise, priors and queries of their own.
#[derive(Debug, Clone)]
pub struct LinearAttention {
    task: LinearRegression,
    length: ContextLength,
    /// Γ.
    gamma: Mat<f64>,
    /// Γ⁻¹.
    inverse: Mat<f64>,
    /// ‖Γ‖ and ‖Σ‖, the largest eigenvalues.
    largest: (f64, f64),
    /// (ΣΓ)^{1/2} and Σ_q^{1/2}, symmetric.
    roots: (Mat<f64>, Mat<f64>),
    /// tr(Σ_q(Γ − Σ)Γ⁻¹).
    remainder: f64,
}

impl LinearAttention {
    /// Prompts of this many examples of this task: Γ is computed once, here.
    ///
    /// # Errors
    /// [`Error::Overflow`](crate::Error::Overflow) if Γ or its inverse exceeds double precision. Singular
    /// covariances and a length of zero are refused where the task and the length are made.
    pub fn new(task: &LinearRegression, length: impl Into<ContextLength>) -> Result<Self> {
        let length = length.into();
        let share = length.reciprocal();
        let ridge = match length {
            ContextLength::Finite(_) => linalg::trace(task.covariance()) + task.noise() / task.prior_scale(),
            ContextLength::Infinite => 0.0,
        };
        let eigen = SymmetricEigen::new("the covariance", task.covariance())?;
        // Γ and Γ − Σ as functions of Σ.
        let gamma_of = |value: f64| (1.0 + share) * value + share * ridge;
        let excess_of = |value: f64| share * (value + ridge);
        let inverse = eigen.map(|value| 1.0 / gamma_of(value));
        let query = SymmetricEigen::new("the covariance of the query", task.query_covariance())?;
        let shrinkage = eigen.map(|value| excess_of(value) / gamma_of(value));
        let remainder = linalg::trace_of_product(task.query_covariance(), shrinkage.as_ref());
        let covariance = task.covariance();
        let gamma = Mat::from_fn(task.dimension(), task.dimension(), |i, j| {
            (1.0 + share) * covariance[(i, j)] + if i == j { share * ridge } else { 0.0 }
        });
        let largest = eigen.values[eigen.values.len() - 1];
        Ok(LinearAttention {
            gamma: check::finite_matrix_result("the matrix Γ", gamma)?,
            inverse: check::finite_matrix_result("the inverse of Γ", inverse)?,
            largest: (check::finite_number("the norm of Γ", gamma_of(largest))?, largest),
            roots: (
                check::finite_matrix_result(
                    "the root of ΣΓ",
                    eigen.map(|value| value.sqrt() * gamma_of(value).sqrt()),
                )?,
                query.map(f64::sqrt),
            ),
            remainder: check::finite_number("the minimal risk", remainder)?,
            task: task.clone(),
            length,
        })
    }

    /// The task.
    pub fn task(&self) -> &LinearRegression {
        &self.task
    }

    /// The context length N.
    pub fn length(&self) -> ContextLength {
        self.length
    }

    /// The dimension d.
    pub fn dimension(&self) -> usize {
        self.task.dimension()
    }

    /// Γ = (1 + 1/N) Σ + ((tr Σ + s²/k)/N) I; Σ itself at the infinite prompt.
    pub fn gamma(&self) -> MatRef<'_, f64> {
        self.gamma.as_ref()
    }

    /// R(A), half the mean squared error of the prediction, noise of the query included.
    ///
    /// ```
    /// use esscher_core::mat;
    /// use esscher_core::prompt::PromptLength;
    /// use esscher_core::regression::{LinearAttention, LinearRegression};
    /// let attention = LinearAttention::new(&LinearRegression::isotropic(1)?, PromptLength::MIN)?;
    /// // One example, d = 1: E(x²A − 1)² = 3A² − 2A + 1.
    /// assert!((attention.risk(mat![[2.0]].as_ref())? - 4.5).abs() < 1e-14);
    /// # Ok::<(), esscher_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// A matrix of another size or with entries that are not finite; [`Error::Overflow`](crate::Error::Overflow).
    pub fn risk(&self, matrix: MatRef<'_, f64>) -> Result<f64> {
        check::finite_number("the risk", self.excess_risk(matrix)? + self.minimal_risk()?)
    }

    /// R(A) − R(Γ⁻¹), without the cancellation of that difference.
    pub fn excess_risk(&self, matrix: MatRef<'_, f64>) -> Result<f64> {
        let offset = &self.roots.0 * self.offset(matrix)? * &self.roots.1;
        let excess = 0.5 * self.task.prior_scale() * linalg::squared_frobenius(offset.as_ref());
        check::finite_number("the risk", excess)
    }

    /// ∇R(A) = k Σ(ΓA − I)Σ_q: entry (i, j) is the derivative by Aᵢⱼ.
    ///
    /// # Errors
    /// As [`Self::risk`].
    pub fn gradient(&self, matrix: MatRef<'_, f64>) -> Result<Mat<f64>> {
        let offset = self.task.covariance() * (&self.gamma * self.offset(matrix)?);
        let gradient = offset * self.task.query_covariance();
        check::finite_matrix_result("the gradient", gradient * faer::Scale(self.task.prior_scale()))
    }

    /// The gradient of R(bA) in A and in b: b G and ⟨A, G⟩, with G the [`gradient`](Self::gradient) at bA.
    ///
    /// # Errors
    /// As [`Self::risk`].
    pub fn block_gradient(&self, block: &Block) -> Result<BlockGradient> {
        let product = block.product()?;
        let gradient = self.gradient(product.as_ref())?;
        let gain = linalg::trace_of_product(block.matrix(), gradient.transpose());
        Ok(BlockGradient {
            risk: self.risk(product.as_ref())?,
            gain: check::finite_number("the gradient", gain)?,
            matrix: check::finite_matrix_result("the gradient", gradient * faer::Scale(block.gain()))?,
        })
    }

    /// Γ⁻¹, the A of smallest risk; it does not depend on the law of the query.
    pub fn minimiser(&self) -> Mat<f64> {
        self.inverse.clone()
    }

    /// R(Γ⁻¹) = k/2 [tr Σ_q − tr(Σ_qΣΓ⁻¹)] + s_q²/2: the noise floor at the infinite prompt.
    pub fn minimal_risk(&self) -> Result<f64> {
        let excess = 0.5 * self.task.prior_scale() * self.remainder;
        check::finite_number("the minimal risk", excess + self.task.noise_floor())
    }

    /// The block (A, b) with bA = Γ⁻¹, b > 0 and ‖A‖²_F − b² = `conserved`.
    ///
    /// b² solves b² + C = ‖Γ⁻¹‖²_F / b². This is where the flow ends from starts with that
    /// [`conserved`](Block::conserved) quantity, unless it ends in the mirror image (−A, −b), as from a
    /// negative gain, or in a saddle with b = 0.
    pub fn flow_limit(&self, conserved: f64) -> Result<Block> {
        check::finite_vector("the conserved quantity", &[conserved])?;
        let norm = linalg::frobenius(self.inverse.as_ref());
        let root = conserved.hypot(2.0 * norm);
        // The root of b⁴ + C b² − ‖Γ⁻¹‖² without the difference of two nearly equal numbers.
        let square =
            if conserved > 0.0 { norm * (2.0 * norm / (conserved + root)) } else { 0.5 * (root - conserved) };
        let gain = square.sqrt();
        let matrix =
            check::finite_matrix_result("the limit of the flow", &self.inverse * faer::Scale(1.0 / gain))?;
        Block::new(matrix.as_ref(), check::finite_number("the limit of the flow", gain)?)
    }

    /// Where an initial scale α stands with respect to what is proved; outside is no error, and the flow usually
    /// converges there too.
    ///
    /// # Errors
    /// [`Error::OutOfRange`](crate::Error::OutOfRange) for an α that is not positive and finite.
    pub fn initial_scale(&self, scale: f64) -> Result<InitialScale> {
        check::positive("the initial scale α", scale)?;
        let dimension = self.dimension() as f64;
        let (gamma, covariance) = self.largest;
        Ok(InitialScale {
            scale,
            sufficient_bound: (2.0 / gamma / dimension.sqrt()).sqrt(),
            paper_bound: 2f64.sqrt() / dimension.powf(0.25) / covariance,
        })
    }

    /// A − Γ⁻¹ for a matrix that fits.
    fn offset(&self, matrix: MatRef<'_, f64>) -> Result<Mat<f64>> {
        check::size("the matrix A (rows)", self.dimension(), matrix.nrows())?;
        check::size("the matrix A (columns)", self.dimension(), matrix.ncols())?;
        check::finite_matrix("A", matrix)?;
        Ok(matrix - &self.inverse)
    }

    /// The prediction (1/N) Σ yₗ xₗᵀA x_q on one prompt, a covariate per row.
    ///
    /// Scaling all covariates by c multiplies it by c²: linear attention knows the scale it was trained at.
    ///
    /// ```
    /// use esscher_core::mat;
    /// use esscher_core::regression::LinearAttention;
    /// let matrix = mat![[1.0, 2.0], [0.0, 1.0]];
    /// let predict = |c: f64| {
    ///     let covariates = mat![[c, 0.0], [c, -c]];
    ///     LinearAttention::predict(matrix.as_ref(), covariates.as_ref(), &[2.0, 1.0], &[c, c])
    /// };
    /// assert_eq!(predict(1.0)?, 4.0);
    /// assert_eq!(predict(2.0)?, 16.0);
    /// # Ok::<(), esscher_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// An empty prompt, sizes that do not agree, entries that are not finite,
    /// [`Error::Overflow`](crate::Error::Overflow).
    pub fn predict(
        matrix: MatRef<'_, f64>,
        covariates: MatRef<'_, f64>,
        targets: &[f64],
        query: &[f64],
    ) -> Result<f64> {
        check::not_empty("the covariates (dimension)", query.len())?;
        check::not_empty("the prompt", targets.len())?;
        check::size("the covariates (rows)", targets.len(), covariates.nrows())?;
        check::size("the covariates (columns)", query.len(), covariates.ncols())?;
        check::size("the matrix A (rows)", query.len(), matrix.nrows())?;
        check::size("the matrix A (columns)", query.len(), matrix.ncols())?;
        check::finite_matrix("A", matrix)?;
        check::finite_matrix("covariates", covariates)?;
        check::finite_vector("targets", targets)?;
        check::finite_vector("query", query)?;
        let estimate = linalg::apply_transpose(covariates, targets);
        let prediction = linalg::dot(&estimate, &linalg::apply(matrix, query)) / targets.len() as f64;
        check::finite_number("the prediction", prediction)
    }
}

/// The flow of linear attention in (A, b): A column by column, then b, as
/// [`BlockLandscape`](super::BlockLandscape) orders them.
///
/// ```
/// use esscher_core::regression::{
///     Block, BlockLandscape, ContextLength, FlowOptions, LinearAttention, LinearRegression, flow,
/// };
/// use esscher_core::{Unwatched, mat};
/// let task = LinearRegression::new(mat![[0.5, 0.0], [0.0, 2.0]].as_ref())?;
/// let attention = LinearAttention::new(&task, ContextLength::Infinite)?;
/// let start = Block::initial(mat![[1.0, 0.0], [0.0, 1.0]].as_ref(), 0.5)?;
/// let trajectory =
///     flow(&attention, &BlockLandscape::parameters(&start), &FlowOptions::without_drift(), &Unwatched)?;
/// let limit = attention.flow_limit(start.conserved()?)?;
/// assert!((trajectory.last()?.parameters[4] - limit.gain()).abs() < 1e-8);
/// # Ok::<(), esscher_core::Error>(())
/// ```
impl Landscape for LinearAttention {
    fn size(&self) -> usize {
        self.scores() + 1
    }

    fn scores(&self) -> usize {
        self.dimension().pow(2)
    }

    fn weight(&self, _index: usize) -> f64 {
        1.0
    }

    fn slope(&self, parameters: &[f64], gradient: &mut [f64]) -> Result<f64> {
        let block = Block::from_parameters(self.dimension(), parameters)?;
        self.block_gradient(&block)?.write(gradient)
    }
}

/// An initial scale α and the scales up to which convergence of the flow is proved.
///
/// ```
/// use esscher_core::regression::{ContextLength, LinearAttention, LinearRegression};
/// let attention = LinearAttention::new(&LinearRegression::isotropic(16)?, ContextLength::Infinite)?;
/// let scale = attention.initial_scale(0.7)?;
/// // α²·1·√16 = 1.96 < 2, and √2/16^{1/4} = 0.7071.
/// assert!(scale.is_sufficient() && scale.is_in_range_of_paper());
/// assert!(!attention.initial_scale(0.71)?.is_sufficient());
/// # Ok::<(), esscher_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InitialScale {
    /// The initial scale α.
    pub scale: f64,
    /// √(2/(‖Γ‖√d)): below it, α²‖Γ‖√d < 2, which is sufficient without noise and with queries like the covariates
    /// (Zhang, Frei and Bartlett 2024).
    pub sufficient_bound: f64,
    /// √2/(d^{1/4}‖Σ‖), the range of the paper on infinite prompts (key `boursier2025`); it implies the condition
    /// above, at the infinite prompt, only where ‖Σ‖ ≥ 1.
    pub paper_bound: f64,
}

impl InitialScale {
    /// α²‖Γ‖√d < 2.
    pub fn is_sufficient(&self) -> bool {
        self.scale < self.sufficient_bound
    }

    /// α < √2/(d^{1/4}‖Σ‖).
    pub fn is_in_range_of_paper(&self) -> bool {
        self.scale < self.paper_bound
    }
}
