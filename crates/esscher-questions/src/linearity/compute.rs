//! A unit per law: its output at all queries against the linear map of its mean and covariance.

use super::answer::{Row, Statistic};
use super::{Ask, describe};
use crate::question::{Compute, Failure, Given, Mistake, Monitor, Section, Unit};
use crate::rounding::{self, ROUNDING, Sizes, finite};
use esscher_core::attention::Attention;
use esscher_core::measure::{GaussianComponent, Measure, tilted_mean_by_definition};
use esscher_core::numerics::Stream;
use esscher_core::numerics::linalg::{self, OrthonormalBasis};
use esscher_core::{Accuracy, Error};
use esscher_lab::Named;

/// Radii up to the one asked for at which queries enter the affine fit.
const SHELLS: usize = 8;

pub(super) struct Linearity {
    ask: Ask,
    directions: Vec<Vec<f64>>,
}

pub(super) fn plan(mut ask: Ask, _: &mut Section, given: Given) -> Result<Linearity, Mistake> {
    ask.radii.sort_by(f64::total_cmp);
    ask.radii.dedup();
    let direction = |number: u64| {
        let stream = Stream::new(given.seed, number as u32, 0);
        let mut stream = stream.with_instruction_set(given.instruction_set);
        let mut direction = vec![0.0; ask.head.token_dimension()];
        while linalg::norm(&direction) < 1e-3 {
            stream.fill_normals(&mut direction);
        }
        let norm = linalg::norm(&direction);
        direction.iter().map(|entry| entry / norm).collect()
    };
    let directions = (0..ask.directions).map(direction).collect();
    Ok(Linearity { ask, directions })
}

impl Compute for Linearity {
    type Row = Row;

    fn units(&self) -> Vec<Unit> {
        let queries = self.directions.len() * self.ask.radii.len() * (SHELLS + 1);
        let cost = 1e-3 + 3e-6 * queries as f64;
        self.ask.laws.iter().map(|law| Unit { label: law.name.clone(), cost }).collect()
    }

    fn run_unit(&self, unit: usize, monitor: &dyn Monitor) -> Result<Option<Vec<Row>>, Failure> {
        let (law, mut rows) = (&self.ask.laws[unit], Vec::new());
        for &radius in &self.ask.radii {
            if monitor.should_stop() {
                return Ok(None);
            }
            let found = match self.measure(law.law.as_ref(), radius) {
                Ok(found) => found,
                // Beyond the region where the log-partition is finite there is no output to measure.
                Err(Error::OutsideDomain { .. }) => [None; 3],
                Err(other) => return Err(other.into()),
            };
            for (&statistic, number) in Statistic::ALL.iter().zip(found) {
                let (value, error) = number.unzip();
                let (law, accuracy) = (law.name.clone(), Accuracy::Exact);
                rows.push(Row { law, statistic, radius, value, error, accuracy });
            }
        }
        Ok(Some(rows))
    }

    fn describe(&self, rows: &[Row]) -> Result<Vec<esscher_report::Section>, Failure> {
        Ok(describe::sections(self.directions.len(), self.ask.radii.len(), rows))
    }
}

