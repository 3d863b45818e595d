//! Reports for people: where one is, and opening it in the browser.

use crate::arguments::Common;
use crate::ending::{Ending, Trouble};
use crate::output::{path, say_json, say_line, shown, tell};
use crate::terminal::{Line, Style, Terminal};
use esscher_lab::ErrorKind;
use serde_json::json;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

/// Says where a report is, and opens it or says how.
pub(crate) fn present(report: &Path, open: bool) -> Result<Ending, Trouble> {
    let line = Line::new().with(Style::Plain, "report: ");
    let said = say_line(&line.with(Style::Link(absolute(report)), absolute(report).to_string_lossy()))?;
    if open {
        if let Err(why) = in_browser(report) {
            tell(why);
        }
    } else if Terminal::output().width().is_some() {
        say_line(&Line::new().with(Style::Faint, format_args!("to open it: {}", opening(report))))?;
    }
    Ok(said)
}

/// The command that opens a report.
fn opening(report: &Path) -> String {
    let folder = report.parent().map(|folder| folder.to_string_lossy().into_owned()).unwrap_or_default();
    let is_plain = |sign: char| sign.is_alphanumeric() || "-_./\\:".contains(sign);
    let is_report = report.file_name().is_some_and(|name| name == REPORT);
    match is_report && !folder.is_empty() && !folder.starts_with('-') && folder.chars().all(is_plain) {
        true => format!("esscher open {folder}"),
        false => format!("open {} in a browser", shown(report)),
    }
}

/// Where a file is, from the root.
pub(crate) fn absolute(file: &Path) -> PathBuf {
    std::path::absolute(file).unwrap_or_else(|_| file.to_path_buf())
}

const REPORT: &str = "report.html";

/// `esscher open`: the report of a run, or the newest one in the folder of runs.
pub(crate) fn open(common: &Common, run: Option<&Path>, out: &Path) -> Result<Ending, Trouble> {
    let report = match run {
        Some(run) => report_of(run, out)?,
        None => newest(out).ok_or_else(|| {
            let message = format!("there is no report below {}", shown(out));
            let hint = "`esscher reproduce`, `esscher run FILE.toml` and `esscher audit MODEL` make reports";
            Trouble::Failed { kind: ErrorKind::Unfinished, message, hint: Some(hint.to_string()) }
        })?,
    };
    in_browser(&report).map_err(|message| Trouble::Failed { kind: ErrorKind::File, message, hint: None })?;
    if common.json {
        return say_json(&json!({ "report": path(&report), "opened": true }));
    }
    let line = Line::new().with(Style::Plain, "opened ");
    say_line(&line.with(Style::Link(absolute(&report)), absolute(&report).to_string_lossy()))
}

/// The report that a folder, a name in the folder of runs, or a file stands for.
fn report_of(run: &Path, out: &Path) -> Result<PathBuf, Trouble> {
    let is_page = run.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("html"));
    let candidates = [run.to_path_buf(), run.join(REPORT), out.join(run).join(REPORT)];
    let found =
        candidates.into_iter().enumerate().find(|(number, file)| (*number > 0 || is_page) && file.is_file());
    found.map(|(_, file)| file).ok_or_else(|| {
        let message = format!("there is no report in {}", shown(run));
        let hint = "give a run folder with a report.html, or nothing for the newest report";
        Trouble::Failed { kind: ErrorKind::Unfinished, message, hint: Some(hint.to_string()) }
    })
}

/// The report that was written last in a folder of runs.
fn newest(out: &Path) -> Option<PathBuf> {
    let reports = std::fs::read_dir(out).ok()?.flatten().map(|entry| entry.path().join(REPORT));
    let dated = reports.filter_map(|report| {
        let written = report.metadata().ok().filter(std::fs::Metadata::is_file)?.modified().ok()?;
        Some((written, report))
    });
    // Of two of the same moment the name decides, not the order of the folder.
    dated.max().map(|(_, report): (SystemTime, PathBuf)| report)
}

/// How long a refusal of the program that opens files is waited for: it may live as long as the browser.
const REFUSES_WITHIN: Duration = Duration::from_secs(2);

/// Opens a file in the browser; a sentence if that cannot be done.
pub(crate) fn in_browser(file: &Path) -> Result<(), String> {
    let file = absolute(file);
    let (program, before): (&str, &[&str]) = if cfg!(target_os = "macos") {
        ("open", &[])
    } else if cfg!(windows) {
        // No shell: a name may hold signs that one would take for its own.
        ("rundll32", &["url.dll,FileProtocolHandler"])
    } else {
        ("xdg-open", &[])
    };
    let by_hand = || format!("open {} in a browser yourself", shown(&file));
    let mut command = Command::new(program);
    command.args(before).arg(&file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => format!("there is no {program} here that opens a browser: {}", by_hand()),
        _ => format!("{program} cannot be started ({error}): {}", by_hand()),
    })?;
    let began = Instant::now();
    while began.elapsed() < REFUSES_WITHIN {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(_)) => return Err(format!("{program} found no browser: {}", by_hand())),
            Ok(None) => std::thread::sleep(Duration::from_millis(20)),
            Err(_) => break,
        }
    }
    Ok(())
}
