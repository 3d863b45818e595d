//! Calls into the `tokenizers` library, whose panics become nothing: a refusal when a text is cut, no text when tokens are shown.
//!
//! Release 0.23.2 panics where a regular expression of its normalisers matches empty text, which no look at the file can tell; what a
//! look can tell, [`soundness`](super::soundness) refuses. A panic of that library does not end the program; what takes all memory does, and [`soundness`](super::soundness) bounds that.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

/// What to do about a panic.
pub(super) const PROBLEM: &str = "the `tokenizers` library fails on it; check that no normaliser or pre-tokeniser matches empty text, or \
                                  record queries, keys and values as a dump";

thread_local! {
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// What the call gives, or nothing if it panicked; its message is not shown, those of other threads are.
pub(super) fn guarded<T>(call: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |panic| {
            if !IS_GUARDED.get() {
                usual(panic);
            }
        }));
    });
    let was_guarded = IS_GUARDED.replace(true);
    // What was half done lies in caches of the library alone, which pass over what they cannot lock.
    let found = catch_unwind(AssertUnwindSafe(call));
    IS_GUARDED.set(was_guarded);
    found.ok()
}
