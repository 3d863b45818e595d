"""When two things are the same: equal numbers, arrays entry by entry, NaN like NaN."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np


def same(one: Any, other: Any) -> bool:
    """Whether two values are of one type and hold the same.

    >>> same({"a": [np.array([1.0, np.nan])]}, {"a": [np.array([1.0, np.nan])]})
    True
    >>> same(np.zeros(2), np.zeros(3))
    False
    """
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        if one.dtype != other.dtype or one.shape != other.shape:
            return False
        if one.dtype == object:
            return same(one.tolist(), other.tolist())
        return bool(np.array_equal(one, other, equal_nan=one.dtype.kind in "fc"))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and one != one:
        return bool(other != other)
    # What makes something again: these compare by identity.
    if isinstance(one, functools.partial | operator.attrgetter | operator.methodcaller):
        return same(one.__reduce__(), other.__reduce__())
    return bool(one == other)


def made_alike(one: Any, other: Any) -> bool:
    """Whether two things that can be pickled would be made again from the same."""
    return type(one) is type(other) and same(one.__reduce_ex__(2), other.__reduce_ex__(2))


class Compared:
    """Equal to another of its class that holds the same; without a hash, since it may hold arrays."""

    def __eq__(self, other: object) -> bool:
        return same(vars(self), vars(other)) if type(self) is type(other) else NotImplemented

    __hash__ = None  # type: ignore[assignment]
