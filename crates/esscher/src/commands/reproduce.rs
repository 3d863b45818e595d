//! `esscher reproduce`: every claim of the paper, each a run of its own, and one report on all.

use super::run::with_opened;
use super::{compute, settings};
use crate::arguments::{Common, Opening, RunArguments};
use crate::ending::{Ending, Trouble};
use crate::opening::{absolute, present};
use crate::output::{even_unheard, path, say, say_json, say_line, shown, tell};
use crate::progress::{Whole, duration};
use crate::terminal::{Line, Style, Terminal, columns, fitted, wrapped};
use esscher_claims::{Claim, Finding, Request, Scale, chosen_claims, left_out_sentence, verdict_word};
use esscher_lab::{Experiment, Outcome, Share};
use esscher_questions::conduct::REPRODUCTIONS;
use esscher_report::{Verdict, plain};
use serde_json::{Value, json};
use std::cell::Cell;
use std::path::Path;
use std::time::Instant;

pub(super) fn reproduce(
    common: &Common,
    full: bool,
    only: Vec<String>,
    arguments: RunArguments,
    opening: &Opening,
) -> Result<Ending, Trouble> {
    let scale = if full { Scale::Full } else { Scale::Quick };
    let request = Request { only, scale, out: arguments.out, settings: settings(common, arguments.seed)? };
    let chosen = chosen_claims(&request.only)?;
    let costs = costs(&request, &chosen)?;
    let mut is_begun = false;
    let began = Instant::now();
    let done = Cell::new(0.0);
    let mut ahead = costs.iter();
    let widest = chosen.iter().map(|claim| claim.name.len()).max().unwrap_or(0);
    let reproduction = esscher_claims::reproduce(
        &request,
        |label, planned, folder| {
            // Not before: a folder may be refused.
            if !std::mem::replace(&mut is_begun, true) {
                begin(common, &request, &costs);
            }
            let cost = ahead.next().copied().unwrap_or(0.0);
            let whole = Whole {
                before: done.get(),
                seconds: began.elapsed().as_secs_f64(),
                after: ahead.as_slice().iter().sum(),
            };
            let outcome = compute(common, label, planned, folder, Share::WHOLE, Some(whole));
            if let Ok(Outcome::Finished { computed, kept, .. }) = &outcome {
                // What was kept took no time.
                done.set(done.get() + cost * *computed as f64 / (computed + kept).max(1) as f64);
            }
            outcome
        },
        |found| {
            if common.json {
                return Ok(());
            }
            even_unheard(say_line(&verdict_line(found, widest)))?;
            if found.verdict == Verdict::NotMeasurable {
                for line in what_decides(found) {
                    even_unheard(say_line(&line))?;
                }
            }
            Ok(())
        },
    )?;
    let (folder, findings) = (&reproduction.folder, &reproduction.findings);
    if let Some(claim) = reproduction.stopped_at {
        return Err(Trouble::stopped(folder, &format!(" at {}", claim.name)));
    }
    let is_asked = |one: &&Finding| chosen.iter().any(|claim| claim.name == one.claim.name);
    let (asked, others): (Vec<&Finding>, Vec<&Finding>) = findings.iter().partition(is_asked);
    let report = folder.join("report.html");
    if common.json {
        let in_json = |findings: &[&Finding]| findings.iter().map(|one| finding(one)).collect::<Value>();
        let left_out: Vec<_> = reproduction.left_out.iter().map(|claim| claim.name).collect();
        let answer = json!({
            "outcome": "finished", "report": reproduction.report.as_deref().map(path), "claims": in_json(&asked),
            "others": in_json(&others), "left_out": left_out,
        });
        even_unheard(say_json(&with_opened(answer, &report, opening)))?;
    } else {
        if !reproduction.left_out.is_empty() {
            even_unheard(say(format_args!("\n{}", left_out_sentence(&reproduction.left_out))))?;
        }
        let time = duration(began.elapsed().as_secs_f64());
        even_unheard(say(format_args!("\n{} ({time})", counts(&asked))))?;
        even_unheard(present(&report, opening.open))?;
    }
    let fails = asked.iter().any(|one| one.verdict == Verdict::Fails);
    Ok(if fails { Ending::ClaimFails } else { Ending::Done })
}

/// The seconds on one core that each claim still takes; none for one that was measured before.
fn costs(request: &Request, chosen: &[&'static Claim]) -> Result<Vec<f64>, Trouble> {
    let folder = folder_of(request);
    let cost = |claim: &&'static Claim| {
        if folder.join(claim.name).join("result.parquet").is_file() {
            return Ok(0.0);
        }
        let planned = claim.experiment(request.scale, request.settings)?;
        Ok(planned.units().iter().map(|unit| unit.cost).sum())
    };
    chosen.iter().map(cost).collect()
}

