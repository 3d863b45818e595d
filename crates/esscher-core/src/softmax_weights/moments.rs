//! The moments that prompts need, as functions of (τ, L).

use super::prompt_integral::{Blocks, highest_normal, integrate};
use super::shrinkage::Shrinkage;
use super::sites::{SiteGrid, SiteSums};
use crate::error::{Error, Result};
use crate::prompt_length::PromptLength;

/// Largest τ accepted: far inside the frozen regime of any prompt of up to 10¹² tokens.
pub const MAX_SCORE_DEVIATION: f64 = 1e4;

/// Every moment is right to this relative error, for τ up to 10 and L from 1 to 10¹².
///
/// Measured against 25-digit references over that range: the largest error seen is 8e-15. Beyond τ = 10 the
/// frozen weights get easier, not harder; at L = 2 the same accuracy was measured up to τ = 10⁴.
pub const RELATIVE_TOLERANCE: f64 = 1e-12;

/// Expectations over p = softmax(τg), g ~ N(0, I_L), with G = Σ pₗgₗ, A = Σ pₗ(gₗ − G)², Sₐ = Σ pₗᵃ.
///
/// ```
/// use esscher_core::prompt::PromptLength;
/// use esscher_core::softmax_weights::WeightMoments;
/// let moments = &WeightMoments::at(1.0, &[PromptLength::new(1_000_000_000_000)?])?[0];
/// // E S₂ ≈ e^{τ²}/L: a trillion tokens, of which about 3.7e11 count.
/// assert!((moments.sum_of_squares * 1e12 / 1f64.exp() - 1.0).abs() < 1e-9);
/// # Ok::<(), esscher_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WeightMoments {
    /// E S₂; its inverse is the effective number of tokens, and −τ E S₂ = E G − τ exactly.
    pub sum_of_squares: f64,
    /// E S₃.
    pub sum_of_cubes: f64,
    /// E S₄.
    pub sum_of_fourths: f64,
    /// E S₂².
    pub squared_sum_of_squares: f64,
    /// E S₂S₃.
    pub squares_times_cubes: f64,
    /// E S₂³.
    pub cubed_sum_of_squares: f64,
    /// E G − τ, the bias of the mean score.
    pub mean_bias: f64,
    /// E (G − τ)².
    pub mean_squared_error: f64,
    /// Var G.
    pub mean_variance: f64,
    /// E A.
    pub variance: f64,
    /// E A².
    pub squared_variance: f64,
    /// E (A − 1)².
    pub variance_squared_error: f64,
    /// E A S₂.
    pub variance_times_squares: f64,
    /// E Σ pₗ² (gₗ − G)².
    pub cross: f64,
    /// E ‖diag p − ppᵀ‖²_F.
    pub frobenius: f64,
    /// E (Σ pₗ)², which is one: its distance from one is the quadrature error of the call.
    pub closure: f64,
}

/// Rows of the integral, in the order of [`blocks_of`].
const QUANTITIES: usize = 15;

impl WeightMoments {
    /// The moments at score deviation τ for each length, in the order given.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] unless 0 ≤ τ ≤ [`MAX_SCORE_DEVIATION`].
    pub fn at(score_deviation: f64, lengths: &[PromptLength]) -> Result<Vec<WeightMoments>> {
        Ok(WeightMoments::at_node(check_score_deviation(score_deviation)?, lengths))
    }

    /// The same at a node of an interpolation, which may lie a little beyond the largest τ that is asked for.
    pub(crate) fn at_node(tau: f64, lengths: &[PromptLength]) -> Vec<WeightMoments> {
        let Some(longest) = lengths.iter().max() else {
            return Vec::new();
        };
        // With shift −τ²/2 the mean weight is one, so s stays near −ln L.
        let grid = SiteGrid::normal(-0.5 * tau * tau, tau, highest_normal(tau, *longest, 50.0));
        let integrals = integrate(&[(1.0, grid)], lengths, QUANTITIES, |sums, blocks| {
            blocks_of(tau, &sums[0], blocks);
        });
        integrals
            .iter()
            .zip(lengths)
            .map(
                |(integrals, length)| {
                    if length.get() == 1 {
                        WeightMoments::of_one_token(tau)
                    } else {
                        assemble(tau, integrals)
                    }
                },
            )
            .collect()
    }

    /// c₁, c₂ and their derivatives, from the power sums.
    pub fn shrinkage(&self) -> Shrinkage {
        Shrinkage::from_moments(self)
    }

