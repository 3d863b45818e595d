//! Something large that many units of work need: made by the first that asks, shared by all.

use crate::conduct::Error;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// A value that is made once. A failure is remembered too: fetching again for every unit would not help.
pub struct LoadOnce<T> {
    made: OnceLock<Result<Arc<T>, Arc<Error>>>,
}

impl<T: Send + Sync> LoadOnce<T> {
    /// Nothing yet.
    pub const fn new() -> Self {
        LoadOnce { made: OnceLock::new() }
    }

    /// The value; whoever asks first makes it while the others wait.
    ///
    /// # Errors
    /// What making it failed with, to all who ask.
    pub fn get(&self, make: impl FnOnce() -> Result<T, Error> + Send) -> Result<Arc<T>, Arc<Error>> {
        // On a thread of its own, with threads of its own for whatever it does in parallel: a worker that waits for parts of
        // the work takes up other units, which would wait here for the very worker that runs them.
        let made = self.made.get_or_init(|| {
            std::thread::scope(|scope| {
                let loading = scope.spawn(|| match rayon::ThreadPoolBuilder::new().build() {
                    Ok(threads) => threads.install(make),
                    Err(_) => make(),
                });
                match loading.join() {
                    Ok(made) => made.map(Arc::new).map_err(Arc::new),
                    Err(panicked) => std::panic::resume_unwind(panicked),
                }
            })
        });
        made.clone()
    }
}

impl<T: Send + Sync> Default for LoadOnce<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for LoadOnce<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.made.get() {
            None => "not yet",
            Some(Ok(_)) => "loaded",
            Some(Err(_)) => "failed",
        };
        write!(formatter, "LoadOnce({state})")
    }
}
