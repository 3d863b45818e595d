//! What the model made of the assignments that the audit of its heads gave.

use super::{AssignmentFound, Estimated};
use crate::audit_model::compute::{Losses, ModelPlan};
use crate::audit_model::headline::{Outcome, signed};

/// What a reader must know if the model does not lose more with random key-value heads than with the accepted ones: then the test does
/// not support the verdicts.
pub(super) fn doubt(plan: &ModelPlan, losses: &Losses) -> Option<String> {
    let groups = plan.groups()?;
    let (more, _) = plan.beside_random(&groups, losses)?;
    let more = signed(&more);
    match plan.outcome(&groups, losses) {
        Outcome::NotToldApart => Some(format!(
            "this text does not tell accepted key-value heads from random ones (whose loss differs from theirs by {more}): test on a text \
             that the model must remember, or on a longer one"
        )),
        Outcome::Contradicted => Some(format!(
            "this text speaks against the accepted key-value heads: random ones lose less (their loss differs by {more})"
        )),
        // Of all heads there is no other choice, and losses that are not finite are seen by themselves.
        Outcome::ToldApart | Outcome::NoChoice | Outcome::NotFinite => None,
    }
}

/// What the model did with each assignment.
pub(super) fn found(plan: &ModelPlan, losses: &Losses) -> Vec<AssignmentFound> {
    let shape = plan.shape();
    plan.assignments
        .iter()
        .enumerate()
        .map(|(number, named)| AssignmentFound {
            role: named.role.clone(),
            running: named.running,
            heads: named.assignment.replaced_heads(),
            key_value_heads: named.assignment.freed_groups(shape),
            cache_share: plan.cache_share(named, plan.length),
            cache_bytes: plan.cache_bytes(named, plan.length),
            cache_share_at_context: plan.cache_share(named, shape.context),
            cache_bytes_at_context: plan.cache_bytes(named, shape.context),
            loss: losses.mean(number).into(),
            difference: losses.paired_difference(number).into(),
            retrieval: plan.hides_needles().then(|| Estimated::from(losses.retrieval(number))),
        })
        .collect()
}
