//! The law of a quadratic form Q = Σ λᵢgᵢ² of standard normals: averages of functions of Q as one-dimensional sums.
//!
//! The density of Q, alone or weighted with gᵢ² or gᵢ²gⱼ², is an inverse Laplace transform:
//!
//!   f(q) = (2πi)⁻¹ ∫ e^{sq} Π (1 + 2λs)^{−m/2} ds,  times (1 + 2λᵢs)⁻¹ for a weight gᵢ².
//!
//! All singularities lie on the real axis left of s* = −1/(2 max λ). The path s = s₀ + iy − y²/(4R) goes through the
//! saddle point s₀ = s* + ρ and opens as wide as the bulk of the values asks (R = normals/(2q) ≥ ρ), so that it stays
//! away from every singularity; y = ρ sinh v resolves the scale ρ of the largest value and that of the bulk alike.
//! In v the integrand is analytic and decays fast: the trapezoid rule reaches rounding with some tens of points, far
//! into both tails.

use super::check;
use crate::error::{Error, Result};
use faer::c64;

/// Q = Σ λᵢ |gᵢ|² over groups of independent standard normals.
#[derive(Debug, Clone)]
pub(crate) struct QuadraticForm {
    values: Vec<f64>,
    multiplicities: Vec<f64>,
}

/// A node of the rule: Σ weight · f(q) ≈ E f(Q).
#[derive(Debug, Clone)]
pub(crate) struct FormNode {
    pub(crate) q: f64,
    pub(crate) weight: f64,
    /// The same with the weight gᵢ² of one normal of each group.
    pub(crate) single: Vec<f64>,
    /// With gᵢ²gⱼ² of two *different* normals, of groups i ≥ j row by row; a third of E gᵢ⁴ for the same one.
    pub(crate) pair: Vec<f64>,
}

/// ln of what is left out at either end.
const TAIL: f64 = -46.0;

/// ln of the accuracy of a density, relative to its Chernoff bound; terms below `NEGLIGIBLE` end the sum.
const DIGITS: f64 = 34.0;
const NEGLIGIBLE: f64 = 1e-16;

/// Points on a path: more than any law that passes its checks needs.
const MOST_POINTS: usize = 20_000;

impl QuadraticForm {
    /// The form with these values, each for so many normals.
    pub(crate) fn new(values: &[f64], multiplicities: &[f64]) -> Result<Self> {
        check::size("the multiplicities", values.len(), multiplicities.len())?;
        check::finite_vector("the values of a quadratic form", values)?;
        if let Some(&value) = values.iter().find(|value| !(**value >= 0.0)) {
            return Err(Error::OutOfRange {
                what: "a value of a quadratic form",
                value,
                expected: "zero or more",
            });
        }
        Ok(QuadraticForm { values: values.to_vec(), multiplicities: multiplicities.to_vec() })
    }

    /// One node at the mean: enough for weights that are constant and functions that are linear in Q.
    pub(crate) fn mean_node(&self) -> FormNode {
        let groups = self.values.len();
        let mean = self.values.iter().zip(&self.multiplicities).map(|(value, m)| m * value).sum();
        FormNode {
            q: mean,
            weight: 1.0,
            single: vec![1.0; groups],
            pair: vec![1.0; groups * (groups + 1) / 2],
        }
    }

    /// The nodes, with every weight checked: Σ weight = Σ single = 1 to 1e-11.
    ///
    /// # Errors
    /// [`Error::Overflow`] if the mean of Q is not a number of this size; [`Error::OutOfRange`] if the values are so
    /// far apart that no rule here integrates them.
    pub(crate) fn nodes(&self, pairs: bool) -> Result<Vec<FormNode>> {
        let groups = self.values.len();
        let highest = self.values.iter().copied().fold(0.0, f64::max);
        let normals: f64 = self.multiplicities.iter().sum();
        let mean: f64 = self.values.iter().zip(&self.multiplicities).map(|(value, m)| m * value).sum();
        let ratios = self.values.iter().zip(&self.multiplicities);
        let squares: f64 = ratios.map(|(value, m)| m * (value / mean).powi(2)).sum();
        check::finite_number("the mean of a quadratic form", mean + normals)?;
        if !(mean > f64::MIN_POSITIVE && squares > 0.0) {
            // Nothing varies: Q = 0.
            let pair = vec![1.0; if pairs { groups * (groups + 1) / 2 } else { 0 }];
            return Ok(vec![FormNode { q: 0.0, weight: 1.0, single: vec![1.0; groups], pair }]);
        }
        let spread = (2.0 * squares).sqrt();
        let density = |q: f64, pairs: bool| self.density(q, highest, pairs);
        let nodes = trapezoid(mean, spread, |q| density(q, pairs));
        if self.total_is_one(&nodes) {
            return Ok(nodes);
        }
        // A few large values over many small ones: the density has features far apart and narrow.
        let nodes = panels(mean, |q| density(q, false), |q| density(q, pairs));
        if self.total_is_one(&nodes) {
            return Ok(nodes);
        }
        let lowest = self.values.iter().copied().filter(|value| *value > 0.0).fold(highest, f64::min);
        Err(Error::OutOfRange {
            what: "the ratio of the largest to the smallest value of a quadratic form",
            value: highest / lowest,
            expected: "values closer together: this law could not be integrated to 1e-11",
        })
    }

