//! Audits of checkpoints: one program, one module per subject.

mod attention;
mod checkpoints;
mod model;
mod products;
mod real_models;
mod tiny;
mod vocabularies;
mod worlds;
