//! How a long call tells its progress and learns that it should stop.

/// Watches a long call. The core does no output: a door (command line, notebook) implements this.
///
/// Monitors are shared between threads, hence `Sync`. Stopping is never an error: the call returns
/// what was completed and says so.
pub trait Monitor: Sync {
    /// Called now and then with the number of completed steps out of `total`.
    fn progress(&self, completed: usize, total: usize);
    /// Asked between steps; `true` makes the call return early with what it has.
    fn should_stop(&self) -> bool;
}

/// Watches nothing and never stops: the monitor for short calls and tests.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwatched;

impl Monitor for Unwatched {
    fn progress(&self, _completed: usize, _total: usize) {}
    fn should_stop(&self) -> bool {
        false
    }
}

/// Hands on the wish to stop and keeps progress to itself: for a short part of a long call, whose steps are not those
/// that are counted.
pub struct Quiet<'a>(pub &'a dyn Monitor);

impl Monitor for Quiet<'_> {
    fn progress(&self, _completed: usize, _total: usize) {}
    fn should_stop(&self) -> bool {
        self.0.should_stop()
    }
}

/// Whether a long call ran to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completion {
    /// Everything asked for was computed.
    Finished,
    /// The monitor asked to stop: the result holds this many of `total` steps.
    Stopped {
        /// Steps that were completed and are in the result.
        completed: usize,
        /// Steps that were asked for.
        total: usize,
    },
}
