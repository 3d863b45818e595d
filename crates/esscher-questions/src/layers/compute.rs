//! A unit is a kind of attention: the law behind its layers, by flow or layer by layer.

use super::answer::{Quantity, Row};
use super::ask::Attention;
use super::{Ask, describe};
use crate::measured::Measured;
use crate::question::{Compute, Failure, Given, Mistake, Monitor, Section, Unit};
use crate::rounding::{ROUNDING, finite};
use esscher_core::layers::{AtCollapse, Flow, FlowOptions, Layer, depth, exact_softmax_flow, flow};
use esscher_core::measure::Gaussian;
use esscher_core::numerics::linalg::{self, SymmetricEigen};
use esscher_core::{Ending, Mat, MatRef};
use esscher_lab::Named;

pub(super) fn plan(mut ask: Ask, _: &mut Section, _: Given) -> Result<Ask, Mistake> {
    let asked = std::mem::take(&mut ask.attentions);
    ask.attentions = Attention::ALL.iter().copied().filter(|attention| asked.contains(attention)).collect();
    Ok(ask)
}

impl Compute for Ask {
    type Row = Row;

    fn units(&self) -> Vec<Unit> {
        let of_flow = 2_000.0 + self.rows.unwrap_or_default() as f64;
        let evaluations = self.layers.map_or(of_flow, |layers| layers as f64);
        let cost = 1e-8 * evaluations * (10.0 + self.dimension as f64).powi(3);
        self.attentions.iter().map(|attention| Unit { label: attention.to_string(), cost }).collect()
    }

    fn run_unit(&self, unit: usize, monitor: &dyn Monitor) -> Result<Option<Vec<Row>>, Failure> {
        let attention = self.attentions[unit];
        let layer = self.layer(attention)?;
        if let (Some(layers), Some(step_size)) = (self.layers, self.step_size) {
            let stack = vec![layer; layers as usize];
            let laws = depth(&self.start, &stack, step_size)?;
            // The same from a start that is off by what all layers may round: the difference tells what becomes of it.
            let others = depth(&self.start_times(1.0 + self.rounding_of_stack(layers))?, &stack, step_size)?;
            let mut rows = Rows::new(attention, Ending::Completed);
            for (index, (law, other)) in laws.iter().zip(&others).enumerate() {
                rows.law(index as f64 * step_size, law, other)?;
            }
            return Ok(Some(rows.rows));
        }
        let times =
            FlowOptions::evenly(self.end_time.unwrap_or_default(), self.rows.unwrap_or_default() as usize);
        let options = FlowOptions {
            at_collapse: self.at_collapse.unwrap_or(AtCollapse::Stop),
            collapse_threshold: self.collapse_threshold.unwrap_or(times.collapse_threshold),
            ..times
        };
        let fine = flow(&layer, &self.start, &options, monitor)?;
        // The same with steps a hundred times looser: the difference bounds the error.
        let options = FlowOptions {
            relative_tolerance: 100.0 * options.relative_tolerance,
            absolute_tolerance: 100.0 * options.absolute_tolerance,
            ..options
        };
        let loose = flow(&layer, &self.start, &options, monitor)?;
        if [&fine, &loose].iter().any(|flow| flow.ending == Ending::Stopped) {
            return Ok(None);
        }
        self.rows_of_flow(attention, &fine, &loose).map(Some)
    }

    fn describe(&self, rows: &[Row]) -> Result<Vec<esscher_report::Section>, Failure> {
        Ok(describe::sections(self, rows))
    }
}

impl Ask {
    /// Q and K with U = KᵀQ: K = I where U itself is given.
    fn factors(&self) -> (Mat<f64>, Mat<f64>) {
        let identity = || linalg::identity(self.dimension as usize);
        let query = self.query.clone().or(self.score.clone());
        (query.unwrap_or_else(identity), self.key.clone().unwrap_or_else(identity))
    }

    /// Relatively, if nothing cancels.
    fn rounding_of_stack(&self, layers: u64) -> f64 {
        f64::EPSILON * (8 + self.dimension) as f64 * layers as f64
    }

    fn start_times(&self, factor: f64) -> esscher_core::Result<Gaussian> {
        let mean: Vec<f64> = self.start.mean_vector().iter().map(|entry| factor * entry).collect();
        Gaussian::new(&mean, (self.start.covariance_matrix() * factor).as_ref())
    }

