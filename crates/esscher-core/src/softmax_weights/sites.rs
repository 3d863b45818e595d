//! One token's share in a prompt: the moments E[ uᵃ hᵇ exp(−u) ], u = eˢ⁺ˡ, of a site with log-weight ℓ = shift + τg.
//!
//! Everything about L tokens is an integral over s of such moments (see `docs/mathematics/finite-prompts.md`). Both the
//! integral over s and the one over g are of analytic, fast-decaying functions, so the trapezoid rule
//! converges geometrically. The two grids share one lattice: s and ℓ step by multiples of
//! [`LATTICE`], so x = s + ℓ meets exp(−eˣ) on a fixed table and no exponential is computed per node.

use crate::numerics::normal;
use std::sync::OnceLock;

/// Step of the lattice in x. The trapezoid error of ∫ eᵃˣ exp(−eˣ) dx is |Γ(a + 2πi/δ)| ≈ e^{−π²/δ}: at
/// δ = 0.2 at most 4·10⁻¹⁷ relative for a ≤ 4 and 3·10⁻¹⁵ for a = 6.
pub(super) const LATTICE: f64 = 0.2;

/// Largest step in g: the Gaussian density needs no finer one for 10⁻²⁰.
const WIDEST_NORMAL_STEP: f64 = 0.4;

/// Above this x the kernel u⁶ exp(−u) is below 10⁻¹⁷: such a site is *dead*.
const DEAD_INDEX: i64 = 22;

/// Below this x the weight u is an underflowed zero.
const VANISHED_INDEX: i64 = -3500;

/// Normal deviates below −9.5 weigh less than 10⁻²⁰, with their fourth powers.
const LOWEST_NORMAL: f64 = -9.5;

/// Nodes whose weight is below e^{−46} = 10⁻²⁰ of the largest in their row are left out.
const NEGLIGIBLE_LOG: f64 = 46.0;

/// Powers a of u with all powers b ≤ 4 of h.
const FULL_POWERS: usize = 4;

/// What one site contributes at one s; hᵇ is about the centre of the row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SiteSums {
    /// φ = E exp(−u).
    pub(crate) survival: f64,
    /// 1 − φ = −E expm1(−u), kept apart because φ is close to one at small t.
    pub(crate) extinction: f64,
    /// `plain[a − 1][b]` = E uᵃ hᵇ exp(−u) for a = 1 … 4, b = 0 … 4.
    pub(crate) plain: [[f64; 5]; FULL_POWERS],
    /// E u⁵ exp(−u) and E u⁶ exp(−u).
    pub(crate) high: [f64; 2],
    /// `damped[b]` = E u hᵇ expm1(−u), b = 0 … 2: what `plain[0]` becomes when E u hᵇ is subtracted.
    pub(crate) damped: [f64; 3],
    /// The g about which h is taken.
    pub(crate) centre: f64,
}

/// The quadrature of one site law.
#[derive(Debug)]
pub(crate) struct SiteGrid {
    shift: f64,
    tau: f64,
    first_node: f64,
    node_step: f64,
    /// Lattice index of the first node's log-weight; `None` where τ is too small for the lattice.
    first_index: Option<i64>,
    /// γ(g) Δg of each node.
    mass: Vec<f64>,
    /// Sum of `mass` before each node.
    mass_before: Vec<f64>,
    /// Sums of γ(g − τ) Δg (g − τ)ᵇ from each node to infinity, b = 0 … 2, and of mass to the end of the grid:
    /// the tilted mass mass · e^ℓ is the first times e^{shift + τ²/2}.
    from_here: Vec<[f64; 4]>,
}

