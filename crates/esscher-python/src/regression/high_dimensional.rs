//! Linear attention trained on finitely many prompts, in high dimension.

use crate::prelude::*;
use esscher_core::regression::HighDimensional;

export!(class PyHighDimensional);
compared!(PyHighDimensional);

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

getters! { PyHighDimensional, own:
    /// τ = n/d².
    sample_ratio: f64 = own.setting.sample_ratio();
    /// α = ℓ/d.
    context_ratio: f64 = own.setting.context_ratio();
    /// ρ.
    noise: f64 = own.setting.noise();
    /// κ = k/d.
    diversity: f64 = own.setting.diversity();
}

#[pymethods]
impl PyHighDimensional {
    #[new]
    #[pyo3(signature = (sample_ratio, context_ratio, noise = 0.0, diversity = f64::INFINITY))]
    fn new(
        #[pyo3(from_py_with = numbers::argument::sample_ratio)] sample_ratio: f64,
        #[pyo3(from_py_with = numbers::argument::context_ratio)] context_ratio: f64,
        #[pyo3(from_py_with = numbers::argument::noise)] noise: f64,
        #[pyo3(from_py_with = numbers::argument::diversity)] diversity: f64,
    ) -> PyResult<Self> {
        let setting = HighDimensional::new(sample_ratio, context_ratio, noise, diversity).or_raise()?;
        Ok(PyHighDimensional { setting })
    }

    /// The mean squared error on tasks from N(0, I): not halved, the query's noise included.
    fn error_on_new_tasks(&self) -> PyResult<f64> {
        self.setting.error_on_new_tasks().or_raise()
    }

    fn __repr__(&self) -> String {
        let setting = &self.setting;
        // As equal ones print, see `Block`.
        let (noise, diversity) = (setting.noise() + 0.0, setting.diversity());
        let (samples, context) = (setting.sample_ratio(), setting.context_ratio());
        format!(
            "HighDimensional(sample_ratio={samples}, context_ratio={context}, noise={noise}, diversity={diversity})"
        )
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let setting = &self.setting;
        let (samples, context) = (setting.sample_ratio(), setting.context_ratio());
        let arguments = (samples, context, setting.noise(), setting.diversity());
        (PyType::new::<Self>(py), arguments).into_pyobject(py)
    }
}
