//! Tests of the audit, one program so that it is linked once.

mod judging;
mod looking;
//! Integration tests of the audit: one module per subject.

mod replacements;
