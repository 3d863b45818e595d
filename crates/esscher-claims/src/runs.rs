//! Run folders that are there: merged from shards, read, reported on, compared.

use crate::{Described, describe};
use esscher_lab::{
    FinishedRun, Origin, Replace, RunFolder, read_finished, run_of_shard, specification, specification_of,
    write_file,
};
use esscher_questions::conduct::{Error, publish};
use esscher_questions::{Asked, Planned, Settings, Sources};
use esscher_report::Compared;
use std::path::{Path, PathBuf};

/// The report in a run's folder.
const REPORT: &str = "report.html";

/// Merges the shards of one experiment and publishes the run; its folder, by default the shards' name without its share.
///
/// # Errors
/// Shards that are damaged, foreign or incomplete; what the system refuses.
pub fn merge(
    folders: &[PathBuf],
    out: Option<PathBuf>,
    settings: Settings,
    sources: &Sources,
    origin: &Origin,
) -> Result<PathBuf, Error> {
    let first = folders.first().ok_or(Error::NoFolders)?;
    let planned = planned(first, &specification_of(first)?, settings, sources)?;
    let out = match out {
        Some(out) => out,
        None => {
            run_of_shard(first).ok_or_else(|| Error::NotNamedLikeAShard { folder: first.to_path_buf() })?
        }
    };
    let (folder, result, provenance) = esscher_lab::merge(&planned, folders, &out, origin)?;
    publish(&folder, &describe(&planned, &result, &provenance)?.document)?;
    Ok(folder.path().to_path_buf())
}

/// Reads a finished run and describes it.
///
/// # Errors
/// No run there, an unfinished or a damaged one.
pub fn read_run(
    folder: &Path,
    settings: Settings,
    sources: &Sources,
) -> Result<(Planned, FinishedRun, Described), Error> {
    let finished = read_finished(folder)?;
    let planned = planned(folder, &finished.specification, settings, sources)?;
    let described = describe(&planned, &finished.result, &finished.provenance)?;
    Ok((planned, finished, described))
}

/// Makes the report of one run again, or compares several; the file, by default report.html in the run's folder and
/// comparison.html for several. `force` replaces a file that is no report of ours.
///
/// # Errors
/// No run there, an unfinished or a damaged one; a file of somebody else or of a run in the place of the report; what the system
/// refuses.
pub fn report(
    runs: &[PathBuf],
    out: Option<&Path>,
    force: bool,
    settings: Settings,
    sources: &Sources,
) -> Result<PathBuf, Error> {
    let documents = runs
        .iter()
        .map(|run| {
            let (_, finished, described) = read_run(run, settings, sources)?;
            let settings = specification::settings(&finished.specification);
            Ok(Compared { name: run.display().to_string(), settings, document: described.document })
        })
        .collect::<Result<Vec<Compared>, Error>>()?;
    let (document, out) = match (documents.as_slice(), out) {
        ([], _) => return Err(Error::NoFolders),
        ([Compared { document, .. }], out) if out.is_none_or(|out| is_own_report(out, &runs[0])) => {
            publish(&RunFolder::open_existing(&runs[0])?, document)?;
            return Ok(runs[0].join(REPORT));
        }
        ([Compared { document, .. }], Some(out)) => (document.clone(), out),
        (several, out) => (esscher_report::compare(several), out.unwrap_or(Path::new("comparison.html"))),
    };
    let replace = if force { Replace::Any } else { Replace::Marked(esscher_report::BEGINNING) };
    write_file(out, esscher_report::html(&document).as_bytes(), replace)?;
    Ok(out.to_path_buf())
}

/// Whether a path is that of the run's own report.
fn is_own_report(out: &Path, run: &Path) -> bool {
    // A name alone lies in the folder at hand.
    let place = |folder: &Path| Path::new(".").join(folder).canonicalize().ok();
    out.file_name().is_some_and(|name| name == REPORT)
        && place(run).is_some_and(|run| out.parent().and_then(place) == Some(run))
}

/// The experiment of a run folder.
fn planned(
    folder: &Path,
    specification: &str,
    settings: Settings,
    sources: &Sources,
) -> Result<Planned, Error> {
    let file = folder.join("spec.toml").display().to_string();
    let asked = Asked::read(&file, specification, settings).map_err(|mut mistake| {
        // A finished run is not to be edited.
        if mistake.key == "kind" && folder.join("result.parquet").is_file() {
            let advice =
                "the numbers in its result.parquet stay readable; for a report, run the specification again";
            mistake.hint = Some(match mistake.hint {
                Some(hint) => format!("{advice} and {hint} there"),
                None => advice.to_string(),
            });
        }
        mistake
    })?;
    Ok(asked.plan(sources)?)
}
