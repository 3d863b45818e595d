//! Tests of the audit, one program so that it is linked once.

mod judging;
mod looking;
mod replacements;
