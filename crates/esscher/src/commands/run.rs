//! `esscher run`, `shard`, `merge` and `report`: experiments and their folders.

use super::{compute, origin, settings, sources};
use crate::arguments::{Common, RunArguments};
use crate::ending::{Ending, Trouble};
use crate::output::{answer, path, say, say_json, shown};
use esscher_lab::{Experiment, Outcome, RunFolder, Share};
use esscher_questions::{Download, Planned, conduct};
use serde_json::json;
use std::path::{Path, PathBuf};

pub(super) fn run(common: &Common, file: &Path, arguments: &RunArguments) -> Result<Ending, Trouble> {
    let (planned, folder, outcome) = into_folder(common, file, arguments, (Share::WHOLE, String::new()))?;
    let Outcome::Finished { result, computed, kept, provenance } = outcome else {
        return unfinished(common, &folder, &outcome);
    };
    let document = esscher_claims::describe(&planned, &result, &provenance)?.document;
    conduct::publish(&folder, &document)?;
    let (folder, report) = (folder.path(), folder.path().join("report.html"));
    if common.json {
        return say_json(&json!({
            "folder": path(folder), "outcome": "finished", "units_computed": computed, "units_kept": kept,
            "result": path(&folder.join("result.parquet")), "report": path(&report),
        }));
    }
    say(esscher_report::text(&document))?;
    say(format_args!("{computed} units computed, {kept} kept; report: {}", shown(&report)))
}

pub(super) fn shard(
    common: &Common,
    file: &Path,
    share: &str,
    arguments: &RunArguments,
) -> Result<Ending, Trouble> {
    let (_, folder, outcome) = into_folder(common, file, arguments, conduct::share(share)?)?;
    unfinished(common, &folder, &outcome)
}

/// Computes a share of the experiment in a file into its folder, whose name has this ending.
fn into_folder(
    common: &Common,
    file: &Path,
    arguments: &RunArguments,
    (share, ending): (Share, String),
) -> Result<(Planned, RunFolder, Outcome), Trouble> {
    let (asked, sources) = (conduct::read_file(file, settings(common, arguments.seed)?)?, sources(common));
    asked.fetch(&sources)?;
    let planned = asked.plan(&sources)?;
    let name = conduct::name_of_file(file)? + &ending;
    let folder = RunFolder::open(&arguments.out.join(&name), &planned)?;
    let outcome = compute(common, &name, &planned, &folder, share)?;
    Ok((planned, folder, outcome))
}

/// What is said of a run that is not whole, or of a share.
fn unfinished(common: &Common, folder: &RunFolder, outcome: &Outcome) -> Result<Ending, Trouble> {
    let folder = folder.path();
    let (name, text) = match outcome {
        Outcome::Finished { computed, kept, .. } => {
            ("finished", format!("whole run done: {computed} units computed, {kept} kept"))
        }
        Outcome::ShareDone { computed, units } => {
            ("share-done", format!("share done: {computed} of its {units} units computed now"))
        }
        Outcome::Stopped { .. } => return Err(Trouble::stopped(folder, "")),
    };
    let said = format!("{}: {text}", shown(folder));
    answer(common, json!({ "folder": path(folder), "outcome": name }), said)
}

/// Prints what would be run, or what would be downloaded before that is known.
pub(super) fn plan(common: &Common, file: &Path, arguments: &RunArguments) -> Result<Ending, Trouble> {
    let (asked, sources) = (conduct::read_file(file, settings(common, arguments.seed)?)?, sources(common));
    if let Some(download) = asked.download(&sources)? {
        let text = format!("# {download}");
        let Download { model, package, client, megabytes } = download;
        let download =
            json!({ "model": model, "package": package, "client": client, "megabytes": megabytes });
        return answer(common, json!({ "download": download, "units": null }), text);
    }
    let planned = asked.plan(&sources)?;
    let units = planned.units();
    if common.json {
        let units: Vec<_> =
            units.iter().map(|unit| json!({ "label": unit.label, "cost": unit.cost })).collect();
        return say_json(&json!({ "specification": planned.specification(), "units": units }));
    }
    let seconds: f64 = units.iter().map(|unit| unit.cost).sum();
    say(planned.specification())?;
    say(format_args!("# {} units, roughly {seconds:.0} seconds on one core", units.len()))?;
    for (number, unit) in units.iter().enumerate() {
        say(format_args!("# {number:>5}  {}", unit.label))?;
    }
    Ok(Ending::Done)
}

/// Merges the shards of one experiment into a single run.
pub(super) fn merge(common: &Common, folders: &[PathBuf], out: Option<PathBuf>) -> Result<Ending, Trouble> {
    let folder = esscher_claims::merge(folders, out, settings(common, None)?, &sources(common), &origin())?;
    let report = folder.join("report.html");
    let text = format!("{} shards merged; report: {}", folders.len(), shown(&report));
    answer(common, json!({ "folder": path(&folder), "outcome": "finished" }), text)
}

/// Makes a finished run's report again, or compares several runs.
pub(super) fn report(
    common: &Common,
    runs: &[PathBuf],
    out: Option<&Path>,
    force: bool,
) -> Result<Ending, Trouble> {
    let report = esscher_claims::report(runs, out, force, settings(common, None)?, &sources(common))?;
    answer(common, json!({ "report": path(&report) }), format_args!("report: {}", shown(&report)))
}
