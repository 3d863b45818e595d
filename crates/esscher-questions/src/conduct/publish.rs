//! Writes a run's document into its folder: report.html and every figure as files.

use super::Error;
use esscher_lab::RunFolder;
use esscher_report::{Block, Document};
use rayon::prelude::*;

/// Writes the report, and SVG, PNG, PDF and CSV of figures and heat maps.
///
/// # Errors
/// What the system refuses, a figure that cannot be drawn.
pub fn publish(folder: &RunFolder, document: &Document) -> Result<(), Error> {
    let blocks = document.sections.iter().flat_map(|section| &section.blocks);
    let drawings: Vec<_> = blocks.filter_map(Block::drawing).collect();
    drawings.into_par_iter().try_for_each(|drawing| -> Result<(), Error> {
        let name = |ending: &str| format!("figures/{}.{ending}", drawing.id());
        folder.write(&name("svg"), esscher_report::svg(drawing).as_bytes())?;
        folder.write(&name("png"), &esscher_report::png(drawing)?)?;
        folder.write(&name("pdf"), &esscher_report::pdf(drawing)?)?;
        folder.write(&name("csv"), esscher_report::csv::drawing(drawing).as_bytes())?;
        Ok(())
    })?;
    Ok(folder.write("report.html", esscher_report::html(document).as_bytes())?)
}
