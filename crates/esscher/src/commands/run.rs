//! `esscher run`, `shard`, `merge` and `report`: experiments and their folders.

use super::{compute, origin, settings, sources};
use crate::arguments::{Common, Opening, RunArguments};
use crate::ending::{Ending, Trouble};
use crate::opening::{in_browser, present};
use crate::output::{answer, path, say, say_json, shown};
use crate::terminal::{Terminal, fitted, wrapped};
use esscher_lab::{ErrorKind, Experiment, Outcome, RunFolder, Share};
use esscher_questions::{Download, Planned, conduct, questions};
use esscher_report::Document;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

pub(super) fn run(
    common: &Common,
    file: &Path,
    verbose: bool,
    arguments: &RunArguments,
    opening: &Opening,
) -> Result<Ending, Trouble> {
    let (planned, folder, outcome) = into_folder(common, file, arguments, (Share::WHOLE, String::new()))?;
    let Outcome::Finished { result, computed, kept, provenance } = outcome else {
        return unfinished(common, &folder, &outcome);
    };
    let document = esscher_claims::describe(&planned, &result, &provenance)?.document;
    conduct::publish(&folder, &document)?;
    let (folder, report) = (folder.path(), folder.path().join("report.html"));
    if common.json {
        let answer = json!({
            "folder": path(folder), "outcome": "finished", "units_computed": computed, "units_kept": kept,
            "result": path(&folder.join("result.parquet")), "report": path(&report),
        });
        return say_json(&with_opened(answer, &report, opening));
    }
    say(if verbose { esscher_report::text(&document) } else { beginning(&document) })?;
    if kept > 0 {
        say(format_args!("{computed} units computed, {kept} kept"))?;
    }
    present(&report, opening.open)
}

/// The beginning of a report, its prose as wide as the terminal if that is narrow.
fn beginning(document: &Document) -> String {
    let brief = esscher_report::brief(document);
    let Some(width) = Terminal::output().width() else { return brief };
    let (first, rest) = brief.split_once("\n\n").unwrap_or((&brief, ""));
    let (title, prose) = first.split_once('\n').unwrap_or((first, ""));
    let prose = wrapped(&prose.trim_end().replace('\n', " "), width).join("\n");
    let plot: Vec<String> = rest.split('\n').map(|line| fitted(line, width)).collect();
    [fitted(title, width), prose, String::new(), plot.join("\n")].join("\n")
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
    let name = file.to_str().unwrap_or_default();
    if !file.exists() && questions().iter().any(|question| question.name == name) {
        let message = format!("there is no file `{name}`, but a question of this name");
        let hint = format!(
            "`esscher example {name} > {name}.toml` writes a file to start from, `esscher run {name}.toml` runs it"
        );
        return Err(Trouble::with_hint(ErrorKind::File, message, hint));
    }
    let (asked, sources) = (conduct::read_file(file, settings(common, arguments.seed)?)?, sources(common));
    asked.fetch(&sources)?;
    let planned = asked.plan(&sources)?;
    let name = conduct::name_of_file(file)? + &ending;
    let folder = RunFolder::open(&arguments.out.join(&name), &planned)?;
    let outcome = compute(common, &name, &planned, &folder, share, None)?;
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
    let time =
        if seconds < 1.5 { "about a second".to_string() } else { format!("about {seconds:.0} seconds") };
    say(format_args!("# {} units, {time} on one core", units.len()))?;
    for (number, unit) in units.iter().enumerate() {
        say(format_args!("# {number:>5}  {}", unit.label))?;
    }
    Ok(Ending::Done)
}

/// Merges the shards of one experiment into a single run.
pub(super) fn merge(common: &Common, folders: &[PathBuf], out: Option<PathBuf>) -> Result<Ending, Trouble> {
    let folder = esscher_claims::merge(folders, out, settings(common, None)?, &sources(common), &origin())?;
    if common.json {
        return say_json(&json!({ "folder": path(&folder), "outcome": "finished" }));
    }
    say(format_args!("{} shards merged", folders.len()))?;
    present(&folder.join("report.html"), false)
}

/// Makes a finished run's report again, or compares several runs.
pub(super) fn report(
    common: &Common,
    runs: &[PathBuf],
    out: Option<&Path>,
    force: bool,
    opening: &Opening,
) -> Result<Ending, Trouble> {
    if let Some(trouble) = runs.iter().find_map(|run| folder_of_several(run)) {
        return Err(trouble);
    }
    let report = esscher_claims::report(runs, out, force, settings(common, None)?, &sources(common))?;
    // The page is the answer then, with --json too.
    if out.is_some_and(is_standard_output) {
        return Ok(Ending::Done);
    }
    if common.json {
        return say_json(&with_opened(json!({ "report": path(&report) }), &report, opening));
    }
    present(&report, opening.open)
}

/// Whether a file is what standard output leads to: a report that was written there is the whole answer.
#[cfg(unix)]
fn is_standard_output(file: &Path) -> bool {
    use std::os::{fd::AsFd, unix::fs::MetadataExt};
    let output = std::io::stdout().as_fd().try_clone_to_owned();
    let output = output.and_then(|output| std::fs::File::from(output).metadata());
    let named = std::fs::metadata(file);
    output.is_ok_and(|output| {
        named.is_ok_and(|named| (named.dev(), named.ino()) == (output.dev(), output.ino()))
    })
}

#[cfg(not(unix))]
fn is_standard_output(_: &Path) -> bool {
    false
}

/// What is wrong with a folder that holds several runs, and a report on all of them, in the place of one run.
fn folder_of_several(folder: &Path) -> Option<Trouble> {
    let runs = |names: &[&str]| names.iter().any(|name| folder.join(name).join("spec.toml").is_file());
    let is_run = folder.join("spec.toml").exists();
    let claims: Vec<&str> = esscher_claims::claims().iter().map(|claim| claim.name).collect();
    let (what, hint) = match (is_run, runs(&["heads", "model"]), runs(&claims)) {
        (true, ..) | (false, false, false) => return None,
        (false, true, _) => (
            "an audit",
            "the same `esscher audit` makes its report again, in seconds; its runs are in heads/ and model/",
        ),
        (false, false, true) => (
            "a reproduction",
            "the same `esscher reproduce` makes its report again, in seconds; its runs are the folders in it",
        ),
    };
    let message = format!("{} is the folder of {what}, not of one run", shown(folder));
    Some(Trouble::Failed { kind: ErrorKind::Unfinished, message, hint: Some(hint.to_string()) })
}

/// An answer for machines, with whether the report was opened if that was asked for.
pub(super) fn with_opened(mut answer: Value, report: &Path, opening: &Opening) -> Value {
    if opening.open {
        answer["opened"] = in_browser(report).is_ok().into();
    }
    answer
}
