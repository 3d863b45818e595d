//! Mechanisms that average: softmax, linear attention, InLine; and those that only sum, which grow.

use super::{
    Activation, Draws, Fate, FeatureMoments, LargePrompt, Limit, Ridge, Setting, TokenMoments,
    feature_moments, positive_feature_moments, sampled_limit, softmax_limit,
};
use crate::error::{Error, Result};
use crate::feature_maps::{Elu, FeatureMap, Hedgehog, Identity, LunaMap, Performer, Relu, T2r, Taylor};
use crate::inline::{Inline, Kernel};
use crate::linear_attention::{LinearAttention, Normaliser};
use crate::luna::Luna;
use crate::mechanism::Mechanism;
use crate::normalized_attention::NormalizedAttention;
use crate::selective_rope::{Rotated, Rotation};
use crate::softmax::{Reach, Softmax};
use esscher_core::numerics::linalg;

impl LargePrompt for Softmax {
    fn fate(&self) -> Fate {
        match self.reach {
            Reach::Whole | Reach::Causal => Fate::Limit,
            Reach::Window(_) => Fate::StationaryLaw,
        }
    }

    /// V∇Λ(s Kᵀq), exact for every law of the core; the mean over a window is sampled, in prompts of just its length.
    fn limit(&self, setting: &Setting, draws: &Draws) -> Result<Limit> {
        let draws = match self.reach {
            Reach::Window(tokens) => draws.in_prompts_of(tokens.max(1)),
            Reach::Whole | Reach::Causal => match softmax_limit(setting) {
                Err(Error::Missing { .. }) => *draws,
                known => return known,
            },
        };
        sampled_limit(self, setting, &draws, self.fate().reading())
    }
}

/// A feature map whose weight κ = φ(q)·φ(k) has known moments under some token laws.
pub trait LimitMap: FeatureMap {
    /// E κ, E κv and E v in closed form, where there is one; the parameters are those of the map.
    fn moments(
        &self,
        _setting: &Setting,
        _query: &[f64],
        _parameters: &[Vec<f64>],
    ) -> Option<FeatureMoments> {
        None
    }
}

fn ridges(setting: &Setting, ridges: Vec<Ridge>) -> Option<FeatureMoments> {
    Some(feature_moments(&TokenMoments::of(setting)?, &ridges))
}

fn score_scale(width: usize) -> f64 {
    1.0 / (width as f64).sqrt()
}

impl LimitMap for Identity {
    /// s ⟨q, k⟩ needs second moments only: closed for every law.
    fn moments(&self, setting: &Setting, query: &[f64], _: &[Vec<f64>]) -> Option<FeatureMoments> {
        let moments = TokenMoments::second_moments(setting).ok()?;
        let scaled: Vec<f64> = query.iter().map(|q| score_scale(self.width) * q).collect();
        Some(FeatureMoments {
            weight: linalg::dot(&scaled, &moments.key_mean),
            weighted_value: linalg::apply_transpose(moments.key_value.as_ref(), &scaled),
            value: moments.value_mean,
        })
    }
}

impl LimitMap for Relu {
    fn moments(&self, setting: &Setting, query: &[f64], _: &[Vec<f64>]) -> Option<FeatureMoments> {
        ridges(setting, Ridge::elementwise(query, Activation::Relu))
    }
}

impl LimitMap for Elu {
    fn moments(&self, setting: &Setting, query: &[f64], _: &[Vec<f64>]) -> Option<FeatureMoments> {
        ridges(setting, Ridge::elementwise(query, Activation::EluPlusOne))
    }
}

impl LimitMap for Taylor {
    fn moments(&self, setting: &Setting, query: &[f64], _: &[Vec<f64>]) -> Option<FeatureMoments> {
        let scale = score_scale(self.input_width());
        ridges(setting, Ridge::of_score(query, scale, Activation::Taylor(self.order())))
    }
}

impl LimitMap for T2r {
    fn moments(&self, setting: &Setting, query: &[f64], parameters: &[Vec<f64>]) -> Option<FeatureMoments> {
        let [weight, bias] = parameters else { return None };
        let rows = weight.chunks_exact(self.width).zip(bias);
        let learnt = rows.map(|(row, &offset)| Ridge {
            coefficient: Activation::Relu.value(linalg::dot(row, query) + offset),
            direction: row.to_vec(),
            offset,
            activation: Activation::Relu,
        });
        ridges(setting, learnt.collect())
    }
}

impl LimitMap for Performer {
    fn moments(&self, setting: &Setting, query: &[f64], parameters: &[Vec<f64>]) -> Option<FeatureMoments> {
        let [projections] = parameters else { return None };
        let directions: Vec<Vec<f64>> = projections.chunks_exact(self.width).map(<[f64]>::to_vec).collect();
        // κ = Σ_i φ_i(q) φ_i(k), and each φ_i carries 1/√m.
        let mut features = vec![0.0; self.features];
        self.apply(query, &[&projections[..]], &mut features);
        let share = 1.0 / (self.features as f64).sqrt();
        let coefficients: Vec<f64> = features.iter().map(|feature| share * feature).collect();
        let factor = score_scale(self.width).sqrt();
        positive_feature_moments(&TokenMoments::of(setting)?, factor, &directions, &coefficients).ok()
    }
}