    /// Σ coefficient · moments: interpolation and averages are linear in the moments.
    pub(crate) fn combination<'a>(terms: impl Iterator<Item = (f64, &'a WeightMoments)>) -> WeightMoments {
        let mut total = [0.0; FIELDS];
        for (coefficient, moments) in terms {
            for (sum, value) in total.iter_mut().zip(moments.to_array()) {
                *sum += coefficient * value;
            }
        }
        WeightMoments::from_array(total)
    }

    /// One token: p = 1, G = g, A = 0.
    fn of_one_token(tau: f64) -> Self {
        WeightMoments {
            sum_of_squares: 1.0,
            sum_of_cubes: 1.0,
            sum_of_fourths: 1.0,
            squared_sum_of_squares: 1.0,
            squares_times_cubes: 1.0,
            cubed_sum_of_squares: 1.0,
            mean_bias: -tau,
            mean_squared_error: 1.0 + tau * tau,
            mean_variance: 1.0,
            variance: 0.0,
            squared_variance: 0.0,
            variance_squared_error: 1.0,
            variance_times_squares: 0.0,
            cross: 0.0,
            frobenius: 0.0,
            closure: 1.0,
        }
    }
}

/// The fields as an array and back, so that linear operations are written once.
macro_rules! fields_as_array {
    ($count:ident; $($field:ident),+ $(,)?) => {
        const $count: usize = [$(stringify!($field)),+].len();

        impl WeightMoments {
            fn to_array(self) -> [f64; $count] {
                [$(self.$field),+]
            }

            fn from_array([$($field),+]: [f64; $count]) -> Self {
                WeightMoments { $($field),+ }
            }
        }
    };
}

fields_as_array!(FIELDS;
    sum_of_squares, sum_of_cubes, sum_of_fourths, squared_sum_of_squares, squares_times_cubes,
    cubed_sum_of_squares, mean_bias, mean_squared_error, mean_variance, variance, squared_variance,
    variance_squared_error, variance_times_squares, cross, frobenius, closure,
);

/// 0 ≤ τ ≤ [`MAX_SCORE_DEVIATION`].
pub(crate) fn check_score_deviation(tau: f64) -> Result<f64> {
    if (0.0..=MAX_SCORE_DEVIATION).contains(&tau) {
        return Ok(tau);
    }
    let what = "the score deviation τ of the query";
    if !tau.is_finite() {
        return Err(Error::Overflow { what });
    }
    Err(Error::OutOfRange {
        what,
        value: tau,
        expected: "a number from 0 to 10000 (beyond, a single token takes all the weight)",
    })
}

/// (y₀, y₁, …) moments about a centre → moments about centre − `shift`, i.e. of y + shift.
fn about(moments: &[f64; 5], shift: f64) -> [f64; 5] {
    let [m0, m1, m2, m3, m4] = *moments;
    let c = shift;
    [
        m0,
        m1 + c * m0,
        m2 + c * (2.0 * m1 + c * m0),
        m3 + c * (3.0 * m2 + c * (3.0 * m1 + c * m0)),
        m4 + c * (4.0 * m3 + c * (6.0 * m2 + c * (4.0 * m1 + c * m0))),
    ]
}

