//! The claims of Boursier & Boyer, Softmax as Linear Attention in the Large-Prompt Regime (arXiv 2512.11784).
//!
//! Add a claim: a file here with its `claim!`, a folder in `experiments/` of this crate with its specifications, and its
//! line in [`claims`].

mod almost_sure;
mod authors_experiment;
mod bound;
mod evidence;
mod finite_prompt_drift;
mod flows;
mod gaussian_lemma;
mod gradient_concentration;
mod in_context_noise_floor;
mod linear_attention_transfer;
mod output_concentration;
mod rate_exponent;
mod training_stability;
mod training_stability_sub_gaussian;

use crate::Claim;

/// All claims by name, in the order in which a report is best read: first what is found, then what supports it.
pub(crate) const READING_ORDER: [&str; 11] = [
    "rate-exponent",
    "gaussian-lemma",
    "finite-prompt-drift",
    "in-context-noise-floor",
    "authors-experiment",
    "linear-attention-transfer",
    "almost-sure",
    "output-concentration",
    "gradient-concentration",
    "training-stability",
    "training-stability-sub-gaussian",
];

/// All claims, in the order of the paper.
pub fn claims() -> &'static [Claim] {
    &[
        gaussian_lemma::CLAIM,
        almost_sure::CLAIM,
        output_concentration::CLAIM,
        gradient_concentration::CLAIM,
        rate_exponent::CLAIM,
        training_stability::CLAIM,
        training_stability_sub_gaussian::CLAIM,
        in_context_noise_floor::CLAIM,
        linear_attention_transfer::CLAIM,
        finite_prompt_drift::CLAIM,
        authors_experiment::CLAIM,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_claim_has_its_place_in_the_reading_order() {
        let mut names: Vec<&str> = claims().iter().map(|claim| claim.name).collect();
        let mut placed = READING_ORDER.to_vec();
        names.sort_unstable();
        placed.sort_unstable();
        assert_eq!(names, placed);
    }
}
