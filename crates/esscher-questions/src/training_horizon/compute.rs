//! A unit is one task and one ε: the search for L(ε), and training beyond it.

use super::answer::{Outcome, Quantity, Row};
use super::{Ask, describe};
use crate::measured::Measured;
use crate::question::{Compute, Failure, Given, Mistake, Monitor, Section, Unit};
use esscher_core::concentration::Horizon;
use esscher_core::prompt::PromptLength;
use esscher_core::regression::{LinearRegression, SpectralTask, training_excess, training_horizon};

pub(super) fn plan(mut ask: Ask, section: &mut Section, _: Given) -> Result<Ask, Mistake> {
    let given = ask.excesses.len();
    ask.excesses.sort_by(|a, b| b.total_cmp(a));
    ask.excesses.dedup();
    if ask.excesses.len() < given {
        return Err(section.mistake("excesses", "an excess is listed twice; list each once"));
    }
    Ok(ask)
}

impl Compute for Ask {
    type Row = Row;

    fn units(&self) -> Vec<Unit> {
        let cost = 3.5 + self.beyond.len() as f64;
        let of_task = |task: &LinearRegression| {
            let label = format!("d = {}, excess", task.dimension());
            self.excesses.iter().map(move |excess| Unit { label: format!("{label} {excess}"), cost })
        };
        self.task.0.iter().flat_map(of_task).collect()
    }

    fn run_unit(&self, unit: usize, monitor: &dyn Monitor) -> Result<Option<Vec<Row>>, Failure> {
        let task = &self.task.0[unit / self.excesses.len()];
        let excess = self.excesses[unit % self.excesses.len()];
        let (spectral, _) = SpectralTask::new(task)?;
        let initial_scale = self.initial.at(&spectral);
        let found = training_horizon(&spectral, initial_scale, excess, monitor)?;
        let outcome = match found {
            Horizon::Found { before: None, .. } => Outcome::OneToken,
            Horizon::Found { .. } => Outcome::Found,
            Horizon::Beyond { .. } => Outcome::Beyond,
            Horizon::Stopped { .. } => return Ok(None),
        };
        let mut rows = Vec::new();
        let mut add = |length: Option<PromptLength>, quantity: Quantity, number: Measured| {
            let (dimension, length) = (task.dimension() as i64, length.map(|length| length.get() as i64));
            rows.push(Row { dimension, initial_scale, excess, outcome, length, quantity, number });
        };
        if let Horizon::Found { length, error, before } = found {
            add(Some(length), Quantity::Horizon, Measured::exact(length.as_f64(), 0.0));
            add(Some(length), Quantity::ExcessRisk, error.into());
            if let Some(before) = before {
                let shorter = PromptLength::new(length.get() - 1)?;
                add(Some(shorter), Quantity::ExcessRiskBefore, before.into());
            }
            for multiple in &self.beyond {
                let Ok(longer) = PromptLength::new(length.get().saturating_mul(*multiple)) else { continue };
                let Some(limit) = training_excess(&spectral, initial_scale, longer, excess, monitor)? else {
                    return Ok(None);
                };
                add(Some(longer), Quantity::ExcessRiskBeyond, limit.into());
            }
        }
        let (_, coefficient) = spectral.valley_minimum()?;
        let first_order = Measured::exact(coefficient / excess, 1e-9 * coefficient / excess);
        add(None, Quantity::FirstOrderHorizon, first_order);
        let proved = spectral.proved_scale();
        add(None, Quantity::ProvedScale, Measured::exact(proved, 1e-12 * proved));
        add(None, Quantity::NoiseFloor, Measured::exact(task.noise_floor(), 0.0));
        Ok(Some(rows))
    }

    fn describe(&self, rows: &[Row]) -> Result<Vec<esscher_report::Section>, Failure> {
        let tasks = self.task.0.iter().map(SpectralTask::new);
        let scales =
            tasks.map(|task| Ok(self.initial.at(&task?.0))).collect::<Result<Vec<f64>, Failure>>()?;
        Ok(describe::sections(&scales, rows))
    }
}
