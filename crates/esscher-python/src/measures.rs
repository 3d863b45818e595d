//! Measures: laws of tokens and queries, with NumPy's broadcasting over tilts.

use crate::arrays::{self, Reals};
use crate::failure::{Exceptions, OrRaise, room_for};
use crate::numbers;
use crate::threads;
use esscher_core::Mat;
use esscher_core::measure::laws::{LawTolerance, LawViolation, check_laws};
use esscher_core::measure::{
    Affine, Cube, Empirical, Gaussian, Laplace, Law, Measure, Mixture, Product, Rademacher, Sharpness, Sphere,
};
use esscher_core::numerics::{InstructionSet, Stream};
use numpy::{PyArray1, PyArrayDyn};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};
use std::time::{Duration, Instant};

/// Measures inside measures: deeper towers would exhaust the stack.
const DEEPEST: usize = 64;

/// A probability measure on Rᵈ: the law of tokens or queries.
///
/// Known through its exponential tilts: Λ(θ) = log E exp⟨θ, z⟩ is its log-partition, and the tilted measure has
/// density exp(⟨θ, z⟩ − Λ(θ)). Softmax attention is the mean of a tilted measure.
#[pyclass(name = "Measure", module = "esscher", subclass, frozen)]
pub(crate) struct PyMeasure {
    pub(crate) law: Law,
    pub(crate) exceptions: Exceptions,
    depth: usize,
    /// What makes it again, for pickling: a callable and its arguments.
    recipe: Option<Py<PyTuple>>,
}

/// The initialiser of a family of measures.
type Family<T> = PyClassInitializer<T>;

impl PyMeasure {
    /// A law that stands for itself.
    fn simple(law: impl Measure + 'static) -> Self {
        PyMeasure { law: std::sync::Arc::new(law), exceptions: Exceptions::default(), depth: 1, recipe: None }
    }

    /// A user's law.
    pub(crate) fn custom(law: impl Measure + 'static, exceptions: Exceptions) -> Self {
        PyMeasure { exceptions, ..PyMeasure::simple(law) }
    }

    /// A law made of others.
    fn composed(law: impl Measure + 'static, parts: &[PyRef<'_, PyMeasure>]) -> PyResult<Self> {
        let depth = 1 + parts.iter().map(|part| part.depth).max().unwrap_or(0);
        if depth > DEEPEST {
            let message = format!("measures are nested {depth} deep: at most {DEEPEST} levels are supported");
            return Err(PyValueError::new_err(message));
        }
        let exceptions = Exceptions::joined(parts.iter().map(|part| &part.exceptions));
        Ok(PyMeasure { law: std::sync::Arc::new(law), exceptions, depth, recipe: None })
    }

    /// With what makes it again.
    pub(crate) fn made_by(mut self, recipe: Bound<'_, PyTuple>) -> Self {
        self.recipe = Some(recipe.unbind());
        self
    }

    /// The answers of `answer` at every tilt, each appended to the numbers of an array of this shape.
    fn at_tilts<'py>(
        &self,
        py: Python<'py>,
        tilts: &Bound<'py, PyAny>,
        each: &[usize],
        answer: impl Fn(&dyn Measure, &[f64], &mut Vec<f64>) -> esscher_core::Result<()> + Sync,
    ) -> PyResult<Bound<'py, PyAny>> {
        let tilts = Reals::read("tilt", tilts)?;
        let (others, size, entries) = tilts.vectors()?;
        let mut shape = others.to_vec();
        let mut numbers = room_for("the answer", &[others.iter().product(), each.iter().product()])?;
        if size != self.law.dimension() {
            let error =
                esscher_core::Error::Size { what: "the tilt", expected: self.law.dimension(), found: size };
            return Err(error).or_raise();
        }
        let mut tilts = entries.chunks_exact(size);
        while tilts.len() > 0 {
            let answered = threads::detached(py, || {
                let began = Instant::now();
                for tilt in tilts.by_ref() {
                    answer(self.law.as_ref(), tilt, &mut numbers)?;
                    if began.elapsed() > BETWEEN_LOOKS {
                        break;
                    }
                }
                Ok(())
            });
            self.exceptions.or_raise(answered)?;
            py.check_signals()?;
        }
        shape.extend(each);
        if shape.is_empty() {
            return Ok(numbers[0].into_pyobject(py)?.into_any());
        }
        Ok(arrays::array(py, numbers, &shape)?.into_any())
    }
}

