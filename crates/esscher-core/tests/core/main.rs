//! The tests of the mathematics, one file per subject: one program, since every program would compile what it uses of faer and rayon again.

mod attention;
mod common;
mod concentration;
mod finite_prompt;
mod layers;
mod linear_attention;
mod measures;
mod opposite;
mod query_average;
mod rates;
mod regression;
mod regression_simulation;
mod rosenbrock;
mod sampled;
mod softmax_weights;
mod statistics;
mod sub_gaussian;
mod training;
