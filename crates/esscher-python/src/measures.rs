//! Measures: laws of tokens and queries, with NumPy's broadcasting over tilts.

use crate::prelude::*;
use crate::watch::{LONG, UNKNOWN, by_size, one_by_one};
use esscher_core::Mat;
use esscher_core::measure::laws::{LawTolerance, LawViolation, check_laws};
use esscher_core::measure::{
    Affine, Cube, Empirical, Gaussian, Laplace, Law, Measure, Mixture, Product, Rademacher, Sharpness, Sphere,
};
use esscher_core::numerics::{InstructionSet, Stream};

export!(class PyMeasure, PyGaussian, PyMixture, PyEmpirical, PyRademacher, PyCube, PySphere, PyLaplace, PyAffine, PyProduct);

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
    /// Numbers that it consists of, about.
    pub(crate) numbers: usize,
    /// What makes it again, for pickling: a callable and its arguments.
    recipe: Option<Py<PyTuple>>,
}

/// The initialiser of a family of measures.
type Family<T> = PyClassInitializer<T>;

impl PyMeasure {
    /// A law that stands for itself.
    fn simple(law: impl Measure + 'static) -> Self {
        PyMeasure::custom(law, Exceptions::default())
    }

    /// A user's law.
    pub(crate) fn custom(law: impl Measure + 'static, exceptions: Exceptions) -> Self {
        let numbers = law.dimension().saturating_mul(law.dimension());
        PyMeasure { law: std::sync::Arc::new(law), exceptions, depth: 1, numbers, recipe: None }
    }

    /// A law made of others, whose functions may have been asked meanwhile.
    fn composed(
        law: esscher_core::Result<impl Measure + 'static>,
        parts: &[PyRef<'_, PyMeasure>],
    ) -> PyResult<Self> {
        let depth = 1 + parts.iter().map(|part| part.depth).max().unwrap_or(0);
        if depth > DEEPEST {
            let message = format!("measures are nested {depth} deep: at most {DEEPEST} levels are supported");
            return Err(PyValueError::new_err(message));
        }
        let exceptions = Exceptions::joined(parts.iter().map(|part| &part.exceptions));
        let law = exceptions.or_raise(law)?;
        let made = PyMeasure::custom(law, exceptions);
        let numbers = parts.iter().map(|part| part.numbers).fold(made.numbers, usize::saturating_add);
        Ok(PyMeasure { depth, numbers, ..made })
    }

    /// A family, made again by its class with these arguments.
    fn again<'py, T: pyo3::PyClass<BaseType = PyMeasure>>(
        self,
        py: Python<'py>,
        arguments: impl IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error = PyErr>,
        family: T,
    ) -> PyResult<Family<T>> {
        let recipe = (PyType::new::<T>(py), arguments.into_pyobject(py)?).into_pyobject(py)?;
        Ok(PyClassInitializer::from(self.made_by(recipe)).add_subclass(family))
    }

    /// With what makes it again.
    pub(crate) fn made_by(mut self, recipe: Bound<'_, PyTuple>) -> Self {
        self.recipe = Some(recipe.unbind());
        self
    }

    /// The answers of `answer` at every tilt, each the numbers of an array of this shape.
    fn at_tilts<'py, N: IntoIterator<Item = f64>>(
        &self,
        tilts: &Any<'py>,
        each: &[usize],
        answer: impl Fn(&dyn Measure, &[f64]) -> esscher_core::Result<N> + Copy + Send + Sync + 'static,
    ) -> PyResult<Any<'py>> {
        let py = tilts.py();
        let tilts = Reals::read("tilt", tilts)?;
        let (others, size, entries) = tilts.vectors()?;
        let mut numbers = room_for("the answer", &[others.iter().product(), each.iter().product()])?;
        arrays::check_size("the tilt", self.law.dimension(), size)?;
        let tilts = entries.chunks_exact(size);
        if self.numbers < LONG || self.exceptions.are_possible() {
            let at_tilt = |tilt: &[f64]| answer(self.law.as_ref(), tilt).map(|found| numbers.extend(found));
            self.exceptions.after(one_by_one(py, tilts, at_tilt))?;
        } else {
            // One tilt alone may take long.
            for tilt in tilts {
                let tilt = tilt.to_vec();
                let at_tilt = move |law: &Law| {
                    answer(law.as_ref(), &tilt).map(|found| found.into_iter().collect::<Vec<f64>>())
                };
                numbers.extend(self.asked(py, at_tilt)?);
                py.check_signals()?;
            }
        }
        match [others, each].concat() {
            shape if shape.is_empty() => Ok(numbers[0].into_pyobject(py)?.into_any()),
            shape => Ok(Array::new(numbers, shape).into_pyobject(py)?.into_any()),
        }
    }

    /// What the law answers, with the interpreter free meanwhile; a long answer may be left behind on Ctrl-C.
    pub(crate) fn asked<T: Send + 'static>(
        &self,
        py: Python<'_>,
        answer: impl FnOnce(&Law) -> esscher_core::Result<T> + Send + 'static,
    ) -> PyResult<T> {
        let law = self.law.clone();
        self.exceptions.after(self.exceptions.by_size(py, self.numbers, move || answer(&law)))
    }
}

