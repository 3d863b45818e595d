"""What to expect of a length: regimes of queries, exponents of rates, and the paper's bounds. All broadcast."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from esscher import _native
from esscher._broadcast import broadcast

__all__ = [
    "critical_score_deviation", "output_bound", "rate_exponent", "regime", "score_gradient_bound", "trajectory_bound",
    "typical_error_exponent", "value_gradient_bound",
]  # fmt: skip


def regime(score_deviation: ArrayLike, length: ArrayLike) -> Any:
    """How the softmax over L tokens with scores of standard deviation τ shares its weight.

    "diluted" (τ² ≤ ⅔ ln L): very many tokens share it, and the mean squared error is about e^{τ²}/L. "intermediate":
    the output still converges, but rare large scores make its error, which falls more slowly. "frozen" (τ² ≥ 2 ln L):
    the few largest scores take the weight.

    Args:
        score_deviation: τ = (θᵀGθ)^{1/2}; an array broadcasts.
        length: L; an array broadcasts.

    >>> regime([1.0, 3.0, 4.0], 1000).tolist()
    ['diluted', 'intermediate', 'frozen']
    """
    return broadcast(_native.regime, score_deviation=score_deviation, length=length)


def typical_error_exponent(score_deviation: ArrayLike, length: ArrayLike) -> Any:
    """Heuristic: the k for which the mean squared error of a typical query is L^{−k}, up to slower factors.

    With t = τ²/ln L: 1 − t for t ≤ ⅔, (1/√t − √t/2)²/2 for ⅔ ≤ t ≤ 2, 0 beyond. It comes from the large deviations of
    the largest score and is not proved; exact values approach it as slowly as 1/ln L.

    Args:
        score_deviation: τ; an array broadcasts.
        length: L; an array broadcasts.

    >>> typical_error_exponent([0.0, 6.0], 1000)
    array([1., 0.])
    """
    return broadcast(_native.typical_error_exponent, score_deviation=score_deviation, length=length)


def critical_score_deviation(length: ArrayLike) -> Any:
    """√(2 ln L): above this score deviation the softmax freezes on its largest score.

    Args:
        length: L; an array broadcasts.

    >>> critical_score_deviation([1, 1e12]).round(3)
    array([0.   , 7.434])
    """
    return broadcast(_native.critical_score_deviation, length=length)


def rate_exponent(operator_norm: ArrayLike) -> Any:
    """The exponent κ of the rate L^{−κ} for Gaussian tokens N(0, G) and queries N(0, S).

    With H = ‖G^{1/2} U S^{1/2}‖: κ = 1 for H² ≤ ½, else √(1/H² + ¼) − ½. Heuristic: it agrees with exact values up to
    H of about 1.5; beyond, logarithms fade slowly.

    Args:
        operator_norm: H; an array broadcasts. ``Study.operator_norm`` is the one of a study.

    >>> rate_exponent([0.5, 1.0]).round(3)
    array([1.   , 0.618])
    """
    return broadcast(_native.rate_exponent, operator_norm=operator_norm)


def output_bound(length: ArrayLike, *, sub_gaussian: ArrayLike, factor: ArrayLike, exponent: ArrayLike) -> Any:
    """The proved bound on outputs, E‖T[μ_L] − T[μ]‖²_{L²(ν)} ≤ c₁ σ⁶ ln L / L^{c₂/σ²} (Boursier and Boyer 2025).

    For σ-sub-Gaussian tokens, σ ≥ 1, and centred 1-sub-Gaussian queries. The constants are universal, but unknown.

    Args:
        length: L, at least 2; an array broadcasts.
        sub_gaussian: σ.
        factor: c₁.
        exponent: c₂.

    >>> output_bound([100, 10_000], sub_gaussian=1.0, factor=1.0, exponent=1.0).round(4)
    array([0.0461, 0.0009])
    """
    return _bound(_native.output_bound, length, sub_gaussian, factor, exponent)


def score_gradient_bound(length: ArrayLike, *, sub_gaussian: ArrayLike, factor: ArrayLike, exponent: ArrayLike) -> Any:
    """The proved bound on gradients in U, c₁ σ¹² (ln L)² / L^{c₂/σ²}; arguments as for :func:`output_bound`.

    >>> round(score_gradient_bound(100, sub_gaussian=1.0, factor=1.0, exponent=1.0), 4)
    0.2121
    """
    return _bound(_native.score_gradient_bound, length, sub_gaussian, factor, exponent)


def value_gradient_bound(length: ArrayLike, *, sub_gaussian: ArrayLike, factor: ArrayLike, exponent: ArrayLike) -> Any:
    """The proved bound on gradients in V, that of :func:`output_bound`.

    >>> round(value_gradient_bound(100, sub_gaussian=1.0, factor=1.0, exponent=1.0), 4)
    0.0461
    """
    return _bound(_native.value_gradient_bound, length, sub_gaussian, factor, exponent)


def trajectory_bound(*, gradient_gap: ArrayLike, growth: ArrayLike, time: ArrayLike) -> Any:
    """|θ_L(t) − θ_∞(t)| ≤ g(L) t e^{βt}: training on finite prompts stays near training on infinite ones.

    Args:
        gradient_gap: g(L), the distance of the gradient fields; an array broadcasts.
        growth: β, the rate at which the infinite-prompt flow spreads perturbations.
        time: t; an array broadcasts.

    >>> trajectory_bound(gradient_gap=0.5, growth=0.0, time=[0.0, 2.0])
    array([0., 1.])
    """
    return broadcast(_native.trajectory_bound, gradient_gap=gradient_gap, growth=growth, time=time)


def _bound(bound: Any, length: ArrayLike, sub_gaussian: ArrayLike, factor: ArrayLike, exponent: ArrayLike) -> Any:
    return broadcast(bound, length=length, sub_gaussian=sub_gaussian, factor=factor, exponent=exponent)
