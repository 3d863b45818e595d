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
from esscher.layers import Collapse, Layer, LayerFlow, LayerStack, depth, exact_softmax_flow
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

__version__ = VERSION

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
    "Descent",
    "DescentState",
    "DrawnCovariates",
    "Empirical",
    "Estimate",
    "ExactFlow",
    "Flow",
    "Gaussian",
    "GeneralisedTask",
    "Gradient",
    "HeadGradient",
    "Heads",
    "HighDimensional",
    "Laplace",
    "Layer",
    "LayerFlow",
    "LayerStack",
    "LinearAttention",
    "LinearAttentionTraining",
    "LinearRegression",
    "LinearTask",
    "Measure",
    "Mixture",
    "Product",
    "Prompt",
    "Rademacher",
    "RegressionHead",
    "RegressionLayer",
    "Response",
    "Results",
    "SimulatedRisk",
    "SoftmaxAttention",
    "SparseTask",
    "SpectralGradient",
    "SpectralTask",
    "Sphere",
    "Task",
    "Training",
    "TrainingHorizon",
    "authors_experiment",
    "depth",
    "exact_softmax_flow",
    "regression",
    "response",
    "spiked",
    "toeplitz",
]
