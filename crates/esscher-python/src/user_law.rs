//! A user's own law: Python functions for its log-partition and, if known, its derivatives and a sampler.

use crate::measures::PyMeasure;
use crate::prelude::*;
use crate::{ending, nesting, watch};
use esscher_core::Mat;
use esscher_core::measure::{Custom, Sharpness, SubGaussian};
use pyo3::exceptions::{PyArithmeticError, PyValueError};
use std::sync::Arc;

/// A law given by a Python function: its log-partition Λ(θ) = log E exp⟨θ, z⟩, called with a tilt of shape (d,).
///
/// Mean and covariance of the tilted law are differences of Λ unless `tilted_mean` and `tilted_covariance` are given.
/// Where Λ does not exist, return infinity or NaN, or raise an ArithmeticError such as OverflowError; any other
/// exception ends the call that met it. `sampler(tilt, count, generator)` returns (count, d) tokens of the tilted
/// law, drawn with the numpy.random.Generator it is given; it is needed for simulations only. `sub_gaussian` is a
/// parameter that you have proved. One call at a time: calls from several threads may raise each other's exceptions.
///
/// >>> import math
/// >>> import esscher as es
/// >>> poisson = es.Custom(1, lambda tilt: 3 * math.expm1(tilt[0]))
/// >>> poisson.tilted_mean([0.5]).round(6)            # 3 exp(0.5)
/// array([4.946164])
#[pyclass(name = "Custom", module = "esscher", extends = PyMeasure, frozen)]
pub(crate) struct PyCustom {
    /// The functions, for the garbage collector: a function that knows the law would else keep both alive for ever.
    functions: Vec<Arc<Py<PyAny>>>,
}

export!(class PyCustom);

/// The name of the function that draws tokens.
const SAMPLER: &str = "sampler";

/// A function of the user's, and where its exceptions wait.
struct UserFunction {
    name: &'static str,
    function: Arc<Py<PyAny>>,
    exceptions: Exceptions,
}

impl UserFunction {
    fn new(name: &'static str, function: &Any<'_>, exceptions: &Exceptions) -> PyResult<Self> {
        if !function.is_callable() {
            return Err(crate::numbers::wrong_type(name, "a function", function));
        }
        let function = Arc::new(function.clone().unbind());
        Ok(UserFunction { name, function, exceptions: exceptions.clone() })
    }

