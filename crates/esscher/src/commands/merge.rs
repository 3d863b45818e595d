//! `esscher merge`: the shards of one experiment become a single run.

use super::{origin, settings, sources};
use crate::arguments::Common;
use crate::ending::{Ending, Trouble};
use crate::output::say;
use esscher_claims as claims;
use serde_json::json;
use std::path::PathBuf;

pub(super) fn merge(common: &Common, folders: &[PathBuf], out: Option<PathBuf>) -> Result<Ending, Trouble> {
    let folder = claims::merge(folders, out, settings(common, None)?, &sources(common), &origin())?;
    if common.json {
        say(json!({ "folder": folder, "outcome": "finished" }))?;
    } else {
        say(format_args!(
            "{} shards merged; report: {}",
            folders.len(),
            folder.join("report.html").display()
        ))?;
    }
    Ok(Ending::Done)
}
