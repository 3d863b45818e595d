"""Tasks as laws of prompts: drawing, simulated risks, descent with fresh prompts, and classical baselines.

A prompt is L examples (x, y) of one task and a query (x_q, 0); the layer is to predict the query's target.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Number
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from esscher import _native
from esscher._equality import Compared, same
from esscher._native import Block, DescentState, Measure, RegressionHead, RegressionLayer
from esscher._progress import Progress, ask
from esscher.estimate import Estimate
from esscher.flows import Attention
from esscher.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "Baselines", "ClassificationTask", "Descent", "GeneralisedTask", "LinearTask", "Prompt", "SimulatedRisk",
    "SparseTask", "Task",
]  # fmt: skip

_Array = NDArray[np.float64]

Predictor = Block | RegressionHead | RegressionLayer
"""What predicts: a block (A, b), a head (U, v), or a layer."""

_MOST_ROWS = 1_000_000


class Prompt(NamedTuple):
    """One prompt of a task."""

    tokens: _Array
    """The examples (x, y), an array (L, d + 1)."""
    query: _Array
    """The query's covariates x_q, an array (d,)."""
    target: float
    """What is to be predicted."""
    hidden: _Array
    """The vector behind the labels: w, or the mean of a class."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Prompt) and all(map(same, self, other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.target)


@dataclass(frozen=True, eq=False)
class SimulatedRisk(Compared):
    """A simulated risk ½ E (prediction − target)² and, if asked for, its gradient in the layer's parameters."""

    risk: Estimate
    prompts: int
    gradient: _Array | None = None
    gradient_standard_error: _Array | None = None
    rests_on_few: bool = False
    """Whether a few prompts carry most of the mean: then the standard error cannot be trusted either."""


class Baselines(Results):
    """Risks of predictors that read one prompt, over the same prompts; ``plot()`` draws them with standard errors."""

    def _draw(self, ax: Axes, **style: Any) -> None:
        places = np.arange(len(self))
        ax.errorbar(self["risk"], places, xerr=self["standard_error"], **{"fmt": "o", "capsize": 3, **style})
        ax.set_yticks(places, labels=[str(name) for name in self["baseline"]])
        ax.invert_yaxis()
        ax.margins(y=0.15)
        ax.set_xlabel("risk")
        if (self["risk"] > 0).all():
            ax.set_xscale("log")


class Descent(Results):
    """A descent with fresh prompts: steps, smoothed training loss, balance ‖scores‖² − ‖values‖².

    ``plot()`` draws the smoothed loss.
    """

    def __init__(self, state: DescentState, layer: RegressionLayer, stop: str, *, title: str) -> None:
        self.state = state
        """What a later call continues from, bit for bit."""
        self.layer = layer
        """The layer where the descent ended."""
        self.stop = stop
        """Why it ended, in words."""
        rows = state.rows
        size = len(state.parameters)
        self.parameters: _Array = np.stack([row[3] for row in rows]) if rows else np.empty((0, size))
        """The parameters at each row, an array (rows, parameters)."""
        columns = {
            "step": np.array([row[0] for row in rows], dtype=np.int64),
            "smoothed_loss": np.array([np.nan if row[1] is None else row[1] for row in rows]),
            "balance": np.array([np.nan if row[2] is None else row[2] for row in rows]),
        }
        super().__init__(columns, title=title, notes=[stop])

    def _draw(self, ax: Axes, **style: Any) -> None:
        ax.plot(self["step"], self["smoothed_loss"], **{"label": "smoothed loss", **style})
        ax.set_yscale("log")
        ax.set_xlabel("step")
        ax.set_ylabel("smoothed training loss")


def of_native(name: str, doc: str) -> Any:
    """A property that an object's ``_native`` has."""
    return property(attrgetter(f"_native.{name}"), doc=doc)


