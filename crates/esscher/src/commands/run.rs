//! `esscher run` and `esscher shard`: one experiment into its folder.

use super::{origin, publish, read_specification, settings};
use crate::arguments::{Common, RunArguments};
use crate::ending::{Ending, Trouble};
use crate::progress::Progress;
use esscher_lab::{Experiment, Outcome, RunFolder, Share};
use serde_json::json;
use std::path::Path;

pub(super) fn run(common: &Common, file: &Path, arguments: &RunArguments) -> Result<Ending, Trouble> {
    let settings = settings(common, arguments.seed)?;
    let planned = read_specification(file, settings)?;
    let name = run_name(file)?;
    let folder = RunFolder::open(&arguments.out.join(&name), &planned)?;
    let progress = Progress::new(&name, common.quiet);
    let outcome = esscher_lab::run(&planned, &folder, Share::WHOLE, &origin(), &progress);
    progress.clear();
    match outcome? {
        Outcome::Finished { result, computed, kept, provenance } => {
            let document = publish::describe(&planned, &result, &provenance, settings)?;
            publish::publish(&folder, &document)?;
            let report = folder.path().join("report.html");
            if common.json {
                let text = json!({
                    "folder": folder.path(), "outcome": "finished", "units_computed": computed, "units_kept": kept,
                    "result": folder.path().join("result.parquet"), "report": report,
                });
                println!("{text}");
            } else {
                print!("{}", esscher_report::text(&document));
                println!("\n{computed} units computed, {kept} kept; report: {}", report.display());
            }
            Ok(Ending::Done)
        }
        outcome => Ok(unfinished(common, folder.path(), &outcome)),
    }
}

/// Prints what would be run.
pub(super) fn plan(common: &Common, file: &Path, arguments: &RunArguments) -> Result<Ending, Trouble> {
    let planned = read_specification(file, settings(common, arguments.seed)?)?;
    let units = planned.units();
    let seconds: f64 = units.iter().map(|unit| unit.cost).sum();
    if common.json {
        let units: Vec<_> =
            units.iter().map(|unit| json!({ "label": unit.label, "cost": unit.cost })).collect();
        println!("{}", json!({ "specification": planned.specification(), "units": units }));
        return Ok(Ending::Done);
    }
    println!("{}", planned.specification());
    println!("# {} units, about {seconds:.0} seconds on one core", units.len());
    for (number, unit) in units.iter().enumerate() {
        println!("# {number:>5}  {}", unit.label);
    }
    Ok(Ending::Done)
}

pub(super) fn shard(
    common: &Common,
    file: &Path,
    share: &str,
    arguments: &RunArguments,
) -> Result<Ending, Trouble> {
    let parsed = share.split_once('/').and_then(|(index, of)| {
        let (index, of) = (index.parse().ok()?, of.parse().ok()?);
        Some((index, of, Share::new(index, of)?))
    });
    let Some((index, of, parsed)) = parsed else {
        return Err(Trouble::with_hint(
            format!("the share `{share}` makes no sense: expected i/N with i from 0 to N - 1"),
            "three machines run 0/3, 1/3 and 2/3",
        ));
    };
    let planned = read_specification(file, settings(common, arguments.seed)?)?;
    let name = format!("{}.shard-{index}-of-{of}", run_name(file)?);
    let folder = RunFolder::open(&arguments.out.join(&name), &planned)?;
    let progress = Progress::new(&name, common.quiet);
    let outcome = esscher_lab::run(&planned, &folder, parsed, &origin(), &progress);
    progress.clear();
    Ok(unfinished(common, folder.path(), &outcome?))
}

/// What is said of a run that is not whole, or of a share.
fn unfinished(common: &Common, folder: &Path, outcome: &Outcome) -> Ending {
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
        println!("{}", json!({ "folder": folder, "outcome": name }));
    } else {
        println!("{}: {text}", folder.display());
    }
    ending
}

/// The run's name: the file's, and its folder's for files called quick.toml or full.toml.
fn run_name(file: &Path) -> Result<String, Trouble> {
    let text = |part: &std::ffi::OsStr| part.to_string_lossy().into_owned();
    let stem = file.file_stem().map(text).unwrap_or_default();
    let name = match (stem.as_str(), file.parent().and_then(Path::file_name).map(text)) {
        ("quick" | "full", Some(parent)) => format!("{parent}-{stem}"),
        _ => stem,
    };
    if name.is_empty() || name.starts_with('.') {
        return Err(Trouble::request(format!("{}: the file's name makes no name for a run", file.display())));
    }
    Ok(name)
}
