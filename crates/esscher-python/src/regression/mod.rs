//! In-context regression: tasks, what predicts, exact risks and flows, simulation and descent.
//!
//! `answers` is how attention and prompt length are read, `predictors` what is trained; `gaussian` and `spectral` are the
//! theory's task, `tasks` any law of prompts; `flow` walks, `simulation` and `descent` draw.

mod answers;
mod authors;
mod covariates;
mod descent;
mod flow;
mod gaussian;
mod high_dimensional;
mod linear_attention;
mod predictors;
mod simulation;
mod spectral;
mod tasks;

pub(crate) use answers::response;
pub(crate) use authors::authors_experiment;
pub(crate) use covariates::PyDrawnCovariates;
pub(crate) use descent::{PyDescentState, descend};
pub(crate) use gaussian::{PyGaussianTask, spiked, toeplitz};
pub(crate) use high_dimensional::PyHighDimensional;
pub(crate) use linear_attention::PyLinearAttentionTraining;
pub(crate) use predictors::{PyBlock, PyRegressionHead, PyRegressionLayer};
pub(crate) use simulation::{baseline_risks, simulate_risk};
pub(crate) use spectral::PySpectralTask;
pub(crate) use tasks::PyTask;
