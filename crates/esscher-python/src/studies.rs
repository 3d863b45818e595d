//! Concentration studies, their rates, and horizons.

use crate::heads::softmax_from;
use crate::measures::{PyMeasure, measure_from};
use crate::numbers::{real, whole};
use crate::prelude::*;
use crate::watch::watched;
use esscher_core::attention::{Attention, Softmax};
use esscher_core::concentration::{
    Concentration, Dependence, Engine, Estimator, Horizon, LocalSlope, Quantity, RatePoint, SpreadBasis,
    Study,
};
use esscher_core::measure::{Empirical, Law, Measure};
use esscher_core::numerics::InstructionSet;
use esscher_core::prompt::{Precision, PromptLength, QueryAverage, SampleOptions};
use esscher_core::{Accuracy, Error, Mat};
use std::sync::Arc;

export!(fn concentration, horizon, rate_fit, local_slopes);

/// Joint laws over lengths grow with the square of their number.
const MOST_LENGTHS: usize = 1000;

fn grid(lengths: &Any<'_>) -> PyResult<Vec<PromptLength>> {
    let lengths = arrays::lengths(lengths)?;
    if lengths.len() > MOST_LENGTHS {
        let found = lengths.len();
        let message = format!("lengths: {found} given, at most {MOST_LENGTHS} are supported at a time");
        return Err(PyValueError::new_err(message));
    }
    Ok(lengths)
}