class Task:
    """A law of prompts: what the examples, the query and the target of one prompt are drawn from.

    The tasks are :class:`LinearRegression`, :class:`LinearTask`, :class:`GeneralisedTask`, :class:`SparseTask` and
    :class:`ClassificationTask`; all can be drawn from, simulated on and descended on. A shift at test time is another
    task: train on one, evaluate on the other.
    """

    _ridge: float | None = None

    def __init__(self) -> None:
        raise TypeError(
            "a Task cannot be made itself: make a LinearRegression, a LinearTask, a GeneralisedTask, a SparseTask or a "
            "ClassificationTask"
        )

    def _made_of(self, native: Any, *before: Any, asked: dict[str, Any]) -> None:
        # What cannot be read is refused by name before it is kept.
        self._native = native(*before, asked)
        self._recipe = recipe(asked)

    dimension: int = of_native("dimension", "The dimension d of a covariate.")

    def draw(self, length: int, *, seed: int = 0) -> Prompt:
        """Draws one prompt of this many examples; it begins every longer prompt of the same seed.

        >>> import esscher as es
        >>> tokens, query, target, hidden = es.LinearTask(es.Rademacher(3)).draw(5)
        >>> tokens.shape, query.shape
        ((5, 4), (3,))
        >>> bool(abs(tokens[:, :3] @ hidden - tokens[:, 3]).max() < 1e-12)         # y = ⟨w, x⟩
        True
        """
        return Prompt(*self._native.draw(locals()))

    def simulate_risk(
        self,
        predictor: Predictor,
        prompt_length: int,
        *,
        attention: Attention | None = None,
        prompts: int = 10_000,
        gradient: bool = False,
        seed: int = 0,
        instruction_set: str | None = None,
        progress: Progress = None,
    ) -> SimulatedRisk:
        """Simulates ½ E (prediction − target)² of a layer at one prompt length.

        ``attention`` is for blocks and heads, softmax unless told; a layer has its own. Prompts of one seed are the
        same for every layer, and prefixes of each other over the lengths.

        >>> import esscher as es
        >>> task = es.regression([[1.0]])
        >>> found = task.simulate_risk(es.Block([[0.0]], 0.0), 10)             # predicts zero: the risk is ½ E⟨w, x_q⟩²
        >>> abs(found.risk - 0.5) < 5 * found.risk.error
        True
        """
        return SimulatedRisk(**ask("simulation", self._native.simulate_risk, locals()))

    def descend(
        self,
        predictor: Predictor,
        prompt_length: int,
        *,
        attention: Attention | None = None,
        optimiser: Literal["sgd", "adam"] = "sgd",
        rate: float = 1e-2,
        batch: int = 128,
        steps: int = 1000,
        loss: Literal["half-mean-square", "mean-square"] = "half-mean-square",
        draws: Literal["prompts", "projections"] = "prompts",
        first_decay: float = 0.9,
        second_decay: float = 0.999,
        floor: float = 1e-8,
        smoothing: float = 0.02,
        record: int | Sequence[int] | ArrayLike = 100,
        seed: int = 0,
        state: DescentState | None = None,
        instruction_set: str | None = None,
        progress: Progress = None,
    ) -> Descent:
        """Stochastic gradient descent from a layer, with a batch of fresh prompts each step.

        ``first_decay``, ``second_decay`` and ``floor`` are Adam's. ``draws="projections"`` draws two numbers a token
        instead of d + 1 where the task is Gaussian and the layer has one head: the same law, several times faster.
        ``record`` is a number of rows, spread evenly, or the steps to keep. ``state`` continues an earlier descent bit
        for bit, with more ``steps`` in all. Divergence is a result: see ``stop``.

        >>> import esscher as es
        >>> task = es.regression([[1.0]], noise=0.1)
        >>> descent = task.descend(es.Block([[0.1]], 0.1), 20, optimiser="adam", rate=0.02, steps=200)
        >>> descent.stop
        'finished'
        >>> bool(descent["smoothed_loss"][-1] < descent["smoothed_loss"][1])
        True
        """
        found = ask("descent", self._native.descend, locals(), record=_recorded(record, steps))
        return Descent(*found, title=f"descent, d = {self.dimension}, L = {int(prompt_length):,}")

    def baselines(
        self,
        prompt_length: int,
        *,
        prompts: int = 10_000,
        ridge: float | None = None,
        gradient_step: float = 1.0,
        neighbours: int = 5,
        seed: int = 0,
        progress: Progress = None,
    ) -> Baselines:
        """Risks of what one can predict from a prompt without a layer, over the same prompts.

        Ridge regression ⟨(XᵀX + λI)⁻¹Xᵀy, x_q⟩ with λ = ``ridge``, the posterior mean λ = s²/k unless told; least
        squares; one gradient step ``gradient_step`` · ⟨Xᵀy/L, x_q⟩; the mean label; the mean of the nearest labels.

        >>> import numpy as np
        >>> import esscher as es
        >>> found = es.regression(np.eye(3), noise=0.1).baselines(20, prompts=2000)
        >>> bool(found["risk"][0] < found["risk"][2:].min())                     # the posterior mean
        True
        """
        ridge = None if ridge is None else _native.read_real("ridge", ridge)
        gradient_step = _native.read_real("gradient_step", gradient_step)
        neighbours = _native.read_whole("neighbours", neighbours, 1, 2**32 - 1)
        wanted: list[tuple[str, str, float]] = []
        if ridge is not None:
            wanted.append((f"ridge, λ = {ridge:g}", "ridge", ridge))
        elif self._ridge is not None:
            wanted.append(("posterior mean", "ridge", self._ridge))
        wanted += [
            ("least squares", "least-squares", 0.0),
            (f"gradient step, rate {gradient_step:g}", "gradient-step", gradient_step),
            ("averaging", "averaging", 0.0),
            (f"nearest neighbours, {neighbours}", "nearest-neighbours", neighbours),
        ]
        asked = {**locals(), "wanted": [entry[1:] for entry in wanted]}
        risks, errors = zip(*ask("baselines", self._native.baselines, asked), strict=True)
        columns = {"baseline": [entry[0] for entry in wanted], "risk": risks, "standard_error": errors}
        return Baselines(columns, title=f"baselines, d = {self.dimension}, L = {int(prompt_length):,}")

    def __repr__(self) -> str:
        return f"{type(self).__name__}(dimension={self.dimension})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Task) and type(self) is type(other) and same(self._recipe, other._recipe)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return (made_again, (type(self), self._recipe))


