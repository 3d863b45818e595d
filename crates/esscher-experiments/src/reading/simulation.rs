//! Keys of simulations: token scales and the floating-point type of the kernel.

use esscher_core::prompt::Precision;
use esscher_lab::specification::{Bounds, Mistake, Section};

/// The words for the kernel's floating-point type.
pub const PRECISIONS: [(&str, Precision); 2] = [("double", Precision::Double), ("single", Precision::Single)];

/// Reads `sigmas`, factors that every token law is multiplied by; different, in the order given, 1 by default.
///
/// # Errors
/// Factors that are not positive, or given twice.
pub fn sigmas(section: &mut Section) -> Result<Vec<f64>, Mistake> {
    let sigmas = section.reals("sigmas", Bounds::Between(1e-6, 1e6), 1..=100, Some(&[1.0]))?;
    for (number, sigma) in sigmas.iter().enumerate() {
        if sigmas[..number].contains(sigma) {
            return Err(section.mistake("sigmas", format!("{sigma} is given twice")));
        }
    }
    Ok(sigmas)
}
