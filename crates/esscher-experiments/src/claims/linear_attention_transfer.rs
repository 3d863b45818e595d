//! Claim: the limits of training known for linear attention are those of softmax attention on infinite prompts.

use super::{Claim, Judgement, regression};
use crate::kinds::{Record, curves, lines, time_axis, trajectories};
use crate::measured::{figures, length_name, rounded_up};
use crate::tabulating::take_constant;
use esscher_lab::{Failure, Table};
use esscher_report::{Axis, Block, Cell, DataTable, Figure, Scale};

pub(super) const CLAIM: Claim = Claim {
    name: "linear-attention-transfer",
    title: "Limits of linear attention transfer to softmax on infinite prompts",
    statement: "On Gaussian covariates the infinite softmax prompt trains as linear attention does: its flow from the paper's \
                initialisation ends at the closed-form limit, with the risk of the noise floor; linear attention at N examples \
                ends at the limit of Zhang, Frei and Bartlett, which approaches it as N grows.",
    formula: r"(U^*, V^*) = \left(c^{-1}\begin{pmatrix}\Sigma^{-1} & 0\\ 0 & 0\end{pmatrix},\ c\, e e^\top\right),\quad c = \operatorname{tr}(\Sigma^{-2})^{1/4}; \qquad b_N A_N = \Gamma_N^{-1},\ \Gamma_N = (1 + \tfrac1N)\Sigma + \tfrac{\operatorname{tr}\Sigma + s^2/k}{N} I",
    citation: "Boursier & Boyer 2025, arXiv 2512.11784, in-context linear regression; Zhang, Frei & Bartlett 2024.",
    measurement: "Gradient flows with closed-form risks and gradients until they stand still, against the closed-form limits; \
                  errors are changes when the integration is a hundred times looser.",
    criterion: "A flow ends without standing still or farther than $10^{-6}$ from its closed-form limit, the infinite prompt ends with a risk \
                more than $10^{-9}$ above the floor, or the end at some N is not nearer to the infinite limit than at the N \
                before. If α lies outside the range of the theorem nothing is decided.",
    quick: include_str!("../../../../experiments/linear-attention-transfer/quick.toml"),
    full: include_str!("../../../../experiments/linear-attention-transfer/full.toml"),
    judge,
};

/// Flows stop at gradients of 1e-10; eigenvalues of the curvature above 1e-4 leave them this close.
const NEAR: f64 = 1e-6;

/// Risks are exact to 1e-9.
const RISK: f64 = 1e-9;

fn judge(result: &Table) -> Result<Judgement, Failure> {
    let records: Vec<Record> = trajectories(result)?
        .into_iter()
        .filter(|record| (record.model == "infinite" || record.model == "linear") && record.draw.is_none())
        .collect();
    if !records.iter().any(|record| record.model == "infinite") {
        return Ok(regression::undecided("the infinite prompt was not trained"));
    }
    let outside = records.iter().find(|record| {
        record.model == "infinite"
            && record.quantity == "paper-bound"
            && record.initial_scale >= record.number.value
    });
    if let Some(record) = outside {
        return Ok(regression::undecided(&format!(
            "α = {} is outside the range α < {} of the theorem",
            record.initial_scale,
            figures(record.number.value)
        )));
    }
    let mut problems = Vec::new();
    let mut rows = Vec::new();
    let mut worst: f64 = 0.0;
    let mut worst_risk: f64 = 0.0;
    for dimension in regression::dimensions(&records) {
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
                problems.push(format!("{name}: {}", own.ending));
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
        "Exact. All {flows} flows, from α in the range of the theorem, were followed until they stood still. They end at most {} from the \
         closed-form limits; the risk of the infinite prompt ends at most {} from the noise floor.",
        rounded_up(worst),
        rounded_up(worst_risk)
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
    Ok(regression::judged(CLAIM.name, problems, reason, evidence))
}