/// Numbers that are drawn between two looks for signals.
const DRAWN_BETWEEN_LOOKS: usize = 1 << 20;

/// Draws per tilt that the laws may be checked with.
const MOST_DRAWS: u64 = 10_000_000;

/// A measure, from a measure or from the rows of an array, which become an empirical one.
pub(crate) fn measure_from(what: &'static str, value: &Any<'_>) -> PyResult<(Law, Exceptions)> {
    if let Ok(measure) = value.cast::<PyMeasure>() {
        let measure = measure.get();
        return Ok((measure.law.clone(), measure.exceptions.clone()));
    }
    if value.is_none() || value.is_instance_of::<PyDict>() || value.is_instance_of::<pyo3::types::PyString>()
    {
        return Err(numbers::wrong_type(what, "a measure or an array of tokens", value));
    }
    Ok((std::sync::Arc::new(empirical(what, value)?), Exceptions::default()))
}

/// The measure that was given, if it is one, for what keeps its law between calls: it owns the functions of a user's law.
pub(crate) fn owner(given: &Any<'_>) -> Option<Py<PyMeasure>> {
    given.cast::<PyMeasure>().ok().map(|measure| measure.clone().unbind())
}

/// The empirical measure of the rows of an array.
pub(crate) fn empirical(what: &'static str, value: &Any<'_>) -> PyResult<Empirical> {
    let rows = arrays::tokens(what, value)?;
    let (dimension, entries) = (rows.shape()[1], rows.entries());
    threads::on_all(|| Empirical::from_tokens(dimension, entries)).or_raise()
}

getters! { PyMeasure, own:
    /// The dimension d of a token.
    dimension: usize = own.law.dimension();
    /// The family, as messages name it.
    family: &'static str = own.law.family();
}

