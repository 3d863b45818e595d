//! `esscher audit`: the heads of a checkpoint, the model with replaced heads, and one screen on both.

use super::ask::{in_options, of_options};
use super::{compute, settings, sources};
use crate::arguments::Common;
use crate::ending::{Ending, Trouble};
use crate::output::{path, say, say_json, shown};
use crate::question_arguments;
use clap::ArgMatches;
use esscher_lab::{ErrorKind, RunFolder, Share};
use esscher_questions::Planned;
use esscher_questions::conduct::{
    self, AssignmentFound, Audit, AuditFound, AuditRequest, Counts, Estimated, Role, Running,
};
use serde_json::{Value, json};
use std::time::Instant;

pub(crate) fn audit(given: &ArgMatches, common: &Common) -> Result<Ending, Trouble> {
    let began = Instant::now();
    let request = AuditRequest::written(question_arguments::audit_request(given)?).map_err(in_options)?;
    let seed = given.get_one::<String>("seed").map(|seed| seed.parse::<u64>());
    let refused = |_| Trouble::request(ErrorKind::Usage, "--seed: expected a whole number from 0 on");
    let seed = seed.transpose().map_err(refused)?;
    let settings = settings(common, seed)?;
    let run = |label: &str, planned: &Planned, folder: &RunFolder| {
        compute(common, label, planned, folder, Share::WHOLE)
    };
    let audited = conduct::audit(&request, settings, run, &sources(common));
    let Audit { folder, found } = audited.map_err(of_options)?;
    let found = found.ok_or_else(|| Trouble::stopped(&folder, ""))?;
    if common.json {
        let mut all = in_json(&found);
        all["folder"] = path(&folder);
        all["outcome"] = json!("finished");
        return say_json(&all);
    }
    say(in_words(&found))?;
    say(format_args!("\n{:.0} s; report: {}", began.elapsed().as_secs_f64(), shown(&found.report)))
}

/// One screen.
fn in_words(found: &AuditFound) -> String {
    let [layers, heads, key_value_heads] = found.sizes;
    let mut lines = vec![
        format!("{}: {layers} layers of {heads} query and {key_value_heads} key-value heads", found.model),
        format!("{} of {} tokens, tolerance {}", texts(found.texts), found.length, found.tolerance),
        String::new(),
        format!("heads            {}  ({})", counted(&found.heads), found.running),
    ];
    if found.running != Running::Offline {
        lines.push(format!("                 {}  (offline)", counted(&found.heads_offline)));
    }
    lines.push(format!("key-value heads  {}  ({})", counted(&found.key_value_heads), found.running));
    if !found.replacements.is_empty() {
        let counts: Vec<String> =
            found.replacements.iter().map(|(name, count)| format!("{count} {name}")).collect();
        lines.push(format!("cheapest         {}", counts.join(", ")));
    }
    if !found.assignments.is_empty() {
        let cache = format!("cache at {}", found.length);
        lines.push(String::new());
        lines.push(format!(
            "{:<44} {:>5} {cache:>14} {:>10}  {}",
            "replaced", "heads", "at context", found.measured
        ));
        lines.extend(found.assignments.iter().enumerate().map(|(number, one)| line(one, number)));
        if let Some(saved) = saved(found) {
            lines.push(String::new());
            lines.push(saved);
        }
    }
    if let Some(advice) = &found.advice {
        lines.push(String::new());
        lines.push(advice.clone());
    }
    lines.join("\n")
}

fn texts(count: usize) -> String {
    if count == 1 { "1 text".to_string() } else { format!("{count} texts") }
}

fn counted(counts: &Counts) -> String {
    format!(
        "{} of {} accepted, {} uncertain, {} refused",
        counts.accepted,
        counts.all(),
        counts.uncertain,
        counts.refused
    )
}

/// An assignment on one line: the cache at the tested length and at the context, the loss or its change.
fn line(one: &AssignmentFound, number: usize) -> String {
    let loss = match number {
        0 => format!("{:.4}", one.loss.mean),
        _ => format!("{:+.4}{}", one.difference.mean, error(&one.difference)),
    };
    let needles = one.retrieval.map_or(String::new(), |share| format!("  needles {:.2}", share.mean));
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    format!(
        "{:<44} {:>5} {:>14} {:>10}  {loss}{needles}",
        one.role.to_string(),
        one.heads,
        percent(one.cache_share),
        percent(one.cache_share_at_context)
    )
}

fn error(estimated: &Estimated) -> String {
    estimated.standard_error.map_or(String::new(), |error| format!(" ± {error:.4}"))
}

/// What the accepted key-value heads save at the model's context, beside their control.
fn saved(found: &AuditFound) -> Option<String> {
    let of = |role| found.assignments.iter().find(|one| one.role == role);
    let accepted = of(Role::AcceptedGroups)?;
    let (exact, ours) = accepted.cache_bytes_at_context;
    let cost = |one: &AssignmentFound| {
        if !found.has_perplexities() {
            return format!("{:+.4}{}", one.difference.mean, error(&one.difference));
        }
        let error =
            one.difference.standard_error.map_or(String::new(), |error| format!(" ± {:.2}", 100.0 * error));
        format!("{:+.2} %{error}", 100.0 * (one.difference.mean.exp() - 1.0))
    };
    let what = if found.has_perplexities() { "perplexity" } else { found.measured };
    let control = of(Role::RandomGroups { draw: 1 })
        .map_or(String::new(), |one| format!("; as many random ones: {}", cost(one)));
    Some(format!(
        "accepted key-value heads save {:.1} of {:.1} MB of cache at the full context; {what} {}{control}",
        (exact - ours) / 1e6,
        exact / 1e6,
        cost(accepted)
    ))
}

fn in_json(found: &AuditFound) -> Value {
    let counts = |counts: &Counts| json!({ "accepted": counts.accepted, "uncertain": counts.uncertain, "refused": counts.refused });
    let estimated = |one: &Estimated| json!({ "mean": one.mean, "standard_error": one.standard_error });
    let assignments: Vec<Value> = found
        .assignments
        .iter()
        .map(|one| {
            json!({
                "name": one.role.to_string(), "running": one.running.name(), "heads": one.heads, "key_value_heads": one.key_value_heads,
                "cache_share": one.cache_share, "cache_share_at_context": one.cache_share_at_context,
                "cache_bytes": one.cache_bytes.1, "cache_bytes_at_context": one.cache_bytes_at_context.1,
                "loss": estimated(&one.loss), "difference": estimated(&one.difference),
                "retrieval": one.retrieval.as_ref().map(estimated),
            })
        })
        .collect();
    json!({
        "model": found.model, "layers": found.sizes[0], "heads_per_layer": found.sizes[1],
        "key_value_heads_per_layer": found.sizes[2], "length": found.length, "texts": found.texts,
        "running": found.running.name(), "tolerance": found.tolerance, "measured": found.measured, "heads": counts(&found.heads),
        "heads_offline": counts(&found.heads_offline), "key_value_heads": counts(&found.key_value_heads),
        "replacements": found.replacements.iter().map(|(name, count)| json!({ "candidate": name.to_string(), "count": count }))
            .collect::<Vec<_>>(),
        "assignments": assignments, "advice": found.advice, "report": path(&found.report), "verdicts": path(&found.verdicts),
        "full_attention_heads": path(&found.full_attention_heads),
    })
}
