//! Moments that tie a softmax to its opposite: double integrals over s₁ = ln t₁ and s₂ = ln t₂, one term per length.
//!
//! With s₁ = m + x and s₂ = m − x a site has u = e^{m+z} and v = e^{m−z}, z = x + τg: uv = e^{2m} does not depend
//! on g, and at fixed m every site sum is a convolution in x of the normal density with one kernel of z. Both
//! grids share the lattice of `sites.rs`. Section 6 of `docs/mathematics/finite-prompts.md` has the
//! integrands and the error of the rule.

use super::prompt_integral::highest_normal;
use super::sites::LATTICE;
use crate::numerics::linalg::dot_in_lanes;
use crate::numerics::normal;
use crate::prompt_length::PromptLength;

/// Largest step in g, as in `sites.rs`.
const WIDEST_NORMAL_STEP: f64 = 0.4;

/// A site with u or v above e^{4.4} = 81 is dead: u⁴ exp(−u) is below 10⁻²⁷.
const DEAD: f64 = 4.4;

/// Above this m every site has u + v > 60, and even two of them survive with probability below e^{−120}.
const HIGHEST_MEAN: f64 = 3.4;

/// Terms below this part of the total, and still falling, end a line or the rows.
const NEGLIGIBLE: f64 = 1e-17;

/// Expectations over p = softmax(τg) and r = softmax(−τg); K = Σ pₗrₗ, Sₐ = Σ pₗᵃ, R₂ = Σ rₗ².
#[derive(Debug, Clone, Copy)]
pub(super) struct PairMoments {
    /// E K.
    pub(super) k: f64,
    /// E K².
    pub(super) kk: f64,
    /// E K³.
    pub(super) kkk: f64,
    /// E K S₂.
    pub(super) k_s2: f64,
    /// E K S₃.
    pub(super) k_s3: f64,
    /// E K S₂².
    pub(super) k_s2s2: f64,
    /// E K S₂R₂.
    pub(super) k_s2r2: f64,
    /// E K² S₂.
    pub(super) kk_s2: f64,
    /// E S₂R₂.
    pub(super) s2r2: f64,
    /// E S₃R₂.
    pub(super) s3r2: f64,
    /// E S₂²R₂.
    pub(super) s2s2r2: f64,
    /// E Σp Σr, which is one.
    pub(super) closure: f64,
}

const QUANTITIES: usize = 12;

/// The moments at score deviation τ for a prompt of this length.
pub(super) fn integrate(tau: f64, length: PromptLength) -> PairMoments {
    let sites = Sites::new(tau, length);
    let length = length.as_f64();
    let stride = stride(tau, length);
    // ds₁ ds₂ = 2 dm dx.
    let weight = 2.0 * LATTICE * LATTICE * stride as f64;
    let mut totals = [0.0; QUANTITIES];
    let (mut total, mut last_row) = (0.0, 0.0);
    for row in 0.. {
        let mean = HIGHEST_MEAN - LATTICE * f64::from(row);
        let line = sites.line(mean);
        let (mut row_total, mut last) = (0.0, 0.0);
        for step in 0.. {
            let mut terms = [0.0; QUANTITIES];
            let sums = line.at(step * stride);
            if sums.survival > 0.0 {
                add_terms(length, mean, &sums, &mut terms);
                if step > 0 {
                    // g → −g turns x into −x and exchanges the two heads.
                    let PairSums { ups, downs, .. } = sums;
                    add_terms(length, mean, &PairSums { ups: downs, downs: ups, ..sums }, &mut terms);
                }
            }
            let size: f64 = terms.iter().sum();
            for (sum, term) in totals.iter_mut().zip(terms) {
                *sum += weight * term;
            }
            row_total += size;
            // Every term is log-concave in x and, summed over x, in m: once it falls it goes on falling.
            if size <= NEGLIGIBLE * (total + row_total) && size <= last {
                break;
            }
            last = size;
        }
        total += row_total;
        if total > 0.0 && row_total <= NEGLIGIBLE * total && row_total <= last_row {
            break;
        }
        last_row = row_total;
    }
    let [k, kk, kkk, k_s2, k_s3, k_s2s2, k_s2r2, kk_s2, s2r2, s3r2, s2s2r2, closure] = totals;
    PairMoments { k, kk, kkk, k_s2, k_s3, k_s2s2, k_s2r2, kk_s2, s2r2, s3r2, s2s2r2, closure }
}

