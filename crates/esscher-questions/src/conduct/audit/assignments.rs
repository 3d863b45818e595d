//! The assignments that an audit of heads gives to the audit of the model: what was accepted, its controls, and equal bytes.

use super::prepared::texts;
use super::{AssignmentFound, AuditRequest, DROPPED, Estimated};
use crate::audit_heads::compute::HeadsPlan;
use crate::audit_model::compute::{BYTES_PER_NUMBER, Losses, ModelPlan};
use esscher_audit::Error;
use esscher_audit::assignment::{Assignment, Running};
use esscher_audit::candidate::{Candidate, Frame};
use esscher_audit::dossier::{Dossier, shuffled};
use esscher_audit::eviction::Policy;
use esscher_audit::head::Order;
use esscher_audit::model::Shape;
use esscher_audit::replacement::Middle;
use esscher_audit::role::Role;
use esscher_audit::verdict::spread;
use esscher_core::numerics::Stream;
use esscher_lab::specification::Written;

/// An assignment for the audit of the model.
pub(super) struct Chosen {
    role: Role,
    running: Running,
    assignment: Assignment,
}

/// Random controls of key-value heads: each repeats some of the accepted heads, and they differ. Query heads offline get the next draw.
const CONTROLS: u32 = 3;

/// Tokens that evictions keep beside the frame's, for comparisons at equal bytes: a sixteenth of the text, at most 64.
fn budget(length: usize) -> usize {
    (length / 16).clamp(8, 64)
}

impl Chosen {
    /// Nothing is replaced: stands for what heads have not told yet.
    pub(super) fn exact(shape: &Shape) -> Self {
        let assignment = Assignment::everywhere(shape, Candidate::Exact);
        Chosen { role: Role::Named("nothing replaced".to_string()), running: Running::Offline, assignment }
    }

    /// As the specification of the model writes it.
    pub(super) fn written(&self) -> Written {
        let row = |row: &Vec<Candidate>| row.iter().map(Candidate::to_string).collect::<Vec<_>>().join(" ");
        Written::table([
            ("name".to_string(), Written::Text(self.role.to_string())),
            ("running".to_string(), Written::Text(self.running.to_string())),
            ("rows".to_string(), texts(self.assignment.rows().iter().map(row))),
        ])
    }
}

/// Accepted heads and key-value heads, the accepted ones with nothing in the middle, as many random ones, the other key-value heads, all
/// heads, and all heads with equal bytes.
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
    let mut push = |role, running, assignment| all.push(Chosen { role, running, assignment });

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
        push(Role::AcceptedHeads(*running), *running, accepted);
        if let Some((dropped, random)) = controls {
            push(Role::AcceptedHeadsDropped(*running), *running, dropped);
            push(Role::RandomHeads(*running), *running, random);
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
        push(Role::AcceptedGroups, deployed, accepted);
        push(Role::AcceptedGroupsDropped, deployed, dropped);
        for (draw, control) in (1..).zip(controls) {
            push(Role::RandomGroups { draw }, deployed, control);
        }
        if others.replaced_heads() > 0 {
            push(Role::OtherGroups, deployed, others);
        }
    }
    let tilted = Candidate::Measure { top: 0, middle: Middle::TiltedGaussian };
    let all_heads = |candidate, running| Role::AllHeads { candidate, running };
    let everywhere = |candidate| Assignment::everywhere(shape, candidate);
    push(all_heads(tilted, Some(Running::Offline)), Running::Offline, everywhere(tilted));
    if deployed != Running::Offline {
        push(all_heads(tilted, None), deployed, everywhere(tilted));
    }
    push(all_heads(DROPPED, None), deployed, everywhere(DROPPED));
    for candidate in equal_bytes(shape, &plan.questions().frame, length) {
        push(Role::EqualBytes(candidate), deployed, everywhere(candidate));
    }
    Ok(all)
}