    fn total_is_one(&self, nodes: &[FormNode]) -> bool {
        // Exponents as large as the number of normals are only known to their rounding.
        let allowed = 1e-11 + 4.0 * f64::EPSILON * self.multiplicities.iter().sum::<f64>();
        let close = |total: f64| (total - 1.0).abs() < allowed;
        close(nodes.iter().map(|node| node.weight).sum())
            && (0..self.values.len()).all(|i| close(nodes.iter().map(|node| node.single[i]).sum()))
    }

    /// The densities at q; none in the tails that are left out.
    fn density(&self, q: f64, highest: f64, pairs: bool) -> Option<FormNode> {
        let groups = self.values.len();
        let start = -0.5 / highest;
        // 1 + 2λs at s = s* + t is (1 − λ/max λ) + 2λt, without cancellation.
        let offsets: Vec<f64> = self.values.iter().map(|value| (highest - value) / highest).collect();
        let depth = self.saddle(q, &offsets);
        let mut exponent = (start + depth) * q;
        let mut normals = 0.0;
        // Everything relative to the vertex v = 0, where 1 + 2λs is real and smallest.
        let mut vertex = Vec::with_capacity(groups);
        let mut rates = Vec::with_capacity(groups);
        for ((value, offset), m) in self.values.iter().zip(&offsets).zip(&self.multiplicities) {
            let base = offset + 2.0 * value * depth;
            exponent -= 0.5 * m * base.ln();
            normals += m;
            let rate = 2.0 * value * depth / base;
            vertex.push(1.0 / base);
            rates.push(rate);
        }
        if !(exponent >= TAIL) {
            return None;
        }
        // At height a beside the real v axis the integrand grows by at most about e^{a² normals/2}; from a = π/4 on the
        // path no longer leads downhill.
        let strip = (2.0 * DIGITS / normals).sqrt().min(0.6);
        let step = 2.0 * std::f64::consts::PI * strip / (DIGITS + 0.5 * strip * strip * normals);
        let opening = 0.5 * q * depth / normals;
        let height = exponent.exp() * depth * step / (2.0 * std::f64::consts::PI);
        let mut node = FormNode {
            q,
            weight: 0.0,
            single: vec![0.0; groups],
            pair: vec![0.0; if pairs { groups * (groups + 1) / 2 } else { 0 }],
        };
        let mut factors = vec![c64::new(0.0, 0.0); groups];
        for index in 0..MOST_POINTS {
            let v = index as f64 * step;
            // In units of ρ: y, and s − s₀ = iy − y²ρ/(4R).
            let y = v.sinh();
            let shift = c64::new(-y * y * opening, y);
            let mut value = (shift * (q * depth)).exp() * c64::new(1.0, 2.0 * y * opening) * v.cosh();
            for ((factor, rate), m) in factors.iter_mut().zip(&rates).zip(&self.multiplicities) {
                *factor = (shift * *rate + 1.0).inv();
                value *= half_power(*factor, *m);
            }
            if value.norm() < NEGLIGIBLE {
                break;
            }
            value *= if index == 0 { height } else { 2.0 * height };
            node.weight += value.re;
            let mut next = 0;
            for (i, first) in factors.iter().enumerate() {
                let single = value * *first;
                node.single[i] += single.re;
                if pairs {
                    for second in &factors[..=i] {
                        node.pair[next] += single.re * second.re - single.im * second.im;
                        next += 1;
                    }
                }
            }
        }
        for (single, inverse) in node.single.iter_mut().zip(&vertex) {
            *single *= inverse;
        }
        if pairs {
            let indices = (0..groups).flat_map(|i| (0..=i).map(move |j| (i, j)));
            for (pair, (i, j)) in node.pair.iter_mut().zip(indices) {
                *pair *= vertex[i] * vertex[j];
            }
        }
        Some(node)
    }