/// How long answers are made between two looks for signals.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// Numbers that are drawn between two looks for signals.
const DRAWN_BETWEEN_LOOKS: usize = 1 << 20;

/// Draws per tilt that the laws may be checked with.
const MOST_DRAWS: u64 = 10_000_000;

/// A measure, from a measure or from the rows of an array, which become an empirical one.
pub(crate) fn measure_from(what: &'static str, value: &Bound<'_, PyAny>) -> PyResult<(Law, Exceptions)> {
    if let Ok(measure) = value.cast::<PyMeasure>() {
        let measure = measure.get();
        return Ok((measure.law.clone(), measure.exceptions.clone()));
    }
    if value.is_none() || value.is_instance_of::<PyDict>() || value.is_instance_of::<pyo3::types::PyString>()
    {
        let found = value.get_type().name()?;
        let message =
            format!("{what}: expected a measure or an array of tokens, found an object of type {found}");
        return Err(PyTypeError::new_err(message));
    }
    let rows = Reals::read(what, value)?;
    arrays::check_dimension(what, rows.matrix()?.ncols())?;
    let (dimension, entries) = (rows.shape()[1], rows.entries());
    let law = threads::on_all(|| Empirical::from_tokens(dimension, entries)).or_raise()?;
    Ok((std::sync::Arc::new(law), Exceptions::default()))
}

#[pymethods]
impl PyMeasure {
    /// The dimension d of a token.
    #[getter]
    fn dimension(&self) -> usize {
        self.law.dimension()
    }

