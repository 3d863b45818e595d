//! In-context regression: what gradient training does to one attention layer, at any prompt length.
//!
//! A prompt is L examples (x, y) of one task and a query (x_q, 0); the layer is to predict the query's target.
//! See [`LinearRegression`] for the task of the theory and [`RegressionHead`] for what is trained.

mod attend;
pub mod authors;
mod baselines;
mod descent;
mod head;
mod layer;
mod linear_task;
mod projected;
mod simulation;
pub mod tasks;

pub use baselines::{Baseline, baseline_risks, bayes_at_length};
pub use descent::{
    Descent, DescentOptions, DescentRow, DescentRun, DescentState, DescentStop, Draws, Loss, Optimiser,
};
pub use head::RegressionHead;
pub use layer::{AttentionKind, RegressionLayer};
pub use linear_task::LinearRegression;
pub use simulation::{GradientMoments, RiskOptions, RiskSimulation, RiskUnits, SimulatedRisk};
