//! Training of small models with any mechanism in their layers.
//!
//! A [`ModelSpecification`] names the mechanism of every layer; from its signature a [`Model`] makes projections, gates and
//! trained parameters. [`train`] fits it to a [`Task`](crate::tasks::Task); the same seed gives the same bits on any number
//! of threads. A trained model runs over whole sequences ([`Model::logits`]), token by token ([`Streaming`]), and is stored
//! as safetensors bytes ([`Model::to_bytes`]).
//!
//! Gradients are written by hand, over slices, operation by operation; the [`tape`] calls them in order.

mod convolution;
mod cross_entropy;
mod embedding;
mod gating;
mod mix;
mod model;
mod normalisation;
mod optimiser;
mod projection;
mod run;
mod slices;
mod specification;
mod storage;
mod streaming;
pub mod tape;
mod trial;

pub use mix::mix;
pub use model::{Model, Weight};
pub use normalisation::Normalisation;
pub use optimiser::Schedule;
pub use run::{Continue, Evaluation, MechanismAt, Options, Progress, Trained, evaluate, train, train_from};
pub use specification::{LayerSpecification, Mlp, ModelSpecification};
pub use streaming::Streaming;
pub use trial::Trial;
