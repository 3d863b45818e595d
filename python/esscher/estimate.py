"""Numbers with their class: no number is reported without saying how far it may be off."""

from __future__ import annotations

from typing import Any

from esscher import _native
from esscher._arguments import word

__all__ = ["Estimate"]

_CLASSES = ("exact", "quasi-monte-carlo", "sampled")


class Estimate(float):
    """A number that knows how it was obtained; otherwise a float.

    ``accuracy`` is "exact", "quasi-monte-carlo" (exact in the tokens) or "sampled"; ``error`` is what to plan with: a
    bound where the number is exact, one standard error where it is random.

    >>> Estimate(0.25, "sampled", 0.001)
    0.25 ± 0.001 (sampled)
    >>> Estimate(0.25, "sampled", 0.001) + 1
    1.25
    """

    accuracy: str
    error: float

    def __new__(cls, value: float, accuracy: str, error: float) -> Estimate:
        """A number, its class and its error, which is NaN where it is not known."""
        word("accuracy", accuracy, *_CLASSES)
        self = super().__new__(cls, _native.read_real("value", value))
        self.accuracy = accuracy
        self.error = _native.read_real("error", error)
        if self.error < 0:
            raise ValueError(f"error is {self.error:g}: expected a number from 0 on, or NaN where it is not known")
        return self

    def __repr__(self) -> str:
        return f"{float(self):.12g} ± {self.error:.1g} ({self.accuracy})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (Estimate, (float(self), self.accuracy, self.error))