    /// ρ > 0 with q = Σ mλ/(offset + 2λρ): the saddle point of the integrand, seen from s*.
    fn saddle(&self, q: f64, offsets: &[f64]) -> f64 {
        let normals: f64 = self.multiplicities.iter().sum();
        // Each term lies below m/(2ρ), and the group with offset 0 reaches it: the root is bracketed.
        let (mut low, mut high) = (0.0, 0.5 * normals / q);
        let mut depth = high;
        for _ in 0..200 {
            let (mut gap, mut slope) = (-q, 0.0);
            for ((value, offset), m) in self.values.iter().zip(offsets).zip(&self.multiplicities) {
                let base = offset + 2.0 * value * depth;
                if base > 0.0 {
                    gap += m * value / base;
                    slope -= 2.0 * m * value * value / (base * base);
                }
            }
            if gap > 0.0 {
                low = depth;
            } else {
                high = depth;
            }
            // Newton's step in ln ρ; a few digits of the saddle are enough.
            let newton = depth * (-gap / (slope * depth)).clamp(-2.0, 2.0).exp();
            let next = if newton > low && newton < high { newton } else { 0.5 * (low + high) };
            if (next - depth).abs() <= 1e-6 * depth {
                return next;
            }
            depth = next;
        }
        depth
    }
}

impl FormNode {
    fn scaled(mut self, measure: f64) -> Self {
        self.weight *= measure;
        self.single.iter_mut().chain(&mut self.pair).for_each(|weight| *weight *= measure);
        self
    }
}

/// The trapezoid rule in x with q = mean · exp(x − e^{−x}): double-exponential on the left, for laws of one scale.
fn trapezoid(mean: f64, spread: f64, density: impl Fn(f64) -> Option<FormNode>) -> Vec<FormNode> {
    let step = (0.4 * spread).min(STEP);
    let node = |index: i64| -> Option<FormNode> {
        // q = mean at x = W(1), where x = e^{−x}.
        let x = 0.567_143_290_409_783_8 + index as f64 * step;
        let q = mean * (x - (-x).exp()).exp();
        if !(q > f64::MIN_POSITIVE) {
            return None;
        }
        Some(density(q)?.scaled(step * q * (1.0 + (-x).exp())))
    };
    let below = (1..).map_while(|k| node(-k));
    let above = (0..).map_while(node);
    below.chain(above).collect()
}

/// Gauss's rule in ln q on panels, halved until their mass settles: for laws of several scales.
fn panels(
    mean: f64,
    mass: impl Fn(f64) -> Option<FormNode>,
    density: impl Fn(f64) -> Option<FormNode>,
) -> Vec<FormNode> {
    let at = |log: f64| mean * log.exp();
    let mut low = -1.0;
    while low > -700.0 && mass(at(low)).is_some() {
        low *= 1.3;
    }
    let mut high = 1.0;
    while high < 700.0 && mass(at(high)).is_some() {
        high *= 1.3;
    }
    let total = |start: f64, width: f64| -> f64 {
        let parts = GAUSS.iter().flat_map(|&(x, weight)| [(0.5 - 0.5 * x, weight), (0.5 + 0.5 * x, weight)]);
        parts
            .filter_map(|(x, weight)| {
                let q = at(start + width * x);
                Some(0.5 * width * weight * q * mass(q)?.weight)
            })
            .sum()
    };
    let mut waiting: Vec<(f64, f64, f64)> = (0..32)
        .map(|k| {
            let width = (high - low) / 32.0;
            let start = low + width * f64::from(k);
            (start, width, total(start, width))
        })
        .collect();
    let mut nodes = Vec::new();
    let mut halvings = 0;
    while let Some((start, width, whole)) = waiting.pop() {
        let half = 0.5 * width;
        let (left, right) = (total(start, half), total(start + half, half));
        // Functions of Q may turn within STEP as well, whatever the density does.
        let settled = (left + right - whole).abs() < 1e-14 && (width < 8.0 * STEP || whole < 1e-14);
        if settled || halvings > MOST_HALVINGS {
            for (start, width) in [(start, half), (start + half, half)] {
                for &(x, weight) in &GAUSS {
                    for x in [0.5 - 0.5 * x, 0.5 + 0.5 * x] {
                        let q = at(start + width * x);
                        nodes.extend(density(q).map(|node| node.scaled(0.5 * width * weight * q)));
                    }
                }
            }
        } else {
            halvings += 1;
            waiting.push((start, half, left));
            waiting.push((start + half, half, right));
        }
    }
    nodes
}

/// Panels that may be halved before the rule gives up (and the check of the total mass fails).
const MOST_HALVINGS: usize = 20_000;

/// Nodes and weights of Gauss's rule with eight points on [−1, 1], the positive half.
const GAUSS: [(f64, f64); 4] = [
    (0.183_434_642_495_649_8, 0.362_683_783_378_362),
    (0.525_532_409_916_329, 0.313_706_645_877_887_3),
    (0.796_666_477_413_626_7, 0.222_381_034_453_374_5),
    (0.960_289_856_497_536_3, 0.101_228_536_290_376_3),
];

