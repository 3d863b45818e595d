//! From one site to L of them: Σₖ L(L−1)…(L−k+1) ∫ φᴸ⁻ᵏ Bₖ ds for many lengths in one pass over s.

use super::sites::{LATTICE, SiteGrid, SiteSums};
use crate::prompt_length::PromptLength;

/// Most sites that a quantity ties together.
pub(crate) const BLOCKS: usize = 4;

/// `blocks[k − 1]` of one quantity at one s: what k distinct sites contribute, with 1/Γ(A) inside.
pub(crate) type Blocks = [f64; BLOCKS];

/// Powers φᴸ⁻ᵏ below e^{−600} = 10⁻²⁶⁰ are nothing. Much larger ones can matter: if an atom dominates, the error of
/// a prompt is the chance that the atom is absent.
const SPENT_LOG: f64 = -600.0;

/// Below s = −ln S − 19 the integrand, of order t² S², is below 10⁻¹⁶ of its peak.
const LOWER_MARGIN: f64 = 19.0;

/// How far up a normal deviate can matter for prompts of up to `longest` tokens at score deviation τ.
///
/// Moments of order four live below 4τ + 10; and L tokens do not see deviates of probability below
/// e^{−depth}/L³. For a single Gaussian, whose smallest quantities are of order 1/L², a depth of 50 is 10⁻²¹
/// of them; the errors of mixtures have no such floor (an atom may dominate), and take a depth of 250.
pub(crate) fn highest_normal(tau: f64, longest: PromptLength, depth: f64) -> f64 {
    let unseen = (2.0 * (3.0 * longest.as_f64().ln() + depth)).sqrt();
    (4.0 * tau + 10.0).min(unseen)
}

/// Integrates `quantities` block functions over s for every length; the result is indexed by length,
/// then by quantity.
///
/// A site is drawn from the mixture of `grids` with the given weights, shifted so that E e^ℓ = 1.
pub(crate) fn integrate(
    grids: &[(f64, SiteGrid)],
    lengths: &[PromptLength],
    quantities: usize,
    mut blocks_at: impl FnMut(&[SiteSums], &mut [Blocks]),
) -> Vec<Vec<f64>> {
    let mut totals = vec![vec![0.0; quantities]; lengths.len()];
    let mut blocks = vec![[0.0; BLOCKS]; quantities];
    let mut sums = Vec::with_capacity(grids.len());
    let (Some(shortest), Some(longest)) = (lengths.iter().min(), lengths.iter().max()) else {
        return totals;
    };
    let stride = grids.iter().map(|(_, grid)| grid.row_stride()).min().unwrap_or(1);
    let step = LATTICE * stride as f64;
    for row in rows(grids, *longest, stride) {
        sums.clear();
        sums.extend(grids.iter().map(|(_, grid)| grid.row(row)));
        let log_survival = log_survival(grids, &sums);
        let all_dead = log_survival == f64::NEG_INFINITY;
        if all_dead || (shortest.as_f64() - BLOCKS as f64) * log_survival < SPENT_LOG {
            break;
        }
        blocks.fill([0.0; BLOCKS]);
        blocks_at(&sums, &mut blocks);
        for (length, totals) in lengths.iter().zip(&mut totals) {
            let length = length.as_f64();
            if (length - BLOCKS as f64) * log_survival < SPENT_LOG {
                continue;
            }
            let factors = block_factors(length, log_survival, step);
            for (total, block) in totals.iter_mut().zip(&blocks) {
                *total += factors.iter().zip(block).map(|(factor, value)| factor * value).sum::<f64>();
            }
        }
    }
    totals
}

/// step · L(L−1)…(L−k+1) φᴸ⁻ᵏ for k = 1 … 4.
fn block_factors(length: f64, log_survival: f64, step: f64) -> Blocks {
    let mut factors = [0.0; BLOCKS];
    // Few sites survive: φᴸ⁻ᵏ may be of order one although φᴸ⁻¹ underflows, so no shortcut by division.
    let rare = log_survival < -100.0;
    let mut power = ((length - 1.0) * log_survival).exp();
    let inverse = (-log_survival).exp();
    let mut falling = step * length;
    for (k, entry) in factors.iter_mut().enumerate() {
        let left = length - 1.0 - k as f64;
        if left < 0.0 {
            break;
        }
        if rare {
            power = if left == 0.0 { 1.0 } else { (left * log_survival).exp() };
        }
        *entry = falling * power;
        falling *= left;
        power *= inverse;
    }
    factors
}

/// ln φ, from whichever of φ and 1 − φ keeps its digits.
fn log_survival(grids: &[(f64, SiteGrid)], sums: &[SiteSums]) -> f64 {
    let weighted = |part: fn(&SiteSums) -> f64| -> f64 {
        grids.iter().zip(sums).map(|((weight, _), sums)| weight * part(sums)).sum()
    };
    let extinction = weighted(|sums| sums.extinction);
    if extinction < 0.5 { (-extinction).ln_1p() } else { weighted(|sums| sums.survival).ln() }
}

/// The rows (multiples of the stride) at which some site is neither dead nor vanished, lowest first.
///
/// Components whose log-weights are far apart leave gaps between them, which are skipped.
fn rows(grids: &[(f64, SiteGrid)], longest: PromptLength, stride: i64) -> impl Iterator<Item = i64> {
    let log_length = longest.as_f64().ln();
    let highest = grids.iter().map(|(_, grid)| grid.highest_log_weight()).fold(f64::NEG_INFINITY, f64::max);
    let lowest_s = -log_length.max(highest) - LOWER_MARGIN;
    let to_row = |s: f64| (s / LATTICE / stride as f64).floor() as i64;
    let mut spans: Vec<(i64, i64)> = grids
        .iter()
        .map(|(_, grid)| {
            let from = (-grid.highest_log_weight() - log_length - 45.0).max(lowest_s);
            (to_row(from), to_row(-grid.lowest_log_weight() + 5.0) + 1)
        })
        .collect();
    spans.sort_unstable();
    let mut next = i64::MIN;
    spans.into_iter().flat_map(move |(from, to)| {
        let start = from.max(next);
        next = next.max(to + 1);
        (start..=to).map(move |row| row * stride)
    })
}
