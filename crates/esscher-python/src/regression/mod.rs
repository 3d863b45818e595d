//! In-context regression: tasks, what predicts, exact risks and flows, simulation and descent.
//!
//! `answers` is how a layer answers and what a risk is, `predictors` what is trained; `gaussian` and `spectral` are the
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