impl LimitMap for Hedgehog {}

impl LimitMap for LunaMap {}

impl<M: LimitMap> LargePrompt for LinearAttention<M> {
    fn fate(&self) -> Fate {
        match self.normaliser {
            Normaliser::Sum | Normaliser::Count => Fate::Limit,
            Normaliser::None => Fate::Grows,
        }
    }

    /// E κv/E κ, or E κv where the sum is divided by the number of tokens or by nothing.
    fn limit(&self, setting: &Setting, draws: &Draws) -> Result<Limit> {
        let parameters = setting.parameters(&self.signature())?;
        let moments =
            setting.constant("query").and_then(|query| self.map.moments(setting, query, &parameters));
        match (moments, self.normaliser) {
            (Some(moments), Normaliser::Sum) => Ok(Limit::closed(moments.ratio()?)),
            (Some(moments), Normaliser::Count | Normaliser::None) => {
                Ok(Limit::closed(moments.weighted_value))
            }
            (None, _) => sampled_limit(self, setting, draws, self.fate().reading()),
        }
    }
}

impl LargePrompt for NormalizedAttention {
    fn fate(&self) -> Fate {
        Fate::Grows
    }

    /// E[⟨q, k⟩ v]/η per token, for a constant normaliser; with one that depends on the token, its mean is sampled.
    fn limit(&self, setting: &Setting, draws: &Draws) -> Result<Limit> {
        let moments = TokenMoments::second_moments(setting);
        if let (Ok(moments), Some(query), Some(logit)) =
            (moments, setting.constant("query"), setting.constant_port(self, "log_normaliser"))
        {
            let normaliser = self.normaliser.value(logit[0]);
            let scaled: Vec<f64> = query.iter().map(|q| q / normaliser).collect();
            return Ok(Limit::closed(linalg::apply_transpose(moments.key_value.as_ref(), &scaled)));
        }
        sampled_limit(self, setting, draws, self.fate().reading())
    }
}

/// With the identity this is softmax's limit for Gaussian tokens, at every query: the covariance that softmax reaches through its exponential,
/// InLine has in its formula.
impl LargePrompt for Inline {
    fn fate(&self) -> Fate {
        Fate::Limit
    }

    /// E v + s Cov(φ(k), v)ᵀφ(q): for the identity of any law, for the other kernels of mixtures of Gaussians.
    fn limit(&self, setting: &Setting, draws: &Draws) -> Result<Limit> {
        let moments = setting.constant("query").and_then(|query| match self.kernel {
            // The scale of the score is in the map of linear attention, and not in InLine's.
            Kernel::Identity => {
                let moments = TokenMoments::second_moments(setting).ok()?;
                let mut value = moments.value_mean;
                let covariance = linalg::apply_transpose(moments.cross_covariance.as_ref(), query);
                linalg::add_scaled(&mut value, self.scale(), &covariance);
                Some(value)
            }
            Kernel::Relu => centred(setting, query, Activation::Relu, self.scale()),
            Kernel::LeakyRelu => {
                centred(setting, query, Activation::LeakyRelu(crate::inline::LEAK), self.scale())
            }
            Kernel::Exponential => {
                centred(setting, query, Activation::Exponential(crate::inline::RATE), self.scale())
            }
        });
        match moments {
            Some(value) => Ok(Limit::closed(value)),
            None => sampled_limit(self, setting, draws, self.fate().reading()),
        }
    }
}

fn centred(setting: &Setting, query: &[f64], activation: Activation, scale: f64) -> Option<Vec<f64>> {
    Some(ridges(setting, Ridge::elementwise(query, activation))?.centred(scale))
}

impl LargePrompt for Luna {
    fn fate(&self) -> Fate {
        Fate::Limit
    }

    fn limit(&self, setting: &Setting, draws: &Draws) -> Result<Limit> {
        self.linear_attention().limit(setting, draws)
    }
}

/// Rotations average the score over angles; whether the mechanism averages, forgets or sums does not change.
///
/// The sampled limit wants prompts that are long beside the slowest rotation. Unnormalised sums of rotated keys are the exception: what they
/// have per token tends to zero.
impl<M: LargePrompt> LargePrompt for Rotated<M> {
    fn fate(&self) -> Fate {
        self.inner.fate()
    }

    fn limit(&self, setting: &Setting, draws: &Draws) -> Result<Limit> {
        match self.rotation {
            Rotation::None => self.inner.limit(setting, draws),
            Rotation::Fixed { .. } | Rotation::Selective { .. } => {
                sampled_limit(self, setting, draws, self.fate().reading())
            }
        }
    }
}