/// What k = 1 … 4 distinct sites contribute to each quantity at one s:
/// docs/mathematics/finite-prompts.md, sections 2 and 3.
fn blocks_of(tau: f64, sums: &SiteSums, blocks: &mut [Blocks]) {
    let [n1, n2, n3, n4] = sums.plain;
    // Moments about τ, for quantities centred on the limit.
    let to_tau = sums.centre - tau;
    let [t1, t2, t3, t4] = [&n1, &n2, &n3, &n4].map(|n| about(n, to_tau));
    let (zero_1, zero_2) = (about(&n1, sums.centre)[1], about(&n2, sums.centre)[2]);
    let d0 = sums.damped[0];
    let d1 = sums.damped[1] + to_tau * d0;
    let d2 = sums.damped[2] + to_tau * (2.0 * sums.damped[1] + to_tau * d0);
    // E u h = 0 and E u (h² − 1) = 0 allow either kernel; the smaller one cancels less.
    let (first, spread) = if -d0 < n1[0] { (d1, d2 - d0) } else { (t1[1], t1[2] - t1[0]) };
    // Moments about the row's own means: there the pair differences have no cancellation.
    let (mean_1, mean_2) = (ratio(n1[1], n1[0]), ratio(n2[1], n2[0]));
    let variance_1 = about(&n1, -mean_1)[2];
    let (c2, c3) = (about(&n2, -mean_1), about(&n3, -mean_1));
    let own_2 = about(&n2, -mean_2);
    let relative_variance = ratio(variance_1, n1[0]);
    // h² − 1 with powers of h.
    let two_spread = t2[4] - 2.0 * t2[2] + t2[0];
    let two_mixed = t2[3] - t2[1];
    let three_mixed = t3[4] - t3[2];

    blocks[0] = [n2[0], n1[0] * n1[0], 0.0, 0.0];
    blocks[1] = [n2[0], 0.0, 0.0, 0.0];
    blocks[2] = [n3[0] / 2.0, 0.0, 0.0, 0.0];
    blocks[3] = [n4[0] / 6.0, 0.0, 0.0, 0.0];
    blocks[4] = [n4[0] / 6.0, n2[0] * n2[0] / 6.0, 0.0, 0.0];
    blocks[5] = [sums.high[0] / 24.0, n2[0] * n3[0] / 24.0, 0.0, 0.0];
    blocks[6] = [sums.high[1] / 120.0, 3.0 * n4[0] * n2[0] / 120.0, n2[0].powi(3) / 120.0, 0.0];
    blocks[7] = [t2[2], first * first, 0.0, 0.0];
    blocks[8] = [0.0, n1[0] * variance_1, 0.0, 0.0];
    blocks[9] = [
        0.0,
        (own_2[4] * own_2[0] + 3.0 * own_2[2] * own_2[2]) / 6.0,
        n1[0] * n1[0] * (c2[4] + relative_variance * (2.0 * c2[2] + relative_variance * c2[0])) / 6.0,
        (n1[0] * variance_1).powi(2) / 6.0,
    ];
    blocks[10] = [
        two_spread - three_mixed + t4[4] / 6.0,
        spread * spread - (spread * t2[2] + 2.0 * two_mixed * first)
            + (4.0 * t3[3] * first + 3.0 * t2[2] * t2[2]) / 6.0,
        -spread * first * first + t2[2] * first * first,
        first.powi(4) / 6.0,
    ];
    blocks[11] = [0.0, (c3[2] * n1[0] + c3[0] * variance_1) / 6.0, n2[0] * n1[0] * variance_1 / 6.0, 0.0];
    blocks[12] = [0.0, 2.0 * own_2[2] * own_2[0] / 6.0, n1[0] * n1[0] * c2[2] / 6.0, 0.0];
    blocks[13] = [0.0, 2.0 * n2[0] * n2[0] / 6.0, n2[0] * n1[0] * n1[0] / 6.0, 0.0];
    blocks[14] = [zero_2, zero_1 * zero_1, 0.0, 0.0];
}

/// a/b, zero where b has underflowed.
fn ratio(a: f64, b: f64) -> f64 {
    if b > 0.0 { a / b } else { 0.0 }
}

fn assemble(tau: f64, integrals: &[f64]) -> WeightMoments {
    let [
        closure,
        sum_of_squares,
        sum_of_cubes,
        sum_of_fourths,
        squared_sum_of_squares,
        squares_times_cubes,
        cubed_sum_of_squares,
        mean_squared_error,
        variance,
        squared_variance,
        centred_variance_error,
        variance_times_squares,
        cross,
        frobenius,
        second_moment_of_mean,
    ] = std::array::from_fn(|quantity| integrals[quantity]);
    // Near the limit the centred form keeps the digits of a small error, in the frozen regime the
    // expanded square does: it has no large terms that cancel.
    let expanded = 1.0 - 2.0 * variance + squared_variance;
    let variance_squared_error = if expanded < 0.05 { centred_variance_error } else { expanded };
    // Var G about the limit where the prompt is close to it, about zero where it has frozen far from it:
    // never the difference of two large squares.
    let mean_bias = -tau * sum_of_squares;
    let mean_variance = if mean_bias * mean_bias < 0.5 * mean_squared_error {
        mean_squared_error - mean_bias * mean_bias
    } else {
        second_moment_of_mean - (tau + mean_bias).powi(2)
    };
    WeightMoments {
        sum_of_squares,
        sum_of_cubes,
        sum_of_fourths,
        squared_sum_of_squares,
        squares_times_cubes,
        cubed_sum_of_squares,
        mean_bias,
        mean_squared_error,
        mean_variance,
        variance,
        squared_variance,
        variance_squared_error,
        variance_times_squares,
        cross,
        frobenius,
        closure,
    }
}
