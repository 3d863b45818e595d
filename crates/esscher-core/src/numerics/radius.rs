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
        match *self {
            RadiusLaw::Fixed { radius } => vec![(radius, 1.0)],
            RadiusLaw::Chi { degrees: 0 } => vec![(0.0, 1.0)],
            RadiusLaw::Chi { degrees } => chi_quadrature(degrees as f64),
        }
    }
}

fn chi_quadrature(degrees: f64) -> Vec<(f64, f64)> {
    // In x the χ density is about 1/√(2 degrees) wide; a third of that resolves it to 10⁻¹⁶.
    let step = (0.22 / degrees.sqrt()).min(0.05);
    let log_density = |x: f64| {
        let log_radius = x - (-x).exp();
        // χ density times dr/dx, up to a constant.
        degrees * log_radius - 0.5 * (2.0 * log_radius).exp() + (1.0 + (-x).exp()).ln()
    };
    let mode = {
        // r = √degrees, solved for x by Newton's method on the increasing map x − e^{−x}.
        let target = 0.5 * degrees.ln();
        (0..60).fold(target.max(0.0), |x: f64, _| x - (x - (-x).exp() - target) / (1.0 + (-x).exp()))
    };
    let floor = log_density(mode) + TAIL.ln();
    let mut nodes = Vec::new();
    for direction in [-1.0, 1.0] {
        let mut x = if direction < 0.0 { mode - step } else { mode };
        while log_density(x) > floor {
            nodes.push(((x - (-x).exp()).exp(), (log_density(x) - floor).exp()));
            x += direction * step;
        }
    }
    let total: f64 = nodes.iter().map(|(_, weight)| weight).sum();
    nodes.iter_mut().for_each(|(_, weight)| *weight /= total);
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
