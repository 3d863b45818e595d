"""Horizons: how long a prompt must be for an error."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import Literal

from numpy.typing import ArrayLike

from esscher._arguments import given
from esscher._native import Measure, SoftmaxAttention
from esscher._progress import Progress
from esscher.estimate import Estimate
from esscher.questions import ask

__all__ = ["Horizon", "horizon"]

Quantity = Literal["output", "score-gradient", "value-gradient"]
"""What is measured."""


@dataclass(frozen=True)
class Horizon:
    """The smallest sufficient length; see :func:`horizon`. Printed, it is a sentence."""

    outcome: Literal["found", "beyond"]
    """"beyond" if 10¹² tokens are not enough."""
    length: int | None
    """The horizon; None if it lies beyond."""
    error: Estimate
    """The root-mean-square error there, or at 10¹² tokens, with its class and its own error."""
    too_short: int | None
    """The longest length known to be too short."""
    tokens: str | None
    """What the tokens were taken for, where they came as an array."""
    sentences: tuple[str, ...]
    """The answer in words, as every door gives it."""

    @property
    def status(self) -> str:
        """The outcome, by the name it had before."""
        return self.outcome

    @property
    def sentence(self) -> str:
        """The last of the sentences, which has the length."""
        return self.sentences[-1]

    @property
    def accuracy(self) -> str:
        """The class of the error."""
        return self.error.accuracy

    @property
    def bracket(self) -> tuple[int | None, int | None]:
        """The longest length known to be above the tolerance, and the shortest known to be within it."""
        return self.too_short, self.length

    def __str__(self) -> str:
        return "\n".join(self.sentences)


def horizon(
    head: SoftmaxAttention,
    tokens: Measure | ArrayLike,
    *,
    tolerance: float,
    query: ArrayLike | None = None,
    queries: Measure | ArrayLike | None = None,
    quantity: Quantity = "output",
    directions: int | None = None,
    randomisations: int | None = None,
    seed: int = 0,
    progress: Progress = None,
) -> Horizon:
    """The smallest L with (E|T_L − T|²)^{1/2} ≤ tolerance, at one query or averaged over a law of queries.

    Exact in the tokens: Gaussians, atoms and their mixtures. The error is asked for at both L and L − 1; that it falls
    with the length is assumed.

    Args:
        head: a softmax head.
        tokens: the law of a token. An array of tokens stands for the Gaussian with their mean and covariance.
        tolerance: the root-mean-square error to reach, in the unit of the quantity.
        query: one query (d,); or give ``queries``.
        queries: a law of queries, or an array of them; without either, the law of the tokens.
        quantity: "output", "score-gradient" or "value-gradient".
        directions: directions of queries per randomisation; 512, or 8 for mixtures of tokens.
        randomisations: independent randomisations of the directions; 16, or 4 for mixtures of tokens.
        seed: which randomisations.
        progress: None shows progress of calls longer than two seconds, False never; a function gets the part done.

    >>> import esscher as es
    >>> head = es.SoftmaxAttention(score=[[1.0]], value=[[1.0]])
    >>> print(es.horizon(head, es.Gaussian.standard(1), query=[0.5], tolerance=0.01))
    16,050 tokens suffice: the root-mean-square error is at most 0.01 (exact)
    """
    arguments = locals()
    given(head=head, tokens=tokens, tolerance=tolerance)
    answer = ask("horizon", **arguments)
    (row,) = answer.rows()
    value, spread = (nan if row[name] is None else row[name] for name in ("value", "error"))
    error = Estimate(value, row["accuracy"], spread)
    return Horizon(row["outcome"], row["length"], error, row["too_short"], row["tokens"], answer.sentences)
