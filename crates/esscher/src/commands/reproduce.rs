//! `esscher reproduce`: every claim of the paper, each a run of its own, and one report on all.

use super::{origin, settings};
use crate::arguments::{Common, RunArguments};
use crate::ending::{Ending, Trouble};
use crate::output::say;
use crate::progress::Progress;
use esscher_claims::{Request, Scale, verdict_word};
use esscher_lab::{RunFolder, Share};
use esscher_questions::Planned;
use esscher_report::Verdict;
use serde_json::json;
use std::time::Instant;

pub(super) fn reproduce(
    common: &Common,
    full: bool,
    only: &[String],
    arguments: &RunArguments,
) -> Result<Ending, Trouble> {
    let request = Request {
        only: only.to_vec(),
        scale: if full { Scale::Full } else { Scale::Quick },
        out: arguments.out.clone(),
        settings: settings(common, arguments.seed)?,
    };
    let began = Instant::now();
    let run = |label: &str, planned: &Planned, folder: &RunFolder| {
        let progress = Progress::new(label, common.quiet);
        let outcome = esscher_lab::run(planned, folder, Share::WHOLE, &origin(), &progress);
        progress.clear();
        Ok::<_, Trouble>(outcome?)
    };
    let reproduction = esscher_claims::reproduce(&request, run, |found| {
        if common.json {
            return Ok(());
        }
        say(format_args!(
            "{:<22} {:<34} {}",
            verdict_word(found.verdict),
            found.claim.name,
            found.claim.title
        ))
    })?;
    let (folder, findings) = (&reproduction.folder, &reproduction.findings);
    if let Some(claim) = reproduction.stopped_at {
        if common.json {
            say(json!({ "folder": folder, "outcome": "stopped" }))?;
        } else {
            say(format_args!("stopped at {}; the same command goes on from here", claim.name))?;
        }
        return Ok(Ending::Interrupted);
    }
    if common.json {
        let found: Vec<_> = findings
            .iter()
            .map(|one| {
                json!({ "claim": one.claim.name, "verdict": verdict_word(one.verdict), "reason": one.reason,
                        "folder": one.folder })
            })
            .collect();
        say(json!({ "outcome": "finished", "report": reproduction.report, "claims": found }))?;
    } else {
        let count = |verdict| findings.iter().filter(|one| one.verdict == verdict).count();
        say(format_args!(
            "\n{} claims hold, {} fail, {} not measurable here ({:.0} s)\nreport: {}",
            count(Verdict::Holds),
            count(Verdict::Fails),
            count(Verdict::NotMeasurable),
            began.elapsed().as_secs_f64(),
            folder.join("report.html").display()
        ))?;
    }
    let fails = findings.iter().any(|one| one.verdict == Verdict::Fails);
    Ok(if fails { Ending::ClaimFails } else { Ending::Done })
}