/// Lattice steps between neighbouring x.
///
/// The mean score moves x alone and is normal with variance τ²/L, which damps the error of a step h in x by
/// exp(−(2π/h)²τ²/2L): below 10⁻¹⁶ for h up to 0.73 τ/√L.
fn stride(tau: f64, length: f64) -> i64 {
    ((0.73 * tau / length.sqrt() / LATTICE) as i64).max(1)
}

/// The integrands at one (m, x), with 1/Γ(A)Γ(B) inside (docs/mathematics/finite-prompts.md, section 6).
fn add_terms(length: f64, mean: f64, sums: &PairSums, terms: &mut [f64; QUANTITIES]) {
    let log_survival = if sums.extinction < 0.5 { (-sums.extinction).ln_1p() } else { sums.survival.ln() };
    let [n1, n2, n3, n4] = sums.ups;
    let [m1, m2, ..] = sums.downs;
    let power = |sites: f64| ((length - sites) * log_survival).exp();
    let none = power(0.0);
    let one = length * power(1.0);
    let two = length * (length - 1.0) * power(2.0);
    let three = length * (length - 1.0) * (length - 2.0) * power(3.0);
    let omega = (2.0 * mean).exp();
    let scaled = length * omega;
    let both_squares = scaled * omega * none + two * n2 * m2;
    let values = [
        scaled * none,
        scaled * scaled * none,
        scaled * scaled * scaled * none / 4.0,
        scaled * one * n2 / 2.0,
        scaled * one * n3 / 6.0,
        scaled * (one * n4 + two * n2 * n2) / 24.0,
        scaled * both_squares / 4.0,
        scaled * scaled * one * n2 / 6.0,
        both_squares,
        (omega * omega * one * n1 + two * n3 * m2) / 2.0,
        (omega * omega * (2.0 * length - 1.0) * one * n2 + two * n4 * m2 + three * n2 * n2 * m2) / 6.0,
        scaled * none + two * n1 * m1,
    ];
    for (term, value) in terms.iter_mut().zip(values) {
        *term += value;
    }
}

/// What one site contributes at one (m, x), with k = exp(−u − v).
#[derive(Clone, Copy)]
struct PairSums {
    /// Φ = E k.
    survival: f64,
    /// 1 − Φ.
    extinction: f64,
    /// E uᵃ k for a = 1 … 4.
    ups: [f64; 4],
    /// E vᵃ k for a = 1 … 4.
    downs: [f64; 4],
}

/// The quadrature of g, symmetric about zero.
struct Sites {
    tau: f64,
    node_step: f64,
    /// Nodes to each side of zero.
    reach: i64,
    /// Whether τ times the step in g is the lattice step.
    on_lattice: bool,
    /// γ(g) Δg.
    mass: Vec<f64>,
    /// Sum of `mass` before each node.
    mass_before: Vec<f64>,
}

impl Sites {
    fn new(tau: f64, length: PromptLength) -> Self {
        let on_lattice = tau * WIDEST_NORMAL_STEP >= LATTICE;
        let node_step = if on_lattice { LATTICE / tau } else { WIDEST_NORMAL_STEP };
        let reach = (highest_normal(tau, length, 50.0) / node_step).ceil() as i64;
        let mass: Vec<f64> =
            (-reach..=reach).map(|j| normal::density(node_step * j as f64) * node_step).collect();
        let mut mass_before = vec![0.0; mass.len() + 1];
        for (j, weight) in mass.iter().enumerate() {
            mass_before[j + 1] = mass_before[j] + weight;
        }
        Sites { tau, node_step, reach, on_lattice, mass, mass_before }
    }