#[pymethods]
impl PyMeasure {
    /// Λ(θ) = log E exp⟨θ, z⟩ at one tilt, or at each of an array of tilts (..., d).
    fn log_partition<'py>(&self, tilt: &Any<'py>) -> PyResult<Any<'py>> {
        self.at_tilts(tilt, &[], |law, tilt| Ok([law.log_partition(tilt)?]))
    }

    /// ∇Λ(θ), the mean of the tilted measure: (..., d) for tilts (..., d).
    fn tilted_mean<'py>(&self, tilt: &Any<'py>) -> PyResult<Any<'py>> {
        self.at_tilts(tilt, &[self.law.dimension()], |law, tilt| law.tilted_mean(tilt))
    }

    /// ∇²Λ(θ), the covariance of the tilted measure: (..., d, d) for tilts (..., d).
    fn tilted_covariance<'py>(&self, tilt: &Any<'py>) -> PyResult<Any<'py>> {
        self.at_tilts(tilt, &[self.law.dimension(); 2], |law, tilt| {
            Ok(arrays::rows(law.tilted_covariance(tilt)?.as_ref()))
        })
    }

    /// KL(μ_θ ‖ μ): about e^KL tokens are needed to see the tilted measure.
    fn tilt_divergence<'py>(&self, tilt: &Any<'py>) -> PyResult<Any<'py>> {
        self.at_tilts(tilt, &[], |law, tilt| Ok([law.tilt_divergence(tilt)?]))
    }

    /// D₂(μ_θ ‖ μ) = Λ(2θ) − 2Λ(θ): e^D₂ / L is the scale of the mean squared error of L tokens.
    fn renyi_divergence<'py>(&self, tilt: &Any<'py>) -> PyResult<Any<'py>> {
        self.at_tilts(tilt, &[], |law, tilt| Ok([law.renyi_divergence(tilt)?]))
    }

    /// The mean of the measure.
    fn mean(&self, py: Python<'_>) -> PyResult<Array> {
        Ok(self.asked(py, |law| law.mean())?.into())
    }

    /// The covariance of the measure.
    fn covariance(&self, py: Python<'_>) -> PyResult<Array> {
        Ok(self.asked(py, |law| law.covariance())?.into())
    }

    /// E zzᵀ, the second-moment matrix that linear attention uses.
    fn second_moment(&self, py: Python<'_>) -> PyResult<Array> {
        Ok(self.asked(py, |law| law.second_moment())?.into())
    }

    /// Draws independent tokens, a (count, d) array: the same seed, the same tokens.
    #[pyo3(signature = (count, *, seed = None, tilt = None), text_signature = "($self, count, *, seed=0, tilt=None)")]
    fn sample(
        &self,
        py: Python<'_>,
        count: &Any<'_>,
        seed: Option<&Any<'_>>,
        tilt: Option<&Any<'_>>,
    ) -> PyResult<Array> {
        let count = numbers::whole("count", count, 0..=u64::MAX)? as usize;
        let dimension = self.law.dimension();
        let tilt = match tilt {
            Some(tilt) => arrays::owned_vector("tilt", tilt)?,
            None => vec![0.0; dimension],
        };
        let mut tokens = room_for("the tokens", &[count, dimension])?;
        let mut stream = Stream::new(seed.map_or(Ok(0), numbers::seed)?, 0, 0)
            .with_instruction_set(InstructionSet::best());
        let most = (DRAWN_BETWEEN_LOOKS / dimension).max(1) * dimension;
        while tokens.len() < count * dimension {
            let tilt = tilt.clone();
            (tokens, stream) = self.asked(py, move |law| {
                let begin = tokens.len();
                tokens.resize((begin + most).min(count * dimension), 0.0);
                law.sample_tilted(&tilt, &mut stream, &mut tokens[begin..])?;
                Ok((tokens, stream))
            })?;
            py.check_signals()?;
        }
        Ok(Array::new(tokens, [count, dimension]))
    }

    /// The tilted measure μ_θ itself.
    fn tilted(slf: &Bound<'_, Self>, tilt: &Any<'_>) -> PyResult<PyMeasure> {
        let (py, own) = (slf.py(), slf.get());
        let theta = arrays::owned_vector("tilt", tilt)?;
        let tilt = Array::from(theta.clone());
        let law = own.asked(py, move |law| law.tilted(&theta))?;
        let recipe = (py.import("operator")?.call_method1("methodcaller", ("tilted", tilt))?, (slf,));
        // Tilts of tilts add up: no tower grows.
        let (exceptions, depth, numbers) = (own.exceptions.clone(), own.depth, own.numbers);
        let measure = PyMeasure { law, exceptions, depth, numbers, recipe: None };
        Ok(measure.made_by(recipe.into_pyobject(py)?))
    }

    /// The Gaussian whose log-partition agrees with Λ to second order at a tilt.
    fn gaussian_limit(&self, py: Python<'_>, tilt: &Any<'_>) -> PyResult<Py<PyGaussian>> {
        let tilt = arrays::owned_vector("tilt", tilt)?;
        PyGaussian::wrap(py, &self.asked(py, move |law| law.gaussian_limit(&tilt))?)
    }

    /// The measure as a finite mixture of Gaussians and atoms, where it is one: (weights, means, covariances).
    fn gaussian_mixture(&self, py: Python<'_>) -> PyResult<Option<(Array, Array, Array)>> {
        // Equal parts that share their memory are written out.
        drop(room_for("the components", &[2, self.numbers])?);
        let Some(components) = self.asked(py, |law| Ok(law.as_gaussian_mixture()))? else {
            return Ok(None);
        };
        let (count, d) = (components.len(), self.law.dimension());
        let mut covariances = room_for("the covariances of the components", &[count, d, d])?;
        for component in &components {
            arrays::append_rows(component.gaussian.covariance_matrix(), &mut covariances);
        }
        let means = components.iter().flat_map(|component| component.gaussian.mean_vector().to_vec());
        Ok(Some((
            components.iter().map(|component| component.weight()).collect(),
            Array::new(means.collect(), [count, d]),
            Array::new(covariances, [count, d, d]),
        )))
    }

    /// A proved σ with E exp⟨θ, z − m⟩ ≤ exp(σ²|θ|²/2) for all θ, and whether it is optimal; None where none is known.
    fn sub_gaussian(&self, py: Python<'_>) -> PyResult<Option<(f64, bool)>> {
        let found = self.asked(py, |law| Ok(law.sub_gaussian()))?;
        Ok(found.map(|found| (found.parameter, found.sharpness == Sharpness::Optimal)))
    }

    /// A proved v with ∇²Λ(θ) ⪯ v²I at every tilt; None where none is known.
    fn sub_gaussian_under_tilts(&self, py: Python<'_>) -> PyResult<Option<f64>> {
        self.asked(py, |law| Ok(law.sub_gaussian_under_tilts()))
    }

    /// Checks the laws of a measure at these tilts (n, d); raises ValueError with the first one that is broken.
    #[pyo3(signature = (tilts, *, identity = 1e-10, derivative = 1e-6, draws = None),
           text_signature = "($self, tilts, *, identity=1e-10, derivative=1e-6, draws=20000)")]
    fn check_laws(
        &self,
        py: Python<'_>,
        tilts: &Any<'_>,
        #[pyo3(from_py_with = numbers::argument::identity)] identity: f64,
        #[pyo3(from_py_with = numbers::argument::derivative)] derivative: f64,
        draws: Option<&Any<'_>>,
    ) -> PyResult<()> {
        for (what, tolerance) in [("identity", identity), ("derivative", derivative)] {
            // Every law would break it.
            if tolerance.is_nan() || tolerance < 0.0 {
                let message = format!("{what} is {tolerance}: expected a tolerance, a number from 0 on");
                return Err(PyValueError::new_err(message));
            }
        }
        let draws =
            draws.map_or(Ok(20_000), |draws| numbers::whole("draws", draws, 0..=MOST_DRAWS))? as usize;
        drop(room_for("the draws", &[draws, self.law.dimension()])?);
        let tilts = Reals::read("tilts", tilts)?;
        let rows = tilts.matrix()?;
        let tilts: Vec<Vec<f64>> = tilts.entries().chunks(rows.ncols().max(1)).map(<[f64]>::to_vec).collect();
        let tolerance = LawTolerance { identity, derivative, draws };
        let law = self.law.clone();
        match self.exceptions.by_size(py, UNKNOWN, move || check_laws(law, &tilts, tolerance))? {
            Ok(()) => self.exceptions.or_raise(Ok(())),
            Err(LawViolation::Refused(error)) => self.exceptions.or_raise(Err(error)),
            Err(broken) => {
                self.exceptions.or_raise(Ok(()))?;
                Err(PyValueError::new_err(broken.to_string()))
            }
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

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.recipe)
    }
}

