//! `esscher audit`: the heads of a checkpoint, the model with replaced heads, and one screen on both.

use super::ask::{in_options, of_options};
use super::run::with_opened;
use super::{compute, settings, sources};
use crate::arguments::{Common, Opening};
use crate::ending::{Ending, Trouble};
use crate::opening::present;
use crate::output::{path, say, say_json};
use crate::progress::duration;
use crate::question_arguments;
use clap::ArgMatches;
use esscher_lab::{ErrorKind, RunFolder, Share};
use esscher_questions::Planned;
use esscher_questions::conduct::{self, Audit, AuditFound, AuditRequest, Counts, Estimated};
use serde_json::{Value, json};
use std::time::Instant;

pub(crate) fn audit(given: &ArgMatches, common: &Common) -> Result<Ending, Trouble> {
    let began = Instant::now();
    let request = AuditRequest::written(question_arguments::audit_request(given)?).map_err(in_options)?;
    let seed = given.get_one::<String>("seed").map(|seed| seed.parse::<u64>());
    let refused = |_| Trouble::request(ErrorKind::Usage, "--seed: expected a whole number from 0 on");
    let seed = seed.transpose().map_err(refused)?;
    let settings = settings(common, seed)?;
    let opening = Opening { open: given.get_flag("open") };
    let run = |label: &str, planned: &Planned, folder: &RunFolder| {
        compute(common, label, planned, folder, Share::WHOLE, None)
    };
    let audited = conduct::audit(&request, settings, run, &sources(common));
    let Audit { folder, found } = audited.map_err(of_options)?;
    let found = found.ok_or_else(|| Trouble::stopped(&folder, ""))?;
    if common.json {
        let mut all = in_json(&found);
        all["folder"] = path(&folder);
        all["outcome"] = json!("finished");
        return say_json(&with_opened(all, &found.report, &opening));
    }
    say(found.in_words())?;
    say(format_args!("\n{}", duration(began.elapsed().as_secs_f64())))?;
    present(&found.report, opening.open)
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
