//! The law of a quadratic form Q = Σ λᵢgᵢ² of standard normals: averages of functions of Q as one-dimensional sums.
//!
//! The density of Q, alone or weighted with gᵢ² or gᵢ²gⱼ², is an inverse Laplace transform:
//!
//!   f(q) = (2πi)⁻¹ ∫ e^{sq} Π (1 + 2λs)^{−m/2} ds,  times (1 + 2λᵢs)⁻¹ for a weight gᵢ².
//!
//! All singularities lie on the real axis left of s* = −1/(2 max λ). On the parabola s = s* + ρ(1 + iu)² through
//! the saddle point the integrand is analytic, decays like a Gaussian and hardly oscillates, so the
//! trapezoid rule reaches rounding with some tens of points, far into both tails.

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

/// ln of the accuracy of a density, relative to its Chernoff bound.
const DIGITS: f64 = 30.0;

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

    /// The nodes of the trapezoid rule in x, q = scale · exp(x − e^{−x}).
    pub(crate) fn nodes(&self, pairs: bool) -> Vec<FormNode> {
        let groups = self.values.len();
        let highest = self.values.iter().copied().fold(0.0, f64::max);
        let sum = |power: i32| -> f64 {
            self.values.iter().zip(&self.multiplicities).map(|(value, m)| m * value.powi(power)).sum()
        };
        let (mean, squares) = (sum(1), sum(2));
        if !(highest > 0.0 && mean.is_finite() && squares > 0.0) {
            // Nothing varies: Q = 0.
            let pair = vec![1.0; if pairs { groups * (groups + 1) / 2 } else { 0 }];
            return vec![FormNode { q: 0.0, weight: 1.0, single: vec![1.0; groups], pair }];
        }
        let spread = (2.0 * squares).sqrt() / mean;
        let step = (0.4 * spread).min(STEP);
        let node = |index: i32| -> Option<FormNode> {
            let x = f64::from(index) * step;
            let log = x - (-x).exp();
            let q = mean * log.exp();
            if !(q > f64::MIN_POSITIVE) {
                return None;
            }
            let mut node = self.density(q, highest, pairs)?;
            let measure = step * q * (1.0 + (-x).exp());
            node.weight *= measure;
            node.single.iter_mut().chain(&mut node.pair).for_each(|weight| *weight *= measure);
            Some(node)
        };
        // q = mean at the root of x = e^{−x}.
        let middle = (0.567 / step).round() as i32;
        let below = (1..).map_while(|k| node(middle - k));
        let above = (0..).map_while(|k| node(middle + k));
        below.chain(above).collect()
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
        for ((value, offset), m) in self.values.iter().zip(&offsets).zip(&self.multiplicities) {
            exponent -= 0.5 * m * (offset + 2.0 * value * depth).ln();
            normals += m;
        }
        if exponent < TAIL {
            return None;
        }
        // At height a above the real u axis the integrand grows by about e^{1.3 a² normals}.
        let strip = (6.0 / normals.sqrt()).min(0.5);
        let step = 2.0 * std::f64::consts::PI * strip / (DIGITS + 1.3 * strip * strip * normals);
        let end = ((DIGITS + 2.0) / (q * depth)).sqrt();
        let mut node = FormNode {
            q,
            weight: 0.0,
            single: vec![0.0; groups],
            pair: vec![0.0; if pairs { groups * (groups + 1) / 2 } else { 0 }],
        };
        // Everything relative to the vertex u = 0, where 1 + 2λs is real and smallest.
        let vertex: Vec<f64> = self
            .values
            .iter()
            .zip(&offsets)
            .map(|(value, offset)| 1.0 / (offset + 2.0 * value * depth))
            .collect();
        let rates: Vec<f64> =
            self.values.iter().zip(&vertex).map(|(value, inverse)| 2.0 * value * depth * inverse).collect();
        let height = exponent.exp() * depth * step / std::f64::consts::PI;
        let mut factors = vec![c64::new(0.0, 0.0); groups];
        for index in 0..=(end / step) as usize {
            let u = index as f64 * step;
            // (1 + iu)² − 1.
            let shift = c64::new(-u * u, 2.0 * u);
            let mut value = (shift * (q * depth)).exp() * c64::new(1.0, u);
            for ((factor, rate), m) in factors.iter_mut().zip(&rates).zip(&self.multiplicities) {
                *factor = (shift * *rate + 1.0).inv();
                value *= half_power(*factor, *m);
            }
            let ends = if index == 0 { 1.0 } else { 2.0 };
            value *= ends * height;
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

/// z^{m/2} for Im z ≤ 0, on the principal branch.
#[inline]
fn half_power(z: c64, m: f64) -> c64 {
    if m == 1.0 {
        // √z without the trigonometry of the general power: Re √z > 0, Im √z has the sign of Im z.
        let size = (z.re * z.re + z.im * z.im).sqrt();
        let real = (0.5 * (size + z.re)).max(0.0).sqrt();
        let imaginary = (0.5 * (size - z.re)).max(0.0).sqrt();
        c64::new(real, -imaginary)
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
        let cases: [(&[f64], &[f64]); 7] = [
            (&[0.7], &[1.0]),
            (&[0.7, 0.2], &[1.0, 1.0]),
            (&[1.0, 1e-3, 0.3], &[1.0, 2.0, 5.0]),
            (&[0.5], &[20.0]),
            (&[2.0, 0.0], &[3.0, 4.0]),
            (&[0.01], &[10_000.0]),
            (&[1.0, 0.999, 0.5, 0.2, 0.1, 1e-6], &[1.0; 6]),
        ];
        for (values, multiplicities) in cases {
            let nodes = QuadraticForm::new(values, multiplicities).unwrap().nodes(true);
            for t in [0.0, 0.01, 0.3, 1.0, 10.0, -0.1 / values[0]] {
                let base = |i: usize| 1.0 + 2.0 * values[i] * t;
                let expected: f64 =
                    (0..values.len()).map(|i| -0.5 * multiplicities[i] * base(i).ln()).sum::<f64>().exp();
                // Relative to the value, and to 1e-15 where the value rests on a tail that is nearly left out.
                let close = |found: f64, exact: f64| (found - exact).abs() < 1e-11 * exact + 1e-15;
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
        let nodes = QuadraticForm::new(&[0.0, 0.0], &[1.0, 3.0]).unwrap().nodes(true);
        assert_eq!((nodes.len(), nodes[0].q, nodes[0].weight), (1, 0.0, 1.0));
        assert!(QuadraticForm::new(&[-1.0], &[1.0]).is_err());
        assert!(QuadraticForm::new(&[f64::NAN], &[1.0]).is_err());
    }
}
