//! The assignments that an audit of heads gives to the audit of the model: what was accepted, its controls, and equal budgets.

use super::prepared::quoted;
use super::{AssignmentFound, AuditRequest, Estimated};
use crate::kinds::audit::heads::HeadsPlan;
use crate::kinds::audit::model::{Losses, ModelPlan};
use esscher_audit::Error;
use esscher_audit::assignment::{Assignment, Running};
use esscher_audit::candidate::Candidate;
use esscher_audit::dossier::{Dossier, shuffled};
use esscher_audit::eviction::Policy;
use esscher_audit::head::Order;
use esscher_audit::model::Shape;
use esscher_audit::replacement::Middle;
use esscher_core::numerics::Stream;

/// An assignment for the audit of the model.
pub(super) struct Chosen {
    name: String,
    running: Running,
    assignment: Assignment,
}

/// Random controls of key-value heads: each repeats some of the accepted heads, and they differ. Query heads offline get the next draw.
const CONTROLS: u32 = 3;

/// Token-equivalents beside the frame's, for comparisons at equal budgets: a sixteenth of the text, at most 64.
fn budget(length: usize) -> usize {
    (length / 16).clamp(8, 64)
}

impl Chosen {
    /// As the specification of the model writes it.
    pub(super) fn specification(&self) -> String {
        let rows: Vec<String> = self
            .assignment
            .rows()
            .iter()
            .map(|row| quoted(&row.iter().map(Candidate::to_string).collect::<Vec<_>>().join(" ")))
            .collect();
        format!(
            "\n[[assignments]]\nname = {}\nrunning = \"{}\"\nrows = [{}]\n",
            quoted(&self.name),
            self.running.name(),
            rows.join(", ")
        )
    }
}

/// Accepted heads and key-value heads, the accepted ones with nothing in the middle, as many random ones, the other key-value heads, all
/// heads, and all heads with equal budgets.
pub(super) fn chosen(
    request: &AuditRequest,
    plan: &HeadsPlan,
    dossier: &Dossier,
    length: usize,
    seed: u64,
) -> Result<Vec<Chosen>, Error> {
    let shape = dossier.shape();
    let deployed = plan.deployed();
    let readers = shape.heads / shape.key_value_heads.max(1);
    let mut all = Vec::new();
    let mut push = |name: String, running, assignment| all.push(Chosen { name, running, assignment });

    let runnings: &[Running] = match deployed {
        Running::Streaming => &[Running::Offline, Running::Streaming],
        Running::Offline => &[Running::Offline],
    };
    for running in runnings {
        let decisions = dossier.decide_heads(*running, request.criterion, request.tolerance, &|_| true);
        let accepted = dossier.assignment(&decisions)?;
        if accepted.replaced_heads() == 0 {
            continue;
        }
        // Streaming heads have the controls of key-value heads below, which are what would be deployed.
        let controls = match running {
            Running::Offline => {
                let random = shuffled(shape, &accepted, 1, &mut Stream::new(seed, CONTROLS, 0))?;
                Some((with_middle_dropped(shape, &accepted)?, random))
            }
            Running::Streaming => None,
        };
        push(format!("accepted heads, {}", running.name()), *running, accepted);
        if let Some((dropped, random)) = controls {
            push("accepted heads, middle dropped, offline".to_string(), *running, dropped);
            push("as many random heads, offline".to_string(), *running, random);
        }
    }
    let groups = dossier.decide_groups(deployed, request.criterion, request.tolerance, &|_| true);
    let accepted = dossier.assignment(&groups)?;
    if accepted.replaced_heads() > 0 {
        let controls = (0..CONTROLS)
            .map(|draw| shuffled(shape, &accepted, readers, &mut Stream::new(seed, draw, 0)))
            .collect::<Result<Vec<_>, _>>()?;
        let dropped = with_middle_dropped(shape, &accepted)?;
        let others = with_others(shape, &accepted)?;
        push("accepted key-value heads".to_string(), deployed, accepted);
        push("accepted key-value heads, middle dropped".to_string(), deployed, dropped);
        for (draw, control) in controls.into_iter().enumerate() {
            push(format!("as many random key-value heads, draw {}", draw + 1), deployed, control);
        }
        if others.replaced_heads() > 0 {
            push("the other key-value heads".to_string(), deployed, others);
        }
    }
    let tilted = Candidate::Measure { top: 0, middle: Middle::TiltedGaussian };
    push(
        "all heads tilted-gaussian, offline".to_string(),
        Running::Offline,
        Assignment::everywhere(shape, tilted),
    );
    if deployed != Running::Offline {
        push("all heads tilted-gaussian".to_string(), deployed, Assignment::everywhere(shape, tilted));
    }
    let dropped = Candidate::Measure { top: 0, middle: Middle::Dropped };
    push("all heads dropped".to_string(), deployed, Assignment::everywhere(shape, dropped));
    for candidate in equal_budgets(shape, budget(length)) {
        push(format!("all heads {candidate}"), deployed, Assignment::everywhere(shape, candidate));
    }
    Ok(all)
}

