//! The block form U = diag(A, 0), v = (0, b): risk and gradient at any length, without sampling anything.
//!
//! Here θ = (A x_q, 0), so σ = ⟨x_q, AᵀΣA x_q⟩ does not involve w: the average over w is closed, and what is
//! left is an average over x_q of functions of one quadratic form times second and fourth powers of
//! Gaussian coordinates: one-dimensional sums, by [`QuadraticForm`]. For Σ_q = S² and K = S AᵀΣA S = Q diag(λ) Qᵀ
//! the query is x_q = SQg with g standard normal, and σ = Σ λᵢgᵢ².

use super::{LinearRegression, RegressionHead, Response};
use crate::error::{Error, Result};
use crate::numerics::{QuadraticForm, check, linalg};
use faer::{Mat, MatRef};

/// A and b. Training preserves this form at every length, by the symmetry of the task under w → −w.
///
/// ```
/// use esscher_core::prompt::PromptLength;
/// use esscher_core::regression::{Block, LinearRegression, Response};
/// let task = LinearRegression::isotropic(6)?.with_noise(0.5)?;
/// let block = Block::new(esscher_core::Mat::from_fn(6, 6, |i, j| if i == j { 0.25 } else { 0.0 }).as_ref(), 4.0)?;
/// let long = block.risk(&task, &Response::softmax(PromptLength::new(1_000_000_000)?))?;
/// let limit = block.risk(&task, &Response::infinite())?;
/// assert!(((long - limit) * 1e9 - 82.739).abs() < 1e-2); // the first-order coefficient in 1/L
/// # Ok::<(), esscher_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    matrix: Mat<f64>,
    gain: f64,
}

/// A risk with its gradient in A and b.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockGradient {
    /// ½ E (prediction − target)², exact: a relative error of at most 1e-9, that of the tables of the response.
    pub risk: f64,
    /// ∂R/∂A.
    pub matrix: Mat<f64>,
    /// ∂R/∂b.
    pub gain: f64,
}

fn parameters(matrix: &Mat<f64>, gain: f64) -> Vec<f64> {
    matrix.col_iter().flat_map(|column| column.iter().copied().collect::<Vec<_>>()).chain([gain]).collect()
}

impl BlockGradient {
    /// Into the gradient of a landscape, in the order of [`Block::parameters`]; returns the risk.
    pub(super) fn write(&self, gradient: &mut [f64]) -> Result<f64> {
        let mine = parameters(&self.matrix, self.gain);
        check::size("the gradient", mine.len(), gradient.len())?;
        gradient.copy_from_slice(&mine);
        Ok(self.risk)
    }

    /// The Euclidean norm of the gradient in both parts together.
    pub fn norm(&self) -> f64 {
        self.gain.hypot(linalg::frobenius(self.matrix.as_ref()))
    }
}

impl Block {
    /// The block A, square, and the gain b.
    pub fn new(matrix: MatRef<'_, f64>, gain: f64) -> Result<Self> {
        check::not_empty("the block A", matrix.nrows())?;
        check::size("the block A (columns)", matrix.nrows(), matrix.ncols())?;
        check::finite_matrix("A", matrix)?;
        check::finite_vector("the gain b", &[gain])?;
        Ok(Block { matrix: matrix.to_owned(), gain })
    }

    /// The initialisation of the theory: A = α ΘΘᵀ, b = α, with Θ scaled such that ‖ΘΘᵀ‖_F = 1.
    ///
    /// Θ has d rows and any number of columns.
    ///
    /// # Errors
    /// An α that is not positive and finite; a Θ that is empty, zero or not finite.
    pub fn initial(theta: MatRef<'_, f64>, scale: f64) -> Result<Self> {
        check::positive("the initial scale α", scale)?;
        check::not_empty("the matrix Θ", theta.nrows().min(theta.ncols()))?;
        check::finite_matrix("Θ", theta)?;
        let largest = check::largest_entry(theta);
        if largest == 0.0 {
            let expected = "a matrix that is not zero";
            return Err(Error::OutOfRange { what: "the largest entry of Θ", value: largest, expected });
        }
        let theta = Mat::from_fn(theta.nrows(), theta.ncols(), |i, j| theta[(i, j)] / largest);
        let square = linalg::symmetric_part((&theta * theta.transpose()).as_ref());
        let norm = linalg::frobenius(square.as_ref());
        let matrix = Mat::from_fn(square.nrows(), square.ncols(), |i, j| square[(i, j)] / norm * scale);
        Block::new(matrix.as_ref(), scale)
    }

