//! How far softmax attention on the infinite prompt is from a linear map of the query.

use super::{Kind, Plan, columns};
use crate::measured::Class;
use crate::reading::{self, NamedLaw};
use esscher_core::attention::{Attention, Softmax};
use esscher_core::measure::{GaussianComponent, Measure};
use esscher_core::numerics::{InstructionSet, Stream, linalg};
use esscher_core::{Error, Monitor};
use esscher_lab::specification::{Bounds, Mistake, Section};
use esscher_lab::{Column, Failure, Table, Unit};
use esscher_report::{Axis, Block, Cell, DataTable, Figure, Mark, Point, Scale, Series};

pub(super) const KIND: Kind = Kind {
    name: "linearity",
    title: "Is attention linear in the query?",
    summary: "How far attention on the infinite prompt is from the linear map of its mean and covariance, and from any affine map.",
    example: r#"kind = "linearity"
radii = [0.5, 1, 2, 4]

[head]
score = 1.0
value = 1.0

[[law]]
name = "normal tokens"
family = "gaussian"
dimension = 2

[[law]]
name = "random signs"
family = "rademacher"
dimension = 2
"#,
    read,
};

/// What is measured at a radius r, as the column `statistic` names it.
pub(crate) mod statistic {
    /// The mean over directions of ⟨T(z) − Vm, g⟩/|g|² with g = VGUz: 1 for a linear map.
    pub(crate) const GAIN: &str = "gain";
    /// The largest |T(z) − Vm − g|/|g| over directions.
    pub(crate) const DEVIATION: &str = "deviation";
    /// Root of the share of the variance of T over queries of size up to r that the best affine map leaves unexplained.
    pub(crate) const RESIDUAL: &str = "residual";
}

const COLUMNS: [(&str, Column); 6] = [
    ("law", Column::Text),
    ("statistic", Column::Text),
    ("radius", Column::Real),
    ("value", Column::Real),
    ("error", Column::Real),
    ("accuracy", Column::Text),
];

/// Tilted means are good to about so much, relatively: closed forms and Bessel ratios in double precision.
const ROUNDING: f64 = 1e-13;

/// Radii up to the one asked for at which queries enter the affine fit.
const SHELLS: usize = 8;

struct Linearity {
    head: Softmax,
    laws: Vec<NamedLaw>,
    radii: Vec<f64>,
    directions: Vec<Vec<f64>>,
}

fn read(section: &mut Section, seed: u64, instructions: InstructionSet) -> Result<Box<dyn Plan>, Mistake> {
    let laws = reading::token_laws(section)?;
    let dimension = laws[0].law.dimension();
    let head = reading::head(section, dimension)?;
    let mut radii =
        section.reals("radii", Bounds::Between(1e-6, 1e6), 1..=200, Some(&[0.5, 1.0, 2.0, 4.0]))?;
    radii.sort_by(f64::total_cmp);
    radii.dedup();
    let least = 2 * dimension as u64;
    let count = section.integer("directions", least..=100_000, Some(least.max(64)))?;
    let directions = (0..count)
        .map(|number| {
            let mut stream = Stream::new(seed, number as u32, 0).with_instruction_set(instructions);
            let mut direction = vec![0.0; dimension];
            while linalg::norm(&direction) < 1e-3 {
                stream.fill_normals(&mut direction);
            }
            let norm = linalg::norm(&direction);
            direction.iter().map(|entry| entry / norm).collect()
        })
        .collect();
    Ok(Box::new(Linearity { head, laws, radii, directions }))
}

impl Plan for Linearity {
    fn units(&self) -> Vec<Unit> {
        let queries = self.directions.len() * self.radii.len() * (SHELLS + 1);
        let cost = 1e-3 + 3e-6 * queries as f64;
        self.laws.iter().map(|law| Unit { label: law.name.clone(), cost }).collect()
    }

