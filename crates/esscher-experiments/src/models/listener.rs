//! Who hears of what takes long while a specification is read, which has no other way to tell: of a model that is fetched.

use std::sync::OnceLock;

static LISTENER: OnceLock<fn(&str)> = OnceLock::new();

/// From now on this hears of models that specifications fetch; the first listener stays. Without one they are fetched in silence.
pub fn listen(listener: fn(&str)) {
    let _ = LISTENER.set(listener);
}

/// Tells the listener, if there is one.
pub(crate) fn told(what: &str) {
    if let Some(listener) = LISTENER.get() {
        listener(what);
    }
}
