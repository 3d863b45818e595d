//! The answer as a document: gain and distance from linear against the size of the query, and all numbers.

use super::QUESTION;
use super::answer::{Row, Statistic, laws, points_of};
use esscher_lab::Named;
use esscher_report::{Axis, Block, Cell, DataTable, Figure, Mark, Point, Scale, Section, Series};

pub(super) fn sections(directions: usize, sizes: usize, rows: &[Row]) -> Vec<Section> {
    let blocks = vec![
        Block::Prose(format!(
            "Attention on the infinite prompt, $T(z) = V\\nabla\\Lambda(Uz)$, at {directions} directions of the query and \
             {sizes} sizes $|z|$. The gain compares it with the linear map $z \\mapsto Vm + VGUz$ of the tokens' mean and \
             covariance: 1 everywhere if attention is that map. The residual is what the best affine map of all leaves \
             unexplained over queries up to that size."
        )),
        Block::Figure(gain_figure(rows)),
        Block::Figure(deviation_figure(rows)),
        Block::Table(numbers(rows)),
    ];
    vec![Section { id: "linearity".to_string(), title: QUESTION.title.to_string(), verdict: None, blocks }]
}

fn points(rows: &[Row], law: &str, statistic: Statistic) -> Vec<Point> {
    let found = points_of(rows, law, statistic);
    found.iter().map(|(radius, number)| Point::new(*radius, number.value)).collect()
}

/// The gain against the size of the query, with the linear map dashed.
pub fn gain_figure(rows: &[Row]) -> Figure {
    let mut series: Vec<Series> = laws(rows)
        .into_iter()
        .enumerate()
        .map(|(colour, law)| {
            let points = points(rows, law, Statistic::Gain);
            Series { name: law.to_string(), mark: Mark::Line, colour, points }
        })
        .collect();
    let sizes = || series.iter().flat_map(|series| &series.points).map(|point| point.x);
    let (low, high) = (sizes().fold(f64::INFINITY, f64::min), sizes().fold(f64::NEG_INFINITY, f64::max));
    if low <= high {
        series.push(Series {
            name: "linear attention".to_string(),
            mark: Mark::Dashed,
            colour: series.len(),
            points: vec![Point::new(low, 1.0), Point::new(high, 1.0)],
        });
    }
    Figure {
        id: "linearity-gain".to_string(),
        title: "Output over the linear map".to_string(),
        caption: "The part of $T(z) - Vm$ along $VGUz$, relative to it, averaged over directions. Exact. $m$ and $G$ are the \
                  mean and the covariance of the tokens."
            .to_string(),
        x: Axis { label: "size of the query |z|".to_string(), scale: Scale::Logarithmic },
        y: Axis { label: "gain".to_string(), scale: Scale::Linear },
        series,
    }
}

/// The deviation against the size of the query, with the residual of the best affine map dashed.
pub fn deviation_figure(rows: &[Row]) -> Figure {
    let mut series = Vec::new();
    for (statistic, mark) in [(Statistic::Deviation, Mark::Line), (Statistic::Residual, Mark::Dashed)] {
        for (colour, law) in laws(rows).into_iter().enumerate() {
            let name = match mark {
                Mark::Dashed if colour > 0 => "",
                Mark::Dashed => "best affine map",
                _ => law,
            };
            let points = points(rows, law, statistic);
            if !points.is_empty() {
                series.push(Series { name: name.to_string(), mark, colour, points });
            }
        }
    }
    Figure {
        id: "linearity-deviation".to_string(),
        title: "Distance from linear".to_string(),
        caption: "Lines: the largest distance of $T(z)$ from $Vm + VGUz$, relative to $|VGUz|$. Dashed, in the colour of \
                  their law: what the best affine map leaves unexplained. Exact; what is near $10^{-15}$ is rounding."
            .to_string(),
        x: Axis { label: "size of the query |z|".to_string(), scale: Scale::Logarithmic },
        y: Axis { label: "relative distance".to_string(), scale: Scale::Logarithmic },
        series,
    }
}

/// All numbers, a row per law and radius.
fn numbers(rows: &[Row]) -> DataTable {
    let same = |a: &Row, b: &Row| a.law == b.law && a.radius == b.radius;
    let line = |of: &[Row]| -> Vec<Cell> {
        let number = |&statistic: &Statistic| {
            let found = of.iter().find(|row| row.statistic == statistic).and_then(Row::number);
            found.map_or(Cell::Missing, |number| number.cell())
        };
        let start = [Cell::Text(of[0].law.clone()), Cell::Number { value: of[0].radius, error: None }];
        start.into_iter().chain(Statistic::ALL.iter().map(number)).collect()
    };
    DataTable {
        id: "linearity-numbers".to_string(),
        caption: "Gain, largest relative deviation from the linear map, and what the best affine map leaves. Exact; \
                  errors are bounds on rounding."
            .to_string(),
        columns: ["law", "$|z|$", "gain", "deviation", "residual"].map(str::to_string).to_vec(),
        rows: rows.chunk_by(same).map(line).collect(),
    }
}
