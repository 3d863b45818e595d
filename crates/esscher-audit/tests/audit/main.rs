//! Integration tests of the audit: one module per subject.

mod replacements;