fn folder_of(request: &Request) -> std::path::PathBuf {
    let [quick, full] = REPRODUCTIONS;
    request.out.join(if request.scale == Scale::Quick { quick } else { full })
}

/// Says where it writes and about how long it takes.
fn begin(common: &Common, request: &Request, costs: &[f64]) {
    if !common.shows_progress() {
        return;
    }
    let claims = claims_in_words(costs.len());
    let measured = costs.iter().filter(|cost| **cost == 0.0).count();
    let before = match measured {
        0 => String::new(),
        all if all == costs.len() => ", measured before".to_string(),
        some => format!(", {some} of them measured before"),
    };
    let total: f64 = costs.iter().sum();
    let threads = rayon::current_num_threads();
    let time = match (total > 0.0, threads) {
        (false, _) => String::new(),
        (true, 1) => format!(": about {} on one core", duration(total)),
        (true, many) => format!(": about {} on {many} cores", duration(total / many as f64)),
    };
    tell(format_args!("{claims}{before}, into {}{time}", shown(&absolute(&folder_of(request)))));
}

fn claims_in_words(count: usize) -> String {
    if count == 1 { "1 claim".to_string() } else { format!("{count} claims") }
}

/// A claim that is measured, on one line: its verdict, its name, and the number that decides or, without one, its title.
fn verdict_line(found: &Finding, widest: usize) -> Line {
    let terminal = Terminal::output();
    let (number, meaning) = (plain(&found.number), plain(&found.meaning));
    let name = format!("{:<widest$}", found.claim.name);
    let line = match (terminal.width(), found.verdict) {
        (None, verdict) => Line::new().with(Style::Plain, format_args!("{}  {name}", verdict_word(verdict))),
        (Some(_), verdict) => {
            let (style, mark) = match verdict {
                Verdict::Holds => (Style::Good, "✓"),
                Verdict::Fails => (Style::Bad, "✗"),
                Verdict::NotMeasurable => (Style::Faint, "?"),
            };
            Line::new().with(style, mark).with(Style::Plain, format_args!(" {name}"))
        }
    };
    let room = terminal.width().map_or(usize::MAX, |width| width.saturating_sub(line.width() + 2));
    match number.is_empty() {
        true => line.with(Style::Plain, format_args!("  {}", fitted(found.claim.title, room))),
        // What the number is goes on from it.
        false => {
            let rest = fitted(&meaning, room.saturating_sub(columns(&number) + 1));
            line.with(Style::Plain, "  ")
                .with(Style::Strong, number)
                .with(Style::Plain, format_args!(" {rest}"))
        }
    }
}

/// What would decide a claim that this measurement leaves open.
fn what_decides(found: &Finding) -> Vec<Line> {
    let told = match found.decided_by {
        Some(by) => format!(
            "To decide it: {}. The command is `esscher reproduce --full --only {}`.",
            plain(by),
            found.claim.name
        ),
        None => "To decide it, more is needed than this measures: the report says what is open.".to_string(),
    };
    let width = Terminal::output().width().map_or(usize::MAX, |width| width - MARGIN);
    let line = |line| Line::new().with(Style::Faint, format_args!("{:MARGIN$}{line}", ""));
    wrapped(&told, width).into_iter().map(line).collect()
}

/// What belongs to a line stands below it, so many columns to the right.
const MARGIN: usize = 2;

/// `9 claims hold, 1 fails, 1 is not decided here`.
fn counts(asked: &[&Finding]) -> String {
    let count = |verdict| asked.iter().filter(|one| one.verdict == verdict).count();
    let (holds, fails, open) = (count(Verdict::Holds), count(Verdict::Fails), count(Verdict::NotMeasurable));
    let mut said = vec![format!("{} {}", claims_in_words(holds), if holds == 1 { "holds" } else { "hold" })];
    if fails > 0 {
        said.push(format!("{fails} {}", if fails == 1 { "fails" } else { "fail" }));
    }
    if open > 0 {
        said.push(format!("{open} {} not decided here", if open == 1 { "is" } else { "are" }));
    }
    said.join(", ")
}

fn finding(one: &Finding) -> Value {
    let (number, meaning) = (plain(&one.number), plain(&one.meaning));
    let told = |text: String| if text.is_empty() { Value::Null } else { text.into() };
    json!({
        "claim": one.claim.name, "verdict": verdict_word(one.verdict), "number": told(number), "meaning": told(meaning),
        "lead": told(plain(&one.lead)), "reason": one.reason, "decided_by": one.decided_by.map(plain), "folder": one.folder.as_deref().map(|folder: &Path| path(folder)),
    })
}
