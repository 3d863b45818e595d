//! In-context regression: what gradient training does to one attention layer, at any prompt length.
//!
//! A prompt is L examples (x, y) of one task and a query (x_q, 0); the layer is to predict the query's target.
//!
//! | question | answer |
//! |---|---|
//! | which task? | [`LinearRegression`], the theory's; [`SpectralTask`], the same by eigenvalues; [`tasks`], any law of prompts |
//! | which layer, which length? | [`Response`] for exact risks, [`RegressionLayer`] for simulation |
//! | what risk, what gradient? | [`SpectralTask::risk_and_gradient`] and [`Block`]: nothing sampled; [`RiskAverage`]: full matrices, exact in the tokens; [`LinearAttention`]: closed forms; [`RiskSimulation`]: anything |
//! | where does training go? | [`train`] as in the paper; [`flow`] on any [`Landscape`]; [`Descent`] with fresh prompts |
//! | how long must prompts be? | [`training_horizon`] |
//! | what could be had? | [`LinearRegression::noise_floor`], [`bayes_at_length`], [`Baseline`] |
//!
//! Several heads share their prompt. Exact: one head, and a pair of opposite heads ([`Response::opposite_heads`]).
//! Any other heads are simulated ([`RegressionLayer::heads`] in a [`RiskSimulation`] or a [`Descent`]).

mod attend;
pub mod authors;
mod average;
mod baselines;
mod block;
mod closed_form;
mod covariates;
mod descent;
mod flow;
mod head;
mod high_dimensional;
mod horizon;
mod landscape;
mod layer;
mod linear_attention;
mod linear_task;
mod projected;
mod response;
mod simulation;
mod spectral;
pub mod tasks;
mod training;
mod valley;

pub use average::{HeadGradient, PointAverage, RiskAverage};
pub use baselines::{
    Baseline, baseline_risks, baseline_risks_watched, bayes_at_length, bayes_at_length_watched,
};
pub use block::{Block, BlockGradient};
pub use closed_form::{infinite_risk, linear_risk};
pub use covariates::{DrawnCovariates, DrawnLandscape};
pub use descent::{
    Descent, DescentEnd, DescentOptions, DescentRow, DescentRun, DescentState, Draws, Loss, Optimiser,
};
pub use flow::{FlowOptions, FlowRow, Method, Trajectory, flow, flow_through, settle};
pub use head::RegressionHead;
pub use high_dimensional::HighDimensional;
pub use horizon::{training_excess, training_horizon};
pub use landscape::{BlockLandscape, Landscape, LayerLandscape, SpectralLandscape};
pub use layer::{AttentionKind, RegressionLayer};
pub use linear_attention::{ContextLength, InitialScale, LinearAttention};
pub use linear_task::LinearRegression;
pub use response::{Response, ResponseAt};
pub use simulation::{GradientMoments, RiskOptions, RiskSimulation, RiskUnits, SimulatedRisk};
pub use spectral::{SpectralGradient, SpectralGroup, SpectralTask};
pub use training::{Training, train};
