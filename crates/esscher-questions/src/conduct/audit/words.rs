//! An audit on one screen: the finding, then at most five rows that bear it out.

use super::{AssignmentFound, AuditFound, Counts, Estimated, Role, Running};
use crate::audit::counts::texts;
use esscher_audit::candidate::Candidate;

impl AuditFound {
    /// One screen: the finding first.
    pub fn in_words(&self) -> String {
        let [layers, heads, key_value_heads] = self.sizes;
        // A sentence on a line: together they are longer than any terminal is wide.
        let mut lines = vec![self.headline.replace(". ", ".\n"), String::new()];
        if !self.assignments.is_empty() {
            lines.extend(self.rows());
            lines.push(String::new());
        }
        let texts = texts(self.texts);
        lines.push(format!(
            "heads            {} ({}), tolerance {} on {texts} of {} tokens",
            counted(&self.heads),
            self.running,
            self.tolerance,
            self.length
        ));
        lines.push(format!("key-value heads  {}", counted(&self.key_value_heads)));
        lines.push(format!(
            "model            {}: {layers} layers of {heads} query and {key_value_heads} key-value heads",
            self.model
        ));
        if let Some(advice) = &self.advice {
            lines.extend([String::new(), format!("Note: {advice}.")]);
        }
        lines.join("\n")
    }

    /// Exact attention, what was accepted with a control each, and everything dropped; the report has all others.
    fn rows(&self) -> Vec<String> {
        let shown = [
            Role::Exact,
            Role::AcceptedHeads(Running::Offline),
            Role::RandomHeads(Running::Offline),
            Role::AcceptedGroups,
            Role::RandomGroups { draw: 1 },
        ];
        let mut rows: Vec<&AssignmentFound> =
            shown.iter().filter_map(|role| self.assignments.iter().find(|one| one.role == *role)).collect();
        let dropped = Role::AllHeads { candidate: Candidate::DROPPED, running: None };
        if rows.len() < shown.len() {
            rows.extend(self.assignments.iter().find(|one| one.role == dropped));
        }
        // A column that repeats another tells nothing.
        let longer = rows.iter().any(|one| one.cache_bytes_at_context != one.cache_bytes);
        let needles = rows.iter().any(|one| one.retrieval.is_some());
        let row = |name: &str, heads: &str, cache: &str, context: &str, loss: &str, found: &str| {
            let context = if longer { format!("{context:>12}") } else { String::new() };
            let found = if needles { format!("  {found}") } else { String::new() };
            format!("{name:<40} {heads:>5} {cache:>14}{context}  {loss:<18}{found}").trim_end().to_string()
        };
        let at = format!("cache at {}", self.length);
        let mut lines = vec![row("replaced", "heads", &at, "at context", self.measured, "needles")];
        lines.extend(rows.iter().map(|one| {
            let percent = |share: f64| format!("{:.0} %", 100.0 * share);
            let loss = match one.role {
                Role::Exact => finite(one.loss.mean, |mean| format!("{mean:.4}")),
                _ => changed(&one.difference),
            };
            let found = one.retrieval.map_or(String::new(), |share| format!("{:.2}", share.mean));
            let name = match one.role {
                Role::Exact => "nothing: exact attention".to_string(),
                _ => one.role.to_string(),
            };
            let (cache, context) = (percent(one.cache_share), percent(one.cache_share_at_context));
            row(&name, &one.heads.to_string(), &cache, &context, &loss, &found)
        }));
        lines
    }
}

fn counted(counts: &Counts) -> String {
    let Counts { accepted, uncertain, refused } = counts;
    format!("{accepted} of {} accepted, {uncertain} uncertain, {refused} refused", counts.all())
}

fn changed(difference: &Estimated) -> String {
    let error = difference.standard_error.filter(|error| error.is_finite());
    let error = error.map_or(String::new(), |error| format!(" ± {error:.4}"));
    finite(difference.mean, |mean| format!("{mean:+.4}{error}").replace('-', "−"))
}

fn finite(mean: f64, write: impl Fn(f64) -> String) -> String {
    if mean.is_finite() { write(mean) } else { "not finite".to_string() }
}
