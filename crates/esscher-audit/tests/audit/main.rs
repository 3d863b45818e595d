//! Tests of the audit, one program so that it is linked once.

mod any_bytes;
mod attention;
mod checkpoints;
mod dumps;
mod evictions;
mod judging;
mod looking;
mod model;
mod products;
mod real_models;
mod replaced_models;
mod replacements;
mod tiny;
mod unwatched;
mod vocabularies;
mod worlds;
