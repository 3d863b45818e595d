//! Progress: a bar with an estimate on a terminal, plain lines in logs; and signals, which end a run to be resumed.

use crate::arguments::Common;
use crate::ending::{Ending, Trouble};
use crate::output::{tell, tell_end};
use crate::terminal::Terminal;
use esscher_core::{Monitor, visible};
use esscher_lab::{Account, Unit, Watcher};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

/// What a signal finds the program doing: anything that may end at any moment, or units of a run, which are asked to stop first.
static STATE: AtomicU8 = AtomicU8::new(FREE);
const FREE: u8 = 0;
const COMPUTING: u8 = 1;
/// Computing, and asked to stop; that stays so until the program ends.
const STOPPING: u8 = 2;

/// Goes from one state to another if it is in the first; whether it was.
fn change(from: u8, to: u8) -> bool {
    STATE.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst).is_ok()
}

/// From now on Ctrl-C, SIGTERM and SIGHUP ask units that are being computed to stop; at any other time, and when they come
/// again, they end the program.
pub(crate) fn listen_to_signals(json: bool) {
    let is_ignored = hangups_are_ignored();
    write_up_to_the_limit();
    let _ = ctrlc::set_handler(move || {
        if std::io::stderr().is_terminal() {
            // Below the line with ^C.
            tell("");
        }
        if !change(COMPUTING, STOPPING) {
            esscher_questions::conduct::abandon();
            tell_end(&Trouble::stopped_at_once(), json);
            std::process::exit(Ending::Interrupted.number().into());
        }
        if !json {
            tell(
                "stopping after the work at hand; press Ctrl-C again to stop at once (finished units are kept)",
            );
        }
    });
    if is_ignored {
        ignore_hangups();
    }
}

/// Whether SIGHUP does nothing, as `nohup` wants it for a run that shall outlive its terminal.
#[cfg(unix)]
fn hangups_are_ignored() -> bool {
    // SAFETY: a question, into memory of our own.
    #[allow(unsafe_code)]
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGHUP, std::ptr::null(), &mut now) == 0 && now.sa_sigaction == libc::SIG_IGN
    }
}

/// Takes SIGHUP back from the handler that was set for all signals.
#[cfg(unix)]
fn ignore_hangups() {
    // SAFETY: to ignore a signal runs nothing of ours.
    #[allow(unsafe_code)]
    unsafe {
        libc::signal(libc::SIGHUP, libc::SIG_IGN);
    }
}

/// A file beyond the limit of the system (`ulimit -f`) is an error of that write, not the end of the program.
#[cfg(unix)]
fn write_up_to_the_limit() {
    // SAFETY: to ignore a signal runs nothing of ours.
    #[allow(unsafe_code)]
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}

#[cfg(not(unix))]
fn write_up_to_the_limit() {}

#[cfg(not(unix))]
fn hangups_are_ignored() -> bool {
    false
}

#[cfg(not(unix))]
fn ignore_hangups() {}

/// What is done before and after a run that is one of several: costs, and the seconds that passed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Whole {
    /// The cost of what was computed before, and the seconds that it took.
    pub(crate) before: f64,
    pub(crate) seconds: f64,
    /// The cost of what comes after.
    pub(crate) after: f64,
}

impl Whole {
    /// The seconds that are left for all, with this much done of the present run and this much of it left, in so many seconds.
    ///
    /// Costs are seconds on one core of a machine like ours, so that the first guess is that all cores are busy; what was
    /// seen since weighs more with every second.
    fn left(self, done: f64, left: f64, elapsed: f64) -> f64 {
        const WEIGHT: f64 = 3.0;
        let cores = rayon::current_num_threads() as f64;
        let pace = (self.before + done + cores * WEIGHT) / (self.seconds + elapsed + WEIGHT);
        (left + self.after) / pace
    }
}

/// Shows the progress of one run on standard error.
pub(crate) struct Progress {
    name: String,
    whole: Option<Whole>,
    /// On a terminal; elsewhere lines, unless it is quiet.
    bar: Option<ProgressBar>,
    quiet: bool,
    work: Mutex<Work>,
}

#[derive(Default)]
struct Work {
    account: Account,
    /// In seconds on one core.
    cost: f64,
    began: Option<Instant>,
    last_line: Option<Instant>,
}

impl Work {
    fn begin(plan: &[(usize, Unit, bool)]) -> Self {
        let now = Some(Instant::now());
        let cost = plan.iter().map(|(_, unit, _)| unit.cost).sum();
        Work { account: Account::new(plan), cost, began: now, last_line: now }
    }
}

const BETWEEN_LINES: Duration = Duration::from_secs(5);

impl Progress {
    pub(crate) fn new(name: &str, common: &Common) -> Self {
        let (name, quiet) = (visible(name), !common.shows_progress());
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::new(1000);
            let blocks =
                if Terminal::errors().has_colours() { "{wide_bar:.cyan/blue}" } else { "{wide_bar}" };
            let style =
                ProgressStyle::with_template(&format!("{{prefix:28}} {blocks} {{percent:>3}} %  {{msg:12}}"));
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.set_prefix(name.clone());
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        Progress { name, whole: None, bar, quiet, work: Mutex::new(Work::default()) }
    }

    /// The progress of a run that is one of several.
    pub(crate) fn of_one(name: &str, common: &Common, whole: Option<Whole>) -> Self {
        Progress { whole, ..Progress::new(name, common) }
    }

    /// Takes the bar away: nothing is computed any more. Whether a stop was asked for.
    pub(crate) fn end(&self) -> bool {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        change(COMPUTING, FREE);
        Watcher::should_stop(self)
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
        let mut left = match left {
            // A plan is a guess: at its end nobody knows how long the rest takes.
            Some(_) if done > NEARLY => "almost done".to_string(),
            Some(left) => format!("{} left", duration(left)),
            None => String::new(),
        };
        if let Some(whole) = self.whole.filter(|whole| whole.after > 0.0) {
            let computed = (done - work.account.fraction_when_begun()) * work.cost;
            let for_all = duration(whole.left(computed, (1.0 - done) * work.cost, elapsed));
            let comma = if left.is_empty() { "" } else { ", " };
            left += &format!("{comma}{for_all} for all");
        }
        let done = done.min(NEARLY);
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
            tell(format_args!("{}: {:.0} %{counted}{left}", self.name, (100.0 * done).floor()));
        }
    }
}

/// Nothing is done before it has ended.
const NEARLY: f64 = 0.99;

/// A time as people say it.
pub(crate) fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 59.5 => format!("{:.0} s", s.max(1.0)),
        s if s < 3570.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

impl Watcher for Progress {
    fn plan(&self, units: &[(usize, Unit, bool)]) {
        change(FREE, COMPUTING);
        self.note(|work| *work = Work::begin(units));
    }

    fn part(&self, unit: usize, fraction: f64) {
        self.note(|work| work.account.advance(unit, fraction));
    }

    fn finished(&self, unit: usize) {
        self.note(|work| work.account.finish(unit));
    }

    fn should_stop(&self) -> bool {
        STATE.load(Ordering::Relaxed) == STOPPING
    }
}

/// The monitor of a quick question, which is one unit of work; there is nothing to keep, so that a signal ends it at once.
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
