//! Concentration studies, their rates, and horizons.

use crate::arrays::{self, Reals};
use crate::failure::{Exceptions, OrRaise, choice, room_for};
use crate::heads::softmax_from;
use crate::measures::{PyMeasure, measure_from};
use crate::numbers::{real, whole};
use crate::threads;
use crate::watch::watched;
use esscher_core::attention::{Attention, Softmax};
use esscher_core::concentration::{
    Concentration, Dependence, Engine, Estimator, Horizon, Quantity, RatePoint, SpreadBasis, Study,
};
use esscher_core::measure::{Empirical, Law, Measure};
use esscher_core::numerics::InstructionSet;
use esscher_core::prompt::{Precision, PromptLength, QueryAverage, SampleOptions};
use esscher_core::softmax_weights::MomentTable;
use esscher_core::{Accuracy, Error, Mat};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;

/// Joint laws over lengths grow with the square of their number.
const MOST_LENGTHS: usize = 1000;

const QUANTITIES: [(&str, Quantity); 3] = [
    ("output", Quantity::Output),
    ("score-gradient", Quantity::ScoreGradient),
    ("value-gradient", Quantity::ValueGradient),
];

fn grid(lengths: &Bound<'_, PyAny>) -> PyResult<Vec<PromptLength>> {
    let lengths = arrays::lengths(lengths)?;
    if lengths.len() > MOST_LENGTHS {
        let found = lengths.len();
        let message = format!("lengths: {found} given, at most {MOST_LENGTHS} are supported at a time");
        return Err(PyValueError::new_err(message));
    }
    Ok(lengths)
}

/// How finely to average over queries: coarsely for mixtures of tokens, where every query costs milliseconds.
fn average(
    tokens: &dyn Measure,
    query_dimension: usize,
    directions: Option<&Bound<'_, PyAny>>,
    randomisations: Option<&Bound<'_, PyAny>>,
    seed: u64,
) -> PyResult<QueryAverage> {
    let gaussian = tokens.as_gaussian_mixture().is_none_or(|components| components.len() == 1);
    let mut average = if gaussian { QueryAverage::default() } else { QueryAverage::COARSE };
    if let Some(directions) = directions {
        average.directions = whole("directions", directions, 1..=1 << 20)? as u32;
    }
    if let Some(randomisations) = randomisations {
        average.randomisations = whole("randomisations", randomisations, 2..=1 << 16)? as u32;
    }
    // Two randomisations are computed at a time.
    drop(room_for("the directions of the queries", &[2, average.directions as usize, query_dimension])?);
    Ok(QueryAverage { seed, ..average })
}

/// The words for the engines.
#[derive(Clone, Copy)]
enum Asked {
    Best,
    Exact,
    Sampled,
}

/// A study on a grid of lengths: rows, warnings, the operator norm and the joint laws that fits need.
#[pyfunction]
pub(crate) fn concentration<'py>(
    py: Python<'py>,
    head: &Bound<'_, PyAny>,
    tokens: &Bound<'_, PyAny>,
    queries: &Bound<'_, PyAny>,
    lengths: &Bound<'_, PyAny>,
    engine: &str,
    directions: Option<&Bound<'_, PyAny>>,
    randomisations: Option<&Bound<'_, PyAny>>,
    trials: Option<&Bound<'_, PyAny>>,
    query_count: Option<&Bound<'_, PyAny>>,
    score_gradient: bool,
    precision: &str,
    instruction_set: Option<&str>,
    seed: &Bound<'_, PyAny>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let head = &softmax_from(head)?;
    let (token_law, token_exceptions) = measure_from("tokens", tokens)?;
    let (query_law, query_exceptions) = measure_from("queries", queries)?;
    let exceptions = Exceptions::joined([&token_exceptions, &query_exceptions]);
    let setting =
        Concentration::new(head.clone(), token_law.clone(), query_law, &grid(lengths)?).or_raise()?;
    let seed = whole("seed", seed, 0..=u64::MAX)?;
    let average = average(token_law.as_ref(), head.query_dimension(), directions, randomisations, seed)?;
    let mut options = SampleOptions { score_gradient, seed, ..SampleOptions::default() };
    if let Some(trials) = trials {
        options.trials = whole("trials", trials, 2..=1 << 24)? as u32;
    }
    if let Some(query_count) = query_count {
        options.queries = whole("query_count", query_count, 1..=1 << 20)? as u32;
    }
    options.precision =
        choice("precision", precision, &[("double", Precision::Double), ("single", Precision::Single)])?;
    if let Some(name) = instruction_set {
        options.instruction_set = InstructionSet::named(name).or_raise()?;
    }
    let engines = [("best", Asked::Best), ("exact", Asked::Exact), ("sampled", Asked::Sampled)];
    let engine = match choice("engine", engine, &engines)? {
        Asked::Exact => Engine::Exact(average),
        Asked::Best if token_law.as_gaussian_mixture().is_some() => Engine::Exact(average),
        Asked::Best | Asked::Sampled => Engine::Sampled(options),
    };
    if let Engine::Sampled(options) = engine {
        make_sure_of_room(py, head, &setting, options, &exceptions)?;
    }
    let found = watched(py, progress, |watch| {
        let study = setting.run(engine, watch)?;
        Ok((study, setting.operator_norm()?))
    })?;
    let (study, operator_norm) = exceptions.or_raise(found)?;
    describe(py, &study, operator_norm)
}