fn with_middle_dropped(shape: &Shape, assignment: &Assignment) -> Result<Assignment, Error> {
    let dropped = |candidate: &Candidate| match candidate {
        Candidate::Exact => Candidate::Exact,
        _ => DROPPED,
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

/// What is used today, and the largest measures that take no more bytes at this length than eviction does. Tokens are kept in half
/// precision and moments in single: a mean costs as much as two tokens. Eviction needs an order: encoders have none.
fn equal_bytes(shape: &Shape, frame: &Frame, length: usize) -> Vec<Candidate> {
    let (budget, d) = (budget(length), shape.head_dimension);
    let bytes = |candidate: &Candidate| candidate.bytes(frame, d, length, BYTES_PER_NUMBER);
    let most = bytes(&Candidate::Kept { policy: Policy::ExpectedAttention, budget });
    let largest = |sizes: usize, of: &dyn Fn(usize) -> Candidate| {
        (1..=sizes).rev().map(of).find(|candidate| bytes(candidate) <= most)
    };
    let mut all = Vec::new();
    if shape.order == Order::Causal {
        // A policy that keeps moments affords fewer of them than tokens: cluster means, which have means in the places of light tokens
        // as well, none at all at short lengths.
        all.extend(
            Policy::ALL
                .map(|policy| largest(budget, &|budget| Candidate::Kept { policy, budget }))
                .into_iter()
                .flatten(),
        );
    }
    // All bytes for a measure, or half of them for the tokens of highest expected attention.
    for top in [0, budget / 2] {
        let means = |count| Candidate::Measure { top, middle: Middle::TiltedMeans { count } };
        let gaussian = |rank| Candidate::Measure { top, middle: Middle::ReducedGaussian { rank } };
        all.extend([largest(budget, &means), largest(d, &gaussian)].into_iter().flatten());
    }
    all
}

/// What a reader must know if the model loses no more with random key-value heads than with the accepted ones: then the test says
/// nothing about the verdicts. Text by text, the mean of the draws against what was accepted, with the confidence of verdicts.
pub(super) fn doubt(plan: &ModelPlan, losses: &Losses) -> Option<String> {
    let named = plan.assignments();
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
    plan.assignments()
        .iter()
        .enumerate()
        .map(|(number, named)| AssignmentFound {
            role: named.role.clone(),
            running: named.running,
            heads: named.assignment.replaced_heads(),
            key_value_heads: named.assignment.freed_groups(shape),
            cache_share: plan.cache_share(named, plan.length()),
            cache_bytes: plan.cache_bytes(named, plan.length()),
            cache_share_at_context: plan.cache_share(named, shape.context),
            cache_bytes_at_context: plan.cache_bytes(named, shape.context),
            loss: losses.mean(number).into(),
            difference: losses.paired_difference(number).into(),
            retrieval: plan.hides_needles().then(|| Estimated::from(losses.retrieval(number))),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{budget, equal_bytes};
    use crate::audit_model::compute::BYTES_PER_NUMBER;
    use esscher_audit::candidate::{Candidate, Frame};
    use esscher_audit::eviction::Policy;
    use esscher_audit::head::Order;
    use esscher_audit::model::Shape;

    #[test]
    fn no_candidate_of_equal_bytes_takes_more_than_evicted_tokens() {
        for order in [Order::Causal, Order::Whole] {
            let window = if order == Order::Causal { 64 } else { 0 };
            let frame = Frame { window, ..Frame::default() };
            for head_dimension in [16, 48, 64, 128] {
                let shape = Shape {
                    layers: 2,
                    heads: 4,
                    key_value_heads: 2,
                    head_dimension,
                    width: 4 * head_dimension,
                    vocabulary: 100,
                    context: 8192,
                    order,
                };
                for length in [128, 256, 1024, 8192] {
                    let bytes = |one: &Candidate| one.bytes(&frame, head_dimension, length, BYTES_PER_NUMBER);
                    let kept = (frame.tokens() + budget(length)) * 2 * head_dimension * BYTES_PER_NUMBER;
                    let all = equal_bytes(&shape, &frame, length);
                    assert!(all.iter().all(|one| bytes(one) <= kept), "{all:?}");
                    let named = |name: &str| all.iter().any(|one| one.to_string().starts_with(name));
                    assert!(named("tilted-means/") && named("reduced-gaussian/"), "{all:?}");
                    let clusters = order == Order::Causal && length >= 1024;
                    assert_eq!(named(Policy::ClusterMeans.name()), clusters, "{all:?}");
                }
            }
        }
    }
}