impl SiteGrid {
    /// The site ℓ = shift + τ g, with g standard normal up to `highest_normal`.
    pub(crate) fn normal(shift: f64, tau: f64, highest_normal: f64) -> Self {
        let on_lattice = tau * WIDEST_NORMAL_STEP >= LATTICE;
        let node_step = if on_lattice { LATTICE / tau } else { WIDEST_NORMAL_STEP };
        let (first_node, first_index) = if on_lattice {
            let index = ((shift + tau * LOWEST_NORMAL) / LATTICE).floor();
            ((index * LATTICE - shift) / tau, Some(index as i64))
        } else {
            (LOWEST_NORMAL, None)
        };
        let nodes = ((highest_normal - first_node) / node_step).ceil() as usize + 1;
        let node = |j: usize| first_node + node_step * j as f64;
        let mass: Vec<f64> = (0..nodes).map(|j| normal::density(node(j)) * node_step).collect();
        SiteGrid::from_nodes(shift, tau, first_node, node_step, first_index, mass)
    }

    /// The site with the constant log-weight `shift`.
    pub(crate) fn atom(shift: f64) -> Self {
        SiteGrid {
            shift,
            tau: 0.0,
            first_node: 0.0,
            node_step: 1.0,
            first_index: None,
            mass: vec![1.0],
            mass_before: vec![0.0, 1.0],
            from_here: vec![[1.0, 0.0, 0.0, 1.0], [0.0; 4]],
        }
    }

    fn from_nodes(
        shift: f64,
        tau: f64,
        first_node: f64,
        node_step: f64,
        first_index: Option<i64>,
        mass: Vec<f64>,
    ) -> Self {
        let mut mass_before = vec![0.0; mass.len() + 1];
        for (j, weight) in mass.iter().enumerate() {
            mass_before[j + 1] = mass_before[j] + weight;
        }
        let tilted = |j: usize| {
            let h = first_node + node_step * j as f64 - tau;
            (normal::density(h) * node_step, h)
        };
        let mut from_here = vec![[0.0; 4]; mass.len() + 1];
        from_here[mass.len()] = beyond_the_grid(mass.len(), tau, first_node, node_step);
        for j in (0..mass.len()).rev() {
            let (weight, h) = tilted(j);
            let next = from_here[j + 1];
            from_here[j] =
                [next[0] + weight, next[1] + weight * h, next[2] + weight * h * h, next[3] + mass[j]];
        }
        SiteGrid { shift, tau, first_node, node_step, first_index, mass, mass_before, from_here }
    }

    /// Largest log-weight on the grid.
    pub(crate) fn highest_log_weight(&self) -> f64 {
        self.shift + self.tau * self.node(self.mass.len() - 1)
    }

    /// Smallest log-weight on the grid.
    pub(crate) fn lowest_log_weight(&self) -> f64 {
        self.shift + self.tau * self.first_node
    }

    /// The step in s, in lattice units, that resolves this site's moments as functions of s: they are
    /// smooth on the scale of the spread τ of log-weights, down to the width 1/7 of the largest of 10¹²
    /// normals.
    pub(crate) fn row_stride(&self) -> i64 {
        ((0.12 * self.tau) as i64).max(1)
    }

    fn node(&self, j: usize) -> f64 {
        self.first_node + self.node_step * j as f64
    }

    /// The moments at s = `row` · [`LATTICE`].
    pub(crate) fn row(&self, row: i64) -> SiteSums {
        let s = row as f64 * LATTICE;
        let centre = self.dominant(s + self.shift);
        let (kernel, window) = match self.first_index {
            Some(first) => self.window_on_lattice(row + first),
            None => self.window_computed(s),
        };
        let offset = self.node(window.start) - centre;
        let raw = accumulate(&self.mass[window.clone()], kernel.as_ref(), offset, self.node_step);
        let beyond = self.from_here[window.end];
        let survival = self.mass_before[window.start] + raw.survival;
        let shift_of_centre = self.tau - centre;
        let mut damped = raw.damped;
        if beyond[0] > 0.0 {
            // Dead sites: expm1(−u) = −1 and h about the row's centre is (g − τ) + (τ − centre). If the
            // factor overflows, the damped sums are useless and will not be chosen.
            let growth = (s + self.shift + 0.5 * self.tau * self.tau).exp();
            damped[0] -= growth * beyond[0];
            damped[1] -= growth * (beyond[1] + shift_of_centre * beyond[0]);
            damped[2] -=
                growth * (beyond[2] + shift_of_centre * (2.0 * beyond[1] + shift_of_centre * beyond[0]));
        }
        SiteSums {
            survival,
            extinction: raw.extinction + beyond[3],
            plain: raw.plain,
            high: raw.high,
            damped,
            centre,
        }
    }

