//! Keys of simulations and averages: token scales, the floating-point type of the kernel, room for directions of queries.

use esscher_core::prompt::{Precision, QueryAverage};
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

/// Numbers in the directions of queries that are held at a time: 2 GB.
const MOST_NUMBERS: u64 = 1 << 28;

/// Refuses more directions than fit into memory: those of two randomisations are held at a time.
pub fn check_directions(
    section: &mut Section,
    key: &'static str,
    average: &QueryAverage,
    dimension: usize,
) -> Result<(), Mistake> {
    let most = MOST_NUMBERS / (2 * dimension.max(1) as u64);
    if u64::from(average.directions) <= most {
        return Ok(());
    }
    let found = average.directions;
    let message = format!(
        "{found} directions of dimension {dimension} do not fit into memory; expected at most {most}"
    );
    Err(section.mistake(key, message))
}
