//! The Python door: `esscher._native`, which the package in `python/esscher` wraps. It translates and nothing more.
//!
//! `arrays` is how numbers come in and go out, `failure` how errors become exceptions, `watch` how long calls show
//! progress and stop on Ctrl-C, `threads` how they share the machine; the other files are the subjects.

// Extractors hand their errors to `?`, and Python's calling convention asks for many arguments.
#![allow(clippy::too_many_arguments)]
// PyO3's macros generate public items.
#![allow(
    unreachable_pub,
    missing_docs,
    reason = "the public face is Python's; python/esscher/_native.pyi describes it"
)]

mod arrays;
#[cfg(feature = "audit")]
mod audit;
mod failure;
mod heads;
mod layers;
mod measures;
mod numbers;
mod prompts;
mod regression;
mod runs;
mod scales;
mod studies;
mod threads;
mod user_law;
mod watch;
mod weights;
#[cfg(feature = "zoo")]
mod zoo;

use pyo3::prelude::*;

/// The native half of the package `esscher`.
#[pymodule]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(_module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::threads::remember_process();
        Ok(())
    }

    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");

    #[cfg(feature = "audit")]
    #[pymodule_export]
    use super::audit::{
        PyStreamingCache, audit_calibrate, audit_model, audit_models, audit_replace, audit_state_tokens,
    };
    #[pymodule_export]
    use super::heads::{PyAttention, PyGradient, PyHeads, PyLinearAttention, PySoftmaxAttention};
    #[pymodule_export]
    use super::layers::{PyExactFlow, PyLayer, depth, exact_softmax_flow};
    #[pymodule_export]
    use super::measures::{
        PyAffine, PyCube, PyEmpirical, PyGaussian, PyLaplace, PyMeasure, PyMixture, PyProduct, PyRademacher,
        PySphere,
    };
    #[pymodule_export]
    use super::prompts::{delta_method, finite_prompt, gaussian_gradient_constant};
    #[pymodule_export]
    use super::regression::{
        PyBlock, PyDescentState, PyDrawnCovariates, PyGaussianTask, PyHighDimensional,
        PyLinearAttentionTraining, PyRegressionHead, PyRegressionLayer, PySpectralTask, PyTask,
        authors_experiment, baseline_risks, descend, response, simulate_risk, spiked, toeplitz,
    };
    #[pymodule_export]
    use super::runs::{
        catalogue, compute_unit, example, instruction_sets, merge_shards, plan, read_run, reproduce, run,
        write_report,
    };
    #[pymodule_export]
    use super::scales::{
        critical_score_deviation, output_bound, rate_exponent, regime, score_gradient_bound,
        trajectory_bound, typical_error_exponent, value_gradient_bound,
    };
    #[pymodule_export]
    use super::studies::{concentration, horizon, local_slopes, rate_fit};
    #[pymodule_export]
    use super::user_law::PyCustom;
    #[pymodule_export]
    use super::weights::{opposite_pair, prompt_lengths, shrinkage, weight_moments};
    #[cfg(feature = "zoo")]
    #[pymodule_export]
    use super::zoo::{PyMechanism, PyPass, PyStream, zoo_array, zoo_catalogue, zoo_simulate};
}
