//! What is asked: the authors' setting, lengths, and how much is trained and tested.

use crate::asking;
use esscher_core::prompt::PromptLength;
use esscher_core::regression::Draws;
use esscher_core::regression::authors::AuthorsCovariance;
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
        /// Steps of SGD
        steps: u64 = integer(1..=10_000_000).or(3_000_u64),
        /// The learning rate of SGD
        rate: f64 = real(Bounds::Between(1e-9, 10.0)).or(1e-3),
        /// What is drawn in a step: projections of prompts, or whole prompts
        draws: Draws = one_of(&[("projections", Draws::Projections), ("prompts", Draws::Prompts)]).or("projections"),
        /// Prompts of the test
        test_prompts: u64 = integer(2..=100_000_000).or(10_000_u64),
        /// Prompts over which the error of Bayes is averaged
        bayes_trials: u64 = integer(2..=100_000_000).or(20_000_u64),
    }
}
