"""The authors' experiment: softmax against linear attention, trained by SGD at each prompt length."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from numpy.typing import ArrayLike

from esscher import _native
from esscher._native import RegressionLayer
from esscher._progress import Progress, ask
from esscher.regression import LinearRegression
from esscher.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["AuthorsExperiment", "authors_experiment"]

_NOISE = 0.1


class AuthorsExperiment(Results):
    """Test errors of both attentions by prompt length beside the exact optimum at that length; not halved.

    ``plot()`` draws the test errors with two standard errors, the optima dashed, and the noise floor.
    """

    def __init__(self, found: Mapping[str, Any], *, title: str) -> None:
        self.softmax_layers: list[RegressionLayer] = found["softmax"]["layers"]
        """The trained layers of softmax attention, by length."""
        self.linear_layers: list[RegressionLayer] = found["linear"]["layers"]
        """The trained layers of linear attention, by length."""
        task, columns = LinearRegression(**found["task"]), {"length": found["length"]}
        for kind, optimum in (("softmax", _softmax_optimum), ("linear", _linear_optimum)):
            columns |= {f"{kind}_{name}": found[kind][name] for name in ("error", "standard_error")}
            columns[f"{kind}_optimum"] = [optimum(task, length) for length in found["length"]]
        columns |= {f"{kind}_stop": found[kind]["stop"] for kind in ("softmax", "linear")}
        super().__init__(columns, title=title)

    def _draw(self, ax: Axes, **style: Any) -> None:
        for colour, kind in (("C0", "softmax"), ("C1", "linear")):
            error = 2 * self[f"{kind}_standard_error"]
            look = {"color": colour, "marker": "o", "capsize": 3, "label": f"{kind}, trained", **style}
            ax.errorbar(self["length"], self[f"{kind}_error"], yerr=error, **look)
            ax.plot(self["length"], self[f"{kind}_optimum"], color=colour, linestyle="--", label=f"{kind}, optimum")
        ax.axhline(_NOISE, color="grey", linestyle=":", linewidth=1, label="noise")
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xlabel("prompt length")
        ax.set_ylabel("mean squared error")
        ax.legend()


def _softmax_optimum(task: LinearRegression, length: int) -> float:
    """Where the flow from the paper's start ends; one that does not stand still has no limit to report."""
    flow = task.flow(length, end_time=1e12, rows=1, progress=False)
    return 2 * float(flow["risk"][-1]) if flow.stationary else float("nan")


def _linear_optimum(task: LinearRegression, length: int) -> float:
    return 2 * task.linear_attention(length).minimal_risk


def authors_experiment(
    lengths: ArrayLike = (10, 40, 100, 400),
    *,
    covariance: Literal["isotropic", "toeplitz"] = "isotropic",
    covariance_bug: bool = False,
    steps: int = 3000,
    rate: float = 0.1,
    draws: Literal["prompts", "projections"] = "projections",
    test_prompts: int = 10_000,
    seed: int = 0,
    instruction_set: str | None = None,
    progress: Progress = None,
) -> AuthorsExperiment:
    """Trains one layer of separate Q, K, V, O by SGD on the mean squared error at each length, softmax and linear.

    d = 5, label noise of variance 0.1, w ~ N(0, I/d), 128 fresh prompts a step; test prompts have the same length.
    The authors take 300,000 steps of rate 1e-3; 3,000 of rate 0.1, the default, come as far along the gradient flow.
    ``covariance_bug`` draws the Toeplitz case as their public code does. The softmax optimum is where gradient flow
    from the paper's initialisation ends, the linear one is closed.

    >>> import esscher as es
    >>> found = es.authors_experiment([10], steps=20, test_prompts=500)
    >>> bool(found["softmax_error"][0] > found["softmax_optimum"][0] > 0.1)
    True
    """
    found = ask("training", _native.authors_experiment, locals())
    return AuthorsExperiment(found, title=f"{covariance} covariates, {steps:,} steps of rate {rate:g}")