class LinearTask(Task):
    """Linear regression with covariates of any law: y = ⟨w, x⟩ + noise, w ~ N(0, kI).

    ``queries`` is the law of the query's covariates, that of the prompt unless told; ``noise`` the variance of the
    label noise, ``query_noise`` that of the query's target, ``prior`` the variance k.

    >>> import esscher as es
    >>> es.LinearTask(es.Sphere(4), noise=0.1).dimension
    4
    """

    def __init__(
        self,
        covariates: Measure | ArrayLike,
        queries: Measure | ArrayLike | None = None,
        *,
        noise: float = 0.0,
        query_noise: float | None = None,
        prior: float = 1.0,
    ) -> None:
        self._made_of(_native.Task, "LinearTask", asked=locals())
        self._ridge = _native.read_real("noise", noise) / _native.read_real("prior", prior)


class GeneralisedTask(Task):
    """Generalised linear targets: y = g(⟨w, x⟩) + noise with the link g "identity", "sign", "tanh", "relu" or "cubic".

    >>> import esscher as es
    >>> abs(es.GeneralisedTask("sign", es.Gaussian.standard(2)).draw(5).target)
    1.0
    """

    def __init__(
        self,
        link: Literal["identity", "sign", "tanh", "relu", "cubic"],
        covariates: Measure | ArrayLike,
        queries: Measure | ArrayLike | None = None,
        *,
        noise: float = 0.0,
        prior: float = 1.0,
    ) -> None:
        self._made_of(_native.Task, "GeneralisedTask", asked=locals())


class SparseTask(Task):
    """Sparse linear regression: ``non_zero`` entries of w, in places drawn for each prompt, are N(0, k).

    >>> import esscher as es
    >>> int((es.SparseTask(2, es.Gaussian.standard(7)).draw(5).hidden != 0).sum())
    2
    """

    def __init__(
        self,
        non_zero: int,
        covariates: Measure | ArrayLike,
        queries: Measure | ArrayLike | None = None,
        *,
        noise: float = 0.0,
        prior: float = 1.0,
    ) -> None:
        self._made_of(_native.Task, "SparseTask", asked=locals())


class ClassificationTask(Task):
    """Two classes with means ±m: labels y are fair signs, x = y m + noise.

    m is uniform on the sphere of radius ``separation``; ``noise`` is the law around the means, ``query_noise`` that of
    the query if it is another.

    >>> import esscher as es
    >>> tokens = es.ClassificationTask(2.0, es.Gaussian.standard(3)).draw(5).tokens
    >>> bool((abs(tokens[:, 3]) == 1).all())
    True
    """

    def __init__(
        self, separation: float, noise: Measure | ArrayLike, query_noise: Measure | ArrayLike | None = None
    ) -> None:
        self._made_of(_native.Task, "ClassificationTask", asked=locals())


def recipe(asked: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a constructor to make its object again, for pickles, once they have been read."""
    return {name: kept(value) for name, value in asked.items() if name not in ("self", "__class__")}


def kept(value: Any) -> Any:
    """What was read of an argument: arrays are copied, since they may be changed; lists and tensors become arrays."""
    return value if isinstance(value, Measure | Number | str | None) else np.array(value)


def made_again(kind: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    """What the recipe says."""
    return kind(**arguments)


def _recorded(record: int | Sequence[int] | ArrayLike, steps: int) -> ArrayLike:
    """The steps at which a row is kept."""
    if isinstance(record, bool) or not isinstance(record, int | np.integer):
        return record
    rows = _native.read_whole("record", record, 1, _MOST_ROWS)
    try:
        last = min(max(int(steps), 0), 2**32 - 1)
    except (TypeError, ValueError, OverflowError):
        last = 0  # the native module refuses such steps by name
    return np.unique(np.linspace(0, last, rows + 1).round())