    /// What the function makes of the arguments, read by `read`; nothing, its exception kept, where it raises.
    fn call<T>(
        &self,
        arguments: impl FnOnce(Python<'_>) -> PyResult<Bound<'_, pyo3::types::PyTuple>>,
        read: impl FnOnce(&Any<'_>) -> PyResult<T>,
    ) -> Option<T> {
        // The call is lost already, and other answers would only take longer.
        if self.exceptions.is_one_kept() || watch::is_a_call_ending() {
            return None;
        }
        let answer = Python::try_attach(|py| {
            let call = || {
                arguments(py)
                    .and_then(|arguments| self.function.bind(py).call1(arguments))
                    .and_then(|answer| read(&answer))
            };
            let answer = ending::calling(|| nesting::deeper(call))?;
            Some(match answer.unwrap_or_else(|| Err(nesting::refusal(self.name))) {
                Ok(answer) => Some(answer),
                // math.exp(1000) raises OverflowError: the function says that it does not exist there.
                Err(error) if self.name != SAMPLER && error.is_instance_of::<PyArithmeticError>(py) => None,
                Err(error) => {
                    self.exceptions.keep(error);
                    None
                }
            })
        });
        answer.flatten().unwrap_or_else(|| {
            // Python is ending, or has ended.
            self.exceptions.keep(ending::refusal());
            None
        })
    }

    fn at_tilt<T>(&self, tilt: &[f64], read: impl FnOnce(&Any<'_>) -> PyResult<T>) -> Option<T> {
        self.call(|py| (Array::from(tilt),).into_pyobject(py), read)
    }

    fn shape_error(&self, expected: &str, found: &[usize]) -> PyErr {
        PyValueError::new_err(format!("{} returned shape {found:?}: expected {expected}", self.name))
    }
}

#[pymethods]
impl PyCustom {
    #[new]
    #[pyo3(signature = (dimension, log_partition, *, tilted_mean = None, tilted_covariance = None, sampler = None,
                        sub_gaussian = None))]
    fn new(
        py: Python<'_>,
        dimension: &Any<'_>,
        log_partition: &Any<'_>,
        tilted_mean: Option<&Any<'_>>,
        tilted_covariance: Option<&Any<'_>>,
        sampler: Option<&Any<'_>>,
        sub_gaussian: Option<&Any<'_>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let d = arrays::dimension(dimension)?;
        let exceptions = Exceptions::of_one();
        let value = UserFunction::new("log_partition", log_partition, &exceptions)?;
        let function = value.function.clone();
        let log_partition_of = move |tilt: &[f64]| {
            value
                .at_tilt(tilt, |answer| {
                    // Also arrays of one number, which many functions of a vector return.
                    match Reals::read("the log-partition", answer)?.entries() {
                        &[number] => Ok(number),
                        other => Err(value.shape_error("one number", &[other.len()])),
                    }
                })
                .unwrap_or(f64::NAN)
        };
        let custom = threads::detached(py, || Custom::new(d, log_partition_of));
        let mut custom = exceptions.or_raise(custom)?;
        let mut functions = vec![function];
        if let Some(mean) = tilted_mean {
            let mean = UserFunction::new("tilted_mean", mean, &exceptions)?;
            functions.push(mean.function.clone());
            custom = custom.with_tilted_mean(move |tilt| {
                let read = |answer: &Any<'_>| arrays::owned_vector("the tilted mean", answer);
                mean.at_tilt(tilt, read).unwrap_or_else(|| vec![f64::NAN; tilt.len()])
            });
        }
        if let Some(covariance) = tilted_covariance {
            let covariance = UserFunction::new("tilted_covariance", covariance, &exceptions)?;
            functions.push(covariance.function.clone());
            custom = custom.with_tilted_covariance(move |tilt| {
                let read = |answer: &Any<'_>| arrays::owned_matrix("the tilted covariance", answer);
                let unknown = || Mat::from_fn(tilt.len(), tilt.len(), |_, _| f64::NAN);
                covariance.at_tilt(tilt, read).unwrap_or_else(unknown)
            });
        }
        if let Some(sampler) = sampler {
            let sampler = UserFunction::new(SAMPLER, sampler, &exceptions)?;
            functions.push(sampler.function.clone());
            custom = custom.with_sampler(move |tilt, stream, tokens| {
                let count = tokens.len() / tilt.len();
                let seed = (u64::from(stream.bits()) << 32) | u64::from(stream.bits());
                let drawn = sampler.call(
                    |py| {
                        let random = py.import("numpy.random")?;
                        let generator =
                            random.call_method1("Generator", (random.call_method1("Philox", (seed,))?,))?;
                        (Array::from(tilt), count, generator).into_pyobject(py)
                    },
                    |answer| {
                        let answer = Reals::read("the sampler's tokens", answer)?;
                        if answer.shape() != [count, tilt.len()] {
                            let expected = format!("({count}, {})", tilt.len());
                            return Err(sampler.shape_error(&expected, answer.shape()));
                        }
                        tokens.copy_from_slice(answer.entries());
                        Ok(())
                    },
                );
                if drawn.is_none() {
                    tokens.fill(f64::NAN);
                }
            });
        }
        if let Some(parameter) = sub_gaussian {
            let parameter = numbers::real("sub_gaussian", parameter)?;
            let stated = SubGaussian::new(parameter, Sharpness::UpperBound).or_raise()?;
            custom = custom.with_sub_gaussian(stated);
        }
        // Pickled with its functions, if Python can pickle them.
        let keywords = dictionary!(py, tilted_mean: tilted_mean, tilted_covariance: tilted_covariance,
                                   sampler: sampler, sub_gaussian: sub_gaussian);
        let partial = py.import("functools")?.getattr("partial")?;
        let maker = partial.call((PyType::new::<PyCustom>(py),), Some(&keywords))?;
        let recipe = (maker, (dimension, log_partition)).into_pyobject(py)?;
        let measure = PyMeasure::custom(custom, exceptions).made_by(recipe);
        Ok(PyClassInitializer::from(measure).add_subclass(PyCustom { functions }))
    }

    /// Every function is held once, by all laws that call it, and told here only: a law made of others holds them as objects of
    /// Python, and so does whatever keeps a law between calls. Nothing is to be cleared: a law never changes, so that every cycle
    /// goes through something else that does.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.functions.iter().try_for_each(|function| visit.call(&**function))
    }
}
