//! What a model is tried with: the replacements that were accepted, their controls, and what takes equal bytes.

use crate::Error;
use crate::assignment::{Assignment, Running};
use crate::candidate::{Candidate, Frame};
use crate::dossier::{Dossier, Standard};
use crate::eviction::Policy;
use crate::head::Order;
use crate::model::Shape;
use crate::replacement::Middle;
use crate::role::Role;
use esscher_core::numerics::Stream;

/// Bytes of a number in a cache: half precision, as caches are kept.
pub const BYTES_PER_NUMBER: usize = 2;

/// Random controls of key-value heads: each repeats some of the accepted heads, and they differ. Query heads offline get the next draw.
const DRAWS: u32 = 3;

/// An assignment, what it is for and how it runs.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedAssignment {
    /// What it is in the audit.
    pub role: Role,
    /// How it runs.
    pub running: Running,
    /// Who replaces whom.
    pub assignment: Assignment,
}

impl NamedAssignment {
    /// Nothing is replaced.
    pub fn exact(shape: &Shape) -> Self {
        let assignment = Assignment::everywhere(shape, Candidate::Exact);
        NamedAssignment { role: Role::Exact, running: Running::Offline, assignment }
    }

    /// Its name and how it runs, once if the name says so.
    pub fn in_words(&self) -> String {
        let (name, running) = (self.role.to_string(), self.running.name());
        if name.ends_with(running) { name } else { format!("{name}, {running}") }
    }

    /// The bytes of exact attention's cache and of this assignment's, in half precision.
    pub fn cache_bytes(&self, shape: &Shape, frame: &Frame, tokens: usize) -> (f64, f64) {
        self.assignment.cache_bytes(shape, frame, self.running, tokens, BYTES_PER_NUMBER)
    }
}

/// Accepted heads and key-value heads, the accepted ones with nothing in the middle, as many random ones, the other key-value heads, all
/// heads, and all heads with equal bytes. The standard's running is how heads would be deployed.
///
/// # Errors
/// Never for a dossier of one model.
pub fn controlled(
    dossier: &Dossier,
    standard: &Standard,
    frame: &Frame,
    length: usize,
    seed: u64,
) -> Result<Vec<NamedAssignment>, Error> {
    let shape = dossier.shape();
    let deployed = standard.running;
    let mut all = Vec::new();
    let mut push = |role, running, assignment| all.push(NamedAssignment { role, running, assignment });
    let exact_or = |other: Candidate| {
        move |candidate| if candidate == Candidate::Exact { Candidate::Exact } else { other }
    };
    for running in Running::ALL.into_iter().filter(|one| [Running::Offline, deployed].contains(one)) {
        let accepted = dossier.assignment(&dossier.decide_heads(&Standard { running, ..*standard }))?;
        if accepted.replaced_heads() == 0 {
            continue;
        }
        push(Role::AcceptedHeads(running), running, accepted.clone());
        // Streaming heads have the controls of key-value heads below, which are what would be deployed.
        if running == Running::Offline {
            let random = accepted.shuffled(1, &mut Stream::new(seed, DRAWS, 0));
            push(Role::AcceptedHeadsDropped(running), running, accepted.map(exact_or(Candidate::DROPPED)));
            push(Role::RandomHeads(running), running, random);
        }
    }
    let accepted = dossier.assignment(&dossier.decide_groups(standard))?;
    if accepted.replaced_heads() > 0 {
        push(Role::AcceptedGroups, deployed, accepted.clone());
        push(Role::AcceptedGroupsDropped, deployed, accepted.map(exact_or(Candidate::DROPPED)));
        for draw in 0..DRAWS {
            let random = accepted.shuffled(shape.readers(), &mut Stream::new(seed, draw, 0));
            push(Role::RandomGroups { draw: draw + 1 }, deployed, random);
        }
        // The control that shares no head with what was accepted: the others, by a tilted Gaussian.
        let others = accepted.map(|candidate| match candidate {
            Candidate::Exact => Candidate::TILTED_GAUSSIAN,
            _ => Candidate::Exact,
        });
        if others.replaced_heads() > 0 {
            push(Role::OtherGroups, deployed, others);
        }
    }
    let everywhere = |candidate| Assignment::everywhere(shape, candidate);
    let candidate = Candidate::TILTED_GAUSSIAN;
    let offline = Role::AllHeads { candidate, running: Some(Running::Offline) };
    push(offline, Running::Offline, everywhere(candidate));
    if deployed != Running::Offline {
        push(Role::AllHeads { candidate, running: None }, deployed, everywhere(candidate));
    }
    let candidate = Candidate::DROPPED;
    push(Role::AllHeads { candidate, running: None }, deployed, everywhere(candidate));
    for candidate in equal_bytes(shape, frame, length) {
        push(Role::EqualBytes(candidate), deployed, everywhere(candidate));
    }
    Ok(all)
}

/// Tokens that evictions keep beside the frame's, for comparisons at equal bytes: a sixteenth of the text, at most 64.
pub fn budget(length: usize) -> usize {
    (length / 16).clamp(8, 64)
}

/// What is used today, and the largest measures that take no more bytes at this length than eviction does. Tokens are kept in half
/// precision and moments in single: a mean costs as much as two tokens. Eviction needs an order: encoders have none.
pub fn equal_bytes(shape: &Shape, frame: &Frame, length: usize) -> Vec<Candidate> {
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
        let kept = Policy::ALL.map(|policy| largest(budget, &|budget| Candidate::Kept { policy, budget }));
        all.extend(kept.into_iter().flatten());
    }
    // All bytes for a measure, or half of them for the tokens of highest expected attention.
    for top in [0, budget / 2] {
        let means = |count| Candidate::Measure { top, middle: Middle::TiltedMeans { count } };
        let gaussian = |rank| Candidate::Measure { top, middle: Middle::ReducedGaussian { rank } };
        all.extend([largest(budget, &means), largest(d, &gaussian)].into_iter().flatten());
    }
    all
}