/// Refuses a simulation that would not fit into memory.
fn make_sure_of_room(
    py: Python<'_>,
    head: &Softmax,
    setting: &Concentration,
    options: SampleOptions,
    exceptions: &Exceptions,
) -> PyResult<()> {
    let simulation = threads::detached(py, || setting.simulation(options));
    let simulation = exceptions.or_raise(simulation)?;
    let (units, lengths) = (simulation.units() as usize, simulation.lengths().len());
    drop(room_for("the joint errors of the simulated units", &[units, 3, lengths, lengths])?);
    let d = head.token_dimension();
    let features = if options.score_gradient { d + d * (d + 1) / 2 } else { d };
    drop(room_for("the sums over tokens of all queries", &[options.queries as usize, 2 + d + features])?);
    Ok(())
}

/// The study as arrays and lists.
fn describe<'py>(py: Python<'py>, study: &Study, operator_norm: f64) -> PyResult<Bound<'py, PyDict>> {
    let answer = PyDict::new(py);
    let lengths: Vec<u64> = study.rows.iter().map(|row| row.length.get()).collect();
    answer.set_item("lengths", lengths)?;
    let accuracy: Vec<&str> = study
        .rows
        .iter()
        .map(|row| match row.output_error.accuracy {
            Accuracy::Exact { .. } => "exact",
            Accuracy::QuasiMonteCarlo { .. } => "quasi-monte-carlo",
            Accuracy::Sampled { .. } => "sampled",
        })
        .collect();
    answer.set_item("accuracy", accuracy)?;
    answer.set_item("operator_norm", operator_norm)?;
    let warnings: Vec<(u64, &str, f64)> = study
        .warnings
        .iter()
        .map(|tail| (tail.length.get(), name_of(tail.quantity), tail.effective_sample_size))
        .collect();
    answer.set_item("warnings", warnings)?;
    let quantities = PyDict::new(py);
    for (name, quantity) in QUANTITIES {
        let points = study.points(quantity);
        if points.is_empty() {
            continue;
        }
        let values = arrays::vector(py, points.iter().map(|point| point.value).collect());
        // An average is no better than what is averaged, also where all directions of the queries agree.
        let floor = if study.units.units.is_empty() { MomentTable::TOLERANCE } else { 0.0 };
        let uncertainty = |point: &RatePoint| point.absolute_error.max(floor * point.value);
        let errors = arrays::vector(py, points.iter().map(uncertainty).collect());
        let joint = match study.log_covariance(quantity) {
            Some((covariance, draws)) => Some((arrays::matrix(py, covariance.as_ref())?, draws)),
            None => None,
        };
        quantities.set_item(name, (values, errors, joint))?;
    }
    answer.set_item("quantities", quantities)?;
    Ok(answer)
}

fn name_of(quantity: Quantity) -> &'static str {
    QUANTITIES.iter().find(|(_, known)| *known == quantity).map_or("", |(name, _)| name)
}

/// Points of a fit and how they hang together.
struct Points {
    points: Vec<RatePoint>,
    covariance: Option<Mat<f64>>,
    draws: Option<u64>,
}

