//! Claim: the limits of training known for linear attention are those of softmax attention on infinite prompts.

use crate::judging::Judging;
use crate::{Claim, Judgement};
use esscher_core::Ending;
use esscher_lab::{Failure, Table};
use esscher_questions::measured::{Measured, figures, length_name, rounded_up};
use esscher_questions::tabulating::take_constant;
use esscher_questions::training::Model;
use esscher_questions::training::answer::{Quantity, Row, dimensions, lengths};
use esscher_questions::training::describe::{curves, lines, time_axis};
use esscher_report::{Axis, Block, Cell, DataTable, Figure, Scale};

pub(super) const CLAIM: Claim = Claim {
    name: "linear-attention-transfer",
    title: "Limits of linear attention transfer to softmax on long prompts",
    statement: "On Gaussian covariates the infinite softmax prompt is linear attention on infinite prompts, so that it trains to the same closed-form \
                limit, with the risk of the noise floor; softmax at finite length is at a fixed time as near to this limit as one likes, if the prompt is long \
                enough; linear attention at N examples ends at the limit of Zhang, Frei and Bartlett, which approaches it as N grows.",
    formula: r"(U^*, V^*) = \left(c^{-1}\begin{pmatrix}\Sigma^{-1} & 0\\ 0 & 0\end{pmatrix},\ c\, e e^\top\right),\quad c = \operatorname{tr}(\Sigma^{-2})^{1/4}; \qquad b_N A_N = \Gamma_N^{-1},\ \Gamma_N = (1 + \tfrac1N)\Sigma + \tfrac{\operatorname{tr}\Sigma + s^2/k}{N} I",
    citation: "Boursier & Boyer 2025, arXiv 2512.11784, in-context linear regression; Zhang, Frei & Bartlett 2024.",
    measurement: "Gradient flows with closed-form risks and gradients until they stand still, against the closed-form limits; that softmax \
                  and linear attention agree on infinite prompts is an identity and is not tested. What is tested for softmax are flows at \
                  finite length by the exact risk of that length: their distance from the limit of linear attention at the time \
                  T when the flow of the infinite prompt stands still. Errors are changes when the integration is a hundred \
                  times looser.",
    criterion: "A flow of the infinite prompt or of linear attention ends farther than $10^{-6}$ from its closed-form limit, the infinite prompt ends with a risk \
                more than $10^{-9}$ above the floor, the end at some N is not nearer to the infinite limit than at the N \
                before, or softmax at time T is at the longest length not nearer to it, by more than the error, than at the length before, or \
                nearer with a local rate below 0.1 only. (Shorter prompts are shown and not judged: the statement is one about long prompts.) If α lies outside the range of a theorem (infinite prompts: \
                $\\sqrt 2/(d^{1/4}\\|\\Sigma\\|)$; linear attention at N: $\\sqrt{2/(\\|\\Gamma_N\\|\\sqrt d)}$), if a flow does not stand still, \
                or if the flows of one of the three are missing, nothing is decided.",
    quick: include_str!("../../../../experiments/linear-attention-transfer/quick.toml"),
    full: include_str!("../../../../experiments/linear-attention-transfer/full.toml"),
    judge,
};

/// Flows stop at gradients of 1e-10; eigenvalues of the curvature above 1e-4 leave them this close.
const NEAR: f64 = 1e-6;

/// Risks are exact to 1e-9.
const RISK: f64 = 1e-9;

/// A fall slower than this is called levelling off.
const LEVELS_OFF: f64 = 0.1;

