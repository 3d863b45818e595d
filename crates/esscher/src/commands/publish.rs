//! Describes a finished run and writes the document into its folder: report.html and every figure as files.

use crate::ending::Trouble;
use esscher_experiments::{Judged, Planned, Scale, Settings, claim_document, claims, run_document};
use esscher_lab::{Error, Experiment, Provenance, RunFolder, Table};
use esscher_report::{Block, Document};
use rayon::prelude::*;

/// Writes the report and the figures' SVG, PNG, PDF and CSV.
pub(super) fn publish(folder: &RunFolder, document: &Document) -> Result<(), Trouble> {
    let figures: Vec<_> = document
        .sections
        .iter()
        .flat_map(|section| &section.blocks)
        .filter_map(|block| if let Block::Figure(figure) = block { Some(figure) } else { None })
        .collect();
    figures.par_iter().try_for_each(|figure| -> Result<(), Trouble> {
        let name = |ending: &str| format!("figures/{}.{ending}", figure.id);
        let drawn = |error: esscher_report::DrawingError| Trouble::Other(error.into());
        folder.write(&name("svg"), esscher_report::svg(figure).as_bytes())?;
        folder.write(&name("png"), &esscher_report::png(figure).map_err(drawn)?)?;
        folder.write(&name("pdf"), &esscher_report::pdf(figure).map_err(drawn)?)?;
        folder.write(&name("csv"), esscher_report::csv::figure(figure).as_bytes())?;
        Ok(())
    })?;
    folder.write("report.html", esscher_report::html(document).as_bytes())?;
    Ok(())
}

/// The document of a run: a claim's if its specification is that of a claim.
pub(super) fn describe(
    planned: &Planned,
    result: &Table,
    provenance: &Provenance,
    settings: Settings,
) -> Result<Document, Trouble> {
    let settings = Settings { seed: Some(planned.seed()), ..settings };
    let claim = claims().iter().find(|claim| {
        [Scale::Quick, Scale::Full].into_iter().any(|scale| {
            let ours = claim.experiment(scale, settings);
            ours.is_ok_and(|ours| ours.specification() == planned.specification())
        })
    });
    let document = match claim {
        Some(claim) => (claim.judge)(result).map(|judgement| {
            claim_document(&Judged { claim, planned, judgement, provenance: provenance.clone() })
        }),
        None => run_document(planned, result, provenance),
    };
    document.map_err(|error| Trouble::Lab(Error::Result(error)))
}
