//! `esscher reproduce`: every claim of the paper, each a run of its own, and one report on all.

use super::{compute, settings};
use crate::arguments::{Common, RunArguments};
use crate::ending::{Ending, Trouble};
use crate::output::{answer, even_unheard, path, say, shown};
use esscher_claims::{Request, Scale, left_out_sentence, verdict_word};
use esscher_lab::Share;
use esscher_report::Verdict;
use serde_json::json;
use std::time::Instant;

pub(super) fn reproduce(
    common: &Common,
    full: bool,
    only: Vec<String>,
    arguments: RunArguments,
) -> Result<Ending, Trouble> {
    let scale = if full { Scale::Full } else { Scale::Quick };
    let settings = settings(common, arguments.seed)?;
    let request = Request { only, scale, out: arguments.out, settings };
    let began = Instant::now();
    let reproduction = esscher_claims::reproduce(
        &request,
        |label, planned, folder| compute(common, label, planned, folder, Share::WHOLE),
        |found| {
            if common.json {
                return Ok(());
            }
            let (verdict, claim) = (verdict_word(found.verdict), found.claim);
            even_unheard(say(format_args!("{verdict:<22} {:<34} {}", claim.name, claim.title)))
        },
    )?;
    let (folder, findings) = (&reproduction.folder, &reproduction.findings);
    if let Some(claim) = reproduction.stopped_at {
        return Err(Trouble::stopped(folder, &format!(" at {}", claim.name)));
    }
    let found = findings.iter().map(|one| {
        json!({ "claim": one.claim.name, "verdict": verdict_word(one.verdict), "reason": one.reason,
                "folder": one.folder.as_deref().map(path) })
    });
    let found: Vec<_> = found.collect();
    let names: Vec<_> = reproduction.left_out.iter().map(|claim| claim.name).collect();
    let count = |verdict| findings.iter().filter(|one| one.verdict == verdict).count();
    let left_out = match reproduction.left_out.as_slice() {
        [] => String::new(),
        some => format!("\n{}", left_out_sentence(some)),
    };
    let text = format!(
        "{left_out}\n{} claims hold, {} fail, {} not measurable here ({:.0} s)\nreport: {}",
        count(Verdict::Holds),
        count(Verdict::Fails),
        count(Verdict::NotMeasurable),
        began.elapsed().as_secs_f64(),
        shown(&folder.join("report.html"))
    );
    even_unheard(answer(
        common,
        json!({ "outcome": "finished", "report": reproduction.report.as_deref().map(path), "claims": found,
                "left_out": names }),
        text,
    ))?;
    Ok(if count(Verdict::Fails) > 0 { Ending::ClaimFails } else { Ending::Done })
}