compared!(PyMeasure);

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
        let arguments = (Array::from(gaussian.mean_vector()), Array::from(gaussian.covariance_matrix()));
        PyMeasure::simple(gaussian.clone()).again(py, arguments, PyGaussian)
    }

    pub(crate) fn wrap(py: Python<'_>, gaussian: &Gaussian) -> PyResult<Py<PyGaussian>> {
        Py::new(py, PyGaussian::initialiser(py, gaussian)?)
    }
}

/// A Gaussian, from a `Gaussian` or another measure that is one.
pub(crate) fn gaussian_from(what: &str, value: &Any<'_>) -> PyResult<Gaussian> {
    let components =
        value.cast::<PyMeasure>().ok().and_then(|measure| measure.get().law.as_gaussian_mixture());
    match components.map(<[_; 1]>::try_from) {
        Some(Ok([component])) => Ok(component.gaussian),
        // A measure says what it is in a few words; what else has a print may print pages.
        _ if value.is_instance_of::<PyMeasure>() => {
            Err(PyTypeError::new_err(format!("{what}: expected a Gaussian, found {}", value.repr()?)))
        }
        _ => Err(numbers::wrong_type(what, "a Gaussian", value)),
    }
}

/// Makes a Gaussian in this dimension: its eigenvalues take long in a large one.
fn made(
    py: Python<'_>,
    dimension: usize,
    make: impl FnOnce() -> esscher_core::Result<Gaussian> + Send + 'static,
) -> PyResult<Gaussian> {
    by_size(py, dimension.saturating_mul(dimension), make)?.or_raise()
}

