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
# A quantity keeps its colour and mark where another one is missing.
LOOKS: dict[str, dict[str, Any]] = {
    "output": {"color": "C0", "marker": "o", "markersize": 4},
    "score-gradient": {"color": "C1", "marker": "s", "markersize": 4},
    "value-gradient": {"color": "C2", "marker": "^", "markersize": 4},
}


def over_lengths(ax: Axes, label: str, scale: str = "log") -> None:
    """A logarithmic axis of lengths, and one of this scale and name for what is drawn over them."""
    ax.set_xscale("log")
    # What is zero has no place on a logarithmic axis: a gap, not a line to the bottom.
    ax.set_yscale(scale, **({"nonpositive": "mask"} if scale == "log" else {}))
    ax.set_xlabel(LENGTH)
    ax.set_ylabel(label)
    ax.grid(True, which="major", color="0.92", linewidth=0.8)
    ax.set_axisbelow(True)


def power_law(ax: Axes, lengths: NDArray[Any], constant: float, exponent: float, label: str, style: str = "--") -> None:
    """The line c L^{−κ} over the range of the lengths."""
    ends = np.array([lengths.min(), lengths.max()], dtype=float)
    ax.plot(ends, constant * ends**-exponent, style, label=label, **GUIDE)  # type: ignore[arg-type]


def inverse_length(ax: Axes, lengths: NDArray[Any], errors: NDArray[Any]) -> None:
    """The slope of 1/L as a guide below everything that is drawn."""
    positive = errors > 0
    if positive.any():
        constant = 0.3 * float((errors[positive] * lengths[positive]).min())
        power_law(ax, lengths, constant, 1.0, r"slope of $1/L$", style=":")


def with_error(value: float, error: float) -> str:
    """A number and its error with two digits of the error.

    >>> with_error(1.00629, 0.0141)
    '1.006 \\\\pm 0.014'
    """
    decimals = int(np.clip(1 - np.floor(np.log10(error)), 0, 6)) if error > 0 else 6
    return rf"{value:.{decimals}f} \pm {error:.{decimals}f}"


def legend(ax: Axes) -> None:
    """What was measured first, guides and fits last."""
    handles, labels = ax.get_legend_handles_labels()
    last = [label.startswith(("fit", "slope")) for label in labels]
    order = sorted(range(len(labels)), key=lambda index: last[index])
    ax.legend([handles[index] for index in order], [labels[index] for index in order], frameon=False)