    /// The g that dominates γ(g) u exp(−u), u = e^{x + τg}: a rough answer is enough. Moments about it do not
    /// cancel when the softmax freezes on its largest scores.
    fn dominant(&self, x: f64) -> f64 {
        if self.tau == 0.0 {
            return 0.0;
        }
        // Sites above this g are dying.
        let dying = -x / self.tau;
        // Once typical sites die, those that do not have g pushed down by τu at most.
        let dominant = if x <= 0.0 { dying } else { dying.max(self.tau * (1.0 - x.exp())) };
        dominant.clamp(LOWEST_NORMAL, self.tau)
    }

    /// The live and not negligible nodes of a row whose first node stands at lattice index `first`.
    fn window_on_lattice(&self, first: i64) -> (Kernel<'static>, std::ops::Range<usize>) {
        let table = kernel_table();
        let end = (DEAD_INDEX - first + 1).clamp(0, self.mass.len() as i64) as usize;
        let last_live = self.node(end.saturating_sub(1));
        // Below this g the factor γ(g) e^{τg} is negligible against its maximum over the live nodes.
        let reach = ((self.tau - last_live).max(0.0).powi(2) + 2.0 * NEGLIGIBLE_LOG).sqrt();
        let start = ((self.tau - reach - self.first_node) / self.node_step).max(0.0) as i64;
        let start = start.max(VANISHED_INDEX - first).clamp(0, end as i64) as usize;
        let from = (first + start as i64 - VANISHED_INDEX).max(0) as usize;
        (table.slice(from, end - start), start..end)
    }

    fn window_computed(&self, s: f64) -> (Kernel<'static>, std::ops::Range<usize>) {
        let dead = DEAD_INDEX as f64 * LATTICE;
        let x = |j: usize| s + self.shift + self.tau * self.node(j);
        let end = (0..self.mass.len()).take_while(|&j| x(j) <= dead).count();
        (Kernel::computed((0..end).map(x)), 0..end)
    }
}

/// The tilted sums of the nodes that a grid of this many nodes leaves out at its upper end.
///
/// The grid ends where normals stop to matter for a prompt, which may be below the tilted mean τ; E u h = 0 and
/// E u (h² − 1) = 0, on which damped sums rest, hold for the whole line only.
fn beyond_the_grid(nodes: usize, tau: f64, first_node: f64, node_step: f64) -> [f64; 4] {
    /// Tilted normals further from τ than this weigh nothing.
    const REACH: f64 = 9.5;
    let end = first_node + node_step * nodes as f64;
    if end < tau - REACH {
        return [1.0, 0.0, 1.0, 0.0];
    }
    let mut sums = [0.0; 4];
    let left = ((tau + REACH - end) / node_step).ceil().max(0.0) as usize;
    for k in (0..left).rev() {
        let h = end + node_step * k as f64 - tau;
        let weight = normal::density(h) * node_step;
        sums = [sums[0] + weight, sums[1] + weight * h, sums[2] + weight * h * h, 0.0];
    }
    sums
}

/// u = eˣ, exp(−u) and −expm1(−u) along a run of nodes.
enum Kernel<'a> {
    Tabulated(&'a [[f64; 3]]),
    Computed(Vec<[f64; 3]>),
}

impl Kernel<'_> {
    fn computed(arguments: impl Iterator<Item = f64>) -> Self {
        Kernel::Computed(arguments.map(kernel_at).collect())
    }

    fn as_ref(&self) -> &[[f64; 3]] {
        match self {
            Kernel::Tabulated(values) => values,
            Kernel::Computed(values) => values,
        }
    }
}

fn kernel_at(x: f64) -> [f64; 3] {
    let u = x.exp();
    [u, (-u).exp(), -(-u).exp_m1()]
}

struct KernelTable(Vec<[f64; 3]>);

