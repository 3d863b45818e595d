//! Claim: the limits of training known for linear attention are those of softmax attention on infinite prompts.

use super::{Claim, Judgement, regression};
use crate::kinds::{Record, curves, lines, time_axis, trajectories};
use crate::measured::{Measured, figures, length_name, rounded_up};
use crate::tabulating::take_constant;
use esscher_lab::{Failure, Table};
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
    let all: Vec<Record> = trajectories(result)?
        .into_iter()
        .filter(|record| record.draw.is_none() && record.covariates == "gaussian")
        .collect();
    for (model, name) in
        [("infinite", "the infinite prompt"), ("linear", "linear attention"), ("softmax", "softmax")]
    {
        for dimension in regression::dimensions(&all) {
            if !all.iter().any(|record| record.model == model && record.dimension == dimension) {
                return Ok(regression::undecided(&format!("{name} was not trained in d = {dimension}")));
            }
        }
    }
    // Each theorem has its range: the paper's on infinite prompts, that of Zhang, Frei and Bartlett at N examples.
    for (model, quantity) in [("infinite", "paper-bound"), ("linear", "sufficient-bound")] {
        let mut bounds =
            all.iter().filter(|record| record.model == model && record.quantity == quantity).peekable();
        if bounds.peek().is_none() {
            return Ok(regression::undecided(&format!("the range of the theorem on {model} is not known")));
        }
        if let Some(record) = bounds.find(|record| record.initial_scale >= record.number.value) {
            return Ok(regression::undecided(&format!(
                "{model}, {}: α = {} is outside the range α < {} of the theorem",
                length_name(record.length),
                record.initial_scale,
                figures(record.number.value)
            )));
        }
    }
    let (softmax, records): (Vec<Record>, Vec<Record>) = all
        .into_iter()
        .filter(|record| ["infinite", "linear", "softmax"].contains(&record.model.as_str()))
        .partition(|record| record.model == "softmax");
    let (mut problems, mut open) = (Vec::new(), Vec::new());
    let mut rows = Vec::new();
    let mut near_rows = Vec::new();
    let mut sentences = Vec::new();
    let mut worst: f64 = 0.0;
    let mut worst_risk: f64 = 0.0;
    for dimension in regression::dimensions(&records) {
        match at_bounded_time(dimension, &records, &softmax) {
            Ok((time, near)) => {
                if let [.., (before, first), (length, then)] = near[..] {
                    let name = format!("d = {dimension}, softmax at {}", length_name(Some(length)));
                    let rate = (first.value / then.value).ln() / (length as f64 / before as f64).ln();
                    if then.value + then.error() + first.error() >= first.value {
                        problems.push(format!(
                            "{name} is not nearer to the limit of linear attention than at {}",
                            length_name(Some(before))
                        ));
                    } else if rate < LEVELS_OFF {
                        problems.push(format!("{name} levels off, local rate {rate:.3}"));
                    }
                }
                let told: Vec<String> = near
                    .iter()
                    .map(|(length, number)| {
                        format!("{} at {}", figures(number.value), length_name(Some(*length)))
                    })
                    .collect();
                sentences.push(format!(
                    "Softmax in d = {dimension} at time {} is from the limit of linear attention: {}",
                    figures(time),
                    told.join(", ")
                ));
                near_rows.extend(near.iter().map(|(length, number)| {
                    let time = Cell::Number { value: time, error: None };
                    vec![Cell::Integer(dimension), Cell::Integer(*length), time, number.cell()]
                }));
            }
            Err(why) => open.push(format!("d = {dimension}: {why}")),
        }
        let ends =
            std::iter::once(None).chain(regression::lengths(&records, dimension).into_iter().map(Some));
        let mut before: Option<f64> = None;
        for length in ends {
            let here: Vec<&Record> = records
                .iter()
                .filter(|record| record.dimension == dimension && record.length == length)
                .collect();
            let last = |quantity: &str| here.iter().rev().find(|record| record.quantity == quantity);
            let name = format!("d = {dimension}, {}", length_name(length));
            let (Some(own), Some(to_infinite), Some(risk), Some(floor)) = (
                last("distance-to-own-limit"),
                last("distance-to-infinite-limit"),
                last("final-risk"),
                last("noise-floor"),
            ) else {
                return Ok(regression::undecided(&format!("{name} has no limit to compare with")));
            };
            if !own.ending.starts_with("stationary") {
                open.push(format!("{name}: {}", own.ending));
                continue;
            }
            if own.number.value > NEAR {
                problems
                    .push(format!("{name}: ends {} from its closed-form limit", figures(own.number.value)));
            }
            worst = worst.max(own.number.value);
            match length {
                None => {
                    let above = (risk.number.value - floor.number.value).abs();
                    worst_risk = worst_risk.max(above);
                    if above > RISK {
                        problems.push(format!("{name}: ends {} above the floor", figures(above)));
                    }
                }
                Some(_) => {
                    let distance = to_infinite.number.value;
                    if before.is_some_and(|before| distance >= before) {
                        problems.push(format!(
                            "{name}: not nearer to the infinite limit than with fewer examples"
                        ));
                    }
                    before = Some(distance);
                }
            }
            rows.push(vec![
                Cell::Integer(dimension),
                length.map_or(Cell::Text("$\\infty$".to_string()), Cell::Integer),
                own.number.cell(),
                to_infinite.number.cell(),
                risk.number.cell(),
            ]);
        }
    }
    let flows = rows.len();
    let reason = format!(
        "Exact. All {flows} flows of infinite prompts and linear attention, from α in the range of their theorems, were followed until they \
         stood still. They end at most {} from the closed-form limits; the risk of the infinite prompt ends at most {} from \
         the noise floor. {}.",
        rounded_up(worst),
        rounded_up(worst_risk),
        sentences.join(". ")
    );
    let mut columns =
        ["$d$", "$N$", "to its limit", "to the infinite limit", "risk"].map(String::from).to_vec();
    let mut caption =
        "Where the flows end: distances to the own closed-form limit and to that of the infinite prompt \
                       ($N = \\infty$, softmax and linear attention alike), and the risk. Exact."
            .to_string();
    if let Some(Cell::Integer(dimension)) = take_constant(&mut columns, &mut rows, "$d$") {
        caption.push_str(&format!(" $d = {dimension}$."));
    }
    let mut evidence = vec![Block::Table(DataTable { id: "ends".to_string(), caption, columns, rows })];
    if !near_rows.is_empty() {
        evidence.push(Block::Table(DataTable {
            id: "softmax".to_string(),
            caption: "Softmax at finite length: its distance from the limit of linear attention at the time $T$ when the \
                      infinite prompt has arrived. Exact."
                .to_string(),
            columns: ["$d$", "$L$", "$T$", "distance"].map(String::from).to_vec(),
            rows: near_rows,
        }));
    }
    for dimension in regression::dimensions(&records) {
        evidence.push(Block::Figure(Figure {
            id: format!("against-time-{dimension}"),
            title: format!("Distance to the closed-form limit during training, $d = {dimension}$"),
            caption: "Exact; flows end where their gradient is below $10^{-10}$. The band is the error of the integration."
                .to_string(),
            x: time_axis(),
            y: Axis { label: "distance to its limit".to_string(), scale: Scale::Logarithmic },
            series: lines(&curves(&records, "distance-to-own-limit", |record| record.dimension == dimension)),
        }));
    }
    Ok(regression::weighed(CLAIM.name, problems, open, reason, evidence))
}

