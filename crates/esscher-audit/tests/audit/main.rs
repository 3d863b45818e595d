//! Integration tests of the audit: one module per subject.

mod evictions;
mod replacements;
