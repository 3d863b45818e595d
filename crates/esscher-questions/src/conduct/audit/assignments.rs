//! What the model made of the assignments that the audit of its heads gave.

use super::{AssignmentFound, Estimated};
use crate::audit_model::compute::{Losses, ModelPlan};
use esscher_audit::role::Role;
use esscher_audit::verdict::spread;

/// What a reader must know if the model loses no more with random key-value heads than with the accepted ones: then the test says
/// nothing about the verdicts. Text by text, the mean of the draws against what was accepted, with the confidence of verdicts.
pub(super) fn doubt(plan: &ModelPlan, losses: &Losses) -> Option<String> {
    let named = &plan.assignments;
    let accepted = named.iter().position(|one| one.role == Role::AcceptedGroups)?;
    let shape = plan.shape();
    // Of all heads there is no other choice.
    if named[accepted].assignment.freed_groups(shape) == shape.layers * shape.key_value_heads {
        return None;
    }
    let draws: Vec<&Vec<f64>> = named
        .iter()
        .zip(&losses.texts)
        .filter_map(|(one, losses)| matches!(one.role, Role::RandomGroups { .. }).then_some(losses))
        .collect();
    let above: Vec<f64> = losses.texts[accepted]
        .iter()
        .enumerate()
        .map(|(text, loss)| draws.iter().map(|draw| draw[text] - loss).sum::<f64>() / draws.len() as f64)
        .collect();
    // Losses that are not finite are seen by themselves.
    let above = spread(&above).filter(|above| above.low <= 0.0)?;
    let error = above.standard_error.map_or(String::new(), |error| format!(" ± {error:.4}"));
    Some(format!(
        "this text does not tell accepted key-value heads from random ones (whose loss differs from theirs by {:+.4}{error}): test on \
         a text that the model must remember, or on a longer one",
        above.mean
    ))
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