#[pymethods]
impl PyGaussian {
    #[new]
    fn new(py: Python<'_>, mean: &Any<'_>, covariance: &Any<'_>) -> PyResult<Family<Self>> {
        let mean = arrays::owned_vector("mean", mean)?;
        let covariance = arrays::owned_matrix("covariance", covariance)?;
        arrays::check_dimension("mean", mean.len())?;
        PyGaussian::initialiser(py, &made(py, mean.len(), move || Gaussian::new(&mean, covariance.as_ref()))?)
    }

    /// N(0, I) in this dimension.
    #[staticmethod]
    fn standard(py: Python<'_>, dimension: &Any<'_>) -> PyResult<Py<Self>> {
        let dimension = arrays::dimension(dimension)?;
        PyGaussian::wrap(py, &made(py, dimension, move || Gaussian::standard(dimension))?)
    }

    /// N(0, G).
    #[staticmethod]
    fn centred(py: Python<'_>, covariance: &Any<'_>) -> PyResult<Py<Self>> {
        let covariance = arrays::owned_matrix("covariance", covariance)?;
        arrays::check_dimension("covariance", covariance.nrows())?;
        let size = covariance.nrows();
        PyGaussian::wrap(py, &made(py, size, move || Gaussian::centred(covariance.as_ref()))?)
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
    fn new(py: Python<'_>, components: &Any<'_>, weights: Option<&Any<'_>>) -> PyResult<Family<Self>> {
        let components = measures("components", components)?;
        let given = match weights {
            Some(weights) => arrays::owned_vector("weights", weights)?,
            None => vec![1.0; components.len()],
        };
        arrays::check_size("the list of weights", components.len(), given.len())?;
        let weighted = given.iter().copied().zip(components.iter().map(|part| part.law.clone())).collect();
        let mixture = Mixture::new(weighted);
        let weights = mixture.as_ref().map_or_else(|_| Vec::new(), Mixture::weights);
        let measure = PyMeasure::composed(mixture, &components)?;
        measure.again(py, (PyTuple::new(py, components)?, Array::from(given)), PyMixture { weights })
    }
}

getters! { PyMixture, own:
    /// The normalised weights.
    weights: Array = own.weights[..].into();
}

/// A list of measures.
fn measures<'py>(what: &str, value: &Any<'py>) -> PyResult<Vec<PyRef<'py, PyMeasure>>> {
    numbers::list(what, value, |measure| match measure.cast::<PyMeasure>() {
        Ok(measure) => Ok(measure.borrow()),
        Err(_) => Err(numbers::wrong_type(what, "measures", measure)),
    })
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
    fn new(tokens: &Any<'_>, weights: Option<&Any<'_>>) -> PyResult<Family<Self>> {
        let mut empirical = empirical("tokens", tokens)?;
        let weights = weights.map(|weights| arrays::owned_vector("weights", weights)).transpose()?;
        if let Some(weights) = &weights {
            empirical = threads::on_all(|| empirical.with_weights(weights)).or_raise()?;
        }
        let numbers = empirical.len().saturating_mul(empirical.dimension());
        let measure = PyMeasure { numbers, ..PyMeasure::simple(empirical.clone()) };
        Ok(PyClassInitializer::from(measure).add_subclass(PyEmpirical { empirical, weights }))
    }

    fn __len__(&self) -> usize {
        self.empirical.len()
    }

    fn __reduce__(slf: &Bound<'_, Self>) -> PyResult<Py<PyTuple>> {
        // Made when asked for: the points are not kept twice.
        let (py, own) = (slf.py(), slf.get());
        let arguments = (own.tokens()?, own.weights.as_deref().map(Array::from));
        Ok((PyType::new::<Self>(py), arguments).into_pyobject(py)?.unbind())
    }
}