    /// The family, as messages name it.
    #[getter]
    fn family(&self) -> &'static str {
        self.law.family()
    }

    /// Λ(θ) = log E exp⟨θ, z⟩ at one tilt, or at each of an array of tilts (..., d).
    fn log_partition<'py>(&self, py: Python<'py>, tilt: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.at_tilts(py, tilt, &[], |law, tilt, numbers| {
            numbers.push(law.log_partition(tilt)?);
            Ok(())
        })
    }

    /// ∇Λ(θ), the mean of the tilted measure: (..., d) for tilts (..., d).
    fn tilted_mean<'py>(&self, py: Python<'py>, tilt: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.at_tilts(py, tilt, &[self.law.dimension()], |law, tilt, numbers| {
            numbers.extend(law.tilted_mean(tilt)?);
            Ok(())
        })
    }

    /// ∇²Λ(θ), the covariance of the tilted measure: (..., d, d) for tilts (..., d).
    fn tilted_covariance<'py>(
        &self,
        py: Python<'py>,
        tilt: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let dimension = self.law.dimension();
        self.at_tilts(py, tilt, &[dimension, dimension], |law, tilt, numbers| {
            arrays::append_rows(law.tilted_covariance(tilt)?.as_ref(), numbers);
            Ok(())
        })
    }

    /// KL(μ_θ ‖ μ): about e^KL tokens are needed to see the tilted measure.
    fn tilt_divergence<'py>(&self, py: Python<'py>, tilt: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.at_tilts(py, tilt, &[], |law, tilt, numbers| {
            numbers.push(law.tilt_divergence(tilt)?);
            Ok(())
        })
    }

    /// D₂(μ_θ ‖ μ) = Λ(2θ) − 2Λ(θ): e^D₂ / L is the scale of the mean squared error of L tokens.
    fn renyi_divergence<'py>(
        &self,
        py: Python<'py>,
        tilt: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.at_tilts(py, tilt, &[], |law, tilt, numbers| {
            numbers.push(law.renyi_divergence(tilt)?);
            Ok(())
        })
    }

    /// The mean of the measure.
    fn mean<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let mean = threads::detached(py, || self.law.mean());
        Ok(arrays::vector(py, self.exceptions.or_raise(mean)?))
    }

    /// The covariance of the measure.
    fn covariance<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        let covariance = threads::detached(py, || self.law.covariance());
        arrays::matrix(py, self.exceptions.or_raise(covariance)?.as_ref())
    }

    /// E zzᵀ, the second-moment matrix that linear attention uses.
    fn second_moment<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        let moment = threads::detached(py, || self.law.second_moment());
        arrays::matrix(py, self.exceptions.or_raise(moment)?.as_ref())
    }

    /// Draws independent tokens, a (count, d) array: the same seed, the same tokens.
    #[pyo3(signature = (count, *, seed = None, tilt = None), text_signature = "($self, count, *, seed=0, tilt=None)")]
    fn sample<'py>(
        &self,
        py: Python<'py>,
        count: &Bound<'py, PyAny>,
        seed: Option<&Bound<'py, PyAny>>,
        tilt: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        let count = numbers::whole("count", count, 0..=u64::MAX)? as usize;
        let dimension = self.law.dimension();
        let tilt = match tilt {
            Some(tilt) => arrays::owned_vector("tilt", tilt)?,
            None => vec![0.0; dimension],
        };
        let mut tokens = room_for("the tokens", &[count, dimension])?;
        tokens.resize(count * dimension, 0.0);
        let mut stream = Stream::new(seed.map_or(Ok(0), numbers::seed)?, 0, 0)
            .with_instruction_set(InstructionSet::best());
        for piece in tokens.chunks_mut((DRAWN_BETWEEN_LOOKS / dimension).max(1) * dimension) {
            let drawn = threads::detached(py, || self.law.sample_tilted(&tilt, &mut stream, piece));
            self.exceptions.or_raise(drawn)?;
            py.check_signals()?;
        }
        arrays::array(py, tokens, &[count, dimension])
    }

    /// The tilted measure μ_θ itself.
    fn tilted(slf: &Bound<'_, Self>, tilt: &Bound<'_, PyAny>) -> PyResult<PyMeasure> {
        let (py, own) = (slf.py(), slf.get());
        let theta = arrays::owned_vector("tilt", tilt)?;
        let law = threads::detached(py, || own.law.tilted(&theta));
        let law = own.exceptions.or_raise(law)?;
        let tilt = arrays::vector(py, theta);
        let recipe = (py.import("operator")?.call_method1("methodcaller", ("tilted", tilt))?, (slf,));
        // Tilts of tilts add up: no tower grows.
        let measure = PyMeasure { law, exceptions: own.exceptions.clone(), depth: own.depth, recipe: None };
        Ok(measure.made_by(recipe.into_pyobject(py)?))
    }

    /// The Gaussian whose log-partition agrees with Λ to second order at a tilt.
    fn gaussian_limit(&self, py: Python<'_>, tilt: &Bound<'_, PyAny>) -> PyResult<Py<PyGaussian>> {
        let tilt = arrays::owned_vector("tilt", tilt)?;
        let limit = threads::detached(py, || self.law.gaussian_limit(&tilt));
        PyGaussian::wrap(py, &self.exceptions.or_raise(limit)?)
    }

    /// The measure as a finite mixture of Gaussians and atoms, where it is one: (weights, means, covariances).
    #[allow(clippy::type_complexity)]
    fn gaussian_mixture<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<Option<(Bound<'py, PyArray1<f64>>, Bound<'py, PyArrayDyn<f64>>, Bound<'py, PyArrayDyn<f64>>)>>
    {
        let Some(components) = self.law.as_gaussian_mixture() else {
            return Ok(None);
        };
        let (count, d) = (components.len(), self.law.dimension());
        let mut covariances = room_for("the covariances of the components", &[count, d, d])?;
        let weights = components.iter().map(|component| component.weight()).collect();
        let means =
            components.iter().flat_map(|component| component.gaussian.mean_vector().to_vec()).collect();
        for component in &components {
            arrays::append_rows(component.gaussian.covariance_matrix(), &mut covariances);
        }
        Ok(Some((
            arrays::vector(py, weights),
            arrays::array(py, means, &[count, d])?,
            arrays::array(py, covariances, &[count, d, d])?,
        )))
    }

    /// A proved σ with E exp⟨θ, z − m⟩ ≤ exp(σ²|θ|²/2) for all θ, and whether it is optimal; None where none is known.
    fn sub_gaussian(&self, py: Python<'_>) -> Option<(f64, bool)> {
        let found = threads::detached(py, || self.law.sub_gaussian())?;
        Some((found.parameter, found.sharpness == Sharpness::Optimal))
    }

    /// A proved v with ∇²Λ(θ) ⪯ v²I at every tilt; None where none is known.
    fn sub_gaussian_under_tilts(&self, py: Python<'_>) -> Option<f64> {
        threads::detached(py, || self.law.sub_gaussian_under_tilts())
    }

    /// Checks the laws of a measure at these tilts (n, d); raises ValueError with the first one that is broken.
    #[pyo3(signature = (tilts, *, identity = 1e-10, derivative = 1e-6, draws = None),
           text_signature = "($self, tilts, *, identity=1e-10, derivative=1e-6, draws=20000)")]
    fn check_laws(
        &self,
        py: Python<'_>,
        tilts: &Bound<'_, PyAny>,
        identity: f64,
        derivative: f64,
        draws: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let draws =
            draws.map_or(Ok(20_000), |draws| numbers::whole("draws", draws, 0..=MOST_DRAWS))? as usize;
        drop(room_for("the draws", &[draws, self.law.dimension()])?);
        let tilts = Reals::read("tilts", tilts)?;
        let rows = tilts.matrix()?;
        let tilts: Vec<Vec<f64>> = tilts.entries().chunks(rows.ncols().max(1)).map(<[f64]>::to_vec).collect();
        let tolerance = LawTolerance { identity, derivative, draws };
        match threads::detached(py, || check_laws(self.law.clone(), &tilts, tolerance)) {
            Ok(()) => self.exceptions.or_raise(Ok(())),
            Err(LawViolation::Refused(error)) => self.exceptions.or_raise(Err(error)),
            Err(broken) => Err(PyValueError::new_err(broken.to_string())),
        }
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let own = slf.get();
        let class = slf.get_type().name()?.to_string();
        let family = if class == "Measure" { format!("{}, ", own.law.family()) } else { String::new() };
        Ok(format!("{class}({family}dimension={})", own.law.dimension()))
    }

    fn __reduce__(slf: &Bound<'_, Self>) -> PyResult<Py<PyTuple>> {
        let py = slf.py();
        match &slf.get().recipe {
            Some(recipe) => Ok(recipe.clone_ref(py)),
            None => Err(PyTypeError::new_err(format!("cannot pickle {}", slf.repr()?))),
        }
    }
}

