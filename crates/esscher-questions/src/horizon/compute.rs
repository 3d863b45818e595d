//! One unit: the search for the length.

use super::answer::{Outcome, Row};
use super::{Ask, describe};
use crate::asking::{self, Tokens};
use crate::measured::Measured;
use crate::question::{Compute, Failure, Given, Mistake, Monitor, Section, Unit};
use esscher_core::attention::Attention;
use esscher_core::concentration::{Concentration, Horizon, Quantity};
use esscher_core::measure::{Empirical, Law, Measure};
use esscher_core::prompt::{PromptLength, QueryAverage};
use esscher_lab::specification::Written;
use std::sync::{Arc, Mutex, PoisonError};

pub(super) struct Search {
    setting: Concentration,
    average: QueryAverage,
    quantity: Quantity,
    tolerance: f64,
    tokens: Option<String>,
}

pub(super) fn plan(ask: Ask, section: &mut Section, given: Given) -> Result<Search, Mistake> {
    if ask.query.is_some() && ask.queries.is_some() {
        return Err(section.mistake("queries", "a `query` is given as well; give one of the two"));
    }
    let (law, tokens): (Law, Option<String>) = match &ask.tokens {
        Tokens::Law(law) => (law.clone(), None),
        Tokens::Given(given) => {
            let gaussian = given.gaussian_limit(&vec![0.0; given.dimension()]);
            let note =
                format!("the Gaussian with the mean and covariance of the {} given tokens", given.len());
            (Arc::new(section.accept("tokens", gaussian)?), Some(note))
        }
    };
    if law.as_gaussian_mixture().is_none() {
        let message = "prompts of this law can only be simulated, and a horizon needs their exact errors: \
                       expected a Gaussian, points or a mixture of them, up to 256 points or 4096 components";
        let hint = "ask `attend`, which simulates prompts of it at one query (lengths 100, 1000, 10000), or `concentration`, \
                    which measures errors over a law of queries";
        return Err(section.mistake("tokens", message).hinted(hint));
    }
    let queries: Law = match (&ask.query, ask.queries) {
        (Some(query), _) => Arc::new(section.accept("query", Empirical::atom(query))?),
        (None, Some(queries)) => queries,
        (None, None) => law.clone(),
    };
    let mut average = QueryAverage { seed: given.seed, ..QueryAverage::for_tokens(law.as_ref()) };
    // What stands for keys that are not given depends on the law: the normal form says it.
    match ask.directions {
        Some(directions) => average.directions = directions as u32,
        None => section.fill("directions", &Written::number(f64::from(average.directions))),
    }
    match ask.randomisations {
        Some(randomisations) => average.randomisations = randomisations as u32,
        None => section.fill("randomisations", &Written::number(f64::from(average.randomisations))),
    }
    asking::check_directions(section, "directions", &average, queries.dimension())?;
    if queries.dimension() != ask.head.query_dimension() {
        let (expected, found) = (ask.head.query_dimension(), queries.dimension());
        return Err(
            section.mistake("queries", format!("expected queries of dimension {expected}, found {found}"))
        );
    }
    let setting = Concentration::new(ask.head, law, queries, &[PromptLength::MIN]);
    let setting = section.accept("tokens", setting)?;
    Ok(Search { setting, average, quantity: ask.quantity, tolerance: ask.tolerance, tokens })
}

impl Compute for Search {
    type Row = Row;

    fn units(&self) -> Vec<Unit> {
        vec![Unit { label: "horizon".to_string(), cost: 1.0 }]
    }

    fn run_unit(&self, _unit: usize, monitor: &dyn Monitor) -> Result<Option<Vec<Row>>, Failure> {
        // Errors are zero or doubles with all their digits: a square beyond the doubles at either end compares like its end.
        let square = (self.tolerance * self.tolerance).clamp(f64::from_bits(1), f64::MAX);
        let stages = Stages { monitor, state: Mutex::new((0.0, 0)) };
        let found = self.setting.horizon(self.quantity, square, self.average, &stages)?;
        let outcome = match found {
            Horizon::Found { .. } => Outcome::Found,
            Horizon::Beyond { .. } => Outcome::Beyond,
            Horizon::Stopped { .. } => return Ok(None),
        };
        let Some(error) = found.error() else { return Ok(None) };
        Ok(Some(vec![Row {
            outcome,
            length: found.length().map(PromptLength::get),
            quantity: self.quantity,
            tolerance: self.tolerance,
            number: Measured::from(error).root(),
            too_short: found.bracket().0.map(PromptLength::get),
            tokens: self.tokens.clone(),
        }]))
    }

    fn describe(&self, rows: &[Row]) -> Result<Vec<esscher_report::Section>, Failure> {
        Ok(describe::sections(rows))
    }
}

/// The progress of a search, whose stages each count from the beginning; how many there will be is not known.
struct Stages<'a> {
    monitor: &'a dyn Monitor,
    /// The part of the whole that is done with stages that have ended, and how far the present one is.
    state: Mutex<(f64, usize)>,
}

/// A stage takes half of what is left: the first is a fine grid, and the later ones, on fewer lengths, are shorter.
const STAGE: f64 = 0.5;

impl Monitor for Stages<'_> {
    fn progress(&self, completed: usize, total: usize) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (ended, last) = *state;
        let ended = if completed <= last { ended + STAGE * (1.0 - ended) } else { ended };
        *state = (ended, completed);
        drop(state);
        let done = ended + STAGE * (1.0 - ended) * completed as f64 / total.max(1) as f64;
        self.monitor.progress((1000.0 * done) as usize, 1000);
    }

    fn should_stop(&self) -> bool {
        self.monitor.should_stop()
    }
}