getters! { PyEmpirical, own:
    /// The points, a (L, d) array.
    tokens: Array = {
        let shape = [own.empirical.len(), own.empirical.dimension()];
        let mut tokens = room_for("the tokens", &shape)?;
        tokens.extend(own.empirical.points().flatten());
        Array::new(tokens, shape)
    };
}

/// Families given by numbers alone: a dimension, and parameters with their defaults.
macro_rules! families_of_numbers {
    ($($(#[$documentation:meta])* $class:ident as $name:literal, $law:ident($($argument:ident = $default:literal)?), $signature:literal;)+) => {$(
        $(#[$documentation])*
        #[pyclass(name = $name, module = "esscher", extends = PyMeasure, frozen)]
        pub(crate) struct $class;

        #[pymethods]
        impl $class {
            #[new]
            #[pyo3(signature = (dimension, $($argument = None)?), text_signature = $signature)]
            fn new(py: Python<'_>, dimension: &Any<'_>, $($argument: Option<&Any<'_>>)?) -> PyResult<Family<Self>> {
                $(let $argument = $argument.map_or(Ok($default), |value| numbers::real(stringify!($argument), value))?;)?
                let law = $law::new(arrays::dimension(dimension)?, $($argument)?).or_raise()?;
                PyMeasure::simple(law).again(py, (dimension, $($argument)?), $class)
            }
        }
    )+};
}

families_of_numbers! {
    /// Independent signs ±1 with equal probability.
    PyRademacher as "Rademacher", Rademacher(), "(dimension)";
    /// The uniform law on the cube [−1, 1]ᵈ.
    PyCube as "Cube", Cube(), "(dimension)";
    /// The uniform law on the sphere of this radius.
    PySphere as "Sphere", Sphere(radius = 1.0), "(dimension, radius=1.0)";
    /// Independent two-sided exponential coordinates of this scale: tilts must stay below 1/scale.
    PyLaplace as "Laplace", Laplace(scale = 1.0), "(dimension, scale=1.0)";
}

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
        base: &Any<'_>,
        matrix: &Any<'_>,
        shift: Option<&Any<'_>>,
    ) -> PyResult<Family<Self>> {
        let Ok(base) = base.cast::<PyMeasure>() else {
            return Err(numbers::wrong_type("base", "a measure", base));
        };
        let base = base.borrow();
        let d = base.law.dimension();
        let given = Reals::read("matrix", matrix)?;
        let owned = match (given.shape(), given.entries()) {
            ([], &[factor]) => Mat::from_fn(d, d, |i, j| if i == j { factor } else { 0.0 }),
            _ => given.matrix()?.to_owned(),
        };
        arrays::check_dimension("matrix (rows)", owned.nrows())?;
        let shift = match shift {
            Some(shift) => arrays::owned_vector("shift", shift)?,
            None => vec![0.0; owned.nrows()],
        };
        let law = Affine::new(owned.as_ref(), &shift, base.law.clone());
        let measure = PyMeasure::composed(law, std::slice::from_ref(&base))?;
        measure.again(py, (base, Array::from(owned), Array::from(shift)), PyAffine)
    }
}

/// The law of independent parts laid end to end.
#[pyclass(name = "Product", module = "esscher", extends = PyMeasure, frozen)]
pub(crate) struct PyProduct;

#[pymethods]
impl PyProduct {
    #[new]
    fn new(py: Python<'_>, factors: &Any<'_>) -> PyResult<Family<Self>> {
        let factors = measures("factors", factors)?;
        let total = factors.iter().map(|factor| factor.law.dimension()).sum();
        arrays::check_dimension("factors", total)?;
        let law = Product::new(factors.iter().map(|factor| factor.law.clone()).collect());
        let measure = PyMeasure::composed(law, &factors)?;
        measure.again(py, (PyTuple::new(py, factors)?,), PyProduct)
    }
}
