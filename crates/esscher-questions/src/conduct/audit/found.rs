//! What an audit found, as doors tell it.

use crate::audit_heads::compute::HeadsPlan;
use esscher_audit::assignment::Running;
use esscher_audit::candidate::Candidate;
use esscher_audit::dossier::{Dossier, Standard};
use esscher_audit::head::Order;
use esscher_audit::role::Role;
use esscher_audit::verdict::Spread;
use esscher_report::plain;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Files about both runs in the audit's folder.
pub(super) const REPORT: &str = "report.html";
pub(super) const VERDICTS: &str = "verdicts.json";
pub(super) const FULL_ATTENTION_HEADS: &str = "full_attention_heads.tsv";

pub use crate::audit::counts::Counts;

const LOG_LOSS: &str = "log loss";

/// What an audit left behind.
#[derive(Debug, Clone)]
pub struct Audit {
    /// Its folder, with the runs `heads` and `model`.
    pub folder: PathBuf,
    /// What was found; nothing if it was stopped, and the same request goes on from there.
    pub found: Option<AuditFound>,
}

/// What an audit found.
#[derive(Debug, Clone)]
pub struct AuditFound {
    /// The model's name.
    pub model: String,
    /// Layers, query heads and key-value heads of a layer.
    pub sizes: [usize; 3],
    /// Tokens of the texts that verdicts are about.
    pub length: usize,
    /// Texts that heads were measured on.
    pub texts: usize,
    /// As it would be deployed.
    pub running: Running,
    /// The relative error that is accepted.
    pub tolerance: f64,
    /// Query heads, as deployed.
    pub heads: Counts,
    /// Query heads, offline.
    pub heads_offline: Counts,
    /// Key-value heads, as deployed: only these free memory.
    pub key_value_heads: Counts,
    /// The cheapest accepted replacements of key-value heads with their numbers, the most frequent first.
    pub replacements: Vec<(Candidate, usize)>,
    /// What the model is tested by: `log loss`, or `embedding distance` where every token sees all.
    pub measured: &'static str,
    /// The model with exact attention and with replaced heads; empty for an audit of heads only.
    pub assignments: Vec<AssignmentFound>,
    /// The finding in a few sentences.
    pub headline: String,
    /// What a reader should know of the texts, or try if they can decide nothing.
    pub advice: Option<String>,
    /// The part of the advice that the page does not tell in another place.
    pub(super) note: Option<String>,
    /// The report on all.
    pub report: PathBuf,
    /// Verdicts, errors and portraits of every head.
    pub verdicts: PathBuf,
    /// Which key-value heads must keep full attention, in the layout of DuoAttention.
    pub full_attention_heads: PathBuf,
}

impl AuditFound {
    /// What the heads told; the model follows.
    pub(super) fn of_heads(plan: &HeadsPlan, length: usize, dossier: &Dossier, root: &Path) -> Self {
        let standard = plan.standard;
        let heads = |running| Counts::of(&dossier.decide_heads(&Standard { running, ..standard }));
        let groups = dossier.decide_groups(&standard);
        let mut counted: HashMap<Candidate, usize> = HashMap::new();
        for candidate in groups.iter().flatten().filter_map(|decision| decision.candidate) {
            *counted.entry(candidate).or_default() += 1;
        }
        let mut replacements: Vec<(Candidate, usize)> = counted.into_iter().collect();
        replacements.sort_by_cached_key(|(candidate, count)| (Reverse(*count), candidate.to_string()));
        let shape = dossier.shape();
        let mut found = AuditFound {
            model: plan.evidence.name(),
            sizes: [shape.layers, shape.heads, shape.key_value_heads],
            length,
            texts: dossier.findings(0, 0).count(),
            running: standard.running,
            tolerance: standard.tolerance,
            heads: heads(standard.running),
            heads_offline: heads(Running::Offline),
            key_value_heads: Counts::of(&groups),
            replacements,
            measured: match shape.order {
                Order::Causal => LOG_LOSS,
                Order::Whole => "embedding distance",
            },
            assignments: Vec::new(),
            headline: plain(&plan.lead(length, dossier)),
            advice: None,
            note: plan.evidence.advice(),
            report: root.join(REPORT),
            verdicts: root.join(VERDICTS),
            full_attention_heads: root.join(FULL_ATTENTION_HEADS),
        };
        found.advise(found.note.clone().into_iter().chain(plan.little_is_replaced(length)));
        found
    }

    /// More advice, behind what there is.
    pub(super) fn advise(&mut self, more: impl IntoIterator<Item = String>) {
        let all: Vec<String> = self.advice.take().into_iter().chain(more).collect();
        self.advice = (!all.is_empty()).then(|| all.join(". Also, "));
    }

    /// Whether a difference of losses is one of log losses, whose exponential is a ratio of perplexities.
    pub fn has_perplexities(&self) -> bool {
        self.measured == LOG_LOSS
    }
}

/// What the model does with some heads replaced.
#[derive(Debug, Clone)]
pub struct AssignmentFound {
    /// What it is in the audit; the first is exact attention.
    pub role: Role,
    /// How its states come about.
    pub running: Running,
    /// Query heads that are replaced.
    pub heads: usize,
    /// Key-value heads that need not be kept.
    pub key_value_heads: usize,
    /// The cache at the tested length as a share of exact attention's.
    pub cache_share: f64,
    /// Its bytes at the tested length, of exact attention and with this assignment.
    pub cache_bytes: (f64, f64),
    /// The same share at the model's context.
    pub cache_share_at_context: f64,
    /// Bytes of the cache at the model's context, exact and with this assignment.
    pub cache_bytes_at_context: (f64, f64),
    /// Mean log loss over texts; for encoders the distance of embeddings.
    pub loss: Estimated,
    /// Its difference to exact attention, paired over texts.
    pub difference: Estimated,
    /// The share of needles that are found, if any were hidden.
    pub retrieval: Option<Estimated>,
}

/// A mean over texts; infinite if what was found on some text is not finite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimated {
    /// The mean.
    pub mean: f64,
    /// One standard error over texts.
    pub standard_error: Option<f64>,
}

impl From<Option<Spread>> for Estimated {
    fn from(spread: Option<Spread>) -> Self {
        Estimated {
            mean: spread.map_or(f64::INFINITY, |spread| spread.mean),
            standard_error: spread.and_then(|spread| spread.standard_error),
        }
    }
}
