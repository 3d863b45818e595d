//! Long calls: the work is done on other threads while the calling one shows progress and listens for Ctrl-C.

use crate::arrays::Any;
use crate::{ending, threads};
use esscher_core::Monitor;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

/// How often the calling thread looks for signals and reports progress.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

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
}

impl Monitor for Watch {
    fn progress(&self, completed: usize, total: usize) {
        self.report(completed as f64 / total.max(1) as f64);
    }

    fn should_stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
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
    let (sender, receiver) = mpsc::sync_channel::<T>(1);
    // Receivers stay on one thread, and the interpreter is given up while waiting: hence the lock.
    let receiver = std::sync::Mutex::new(receiver);
    let wait = |patience: Duration| {
        receiver.lock().unwrap_or_else(std::sync::PoisonError::into_inner).recv_timeout(patience)
    };
    std::thread::scope(|scope| {
        let seen = &watch;
        let worker = scope.spawn(move || {
            // The other side waits until it has received.
            let _ = sender.send(threads::on_all(|| work(seen)));
        });
        let mut exception: Option<PyErr> = None;
        loop {
            match py.detach(|| wait(BETWEEN_LOOKS)) {
                Ok(result) => return exception.map_or(Ok(result), Err),
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    // The work panicked: a bug of ours, handed on as one.
                    match worker.join() {
                        Err(panic) => std::panic::resume_unwind(panic),
                        Ok(()) => unreachable!("the work ended without a result"),
                    }
                }
            }
            if exception.is_none() {
                let looked = py.check_signals().and_then(|()| match progress {
                    Some(progress) => {
                        ending::calling(py, || progress.call1((watch.fraction(),)).map(drop))
                    }
                    None => Ok(()),
                });
                if let Err(raised) = looked {
                    watch.stop.store(true, Ordering::Relaxed);
                    exception = Some(raised);
                }
            }
        }
    })
}
