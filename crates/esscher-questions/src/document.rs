//! The document of a run, from its result and provenance alone.

use crate::planned::Planned;
use esscher_lab::{Failure, Origin, Provenance, Table};
use esscher_report::{Document, literal};

/// The report of one run; an error if the result is of another experiment.
pub fn run_document(planned: &Planned, result: &Table, provenance: &Provenance) -> Result<Document, Failure> {
    Ok(Document {
        title: literal(planned.title()),
        summary: planned.question().summary.to_string(),
        sections: planned.sections(result)?,
        provenance: provenance_lines(planned, provenance),
    })
}

/// The program that computed a run.
pub fn program(origin: &Origin) -> String {
    let commit = origin.commit.as_ref().map_or(String::new(), |commit| format!(", commit {commit}"));
    format!("{} {}{commit}", origin.program, origin.version)
}

/// Where the numbers of a run come from, line by line.
pub fn provenance_lines(planned: &Planned, provenance: &Provenance) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    let mut line = |name: &str, value: String| lines.push((name.to_string(), value));
    if let Some(session) = provenance.sessions.last() {
        line("program", program(&session.origin));
    }
    line("instruction set", provenance.instruction_set.clone());
    line("seed", planned.seed().to_string());
    line("units", provenance.units.to_string());
    line("specification", format!("SHA-256 {}", provenance.specification_sha256));
    if let Some(digest) = &provenance.result_sha256 {
        line("result", format!("SHA-256 {digest}"));
    }
    for session in &provenance.sessions {
        let ended = session.ended.as_deref().unwrap_or("its end, which is not recorded");
        let units = session.units.map_or("units not recorded".to_string(), |units| format!("{units} units"));
        let text = format!(
            "{} to {ended}, {units} on {} ({}, {} threads)",
            session.started, session.host, session.system, session.threads
        );
        line("session", text);
    }
    line("kind", planned.question().name.to_string());
    lines
}

/// With a capital, to begin a heading or a sentence.
pub(crate) fn capitalised(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}
