//! Gradient flow of linear attention in block form: the score block A and the gain b, trained together.

use super::head::RegressionHead;
use super::linear_attention::LinearAttention;
use crate::error::{Error, Result};
use crate::monitor::Monitor;
use crate::numerics::dormand_prince::{self, Ending, Settings};
use crate::numerics::{check, linalg};
use faer::{Mat, MatRef};
use std::fmt;
use std::ops::ControlFlow;

/// The parameters of linear attention in block form: U = diag(A, 0), v = (0, b).
///
/// ```
/// use esscher_core::mat;
/// use esscher_core::regression::LinearBlock;
/// let block = LinearBlock::initial(mat![[3.0, 0.0], [0.0, 0.0]].as_ref(), 0.6)?;
/// assert_eq!(block.matrix(), mat![[0.6, 0.0], [0.0, 0.0]]);
/// assert_eq!((block.gain(), block.conserved()?), (0.6, 0.0));
/// # Ok::<(), esscher_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct LinearBlock {
    matrix: Mat<f64>,
    gain: f64,
}

impl LinearBlock {
    /// The block (A, b).
    ///
    /// # Errors
    /// A matrix of size zero, not square or not finite; a gain that is not finite.
    pub fn new(matrix: MatRef<'_, f64>, gain: f64) -> Result<Self> {
        check::not_empty("the block A", matrix.nrows())?;
        check::size("the block A (columns)", matrix.nrows(), matrix.ncols())?;
        check::finite_matrix("A", matrix)?;
        check::finite_vector("the gain b", &[gain])?;
        Ok(LinearBlock { matrix: matrix.to_owned(), gain })
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
        let norm = frobenius(square.as_ref());
        let matrix = Mat::from_fn(square.nrows(), square.ncols(), |i, j| square[(i, j)] / norm * scale);
        LinearBlock::new(matrix.as_ref(), scale)
    }

    /// A.
    pub fn matrix(&self) -> MatRef<'_, f64> {
        self.matrix.as_ref()
    }

    /// b.
    pub fn gain(&self) -> f64 {
        self.gain
    }

    /// bA, the matrix that predicts: the argument of [`LinearAttention::risk`].
    pub fn product(&self) -> Result<Mat<f64>> {
        check::finite_matrix_result("the product bA", &self.matrix * faer::Scale(self.gain))
    }

    /// ‖A‖²_F − b²: the same at all times of the flow, and 0 at the [`initial`](Self::initial) block.
    pub fn conserved(&self) -> Result<f64> {
        let (norm, gain) = (frobenius(self.matrix.as_ref()), self.gain.abs());
        check::finite_number("the conserved quantity", (norm - gain) * (norm + gain))
    }

    /// The head with these parameters.
    pub fn head(&self) -> Result<RegressionHead> {
        RegressionHead::block(self.matrix.as_ref(), self.gain)
    }

    fn to_vector(&self) -> Vec<f64> {
        let size = self.matrix.nrows();
        (0..size * size).map(|i| self.matrix[(i % size, i / size)]).chain([self.gain]).collect()
    }

    /// The block inside the vector that is integrated: the columns of A, then b.
    fn from_vector(dimension: usize, vector: &[f64]) -> Result<Self> {
        let (matrix, gain) = vector.split_at(dimension * dimension);
        let matrix = MatRef::from_column_major_slice(matrix, dimension, dimension);
        LinearBlock::new(matrix, gain[0])
    }
}

/// When to look at the flow, when it counts as having arrived, and how accurate its steps must be.
#[derive(Debug, Clone, PartialEq)]
pub struct LinearFlowOptions {
    /// The flow ends where the gradient of the risk in (A, b) has at most this norm. It is an absolute number: lower
    /// it with k‖ΣΣ_q‖, the size of the gradient at the start.
    pub gradient_norm: f64,
    /// Times at which to keep the block, increasing, from 0 on; may be empty.
    pub save_times: Vec<f64>,
    /// The flow ends here at the latest.
    pub end_time: f64,
    /// Tolerances of a step, and how many may be taken.
    pub steps: Settings,
}

impl Default for LinearFlowOptions {
    /// Gradient norm 10⁻¹⁰, time 10⁹, tolerances 10⁻¹² and 10⁻¹⁴.
    ///
    /// Errors of steps move the flow along the valley bA = Γ⁻¹, where nothing brings it back: the limit is as
    /// accurate as the steps were, hence the tight tolerances.
    fn default() -> Self {
        LinearFlowOptions {
            gradient_norm: 1e-10,
            save_times: vec![],
            end_time: 1e9,
            steps: Settings { relative_tolerance: 1e-12, absolute_tolerance: 1e-14, max_steps: 1_000_000 },
        }
    }
}

/// The flow arrived: its gradient is as small as was asked for.
///
/// That is the minimum, unless the flow began in a saddle (b = 0 and ⟨A, ΣΣ_q⟩ = 0):
/// [`LinearAttention::excess_risk`] tells.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stationary {
    /// When.
    pub time: f64,
    /// The norm of the gradient there.
    pub gradient_norm: f64,
}