impl Linearity {
    /// Gain, deviation and residual at a radius, each with its error; none where the linear map vanishes.
    fn measure(&self, law: &dyn Measure, radius: f64) -> esscher_core::Result<[Option<(f64, f64)>; 3]> {
        let components = law.as_gaussian_mixture();
        let components = components.as_deref();
        let centre = linalg::apply(self.ask.head.value(), &law.mean()?);
        let (covariance, sizes_of_tokens) = (law.covariance()?, Sizes::of_law(law)?);
        let slope = self.ask.head.value() * &covariance * self.ask.head.score();
        // What is lost where large terms cancel in scores, tokens or the linear map.
        let cancelled = |query: &[f64]| -> esscher_core::Result<f64> {
            let output = sizes_of_tokens.rounding(&self.ask.head, law, query)?.size();
            Ok(output + rounding::of_linear_output(&self.ask.head, covariance.as_ref(), query))
        };
        let (mut gains, mut deviation, mut count) = (0.0, 0.0_f64, 0.0);
        let (mut rounding, mut lost) = (0.0_f64, 0.0_f64);
        for direction in &self.directions {
            let query: Vec<f64> = direction.iter().map(|entry| radius * entry).collect();
            let linear = linalg::apply(slope.as_ref(), &query);
            let size = linalg::norm(&linear);
            if !size.is_finite() {
                return Err(Error::Overflow { what: "the linear map of the mean and covariance" });
            }
            if size == 0.0 {
                continue;
            }
            let output = linalg::difference(&self.output(law, components, &query)?, &centre);
            // Both on the scale of the linear map, so that its square is a double.
            let on_scale = |vector: &[f64]| linalg::times_power_of_two(vector, -linalg::exponent(&[size]));
            gains += linalg::dot(&on_scale(&output), &on_scale(&linear)) / on_scale(&[size])[0].powi(2);
            deviation = deviation.max(linalg::norm(&linalg::difference(&output, &linear)) / size);
            count += 1.0;
            // The output is as good as its own size, and the mean is taken away from it.
            let sizes = linalg::norm(&output).max(size) + 2.0 * linalg::norm(&centre);
            let cancelled = cancelled(&query)?;
            lost = lost.max(cancelled);
            rounding = rounding.max((ROUNDING * sizes + cancelled) / size);
        }
        if count == 0.0 {
            return Ok([None; 3]);
        }
        let rounding = finite(rounding);
        let residual = self.residual(law, components, radius, lost)?;
        Ok([Some((gains / count, rounding)), Some((deviation, rounding)), residual])
    }

    /// The output at a query: by quadrature of the definition for normal laws and mixtures, whose closed form is what is in
    /// question; in closed form for the others.
    fn output(
        &self,
        law: &dyn Measure,
        components: Option<&[GaussianComponent]>,
        query: &[f64],
    ) -> esscher_core::Result<Vec<f64>> {
        match components {
            Some(components) => {
                let mean = tilted_mean_by_definition(components, &self.ask.head.tilt(query)?);
                let output = linalg::apply(self.ask.head.value(), &mean);
                if output.iter().all(|entry| entry.is_finite()) {
                    Ok(output)
                } else {
                    Err(Error::Overflow { what: "the output, by its definition," })
                }
            }
            None => self.ask.head.attend(law, query),
        }
    }

    /// The relative residual of the best affine map on queries of size up to the radius, where so much of an output may be `lost` in
    /// rounding.
    fn residual(
        &self,
        law: &dyn Measure,
        components: Option<&[GaussianComponent]>,
        radius: f64,
        lost: f64,
    ) -> esscher_core::Result<Option<(f64, f64)>> {
        let mut queries = Vec::new();
        for shell in 1..=SHELLS {
            let size = radius * shell as f64 / SHELLS as f64;
            queries.extend(
                self.directions
                    .iter()
                    .map(|direction| direction.iter().map(|entry| size * entry).collect::<Vec<f64>>()),
            );
        }
        let outputs: Vec<Vec<f64>> =
            queries.iter().map(|query| self.output(law, components, query)).collect::<Result<_, _>>()?;
        // An orthonormal basis of the affine functions on these queries, the constant first.
        let mut constants = OrthonormalBasis::default();
        constants.add(vec![1.0; queries.len()]);
        let mut affine = constants.clone();
        for coordinate in 0..self.ask.head.query_dimension() {
            affine.add(queries.iter().map(|query| query[coordinate]).collect());
        }
        let (mut unexplained, mut variance, mut total) = (0.0, 0.0, 0.0);
        let exponent = linalg::exponent(&outputs.concat());
        for coordinate in 0..self.ask.head.output_dimension() {
            let column: Vec<f64> = outputs.iter().map(|output| output[coordinate]).collect();
            let column = linalg::times_power_of_two(&column, -exponent);
            total += linalg::squared_norm(&column);
            variance += linalg::squared_norm(&constants.without(column.clone()));
            unexplained += linalg::squared_norm(&affine.without(column));
        }
        if variance == 0.0 {
            return Ok(None);
        }
        let lost = linalg::times_power_of_two(&[lost], -exponent)[0] * (queries.len() as f64).sqrt();
        let rounding = (ROUNDING * total.sqrt() + lost) / variance.sqrt();
        Ok(Some(((unexplained / variance).sqrt(), finite(rounding))))
    }
}
