//! The roles of assignments in an audit: what was accepted, and the controls that it is compared with.

use crate::assignment::Running;
use crate::candidate::Candidate;
use std::fmt;

/// What an assignment is in an audit. Specifications and tables hold its name; whoever looks for one compares values.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Role {
    /// Nothing is replaced: what all others are compared with.
    Exact,
    /// Every query head that was accepted, however the others that read its keys are.
    AcceptedHeads(Running),
    /// The accepted query heads with nothing in the middle.
    AcceptedHeadsDropped(Running),
    /// As many query heads, drawn at random.
    RandomHeads(Running),
    /// The key-value heads that were accepted: what would be deployed.
    AcceptedGroups,
    /// The accepted key-value heads with nothing in the middle.
    AcceptedGroupsDropped,
    /// As many key-value heads, drawn at random.
    RandomGroups {
        /// The number of the draw, from 1.
        draw: u32,
    },
    /// The key-value heads that were not accepted.
    OtherGroups,
    /// One candidate on all heads.
    AllHeads {
        /// What replaces every head.
        candidate: Candidate,
        /// How it runs, where that is not as it would be deployed.
        running: Option<Running>,
    },
    /// One candidate on all heads that takes no more bytes than evicted tokens do.
    EqualBytes(Candidate),
    /// An assignment that a specification gives its own name.
    Named(String),
}

impl fmt::Display for Role {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Role::Exact => formatter.write_str("exact attention"),
            Role::AcceptedHeads(running) => write!(formatter, "accepted heads, {running}"),
            Role::AcceptedHeadsDropped(running) => {
                write!(formatter, "accepted heads, middle dropped, {running}")
            }
            Role::RandomHeads(running) => write!(formatter, "as many random heads, {running}"),
            Role::AcceptedGroups => formatter.write_str("accepted key-value heads"),
            Role::AcceptedGroupsDropped => formatter.write_str("accepted key-value heads, middle dropped"),
            Role::RandomGroups { draw } => write!(formatter, "as many random key-value heads, draw {draw}"),
            Role::OtherGroups => formatter.write_str("the other key-value heads"),
            Role::AllHeads { candidate, running: None } => write!(formatter, "all heads {candidate}"),
            Role::AllHeads { candidate, running: Some(running) } => {
                write!(formatter, "all heads {candidate}, {running}")
            }
            Role::EqualBytes(candidate) => write!(formatter, "equal bytes: {candidate}"),
            Role::Named(name) => formatter.write_str(name),
        }
    }
}

impl From<&str> for Role {
    /// The role of this name. Names are written in one place, so that a role is found by trying all with what the name holds.
    fn from(name: &str) -> Self {
        let words = || name.split([' ', ',']);
        let draw = words().find_map(|word| word.parse().ok()).unwrap_or(1);
        let candidate = words().find_map(|word| word.parse().ok()).unwrap_or(Candidate::Exact);
        let mut roles = vec![
            Role::Exact,
            Role::AcceptedGroups,
            Role::AcceptedGroupsDropped,
            Role::RandomGroups { draw },
            Role::OtherGroups,
            Role::AllHeads { candidate, running: None },
            Role::EqualBytes(candidate),
        ];
        for running in Running::ALL {
            roles.extend([
                Role::AcceptedHeads(running),
                Role::AcceptedHeadsDropped(running),
                Role::RandomHeads(running),
                Role::AllHeads { candidate, running: Some(running) },
            ]);
        }
        let known = roles.into_iter().find(|role| role.to_string() == name);
        known.unwrap_or_else(|| Role::Named(name.to_string()))
    }
}