impl fmt::Display for Stationary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "stationary at time {}: the gradient has norm {:e}", self.time, self.gradient_norm)
    }
}

/// A block along the gradient flow dA/dt = −∂R(bA)/∂A, db/dt = −∂R(bA)/∂b, as far as it got.
///
/// With Σ_q = Σ and A diagonal in the eigenbasis of Σ (eigenvalues sᵢ, those of Γ gᵢ) this is
/// aᵢ′ = k b sᵢ²(1 − b gᵢaᵢ), Zhang, Frei and Bartlett 2024.
#[derive(Debug, Clone)]
pub struct LinearFlow {
    /// The save times that were reached.
    pub times: Vec<f64>,
    /// The block at those times.
    pub blocks: Vec<LinearBlock>,
    /// The time of the last step.
    pub last_time: f64,
    /// The block at the last step.
    pub last: LinearBlock,
    /// The norm of the gradient there.
    pub gradient_norm: f64,
    /// The largest distance of [`LinearBlock::conserved`] from its value at the start, over all steps: an error
    /// of integration that the flow shows by itself.
    pub conserved_drift: f64,
    /// Accepted steps.
    pub steps: usize,
    /// Why the flow ended.
    pub ending: Ending<Stationary>,
}

/// See [`LinearAttention::flow`].
pub(super) fn flow(
    attention: &LinearAttention,
    start: &LinearBlock,
    options: &LinearFlowOptions,
    monitor: &dyn Monitor,
) -> Result<LinearFlow> {
    let dimension = attention.dimension();
    check::size("the block A (rows)", dimension, start.matrix.nrows())?;
    check::positive("the gradient norm to reach", options.gradient_norm)?;
    check::positive("the end time", options.end_time)?;
    let times = times(options)?;
    let mut system = |_time: f64, value: &[f64], slope: &mut [f64]| {
        let gradient = attention.block_gradient(&LinearBlock::from_vector(dimension, value)?)?;
        for (i, entry) in slope[..dimension * dimension].iter_mut().enumerate() {
            *entry = -gradient.matrix[(i % dimension, i / dimension)];
        }
        slope[dimension * dimension] = -gradient.gain;
        Ok(())
    };
    let state = dormand_prince::init(&options.steps, &mut system, 0.0, &start.to_vector())?;
    let conserved = start.conserved()?;
    let gradient_norm = linalg::norm(state.slope());
    if gradient_norm <= options.gradient_norm {
        let saved = usize::from(options.save_times.first() == Some(&0.0));
        return Ok(LinearFlow {
            times: vec![0.0; saved],
            blocks: vec![start.clone(); saved],
            last_time: 0.0,
            last: start.clone(),
            gradient_norm,
            conserved_drift: 0.0,
            steps: 0,
            ending: Ending::Observed(Stationary { time: 0.0, gradient_norm }),
        });
    }
    let mut conserved_drift: f64 = 0.0;
    let solution =
        dormand_prince::integrate(&options.steps, &mut system, state, &times, monitor, |state, _| {
            let block = LinearBlock::from_vector(dimension, state.value())?;
            conserved_drift = conserved_drift.max((block.conserved()? - conserved).abs());
            let gradient_norm = linalg::norm(state.slope());
            Ok(if gradient_norm <= options.gradient_norm {
                ControlFlow::Break(Stationary { time: state.time(), gradient_norm })
            } else {
                ControlFlow::Continue(())
            })
        })?;
    // The end time is kept only where it was asked for.
    let kept = solution.times.len().min(options.save_times.len());
    Ok(LinearFlow {
        times: solution.times[..kept].to_vec(),
        blocks: solution.values[..kept]
            .iter()
            .map(|value| LinearBlock::from_vector(dimension, value))
            .collect::<Result<_>>()?,
        last_time: solution.last.time(),
        last: LinearBlock::from_vector(dimension, solution.last.value())?,
        gradient_norm: linalg::norm(solution.last.slope()),
        conserved_drift,
        steps: solution.steps,
        ending: solution.ending,
    })
}

/// The save times, and the end time after them.
fn times(options: &LinearFlowOptions) -> Result<Vec<f64>> {
    let mut times = options.save_times.clone();
    match times.last() {
        Some(&last) if last > options.end_time => {
            let expected = "a time up to the end time";
            Err(Error::OutOfRange { what: "the last save time", value: last, expected })
        }
        Some(&last) if last == options.end_time => Ok(times),
        _ => {
            times.push(options.end_time);
            Ok(times)
        }
    }
}

/// ‖M‖_F, without overflow or underflow of the squares.
pub(super) fn frobenius(matrix: MatRef<'_, f64>) -> f64 {
    let largest = check::largest_entry(matrix);
    if largest == 0.0 || !largest.is_finite() {
        return largest;
    }
    let mut total = 0.0;
    for column in 0..matrix.ncols() {
        for row in 0..matrix.nrows() {
            total += (matrix[(row, column)] / largest).powi(2);
        }
    }
    largest * total.sqrt()
}
