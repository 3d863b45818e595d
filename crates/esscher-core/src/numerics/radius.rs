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
    /// Nodes r and weights w with Σ w f(r) ≈ E f(r) for f smooth on the scale of the radius.
    ///
    /// For χ laws: trapezoid rule in x with r = exp(x − e^{−x}), which decays double-exponentially
    /// at r = 0 and like the Gaussian tail at infinity, so the rule converges geometrically.
    pub fn quadrature(&self) -> Vec<(f64, f64)> {
        let mut nodes = self.quadrature_level(0);
        let finest = if self.is_spread() { FINE_LEVEL } else { 0 };
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

    /// Whether there is a spread to refine.
    pub fn is_spread(&self) -> bool {
        matches!(self, RadiusLaw::Chi { degrees } if *degrees > 0)
    }
}

/// The level at which the χ density itself is resolved to the last digit.
const FINE_LEVEL: u32 = 2;

fn chi_nodes(degrees: f64, level: u32) -> Vec<(f64, f64)> {
    // In x the χ density is about 1/√(2 degrees) wide; a third of that resolves it to 10⁻¹⁶.
    let coarse = (0.88 / degrees.sqrt()).min(0.2);
    let step = coarse / 2f64.powi(level as i32);
    let log_normaliser = (1.0 - 0.5 * degrees) * std::f64::consts::LN_2 - libm::lgamma(0.5 * degrees);
    // χ density times dr/dx.
    let log_density = |x: f64| {
        let log_radius = x - (-x).exp();
        log_normaliser + degrees * log_radius - 0.5 * (2.0 * log_radius).exp() + (-x).exp().ln_1p()
    };
    let mode = {
        // r = √degrees, solved for x by Newton's method on the increasing map x − e^{−x}.
        let target = 0.5 * degrees.ln();
        (0..60).fold(target.max(0.0), |x: f64, _| x - (x - (-x).exp() - target) / (1.0 + (-x).exp()))
    };
    let floor = log_density(mode) + TAIL.ln();
    // Level 0 has the nodes mode + k · step for all k, a finer level those with odd k.
    let (first, stride) = if level == 0 { (0, 1) } else { (1, 2) };
    let mut nodes = Vec::new();
    for direction in [1, -1] {
        let mut k = if direction > 0 || first > 0 { first } else { stride };
        loop {
            let x = mode + step * f64::from(direction * k);
            if !(log_density(x) > floor) {
                break;
            }
            nodes.push(((x - (-x).exp()).exp(), step * log_density(x).exp()));
            k += stride;
        }
    }
    nodes
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
}