fn judge(result: &Table) -> Result<Judgement, Failure> {
    let mut rows: Vec<Row> = result.read()?;
    rows.retain(Row::is_exact);
    if let Some(why) = why_undecided(&rows) {
        return Ok(Judging::undecided(&why));
    }
    rows.retain(|row| row.model != Model::OppositeHeads);
    let (softmax, rows): (Vec<Row>, Vec<Row>) = rows.into_iter().partition(|row| row.model == Model::Softmax);
    let mut judging = Judging::default();
    let mut found = Ends::default();
    let (mut near_cells, mut sentences) = (Vec::new(), Vec::new());
    for dimension in dimensions(&rows) {
        match at_bounded_time(dimension, &rows, &softmax) {
            Ok((time, near)) => {
                weigh_softmax(dimension, &near, &mut judging);
                let told = |(length, number): &(i64, Measured)| {
                    format!("{} at {}", figures(number.value), length_name(Some(*length)))
                };
                sentences.push(format!(
                    "Softmax in d = {dimension} at time {} is from the limit of linear attention: {}",
                    figures(time),
                    near.iter().map(told).collect::<Vec<_>>().join(", ")
                ));
                near_cells.extend(near.iter().map(|(length, number)| {
                    let time = Cell::Number { value: time, error: None };
                    vec![Cell::Integer(dimension), Cell::Integer(*length), time, number.cell()]
                }));
            }
            Err(why) => judging.leave_open(format!("d = {dimension}: {why}")),
        }
        found.weigh(dimension, &rows, &mut judging);
    }
    let reason = format!(
        "Exact. All {} flows of infinite prompts and linear attention, from α in the range of their theorems, were followed until they \
         stood still. They end at most {} from the closed-form limits; the risk of the infinite prompt ends at most {} from \
         the noise floor. {}.",
        found.cells.len(),
        rounded_up(found.worst),
        rounded_up(found.worst_risk),
        sentences.join(". ")
    );
    let mut evidence = vec![Block::Table(ends(found.cells))];
    if !near_cells.is_empty() {
        evidence.push(Block::Table(near_table(near_cells)));
    }
    evidence.extend(dimensions(&rows).into_iter().map(|dimension| against_time(&rows, dimension)));
    Ok(judging.judgement(CLAIM.name, reason, evidence))
}

/// Why these flows cannot decide, if they cannot: some are missing, or start outside the range of their theorem.
fn why_undecided(rows: &[Row]) -> Option<String> {
    let names = [
        (Model::Infinite, "the infinite prompt"),
        (Model::Linear, "linear attention"),
        (Model::Softmax, "softmax"),
    ];
    for (model, name) in names {
        let is_there = |dimension| rows.iter().any(|row| (row.model, row.dimension) == (model, dimension));
        if let Some(dimension) = dimensions(rows).into_iter().find(|dimension| !is_there(*dimension)) {
            return Some(format!("{name} was not trained in d = {dimension}"));
        }
    }
    // Each theorem has its range: the paper's on infinite prompts, that of Zhang, Frei and Bartlett at N examples.
    let ranges = [(Model::Infinite, Quantity::PaperBound), (Model::Linear, Quantity::SufficientBound)];
    for (model, quantity) in ranges {
        let mut bounds = rows.iter().filter(|row| (row.model, row.quantity) == (model, quantity)).peekable();
        if bounds.peek().is_none() {
            return Some(format!("the range of the theorem on {model} is not known"));
        }
        if let Some(row) = bounds.find(|row| row.initial_scale >= row.number.value) {
            return Some(format!(
                "{model}, {}: α = {} is outside the range α < {} of the theorem",
                length_name(row.length),
                row.initial_scale,
                figures(row.number.value)
            ));
        }
    }
    None
}

/// Softmax must come nearer to the limit of linear attention from the last length but one to the last.
fn weigh_softmax(dimension: i64, near: &[(i64, Measured)], judging: &mut Judging) {
    let [.., (before, first), (length, then)] = *near else { return };
    let name = format!("d = {dimension}, softmax at {}", length_name(Some(length)));
    let rate = (first.value / then.value).ln() / (length as f64 / before as f64).ln();
    if then.value + then.error() + first.error() >= first.value {
        let before = length_name(Some(before));
        judging.refute(format!("{name} is not nearer to the limit of linear attention than at {before}"));
    } else if rate < LEVELS_OFF {
        judging.refute(format!("{name} levels off, local rate {rate:.3}"));
    }
}

/// Where the flows of infinite prompts and of linear attention end.
#[derive(Default)]
struct Ends {
    cells: Vec<Vec<Cell>>,
    /// The largest distance to a closed-form limit.
    worst: f64,
    /// The largest distance of the infinite prompt's risk to the noise floor.
    worst_risk: f64,
}