    /// The matrix A.
    pub fn matrix(&self) -> MatRef<'_, f64> {
        self.matrix.as_ref()
    }

    /// The gain b.
    pub fn gain(&self) -> f64 {
        self.gain
    }

    /// bA, the matrix that predicts: the argument of [`LinearAttention::risk`](super::LinearAttention::risk).
    pub fn product(&self) -> Result<Mat<f64>> {
        check::finite_matrix_result("the product bA", &self.matrix * faer::Scale(self.gain))
    }

    /// ‖A‖²_F − b²: the same at all times of the flow on infinite prompts and for linear attention, and 0 at the [`initial`](Self::initial) block.
    pub fn conserved(&self) -> Result<f64> {
        let (norm, gain) = (linalg::frobenius(self.matrix.as_ref()), self.gain.abs());
        check::finite_number("the conserved quantity", (norm - gain) * (norm + gain))
    }

    /// A column by column, then b.
    pub(super) fn parameters(&self) -> Vec<f64> {
        parameters(&self.matrix, self.gain)
    }

    pub(super) fn from_parameters(dimension: usize, parameters: &[f64]) -> Result<Self> {
        check::size("the parameters", dimension * dimension + 1, parameters.len())?;
        let (matrix, gain) = parameters.split_at(dimension * dimension);
        Block::new(MatRef::from_column_major_slice(matrix, dimension, dimension), gain[0])
    }

    /// As a head with full matrices.
    pub fn head(&self) -> Result<RegressionHead> {
        RegressionHead::block(self.matrix(), self.gain)
    }

    /// ½ E (prediction − target)², exact: a relative error of at most 1e-9, that of the tables of the response.
    pub fn risk(&self, task: &LinearRegression, response: &Response) -> Result<f64> {
        let forms = Forms::new(self, task)?;
        let mut finite = 0.0;
        for node in response.nodes(&forms.law, false)? {
            let at = response.at(node.q)?;
            finite += 0.5 * forms.total_noise * at.spread * node.weight;
            for (i, weight) in node.single.iter().enumerate() {
                finite += weight
                    * (forms.product[(i, i)] * at.first_deficit
                        - 0.5 * forms.square[(i, i)] * at.second_deficit);
            }
        }
        check::finite_number("the risk", forms.infinite + finite + task.noise_floor())
    }

    /// The risk and its gradient.
    ///
    /// # Errors
    /// More than 1024 dimensions: the weights of all pairs would not fit in memory. The spectral form has no limit.
    pub fn risk_and_gradient(&self, task: &LinearRegression, response: &Response) -> Result<BlockGradient> {
        let dimension = self.matrix.nrows();
        if dimension > 1024 {
            return Err(Error::OutOfRange {
                what: "the dimension of a block",
                value: dimension as f64,
                expected: "at most 1024; the spectral form has no such limit",
            });
        }
        let forms = Forms::new(self, task)?;
        let (gain, prior) = (self.gain, task.prior_scale());
        let (mut finite, mut finite_gain) = (0.0, 0.0);
        // E e₁ gᵢ², E e₂ gᵢ², and E F g gᵀ with F the derivative of the integrand in σ.
        let (mut first, mut second) = (vec![0.0; dimension], vec![0.0; dimension]);
        let mut sigma_part = Mat::<f64>::zeros(dimension, dimension);
        for node in response.nodes(&forms.law, true)? {
            let at = response.at(node.q)?;
            finite += 0.5 * forms.total_noise * at.spread * node.weight;
            // Half of M₂ C₂′ − 2 M₁ C₁′, entry by entry.
            let slope = |i: usize, j: usize| {
                0.5 * forms.square[(i, j)] * at.second_slope - forms.product[(i, j)] * at.first_slope
            };
            let diagonal: Vec<f64> = (0..dimension).map(|i| slope(i, i)).collect();
            for i in 0..dimension {
                first[i] += node.single[i] * at.first_deficit;
                second[i] += node.single[i] * at.second_deficit;
                let mut total = 0.5 * forms.total_noise * at.spread_slope * node.single[i];
                for j in 0..dimension {
                    let (row, column) = (i.max(j), i.min(j));
                    let pair = node.pair[row * (row + 1) / 2 + column];
                    total += diagonal[j] * pair;
                    sigma_part[(i, j)] += 2.0 * slope(i, j) * pair;
                }
                sigma_part[(i, i)] += total;
            }
            finite_gain += forms.noise_of_gain * at.spread * node.weight;
        }
        for i in 0..dimension {
            finite += forms.product[(i, i)] * first[i] - 0.5 * forms.square[(i, i)] * second[i];
            finite_gain +=
                forms.product_of_gain[(i, i)] * first[i] - gain * forms.square_of_gain[(i, i)] * second[i];
        }
        let spread = |weights: &[f64]| {
            let scaled = Mat::from_fn(dimension, dimension, |i, j| forms.map[(i, j)] * weights[j]);
            scaled * forms.map.transpose()
        };
        let covariance = task.covariance();
        let scored = covariance * &self.matrix;
        let twice = covariance * &scored;
        // ∂/∂A of |ΣAx|² is 2Σ²A xxᵀ, of ⟨x, ΣAx⟩ is Σxxᵀ, of σ is 2ΣA xxᵀ.
        let by_sigma = &scored * (&forms.map * sigma_part * forms.map.transpose());
        let by_second = &twice * spread(&second);
        let by_first = covariance * spread(&first);
        let matrix = Mat::from_fn(dimension, dimension, |i, j| {
            forms.infinite_matrix[(i, j)] + 2.0 * by_sigma[(i, j)] - gain * gain * prior * by_second[(i, j)]
                + gain * prior * by_first[(i, j)]
        });
        let risk = check::finite_number("the risk", forms.infinite + finite + task.noise_floor())?;
        let gain = check::finite_number("the gradient in b", forms.infinite_gain + finite_gain)?;
        check::finite_matrix("the gradient in A", matrix.as_ref())?;
        Ok(BlockGradient { risk, matrix, gain })
    }
}

