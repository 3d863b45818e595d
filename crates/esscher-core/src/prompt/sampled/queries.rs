//! How the queries of a simulated trial are chosen: on a shifted lattice of radii, or drawn.

use crate::measure::{Measure, Radial, radial_parts};
use crate::numerics::check;

/// How the queries of a trial are chosen.
#[derive(Debug, Clone)]
pub(super) enum Design {
    /// Weighted radial parts, each on a lattice of radii that is refined so many times and shifted at random in every
    /// trial, with a random direction for each node: the heavy tail is in the radius.
    Radial { parts: Vec<(f64, Radial)>, refinement: u32 },
    /// Independent draws.
    Drawn,
}

impl Design {
    pub(super) fn new(law: &dyn Measure, queries: u32) -> Self {
        let Some(parts) = radial_parts(law) else {
            return Design::Drawn;
        };
        let (points, spread): (Vec<_>, Vec<_>) = parts.iter().partition(|(_, radial)| is_point(radial));
        // Another fraction may have one node more or less.
        let nodes: usize =
            spread.iter().map(|(_, radial)| radial.radius.shifted_quadrature(1, 0.5).len()).sum();
        if parts.len() > 1 && points.len() + nodes > queries as usize {
            return Design::Drawn;
        }
        let left = (queries as usize).saturating_sub(points.len());
        Design::Radial { refinement: (left / nodes.max(1)).max(1) as u32, parts }
    }
}

/// All directions of a point are the same query.
pub(super) fn is_point(radial: &Radial) -> bool {
    check::largest_entry(radial.root.as_ref()) == 0.0
}
