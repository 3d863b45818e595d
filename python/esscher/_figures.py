"""What the figures of results over prompt lengths have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LENGTH = "prompt length $L$ (tokens)"
GUIDE = {"color": "0.45", "linewidth": 1.0, "zorder": 1.0}
QUANTITIES = {
    "output": r"output, $|T_L - T|^2$",
    "score-gradient": r"score gradient, $\|\partial_U T_L - \partial_U T\|_F^2$",
    "value-gradient": r"value gradient, $\|\partial_V T_L - \partial_V T\|_F^2$",
}
MARKERS = {"output": "o", "score-gradient": "s", "value-gradient": "^"}


def logarithmic(ax: Axes) -> None:
    """Both axes logarithmic, with the names that all figures over lengths share."""
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel(LENGTH)
    ax.grid(True, which="major", color="0.92", linewidth=0.8)
    ax.set_axisbelow(True)


def power_law(ax: Axes, lengths: NDArray[Any], constant: float, exponent: float, label: str, style: str = "--") -> None:
    """The line c L^{−κ} over the range of the lengths."""
    ends = np.array([lengths.min(), lengths.max()], dtype=float)
    ax.plot(ends, constant * ends**-exponent, style, label=label, **GUIDE)  # type: ignore[arg-type]
