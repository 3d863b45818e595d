//! A unit is a mechanism: its limit, and its distance to it on simulated prompts.

use super::answer::{Quantity, Row};
use super::{Ask, describe};
use crate::measured::Measured;
use crate::question::{Compute, Failure, Given, Mistake, Monitor, Section, Unit};
use esscher_core::numerics::linalg;
use esscher_zoo::catalogue::{Entry, Sizes};
use esscher_zoo::large_prompt::{Comparison, Contender, Draws, Setting, Trials, compare};

pub(super) struct LargePrompts {
    entries: Vec<&'static Entry>,
    setting: Setting,
    trials: Trials,
}

pub(super) fn plan(ask: Ask, section: &mut Section, given: Given) -> Result<LargePrompts, Mistake> {
    let dimension = ask.tokens.dimension();
    section.accept("tokens", Sizes::new(dimension, dimension))?;
    let lengths = ask.lengths.iter().map(|length| length.get() as usize).collect();
    let trials = Trials { lengths, trials: ask.prompts as u32, seed: given.seed };
    Ok(LargePrompts { entries: ask.mechanisms, setting: Setting::identity(ask.tokens, &ask.query), trials })
}

impl Compute for LargePrompts {
    type Row = Row;

    fn units(&self) -> Vec<Unit> {
        let dimension = self.setting.tokens.dimension() as f64;
        let tokens = self.trials.lengths.iter().max().map_or(0.0, |longest| *longest as f64)
            * f64::from(self.trials.trials);
        let cost = 0.1 + 1e-7 * tokens * (1.0 + dimension).powi(2);
        self.entries.iter().map(|entry| Unit { label: entry.name.to_string(), cost }).collect()
    }

    fn run_unit(&self, unit: usize, monitor: &dyn Monitor) -> Result<Option<Vec<Row>>, Failure> {
        if monitor.should_stop() {
            return Ok(None);
        }
        let (entry, dimension) = (self.entries[unit], self.setting.tokens.dimension());
        let mechanism = (entry.build)(Sizes::new(dimension, dimension)?);
        let contender = Contender { name: entry.name, mechanism: &*mechanism };
        let found = compare(&[contender], &self.setting, &self.trials, &Draws::default(), monitor)?;
        Ok(found.map(|found| found.iter().flat_map(rows).collect()))
    }

    fn describe(&self, rows: &[Row]) -> Result<Vec<esscher_report::Section>, Failure> {
        Ok(vec![describe::section(rows)])
    }
}

fn rows(found: &Comparison) -> Vec<Row> {
    let row = |quantity, length: Option<usize>, number| Row {
        mechanism: found.name.clone(),
        fate: found.fate.name().to_string(),
        quantity,
        length: length.map(|length| length as u64),
        number,
    };
    // The distance to an exact limit errs as much as the limit does.
    let limit = &found.limit;
    let of_limit = |value: f64| Measured { value, error: Some(limit.error), accuracy: limit.accuracy };
    let mut rows = vec![row(Quantity::Limit, None, of_limit(linalg::root_of_squares(&limit.value)))];
    rows.extend(found.distance_to_softmax.map(|distance| row(Quantity::Distance, None, of_limit(distance))));
    rows.extend(found.lengths.iter().filter_map(|at| {
        at.squared_distance.map(|error| row(Quantity::Error, Some(at.length), Measured::from(error)))
    }));
    rows.extend(
        found
            .rate
            .as_ref()
            .map(|rate| row(Quantity::Rate, None, Measured::sampled(rate.exponent, rate.standard_error))),
    );
    rows
}
