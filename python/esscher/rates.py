"""Rates of decay: the exponent of L^{−κ} with its interval, and slopes between neighbouring lengths."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from esscher import _figures, _native
from esscher._equality import Compared
from esscher.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["LocalSlopes", "RateFit", "local_slopes", "rate_fit"]


@dataclass(frozen=True, eq=False)
class RateFit(Compared):
    """value ≈ c·L^{−κ}, fitted by least squares on logarithmic axes; see :func:`rate_fit`."""

    exponent: float
    """κ."""
    constant: float
    """c."""
    standard_error: float
    """Standard error of κ, on the basis named by ``basis``."""
    interval: tuple[float, float]
    """Confidence interval of κ."""
    level: float
    """The level of the interval."""
    log_constant_standard_error: float = field(repr=False)
    """Standard error of ln c."""
    estimator: Literal["ordinary-least-squares", "weighted-least-squares", "generalised-least-squares"]
    """Which least squares."""
    basis: Literal["stated-errors", "residuals"]
    """Where standard errors and interval come from: the residuals, where they exceed what the stated errors explain."""
    chi_square: float = field(repr=False)
    """Squared residuals in units of their errors; the degrees of freedom are expected if these explain them."""
    degrees_of_freedom: int = field(repr=False)
    """The number of points kept, minus two."""
    residuals: NDArray[np.float64] = field(repr=False)
    """ln value minus the line, one per point kept."""
    dropped: tuple[int, ...]
    """Positions of points left out because they are not three standard errors above zero."""

    def __str__(self) -> str:
        lower, upper = self.interval
        return (
            f"{self.constant:.4g} · L^(−κ) with κ = {self.exponent:.4f} ± {self.standard_error:.2g}, "
            f"{100 * self.level:g} % interval {lower:.4f} to {upper:.4f} ({self.basis.replace('-', ' ')})"
        )


def rate_fit(
    lengths: ArrayLike,
    values: ArrayLike,
    errors: ArrayLike | None = None,
    *,
    covariance: ArrayLike | None = None,
    draws: int | None = None,
    level: float = 0.95,
) -> RateFit:
    """Fits value = c·L^{−κ} by least squares to ln value = ln c − κ ln L, with an interval for κ.

    Points count by the inverse squares of their relative errors, or by the inverse of their covariance. Where the
    residuals are larger than the errors explain, the interval has their width and says how well one exponent
    describes these lengths; it says nothing about longer ones, and :func:`local_slopes` shows the trend.

    Args:
        lengths: numbers of tokens, at least three different ones.
        values: positive errors at these lengths.
        errors: one standard error of each value, in its unit; None for exact values.
        covariance: covariance matrix of the **logarithms** of the values, in place of ``errors``.
        draws: the number of independent draws from which the covariance was estimated; None if it is known.
        level: of the interval.

    >>> fit = rate_fit([10, 100, 1000], [0.21, 0.0205, 0.00198], [0.0063, 0.000615, 0.0000594])
    >>> print(fit)
    2.167 · L^(−κ) with κ = 1.0128 ± 0.0092, 95 % interval 0.9947 to 1.0308 (stated errors)
    """
    found = _native.rate_fit(locals())
    return RateFit(**{**found, "dropped": tuple(found["dropped"])})


class LocalSlopes(Results):
    """Exponents between neighbouring lengths, a row per pair; see :func:`local_slopes`."""

    def __init__(self, columns: dict[str, Any]) -> None:
        super().__init__(columns, title="Exponents between neighbouring lengths")

    def _draw(self, ax: Axes, **style: Any) -> None:
        """κ at the geometric middle of each pair, with bars for the pair and for one standard error."""
        middle = np.sqrt(self["from"] * self["to"].astype(float))
        across = [middle - self["from"], self["to"] - middle]
        look = {"fmt": "o", "markersize": 4, "capsize": 2, "linewidth": 1.2, **style}
        ax.errorbar(middle, self["slope"], xerr=across, yerr=self["standard_error"], **look)
        _figures.over_lengths(ax, r"local exponent $\kappa$", scale="linear")


def local_slopes(
    lengths: ArrayLike,
    values: ArrayLike,
    errors: ArrayLike | None = None,
    *,
    covariance: ArrayLike | None = None,
    draws: int | None = None,
) -> LocalSlopes:
    """κ = −ln(v′/v)/ln(L′/L) between each two neighbouring lengths, with its standard error.

    Columns ``from``, ``to``, ``slope``, ``standard_error``; arguments as for :func:`rate_fit`.

    >>> local_slopes([1, 10, 100], [1.0, 0.1, 0.001])["slope"].round(12)
    array([1., 2.])
    """
    found = _native.local_slopes(locals())
    columns = zip(*found, strict=True) if found else ((), (), (), ())
    names = ("from", "to", "slope", "standard_error")
    return LocalSlopes(dict(zip(names, map(np.array, columns), strict=True)))
