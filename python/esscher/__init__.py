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

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from esscher import recording
from esscher._native import (
    VERSION,
    Affine,
    Attention,
    Block,
    Cube,
    Custom,
    DescentState,
    Empirical,
    ExactFlow,
    Gaussian,
    Gradient,
    Heads,
    HighDimensional,
    Laplace,
    LinearAttention,
    LinearAttentionTraining,
    Measure,
    Mixture,
    Product,
    Rademacher,
    RegressionHead,
    RegressionLayer,
    SoftmaxAttention,
    Sphere,
)
from esscher.authors import AuthorsExperiment, authors_experiment
from esscher.estimate import Estimate
from esscher.flows import Flow, Training
from esscher.horizons import Horizon, horizon
from esscher.layers import Collapse, Layer, LayerFlow, LayerStack, depth, exact_softmax_flow
from esscher.prompts import DeltaMethod, FinitePrompt, delta_method, finite_prompt, gaussian_gradient_constant
from esscher.rates import LocalSlopes, RateFit, local_slopes, rate_fit
from esscher.regression import (
    BlockGradient,
    DrawnCovariates,
    HeadGradient,
    LinearRegression,
    Response,
    SpectralGradient,
    SpectralTask,
    TrainingHorizon,
    regression,
    response,
    spiked,
    toeplitz,
)
from esscher.results import Results
from esscher.runs import (
    Plan,
    Reproduction,
    Run,
    catalogue,
    example,
    instruction_sets,
    merge,
    plan,
    read_run,
    report,
    reproduce,
    run,
    shard,
)
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
from esscher.tasks import (
    Baselines,
    ClassificationTask,
    Descent,
    GeneralisedTask,
    LinearTask,
    Prompt,
    SimulatedRisk,
    SparseTask,
    Task,
)
from esscher.weights import WeightMoments, opposite_pair, shrinkage, weight_moments

if TYPE_CHECKING:
    from esscher import audit, zoo

__version__ = VERSION


def __getattr__(name: str) -> Any:
    """Modules that are imported when they are first asked for, since a small build may not have them."""
    if name in ("audit", "zoo"):
        return importlib.import_module(f"esscher.{name}")
    raise AttributeError(f"module 'esscher' has no attribute {name!r}")


__all__ = [
    "Affine",
    "Attention",
    "AuthorsExperiment",
    "Baselines",
    "Block",
    "BlockGradient",
    "ClassificationTask",
    "Collapse",
    "Cube",
    "Custom",
    "DeltaMethod",
    "Descent",
    "DescentState",
    "DrawnCovariates",
    "Empirical",
    "Estimate",
    "ExactFlow",
    "FinitePrompt",
    "Flow",
    "Gaussian",
    "GeneralisedTask",
    "Gradient",
    "HeadGradient",
    "Heads",
    "HighDimensional",
    "Horizon",
    "Laplace",
    "Layer",
    "LayerFlow",
    "LayerStack",
    "LinearAttention",
    "LinearAttentionTraining",
    "LinearRegression",
    "LinearTask",
    "LocalSlopes",
    "Measure",
    "Mixture",
    "Plan",
    "Product",
    "Prompt",
    "Rademacher",
    "RateFit",
    "RegressionHead",
    "RegressionLayer",
    "Reproduction",
    "Response",
    "Results",
    "Run",
    "SimulatedRisk",
    "SoftmaxAttention",
    "SparseTask",
    "SpectralGradient",
    "SpectralTask",
    "Sphere",
    "Study",
    "Task",
    "Training",
    "TrainingHorizon",
    "WeightMoments",
    "audit",
    "authors_experiment",
    "catalogue",
    "concentration",
    "critical_score_deviation",
    "delta_method",
    "depth",
    "exact_softmax_flow",
    "example",
    "finite_prompt",
    "gaussian_gradient_constant",
    "horizon",
    "instruction_sets",
    "local_slopes",
    "merge",
    "opposite_pair",
    "output_bound",
    "plan",
    "rate_exponent",
    "rate_fit",
    "read_run",
    "recording",
    "regime",
    "regression",
    "report",
    "reproduce",
    "response",
    "run",
    "score_gradient_bound",
    "shard",
    "shrinkage",
    "spiked",
    "toeplitz",
    "trajectory_bound",
    "typical_error_exponent",
    "value_gradient_bound",
    "weight_moments",
    "zoo",
]