/// The class and the arguments that make a measure again.
fn recipe<'py, T: pyo3::PyTypeInfo>(
    py: Python<'py>,
    arguments: impl IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error = PyErr>,
) -> PyResult<Bound<'py, PyTuple>> {
    (PyType::new::<T>(py), arguments.into_pyobject(py)?).into_pyobject(py)
}

/// The Gaussian law N(m, G), whose infinite prompt makes softmax attention linear: ∇Λ(θ) = m + Gθ.
///
/// >>> import esscher as es
/// >>> tokens = es.Gaussian([0, 1], [[1, 0.3], [0.3, 0.5]])
/// >>> tokens.tilted_mean([1.0, 0.0])
/// array([1. , 1.3])
#[pyclass(name = "Gaussian", module = "esscher", extends = PyMeasure, frozen)]
pub(crate) struct PyGaussian;

impl PyGaussian {
    fn initialiser(py: Python<'_>, gaussian: &Gaussian) -> PyResult<Family<Self>> {
        let mean = arrays::vector(py, gaussian.mean_vector().to_vec());
        let covariance = arrays::matrix(py, gaussian.covariance_matrix())?;
        let recipe = recipe::<PyGaussian>(py, (mean, covariance))?;
        Ok(PyClassInitializer::from(PyMeasure::simple(gaussian.clone()).made_by(recipe))
            .add_subclass(PyGaussian))
    }

