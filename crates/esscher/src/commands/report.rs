//! `esscher report`: a finished run's report made again, or several runs compared.

use super::{settings, sources};
use crate::arguments::Common;
use crate::ending::{Ending, Trouble};
use crate::output::say;
use esscher_claims as claims;
use serde_json::json;
use std::path::{Path, PathBuf};

pub(super) fn report(common: &Common, runs: &[PathBuf], out: Option<&Path>) -> Result<Ending, Trouble> {
    let report = claims::report(runs, out, settings(common, None)?, &sources(common))?;
    if common.json {
        say(json!({ "report": report }))?;
    } else {
        say(format_args!("report: {}", report.display()))?;
    }
    Ok(Ending::Done)
}
