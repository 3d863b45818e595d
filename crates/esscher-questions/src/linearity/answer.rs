//! The answer: gain, deviation and residual of each law at each size of the query.

use crate::measured::Measured;
use crate::tabulating::distinct;
use esscher_core::Accuracy;
use esscher_lab::{named, rows};

named! {
    /// What is measured at a size r of the query.
    pub enum Statistic {
        /// The mean over directions of ⟨T(z) − Vm, g⟩/|g|² with g = VGUz: 1 for a linear map.
        Gain = "gain",
        /// The largest |T(z) − Vm − g|/|g| over directions.
        Deviation = "deviation",
        /// Root of the share of the variance of T over queries of size up to r that the best affine map leaves unexplained.
        Residual = "residual",
    }
}

rows! {
    /// A number about a law.
    #[derive(Debug, Clone)]
    pub struct Row {
        /// The law, by its name.
        law: String,
        /// What is measured.
        statistic: Statistic,
        /// The size of the queries.
        radius: f64,
        /// The number; none where there is no output, or where the linear map vanishes.
        value: Option<f64>,
        /// A bound on its rounding.
        error: Option<f64>,
        /// How it was obtained.
        accuracy: Accuracy,
    }
}

impl Row {
    /// The number, where there is one.
    pub fn number(&self) -> Option<Measured> {
        Some(Measured { value: self.value?, error: self.error, accuracy: self.accuracy })
    }
}

/// The laws in the order of the answer.
pub fn laws(rows: &[Row]) -> Vec<&str> {
    distinct(rows.iter().map(|row| row.law.as_str()))
}

/// Radius and number of a law where there is a number.
pub fn points_of(rows: &[Row], law: &str, statistic: Statistic) -> Vec<(f64, Measured)> {
    let mine = rows.iter().filter(|row| row.law == law && row.statistic == statistic);
    mine.filter_map(|row| Some((row.radius, row.number()?))).collect()
}
