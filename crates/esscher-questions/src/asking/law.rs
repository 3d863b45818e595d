//! A law of tokens or queries: a family with its parameters.

use super::head::{LARGEST_DIMENSION, multiple, square};
use esscher_core::Error;
use esscher_core::measure::{Affine, Cube, Empirical, Gaussian, Laplace, Law, Mixture, Rademacher, Sphere};
use esscher_lab::specification::{Bounds, Form, Mistake, Section, Written};
use serde_json::{Value, json};
use std::sync::Arc;

/// A family of laws as specifications name it.
pub struct Family {
    /// Its name.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    read: fn(&mut Section) -> Result<Law, Mistake>,
}

/// The families, in the order of the guide.
pub const FAMILIES: &[Family] = &[
    Family {
        name: "gaussian",
        summary: "Normal tokens, N(mean, covariance); finite prompts are exact at any length.",
        read: |table| {
            let dimension = dimension(table)?;
            Ok(Arc::new(gaussian(table, dimension)?))
        },
    },
    Family {
        name: "mixture",
        summary: "A finite mixture of normal laws; finite prompts are exact at any length.",
        read: mixture,
    },
    Family {
        name: "rademacher",
        summary: "Independent coordinates, each plus or minus `scale` with equal chance.",
        read: |table| scaled(table, rademacher),
    },
    Family {
        name: "cube",
        summary: "Independent coordinates, uniform, of standard deviation `scale`.",
        read: |table| scaled(table, cube),
    },
    Family {
        name: "sphere",
        summary: "Uniform on the sphere, each coordinate of standard deviation `scale`.",
        read: |table| scaled(table, sphere),
    },
    Family {
        name: "laplace",
        summary: "Independent two-sided exponential coordinates of standard deviation `scale`; not sub-Gaussian.",
        read: |table| {
            scaled(table, |dimension| Ok((Arc::new(Laplace::new(dimension, 0.5_f64.sqrt())?), 1.0)))
        },
    },
    Family {
        name: "points",
        summary: "The empirical law of given points: a prompt of your own.",
        read: points,
    },
];

/// A law with the standard deviation of one of its coordinates.
type Base = esscher_core::Result<(Law, f64)>;

pub(super) fn rademacher(dimension: usize) -> Base {
    Ok((Arc::new(Rademacher::new(dimension)?), 1.0))
}

pub(super) fn cube(dimension: usize) -> Base {
    Ok((Arc::new(Cube::new(dimension)?), 1.0 / 3.0_f64.sqrt()))
}

pub(super) fn sphere(dimension: usize) -> Base {
    Ok((Arc::new(Sphere::new(dimension, (dimension as f64).sqrt())?), 1.0))
}

/// Components times dimension cubed of a mixture, at most: four of dimension 1024, 256 of dimension 256.
const LARGEST_FACTORISATIONS: f64 = 4.3e9;

/// Reads the table `key` as a law.
///
/// `family`, `dimension`, `scale` (the standard deviation of a coordinate), `mean`; a Gaussian may have a `covariance`
/// instead of `scale`; a mixture has `[[key.component]]` with `weight`, `mean` and `scale` or `covariance`; points have
/// `points`, a list of rows, and perhaps `weights`. `gaussian:4:0.5` is short for family, dimension and scale; a door may
/// hand over a law as it is.
///
/// # Errors
/// Parameters that make no law.
pub fn law(section: &mut Section, key: &'static str) -> Result<Law, Mistake> {
    if let Some(law) = section.native::<Law>(key) {
        return Ok(law.as_ref().clone());
    }
    expand_short_form(section, key)?;
    section.table(key, |table| Ok(law_of(table)?.1))
}

/// Puts the table in the place of a law that is written in short.
pub(super) fn expand_short_form(section: &mut Section, key: &'static str) -> Result<(), Mistake> {
    let Some(Written::Text(text)) = section.written(key) else { return Ok(()) };
    match short_form(text) {
        Some(longer) => section.replace(key, longer),
        None => {
            let shown: String = text.chars().take(60).collect();
            let mistake = section.mistake(key, format!("`{shown}` is not a law"));
            let hint = "write gaussian:4, rademacher:4:0.5, or a table with a family and its keys";
            return Err(mistake.hinted(hint));
        }
    }
    Ok(())
}

/// `family:dimension` or `family:dimension:scale` as the table that it stands for.
fn short_form(text: &str) -> Option<Written> {
    let mut parts = text.split(':');
    let (family, dimension, scale) = (parts.next()?, parts.next()?, parts.next());
    if parts.next().is_some() {
        return None;
    }
    let number = |text: &str| Written::typed_number(text).unwrap_or(Written::Text(text.to_string()));
    let mut entries = vec![
        ("family".to_string(), Written::Text(family.trim().to_string())),
        ("dimension".to_string(), number(dimension)),
    ];
    entries.extend(scale.map(|scale| ("scale".to_string(), number(scale))));
    Some(Written::table(entries))
}

