"""Concentration studies: how fast finite prompts approach their limit, averaged over a law of queries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from esscher import _arguments, _figures, _native
from esscher._native import Measure, SoftmaxAttention
from esscher._progress import Progress, ask
from esscher.horizons import Quantity
from esscher.rates import LocalSlopes, RateFit, local_slopes, rate_fit
from esscher.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Study", "concentration"]

# What arguments are called as keys of the question.
_NAMES = {
    "kind": "lengths, trials",
    "exact.directions": "directions",
    "exact.randomisations": "randomisations",
    "sampled.trials": "trials",
    "sampled.queries": "query_count",
    "sampled.precision": "precision",
    "sampled.longest": "longest",
}


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

    def __init__(self, found: dict[str, Any]) -> None:
        rows = Results(found["columns"])
        is_error = rows["statistic"] == "error"
        measured = {name: is_error & (rows["quantity"] == name) for name in dict.fromkeys(rows["quantity"])}
        self._quantities = {
            name: (rows["value"][mine], rows["error"][mine], found["joint"].get(name, (None, None)))
            for name, mine in measured.items()
        }
        columns: dict[str, Any] = {"length": rows["length"][measured["output"]]}
        for name, (values, errors, _) in self._quantities.items():
            column = f"{name.replace('-', '_')}_error"
            columns |= {column: values, f"{column}_uncertainty": errors}
        columns["accuracy"] = rows["accuracy"][measured["output"]]
        self.operator_norm = float(rows["operator_norm"][0])
        self.warnings = tuple(
            f"the {row['quantity'].replace('-', ' ')} error at L = {row['length']} {row['note']}; "
            "its uncertainty is optimistic"
            for row, is_one in zip(rows, is_error, strict=True)
            if is_one and row["note"] is not None
        )
        left_out = sorted(set(found["asked_lengths"]) - set(columns["length"].tolist()))
        notes = [f"not simulated, being above `longest`: {', '.join(map(str, left_out))}"] if left_out else []
        title = f"Concentration of finite prompts, H = {self.operator_norm:.4g}"
        super().__init__(columns, title=title, notes=[*self.warnings, *notes])

    def rate(self, quantity: Quantity = "output", *, level: float = 0.95) -> RateFit:
        """The fitted exponent κ of L^{−κ} with its interval at this level.

        Simulated lengths are beginnings of the same prompts: their joint covariance enters the fit.
        """
        return rate_fit(self["length"], **self._measured(quantity), level=level)

    def local_slopes(self, quantity: Quantity = "output") -> LocalSlopes:
        """κ between neighbouring lengths, with standard errors; see :func:`local_slopes`."""
        return local_slopes(self["length"], **self._measured(quantity))

    def _measured(self, quantity: str) -> dict[str, Any]:
        """Values with what is known of their errors: all of it, where their joint law is."""
        values, errors, (covariance, draws) = self._quantities[_arguments.word("quantity", quantity, *self._quantities)]
        if covariance is None:
            return {"values": values, "errors": errors}
        return {"values": values, "covariance": covariance, "draws": draws}

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
    longest: int = 10**10,
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
        directions: exact engine: directions of queries per randomisation, 32.
        randomisations: exact engine: independent randomisations of the directions, 8.
        trials: simulation: the number of prompts, 400.
        query_count: simulation: how many queries are drawn for each prompt, 32.
        longest: simulation: longer prompts are left out, which the study notes.
        score_gradient: whether to measure the error of the gradient in U; simulated, it costs d/2 times as much.
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
    _arguments.given(head=head, tokens=tokens, queries=queries, lengths=lengths)
    _arguments.word("engine", engine, "best", "exact", "sampled")
    in_score = _native.read_truth("score_gradient", score_gradient)
    request = {
        "head": head,
        "tokens": tokens,
        "queries": queries,
        "lengths": np.atleast_1d(_native.own_numbers("lengths", lengths)).tolist(),
        "engine": engine,
        "quantities": ["output", *(["score-gradient"] if in_score else []), "value-gradient"],
        "exact": {"directions": directions, "randomisations": randomisations},
        "sampled": {"trials": trials, "queries": query_count, "precision": precision, "longest": longest},
    }
    question = "concentration"
    found = ask(question, _native.study, locals(), names=_NAMES)
    return Study({**found, "asked_lengths": request["lengths"]})
