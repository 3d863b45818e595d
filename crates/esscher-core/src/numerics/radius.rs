//! The radius of a random query: nodes and weights that integrate against its law far into the tail.

/// Law of the radius r in z = centre + r · root · direction, direction uniform on the unit sphere.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RadiusLaw {
    /// r² is χ² with this many degrees of freedom: the radius of a standard normal vector.
    Chi {
        /// Degrees of freedom, the dimension of the normal vector.
        degrees: usize,
    },
    /// The radius never varies: a sphere.
    Fixed {
        /// The radius.
        radius: f64,
    },
}

/// Finite-prompt errors at L = 10¹² are as small as 10⁻¹² where the radius is ordinary and of order
/// one where it is large: the tail of the radius counts down to this probability.
const TAIL: f64 = 1e-34;

impl RadiusLaw {
    /// The level of [`Self::quadrature`], at which the χ density itself is resolved to the last digit.
    pub const FINE_LEVEL: u32 = 2;

    /// Nodes r and weights w with Σ w f(r) ≈ E f(r) for f smooth on the scale of the radius.
    ///
    /// For χ laws: trapezoid rule in x with r = exp(x − e^{−x}), which decays double-exponentially
    /// at r = 0 and like the Gaussian tail at infinity, so the rule converges geometrically.
    pub fn quadrature(&self) -> Vec<(f64, f64)> {
        let mut nodes = self.quadrature_level(0);
        let finest = if self.is_spread() { RadiusLaw::FINE_LEVEL } else { 0 };
        for level in 1..=finest {
            nodes.iter_mut().for_each(|(_, weight)| *weight *= 0.5);
            nodes.extend(self.quadrature_level(level));
        }
        nodes
    }

    /// The nodes that a level of refinement adds: level 0 is the rule with four times the step of
    /// [`Self::quadrature`], and each level halves the step.
    ///
    /// The refined estimate is half the coarser one plus the sum over the new nodes, so a caller can refine
    /// until two levels agree, for integrands of unknown smoothness. Laws without spread have level 0 only;
    /// for them the "refined" estimate is to be taken as the coarser one.
    pub fn quadrature_level(&self, level: u32) -> Vec<(f64, f64)> {
        match *self {
            RadiusLaw::Chi { degrees } if degrees > 0 => chi_nodes(degrees as f64, level),
            _ if level > 0 => Vec::new(),
            RadiusLaw::Fixed { radius } => vec![(radius, 1.0)],
            RadiusLaw::Chi { .. } => vec![(0.0, 1.0)],
        }
    }

    /// Nodes and weights of a rule whose lattice is shifted by a `fraction` of its step, from 0 to 1.
    ///
    /// **With a uniform random fraction Σ w f(r) has mean E f(r) for every f**, smooth or not: a step and a fraction
    /// are a random place, and every place is equally likely. What the rule does not resolve becomes variance,
    /// which the spread over several fractions shows. The step is that of level 0 divided by `refinement`; a law
    /// without spread gives its one radius as many times as the refinement says.
    pub fn shifted_quadrature(&self, refinement: u32, fraction: f64) -> Vec<(f64, f64)> {
        let refinement = refinement.max(1);
        match *self {
            RadiusLaw::Chi { degrees } if degrees > 0 => {
                let density = ChiDensity::new(degrees as f64);
                let step = density.coarse_step() / f64::from(refinement);
                let right = density.nodes(step, fraction, 1.0);
                right.chain(density.nodes(-step, 1.0 - fraction, 1.0)).collect()
            }
            RadiusLaw::Fixed { radius } => {
                vec![(radius, 1.0 / f64::from(refinement)); refinement as usize]
            }
            RadiusLaw::Chi { .. } => vec![(0.0, 1.0 / f64::from(refinement)); refinement as usize],
        }
    }

    /// Whether there is a spread to refine.
    pub fn is_spread(&self) -> bool {
        matches!(self, RadiusLaw::Chi { degrees } if *degrees > 0)
    }
}

fn chi_nodes(degrees: f64, level: u32) -> Vec<(f64, f64)> {
    let density = ChiDensity::new(degrees);
    let step = density.coarse_step() / 2f64.powi(level as i32);
    // Level 0 has the nodes mode + k · step for all k, a finer level those with odd k.
    let (right, left, stride) = if level == 0 { (0.0, 1.0, 1.0) } else { (1.0, 1.0, 2.0) };
    density.nodes(step, right, stride).chain(density.nodes(-step, left, stride)).collect()
}

/// The χ density in the variable x, r = exp(x − e^{−x}).
#[derive(Clone, Copy)]
struct ChiDensity {
    degrees: f64,
    log_normaliser: f64,
    /// The x of r = √degrees.
    mode: f64,
    /// ln of the smallest density that counts.
    floor: f64,
}

