#![doc = include_str!("guide.md")]
// Comparisons are negated on purpose where a NaN has to take the refusing branch.
#![allow(clippy::neg_cmp_op_on_partial_ord)]
// A panic reachable from a public function is a bug; tests may panic.
#![cfg_attr(
    not(test),
    warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::unreachable)
)]

pub mod accuracy;
pub mod attention;
pub mod concentration;
pub mod ending;
pub mod error;
pub mod layers;
pub mod measure;
pub mod monitor;
pub mod numerics;
pub mod prompt;
mod prompt_length;
pub mod quantity;
pub mod regression;
pub mod softmax_weights;
mod visible;

pub use accuracy::{Accuracy, Estimate};
pub use ending::Ending;
pub use error::{Error, Result};
pub use faer::{Mat, MatRef, mat};
pub use monitor::{Completion, Monitor, Quiet, Unwatched};
pub use quantity::{PerQuantity, Quantity};
pub use visible::{steers, visible};

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct ReadmeExamples;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/how-to/own-law.md")]
struct OwnLawExamples;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/how-to/own-task.md")]
struct OwnTaskExamples;
