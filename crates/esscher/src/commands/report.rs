//! `esscher report`: a finished run's report made again, or several runs compared.

use super::{publish, settings};
use crate::arguments::Common;
use crate::ending::{Ending, Trouble};
use esscher_experiments::Planned;
use esscher_lab::{RunFolder, read_finished};
use esscher_report::Document;
use serde_json::json;
use std::path::{Path, PathBuf};

pub(super) fn report(common: &Common, runs: &[PathBuf], out: &Path) -> Result<Ending, Trouble> {
    if let [run] = runs {
        let (planned, document) = document(common, run)?;
        let folder = RunFolder::open(run, &planned)?;
        publish::publish(&folder, &document)?;
        say(common, &run.join("report.html"));
        return Ok(Ending::Done);
    }
    let documents = runs
        .iter()
        .map(|run| Ok((run.display().to_string(), document(common, run)?.1)))
        .collect::<Result<Vec<(String, Document)>, Trouble>>()?;
    let comparison = esscher_report::compare(&documents);
    esscher_lab::write_file(out, esscher_report::html(&comparison).as_bytes())?;
    say(common, out);
    Ok(Ending::Done)
}

fn say(common: &Common, report: &Path) {
    if common.json {
        println!("{}", json!({ "report": report }));
    } else {
        println!("report: {}", report.display());
    }
}

/// The document of a finished run.
fn document(common: &Common, run: &Path) -> Result<(Planned, Document), Trouble> {
    let finished = read_finished(run)?;
    let settings = settings(common, None)?;
    let name = run.join("spec.toml").display().to_string();
    let planned = Planned::read(&name, &finished.specification, settings)?;
    let document = publish::describe(&planned, &finished.result, &finished.provenance, settings)?;
    Ok((planned, document))
}
