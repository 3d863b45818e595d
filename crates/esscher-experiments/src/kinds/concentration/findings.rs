//! The rows of a concentration result: errors, slopes and rates, written and read back.

use super::QUANTITIES;
use esscher_core::concentration::{Quantity, RateFit, SpreadBasis};
use esscher_lab::{Column, Failure, Table, Value};

/// What a row holds, as the column `statistic` names it.
pub(crate) mod statistic {
    /// A mean squared error at a length.
    pub(crate) const ERROR: &str = "error";
    /// κ between two neighbouring lengths.
    pub(crate) const SLOPE: &str = "slope";
    /// κ fitted to all lengths from `from_length` on.
    pub(crate) const RATE: &str = "rate";
}

/// By one-dimensional integrals.
pub(crate) const EXACT_ENGINE: &str = "exact";
/// By simulation.
pub(crate) const SAMPLED_ENGINE: &str = "sampled";

pub(crate) const COLUMNS: [(&str, Column); 16] = [
    ("law", Column::Text),
    ("sigma", Column::Real),
    ("operator_norm", Column::Real),
    ("sub_gaussian", Column::Real),
    ("engine", Column::Text),
    ("quantity", Column::Text),
    ("statistic", Column::Text),
    ("from_length", Column::Integer),
    ("length", Column::Integer),
    ("value", Column::Real),
    ("error", Column::Real),
    ("lower", Column::Real),
    ("upper", Column::Real),
    ("accuracy", Column::Text),
    ("theory", Column::Real),
    ("note", Column::Text),
];

/// One row of a result.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Finding {
    pub(crate) law: String,
    /// The factor on the tokens.
    pub(crate) sigma: f64,
    /// H.
    pub(crate) operator_norm: f64,
    /// The proved sub-Gaussian parameter of the scaled tokens.
    pub(crate) sub_gaussian: Option<f64>,
    pub(crate) engine: String,
    pub(crate) quantity: String,
    pub(crate) statistic: String,
    /// The shortest length behind a slope or a rate.
    pub(crate) from_length: Option<u64>,
    /// L, or the longest length behind a slope or a rate.
    pub(crate) length: u64,
    pub(crate) value: Option<f64>,
    /// One standard error, or the bound on the error of an exact value.
    pub(crate) error: Option<f64>,
    /// Confidence interval of a rate.
    pub(crate) interval: Option<(f64, f64)>,
    /// The class of the values.
    pub(crate) accuracy: String,
    /// κ(H) beside slopes and rates of Gaussian tokens.
    pub(crate) theory: Option<f64>,
    /// Warnings, and where the interval of a rate comes from.
    pub(crate) note: Option<String>,
}

impl Finding {
    /// Its row.
    pub(crate) fn row(self) -> Vec<Value> {
        let (lower, upper) = self.interval.unzip();
        vec![
            self.law.into(),
            self.sigma.into(),
            self.operator_norm.into(),
            self.sub_gaussian.into(),
            self.engine.into(),
            self.quantity.into(),
            self.statistic.into(),
            self.from_length.map(|length| length as i64).into(),
            (self.length as i64).into(),
            self.value.into(),
            self.error.into(),
            lower.into(),
            upper.into(),
            self.accuracy.into(),
            self.theory.into(),
            self.note.into(),
        ]
    }

    /// Whether two findings are of the same law at the same scale.
    pub(crate) fn same_tokens(&self, other: &Finding) -> bool {
        self.law == other.law && self.sigma == other.sigma
    }

    /// The law with its scale, for legends.
    pub(crate) fn tokens(&self) -> String {
        format!("{}, σ = {}", self.law, self.sigma)
    }
}

/// The rows of a result.
pub(crate) fn findings(result: &Table) -> Result<Vec<Finding>, Failure> {
    let mut found = Vec::new();
    for row in result.rows() {
        let text = |column: &str| row.text(column).map(str::to_string);
        let from_length = match row.value("from_length")? {
            Value::Missing => None,
            _ => Some(row.integer("from_length")?.max(0) as u64),
        };
        let note = match row.value("note")? {
            Value::Missing => None,
            _ => Some(text("note")?),
        };
        found.push(Finding {
            law: text("law")?,
            sigma: row.real("sigma")?,
            operator_norm: row.real("operator_norm")?,
            sub_gaussian: row.optional_real("sub_gaussian")?,
            engine: text("engine")?,
            quantity: text("quantity")?,
            statistic: text("statistic")?,
            from_length,
            length: row.integer("length")?.max(0) as u64,
            value: row.optional_real("value")?,
            error: row.optional_real("error")?,
            interval: row.optional_real("lower")?.zip(row.optional_real("upper")?),
            accuracy: text("accuracy")?,
            theory: row.optional_real("theory")?,
            note,
        });
    }
    Ok(found)
}

/// A quantity as tables name it.
pub(crate) fn name_of(quantity: Quantity) -> &'static str {
    QUANTITIES.iter().find(|(_, known)| *known == quantity).map_or("", |(name, _)| name)
}

/// What the interval of a rate rests on, in words.
pub(super) fn basis(fit: &RateFit) -> String {
    let basis = match fit.basis {
        SpreadBasis::StatedErrors => "interval from the errors of the points",
        SpreadBasis::Residuals => "interval from the residuals: the points are not on one power law",
    };
    match fit.dropped.len() {
        0 => basis.to_string(),
        dropped => format!("{basis}; {dropped} points too uncertain for a logarithm were left out"),
    }
}
