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
from esscher.results import Results
from esscher.runs import (
    Plan,
    Reproduction,
    Run,
    catalogue,
    example,
    merge,
    plan,
    read_run,
    report,
    reproduce,
    run,
    shard,
)

__version__ = VERSION

__all__ = [
    "Affine",
    "Attention",
    "Cube",
    "Custom",
    "Empirical",
    "Gaussian",
    "Gradient",
    "Heads",
    "Laplace",
    "LinearAttention",
    "Measure",
    "Mixture",
    "Plan",
    "Product",
    "Rademacher",
    "Reproduction",
    "Results",
    "Run",
    "SoftmaxAttention",
    "Sphere",
    "catalogue",
    "example",
    "merge",
    "plan",
    "read_run",
    "report",
    "reproduce",
    "run",
    "shard",
]
