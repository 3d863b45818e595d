//! Finite dynamical systems that approach causal softmax attention: exp(s) cut off at order p, Σ_{r≤p} s^r/r! (key `sieber2024`).
//!
//! Softmax itself has no finite one. With the C(d_k + p, p) symmetric features of [`Taylor`] per value channel, the system is
//! that of linear attention; it is exact for the cut-off exponential and its error in softmax falls as |s|^{p+1}/(p+1)!.

use super::{Reach, Softmax, VALUE};
use crate::agreement::relative_difference;
use crate::dynamical_system::{DynamicalSystem, SystemStep, simulate};
use crate::feature_maps::Taylor;
use crate::linear_attention::{LinearAttention, Normaliser};
use crate::mechanism::{Definition, Given, Order};

/// The system of one order.
#[derive(Debug, Clone, PartialEq)]
pub struct TaylorRealisation {
    linear_attention: LinearAttention<Taylor>,
}

impl TaylorRealisation {
    /// The system of order p for softmax attention of these widths.
    ///
    /// Even orders have positive weights. Odd ones may have a sum of weights that is not positive where scores are low; it is
    /// guarded as in [`Normaliser::Sum`], and the outputs there mean nothing.
    pub fn new(key_width: usize, value_width: usize, order: usize) -> Self {
        TaylorRealisation {
            linear_attention: LinearAttention {
                map: Taylor::new(key_width, order),
                value_width,
                normaliser: Normaliser::Sum,
                order: Order::Causal,
            },
        }
    }
}

impl DynamicalSystem for TaylorRealisation {
    fn input_port(&self) -> usize {
        VALUE
    }

    fn states(&self) -> usize {
        self.linear_attention.states()
    }

    fn realise(&self, given: &Given<'_, f64>) -> Vec<SystemStep> {
        self.linear_attention.realise(given)
    }
}

/// Every order with the largest difference of its system's outputs to causal softmax attention, relative to the largest output.
///
/// `given` has the ports of [`Softmax`].
pub fn truncation_error(given: &Given<'_, f64>, orders: &[usize]) -> Vec<(usize, f64)> {
    let width = |port: usize| given.tokens[port].len() / given.length.max(1);
    let (key_width, value_width) = (width(super::KEY), width(VALUE));
    let softmax = Softmax { key_width, value_width, reach: Reach::Causal };
    let expected = softmax.reference(given).outputs;
    orders
        .iter()
        .map(|&order| {
            let system = TaylorRealisation::new(key_width, value_width, order);
            let found = simulate(&system.realise(given), system.states(), given.tokens[VALUE]);
            (order, relative_difference(&found, &expected, 0.0))
        })
        .collect()
}