/// z^{m/2} for Im z ≤ 0, on the principal branch.
#[inline]
fn half_power(z: c64, m: f64) -> c64 {
    if m == 1.0 {
        // √z without the trigonometry of the general power; the larger part first, the other from their product.
        let size = (z.re * z.re + z.im * z.im).sqrt();
        if z.re >= 0.0 {
            let real = (0.5 * (size + z.re)).sqrt();
            c64::new(real, 0.5 * z.im / real)
        } else {
            let imaginary = -(0.5 * (size - z.re)).sqrt();
            c64::new(0.5 * z.im / imaginary, imaginary)
        }
    } else {
        (z.ln() * (0.5 * m)).exp()
    }
}

/// Step of the rule in x: functions of Q may turn within a tenth of ln q.
const STEP: f64 = 0.06;

#[cfg(test)]
mod tests {
    use super::*;

    fn average(nodes: &[FormNode], function: impl Fn(f64) -> f64) -> f64 {
        nodes.iter().map(|node| node.weight * function(node.q)).sum()
    }

    /// E e^{−tQ} = Π (1 + 2λt)^{−m/2}, and its λ-derivatives for the weighted densities, are closed forms.
    #[test]
    fn laplace_transforms_are_reproduced() {
        let cases: [(&[f64], &[f64]); 13] = [
            (&[0.7], &[1.0]),
            (&[0.7, 0.2], &[1.0, 1.0]),
            (&[1.0, 1e-3, 0.3], &[1.0, 2.0, 5.0]),
            (&[0.5], &[20.0]),
            (&[2.0, 0.0], &[3.0, 4.0]),
            (&[0.01], &[10_000.0]),
            (&[1.0, 0.999, 0.5, 0.2, 0.1, 1e-6], &[1.0; 6]),
            // A few large values over many small ones.
            (&[1.0, 0.1], &[1.0, 100.0]),
            (&[1.0, 0.01], &[1.0, 1000.0]),
            (&[1.0, 0.01], &[1.0, 10_000.0]),
            (&[1.0, 1e-3], &[1.0, 1e6]),
            (&[1.0, 1e-14], &[1.0, 1000.0]),
            (&[1.0, 0.03, 1e-5], &[2.0, 40.0, 3000.0]),
        ];
        for (values, multiplicities) in cases {
            let nodes = QuadraticForm::new(values, multiplicities).unwrap().nodes(true).unwrap();
            for t in [0.0, 0.01, 0.3, 1.0, 10.0, -0.1 / values[0]] {
                let base = |i: usize| 1.0 + 2.0 * values[i] * t;
                let expected: f64 =
                    (0..values.len()).map(|i| -0.5 * multiplicities[i] * base(i).ln()).sum::<f64>().exp();
                // Relative to the value, and to 1e-15 where the value rests on a tail that is nearly left out.
                let rounding = 4.0 * f64::EPSILON * multiplicities.iter().sum::<f64>();
                let close =
                    |found: f64, exact: f64| (found - exact).abs() < (1e-11 + rounding) * exact + 1e-15;
                if t < 0.0 && multiplicities.iter().any(|&m| m > 50.0) {
                    // Grows beyond what the tails were cut for.
                    continue;
                }
                let found = average(&nodes, |q| (-t * q).exp());
                assert!(close(found, expected), "{values:?} t = {t}: {found} {expected}");
                for i in 0..values.len() {
                    let single: f64 = nodes.iter().map(|node| node.single[i] * (-t * node.q).exp()).sum();
                    assert!(close(single, expected / base(i)), "{values:?} {t} {i}");
                    for j in 0..=i {
                        let pair = |node: &FormNode| node.pair[i * (i + 1) / 2 + j] * (-t * node.q).exp();
                        let pair: f64 = nodes.iter().map(pair).sum();
                        let exact = expected / base(i) / base(j);
                        assert!(close(pair, exact), "{values:?} {t} {i} {j}: {pair} {exact}");
                    }
                }
            }
            println!("{values:?}: {} nodes", nodes.len());
        }
    }

    #[test]
    fn a_form_that_does_not_vary_is_zero() {
        let nodes = QuadraticForm::new(&[0.0, 0.0], &[1.0, 3.0]).unwrap().nodes(true).unwrap();
        assert_eq!((nodes.len(), nodes[0].q, nodes[0].weight), (1, 0.0, 1.0));
        assert!(QuadraticForm::new(&[1e308], &[20.0]).unwrap().nodes(false).is_err());
        let many = QuadraticForm::new(&[1.0], &[4e9]).unwrap().nodes(false).unwrap();
        assert!((average(&many, |q| q) / 4e9 - 1.0).abs() < 1e-6);
        assert!(QuadraticForm::new(&[-1.0], &[1.0]).is_err());
        assert!(QuadraticForm::new(&[f64::NAN], &[1.0]).is_err());
    }
}