    pub(crate) fn wrap(py: Python<'_>, gaussian: &Gaussian) -> PyResult<Py<PyGaussian>> {
        Py::new(py, PyGaussian::initialiser(py, gaussian)?)
    }
}

/// A Gaussian, from a `Gaussian` or another measure that is one.
pub(crate) fn gaussian_from(what: &str, value: &Bound<'_, PyAny>) -> PyResult<Gaussian> {
    let components =
        value.cast::<PyMeasure>().ok().and_then(|measure| measure.get().law.as_gaussian_mixture());
    match components.map(<[_; 1]>::try_from) {
        Some(Ok([component])) => Ok(component.gaussian),
        _ => {
            let message = format!("{what}: expected a Gaussian, found {}", value.repr()?);
            Err(PyTypeError::new_err(message))
        }
    }
}

#[pymethods]
impl PyGaussian {
    #[new]
    fn new(py: Python<'_>, mean: &Bound<'_, PyAny>, covariance: &Bound<'_, PyAny>) -> PyResult<Family<Self>> {
        let mean = arrays::owned_vector("mean", mean)?;
        let covariance = arrays::owned_matrix("covariance", covariance)?;
        arrays::check_dimension("mean", mean.len())?;
        let gaussian = threads::detached(py, || Gaussian::new(&mean, covariance.as_ref())).or_raise()?;
        PyGaussian::initialiser(py, &gaussian)
    }

    /// N(0, I) in this dimension.
    #[staticmethod]
    fn standard(py: Python<'_>, dimension: &Bound<'_, PyAny>) -> PyResult<Py<Self>> {
        let dimension = arrays::dimension(dimension)?;
        PyGaussian::wrap(py, &threads::detached(py, || Gaussian::standard(dimension)).or_raise()?)
    }

    /// N(0, G).
    #[staticmethod]
    fn centred(py: Python<'_>, covariance: &Bound<'_, PyAny>) -> PyResult<Py<Self>> {
        let covariance = arrays::owned_matrix("covariance", covariance)?;
        arrays::check_dimension("covariance", covariance.nrows())?;
        PyGaussian::wrap(py, &threads::detached(py, || Gaussian::centred(covariance.as_ref())).or_raise()?)
    }
}

/// A mixture Σ wₖ μₖ of measures; weights are normalised, equal ones are the default.
///
/// >>> import esscher as es
/// >>> two = es.Mixture([es.Gaussian.standard(2), es.Sphere(2, radius=3.0)], weights=[0.9, 0.1])
/// >>> two.weights
/// array([0.9, 0.1])
#[pyclass(name = "Mixture", module = "esscher", extends = PyMeasure, frozen)]
pub(crate) struct PyMixture {
    weights: Vec<f64>,
}

#[pymethods]
impl PyMixture {
    #[new]
    #[pyo3(signature = (components, weights = None))]
    fn new(
        py: Python<'_>,
        components: &Bound<'_, PyAny>,
        weights: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Family<Self>> {
        let components = measures("components", components)?;
        let given = match weights {
            Some(weights) => arrays::owned_vector("weights", weights)?,
            None => vec![1.0; components.len()],
        };
        if given.len() != components.len() {
            let (expected, found) = (components.len(), given.len());
            let error = esscher_core::Error::Size { what: "the list of weights", expected, found };
            return Err(error).or_raise();
        }
        let weighted = given.iter().copied().zip(components.iter().map(|part| part.law.clone())).collect();
        let mixture = Mixture::new(weighted).or_raise()?;
        let weights = mixture.weights();
        let measure = PyMeasure::composed(mixture, &components)?;
        let recipe = recipe::<PyMixture>(py, (parts(py, components)?, arrays::vector(py, given)))?;
        Ok(PyClassInitializer::from(measure.made_by(recipe)).add_subclass(PyMixture { weights }))
    }

    /// The normalised weights.
    #[getter]
    fn weights<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        arrays::vector(py, self.weights.clone())
    }
}

