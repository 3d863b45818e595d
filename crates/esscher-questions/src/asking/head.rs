//! A head: score and value matrices, given in full or as multiples of the identity.

use esscher_core::Mat;
use esscher_core::attention::{Attention, Softmax};
use esscher_lab::specification::{Bounds, Form, Mistake, Rule, Section, Written, own};
use serde_json::{Value, json};

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

/// The rule of a [`square`] matrix, by default the identity.
pub fn square_rule(dimension: usize) -> impl Rule<Value = Mat<f64>> {
    let schema = json!({ "oneOf": [{ "type": "number" }, matrix_schema()], "default": 1.0 });
    own(move |section, key| square(section, key, dimension, Some(1.0)), schema).optional()
}

/// The JSON Schema of a matrix, a list of rows.
pub(super) fn matrix_schema() -> Value {
    let row = json!({ "type": "array", "items": { "type": "number" }, "minItems": 1, "maxItems": LARGEST_DIMENSION });
    json!({ "type": "array", "items": row, "minItems": 1, "maxItems": LARGEST_DIMENSION })
}

/// The rule of the table `[head]`: `score` and `value`, each a number (times the identity) or a matrix of d × d.
pub fn head(dimension: usize) -> impl Rule<Value = Softmax> {
    let read = move |section: &mut Section, key| {
        if let Some(head) = section.native::<Softmax>(key) {
            let found = (head.token_dimension(), head.query_dimension());
            if found != (dimension, dimension) {
                let message =
                    format!("expected a head of {dimension} x {dimension}, found {} x {}", found.0, found.1);
                return Err(section.mistake(key, message));
            }
            return Ok(head.as_ref().clone());
        }
        section.table(key, |head| {
            let score = square(head, "score", dimension, Some(1.0))?;
            let value = square(head, "value", dimension, Some(1.0))?;
            let made = Softmax::new(score.as_ref(), value.as_ref());
            head.accept("score", made)
        })
    };
    own(read, head_schema()).optional()
}

/// Reads `[head]` where U may have any number of columns (the dimension of a query) and V any number of rows; a door may hand
/// over a head as it is.
///
/// # Errors
/// Matrices that do not fit tokens of this dimension.
pub fn any_head(section: &mut Section, key: &'static str, dimension: usize) -> Result<Softmax, Mistake> {
    if let Some(head) = section.native::<Softmax>(key) {
        let found = head.token_dimension();
        if found != dimension {
            let message =
                format!("expected a head for tokens of dimension {dimension}, found one for {found}");
            return Err(section.mistake(key, message));
        }
        return Ok(head.as_ref().clone());
    }
    section.table(key, |head| {
        let score = rectangle(head, "score", dimension, true)?;
        let value = rectangle(head, "value", dimension, false)?;
        let made = Softmax::new(score.as_ref(), value.as_ref());
        head.accept("score", made)
    })
}

/// A number (times the identity) or a matrix with this many rows, or columns.
fn rectangle(
    section: &mut Section,
    key: &'static str,
    dimension: usize,
    is_rows: bool,
) -> Result<Mat<f64>, Mistake> {
    if section.form(key) != Some(Form::List) {
        return square(section, key, dimension, Some(1.0));
    }
    let rows = section.matrix(key, LARGEST_DIMENSION)?;
    let found = if is_rows { rows.len() } else { rows[0].len() };
    if found != dimension {
        let side = if is_rows { "rows" } else { "columns" };
        let message = format!("expected {dimension} {side}, found {} x {}", rows.len(), rows[0].len());
        return Err(section.mistake(key, message));
    }
    Ok(Mat::from_fn(rows.len(), rows[0].len(), |i, j| rows[i][j]))
}

/// The JSON Schema of `[head]`.
pub fn head_schema() -> Value {
    let matrix = |description: &str| json!({ "type": ["number", "array"], "format": "matrix", "default": 1.0, "description": description });
    json!({ "type": "object", "additionalProperties": false, "properties": {
        "score": matrix("U, from queries to tokens: a number (times the identity) or rows"),
        "value": matrix("V, from tokens to outputs: a number (times the identity) or rows; it may have fewer rows"),
    } })
}

/// Reads one vector of this dimension, or a list of them.
///
/// # Errors
/// Vectors of another dimension.
pub fn vectors(
    section: &mut Section,
    key: &'static str,
    dimension: usize,
    most: usize,
) -> Result<Vec<Vec<f64>>, Mistake> {
    let is_one = match section.written(key) {
        Some(Written::List(items)) => items.first().is_none_or(|item| item.form() != Form::List),
        _ => true,
    };
    let found = match (section.form(key), is_one) {
        (Some(Form::Number), _) => vec![vec![section.real(key, Bounds::Any, None)?]],
        (_, true) => vec![section.reals(key, Bounds::Any, 1..=LARGEST_DIMENSION, None)?],
        (_, false) => section.matrix(key, most.max(LARGEST_DIMENSION))?,
    };
    if found.len() > most {
        return Err(section.mistake(key, format!("expected at most {most} vectors, found {}", found.len())));
    }
    match found.iter().find(|vector| vector.len() != dimension) {
        None => Ok(found),
        // Numbers in dimension one are a query each.
        Some(_) if dimension == 1 && found.len() == 1 => {
            Ok(found[0].iter().map(|entry| vec![*entry]).collect())
        }
        Some(wrong) => {
            let message = format!("expected vectors of dimension {dimension}, found {}", wrong.len());
            Err(section.mistake(key, message))
        }
    }
}
