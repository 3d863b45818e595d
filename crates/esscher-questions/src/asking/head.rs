//! A head: score and value matrices, given in full or as multiples of the identity.

use esscher_core::Mat;
use esscher_core::attention::{Attention, Softmax};
use esscher_lab::specification::{Bounds, Form, Mistake, Rule, Section, Written, own};
use serde_json::{Value, json};

/// Largest dimension that a specification may ask for.
pub const LARGEST_DIMENSION: usize = 1024;

/// This number times the identity.
pub(super) fn multiple(scale: f64, dimension: usize) -> Mat<f64> {
    Mat::from_fn(dimension, dimension, |i, j| if i == j { scale } else { 0.0 })
}

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
    let expected = format!("{dimension} x {dimension} entries");
    matrix(section, key, dimension, default, &expected, |size| size == (dimension, dimension))
}

/// A multiple of the identity, or a matrix whose numbers of rows and columns fit.
fn matrix(
    section: &mut Section,
    key: &'static str,
    dimension: usize,
    default: Option<f64>,
    expected: &str,
    fits: impl Fn((usize, usize)) -> bool,
) -> Result<Mat<f64>, Mistake> {
    if section.form(key) != Some(Form::List) {
        return Ok(multiple(section.real(key, Bounds::Any, default)?, dimension));
    }
    let rows = section.matrix(key, LARGEST_DIMENSION)?;
    let (count, columns) = (rows.len(), rows[0].len());
    if !fits((count, columns)) {
        return Err(section.mistake(key, format!("expected {expected}, found {count} x {columns}")));
    }
    Ok(Mat::from_fn(count, columns, |i, j| rows[i][j]))
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

/// The rule of the table `[head]`: `score` and `value`, each a number (times the identity) or a matrix of d × d; a door may
/// hand over a head as it is.
pub fn head(dimension: usize) -> impl Rule<Value = Softmax> {
    let read = move |section: &mut Section, key| {
        let head = read_head(section, key, dimension, true)?;
        let (rows, columns) = (head.token_dimension(), head.query_dimension());
        if (rows, columns) != (dimension, dimension) {
            let message = format!("expected a head of {dimension} x {dimension}, found {rows} x {columns}");
            return Err(section.mistake(key, message));
        }
        Ok(head)
    };
    own(read, head_schema()).optional()
}

/// The same where U may have any number of columns, the dimension of a query, and V any number of rows.
pub fn any_head(dimension: usize) -> impl Rule<Value = Softmax> {
    own(move |section, key| read_head(section, key, dimension, false), head_schema()).optional()
}

fn read_head(
    section: &mut Section,
    key: &'static str,
    dimension: usize,
    is_square: bool,
) -> Result<Softmax, Mistake> {
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
        let (score, value) = if is_square {
            (square(head, "score", dimension, Some(1.0))?, square(head, "value", dimension, Some(1.0))?)
        } else {
            let (rows, columns) = (format!("{dimension} rows"), format!("{dimension} columns"));
            let score = matrix(head, "score", dimension, Some(1.0), &rows, |size| size.0 == dimension)?;
            (score, matrix(head, "value", dimension, Some(1.0), &columns, |size| size.1 == dimension)?)
        };
        let made = Softmax::new(score.as_ref(), value.as_ref());
        head.accept("score", made)
    })
}

/// The JSON Schema of `[head]`.
fn head_schema() -> Value {
    let matrix = |description: &str| json!({ "type": ["number", "array"], "format": "matrix", "default": 1.0, "description": description });
    json!({ "type": "object", "additionalProperties": false, "properties": {
        "score": matrix("U, from queries to tokens: a number (times the identity) or rows"),
        "value": matrix("V, from tokens to outputs: a number (times the identity) or rows; it may have fewer rows"),
    } })
}

/// The rule of one vector of this dimension, or a list of them.
pub fn vectors(dimension: usize, most: usize) -> impl Rule<Value = Vec<Vec<f64>>> {
    let read = move |section: &mut Section, key| read_vectors(section, key, dimension, most);
    own(read, json!({ "type": "array", "format": "vectors" }))
}

fn read_vectors(
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
