//! In-context regression: what gradient training does to one attention layer, at any prompt length.
//!
//! A prompt is L examples (x, y) of one task and a query (x_q, 0); the layer is to predict the query's target.
//! See [`LinearRegression`] for the task of the theory and [`RegressionHead`] for what is trained.

mod average;
mod block;
mod covariates;
mod flow;
mod head;
mod high_dimensional;
mod horizon;
mod infinite;
mod landscape;
mod linear_attention;
mod linear_task;
mod response;
mod spectral;

pub use average::{HeadGradient, PointAverage, RiskAverage};
pub use block::{Block, BlockGradient};
pub use covariates::{DrawnCovariates, DrawnLandscape};
pub use flow::{FlowEnding, FlowOptions, FlowRow, Method, Trajectory, flow, flow_through, settle};
pub use head::RegressionHead;
pub use high_dimensional::HighDimensional;
pub use horizon::training_horizon;
pub use infinite::infinite_risk;
pub use landscape::{BlockLandscape, HeadLandscape, Landscape, SpectralLandscape};
pub use linear_attention::{ContextLength, InitialScale, LinearAttention};
pub use linear_task::LinearRegression;
pub use response::{Response, ResponseAt};
pub use spectral::{SpectralGradient, SpectralGroup, SpectralTask};
