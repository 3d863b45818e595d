"""A laboratory for softmax attention seen as an operator on measures.

Attention is the mean of an exponentially tilted token law, T[μ](z) = V ∇Λ_μ(Uz). A prompt of L tokens is an empirical
measure, an infinite prompt is a distribution, and for Gaussian tokens the infinite prompt *is* linear attention.

>>> import esscher as es
>>> tokens = es.Gaussian([0, 1], [[1, 0.3], [0.3, 0.5]])
>>> head = es.SoftmaxAttention(score=[[1, 0], [0, 1]], value=[[1, -1]])
>>> head(tokens, [0.5, -0.2])                   # infinite prompt: V(m + GUz)
array([-0.61])
>>> head(tokens.sample(1000), [0.5, -0.2]).shape   # finite prompt: an (L, d) array
(1,)
"""

from esscher._native import (
    VERSION,
    Affine,
    Attention,
    Cube,
    Custom,
    Empirical,
    Gaussian,
    Gradient,
    Heads,
    Laplace,
    LinearAttention,
    Measure,
    Mixture,
    Product,
    Rademacher,
    SoftmaxAttention,
    Sphere,
)
from esscher.horizons import Horizon, horizon
from esscher.prompts import DeltaMethod, FinitePrompt, delta_method, finite_prompt, gaussian_gradient_constant
from esscher.rates import LocalSlopes, RateFit, local_slopes, rate_fit
from esscher.results import Results
from esscher.scales import (
    critical_score_deviation,
    output_bound,
    rate_exponent,
    regime,
    score_gradient_bound,
    trajectory_bound,
    typical_error_exponent,
    value_gradient_bound,
)
from esscher.studies import Study, concentration
from esscher.weights import WeightMoments, opposite_pair, shrinkage, weight_moments

__version__ = VERSION

__all__ = [
    "Affine",
    "Attention",
    "Cube",
    "Custom",
    "DeltaMethod",
    "Empirical",
    "FinitePrompt",
    "Gaussian",
    "Gradient",
    "Heads",
    "Horizon",
    "Laplace",
    "LinearAttention",
    "LocalSlopes",
    "Measure",
    "Mixture",
    "Product",
    "Rademacher",
    "RateFit",
    "Results",
    "SoftmaxAttention",
    "Sphere",
    "Study",
    "WeightMoments",
    "concentration",
    "critical_score_deviation",
    "delta_method",
    "finite_prompt",
    "gaussian_gradient_constant",
    "horizon",
    "local_slopes",
    "opposite_pair",
    "output_bound",
    "rate_exponent",
    "rate_fit",
    "regime",
    "score_gradient_bound",
    "shrinkage",
    "trajectory_bound",
    "typical_error_exponent",
    "value_gradient_bound",
    "weight_moments",
]
