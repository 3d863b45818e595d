//! Reproduces the claims of the paper: each a run of its own, and one report on all.

use crate::describe::{Judged, reproduction_document};
use crate::{Claim, Finding, Scale, chosen_claims, claims};
use esscher_lab::{ErrorKind, Experiment, Outcome, RunFolder, RunsFolder, read_finished};
use esscher_questions::conduct::{Error, REPRODUCTIONS, publish};
use esscher_questions::{Planned, Settings};
use std::path::{Path, PathBuf};

/// What is to be reproduced.
#[derive(Debug, Clone)]
pub struct Request {
    /// Only these claims; all for none.
    pub only: Vec<String>,
    /// How much is computed.
    pub scale: Scale,
    /// The folder that gets the reproduction's.
    pub out: PathBuf,
    /// Seed and instruction set.
    pub settings: Settings,
}

/// What was found.
pub struct Reproduction {
    /// The folder with a run per claim.
    pub folder: PathBuf,
    /// The report on all; none if it was stopped.
    pub report: Option<PathBuf>,
    /// The claims that are measured, now or before, in the order of the paper.
    pub findings: Vec<Finding>,
    /// Claims that were not asked for, whose folders hold runs of another specification: the report leaves them out, and says so.
    pub left_out: Vec<&'static Claim>,
    /// The claim during which it was stopped; the same request goes on from there.
    pub stopped_at: Option<&'static Claim>,
}

/// Measures claims one after the other.
///
/// `run` computes a claim's run in its folder under a label for progress; `told` hears of each finding. A claim that is not
/// asked for now but was measured before stays in the report.
///
/// # Errors
/// A claim that does not exist, what `run` and `told` say, what the system refuses.
pub fn reproduce<E: From<Error>>(
    request: &Request,
    mut run: impl FnMut(&str, &Planned, &RunFolder) -> Result<Outcome, E>,
    mut told: impl FnMut(&Finding) -> Result<(), E>,
) -> Result<Reproduction, E> {
    let chosen = chosen_claims(&request.only)?;
    let [quick, full] = REPRODUCTIONS;
    let folder = request.out.join(if request.scale == Scale::Quick { quick } else { full });
    let names: Vec<&str> = claims().iter().map(|claim| claim.name).collect();
    let about_all = RunsFolder::open(&folder, &names).map_err(Error::from)?;
    let planned = claims().iter().map(|claim| claim.experiment(request.scale, request.settings));
    let planned = planned.collect::<Result<Vec<Planned>, _>>().map_err(Error::from)?;
    let (mut judged, mut findings, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    let mut number = 0;
    for (claim, planned) in claims().iter().zip(&planned) {
        let path = folder.join(claim.name);
        if !chosen.iter().any(|one| one.name == claim.name) {
            match measured_before(claim, planned, &path)? {
                Before::Measured(before) => {
                    findings.push(before.finding(Some(path)));
                    judged.push(*before);
                }
                Before::Otherwise => left_out.push(claim),
                Before::Unfinished => {}
            }
            continue;
        }
        number += 1;
        let label = format!("{number}/{} {}", chosen.len(), claim.name);
        let run_folder = RunFolder::open(&path, planned).map_err(Error::from)?;
        let Outcome::Finished { result, provenance, .. } = run(&label, planned, &run_folder)? else {
            return Ok(Reproduction { folder, report: None, findings, left_out, stopped_at: Some(claim) });
        };
        let one = Judged::of(claim, planned, &result, provenance)?;
        publish(&run_folder, &one.document())?;
        let found = one.finding(Some(path));
        told(&found)?;
        findings.push(found);
        judged.push(one);
    }
    let report = folder.join("report.html");
    let page = esscher_report::html(&reproduction_document(&judged, &left_out));
    about_all.write("report.html", page.as_bytes()).map_err(Error::from)?;
    Ok(Reproduction { folder, report: Some(report), findings, left_out, stopped_at: None })
}

/// What the folder of a claim holds that is not asked for now.
enum Before<'a> {
    Measured(Box<Judged<'a>>),
    /// A finished run of another specification: another seed, another question.
    Otherwise,
    Unfinished,
}

/// A claim that is not asked for now and was finished before, if so; one that is damaged would be missed in the report.
fn measured_before<'a>(
    claim: &'static Claim,
    planned: &'a Planned,
    path: &Path,
) -> Result<Before<'a>, Error> {
    let run = match read_finished(path) {
        Ok(run) if run.specification == planned.specification() => run,
        Ok(_) => return Ok(Before::Otherwise),
        Err(error) if error.kind() == ErrorKind::Unfinished => return Ok(Before::Unfinished),
        Err(error) => return Err(error.into()),
    };
    Ok(Before::Measured(Box::new(Judged::of(claim, planned, &run.result, run.provenance)?)))
}