    fn run_unit(&self, unit: usize, monitor: &dyn Monitor) -> Result<Option<Table>, Failure> {
        let mut table = Table::new(&COLUMNS);
        let law = self.laws.get(unit).ok_or_else(|| format!("there is no unit {unit}"))?;
        for &radius in &self.radii {
            if monitor.should_stop() {
                return Ok(None);
            }
            let found = match self.measure(law.law.as_ref(), radius) {
                Ok(found) => found,
                // Beyond the region where the log-partition is finite there is no output to measure.
                Err(Error::OutsideDomain { .. }) => [None; 3],
                Err(other) => return Err(other.into()),
            };
            let names = [statistic::GAIN, statistic::DEVIATION, statistic::RESIDUAL];
            for (name, number) in names.into_iter().zip(found) {
                let (value, error) = number.unzip();
                let name = name.into();
                table.push([
                    law.name.as_str().into(),
                    name,
                    radius.into(),
                    value.into(),
                    error.into(),
                    Class::Exact.name().into(),
                ])?;
            }
        }
        Ok(Some(table))
    }

    fn sections(&self, result: &Table) -> Result<Vec<esscher_report::Section>, Failure> {
        let blocks = vec![
            Block::Prose(format!(
                "Attention on the infinite prompt, $T(z) = V\\nabla\\Lambda(Uz)$, at {} directions of the query and {} \
                 sizes $|z|$. The gain compares it with the linear map $z \\mapsto Vm + VGUz$ of the tokens' mean and \
                 covariance: 1 everywhere if attention is that map. The residual is what the best affine map of all \
                 leaves unexplained over queries up to that size.",
                self.directions.len(),
                self.radii.len()
            )),
            Block::Figure(gain_figure(result)?),
            Block::Figure(deviation_figure(result)?),
            Block::Table(numbers(result)?),
        ];
        Ok(vec![esscher_report::Section {
            id: "linearity".to_string(),
            title: KIND.title.to_string(),
            verdict: None,
            blocks,
        }])
    }
}

impl Linearity {
    /// Gain, deviation and residual at a radius, each with its error; none where the linear map vanishes.
    fn measure(&self, law: &dyn Measure, radius: f64) -> esscher_core::Result<[Option<(f64, f64)>; 3]> {
        let components = law.as_gaussian_mixture();
        let components = components.as_deref();
        let centre = linalg::apply(self.head.value(), &law.mean()?);
        let slope = self.head.value() * law.covariance()? * self.head.score();
        let (mut gains, mut deviation, mut count, mut rounding) = (0.0, 0.0_f64, 0.0, 0.0_f64);
        for direction in &self.directions {
            let query: Vec<f64> = direction.iter().map(|entry| radius * entry).collect();
            let linear = linalg::apply(slope.as_ref(), &query);
            let size = linalg::norm(&linear);
            if size == 0.0 {
                continue;
            }
            let output = linalg::difference(&self.output(law, components, &query)?, &centre);
            gains += linalg::dot(&output, &linear) / (size * size);
            deviation = deviation.max(linalg::norm(&linalg::difference(&output, &linear)) / size);
            count += 1.0;
            // The output is as good as its own size, and the mean is taken away from it.
            let sizes = linalg::norm(&output).max(size) + 2.0 * linalg::norm(&centre);
            rounding = rounding.max(ROUNDING * sizes / size);
        }
        if count == 0.0 {
            return Ok([None; 3]);
        }
        let residual = self.residual(law, components, radius)?;
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
                let mean = tilted_mean_by_definition(components, &self.head.tilt(query)?);
                Ok(linalg::apply(self.head.value(), &mean))
            }
            None => self.head.attend(law, query),
        }
    }

    /// The relative residual of the best affine map on queries of size up to the radius.
    fn residual(
        &self,
        law: &dyn Measure,
        components: Option<&[GaussianComponent]>,
        radius: f64,
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
        let mut basis: Vec<Vec<f64>> = Vec::new();
        add_to_basis(&mut basis, vec![1.0; queries.len()]);
        for coordinate in 0..self.head.query_dimension() {
            add_to_basis(&mut basis, queries.iter().map(|query| query[coordinate]).collect());
        }
        let (mut unexplained, mut variance, mut total) = (0.0, 0.0, 0.0);
        for coordinate in 0..self.head.output_dimension() {
            let column: Vec<f64> = outputs.iter().map(|output| output[coordinate]).collect();
            total += linalg::squared_norm(&column);
            variance += linalg::squared_norm(&without(&basis[..1], column.clone()));
            unexplained += linalg::squared_norm(&without(&basis, column));
        }
        if variance == 0.0 {
            return Ok(None);
        }
        Ok(Some(((unexplained / variance).sqrt(), ROUNDING * (total / variance).sqrt())))
    }
}