/// How far softmax is from the limit of linear attention, by length, at the last time asked for before the flow of the
/// infinite prompt stood still.
fn at_bounded_time(
    dimension: i64,
    records: &[Record],
    softmax: &[Record],
) -> Result<(f64, Vec<(i64, Measured)>), String> {
    let is_distance =
        |record: &&Record| record.dimension == dimension && record.quantity == "distance-to-infinite-limit";
    let infinite: Vec<&Record> =
        records.iter().filter(|record| record.model == "infinite").filter(is_distance).collect();
    // The last row is where it stands, at a time of its own.
    let [.., before, _] = infinite[..] else {
        return Err("the flow of the infinite prompt has no rows".to_string());
    };
    let time = before.time;
    let mut near = Vec::new();
    for length in regression::lengths(softmax, dimension) {
        let found = softmax
            .iter()
            .filter(is_distance)
            .find(|record| record.length == Some(length) && record.time == time);
        let Some(found) = found else {
            return Err(format!("softmax at {} was not followed to time {time}", length_name(Some(length))));
        };
        if found.number.error.is_none() {
            return Err(format!("the error of softmax at {} is not known", length_name(Some(length))));
        }
        near.push((length, found.number));
    }
    if near.len() < 2 {
        return Err("softmax was trained at fewer than two lengths".to_string());
    }
    Ok((time, near))
}
