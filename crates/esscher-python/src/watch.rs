//! Long calls: the work is done on other threads while the calling one shows progress and listens for Ctrl-C.
//!
//! Work that looks at its monitor ends soon after it is asked to. Work that owns what it needs may be left behind instead.

use crate::arrays::Any;
use crate::{ending, nesting, threads};
use esscher_core::Monitor;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often the calling thread looks for signals and reports progress.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// Calls that were asked to stop and wait for the end of their work.
static ENDING_CALLS: AtomicUsize = AtomicUsize::new(0);

/// Whether a call waits for work that it has asked to stop. A user's functions are not called then: between two looks at the
/// monitor there may be thousands of their answers, which nobody will read.
pub(crate) fn is_a_call_ending() -> bool {
    ENDING_CALLS.load(Ordering::Relaxed) > 0
}

/// While it lives, a call is ending.
struct EndingCall;

impl EndingCall {
    fn new() -> Self {
        ENDING_CALLS.fetch_add(1, Ordering::Relaxed);
        EndingCall
    }
}

impl Drop for EndingCall {
    fn drop(&mut self) {
        ENDING_CALLS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What the two sides tell each other.
#[derive(Default)]
pub(crate) struct Watch {
    /// The part that is done, from 0 to 1, as bits.
    fraction: AtomicU64,
    stop: AtomicBool,
}

impl Watch {
    pub(crate) fn report(&self, fraction: f64) {
        self.fraction.store(fraction.to_bits(), Ordering::Relaxed);
    }

    fn fraction(&self) -> f64 {
        f64::from_bits(self.fraction.load(Ordering::Relaxed))
    }

    /// Looks for signals and reports progress; asks the work to stop where one of them raises.
    fn look(&self, py: Python<'_>, progress: Option<&Any<'_>>) -> PyResult<()> {
        let looked = py.check_signals().and_then(|()| match progress {
            // Once Python ends, the work goes on unseen.
            Some(progress) => {
                ending::calling(|| progress.call1((self.fraction(),)).map(drop)).unwrap_or(Ok(()))
            }
            None => Ok(()),
        });
        if looked.is_err() {
            self.stop.store(true, Ordering::Relaxed);
        }
        looked
    }
}

impl Monitor for Watch {
    fn progress(&self, completed: usize, total: usize) {
        self.report(completed as f64 / total.max(1) as f64);
    }

    fn should_stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// The stack of a thread that works: that of a main thread, since users' functions run on it.
const STACK: usize = 8 << 20;

/// Whether this thread is one of a pool: a user's function asks, and no signal comes here. Work elsewhere would wait for the
/// threads of the pool, which may all wait for such work.
fn is_of_a_pool() -> bool {
    rayon::current_thread_index().is_some()
}

/// Does the work, which must end soon after its monitor asks it to stop, with Python's other threads free to run.
///
/// `progress` is called with the part that is done, from 0 to 1, by the calling thread. An exception, of a signal or of
/// `progress`, stops the work; it is raised once the work has ended.
pub(crate) fn watched<T: Send>(
    py: Python<'_>,
    progress: Option<&Any<'_>>,
    work: impl FnOnce(&Watch) -> T + Send,
) -> PyResult<T> {
    let watch = Watch::default();
    if is_of_a_pool() {
        return Ok(py.detach(|| work(&watch)));
    }
    let (sender, receiver) = mpsc::sync_channel::<T>(1);
    let (answer, depth) = (Answer::new(receiver), nesting::depth());
    std::thread::scope(|scope| {
        let seen = &watch;
        let worker = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, move || {
            // The other side waits until it has received.
            let _ = sender.send(nesting::from_depth(depth, || threads::on_all(|| work(seen))));
        })?;
        let mut exception: Option<(PyErr, EndingCall)> = None;
        loop {
            match answer.awaited(py) {
                Ok(Some(result)) => return exception.map_or(Ok(result), |(exception, _)| Err(exception)),
                Ok(None) => {}
                Err(Gone) => panicked(worker.join()),
            }
            if exception.is_none() {
                exception = watch.look(py, progress).err().map(|exception| (exception, EndingCall::new()));
            }
        }
    })
}

/// Does work that owns all it needs. An exception, of a signal or of `progress`, is raised at once: work that does not look
/// at its monitor is left behind and ends on its own, its answer unread.
pub(crate) fn left_behind<T: Send + 'static>(
    py: Python<'_>,
    progress: Option<&Any<'_>>,
    work: impl FnOnce(&Watch) -> T + Send + 'static,
) -> PyResult<T> {
    let watch = Arc::new(Watch::default());
    if is_of_a_pool() {
        return Ok(py.detach(|| work(&watch)));
    }
    let (sender, receiver) = mpsc::sync_channel::<T>(1);
    let (answer, seen, depth) = (Answer::new(receiver), watch.clone(), nesting::depth());
    let worker = std::thread::Builder::new().stack_size(STACK).spawn(move || {
        // Nobody may be there to receive.
        let _ = sender.send(nesting::from_depth(depth, || threads::on_all(|| work(&seen))));
    })?;
    loop {
        match answer.awaited(py) {
            Ok(Some(result)) => return Ok(result),
            Ok(None) => watch.look(py, progress)?,
            Err(Gone) => panicked(worker.join()),
        }
    }
}

/// Work on so many numbers may take longer than a blink.
pub(crate) const LONG: usize = 1 << 18;

/// The size of work whose numbers nobody has counted.
pub(crate) const UNKNOWN: usize = usize::MAX;

/// Does work on this many numbers that owns all it needs: on this thread where it is short, else as [`left_behind`] does.
pub(crate) fn by_size<T: Send + 'static>(
    py: Python<'_>,
    numbers: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    if numbers < LONG { Ok(threads::detached(py, work)) } else { left_behind(py, None, move |_| work()) }
}

/// Does work with one item after the other, on this thread, with a look for signals in between.
///
/// Where a signal raises or the work refuses an item, what was done with the items before it stays done.
pub(crate) fn one_by_one<I: Iterator + Send, E: Send>(
    py: Python<'_>,
    mut items: I,
    mut work: impl FnMut(I::Item) -> Result<(), E> + Send,
) -> PyResult<Result<(), E>> {
    loop {
        let some = || -> Result<bool, E> {
            let began = Instant::now();
            for item in items.by_ref() {
                work(item)?;
                if began.elapsed() > BETWEEN_LOOKS {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        let whole = match threads::detached(py, some) {
            Ok(whole) => whole,
            Err(refused) => return Ok(Err(refused)),
        };
        py.check_signals()?;
        if whole {
            return Ok(Ok(()));
        }
    }
}

/// Where an answer is waited for. Receivers stay on one thread, and the interpreter is given up meanwhile: hence the lock.
struct Answer<T>(Mutex<Receiver<T>>);

/// The work ended without an answer.
struct Gone;

impl<T: Send> Answer<T> {
    fn new(receiver: Receiver<T>) -> Self {
        Answer(Mutex::new(receiver))
    }

    /// The answer, if it comes before the next look.
    fn awaited(&self, py: Python<'_>) -> Result<Option<T>, Gone> {
        let wait = || self.0.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(BETWEEN_LOOKS);
        match py.detach(wait) {
            Ok(answer) => Ok(Some(answer)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(Gone),
        }
    }
}

/// The work panicked: a bug of ours, handed on as one.
fn panicked(ended: std::thread::Result<()>) -> ! {
    match ended {
        Err(panic) => std::panic::resume_unwind(panic),
        Ok(()) => unreachable!("the work ended without a result"),
    }
}
