"""Gradient flows of in-context regression: what they return, and how they are asked for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from esscher._native import Block, RegressionLayer
from esscher.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Flow", "Training"]

_Array = NDArray[np.float64]

Attention = Literal["softmax", "linear", "opposite-heads"]
"""Attention whose risks are exact: "opposite-heads" is the pair (U, v/2), (−U, −v/2) of softmax heads."""

Method = Literal["explicit", "stiff"]
"""How a flow is integrated: Dormand and Prince's method, or RODAS for the slow drift of finite prompts."""

_MOST_NUMBERS = 2**27


class Flow(Results):
    """A gradient flow θ′ = −∇R as far as it got: time, risk, norm of the gradient, balance ‖scores‖² − ‖values‖².

    The balance is conserved on infinite prompts and by linear attention. Rows are spread evenly in ln(1 + time), and
    the last one is where the flow ended. ``plot()`` draws the risk over time, with the noise floor.

    >>> import esscher as es
    >>> flow = es.regression([[1.0]], noise=0.1).flow(prompt_length=1000, end_time=100, rows=5)
    >>> flow.names
    ('time', 'risk', 'gradient_norm', 'balance')
    >>> flow.ending
    'reached the end time'
    >>> flow.matrix.shape, flow.gain.shape
    ((6, 1, 1), (6,))
    """

    def __init__(self, found: Mapping[str, Any], *, title: str, noise_floor: float | None) -> None:
        self.ending: str = found["ending"]
        """Why the flow ended, in words."""
        self.stationary: bool = found["stationary"]
        """Whether the gradient's norm fell to the one called stationary."""
        self.steps: int = found["steps"]
        """Steps of the integrator."""
        self.parameters: _Array = found["parameters"]
        """The parameters at each row, an array (rows, parameters): see ``form``."""
        spectral = found.get("spectral")
        self._layer: RegressionLayer | None = found.get("layer")
        self.form: Literal["spectral", "block", "layer"] = (
            "layer" if self._layer is not None else "block" if spectral is None else "spectral"
        )
        """What the parameters are: an entry of A per distinct eigenvalue, then b; A column by column, then b; or the
        flat parameters of a :class:`~esscher.RegressionLayer`."""
        self.noise_floor = noise_floor
        """Half the variance of the query's noise: no risk is smaller."""
        self._eigenvectors: _Array | None = getattr(spectral, "eigenvectors", None)
        self._multiplicities: NDArray[np.int64] | None = getattr(spectral, "multiplicities", None)
        names = ("time", "risk", "gradient_norm", "balance", "distance_to_infinite", "distance_to_limit")
        columns = {name: found[name] for name in names if name in found}
        super().__init__(columns, title=title, notes=[self.ending])

    @property
    def gain(self) -> _Array:
        """b at each row, for flows of blocks."""
        self._need_block()
        return self.parameters[:, -1]

    @property
    def entries(self) -> _Array:
        """The entries of A at each row, one per distinct eigenvalue, for flows in the spectral form."""
        if self.form != "spectral":
            raise AttributeError(f"entries: the flow is in the {self.form} form; use matrix or parameters")
        return self.parameters[:, :-1]

    @property
    def matrix(self) -> _Array:
        """A at each row, an array (rows, d, d), for flows of blocks."""
        self._need_block()
        size = self._dimension()
        if len(self) * size * size > _MOST_NUMBERS:
            raise MemoryError(f"{len(self)} matrices of size {size} are too many to keep: ask for block(row)")
        return np.stack([self._matrix(row) for row in range(len(self))])

    def block(self, row: int = -1) -> Block:
        """The block (A, b) at a row, the last one unless told."""
        self._need_block()
        return Block(self._matrix(row), float(self.parameters[row, -1]))

    def layer(self, row: int = -1) -> RegressionLayer:
        """The layer at a row, for flows of heads and layers."""
        if self._layer is None:
            raise AttributeError("layer: the flow is one of blocks; use block")
        return self._layer.with_parameters(self.parameters[row])

    def _need_block(self) -> None:
        if self.form == "layer":
            raise AttributeError("the flow is one of a layer, which has no block; use layer or parameters")

    def _dimension(self) -> int:
        if self._multiplicities is not None:
            return int(self._multiplicities.sum())
        return math.isqrt(self.parameters.shape[1] - 1)

    def _matrix(self, row: int) -> _Array:
        entries = self.parameters[row, :-1]
        if self.form == "block":
            size = self._dimension()
            return entries.reshape(size, size).T
        if self._eigenvectors is None or self._multiplicities is None:
            raise AttributeError("matrix: the task was given by its eigenvalues; use entries")
        scaled = self._eigenvectors * np.repeat(entries, self._multiplicities)
        product: _Array = scaled @ self._eigenvectors.T
        return product

    def _draw(self, ax: Axes, **style: Any) -> None:
        later = self["time"] > 0
        ax.plot(self["time"][later], self["risk"][later], **{"label": "risk", **style})
        if self.noise_floor:
            ax.axhline(self.noise_floor, color="grey", linestyle="--", linewidth=1, label="noise floor")
        _over_time(ax, "risk")


class Training(Flow):
    """A training from the paper's initialisation beside that of the infinite prompt.

    Also has the columns ``distance_to_infinite``, |θ_L(t) − θ_∞(t)|, and ``distance_to_limit``, the distance from the
    limit of the infinite prompt's flow. ``plot()`` draws both.
    """

    def __init__(self, found: Mapping[str, Any], *, title: str, noise_floor: float | None) -> None:
        super().__init__(found, title=title, noise_floor=noise_floor)
        self.scale: float = found["scale"]
        """α, the initial scale."""
        self.within_theorem: bool = found["within_theorem"]
        """Whether α lies in the range of the paper's theorem, α < √2/(d^¼‖Σ‖)."""

    def _draw(self, ax: Axes, **style: Any) -> None:
        later = self["time"] > 0
        for name in ("distance_to_infinite", "distance_to_limit"):
            ax.plot(self["time"][later], self[name][later], **{"label": name.replace("_", " "), **style})
        _over_time(ax, "distance of the parameters")


def _over_time(ax: Axes, label: str) -> None:
    ax.set(xscale="log", yscale="log", xlabel="time", ylabel=label)
    ax.legend()


def title_of(attention: str, prompt_length: float | None, dimension: int | None = None) -> str:
    """Attention, dimension and prompt length in a title."""
    infinite = prompt_length is None or prompt_length == float("inf")
    words = "infinite prompts" if infinite else f"prompts of {float(prompt_length or 0):,.15g} tokens"
    size = "" if dimension is None else f"d = {dimension:,}, "
    return f"{attention.replace('-', ' ')} attention, {size}{words}"
