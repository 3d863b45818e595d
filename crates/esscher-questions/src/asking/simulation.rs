//! Keys of simulations: token scales and the floating-point type of the kernel.

use esscher_core::prompt::Precision;
use esscher_lab::specification::{Bounds, Mistake, Rule, Section, own};
use serde_json::json;

/// The words for the kernel's floating-point type.
pub const PRECISIONS: [(&str, Precision); 2] = [("double", Precision::Double), ("single", Precision::Single)];

/// The rule of `sigmas`, factors that every token law is multiplied by; different, in the order given, 1 by default.
pub fn sigmas() -> impl Rule<Value = Vec<f64>> {
    let schema = json!({ "type": "array", "items": { "type": "number", "minimum": 1e-6, "maximum": 1e6 },
                         "minItems": 1, "maxItems": 100, "default": [1.0] });
    own(read, schema).optional()
}

fn read(section: &mut Section, key: &'static str) -> Result<Vec<f64>, Mistake> {
    let sigmas = section.reals(key, Bounds::Between(1e-6, 1e6), 1..=100, Some(&[1.0]))?;
    for (number, sigma) in sigmas.iter().enumerate() {
        if sigmas[..number].contains(sigma) {
            return Err(section.mistake(key, format!("{sigma} is given twice")));
        }
    }
    Ok(sigmas)
}
