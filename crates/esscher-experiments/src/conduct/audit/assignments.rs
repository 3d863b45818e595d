//! The assignments that an audit of heads gives to the audit of the model: what was accepted, its controls, and equal budgets.

use super::{AssignmentFound, AuditRequest, Estimated, quoted};
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

/// Token-equivalents beside the frame's, for comparisons at equal budgets.
const BUDGET: usize = 32;

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

/// Accepted heads and key-value heads, as many random ones, the accepted ones with nothing in the middle, all heads, and all
/// heads with equal budgets.
pub(super) fn chosen(
    request: &AuditRequest,
    plan: &HeadsPlan,
    dossier: &Dossier,
    seed: u64,
) -> Result<Vec<Chosen>, Error> {
    let shape = dossier.shape();
    let deployed = plan.deployed();
    let readers = shape.heads / shape.key_value_heads.max(1);
    let mut all = Vec::new();
    let mut push = |name: String, running, assignment| all.push(Chosen { name, running, assignment });

    let offline = dossier.decide_heads(Running::Offline, request.criterion, request.tolerance, &|_| true);
    let by_head = dossier.assignment(&offline)?;
    if by_head.replaced_heads() > 0 {
        let random = shuffled(shape, &by_head, 1, &mut Stream::new(seed, 0, 0))?;
        push("accepted heads".to_string(), Running::Offline, by_head);
        push("as many random heads".to_string(), Running::Offline, random);
    }
    let groups = dossier.decide_groups(deployed, request.criterion, request.tolerance, &|_| true);
    let by_group = dossier.assignment(&groups)?;
    if by_group.replaced_heads() > 0 {
        let random = shuffled(shape, &by_group, readers, &mut Stream::new(seed, 1, 0))?;
        let dropped = with_middle_dropped(shape, &by_group)?;
        push("accepted key-value heads".to_string(), deployed, by_group);
        push("as many random key-value heads".to_string(), deployed, random);
        push("accepted key-value heads, middle dropped".to_string(), deployed, dropped);
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
    for candidate in equal_budgets(shape) {
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

/// What is used today, and measures of as many token-equivalents. Eviction needs an order: encoders have none.
fn equal_budgets(shape: &Shape) -> Vec<Candidate> {
    let mut all: Vec<Candidate> = match shape.order {
        Order::Causal => {
            Policy::ALL.into_iter().map(|policy| Candidate::Kept { policy, budget: BUDGET }).collect()
        }
        Order::Whole => Vec::new(),
    };
    let fits = |middle: &Middle| middle.state_tokens(shape.head_dimension) <= BUDGET as f64;
    let largest = |make: fn(usize) -> Middle, most: usize| (1..=most).map(make).rfind(fits);
    let means = largest(|count| Middle::TiltedMeans { count }, 1024);
    let gaussian = largest(|rank| Middle::ReducedGaussian { rank }, shape.head_dimension);
    all.extend(means.into_iter().chain(gaussian).map(|middle| Candidate::Measure { top: 0, middle }));
    all
}

/// What the model did with each assignment.
pub(super) fn found(plan: &ModelPlan, losses: &Losses) -> Vec<AssignmentFound> {
    let shape = plan.shape();
    plan.assignments()
        .iter()
        .enumerate()
        .filter_map(|(number, named)| {
            Some(AssignmentFound {
                name: named.name.clone(),
                running: named.running.name(),
                heads: named.assignment.replaced_heads(),
                key_value_heads: named.assignment.freed_groups(shape),
                cache_share: plan.cache_share(named, plan.length()),
                cache_share_at_context: plan.cache_share(named, shape.context),
                cache_bytes_at_context: plan.cache_bytes(named, shape.context),
                loss: losses.mean(number)?.into(),
                difference: losses.paired_difference(number)?.into(),
                retrieval: losses.retrieval(number).map(Estimated::from),
            })
        })
        .collect()
}
