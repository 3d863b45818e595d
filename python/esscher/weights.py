"""Moments of the softmax weights of L standard normals: the scalars behind every exact finite prompt."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from esscher import _figures, _native
from esscher.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["WeightMoments", "opposite_pair", "shrinkage", "weight_moments"]

_EXACT = "exact, to a relative error of 1e-12"
_LABELLED_DEVIATIONS = 12
_LENGTHS_AT_A_TIME = 256


class WeightMoments(Results):
    """Numbers by score deviation and length; see :func:`weight_moments`, :func:`shrinkage`, :func:`opposite_pair`."""

    def __init__(self, columns: dict[str, Any], *, title: str, note: str, drawn: dict[str, str]) -> None:
        super().__init__(columns, title=title, notes=[note])
        self._drawn = drawn

    def _draw(self, ax: Axes, **style: Any) -> None:
        """The main numbers of one score deviation over the length, or the first of them for several."""
        deviations = np.unique(self["score_deviation"])
        look = {"marker": "o", "markersize": 4, **style}
        if len(deviations) == 1:
            order = np.argsort(self["length"])
            for name, label in self._drawn.items():
                ax.plot(self["length"][order], self[name][order], label=label, **look)
            _figures.over_lengths(ax, rf"expectation at $\tau = {deviations[0]:g}$")
        else:
            name, label = next(iter(self._drawn.items()))
            for deviation in deviations:
                rows = np.flatnonzero(self["score_deviation"] == deviation)
                rows = rows[np.argsort(self["length"][rows])]
                ax.plot(self["length"][rows], self[name][rows], label=rf"$\tau = {deviation:g}$", **look)
            _figures.over_lengths(ax, label)
        if len(deviations) <= _LABELLED_DEVIATIONS:
            _figures.legend(ax)


def weight_moments(score_deviation: ArrayLike, lengths: ArrayLike) -> WeightMoments:
    """Expectations over p = softmax(τg) for independent standard normals g₁ … g_L, exactly at any L.

    With G = Σ pₗgₗ, A = Σ pₗ(gₗ − G)² and Sₐ = Σ pₗᵃ the columns are ``sum_of_squares`` E S₂ (its inverse is the
    effective number of tokens), ``sum_of_cubes`` E S₃, ``sum_of_fourths`` E S₄, ``squared_sum_of_squares`` E S₂²,
    ``squares_times_cubes`` E S₂S₃, ``cubed_sum_of_squares`` E S₂³, ``mean_bias`` E G − τ, ``mean_squared_error`` E(G
    − τ)², ``mean_variance`` Var G, ``variance`` E A, ``squared_variance`` E A², ``variance_squared_error`` E(A − 1)²,
    ``variance_times_squares`` E A S₂, ``cross`` E Σ pₗ²(gₗ − G)², ``frobenius`` E‖diag p − ppᵀ‖², and ``closure`` E(Σ
    pₗ)², whose distance from one is the error of the quadrature.

    Args:
        score_deviation: τ from 0 to 10⁴, a number or several.
        lengths: numbers of tokens; every τ is combined with every length.

    >>> found = weight_moments(1.0, [1, 1e12])
    >>> found["sum_of_squares"] * found["length"]        # from one token to e^{τ²}/L
    array([1.        , 2.71828183])
    """
    drawn = {
        "sum_of_squares": r"$\mathrm{E}\,S_2$, participation",
        "mean_squared_error": r"$\mathrm{E}\,(G - \tau)^2$",
        "variance_squared_error": r"$\mathrm{E}\,(A - 1)^2$",
        "frobenius": r"$\mathrm{E}\,\|\mathrm{diag}\,p - pp^\top\|_F^2$",
    }
    return _table("Moments of softmax weights", _EXACT, drawn, score_deviation, lengths, _native.weight_moments)


def shrinkage(score_deviation: ArrayLike, lengths: ArrayLike) -> WeightMoments:
    """How a finite prompt shrinks the output of centred Gaussian tokens: c₁, c₂, and their derivatives in σ = τ².

    For a value direction v and a tilt θ, with a = ⟨v, Gθ⟩ and q = ⟨v, Gv⟩, an output of L tokens has mean c₁a and
    second moment c₂a² + (1 − c₁)q, where c₁ = E G/τ = 1 − E S₂ and c₂ = (E G² − E S₂)/τ². Columns: ``first`` c₁,
    ``second`` c₂, ``first_deficit`` and ``second_deficit`` 1 − c (kept with all their digits), ``first_slope`` and
    ``second_slope`` dc/dσ.

    Args:
        score_deviation: τ from 0 to 10⁴, a number or several.
        lengths: numbers of tokens; every τ is combined with every length.

    >>> shrinkage(0.0, [4])["first"]                     # equal weights: E S₂ = 1/L
    array([0.75])
    """
    drawn = {"first_deficit": "$1 - c_1$", "second_deficit": "$1 - c_2$"}
    return _table("Shrinkage of Gaussian outputs", _EXACT, drawn, score_deviation, lengths, _native.shrinkage)


def opposite_pair(score_deviation: ArrayLike, lengths: ArrayLike) -> WeightMoments:
    """How a finite prompt shrinks and spreads half the difference of a head and its opposite: C₁, C₂ and D.

    Two heads with tilts θ and −θ on one prompt of centred Gaussian tokens give o = ½⟨v, T₊ − T₋⟩ with mean C₁a and
    second moment C₂a² + Dq, a = ⟨v, Gθ⟩, q = ⟨v, Gv⟩. In long prompts D is about sinh(τ²)/L, where one head has
    e^{τ²}/L. Columns: ``first`` C₁, ``second`` C₂, ``spread`` D, ``first_deficit`` and ``second_deficit`` 1 − C,
    their slopes in σ = τ², and ``closure``, whose distance from one is the error of the quadrature.

    Args:
        score_deviation: τ from 0 to 20, a number or several.
        lengths: numbers of tokens; every τ is combined with every length, 3 to 300 ms each.

    >>> found = opposite_pair(0.5, 1e9)
    >>> (found["spread"] * 1e9 / np.sinh(0.25)).round(6)
    array([1.])
    """

    def columns(tau: Any, lengths: Any) -> dict[str, Any]:
        found = [_native.opposite_pair(tau, length) for length in lengths]
        return {name: np.concatenate([pair[name] for pair in found]) for name in found[0]}

    drawn = {"spread": "$D$", "first_deficit": "$1 - C_1$", "second_deficit": "$1 - C_2$"}
    note = "exact, to 1e-11 of the first deficit"
    return _table("A pair of opposite heads", note, drawn, score_deviation, lengths, columns)


def _table(
    title: str,
    note: str,
    drawn: dict[str, str],
    score_deviation: ArrayLike,
    lengths: ArrayLike,
    columns: Callable[[Any, Any], dict[str, Any]],
) -> WeightMoments:
    """Every score deviation with every length, in this order."""
    deviations = _native.own_numbers("score_deviation", score_deviation)
    if deviations.ndim > 1:
        raise ValueError(f"score_deviation: expected a number or one axis, found shape {deviations.shape}")
    across = _native.prompt_lengths(lengths)
    parts: list[dict[str, Any]] = []
    for deviation in deviations.reshape(-1).tolist():
        # In batches, with a look for Ctrl-C between them.
        for start in range(0, len(across), _LENGTHS_AT_A_TIME):
            batch = across[start : start + _LENGTHS_AT_A_TIME]
            numbers = columns(deviation, batch)
            parts.append(
                {"score_deviation": np.full(len(batch), float(deviation)), "length": np.array(batch), **numbers}
            )
    if not parts:
        empty = "lengths" if deviations.size else "score_deviation"
        raise ValueError(f"{empty}: none given, at least one is needed")
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return WeightMoments(joined, title=title, note=note, drawn=drawn)
