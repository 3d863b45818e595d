//! In-context regression: what gradient training does to one attention layer, at any prompt length.
//!
//! A prompt is L examples (x, y) of one task and a query (x_q, 0); the layer is to predict the query's target.
//! See [`LinearRegression`] for the task of the theory and [`RegressionHead`] for what is trained.

mod head;
mod linear_task;

pub use head::RegressionHead;
pub use linear_task::LinearRegression;
