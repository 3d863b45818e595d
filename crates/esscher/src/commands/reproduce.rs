//! `esscher reproduce`: every claim of the paper, each a run of its own, and one report on all.

use super::{origin, publish, settings};
use crate::arguments::{Common, RunArguments};
use crate::ending::{Ending, Trouble};
use crate::output::say;
use crate::progress::Progress;
use esscher_experiments::{Claim, Judged, Planned, Scale, claim_document, claims, reproduction_document};
use esscher_lab::specification::nearest;
use esscher_lab::{Error, Experiment, Outcome, RunFolder, Share, read_finished};
use esscher_report::Verdict;
use serde_json::json;
use std::path::Path;
use std::time::Instant;

pub(super) fn reproduce(
    common: &Common,
    full: bool,
    only: &[String],
    arguments: &RunArguments,
) -> Result<Ending, Trouble> {
    let chosen = choose(only)?;
    let is_chosen = |claim: &Claim| chosen.iter().any(|one| one.name == claim.name);
    let settings = settings(common, arguments.seed)?;
    let scale = if full { Scale::Full } else { Scale::Quick };
    let root = arguments.out.join(if full { "reproduce-full" } else { "reproduce" });
    let began = Instant::now();
    let planned = claims()
        .iter()
        .map(|claim| claim.experiment(scale, settings))
        .collect::<Result<Vec<Planned>, _>>()?;
    let mut judged = Vec::new();
    let mut number = 0;
    for (claim, planned) in claims().iter().zip(&planned) {
        if !is_chosen(claim) {
            // What was measured before stays in the report.
            judged.extend(measured_before(claim, planned, &root.join(claim.name)));
            continue;
        }
        number += 1;
        let label = format!("{number}/{} {}", chosen.len(), claim.name);
        match one(common, claim, planned, &root.join(claim.name), &label)? {
            Some(one) => judged.push(one),
            None => {
                if common.json {
                    say(json!({ "folder": root, "outcome": "stopped" }))?;
                } else {
                    say(format_args!("stopped at {}; the same command goes on from here", claim.name))?;
                }
                return Ok(Ending::Interrupted);
            }
        }
    }
    let report = root.join("report.html");
    esscher_lab::write_file(&report, esscher_report::html(&reproduction_document(&judged)).as_bytes())?;
    if common.json {
        let found: Vec<_> = judged
            .iter()
            .map(|one| {
                json!({ "claim": one.claim.name, "verdict": word(one.judgement.verdict),
                        "reason": one.judgement.reason, "folder": root.join(one.claim.name) })
            })
            .collect();
        say(json!({ "outcome": "finished", "report": report, "claims": found }))?;
    } else {
        let count = |verdict| judged.iter().filter(|one| one.judgement.verdict == verdict).count();
        say(format_args!(
            "\n{} claims hold, {} fail, {} not measurable here ({:.0} s)\nreport: {}",
            count(Verdict::Holds),
            count(Verdict::Fails),
            count(Verdict::NotMeasurable),
            began.elapsed().as_secs_f64(),
            report.display()
        ))?;
    }
    let fails = judged.iter().any(|one| one.judgement.verdict == Verdict::Fails);
    Ok(if fails { Ending::ClaimFails } else { Ending::Done })
}

/// Runs and judges one claim; nothing if it was interrupted.
fn one<'a>(
    common: &Common,
    claim: &'static Claim,
    planned: &'a Planned,
    path: &Path,
    label: &str,
) -> Result<Option<Judged<'a>>, Trouble> {
    let folder = RunFolder::open(path, planned)?;
    let progress = Progress::new(label, common.quiet);
    let outcome = esscher_lab::run(planned, &folder, Share::WHOLE, &origin(), &progress);
    progress.clear();
    let Outcome::Finished { result, provenance, .. } = outcome? else {
        return Ok(None);
    };
    let judgement = (claim.judge)(&result).map_err(|error| Trouble::Lab(Error::Result(error)))?;
    let judged = Judged { claim, planned, judgement, provenance };
    publish::publish(&folder, &claim_document(&judged))?;
    if !common.json {
        say(format_args!("{:<22} {:<34} {}", word(judged.judgement.verdict), claim.name, claim.title))?;
    }
    Ok(Some(judged))
}

/// A claim that is not asked for now and was finished before, if so.
fn measured_before<'a>(claim: &'static Claim, planned: &'a Planned, path: &Path) -> Option<Judged<'a>> {
    let run = read_finished(path).ok().filter(|run| run.specification == planned.specification())?;
    let judgement = (claim.judge)(&run.result).ok()?;
    Some(Judged { claim, planned, judgement, provenance: run.provenance })
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "holds",
        Verdict::Fails => "FAILS",
        Verdict::NotMeasurable => "not measurable here",
    }
}

fn choose(only: &[String]) -> Result<Vec<&'static Claim>, Trouble> {
    let names: Vec<&str> = claims().iter().map(|claim| claim.name).collect();
    for name in only {
        if !names.contains(&name.as_str()) {
            let hint = match nearest(name, &names) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the claims are {}", names.join(", ")),
            };
            return Err(Trouble::with_hint(format!("there is no claim `{name}`"), hint));
        }
    }
    let wanted = |claim: &&Claim| only.is_empty() || only.iter().any(|name| name == claim.name);
    Ok(claims().iter().filter(wanted).collect())
}