/// What the risk of a block needs of the task: the form σ and the two forms beside it, in the basis of σ.
struct Forms {
    law: QuadraticForm,
    /// SQ, the map from g to x_q.
    map: Mat<f64>,
    /// M₂ = b²k gᵀ(SQ)ᵀAᵀΣ²A(SQ)g and M₁ = bk gᵀ(SQ)ᵀΣA(SQ)g, symmetric.
    square: Mat<f64>,
    product: Mat<f64>,
    /// M₂/b² and M₁/b.
    square_of_gain: Mat<f64>,
    product_of_gain: Mat<f64>,
    /// q = b²(k tr Σ + s²) and q/b.
    total_noise: f64,
    noise_of_gain: f64,
    /// Risk of the infinite prompt above the noise floor, and its gradient.
    infinite: f64,
    infinite_matrix: Mat<f64>,
    infinite_gain: f64,
}

impl Forms {
    fn new(block: &Block, task: &LinearRegression) -> Result<Self> {
        let dimension = block.matrix.nrows();
        check::size("the block A (dimension of the task)", task.dimension(), dimension)?;
        let (gain, prior) = (block.gain, task.prior_scale());
        let covariance = task.covariance();
        let scored = covariance * &block.matrix;
        let eigen = linalg::SymmetricEigen::new("the covariance of the query", task.query_covariance())?;
        let root = eigen.map(|value| value.max(0.0).sqrt());
        let form = &root * block.matrix.transpose() * &scored * &root;
        let eigen = linalg::SymmetricEigen::new(
            "the form of the scores",
            linalg::symmetric_part(form.as_ref()).as_ref(),
        )?;
        let values: Vec<f64> = eigen.values.iter().map(|value| value.max(0.0)).collect();
        let law = QuadraticForm::new(&values, &vec![1.0; dimension])?;
        let map = &root * &eigen.vectors;
        let image = &scored * &map;
        let square_of_gain = image.transpose() * &image * faer::Scale(prior);
        let product_of_gain =
            linalg::symmetric_part((map.transpose() * &image).as_ref()) * faer::Scale(prior);
        // R = (k/2) tr (bΣA − I) Σ_q (bΣA − I)ᵀ.
        let miss =
            Mat::from_fn(dimension, dimension, |i, j| gain * scored[(i, j)] - f64::from(u8::from(i == j)));
        let weighted = &miss * task.query_covariance();
        let infinite = 0.5 * prior * linalg::trace_of_product(weighted.as_ref(), miss.transpose());
        let noise_of_gain = gain * (prior * linalg::trace(covariance) + task.noise());
        Ok(Forms {
            law,
            square: &square_of_gain * faer::Scale(gain * gain),
            product: &product_of_gain * faer::Scale(gain),
            square_of_gain,
            product_of_gain,
            total_noise: gain * noise_of_gain,
            noise_of_gain,
            infinite,
            infinite_matrix: covariance * &weighted * faer::Scale(prior * gain),
            infinite_gain: prior * linalg::trace_of_product(weighted.as_ref(), scored.transpose()),
            map,
        })
    }
}