    fn layer(&self, attention: Attention) -> esscher_core::Result<Layer> {
        let ((query, key), value) = (self.factors(), self.value.as_ref());
        let score = key.transpose() * &query;
        match attention {
            Attention::Softmax => Layer::softmax(score.as_ref(), value),
            Attention::Linear => Layer::linear(score.as_ref(), value),
            Attention::L2 => Layer::l2(query.as_ref(), key.as_ref(), value),
            Attention::Sinkhorn => Layer::sinkhorn(query.as_ref(), key.as_ref(), value),
        }
    }

    fn rows_of_flow(&self, attention: Attention, fine: &Flow, loose: &Flow) -> Result<Vec<Row>, Failure> {
        let mut rows = Rows::new(attention, fine.ending);
        for (index, (&time, law)) in fine.times.iter().zip(&fine.laws).enumerate() {
            let other = loose.times.get(index).filter(|other| **other == time).map(|_| &loose.laws[index]);
            rows.law(time, law, other.unwrap_or(law))?;
        }
        let ended = |flow: &Flow| match flow.ending {
            Ending::BlownUp => Some((Quantity::BlowUpTime, flow.ending_time)),
            Ending::Collapsed => Some((Quantity::CollapseTime, flow.ending_time)),
            _ => None,
        };
        if let Some((quantity, time)) = ended(fine) {
            let other = ended(loose).map_or(time, |(_, other)| other);
            rows.add(time, quantity, None, Measured::exact(time, (time - other).abs() + 1e-9 * time));
        }
        for collapse in &fine.collapses {
            let rank = Measured::exact(collapse.rank as f64, 0.0);
            rows.add(collapse.time, Quantity::RankAfterCollapse, None, rank);
        }
        let has_closed_form =
            attention == Attention::Softmax && self.value == linalg::identity(self.value.nrows());
        if has_closed_form {
            let (query, key) = self.factors();
            let exact = exact_softmax_flow((key.transpose() * &query).as_ref(), &self.start)?;
            for &time in &fine.times {
                let values = eigenvalues(exact.covariance(time)?.as_ref())?;
                for (index, value) in values.iter().enumerate() {
                    let number = Measured::exact(*value, 1e-12 * values[0].abs());
                    rows.add(time, Quantity::ClosedFormEigenvalue, Some(index), number);
                }
            }
            if let Some(time) = exact.blow_up_time() {
                rows.add(time, Quantity::ClosedFormBlowUpTime, None, Measured::exact(time, 1e-12 * time));
            }
        }
        Ok(rows.rows)
    }
}

/// Falling.
fn eigenvalues(covariance: MatRef<'_, f64>) -> esscher_core::Result<Vec<f64>> {
    let symmetric = linalg::symmetric_part(covariance);
    let mut values = SymmetricEigen::new("the covariance", symmetric.as_ref())?.values;
    values.reverse();
    Ok(values)
}

/// The rows of a unit while they are written.
struct Rows {
    rows: Vec<Row>,
    attention: Attention,
    ending: Ending,
    /// The largest eigenvalue and entry of the mean so far: what they rounded stays when they have shrunk.
    largest: [f64; 2],
}

impl Rows {
    fn new(attention: Attention, ending: Ending) -> Self {
        Rows { rows: Vec::new(), attention, ending, largest: [0.0; 2] }
    }

    fn add(&mut self, time: f64, quantity: Quantity, index: Option<usize>, number: Measured) {
        let Rows { attention, ending, .. } = *self;
        let index = index.map(|index| index as i64 + 1);
        self.rows.push(Row { attention, time, quantity, index, ending, number });
    }

    /// Eigenvalues and mean of a law, erring as much as `other` differs.
    fn law(&mut self, time: f64, law: &Gaussian, other: &Gaussian) -> Result<(), Failure> {
        let values = eigenvalues(law.covariance_matrix())?;
        let others = eigenvalues(other.covariance_matrix())?;
        let (mean, other_mean) = (law.mean_vector(), other.mean_vector());
        let columns = [(Quantity::Eigenvalue, &values[..], &others[..]), (Quantity::Mean, mean, other_mean)];
        for (largest, (quantity, values, others)) in columns.into_iter().enumerate() {
            let largest = &mut self.largest[largest];
            *largest = largest.max(linalg::largest(values));
            let rounding = ROUNDING * *largest;
            for (index, (value, other)) in values.iter().zip(others).enumerate() {
                let number = Measured::exact(*value, finite((value - other).abs() + rounding));
                self.add(time, quantity, Some(index), number);
            }
        }
        Ok(())
    }
}
