//! The audit from outside: one program, a module per subject.

mod attention;
mod model;
mod products;
mod real_models;
mod worlds;
