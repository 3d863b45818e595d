"""Concentration studies: how fast finite prompts approach their limit, averaged over a law of queries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from esscher import _figures, _native
from esscher._native import Measure, SoftmaxAttention
from esscher._progress import Progress, shown
from esscher.horizons import Quantity
from esscher.rates import LocalSlopes, RateFit, local_slopes, rate_fit
from esscher.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Study", "concentration"]


class Study(Results):
    """Mean squared errors in L²(ν), a row per length; see :func:`concentration`.

    Columns: ``length``; ``output_error``, ``score_gradient_error`` and ``value_gradient_error``, each with an
    ``…_uncertainty``, the absolute error to plan with (one standard error of a random number, the tolerance of an
    exact one); ``accuracy``, how the row was obtained: "exact", "quasi-monte-carlo" (exact in the tokens, queries
    averaged over random point sets) or "sampled".
    """

    operator_norm: float
    """H = ‖G^{1/2} U S^{1/2}‖ for tokens of covariance G and queries of covariance S: Gaussian rates depend on it."""
    warnings: tuple[str, ...]
    """Means that rest on a few trials, so that their standard errors are optimistic."""

    def __init__(self, found: dict[str, Any], *, title: str) -> None:
        lengths = np.array(found["lengths"], dtype=np.int64)
        self._quantities: dict[str, Any] = found["quantities"]
        columns: dict[str, Any] = {"length": lengths}
        for name, (values, errors, _) in self._quantities.items():
            columns[_column(name)] = values
            columns[f"{_column(name)}_uncertainty"] = errors
        columns["accuracy"] = np.array(found["accuracy"], dtype=object)
        self.operator_norm = found["operator_norm"]
        self.warnings = tuple(
            f"the {name.replace('-', ' ')} error at L = {length} rests on about {size:.1f} of the trials: "
            "its uncertainty is optimistic"
            for length, name, size in found["warnings"]
        )
        super().__init__(columns, title=title, notes=self.warnings)

    def rate(self, quantity: Quantity = "output", *, level: float = 0.95) -> RateFit:
        """The fitted exponent κ of L^{−κ} with its interval at this level.

        Simulated lengths are beginnings of the same prompts: their joint covariance enters the fit.
        """
        values, errors, joint = self._measured(quantity)
        covariance, draws = (None, None) if joint is None else joint
        return rate_fit(self["length"], values, errors, covariance=covariance, draws=draws, level=level)

    def local_slopes(self, quantity: Quantity = "output") -> LocalSlopes:
        """κ between neighbouring lengths, with standard errors; see :func:`local_slopes`."""
        values, errors, joint = self._measured(quantity)
        covariance, draws = (None, None) if joint is None else joint
        return local_slopes(self["length"], values, errors, covariance=covariance, draws=draws)

    def _measured(self, quantity: str) -> Any:
        try:
            return self._quantities[quantity]
        except KeyError:
            known = " or ".join(f'"{name}"' for name in self._quantities)
            raise ValueError(f'quantity is "{quantity}": expected {known}') from None

    def _draw(self, ax: Axes, **style: Any) -> None:
        """Every quantity over the length with its uncertainty, and the fitted rate of the output."""
        for name, (values, errors, _) in self._quantities.items():
            look = {**_figures.LOOKS[name], "capsize": 2, "linewidth": 1.2, **style}
            # Bars that reach below zero would leave a logarithmic axis.
            below = np.minimum(errors, 0.999 * values)
            ax.errorbar(self["length"], values, yerr=[below, errors], label=_figures.QUANTITIES[name], **look)
        _figures.over_lengths(ax, r"mean squared error in $L^2(\nu)$")
        fit = self._fit()
        if fit is not None:
            label = rf"fit $L^{{-\kappa}}$, $\kappa = {_figures.with_error(fit.exponent, fit.standard_error)}$"
            _figures.power_law(ax, self["length"], fit.constant, fit.exponent, label)
        _figures.legend(ax)

    def _fit(self) -> RateFit | None:
        """The rate of the output, where the lengths allow one."""
        try:
            return self.rate()
        except ValueError:
            return None


def concentration(
    head: SoftmaxAttention,
    tokens: Measure | ArrayLike,
    *,
    queries: Measure | ArrayLike,
    lengths: ArrayLike,
    engine: Literal["best", "exact", "sampled"] = "best",
    directions: int | None = None,
    randomisations: int | None = None,
    trials: int | None = None,
    query_count: int | None = None,
    score_gradient: bool = True,
    precision: Literal["double", "single"] = "double",
    instruction_set: str | None = None,
    seed: int = 0,
    progress: Progress = None,
) -> Study:
    """Errors of finite prompts averaged over queries, E‖T[μ_L] − T[μ]‖²_{L²(ν)}, and those of both gradients.

    The exact engine integrates over the tokens (Gaussians, atoms and their mixtures), costs the same at every length,
    and averages over the directions of the queries by randomised quasi-Monte-Carlo points. The other engine simulates
    prompts of any law. Both are reproducible: the same arguments give the same numbers on one instruction set.

    Args:
        head: a softmax head.
        tokens: μ, the law of a token; an array stands for a draw of one of its rows.
        queries: ν, the law of a query; an array stands for a draw of one of its rows.
        lengths: numbers of tokens, from 1 to 10¹² (at most a thousand lengths).
        engine: "exact", "sampled", or "best": exact where the law of the tokens allows it.
        directions: exact engine: directions of queries per randomisation; 512, or 8 for mixtures of tokens.
        randomisations: exact engine: independent randomisations of the directions; 16, or 4 for mixtures of tokens.
        trials: simulation: the number of prompts, 256.
        query_count: simulation: about how many queries read each prompt, 64.
        score_gradient: simulation: whether to measure the error of the gradient in U, which costs d/2 times as much.
        precision: simulation: of scores and exponentials.
        instruction_set: simulation: a name of :func:`instruction_sets`; the best one if None. "portable" gives the same
            bits on every machine.
        seed: which random points or prompts.
        progress: None shows progress of calls longer than two seconds, False never; a function gets the part done.

    >>> import esscher as es
    >>> head = es.SoftmaxAttention(score=0.5 * np.eye(2), value=np.eye(2))
    >>> normal = es.Gaussian.standard(2)
    >>> study = es.concentration(head, normal, queries=normal, lengths=[10, 1e3, 1e6, 1e9, 1e12])
    >>> round(study.operator_norm, 12), round(study.rate().exponent, 1)       # H = ½: κ = 1
    (0.5, 1.0)
    """
    with shown("concentration", progress) as report:
        found = _native.concentration(
            head,
            tokens,
            queries,
            lengths,
            engine,
            directions,
            randomisations,
            trials,
            query_count,
            score_gradient,
            precision,
            instruction_set,
            seed,
            report,
        )
    return Study(found, title=f"Concentration of finite prompts, H = {found['operator_norm']:.4g}")


def _column(quantity: str) -> str:
    return f"{quantity.replace('-', '_')}_error"
