"""Finite prompts at given queries: how far L independent tokens are from their law, exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from esscher import _figures, _native
from esscher._equality import Compared
from esscher._native import Measure, SoftmaxAttention
from esscher._progress import Progress, ask
from esscher.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["DeltaMethod", "FinitePrompt", "delta_method", "finite_prompt", "gaussian_gradient_constant"]

_LABELLED_QUERIES = 8


class FinitePrompt(Results):
    """Deviations of finite prompts from their limit, a row per query and length; see :func:`finite_prompt`.

    Columns: ``query`` (its index), ``length``, ``output_error``, ``score_gradient_error``, ``value_gradient_error``,
    ``participation`` (E Σ pₗ²; its inverse is the effective number of tokens) and ``tolerance``, the relative error
    that these four may have. ``bias`` and ``covariance`` are good to the tolerance times √output_error and
    output_error.
    """

    bias: NDArray[np.float64]
    """E T_L − T, an array (queries, lengths, output)."""
    covariance: NDArray[np.float64]
    """Cov T_L about its own mean, an array (queries, lengths, output, output)."""

    def __init__(self, columns: dict[str, Any], bias: NDArray[np.float64], covariance: NDArray[np.float64]) -> None:
        tolerance = columns["tolerance"].max(initial=0.0)
        super().__init__(
            columns,
            title="Finite prompts against their limit",
            notes=[f"exact, to a relative error of {tolerance:.1g}"],
        )
        self.bias = bias
        self.covariance = covariance

    def _draw(self, ax: Axes, **style: Any) -> None:
        """The errors over the length: all three of one query, or the output's of several."""
        queries = np.unique(self["query"])
        if len(queries) == 1:
            order = np.argsort(self["length"])
            for quantity, label in _figures.QUANTITIES.items():
                errors = self[f"{quantity.replace('-', '_')}_error"][order]
                ax.plot(self["length"][order], errors, label=label, **{**_figures.LOOKS[quantity], **style})
            _figures.over_lengths(ax, "mean squared error")
        else:
            self._draw_queries(ax, queries, **style)
            _figures.over_lengths(ax, r"mean squared error $\mathrm{E}\,|T_L - T|^2$")
        _figures.inverse_length(ax, self["length"], self["output_error"])
        _figures.legend(ax)

    def _draw_queries(self, ax: Axes, queries: NDArray[Any], **style: Any) -> None:
        many = len(queries) > _LABELLED_QUERIES
        for query in queries:
            of_query = self["query"] == query
            order = np.argsort(self["length"][of_query])
            lengths, errors = self["length"][of_query][order], self["output_error"][of_query][order]
            if many:
                label = f"each of {len(queries)} queries" if query == queries[0] else None
                ax.plot(lengths, errors, label=label, **{"color": "C0", "alpha": 0.4, "linewidth": 0.8, **style})
            else:
                ax.plot(lengths, errors, label=f"query {query}", **{"marker": "o", "markersize": 4, **style})


def finite_prompt(
    head: SoftmaxAttention,
    tokens: Measure | ArrayLike,
    queries: ArrayLike,
    lengths: ArrayLike,
    *,
    progress: Progress = None,
) -> FinitePrompt:
    """How prompts of L independent tokens deviate from their limit, exactly, at each query and each length.

    For prompts μ_L of L tokens from μ, T_L = T[μ_L](z) and T = T[μ](z): the mean squared error E|T_L − T|², the bias
    E T_L − T, the covariance of T_L, and the mean squared errors of both gradients, E‖∂T_L/∂U − ∂T/∂U‖² and
    E‖∂T_L/∂V − ∂T/∂V‖². Nothing is sampled, and the cost does not grow with L.

    Args:
        head: a softmax head.
        tokens: the law of a token: Gaussians, atoms, and their mixtures. An array stands for a draw of one of its rows.
        queries: one query (d,), or several (n, d).
        lengths: numbers of tokens, from 1 to 10¹²; ``1e6`` is one.
        progress: None shows progress of calls longer than two seconds, False never; a function gets the part done.

    >>> import esscher as es
    >>> head = es.SoftmaxAttention(score=np.eye(2), value=np.eye(2))
    >>> found = es.finite_prompt(head, es.Gaussian.standard(2), [0.6, 0.8], [1, 100, 1e12])
    >>> found["output_error"] * found["length"]        # from tr G + |Gθ|² = 3 to 3e
    array([3.        , 7.21268614, 8.15484549])
    >>> found.bias[0, 0]                               # one token has mean 0, the limit is Gθ
    array([-0.6, -0.8])
    """
    found = ask("finite prompts", _native.finite_prompt, locals())
    count, each = found["output_error"].shape
    columns: dict[str, Any] = {
        "query": np.repeat(np.arange(count), each),
        "length": np.tile(np.array(found.pop("lengths"), dtype=np.int64), count),
    }
    bias, covariance = found.pop("bias"), found.pop("covariance")
    columns |= {name: numbers.reshape(-1) for name, numbers in found.items()}
    return FinitePrompt(columns, bias, covariance)


@dataclass(frozen=True, eq=False)
class DeltaMethod(Compared):
    """First-order constants of a finite prompt at a query; see :func:`delta_method`."""

    bias: NDArray[np.float64]
    """lim L · (E T_L − T) = −e^{D₂} V d."""
    covariance: NDArray[np.float64]
    """lim L · Cov T_L = e^{D₂} V [∇²Λ(2θ) + ddᵀ] Vᵀ."""
    output_error: float
    """lim L · E|T_L − T|², the trace of the covariance."""


def delta_method(head: SoftmaxAttention, tokens: Measure | ArrayLike, query: ArrayLike) -> DeltaMethod:
    """What L times bias, covariance and mean squared error approach as L grows, for any law of tokens.

    With θ = Uz, d = ∇Λ(2θ) − ∇Λ(θ) and D₂ = Λ(2θ) − 2Λ(θ): −e^{D₂} V d, and e^{D₂} V [∇²Λ(2θ) + ddᵀ] Vᵀ with its
    trace. Where Λ(2θ) does not exist the error does not fall like 1/L, and a ValueError says so.

    Args:
        head: a softmax head.
        tokens: the law of a token; an array stands for a draw of one of its rows.
        query: one query (d,).

    >>> import esscher as es
    >>> head = es.SoftmaxAttention(score=[[1.0]], value=[[1.0]])
    >>> es.delta_method(head, es.Rademacher(1), [0.0]).output_error        # the variance of a sign
    1.0
    """
    return DeltaMethod(*_native.delta_method(locals()))


def gaussian_gradient_constant(head: SoftmaxAttention, tokens: Measure, query: ArrayLike) -> float:
    """What L · E‖∂T_L/∂U − ∂T/∂U‖² approaches as L grows, for Gaussian tokens.

    |z|² e^{τ²} [(|Vb|² + tr VGVᵀ)(|b|² + tr G) + tr VG²Vᵀ + 2 bᵀVᵀVGb] with b = Gθ and τ² = θᵀGθ.

    Args:
        head: a softmax head.
        tokens: a Gaussian.
        query: one query (d,).

    >>> import esscher as es
    >>> head = es.SoftmaxAttention(score=[[0.0]], value=[[1.0]])
    >>> es.gaussian_gradient_constant(head, es.Gaussian.standard(1), [1.0])     # a sample variance: 2/L
    2.0
    """
    return float(_native.gaussian_gradient_constant(locals()))
