//! `esscher run` and `esscher shard`: one experiment into its folder.

use super::{origin, settings, sources};
use crate::arguments::{Common, RunArguments};
use crate::ending::{Ending, Trouble};
use crate::output::{say, write_out};
use crate::progress::Progress;
use esscher_lab::{Experiment, Outcome, RunFolder, Share};
use esscher_questions::{Download, conduct};
use serde_json::json;
use std::path::Path;

pub(super) fn run(common: &Common, file: &Path, arguments: &RunArguments) -> Result<Ending, Trouble> {
    let planned = conduct::read_file(file, settings(common, arguments.seed)?)?.plan(&sources(common))?;
    let name = conduct::name_of_file(file)?;
    let folder = RunFolder::open(&arguments.out.join(&name), &planned)?;
    let progress = Progress::new(&name, common.quiet);
    let outcome = esscher_lab::run(&planned, &folder, Share::WHOLE, &origin(), &progress);
    progress.clear();
    match outcome? {
        Outcome::Finished { result, computed, kept, provenance } => {
            let document = esscher_claims::describe(&planned, &result, &provenance)?.document;
            conduct::publish(&folder, &document)?;
            let report = folder.path().join("report.html");
            if common.json {
                let text = json!({
                    "folder": folder.path(), "outcome": "finished", "units_computed": computed, "units_kept": kept,
                    "result": folder.path().join("result.parquet"), "report": report,
                });
                say(text)?;
            } else {
                write_out(esscher_report::text(&document).as_bytes())?;
                say(format_args!("\n{computed} units computed, {kept} kept; report: {}", report.display()))?;
            }
            Ok(Ending::Done)
        }
        outcome => unfinished(common, folder.path(), &outcome),
    }
}

/// Prints what would be run, or what would be downloaded before that is known.
pub(super) fn plan(common: &Common, file: &Path, arguments: &RunArguments) -> Result<Ending, Trouble> {
    let (asked, sources) = (conduct::read_file(file, settings(common, arguments.seed)?)?, sources(common));
    if let Some(download) = asked.download(&sources)? {
        if common.json {
            let Download { model, package, client, megabytes } = download;
            say(json!({
                "download": { "model": model, "package": package, "client": client, "megabytes": megabytes },
                "units": null,
            }))?;
        } else {
            say(format_args!("# {download}"))?;
        }
        return Ok(Ending::Done);
    }
    let planned = asked.plan(&sources)?;
    let units = planned.units();
    let seconds: f64 = units.iter().map(|unit| unit.cost).sum();
    if common.json {
        let units: Vec<_> =
            units.iter().map(|unit| json!({ "label": unit.label, "cost": unit.cost })).collect();
        say(json!({ "specification": planned.specification(), "units": units }))?;
        return Ok(Ending::Done);
    }
    say(format_args!("{}", planned.specification()))?;
    say(format_args!("# {} units, about {seconds:.0} seconds on one core", units.len()))?;
    for (number, unit) in units.iter().enumerate() {
        say(format_args!("# {number:>5}  {}", unit.label))?;
    }
    Ok(Ending::Done)
}

pub(super) fn shard(
    common: &Common,
    file: &Path,
    share: &str,
    arguments: &RunArguments,
) -> Result<Ending, Trouble> {
    let (share, ending) = conduct::share(share)?;
    let planned = conduct::read_file(file, settings(common, arguments.seed)?)?.plan(&sources(common))?;
    let name = conduct::name_of_file(file)? + &ending;
    let folder = RunFolder::open(&arguments.out.join(&name), &planned)?;
    let progress = Progress::new(&name, common.quiet);
    let outcome = esscher_lab::run(&planned, &folder, share, &origin(), &progress);
    progress.clear();
    unfinished(common, folder.path(), &outcome?)
}

/// What is said of a run that is not whole, or of a share.
fn unfinished(common: &Common, folder: &Path, outcome: &Outcome) -> Result<Ending, Trouble> {
    let (name, text, ending) = match outcome {
        Outcome::Finished { computed, kept, .. } => {
            ("finished", format!("whole run done: {computed} units computed, {kept} kept"), Ending::Done)
        }
        Outcome::ShareDone { computed, units } => {
            ("share-done", format!("share done: {computed} of its {units} units computed now"), Ending::Done)
        }
        Outcome::Stopped { done, total } => {
            let text =
                format!("stopped with {done} of {total} units done; the same command goes on from here");
            ("stopped", text, Ending::Interrupted)
        }
    };
    if common.json {
        say(json!({ "folder": folder, "outcome": name }))?;
    } else {
        say(format_args!("{}: {text}", folder.display()))?;
    }
    Ok(ending)
}
