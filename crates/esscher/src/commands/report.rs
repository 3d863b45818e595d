//! `esscher report`: a finished run's report made again, or several runs compared.

use super::{publish, settings};
use crate::arguments::Common;
use crate::ending::{Ending, Trouble};
use crate::output::say;
use esscher_experiments::Planned;
use esscher_lab::{RunFolder, read_finished};
use esscher_report::Document;
use serde_json::json;
use std::path::{Path, PathBuf};

pub(super) fn report(common: &Common, runs: &[PathBuf], out: Option<&Path>) -> Result<Ending, Trouble> {
    let documents = runs
        .iter()
        .map(|run| Ok((run.display().to_string(), document(common, run)?)))
        .collect::<Result<Vec<(String, Document)>, Trouble>>()?;
    let report = match (documents.as_slice(), out) {
        ([(_, document)], None) => {
            publish::publish(&RunFolder::open_existing(&runs[0])?, document)?;
            runs[0].join("report.html")
        }
        ([(_, document)], Some(out)) => {
            esscher_lab::write_file(out, esscher_report::html(document).as_bytes())?;
            out.to_path_buf()
        }
        (several, out) => {
            let out = out.unwrap_or(Path::new("comparison.html"));
            esscher_lab::write_file(out, esscher_report::html(&esscher_report::compare(several)).as_bytes())?;
            out.to_path_buf()
        }
    };
    if common.json {
        say(json!({ "report": report }))?;
    } else {
        say(format_args!("report: {}", report.display()))?;
    }
    Ok(Ending::Done)
}

/// The document of a finished run.
fn document(common: &Common, run: &Path) -> Result<Document, Trouble> {
    let finished = read_finished(run)?;
    let settings = settings(common, None)?;
    let name = run.join("spec.toml").display().to_string();
    let planned = Planned::read(&name, &finished.specification, settings)?;
    publish::describe(&planned, &finished.result, &finished.provenance, settings)
}