impl ChiDensity {
    fn new(degrees: f64) -> Self {
        let log_normaliser = (1.0 - 0.5 * degrees) * std::f64::consts::LN_2 - libm::lgamma(0.5 * degrees);
        // r = √degrees, solved for x by Newton's method on the increasing map x − e^{−x}.
        let target = 0.5 * degrees.ln();
        let mode =
            (0..60).fold(target.max(0.0), |x: f64, _| x - (x - (-x).exp() - target) / (1.0 + (-x).exp()));
        let mut density = ChiDensity { degrees, log_normaliser, mode, floor: 0.0 };
        density.floor = density.log_at(mode) + TAIL.ln();
        density
    }

    /// In x the density is about 1/√(2 degrees) wide; a third of that resolves it to 10⁻¹⁶ two levels further.
    fn coarse_step(&self) -> f64 {
        (0.88 / self.degrees.sqrt()).min(0.2)
    }

    /// ln of the χ density times dr/dx.
    fn log_at(&self, x: f64) -> f64 {
        let log_radius = x - (-x).exp();
        self.log_normaliser + self.degrees * log_radius - 0.5 * (2.0 * log_radius).exp() + (-x).exp().ln_1p()
    }

    /// Radius and weight at mode + step · (first + k · stride), k = 0, 1, …, as far as the density counts.
    fn nodes(self, step: f64, first: f64, stride: f64) -> impl Iterator<Item = (f64, f64)> {
        (0u32..)
            .map(move |k| self.mode + step * (first + f64::from(k) * stride))
            .take_while(move |&x| self.log_at(x) > self.floor)
            .map(move |x| ((x - (-x).exp()).exp(), step.abs() * self.log_at(x).exp()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E r^{2k} = d(d+2)…(d+2k−2), and E e^{λr²/2} = (1−λ)^{−d/2} moves the mass into the tail, by two
    /// standard deviations of r² or more.
    #[test]
    fn chi_moments_are_exact_to_thirteen_digits() {
        for degrees in [1usize, 2, 3, 8, 33, 200] {
            let nodes = RadiusLaw::Chi { degrees }.quadrature();
            let mean = |f: &dyn Fn(f64) -> f64| nodes.iter().map(|(r, w)| w * f(*r)).sum::<f64>();
            let d = degrees as f64;
            assert!((mean(&|r| r * r) / d - 1.0).abs() < 1e-13, "{degrees}");
            assert!((mean(&|r| r.powi(4)) / (d * (d + 2.0)) - 1.0).abs() < 1e-13, "{degrees}");
            let stress = 0.5f64.min(2.0 / d.sqrt());
            let stressed = mean(&|r| (0.5 * stress * r * r).exp()) * (1.0 - stress).powf(0.5 * d);
            assert!((stressed - 1.0).abs() < 1e-11, "{degrees}: {stressed}");
        }
    }

    /// Shifts by k/m of a step together are the rule with a step m times finer: their mean is exact where that one is,
    /// for functions that one shift alone does not resolve.
    #[test]
    fn shifted_rules_are_right_on_average() {
        for degrees in [1usize, 2, 16, 200] {
            let law = RadiusLaw::Chi { degrees };
            let d = degrees as f64;
            // A step of the radius, which no fixed rule resolves, at the median of many: compared with a fine rule.
            let sharp = |r: f64| 1.0 / (1.0 + (40.0 * (r - d.sqrt())).exp());
            let rule = |nodes: &[(f64, f64)], f: &dyn Fn(f64) -> f64| {
                nodes.iter().map(|(radius, weight)| weight * f(*radius)).sum::<f64>()
            };
            let fine = law.shifted_quadrature(500, 0.3);
            for refinement in [1, 3] {
                let shifts = 64;
                let mean = |f: &dyn Fn(f64) -> f64| -> f64 {
                    let shifted =
                        |k: i32| law.shifted_quadrature(refinement, (f64::from(k) + 0.7) / f64::from(shifts));
                    (0..shifts).map(|k| rule(&shifted(k), f)).sum::<f64>() / f64::from(shifts)
                };
                assert!((mean(&|_| 1.0) - 1.0).abs() < 1e-12, "{degrees}");
                assert!((mean(&|r| r * r) / d - 1.0).abs() < 1e-12, "{degrees}");
                assert!((mean(&sharp) / rule(&fine, &sharp) - 1.0).abs() < 1e-9, "{degrees}");
            }
        }
        assert_eq!(RadiusLaw::Fixed { radius: 2.0 }.shifted_quadrature(2, 0.4), [(2.0, 0.5); 2]);
    }
}