/// The JSON Schema of a law.
pub fn law_schema() -> Value {
    let families: Vec<&str> = FAMILIES.iter().map(|family| family.name).collect();
    json!({ "type": ["object", "string"], "format": "law", "required": ["family"],
            "properties": {
                "family": { "enum": families, "description": "The family of the law" },
                "dimension": { "description": "The number of coordinates" },
                "scale": { "description": "The standard deviation of a coordinate" },
                "mean": { "description": "The mean, a number for each coordinate" },
                "covariance": { "description": "The rows of the covariance" },
            } })
}

/// The family and the law that this table describes.
pub(super) fn law_of(table: &mut Section) -> Result<(&'static Family, Law), Mistake> {
    let names: Vec<(&'static str, &'static Family)> =
        FAMILIES.iter().map(|family| (family.name, family)).collect();
    let family = table.choice("family", &names, None).map_err(|mistake| match mistake.hint {
        // As reports call it.
        None if mistake.message().contains("\"normal\"") => mistake.hinted("normal tokens are `gaussian`"),
        _ => mistake,
    })?;
    Ok((family, (family.read)(table)?))
}

fn dimension(table: &mut Section) -> Result<usize, Mistake> {
    Ok(table.integer("dimension", 1..=LARGEST_DIMENSION as u64, None)? as usize)
}

fn mean(table: &mut Section, dimension: usize) -> Result<Vec<f64>, Mistake> {
    let zero = vec![0.0; dimension];
    table.reals("mean", Bounds::Any, dimension..=dimension, Some(&zero))
}

fn gaussian(table: &mut Section, dimension: usize) -> Result<Gaussian, Mistake> {
    let mean = mean(table, dimension)?;
    if table.form("covariance").is_some() {
        if table.form("scale").is_some() {
            return Err(table.mistake("scale", "a `covariance` is given as well; give one of the two"));
        }
        let covariance = square(table, "covariance", dimension, None)?;
        return table.accept("covariance", Gaussian::new(&mean, covariance.as_ref()));
    }
    let scale = table.real("scale", Bounds::Between(0.0, 1e6), Some(1.0))?;
    let variance = scale * scale;
    let made = if scale > 0.0 && variance < f64::MIN_POSITIVE {
        Err(Error::Underflow { what: "the square of the scale" })
    } else {
        Gaussian::new(&mean, multiple(variance, dimension).as_ref())
    };
    table.accept("scale", made)
}

fn mixture(table: &mut Section) -> Result<Law, Mistake> {
    let dimension = dimension(table)?;
    // Each covariance is factorised when it is read: a bound on that work keeps reading quick.
    let most = (LARGEST_FACTORISATIONS / (dimension as f64).powi(3)).clamp(1.0, 256.0) as usize;
    let components = table.tables("component", 1..=most, |component| {
        let weight = component.real("weight", Bounds::Positive, Some(1.0))?;
        Ok((weight, Arc::new(gaussian(component, dimension)?) as Law))
    })?;
    let made = Mixture::new(components);
    Ok(Arc::new(table.accept("component", made)?))
}

fn points(table: &mut Section) -> Result<Law, Mistake> {
    if table.form("points") != Some(Form::List) {
        return Err(table.mistake("points", "expected a list of points, [[0, 1], [1, 0]]"));
    }
    let rows = table.matrix("points", 100_000)?;
    if rows[0].len() > LARGEST_DIMENSION {
        let message =
            format!("expected points of dimension up to {LARGEST_DIMENSION}, found {}", rows[0].len());
        return Err(table.mistake("points", message));
    }
    let mut law = table.accept("points", Empirical::from_tokens(rows[0].len(), &rows.concat()))?;
    if table.form("weights").is_some() {
        let weights = table.reals("weights", Bounds::NotNegative, rows.len()..=rows.len(), None)?;
        law = table.accept("weights", law.with_weights(&weights))?;
    }
    Ok(Arc::new(law))
}

/// A law with the mean and the standard deviation that the table says.
fn scaled(table: &mut Section, base: fn(usize) -> Base) -> Result<Law, Mistake> {
    let dimension = dimension(table)?;
    let mean = mean(table, dimension)?;
    let scale = table.real("scale", Bounds::Between(1e-6, 1e6), Some(1.0))?;
    let (base, deviation) = table.accept("family", base(dimension))?;
    if scale == deviation && mean.iter().all(|entry| *entry == 0.0) {
        return Ok(base);
    }
    let made = Affine::new(multiple(scale / deviation, dimension).as_ref(), &mean, base);
    Ok(Arc::new(table.accept("scale", made)?))
}
