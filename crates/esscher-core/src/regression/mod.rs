//! In-context regression: what gradient training does to one attention layer, at any prompt length.
//!
//! A prompt is L examples (x, y) of one task and a query (x_q, 0); the layer is to predict the query's target.
//! See [`LinearRegression`] for the task of the theory and [`RegressionHead`] for what is trained.

mod head;
mod high_dimensional;
mod linear_attention;
mod linear_flow;
mod linear_task;

pub use head::RegressionHead;
pub use high_dimensional::HighDimensional;
pub use linear_attention::{BlockGradient, ContextLength, InitialScale, LinearAttention};
pub use linear_flow::{LinearBlock, LinearFlow, LinearFlowOptions, Stationary};
pub use linear_task::LinearRegression;