/// E[z e^⟨θ,z⟩] / E[e^⟨θ,z⟩] of a mixture of normal laws, integrating over the score ⟨θ,z⟩ = ⟨θ,m⟩ + s g of each component
/// by the trapezoid rule, with E[z | g] = m + Γθ g/s.
fn tilted_mean_by_definition(components: &[GaussianComponent], tilt: &[f64]) -> Vec<f64> {
    /// The rule converges faster than any power of the step; 12 deviations leave 10⁻³².
    const STEP: f64 = 0.1;
    const REACH: i32 = 120;
    let mut parts = Vec::new();
    for component in components {
        let law = &component.gaussian;
        let pull = linalg::apply(law.covariance_matrix(), tilt);
        let deviation = linalg::dot(&pull, tilt).max(0.0).sqrt();
        let centre = (deviation / STEP).round() * STEP;
        let (mut mass, mut moment) = (0.0, 0.0);
        // The integrand e^{sg − g²/2} has its maximum e^{s²/2} near g = s.
        for node in -REACH..=REACH {
            let g = centre + STEP * f64::from(node);
            let weight = (-0.5 * (g - deviation) * (g - deviation)).exp();
            mass += weight;
            moment += g * weight;
        }
        let log_mass = component.log_weight
            + linalg::dot(tilt, law.mean_vector())
            + 0.5 * deviation * deviation
            + (STEP * mass).ln();
        let mut mean = law.mean_vector().to_vec();
        if deviation > 0.0 {
            linalg::add_scaled(&mut mean, moment / mass / deviation, &pull);
        }
        parts.push((log_mass, mean));
    }
    let largest = parts.iter().map(|part| part.0).fold(f64::NEG_INFINITY, f64::max);
    let total: f64 = parts.iter().map(|part| (part.0 - largest).exp()).sum();
    let mut mean = vec![0.0; tilt.len()];
    for (log_mass, part) in &parts {
        linalg::add_scaled(&mut mean, (log_mass - largest).exp() / total, part);
    }
    mean
}

/// A vector minus its projection on an orthonormal basis; twice, so that rounding leaves nothing of it.
fn without(basis: &[Vec<f64>], mut vector: Vec<f64>) -> Vec<f64> {
    for _ in 0..2 {
        for direction in basis {
            let part = linalg::dot(direction, &vector);
            linalg::add_scaled(&mut vector, -part, direction);
        }
    }
    vector
}

fn add_to_basis(basis: &mut Vec<Vec<f64>>, vector: Vec<f64>) {
    let size = linalg::norm(&vector);
    let rest = without(basis, vector);
    let norm = linalg::norm(&rest);
    if norm > 1e-10 * size {
        basis.push(rest.iter().map(|entry| entry / norm).collect());
    }
}

/// The laws in the order of the result.
pub(crate) fn laws(result: &Table) -> Result<Vec<&str>, Failure> {
    columns::check(result, &COLUMNS)?;
    let mut laws = Vec::new();
    for row in result.rows() {
        let law = row.text("law")?;
        if !laws.contains(&law) {
            laws.push(law);
        }
    }
    Ok(laws)
}

/// Radius, value and error of a law where there is a value.
pub(crate) fn points_of(result: &Table, law: &str, statistic: &str) -> Result<Vec<(f64, f64, f64)>, Failure> {
    let mut points = Vec::new();
    for row in result.rows() {
        if row.text("law")? == law
            && row.text("statistic")? == statistic
            && let Some(value) = row.optional_real("value")?
        {
            points.push((row.real("radius")?, value, row.optional_real("error")?.unwrap_or(0.0)));
        }
    }
    Ok(points)
}

