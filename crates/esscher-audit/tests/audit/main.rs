//! Audits of checkpoints: one program, one module per subject.

mod checkpoints;
mod tiny;
mod vocabularies;
