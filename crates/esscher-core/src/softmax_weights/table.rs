//! Moments tabulated in τ for fixed lengths: piecewise Chebyshev interpolation, linear in the moments.

use super::WeightMoments;
use super::moments::check_score_deviation;
use crate::error::{Error, Result};
use crate::prompt_length::PromptLength;
use rayon::prelude::*;

/// Moments at any τ up to a largest one, for a fixed list of lengths.
///
/// Evaluation is a short sum, so a training loop or a query average pays for the integrals once; building it
/// costs 56 evaluations per unit of τ up to 4, 28 up to 9, 7 beyond.
///
/// The interpolation error is at most [`MomentTable::TOLERANCE`] times the moment or times E S₂, whichever is
/// larger: products of power sums that are much smaller than E S₂ (of order 1/L² and 1/L³) are not resolved to
/// that many digits of their own, and nothing that this crate computes needs them to be.
///
/// ```
/// use esscher_core::prompt::PromptLength;
/// use esscher_core::softmax_weights::{MomentTable, WeightMoments};
/// let lengths = [PromptLength::new(1000)?];
/// let table = MomentTable::new(2.0, &lengths)?;
/// let (interpolated, direct) = (table.at(1.234)?[0], WeightMoments::at(1.234, &lengths)?[0]);
/// assert!((interpolated.sum_of_squares / direct.sum_of_squares - 1.0).abs() < MomentTable::TOLERANCE);
/// # Ok::<(), esscher_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct MomentTable {
    lengths: Vec<PromptLength>,
    highest: f64,
    /// By panel, node of the panel, length.
    moments: Vec<Vec<Vec<WeightMoments>>>,
}

impl MomentTable {
    /// Interpolation error relative to the moment or to E S₂, for lengths up to 10¹².
    pub const TOLERANCE: f64 = 1e-9;

    /// Tabulates the moments of these lengths for 0 ≤ τ ≤ `highest`.
    pub fn new(highest: f64, lengths: &[PromptLength]) -> Result<Self> {
        check_score_deviation(highest)?;
        let moments = (0..=Panels::coefficients(highest).0)
            .into_par_iter()
            .map(|panel| {
                Panels::nodes(panel).iter().map(|&tau| WeightMoments::at_node(tau, lengths)).collect()
            })
            .collect();
        Ok(MomentTable { lengths: lengths.to_vec(), highest, moments })
    }

    /// The lengths of the table, in order.
    pub fn lengths(&self) -> &[PromptLength] {
        &self.lengths
    }

    /// The moments at τ, for each length in order.
    pub fn at(&self, score_deviation: f64) -> Result<Vec<WeightMoments>> {
        if !(0.0..=self.highest).contains(&score_deviation) {
            return Err(Error::OutOfRange {
                what: "the score deviation τ",
                value: score_deviation,
                expected: "a number from 0 to the largest τ of the table",
            });
        }
        let (panel, coefficients) = Panels::coefficients(score_deviation);
        let nodes = &self.moments[panel];
        Ok((0..self.lengths.len())
            .map(|length| {
                let values = nodes.iter().map(|node| &node[length]);
                WeightMoments::combination(coefficients.iter().copied().zip(values))
            })
            .collect())
    }
}

/// Interpolation nodes in τ, Chebyshev nodes inside panels that are narrow where the moments turn from
/// one regime of L to the next, and wide in the frozen regime.
pub(crate) struct Panels;

/// Chebyshev nodes in a panel.
pub(crate) const NODES: usize = 14;

/// (Start of the zone, width of its panels), in increasing order.
const ZONES: [(f64, f64); 3] = [(0.0, 0.25), (4.0, 0.5), (9.0, 2.0)];

impl Panels {
    /// The panel that holds τ and the values at τ of the Lagrange polynomials of its nodes.
    pub(crate) fn coefficients(tau: f64) -> (usize, [f64; NODES]) {
        let panel = Panels::panel(tau);
        let (start, width) = Panels::span(panel);
        let x = 2.0 * (tau - start) / width - 1.0;
        // Barycentric formula: Chebyshev nodes of the first kind have weights (−1)ⁱ sin.
        let mut coefficients = [0.0; NODES];
        let mut total = 0.0;
        for (i, coefficient) in coefficients.iter_mut().enumerate() {
            let (sine, cosine) = chebyshev_angle(i).sin_cos();
            let gap = x - cosine;
            if gap == 0.0 {
                coefficients = [0.0; NODES];
                coefficients[i] = 1.0;
                return (panel, coefficients);
            }
            let sign = if i % 2 == 0 { 1.0 } else { -1.0 };
            *coefficient = sign * sine / gap;
            total += *coefficient;
        }
        (panel, coefficients.map(|coefficient| coefficient / total))
    }

    /// The nodes of a panel.
    pub(crate) fn nodes(panel: usize) -> [f64; NODES] {
        let (start, width) = Panels::span(panel);
        std::array::from_fn(|i| start + 0.5 * width * (1.0 + chebyshev_angle(i).cos()))
    }

    pub(crate) fn panel(tau: f64) -> usize {
        let mut panels_below = 0;
        for (zone, &(start, width)) in ZONES.iter().enumerate() {
            let end = ZONES.get(zone + 1).map_or(f64::INFINITY, |next| next.0);
            if tau < end {
                return panels_below + ((tau - start) / width) as usize;
            }
            panels_below += ((end - start) / width) as usize;
        }
        panels_below
    }

    /// Start and width of a panel.
    pub(crate) fn span(panel: usize) -> (f64, f64) {
        let mut panels_below = 0;
        for (zone, &(start, width)) in ZONES.iter().enumerate() {
            let end = ZONES.get(zone + 1).map_or(f64::INFINITY, |next| next.0);
            let panels = (end - start) / width;
            if (panel as f64) < panels_below as f64 + panels {
                return (start + width * (panel - panels_below) as f64, width);
            }
            panels_below += panels as usize;
        }
        // Not reached: the last zone has no end.
        (0.0, 1.0)
    }
}

fn chebyshev_angle(i: usize) -> f64 {
    std::f64::consts::PI * (i as f64 + 0.5) / NODES as f64
}
