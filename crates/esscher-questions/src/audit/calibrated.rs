//! What calibration texts told, which all units of a process share: computed by the first that asks, unless it is stopped.

use super::subject::Subject;
use esscher_audit::calibration::{Calibration, calibrate};
use esscher_core::{Monitor, Quiet};
use esscher_lab::Failure;
use std::sync::{Arc, Mutex, PoisonError};

/// The texts that calibrate, and what they told.
pub(crate) struct Calibrated {
    texts: Vec<Vec<u32>>,
    found: Shared<Calibration>,
}

impl Calibrated {
    pub(crate) fn by(texts: Vec<Vec<u32>>) -> Self {
        Calibrated { texts, found: Shared::default() }
    }

    /// What the texts tell; nothing if the monitor asked to stop, and then the next to ask computes it.
    pub(crate) fn get(
        &self,
        subject: &Subject,
        monitor: &dyn Monitor,
    ) -> Result<Option<Arc<Calibration>>, Failure> {
        self.found.get(monitor, |monitor| Ok(calibrate(&subject.model, &self.texts, monitor)?))
    }
}

/// Something that takes long to compute and that all units need.
pub(crate) struct Shared<T> {
    found: Mutex<Option<Arc<T>>>,
}

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Shared { found: Mutex::new(None) }
    }
}

impl<T: Send + Sync> Shared<T> {
    /// What `work` gives; nothing if the monitor asked to stop, and then the next to ask computes it.
    pub(crate) fn get(
        &self,
        monitor: &dyn Monitor,
        work: impl FnOnce(&dyn Monitor) -> Result<Option<T>, Failure> + Send,
    ) -> Result<Option<Arc<T>>, Failure> {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*found {
            return Ok(Some(known.clone()));
        }
        // On threads of its own: a worker that waits for parts of this would take up another unit, which would wait here for it.
        // Progress of what is shared is not that of the unit.
        let quiet = Quiet(monitor);
        let work = || work(&quiet);
        let made = std::thread::scope(|scope| {
            let working = scope.spawn(move || match rayon::ThreadPoolBuilder::new().build() {
                Ok(threads) => threads.install(work),
                Err(_) => work(),
            });
            working.join()
        });
        let made = match made {
            Ok(made) => made?.map(Arc::new),
            Err(panicked) => std::panic::resume_unwind(panicked),
        };
        found.clone_from(&made);
        Ok(made)
    }
}
