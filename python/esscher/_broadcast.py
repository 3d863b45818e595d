"""Broadcasting of functions that the native module has for single numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from esscher import _native

_MOST_AXES = 32  # what NumPy broadcasts in all its versions


def broadcast(function: Callable[..., Any], **arguments: Any) -> Any:
    """The function of single numbers at every combination of broadcast arguments: an array, or a number for numbers.

    >>> broadcast(lambda base, power: base**power, base=[2.0, 3.0], power=2)
    array([4., 9.])
    >>> broadcast(lambda base, power: base**power, base=2.0, power=3)
    8.0
    """
    # As Python's own numbers, so that the native module sees what was written: True, 10**30, "x".
    given = [_native.own_numbers(name, value) for name, value in arguments.items()]
    for name, array in zip(arguments, given, strict=True):
        if array.ndim > _MOST_AXES:
            raise ValueError(f"{name}: expected at most {_MOST_AXES} axes, found {array.ndim}")
    try:
        shape = np.broadcast_shapes(*(array.shape for array in given))
    except ValueError:
        shapes = " and ".join(str(array.shape) for array in given)
        raise ValueError(f"{', '.join(arguments)}: the shapes {shapes} do not broadcast") from None
    answers = [function(*numbers) for numbers in zip(*(np.broadcast_to(a, shape).flat for a in given), strict=True)]
    if shape == ():
        return answers[0]
    texts = bool(answers) and isinstance(answers[0], str)
    return np.array(answers, dtype=object if texts else float).reshape(shape)