impl Points {
    fn read(
        lengths: &Bound<'_, PyAny>,
        values: &Bound<'_, PyAny>,
        errors: Option<&Bound<'_, PyAny>>,
        covariance: Option<&Bound<'_, PyAny>>,
        draws: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let lengths = grid(lengths)?;
        let values = arrays::owned_vector("values", values)?;
        let sized = |what: &'static str, found: usize| -> PyResult<()> {
            if found == lengths.len() {
                return Ok(());
            }
            Err(Error::Size { what, expected: lengths.len(), found }).or_raise()
        };
        sized("values", values.len())?;
        let errors = match errors {
            None => vec![0.0; values.len()],
            Some(errors) => {
                let errors = Reals::read("errors", errors)?;
                match (errors.shape(), errors.entries()) {
                    ([], &[one]) => vec![one; values.len()],
                    _ => errors.vector()?.to_vec(),
                }
            }
        };
        sized("errors", errors.len())?;
        let points = lengths
            .iter()
            .zip(values)
            .zip(errors)
            .map(|((&length, value), absolute_error)| RatePoint { length, value, absolute_error })
            .collect();
        let covariance = covariance.map(|matrix| arrays::owned_matrix("covariance", matrix)).transpose()?;
        let draws = draws.map(|draws| whole("draws", draws, 2..=u64::MAX)).transpose()?;
        if draws.is_some() && covariance.is_none() {
            let message = "draws: given without a covariance; draws say how well that is known";
            return Err(PyValueError::new_err(message));
        }
        Ok(Points { points, covariance, draws })
    }

    fn dependence(&self) -> Dependence<'_> {
        match (&self.covariance, self.draws) {
            (None, _) => Dependence::Independent,
            (Some(covariance), None) => Dependence::LogCovariance(covariance.as_ref()),
            (Some(covariance), Some(draws)) => {
                Dependence::EstimatedLogCovariance { covariance: covariance.as_ref(), draws }
            }
        }
    }
}

/// c·L^{−κ} fitted to points.
#[pyfunction]
pub(crate) fn rate_fit<'py>(
    py: Python<'py>,
    lengths: &Bound<'_, PyAny>,
    values: &Bound<'_, PyAny>,
    errors: Option<&Bound<'_, PyAny>>,
    covariance: Option<&Bound<'_, PyAny>>,
    draws: Option<&Bound<'_, PyAny>>,
    level: &Bound<'_, PyAny>,
) -> PyResult<Bound<'py, PyDict>> {
    let points = Points::read(lengths, values, errors, covariance, draws)?;
    let level = real("level", level)?;
    let fit = py
        .detach(|| esscher_core::concentration::rate_fit(&points.points, points.dependence(), level))
        .or_raise()?;
    let answer = PyDict::new(py);
    answer.set_item("exponent", fit.exponent)?;
    answer.set_item("constant", fit.constant)?;
    answer.set_item("standard_error", fit.standard_error)?;
    answer.set_item("log_constant_standard_error", fit.log_constant_standard_error)?;
    answer.set_item("interval", (fit.interval.lower, fit.interval.upper))?;
    answer.set_item("level", fit.interval.level)?;
    answer.set_item(
        "estimator",
        match fit.estimator {
            Estimator::OrdinaryLeastSquares => "ordinary-least-squares",
            Estimator::WeightedLeastSquares => "weighted-least-squares",
            Estimator::GeneralisedLeastSquares => "generalised-least-squares",
        },
    )?;
    answer.set_item(
        "basis",
        match fit.basis {
            SpreadBasis::StatedErrors => "stated-errors",
            SpreadBasis::Residuals => "residuals",
        },
    )?;
    answer.set_item("chi_square", fit.chi_square)?;
    answer.set_item("degrees_of_freedom", fit.degrees_of_freedom)?;
    answer.set_item("residuals", arrays::vector(py, fit.residuals))?;
    answer.set_item("dropped", fit.dropped)?;
    Ok(answer)
}

/// κ between neighbours: (from, to, slope, standard error) of each.
#[pyfunction]
pub(crate) fn local_slopes(
    py: Python<'_>,
    lengths: &Bound<'_, PyAny>,
    values: &Bound<'_, PyAny>,
    errors: Option<&Bound<'_, PyAny>>,
    covariance: Option<&Bound<'_, PyAny>>,
    draws: Option<&Bound<'_, PyAny>>,
) -> PyResult<Vec<(u64, u64, f64, f64)>> {
    let points = Points::read(lengths, values, errors, covariance, draws)?;
    let slopes = py
        .detach(|| esscher_core::concentration::local_slopes(&points.points, points.dependence()))
        .or_raise()?;
    Ok(slopes
        .iter()
        .map(|slope| (slope.from.get(), slope.to.get(), slope.slope, slope.standard_error))
        .collect())
}

