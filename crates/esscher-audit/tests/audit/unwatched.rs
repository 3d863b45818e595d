//! The outputs of replacements and evictions that nobody stops.

pub(crate) mod offline {
    use esscher_audit::head::Head;
    use esscher_audit::readers::Readers;
    use esscher_audit::replacement::{Replacement, offline};
    use esscher_core::Unwatched;

    pub(crate) fn outputs(replacement: &Replacement, head: &Head<'_>) -> Vec<f32> {
        offline::outputs(replacement, head, &Unwatched).unwrap()
    }

    pub(crate) fn outputs_read_by(replacement: &Replacement, head: &Head<'_>, readers: &Readers) -> Vec<f32> {
        offline::outputs_read_by(replacement, head, readers, &Unwatched).unwrap()
    }
}

pub(crate) mod streaming {
    use esscher_audit::head::Head;
    use esscher_audit::readers::Readers;
    use esscher_audit::replacement::{Replacement, streaming};
    use esscher_core::Unwatched;

    pub(crate) fn outputs(replacement: &Replacement, heads: &[Head<'_>], readers: &Readers) -> Vec<Vec<f32>> {
        streaming::outputs(replacement, heads, readers, &Unwatched).unwrap()
    }
}

pub(crate) mod eviction {
    use esscher_audit::eviction::{self, Eviction};
    use esscher_audit::head::Head;
    use esscher_audit::readers::Readers;
    use esscher_core::Unwatched;

    pub(crate) fn outputs(eviction: &Eviction, heads: &[Head<'_>], readers: &Readers) -> Vec<Vec<f32>> {
        eviction::outputs(eviction, heads, readers, &Unwatched).unwrap()
    }
}