impl Ends {
    /// The ends in one dimension.
    fn weigh(&mut self, dimension: i64, rows: &[Row], judging: &mut Judging) {
        let mut before = f64::INFINITY;
        let finite = lengths(rows, dimension).into_iter().map(Some);
        for length in std::iter::once(None).chain(finite) {
            let name = format!("d = {dimension}, {}", length_name(length));
            let last = |quantity| {
                let mut back = rows.iter().rev().filter(|row| row.quantity == quantity);
                back.find(|row| (row.dimension, row.length) == (dimension, length))
            };
            let (Some(own), Some(to_infinite), Some(risk), Some(floor)) = (
                last(Quantity::DistanceToOwnLimit),
                last(Quantity::DistanceToInfiniteLimit),
                last(Quantity::FinalRisk),
                last(Quantity::NoiseFloor),
            ) else {
                judging.trust(false, || format!("{name} has no limit to compare with"));
                continue;
            };
            if own.ending != Some(Ending::Stationary) {
                judging.leave_open(format!("{name}: {}", own.ended()));
                continue;
            }
            self.worst = self.worst.max(own.number.value);
            judging.require(own.number.value <= NEAR, || {
                format!("{name}: ends {} from its closed-form limit", figures(own.number.value))
            });
            if length.is_none() {
                let above = (risk.number.value - floor.number.value).abs();
                self.worst_risk = self.worst_risk.max(above);
                judging.require(above <= RISK, || format!("{name}: ends {} above the floor", figures(above)));
            } else {
                let distance = to_infinite.number.value;
                judging.require(distance < before, || {
                    format!("{name}: not nearer to the infinite limit than with fewer examples")
                });
                before = distance;
            }
            self.cells.push(vec![
                Cell::Integer(dimension),
                length.map_or(Cell::Text("$\\infty$".to_string()), Cell::Integer),
                own.number.cell(),
                to_infinite.number.cell(),
                risk.number.cell(),
            ]);
        }
    }
}

/// How far softmax is from the limit of linear attention, by length, at the last time asked for before the flow of the
/// infinite prompt stood still.
fn at_bounded_time(
    dimension: i64,
    rows: &[Row],
    softmax: &[Row],
) -> Result<(f64, Vec<(i64, Measured)>), String> {
    let is_distance =
        |row: &&Row| row.dimension == dimension && row.quantity == Quantity::DistanceToInfiniteLimit;
    let infinite: Vec<&Row> =
        rows.iter().filter(|row| row.model == Model::Infinite).filter(is_distance).collect();
    // The last row is where it stands, at a time of its own.
    let [.., before, _] = infinite[..] else {
        return Err("the flow of the infinite prompt has no rows".to_string());
    };
    let time = before.time;
    let mut near = Vec::new();
    for length in lengths(softmax, dimension) {
        let name = length_name(Some(length));
        let mut here = softmax.iter().filter(is_distance);
        let Some(found) = here.find(|row| row.length == Some(length) && row.time == time) else {
            return Err(format!("softmax at {name} was not followed to time {time}"));
        };
        if found.number.error.is_none() {
            return Err(format!("the error of softmax at {name} is not known"));
        }
        near.push((length, found.number));
    }
    if near.len() < 2 {
        return Err("softmax was trained at fewer than two lengths".to_string());
    }
    Ok((time, near))
}

fn ends(mut rows: Vec<Vec<Cell>>) -> DataTable {
    let mut columns =
        ["$d$", "$N$", "to its limit", "to the infinite limit", "risk"].map(String::from).to_vec();
    let mut caption =
        "Where the flows end: distances to the own closed-form limit and to that of the infinite prompt \
                       ($N = \\infty$, softmax and linear attention alike), and the risk. Exact."
            .to_string();
    if let Some(Cell::Integer(dimension)) = take_constant(&mut columns, &mut rows, "$d$") {
        caption.push_str(&format!(" $d = {dimension}$."));
    }
    DataTable { id: "ends".to_string(), caption, columns, rows }
}

fn near_table(rows: Vec<Vec<Cell>>) -> DataTable {
    DataTable {
        id: "softmax".to_string(),
        caption: "Softmax at finite length: its distance from the limit of linear attention at the time $T$ when the \
                  infinite prompt has arrived. Exact."
            .to_string(),
        columns: ["$d$", "$L$", "$T$", "distance"].map(String::from).to_vec(),
        rows,
    }
}

fn against_time(rows: &[Row], dimension: i64) -> Block {
    Block::Figure(Figure {
        id: format!("against-time-{dimension}"),
        title: format!("Distance to the closed-form limit during training, $d = {dimension}$"),
        caption: "Exact; flows end where their gradient is below $10^{-10}$. The band is the error of the integration."
            .to_string(),
        x: time_axis(),
        y: Axis { label: "distance to its limit".to_string(), scale: Scale::Logarithmic },
        series: lines(&curves(rows, Quantity::DistanceToOwnLimit, |row| row.dimension == dimension)),
    })
}