/// The gain against the size of the query, with the linear map dashed.
pub(crate) fn gain_figure(result: &Table) -> Result<Figure, Failure> {
    let mut series = Vec::new();
    let mut ends = (f64::INFINITY, f64::NEG_INFINITY);
    for (colour, law) in laws(result)?.into_iter().enumerate() {
        let points = points_of(result, law, statistic::GAIN)?;
        points.iter().for_each(|point| ends = (ends.0.min(point.0), ends.1.max(point.0)));
        series.push(Series {
            name: law.to_string(),
            mark: Mark::Line,
            colour,
            points: points.iter().map(|point| Point::new(point.0, point.1)).collect(),
        });
    }
    if ends.0 <= ends.1 {
        series.push(Series {
            name: "linear attention".to_string(),
            mark: Mark::Dashed,
            colour: series.len(),
            points: vec![Point::new(ends.0, 1.0), Point::new(ends.1, 1.0)],
        });
    }
    Ok(Figure {
        id: "linearity-gain".to_string(),
        title: "Output over the linear map".to_string(),
        caption: "The part of $T(z) - Vm$ along $VGUz$, relative to it, averaged over directions. Exact. $m$ and $G$ are the \
                  mean and the covariance of the tokens."
            .to_string(),
        x: Axis { label: "size of the query |z|".to_string(), scale: Scale::Logarithmic },
        y: Axis { label: "gain".to_string(), scale: Scale::Linear },
        series,
    })
}

/// The deviation against the size of the query, with the residual of the best affine map dashed.
pub(crate) fn deviation_figure(result: &Table) -> Result<Figure, Failure> {
    let mut series = Vec::new();
    for (statistic, mark) in [(statistic::DEVIATION, Mark::Line), (statistic::RESIDUAL, Mark::Dashed)] {
        for (colour, law) in laws(result)?.into_iter().enumerate() {
            let name = match mark {
                Mark::Dashed if colour > 0 => "",
                Mark::Dashed => "best affine map",
                _ => law,
            };
            let points = points_of(result, law, statistic)?;
            let points: Vec<Point> = points.iter().map(|point| Point::new(point.0, point.1)).collect();
            if !points.is_empty() {
                series.push(Series { name: name.to_string(), mark, colour, points });
            }
        }
    }
    Ok(Figure {
        id: "linearity-deviation".to_string(),
        title: "Distance from linear".to_string(),
        caption: "Lines: the largest distance of $T(z)$ from $Vm + VGUz$, relative to $|VGUz|$. Dashed, in the colour of \
                  their law: what the best affine map leaves unexplained. Exact; what is near $10^{-15}$ is rounding."
            .to_string(),
        x: Axis { label: "size of the query |z|".to_string(), scale: Scale::Logarithmic },
        y: Axis { label: "relative distance".to_string(), scale: Scale::Logarithmic },
        series,
    })
}

/// All numbers, a row per law and radius.
pub(crate) fn numbers(result: &Table) -> Result<DataTable, Failure> {
    let mut rows = Vec::new();
    for law in laws(result)? {
        let mut radii: Vec<f64> = Vec::new();
        for row in result.rows().filter(|row| row.text("law").ok() == Some(law)) {
            let radius = row.real("radius")?;
            if !radii.contains(&radius) {
                radii.push(radius);
            }
        }
        for radius in radii {
            let mut cells = vec![Cell::Text(law.to_string()), Cell::Number { value: radius, error: None }];
            for name in [statistic::GAIN, statistic::DEVIATION, statistic::RESIDUAL] {
                let found = points_of(result, law, name)?.into_iter().find(|point| point.0 == radius);
                cells.push(
                    found.map_or(Cell::Missing, |(_, value, error)| Cell::Number {
                        value,
                        error: Some(error),
                    }),
                );
            }
            rows.push(cells);
        }
    }
    Ok(DataTable {
        id: "linearity-numbers".to_string(),
        caption: "Gain, largest relative deviation from the linear map, and what the best affine map leaves. Exact; \
                  errors are bounds on rounding."
            .to_string(),
        columns: ["law", "$|z|$", "gain", "deviation", "residual"]
            .map(str::to_string)
            .to_vec(),
        rows,
    })
}