/// A list of measures.
fn measures<'py>(what: &str, value: &Bound<'py, PyAny>) -> PyResult<Vec<PyRef<'py, PyMeasure>>> {
    numbers::list(what, value, |measure| match measure.cast::<PyMeasure>() {
        Ok(measure) => Ok(measure.borrow()),
        Err(_) => Err(numbers::wrong_type(what, "measures", measure)),
    })
}

/// The measures that a measure is made of, as a tuple.
fn parts<'py>(py: Python<'py>, measures: Vec<PyRef<'py, PyMeasure>>) -> PyResult<Bound<'py, PyTuple>> {
    PyTuple::new(py, measures)
}

/// Weighted points: a prompt, or a law known through samples. Tokens are the rows of a (L, d) array.
///
/// The array is copied; `head(array, queries)` reads a prompt without a copy.
///
/// >>> import esscher as es
/// >>> prompt = es.Empirical([[1.0, 0.0], [0.0, 1.0]], weights=[3, 1])
/// >>> prompt.mean()
/// array([0.75, 0.25])
#[pyclass(name = "Empirical", module = "esscher", extends = PyMeasure, frozen)]
pub(crate) struct PyEmpirical {
    empirical: Empirical,
    weights: Option<Vec<f64>>,
}

#[pymethods]
impl PyEmpirical {
    #[new]
    #[pyo3(signature = (tokens, weights = None))]
    fn new(tokens: &Bound<'_, PyAny>, weights: Option<&Bound<'_, PyAny>>) -> PyResult<Family<Self>> {
        let rows = Reals::read("tokens", tokens)?;
        arrays::check_dimension("tokens", rows.matrix()?.ncols())?;
        let (dimension, entries) = (rows.shape()[1], rows.entries());
        let mut empirical = threads::on_all(|| Empirical::from_tokens(dimension, entries)).or_raise()?;
        let weights = weights.map(|weights| arrays::owned_vector("weights", weights)).transpose()?;
        if let Some(weights) = &weights {
            empirical = threads::on_all(|| empirical.with_weights(weights)).or_raise()?;
        }
        let measure = PyMeasure::simple(empirical.clone());
        Ok(PyClassInitializer::from(measure).add_subclass(PyEmpirical { empirical, weights }))
    }

    /// The points, a (L, d) array.
    #[getter]
    fn tokens<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        let d = self.empirical.dimension();
        let mut tokens = room_for("the tokens", &[self.empirical.len(), d])?;
        tokens.extend(self.empirical.points().flatten());
        arrays::array(py, tokens, &[self.empirical.len(), d])
    }

    fn __len__(&self) -> usize {
        self.empirical.len()
    }

    fn __reduce__(slf: &Bound<'_, Self>) -> PyResult<Py<PyTuple>> {
        // Made when asked for: the points are not kept twice.
        let (py, own) = (slf.py(), slf.get());
        let weights = own.weights.as_ref().map(|weights| arrays::vector(py, weights.clone()));
        Ok(recipe::<PyEmpirical>(py, (own.tokens(py)?, weights))?.unbind())
    }
}

