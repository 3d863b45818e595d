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

pub(crate) fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// Shows the progress of one run on standard error.
pub(crate) struct Progress {
    name: String,
    display: Display,
    work: Mutex<Work>,
}

enum Display {
    Bar(ProgressBar),
    Lines,
    Nothing,
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
        let display = if quiet {
            Display::Nothing
        } else if std::io::stderr().is_terminal() {
            let bar = ProgressBar::new(1000);
            let style =
                ProgressStyle::with_template("{prefix:28!} {wide_bar:.cyan/blue} {percent:>3} %  {msg:12}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.set_prefix(name.to_string());
            bar.enable_steady_tick(Duration::from_millis(200));
            Display::Bar(bar)
        } else {
            Display::Lines
        };
        Progress { name: name.to_string(), display, work: Mutex::new(Work::default()) }
    }

    /// Takes the bar away.
    pub(crate) fn clear(&self) {
        if let Display::Bar(bar) = &self.display {
            bar.finish_and_clear();
        }
    }

    fn show(&self, work: &mut Work) {
        let done = work.account.fraction();
        let elapsed = work.began.map_or(0.0, |began| began.elapsed().as_secs_f64());
        // What was kept took no time now: the pace is that of the rest.
        let pace = (done - work.account.fraction_when_begun()) / elapsed.max(1e-9);
        let left = if elapsed > 0.5 && pace > 0.0 { Some((1.0 - done) / pace) } else { None };
        let left = left.map_or(String::new(), |left| format!("{} left", duration(left)));
        match &self.display {
            Display::Bar(bar) => {
                bar.set_position((1000.0 * done) as u64);
                bar.set_message(left);
            }
            Display::Lines => {
                let due = work.last_line.is_none_or(|last| last.elapsed() >= BETWEEN_LINES);
                if due && elapsed > 2.0 {
                    work.last_line = Some(Instant::now());
                    let percent = 100.0 * done;
                    let (finished, units) = (work.account.finished(), work.account.units());
                    let counted =
                        if units > 1 { format!(", {finished} of {units} units") } else { String::new() };
                    let left = if left.is_empty() { left } else { format!(", {left}") };
                    tell(format_args!("{}: {percent:.0} %{counted}{left}", self.name));
                }
            }
            Display::Nothing => {}
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
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
        let mut work = self.lock();
        *work = Work::begin(units);
        self.show(&mut work);
    }

    fn part(&self, unit: usize, fraction: f64) {
        let mut work = self.lock();
        work.account.advance(unit, fraction);
        self.show(&mut work);
    }

    fn finished(&self, unit: usize) {
        let mut work = self.lock();
        work.account.finish(unit);
        self.show(&mut work);
    }

    fn should_stop(&self) -> bool {
        interrupted()
    }
}

/// The monitor of a quick question, which is one unit of work.
impl Monitor for Progress {
    fn progress(&self, completed: usize, total: usize) {
        let mut work = self.lock();
        if work.account.units() == 0 || completed == 0 {
            *work = Work::begin(&[(0, Unit { label: String::new(), cost: 1.0 }, false)]);
        }
        work.account.advance(0, completed as f64 / total.max(1) as f64);
        self.show(&mut work);
    }

    fn should_stop(&self) -> bool {
        interrupted()
    }
}
