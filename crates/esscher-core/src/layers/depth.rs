//! A Gaussian through a stack of discrete residual layers.

use super::Layer;
use crate::error::Result;
use crate::measure::Gaussian;

/// The token law before the first layer and after each of them, `layers.len() + 1` Gaussians.
///
/// Layer k maps x to x + h T_k\[μ_k\](x), h = `step_size`; with the same layer repeated and h → 0 this is
/// Euler's method for [`super::flow()`], of first order.
///
/// # Errors
/// As [`Layer::step`], at the first layer that fails.
pub fn depth(start: &Gaussian, layers: &[Layer], step_size: f64) -> Result<Vec<Gaussian>> {
    let mut laws = Vec::with_capacity(layers.len() + 1);
    let mut tokens = start.clone();
    for layer in layers {
        let next = layer.step(&tokens, step_size)?;
        laws.push(std::mem::replace(&mut tokens, next));
    }
    laws.push(tokens);
    Ok(laws)
}