/// The smallest length for a root-mean-square error, with the command line's sentence.
#[pyfunction]
pub(crate) fn horizon<'py>(
    py: Python<'py>,
    head: &Bound<'_, PyAny>,
    tokens: &Bound<'_, PyAny>,
    tolerance: &Bound<'_, PyAny>,
    query: Option<&Bound<'_, PyAny>>,
    queries: Option<&Bound<'_, PyAny>>,
    quantity: &str,
    directions: Option<&Bound<'_, PyAny>>,
    randomisations: Option<&Bound<'_, PyAny>>,
    seed: &Bound<'_, PyAny>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let head = &softmax_from(head)?;
    let tolerance = real("tolerance", tolerance)?;
    if !(tolerance > 0.0 && tolerance.is_finite()) {
        let message = format!("tolerance: expected a number above 0, found {tolerance}");
        return Err(PyValueError::new_err(message));
    }
    let (given, token_exceptions) = measure_from("tokens", tokens)?;
    let (token_law, note): (Law, Option<String>) = if tokens.cast::<PyMeasure>().is_ok() {
        (given, None)
    } else {
        let count = tokens.len()?;
        let gaussian =
            threads::detached(py, || given.gaussian_limit(&vec![0.0; given.dimension()])).or_raise()?;
        let note = format!("the Gaussian with the mean and covariance of the {count} given tokens");
        (Arc::new(gaussian), Some(note))
    };
    let (query_law, query_exceptions): (Law, Exceptions) = match (query, queries) {
        (Some(_), Some(_)) => {
            let message = "query, queries: give one query or a law of queries, not both";
            return Err(PyTypeError::new_err(message));
        }
        (Some(query), None) => {
            let query = arrays::owned_vector("query", query)?;
            (Arc::new(Empirical::atom(&query).or_raise()?), Exceptions::default())
        }
        (None, Some(queries)) => measure_from("queries", queries)?,
        (None, None) => (token_law.clone(), Exceptions::default()),
    };
    let quantity = choice("quantity", quantity, &QUANTITIES)?;
    let seed = whole("seed", seed, 0..=u64::MAX)?;
    let average = average(token_law.as_ref(), head.query_dimension(), directions, randomisations, seed)?;
    let setting = Concentration::new(head.clone(), token_law, query_law, &[PromptLength::MIN]).or_raise()?;
    let found =
        watched(py, progress, |watch| setting.horizon(quantity, tolerance * tolerance, average, watch))?;
    let found = Exceptions::joined([&token_exceptions, &query_exceptions]).or_raise(found)?;
    let obtained = match (query.is_some(), note.is_some()) {
        (true, false) => "exact",
        (true, true) => "exact for the Gaussian that stands for the tokens",
        (false, false) => "exact in the tokens, queries averaged over quasi-Monte-Carlo points",
        (false, true) => {
            "exact for the Gaussian that stands for the tokens, queries averaged over quasi-Monte-Carlo points"
        }
    };
    let root = |error: f64| error.max(0.0).sqrt();
    let within = |length: PromptLength, error: f64| {
        format!(
            "L = {length} tokens: root-mean-square error {:.6e}, at most {tolerance} ({obtained})",
            root(error)
        )
    };
    let (status, length, error, bracket, sentence) = match found {
        Horizon::Found { length, error, .. } => {
            let bracket = (Some(length.get() - 1), Some(length.get()));
            ("found", Some(length), Some(error), bracket, within(length, error))
        }
        Horizon::AlreadyBelow { error } => {
            let one = PromptLength::MIN;
            ("found", Some(one), Some(error), (None, Some(one.get())), within(one, error))
        }
        Horizon::BeyondLongest { longest, error } => {
            let sentence = format!(
                "more than {longest} tokens: the root-mean-square error there is still {:.3e} ({obtained})",
                root(error)
            );
            ("beyond", None, Some(error), (Some(longest.get()), None), sentence)
        }
        // A call is stopped by an exception, which has been raised; said all the same.
        Horizon::Stopped { above, within } => {
            let bracket = (above.map(PromptLength::get), within.map(PromptLength::get));
            ("stopped", None, None, bracket, "stopped before an answer".to_string())
        }
    };
    let answer = PyDict::new(py);
    answer.set_item("status", status)?;
    answer.set_item("length", length.map(PromptLength::get))?;
    answer.set_item("error", error.map(root))?;
    answer.set_item("bracket", bracket)?;
    answer.set_item("accuracy", obtained)?;
    answer.set_item("tokens", note)?;
    answer.set_item("sentence", sentence)?;
    Ok(answer)
}
