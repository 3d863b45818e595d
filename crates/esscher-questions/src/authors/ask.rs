//! What is asked: the authors' setting, lengths, and how much is trained and tested.

use crate::asking;
use esscher_core::prompt::PromptLength;
use esscher_core::regression::Draws;
use esscher_core::regression::authors::{AuthorsCovariance, AuthorsOptimiser};
use esscher_lab::keys;
use esscher_lab::specification::{Bounds, Kind, integer, one_of, real, truth};

keys! {
    /// What did the authors' experiment measure?
    pub struct Ask {
        /// The covariance of the covariates
        covariance: AuthorsCovariance = one_of(&[
            ("isotropic", AuthorsCovariance::Isotropic),
            ("toeplitz", AuthorsCovariance::Toeplitz),
        ])
        .or("isotropic"),
        /// Whether to repeat what the authors' public code does to Toeplitz prompts: it applies the Cholesky factor twice
        covariance_bug: bool = truth().or(false),
        /// Prompt lengths, up to 100,000
        lengths: Vec<PromptLength> = asking::lengths_up_to(100_000),
        /// How layers are trained: by stochastic gradient descent, as the authors do, or by Adam, which arrives in fewer steps
        optimiser: AuthorsOptimiser = one_of(&[("sgd", AuthorsOptimiser::Sgd), ("adam", AuthorsOptimiser::Adam)]).or("sgd"),
        /// Steps of training
        steps: u64 = integer(1..=10_000_000).or(3_000_u64),
        /// The learning rate
        rate: f64 = real(Bounds::Between(1e-9, 10.0)).or(1e-3),
        /// Trainings of each layer, from different random matrices; of those that complete, the one with the smallest exact error counts
        starts: u64 = integer(1..=100).or(1_u64),
        /// What is drawn in a step: projections of prompts, or whole prompts
        draws: Draws = one_of(&[("projections", Draws::Projections), ("prompts", Draws::Prompts)]).or("projections"),
        /// Prompts of the test
        test_prompts: u64 = integer(2..=100_000_000).or(10_000_u64),
        /// Prompts over which the error of Bayes is averaged
        bayes_trials: u64 = integer(2..=100_000_000).or(20_000_u64),
    }
}