impl KernelTable {
    fn slice(&self, from: usize, length: usize) -> Kernel<'_> {
        let from = from.min(self.0.len() - length.min(self.0.len()));
        Kernel::Tabulated(&self.0[from..from + length])
    }
}

/// The kernel on the whole lattice from the vanished to the dead.
fn kernel_table() -> &'static KernelTable {
    static TABLE: OnceLock<KernelTable> = OnceLock::new();
    TABLE.get_or_init(|| {
        KernelTable((VANISHED_INDEX..=DEAD_INDEX).map(|index| kernel_at(index as f64 * LATTICE)).collect())
    })
}

struct RawSums {
    survival: f64,
    extinction: f64,
    plain: [[f64; 5]; FULL_POWERS],
    high: [f64; 2],
    damped: [f64; 3],
}

/// Nodes summed side by side, so that the compiler can use vector registers.
const LANES: usize = 4;

type Lanes = [f64; LANES];

/// Sums over the nodes of a window; h = offset + j · step.
fn accumulate(mass: &[f64], kernel: &[[f64; 3]], offset: f64, step: f64) -> RawSums {
    let mut survival = [0.0; LANES];
    let mut extinction = [0.0; LANES];
    let mut plain = [[[0.0; LANES]; 5]; FULL_POWERS];
    let mut high = [[0.0; LANES]; 2];
    let mut damped = [[0.0; LANES]; 3];
    let mut add = |mass: Lanes, u: Lanes, survives: Lanes, dies: Lanes, h: Lanes| {
        add_product(&mut survival, &mass, &survives);
        add_product(&mut extinction, &mass, &dies);
        let weight = product(&mass, &u);
        let mut term = product(&weight, &dies);
        for sum in &mut damped {
            *sum = std::array::from_fn(|lane| sum[lane] - term[lane]);
            term = product(&term, &h);
        }
        let mut power = product(&weight, &survives);
        for row in &mut plain {
            let mut term = power;
            for sum in row {
                *sum = std::array::from_fn(|lane| sum[lane] + term[lane]);
                term = product(&term, &h);
            }
            power = product(&power, &u);
        }
        for sum in &mut high {
            *sum = std::array::from_fn(|lane| sum[lane] + power[lane]);
            power = product(&power, &u);
        }
    };
    let whole = mass.len() / LANES * LANES;
    for start in (0..whole).step_by(LANES) {
        let (mass, kernel) = (&mass[start..start + LANES], &kernel[start..start + LANES]);
        add(
            std::array::from_fn(|lane| mass[lane]),
            std::array::from_fn(|lane| kernel[lane][0]),
            std::array::from_fn(|lane| kernel[lane][1]),
            std::array::from_fn(|lane| kernel[lane][2]),
            std::array::from_fn(|lane| offset + step * (start + lane) as f64),
        );
    }
    if whole < mass.len() {
        let at = |lane: usize| kernel.get(whole + lane).copied().unwrap_or([0.0; 3]);
        add(
            std::array::from_fn(|lane| mass.get(whole + lane).copied().unwrap_or(0.0)),
            std::array::from_fn(|lane| at(lane)[0]),
            std::array::from_fn(|lane| at(lane)[1]),
            std::array::from_fn(|lane| at(lane)[2]),
            std::array::from_fn(|lane| offset + step * (whole + lane) as f64),
        );
    }
    let total = |lanes: &Lanes| lanes.iter().sum::<f64>();
    RawSums {
        survival: total(&survival),
        extinction: total(&extinction),
        plain: plain.map(|row| row.map(|sum| total(&sum))),
        high: high.map(|sum| total(&sum)),
        damped: damped.map(|sum| total(&sum)),
    }
}

#[inline(always)]
fn product(a: &Lanes, b: &Lanes) -> Lanes {
    std::array::from_fn(|lane| a[lane] * b[lane])
}

#[inline(always)]
fn add_product(sum: &mut Lanes, a: &Lanes, b: &Lanes) {
    *sum = std::array::from_fn(|lane| sum[lane] + a[lane] * b[lane]);
}