/// How finely to average over queries.
fn average(
    tokens: &dyn Measure,
    query_dimension: usize,
    directions: Option<&Any<'_>>,
    randomisations: Option<&Any<'_>>,
    seed: u64,
) -> PyResult<QueryAverage> {
    let mut average = QueryAverage::for_tokens(tokens);
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
enum EngineWord {
    Best,
    Exact,
    Sampled,
}

/// A study on a grid of lengths: rows, warnings, the operator norm and the joint laws that fits need.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
fn concentration<'py>(
    py: Python<'py>,
    head: &Any<'_>,
    tokens: &Any<'_>,
    queries: &Any<'_>,
    lengths: &Any<'_>,
    engine: &str,
    directions: Option<&Any<'_>>,
    randomisations: Option<&Any<'_>>,
    trials: Option<&Any<'_>>,
    query_count: Option<&Any<'_>>,
    score_gradient: bool,
    precision: &str,
    instruction_set: Option<&str>,
    seed: &Any<'_>,
    progress: Option<&Any<'_>>,
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
    let engines =
        [("best", EngineWord::Best), ("exact", EngineWord::Exact), ("sampled", EngineWord::Sampled)];
    let engine = match choice("engine", engine, &engines)? {
        EngineWord::Exact => Engine::Exact(average),
        EngineWord::Best if token_law.as_gaussian_mixture().is_some() => Engine::Exact(average),
        EngineWord::Best | EngineWord::Sampled => Engine::Sampled(options),
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
    let accuracy: Vec<&str> =
        study.rows.iter().filter_map(|row| Some(row.errors.output?.accuracy.name())).collect();
    answer.set_item("accuracy", accuracy)?;
    answer.set_item("operator_norm", operator_norm)?;
    let warnings: Vec<(u64, &str, f64)> = study
        .warnings
        .iter()
        .map(|tail| (tail.length.get(), tail.quantity.name(), tail.effective_sample_size))
        .collect();
    answer.set_item("warnings", warnings)?;
    let quantities = PyDict::new(py);
    for quantity in Quantity::ALL {
        let points = study.points(quantity);
        if points.is_empty() {
            continue;
        }
        let values: Array = points.iter().map(|point| point.value).collect();
        let errors: Array = points.iter().map(|point| point.absolute_error).collect();
        let joint =
            study.log_covariance(quantity).map(|(covariance, draws)| (Array::from(covariance), draws));
        quantities.set_item(quantity.name(), (values, errors, joint))?;
    }
    answer.set_item("quantities", quantities)?;
    Ok(answer)
}

/// Points of a fit and how they hang together.
struct Points {
    points: Vec<RatePoint>,
    covariance: Option<Mat<f64>>,
    draws: Option<u64>,
}

impl Points {
    fn read(asked: &Asked<'_>) -> PyResult<Self> {
        let lengths = grid(&asked.get("lengths")?)?;
        let values = asked.vector("values")?;
        let sized = |what: &'static str, found: usize| -> PyResult<()> {
            if found == lengths.len() {
                return Ok(());
            }
            Err(Error::Size { what, expected: lengths.len(), found }).or_raise()
        };
        sized("values", values.len())?;
        let errors = match asked.maybe("errors", Asked::reals)? {
            None => vec![0.0; values.len()],
            Some(errors) => match (errors.shape(), errors.entries()) {
                ([], &[one]) => vec![one; values.len()],
                _ => errors.vector()?.to_vec(),
            },
        };
        sized("errors", errors.len())?;
        let points = lengths
            .iter()
            .zip(values)
            .zip(errors)
            .map(|((&length, value), absolute_error)| RatePoint { length, value, absolute_error })
            .collect();
        let covariance = asked.maybe("covariance", Asked::matrix)?;
        let draws = asked.maybe("draws", |asked, what| asked.whole(what, 2..=u64::MAX))?;
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
fn rate_fit<'py>(py: Python<'py>, asked: Asked<'py>) -> PyResult<Bound<'py, PyDict>> {
    let (points, level) = (Points::read(&asked)?, asked.real("level")?);
    let fit = py
        .detach(|| esscher_core::concentration::rate_fit(&points.points, points.dependence(), level))
        .or_raise()?;
    let estimator = match fit.estimator {
        Estimator::OrdinaryLeastSquares => "ordinary-least-squares",
        Estimator::WeightedLeastSquares => "weighted-least-squares",
        Estimator::GeneralisedLeastSquares => "generalised-least-squares",
    };
    let basis = match fit.basis {
        SpreadBasis::StatedErrors => "stated-errors",
        SpreadBasis::Residuals => "residuals",
    };
    Ok(dictionary!(py, interval: (fit.interval.lower, fit.interval.upper), level: fit.interval.level,
        estimator: estimator, basis: basis, residuals: Array::from(&fit.residuals[..]);
        fit => exponent, constant, standard_error, log_constant_standard_error, chi_square, degrees_of_freedom, dropped))
}

/// κ between neighbours: (from, to, slope, standard error) of each.
#[pyfunction]
fn local_slopes(py: Python<'_>, asked: Asked<'_>) -> PyResult<Vec<(u64, u64, f64, f64)>> {
    let points = Points::read(&asked)?;
    let slopes = py
        .detach(|| esscher_core::concentration::local_slopes(&points.points, points.dependence()))
        .or_raise()?;
    let row = |slope: &LocalSlope| (slope.from.get(), slope.to.get(), slope.slope, slope.standard_error);
    Ok(slopes.iter().map(row).collect())
}

/// The smallest length for a root-mean-square error, with the command line's sentence.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
fn horizon<'py>(
    py: Python<'py>,
    head: &Any<'_>,
    tokens: &Any<'_>,
    tolerance: &Any<'_>,
    query: Option<&Any<'_>>,
    queries: Option<&Any<'_>>,
    quantity: &str,
    directions: Option<&Any<'_>>,
    randomisations: Option<&Any<'_>>,
    seed: &Any<'_>,
    progress: Option<&Any<'_>>,
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
    let quantity = choice("quantity", quantity, &Quantity::ALL.map(|known| (known.name(), known)))?;
    let seed = whole("seed", seed, 0..=u64::MAX)?;
    let average = average(token_law.as_ref(), head.query_dimension(), directions, randomisations, seed)?;
    let setting = Concentration::new(head.clone(), token_law, query_law, &[PromptLength::MIN]).or_raise()?;
    let found =
        watched(py, progress, |watch| setting.horizon(quantity, tolerance * tolerance, average, watch))?;
    let found = Exceptions::joined([&token_exceptions, &query_exceptions]).or_raise(found)?;
    let tokens_obtained =
        if note.is_some() { "exact for the Gaussian that stands for the tokens" } else { "exact" };
    let obtained = match found.error().map(|error| error.accuracy) {
        None | Some(Accuracy::Exact) => tokens_obtained.to_string(),
        Some(Accuracy::QuasiMonteCarlo) if note.is_none() => {
            "exact in the tokens, queries averaged over quasi-Monte-Carlo points".to_string()
        }
        Some(Accuracy::QuasiMonteCarlo) => {
            format!("{tokens_obtained}, queries averaged over quasi-Monte-Carlo points")
        }
        Some(Accuracy::Sampled) if note.is_none() => "exact in the tokens, queries sampled".to_string(),
        Some(Accuracy::Sampled) => format!("{tokens_obtained}, queries sampled"),
    };
    let root = found.error().map(|error| error.value.max(0.0).sqrt());
    let sentence = match (found, root) {
        (Horizon::Found { length, .. }, Some(root)) => format!(
            "L = {length} tokens: root-mean-square error {root:.6e}, at most {tolerance} ({obtained})"
        ),
        (Horizon::Beyond { longest, .. }, Some(root)) => format!(
            "more than {longest} tokens: the root-mean-square error there is still {root:.3e} ({obtained})"
        ),
        // A call is stopped by an exception, which has been raised; said all the same.
        _ => "stopped before an answer".to_string(),
    };
    let (above, within) = found.bracket();
    let answer = PyDict::new(py);
    answer.set_item("status", found.name())?;
    answer.set_item("length", found.length().map(PromptLength::get))?;
    answer.set_item("error", root)?;
    answer.set_item("bracket", (above.map(PromptLength::get), within.map(PromptLength::get)))?;
    answer.set_item("accuracy", obtained)?;
    answer.set_item("tokens", note)?;
    answer.set_item("sentence", sentence)?;
    Ok(answer)
}