/// Defines a family given by numbers alone.
macro_rules! family_of_numbers {
    ($(#[$documentation:meta])* $class:ident as $name:literal $signature:literal: $law:ty, ($($argument:ident = $default:literal),*)) => {
        $(#[$documentation])*
        #[pyclass(name = $name, module = "esscher", extends = PyMeasure, frozen)]
        pub(crate) struct $class;

        #[pymethods]
        impl $class {
            #[new]
            #[pyo3(signature = (dimension, $($argument = None),*),
                   text_signature = $signature)]
            fn new(
                py: Python<'_>,
                dimension: &Bound<'_, PyAny>,
                $($argument: Option<&Bound<'_, PyAny>>),*
            ) -> PyResult<Family<Self>> {
                $(let $argument = $argument.map_or(Ok($default), |value| numbers::real(stringify!($argument), value))?;)*
                let law = <$law>::new(arrays::dimension(dimension)?, $($argument),*).or_raise()?;
                let recipe = recipe::<$class>(py, (dimension, $($argument),*))?;
                Ok(PyClassInitializer::from(PyMeasure::simple(law).made_by(recipe)).add_subclass($class))
            }
        }
    };
}

family_of_numbers!(
    /// Independent signs ±1 with equal probability.
    PyRademacher as "Rademacher" "(dimension)": Rademacher, ()
);
family_of_numbers!(
    /// The uniform law on the cube [−1, 1]ᵈ.
    PyCube as "Cube" "(dimension)": Cube, ()
);
family_of_numbers!(
    /// The uniform law on the sphere of this radius.
    PySphere as "Sphere" "(dimension, radius=1.0)": Sphere, (radius = 1.0)
);
family_of_numbers!(
    /// Independent two-sided exponential coordinates of this scale: tilts must stay below 1/scale.
    PyLaplace as "Laplace" "(dimension, scale=1.0)": Laplace, (scale = 1.0)
);

/// The law of Az + b for z from another measure; `matrix` may be a number that scales.
///
/// >>> import esscher as es
/// >>> es.Affine(es.Rademacher(2), matrix=0.5, shift=[1.0, 0.0]).covariance()
/// array([[0.25, 0.  ],
///        [0.  , 0.25]])
#[pyclass(name = "Affine", module = "esscher", extends = PyMeasure, frozen)]
pub(crate) struct PyAffine;

#[pymethods]
impl PyAffine {
    #[new]
    #[pyo3(signature = (base, matrix, shift = None))]
    fn new(
        py: Python<'_>,
        base: PyRef<'_, PyMeasure>,
        matrix: &Bound<'_, PyAny>,
        shift: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Family<Self>> {
        let d = base.law.dimension();
        let given = Reals::read("matrix", matrix)?;
        let scale = |factor: f64| Mat::from_fn(d, d, |i, j| if i == j { factor } else { 0.0 });
        let owned = match (given.shape(), given.entries()) {
            ([], &[factor]) => scale(factor),
            _ => given.matrix()?.to_owned(),
        };
        arrays::check_dimension("matrix (rows)", owned.nrows())?;
        let shift = match shift {
            Some(shift) => arrays::owned_vector("shift", shift)?,
            None => vec![0.0; owned.nrows()],
        };
        let law = Affine::new(owned.as_ref(), &shift, base.law.clone()).or_raise()?;
        let bases = [base];
        let measure = PyMeasure::composed(law, &bases)?;
        let [base] = bases;
        let recipe =
            recipe::<PyAffine>(py, (base, arrays::matrix(py, owned.as_ref())?, arrays::vector(py, shift)))?;
        Ok(PyClassInitializer::from(measure.made_by(recipe)).add_subclass(PyAffine))
    }
}

/// The law of independent parts laid end to end.
#[pyclass(name = "Product", module = "esscher", extends = PyMeasure, frozen)]
pub(crate) struct PyProduct;

#[pymethods]
impl PyProduct {
    #[new]
    fn new(py: Python<'_>, factors: &Bound<'_, PyAny>) -> PyResult<Family<Self>> {
        let factors = measures("factors", factors)?;
        let total = factors.iter().map(|factor| factor.law.dimension()).sum();
        arrays::check_dimension("factors", total)?;
        let law = Product::new(factors.iter().map(|factor| factor.law.clone()).collect()).or_raise()?;
        let measure = PyMeasure::composed(law, &factors)?;
        let recipe = recipe::<PyProduct>(py, (parts(py, factors)?,))?;
        Ok(PyClassInitializer::from(measure.made_by(recipe)).add_subclass(PyProduct))
    }
}
