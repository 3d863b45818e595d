//! A law of tokens or queries: a family with its parameters.

use super::head::{LARGEST_DIMENSION, square};
use esscher_core::Mat;
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
    build: Build,
}

#[derive(Clone, Copy)]
enum Build {
    Gaussian,
    Rademacher,
    Cube,
    Sphere,
    Laplace,
    Mixture,
    Points,
}

/// The families, in the order of the guide.
pub const FAMILIES: &[Family] = &[
    Family {
        name: "gaussian",
        summary: "Normal tokens, N(mean, covariance); finite prompts are exact at any length.",
        build: Build::Gaussian,
    },
    Family {
        name: "mixture",
        summary: "A finite mixture of normal laws; finite prompts are exact at any length.",
        build: Build::Mixture,
    },
    Family {
        name: "rademacher",
        summary: "Independent coordinates, each plus or minus `scale` with equal chance.",
        build: Build::Rademacher,
    },
    Family {
        name: "cube",
        summary: "Independent coordinates, uniform, of standard deviation `scale`.",
        build: Build::Cube,
    },
    Family {
        name: "sphere",
        summary: "Uniform on the sphere, each coordinate of standard deviation `scale`.",
        build: Build::Sphere,
    },
    Family {
        name: "laplace",
        summary: "Independent two-sided exponential coordinates of standard deviation `scale`; not sub-Gaussian.",
        build: Build::Laplace,
    },
    Family {
        name: "points",
        summary: "The empirical law of given points: a prompt of your own.",
        build: Build::Points,
    },
];

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
    if let Some(Written::Text(text)) = section.written(key) {
        let longer = short_form(text).ok_or_else(|| text.clone());
        match longer {
            Ok(longer) => section.replace(key, longer),
            Err(text) => {
                let shown: String = text.chars().take(60).collect();
                let mut mistake = section.mistake(key, format!("`{shown}` is not a law"));
                mistake.hint =
                    Some("write gaussian:4, rademacher:4:0.5, or a table with a family and its keys".into());
                return Err(mistake);
            }
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
            "properties": { "family": { "enum": families } } })
}

/// The family and the law that this table describes.
pub(super) fn law_of(table: &mut Section) -> Result<(&'static Family, Law), Mistake> {
    let names: Vec<(&'static str, &'static Family)> =
        FAMILIES.iter().map(|family| (family.name, family)).collect();
    let family = table.choice("family", &names, None)?;
    let law = match family.build {
        Build::Gaussian => {
            let dimension = dimension(table)?;
            Arc::new(gaussian(table, dimension)?)
        }
        Build::Mixture => mixture(table)?,
        Build::Points => points(table)?,
        other => coordinates(table, other)?,
    };
    Ok((family, law))
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
    let covariance = match (table.form("covariance"), table.form("scale")) {
        (Some(_), Some(_)) => {
            return Err(table.mistake("scale", "a `covariance` is given as well; give one of the two"));
        }
        (Some(_), None) => square(table, "covariance", dimension, None)?,
        (None, _) => {
            let scale = table.real("scale", Bounds::Between(0.0, 1e6), Some(1.0))?;
            Mat::from_fn(dimension, dimension, |i, j| if i == j { scale * scale } else { 0.0 })
        }
    };
    let key = if table.form("covariance").is_some() { "covariance" } else { "scale" };
    table.accept(key, Gaussian::new(&mean, covariance.as_ref()))
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
    let made = match table.form("weights") {
        Some(_) => {
            let weights = table.reals("weights", Bounds::NotNegative, rows.len()..=rows.len(), None)?;
            Empirical::from_tokens(rows[0].len(), &rows.concat()).and_then(|law| law.with_weights(&weights))
        }
        None => Empirical::from_tokens(rows[0].len(), &rows.concat()),
    };
    Ok(Arc::new(table.accept("points", made)?))
}

fn coordinates(table: &mut Section, family: Build) -> Result<Law, Mistake> {
    let dimension = dimension(table)?;
    let mean = mean(table, dimension)?;
    let scale = table.real("scale", Bounds::Between(1e-6, 1e6), Some(1.0))?;
    // Each base law with the standard deviation of one of its coordinates.
    let base: Result<(Law, f64), _> = match family {
        Build::Cube => Cube::new(dimension).map(|law| (Arc::new(law) as Law, 1.0 / 3.0_f64.sqrt())),
        Build::Sphere => {
            Sphere::new(dimension, (dimension as f64).sqrt()).map(|law| (Arc::new(law) as Law, 1.0))
        }
        Build::Laplace => Laplace::new(dimension, 0.5_f64.sqrt()).map(|law| (Arc::new(law) as Law, 1.0)),
        _ => Rademacher::new(dimension).map(|law| (Arc::new(law) as Law, 1.0)),
    };
    let (base, deviation) = table.accept("family", base)?;
    if scale == deviation && mean.iter().all(|entry| *entry == 0.0) {
        return Ok(base);
    }
    let factor = scale / deviation;
    let matrix = Mat::from_fn(dimension, dimension, |i, j| if i == j { factor } else { 0.0 });
    let made = Affine::new(matrix.as_ref(), &mean, base);
    Ok(Arc::new(table.accept("scale", made)?))
}
