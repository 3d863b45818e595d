//! `esscher merge`: the shards of one experiment become a single run.

use super::{origin, publish, settings};
use crate::arguments::Common;
use crate::ending::{Ending, Trouble};
use esscher_experiments::Planned;
use esscher_lab::{RunFolder, specification_of};
use serde_json::json;
use std::path::PathBuf;

pub(super) fn merge(common: &Common, folders: &[PathBuf], out: Option<PathBuf>) -> Result<Ending, Trouble> {
    let first = &folders[0];
    let text = specification_of(first)?;
    let settings = settings(common, None)?;
    let planned = Planned::read(&first.join("spec.toml").display().to_string(), &text, settings)?;
    let out = match out {
        Some(out) => out,
        None => {
            let name = first.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let Some((name, _)) = name.split_once(".shard-") else {
                return Err(Trouble::with_hint(
                    format!("{} is not named like a shard", first.display()),
                    "say where the merged run goes with --out FOLDER",
                ));
            };
            first.with_file_name(name)
        }
    };
    let folder = RunFolder::open(&out, &planned)?;
    let (result, provenance) = esscher_lab::merge(&planned, folders, &folder, &origin())?;
    let document = publish::describe(&planned, &result, &provenance, settings)?;
    publish::publish(&folder, &document)?;
    if common.json {
        println!("{}", json!({ "folder": folder.path(), "outcome": "finished" }));
    } else {
        println!("{} shards merged; report: {}", folders.len(), folder.path().join("report.html").display());
    }
    Ok(Ending::Done)
}