    fn line(&self, mean: f64) -> Line<'_> {
        let live = ((DEAD - mean) / LATTICE) as i64;
        let kernel = if self.on_lattice {
            (-live..=live).map(|index| kernel_at(mean, index as f64 * LATTICE)).collect()
        } else {
            Vec::new()
        };
        let column = |entry: usize| kernel.iter().map(|row: &[f64; 6]| row[entry]).collect();
        Line { sites: self, mean, live, columns: std::array::from_fn(column) }
    }
}

/// 1 − k, k, and uᵃk for a = 1 … 4, with u = e^{m+z}, v = e^{m−z}.
fn kernel_at(mean: f64, z: f64) -> [f64; 6] {
    let (u, v) = ((mean + z).exp(), (mean - z).exp());
    let survives = (-u - v).exp();
    [-(-u - v).exp_m1(), survives, u * survives, u * u * survives, u.powi(3) * survives, u.powi(4) * survives]
}

/// The kernel at one m.
struct Line<'a> {
    sites: &'a Sites,
    mean: f64,
    /// Lattice steps of z to each side of zero at which a site lives.
    live: i64,
    /// The entries of [`kernel_at`] at those z; empty off the lattice.
    columns: [Vec<f64>; 6],
}

impl Line<'_> {
    /// The sums at x = `index` lattice steps.
    fn at(&self, index: i64) -> PairSums {
        if self.sites.on_lattice { self.convolved(index) } else { self.summed(index as f64 * LATTICE) }
    }

    fn convolved(&self, index: i64) -> PairSums {
        let Sites { reach, mass, mass_before, .. } = self.sites;
        let [dies, survives, powers @ ..] = &self.columns;
        // Nodes j at which z = index + j is alive.
        let from = (-reach).max(-self.live - index);
        let to = (*reach).min(self.live - index);
        if from > to {
            return PairSums { survival: 0.0, extinction: 1.0, ups: [0.0; 4], downs: [0.0; 4] };
        }
        let nodes = (from + reach) as usize..(to + reach + 1) as usize;
        let start = (index + from + self.live) as usize;
        let live_mass = &mass[nodes.clone()];
        let sum = |column: &[f64]| dot_in_lanes(live_mass, &column[start..]);
        // The mirror image: z → −z turns uᵃk into vᵃk, and the masses are symmetric.
        let mirrored_nodes = mass.len() - nodes.end..mass.len() - nodes.start;
        let mirrored_start = (-index - to + self.live) as usize;
        let mirrored =
            |column: &[f64]| dot_in_lanes(&mass[mirrored_nodes.clone()], &column[mirrored_start..]);
        // Masses beyond the last live node by symmetry: as a difference from one they would lose their digits.
        let dead = mass_before[nodes.start] + mass_before[mass.len() - nodes.end];
        PairSums {
            survival: sum(survives),
            extinction: sum(dies) + dead,
            ups: std::array::from_fn(|a| sum(&powers[a])),
            downs: std::array::from_fn(|a| mirrored(&powers[a])),
        }
    }

    fn summed(&self, x: f64) -> PairSums {
        let Sites { tau, node_step, reach, mass, .. } = self.sites;
        let mut sums = PairSums { survival: 0.0, extinction: 0.0, ups: [0.0; 4], downs: [0.0; 4] };
        for (j, weight) in (-reach..=*reach).zip(mass) {
            let z = x + tau * node_step * j as f64;
            if z.abs() > DEAD - self.mean {
                sums.extinction += weight;
                continue;
            }
            let [dies, survives, ..] = kernel_at(self.mean, z);
            sums.survival += weight * survives;
            sums.extinction += weight * dies;
            let (u, v) = ((self.mean + z).exp(), (self.mean - z).exp());
            let (mut up, mut down) = (weight * survives, weight * survives);
            for a in 0..4 {
                up *= u;
                down *= v;
                sums.ups[a] += up;
                sums.downs[a] += down;
            }
        }
        sums
    }
}
