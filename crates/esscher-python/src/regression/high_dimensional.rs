//! Linear attention trained on finitely many prompts, in high dimension.

use crate::failure::OrRaise;
use esscher_core::regression::HighDimensional;
use pyo3::prelude::*;

/// Linear attention in the limit d → ∞, trained by least squares on n prompts of ℓ examples of k tasks.
///
/// The ratios are τ = n/d² (`sample_ratio`), α = ℓ/d (`context_ratio`), the label noise ρ (`noise`) and κ = k/d
/// (`diversity`, infinite for a fresh task in each prompt); covariates N(0, I/d), tasks |w|² = d (Lu et al. 2024).
///
/// >>> import esscher as es
/// >>> setting = es.HighDimensional(sample_ratio=0.5, context_ratio=2.0, noise=0.1, diversity=0.8)
/// >>> round(setting.error_on_new_tasks(), 9)
/// 1.297680338
#[pyclass(name = "HighDimensional", module = "esscher", frozen)]
pub(crate) struct PyHighDimensional {
    setting: HighDimensional,
}

#[pymethods]
impl PyHighDimensional {
    #[new]
    #[pyo3(signature = (sample_ratio, context_ratio, noise = 0.0, diversity = f64::INFINITY))]
    fn new(sample_ratio: f64, context_ratio: f64, noise: f64, diversity: f64) -> PyResult<Self> {
        let setting = HighDimensional::new(sample_ratio, context_ratio, noise, diversity).or_raise()?;
        Ok(PyHighDimensional { setting })
    }

    /// τ = n/d².
    #[getter]
    fn sample_ratio(&self) -> f64 {
        self.setting.sample_ratio()
    }

    /// α = ℓ/d.
    #[getter]
    fn context_ratio(&self) -> f64 {
        self.setting.context_ratio()
    }

    /// ρ.
    #[getter]
    fn noise(&self) -> f64 {
        self.setting.noise()
    }

    /// κ = k/d.
    #[getter]
    fn diversity(&self) -> f64 {
        self.setting.diversity()
    }

    /// The mean squared error on tasks from N(0, I): not halved, the query's noise included.
    fn error_on_new_tasks(&self) -> PyResult<f64> {
        self.setting.error_on_new_tasks().or_raise()
    }

    fn __repr__(&self) -> String {
        let setting = &self.setting;
        format!(
            "HighDimensional(sample_ratio={}, context_ratio={}, noise={}, diversity={})",
            setting.sample_ratio(),
            setting.context_ratio(),
            setting.noise(),
            setting.diversity()
        )
    }

    fn __reduce__(slf: &Bound<'_, Self>) -> PyResult<Py<pyo3::types::PyTuple>> {
        let (py, own) = (slf.py(), slf.get());
        let arguments = (own.sample_ratio(), own.context_ratio(), own.noise(), own.diversity());
        Ok((pyo3::types::PyType::new::<Self>(py), arguments).into_pyobject(py)?.unbind())
    }
}