fn with_middle_dropped(shape: &Shape, assignment: &Assignment) -> Result<Assignment, Error> {
    let dropped = |candidate: &Candidate| match candidate {
        Candidate::Exact => Candidate::Exact,
        _ => Candidate::Measure { top: 0, middle: Middle::Dropped },
    };
    Assignment::new(shape, assignment.rows().iter().map(|row| row.iter().map(dropped).collect()).collect())
}

/// The control that shares no head with what was accepted: the others, by a tilted Gaussian.
fn with_others(shape: &Shape, assignment: &Assignment) -> Result<Assignment, Error> {
    let tilted = Candidate::Measure { top: 0, middle: Middle::TiltedGaussian };
    let other =
        |candidate: &Candidate| if *candidate == Candidate::Exact { tilted } else { Candidate::Exact };
    Assignment::new(shape, assignment.rows().iter().map(|row| row.iter().map(other).collect()).collect())
}

/// What is used today, and measures of as many token-equivalents. Eviction needs an order: encoders have none.
fn equal_budgets(shape: &Shape, budget: usize) -> Vec<Candidate> {
    let mut all: Vec<Candidate> = match shape.order {
        Order::Causal => Policy::ALL.into_iter().map(|policy| Candidate::Kept { policy, budget }).collect(),
        Order::Whole => Vec::new(),
    };
    let gaussian = |places: usize| {
        let ranks = (1..=shape.head_dimension).map(|rank| Middle::ReducedGaussian { rank });
        ranks.rev().find(|middle| middle.state_tokens(shape.head_dimension) <= places as f64)
    };
    let means = |count: usize| Some(Middle::TiltedMeans { count });
    let half = budget / 2;
    // All places for a measure, or half of them for the tokens of highest expected attention.
    for (top, middle) in [
        (0, means(budget)),
        (half, means(budget - half)),
        (0, gaussian(budget)),
        (half, gaussian(budget - half)),
    ] {
        all.extend(middle.map(|middle| Candidate::Measure { top, middle }));
    }
    all
}

/// What the model did with each assignment.
pub(super) fn found(plan: &ModelPlan, losses: &Losses) -> Vec<AssignmentFound> {
    let shape = plan.shape();
    plan.assignments()
        .iter()
        .enumerate()
        .map(|(number, named)| AssignmentFound {
            name: named.name.clone(),
            running: named.running.name(),
            heads: named.assignment.replaced_heads(),
            key_value_heads: named.assignment.freed_groups(shape),
            cache_share: plan.cache_share(named, plan.length()),
            cache_share_at_context: plan.cache_share(named, shape.context),
            cache_bytes_at_context: plan.cache_bytes(named, shape.context),
            loss: losses.mean(number).into(),
            difference: losses.paired_difference(number).into(),
            retrieval: plan.hides_needles().then(|| Estimated::from(losses.retrieval(number))),
        })
        .collect()
}
