//! A head: score and value matrices, given in full or as multiples of the identity.

use esscher_core::Mat;
use esscher_core::attention::Softmax;
use esscher_lab::specification::{Bounds, Form, Mistake, Section};

/// Largest dimension that a specification may ask for.
pub const LARGEST_DIMENSION: usize = 1024;

/// Reads a d × d matrix, `key = 0.5` for a multiple of the identity or `key = [[...], ...]`.
///
/// # Errors
/// Another size.
pub fn square(
    section: &mut Section,
    key: &'static str,
    dimension: usize,
    default: Option<f64>,
) -> Result<Mat<f64>, Mistake> {
    match section.form(key) {
        Some(Form::List) => {
            let rows = section.matrix(key, LARGEST_DIMENSION)?;
            if rows.len() != dimension || rows[0].len() != dimension {
                let found = format!("{} x {}", rows.len(), rows[0].len());
                return Err(section
                    .mistake(key, format!("expected {dimension} x {dimension} entries, found {found}")));
            }
            Ok(Mat::from_fn(dimension, dimension, |i, j| rows[i][j]))
        }
        _ => {
            let scale = section.real(key, Bounds::Any, default)?;
            Ok(Mat::from_fn(dimension, dimension, |i, j| if i == j { scale } else { 0.0 }))
        }
    }
}

/// Reads the table `[head]`: `score` and `value`, each a number (times the identity) or a matrix of d × d.
///
/// # Errors
/// Matrices of another size.
pub fn head(section: &mut Section, dimension: usize) -> Result<Softmax, Mistake> {
    section.table("head", |head| {
        let score = square(head, "score", dimension, Some(1.0))?;
        let value = square(head, "value", dimension, Some(1.0))?;
        let made = Softmax::new(score.as_ref(), value.as_ref());
        head.accept("score", made)
    })
}
