//! Progress: a bar with an estimate on a terminal, plain lines in logs; and Ctrl-C, which ends a run to be resumed.

use crate::output::tell;
use esscher_core::Monitor;
use esscher_lab::{Account, Unit, Watcher};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// From now on Ctrl-C asks for a stop; a second one kills.
pub(crate) fn stop_on_interrupt() {
    let _ = ctrlc::set_handler(|| {
        if INTERRUPTED.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
        tell(
            "\nstopping after the work at hand; press Ctrl-C again to stop at once (finished units are kept)",
        );
    });
}

/// Shows the progress of one run on standard error.
pub(crate) struct Progress {
    name: String,
    /// On a terminal; elsewhere lines, unless it is quiet.
    bar: Option<ProgressBar>,
    quiet: bool,
    work: Mutex<Work>,
}

#[derive(Default)]
struct Work {
    account: Account,
    began: Option<Instant>,
    last_line: Option<Instant>,
}

impl Work {
    fn begin(plan: &[(usize, Unit, bool)]) -> Self {
        let now = Some(Instant::now());
        Work { account: Account::new(plan), began: now, last_line: now }
    }
}

const BETWEEN_LINES: Duration = Duration::from_secs(5);

impl Progress {
    pub(crate) fn new(name: &str, quiet: bool) -> Self {
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::new(1000);
            let style =
                ProgressStyle::with_template("{prefix:28!} {wide_bar:.cyan/blue} {percent:>3} %  {msg:12}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.set_prefix(name.to_string());
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        Progress { name: name.to_string(), bar, quiet, work: Mutex::new(Work::default()) }
    }

    /// Takes the bar away.
    pub(crate) fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// Notes what was done and shows how far it is.
    fn note(&self, change: impl FnOnce(&mut Work)) {
        let mut work = self.work.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        change(&mut work);
        let done = work.account.fraction();
        let elapsed = work.began.map_or(0.0, |began| began.elapsed().as_secs_f64());
        // What was kept took no time now: the pace is that of the rest.
        let pace = (done - work.account.fraction_when_begun()) / elapsed.max(1e-9);
        let left = Some((1.0 - done) / pace).filter(|_| elapsed > 0.5 && pace > 0.0);
        let left = left.map_or(String::new(), |left| format!("{} left", duration(left)));
        if let Some(bar) = &self.bar {
            bar.set_position((1000.0 * done) as u64);
            bar.set_message(left);
            return;
        }
        let is_due = work.last_line.is_none_or(|last| last.elapsed() >= BETWEEN_LINES);
        if is_due && elapsed > 2.0 && !self.quiet {
            work.last_line = Some(Instant::now());
            let (finished, units) = (work.account.finished(), work.account.units());
            let counted = if units > 1 { format!(", {finished} of {units} units") } else { String::new() };
            let left = if left.is_empty() { left } else { format!(", {left}") };
            tell(format_args!("{}: {:.0} %{counted}{left}", self.name, 100.0 * done));
        }
    }
}

fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 60.0 => format!("{:.0} s", s.max(1.0)),
        s if s < 3600.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

impl Watcher for Progress {
    fn plan(&self, units: &[(usize, Unit, bool)]) {
        self.note(|work| *work = Work::begin(units));
    }

    fn part(&self, unit: usize, fraction: f64) {
        self.note(|work| work.account.advance(unit, fraction));
    }

    fn finished(&self, unit: usize) {
        self.note(|work| work.account.finish(unit));
    }

    fn should_stop(&self) -> bool {
        INTERRUPTED.load(Ordering::Relaxed)
    }
}

/// The monitor of a quick question, which is one unit of work.
impl Monitor for Progress {
    fn progress(&self, completed: usize, total: usize) {
        self.note(|work| {
            if work.account.units() == 0 || completed == 0 {
                *work = Work::begin(&[(0, Unit { label: String::new(), cost: 1.0 }, false)]);
            }
            work.account.advance(0, completed as f64 / total.max(1) as f64);
        });
    }

    fn should_stop(&self) -> bool {
        Watcher::should_stop(self)
    }
}
