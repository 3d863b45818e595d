"""Arguments that Python looks at itself: refused by name, whatever they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__: list[str] = []


def found(value: Any) -> str:
    """What a message says of a value of the wrong type."""
    return f"found an object of type {type(value).__name__}"


def given(**arguments: Any) -> None:
    """Refuses arguments that are not there: None, or a table without entries, would mean what is usual.

    >>> given(head=None)
    Traceback (most recent call last):
    ...
    TypeError: head: expected a value, found None
    """
    for what, value in arguments.items():
        if value is None:
            raise TypeError(f"{what}: expected a value, found None")
        if isinstance(value, Mapping) and not value:
            raise ValueError(f"{what}: expected a value, found a dictionary without entries")


def word(what: str, value: Any, *known: str) -> str:
    """One of a few words; an array would be compared entry by entry.

    >>> word("engine", "fast", "best", "exact")
    Traceback (most recent call last):
    ...
    ValueError: engine is "fast": expected "best" or "exact"
    """
    if not isinstance(value, str):
        raise TypeError(f"{what}: expected a text, {found(value)}")
    if value not in known:
        *others, last = (f'"{name}"' for name in known)
        expected = f"{', '.join(others)} or {last}" if others else last
        raise ValueError(f"{what} is {quoted(value)}: expected {expected}")
    return str(value)


def quoted(text: str) -> str:
    r"""A text in quotation marks, as a line of a message may hold it.

    >>> print(quoted("a\nb"))
    "a\nb"
    """
    return '"' + repr(text)[1:-1] + '"'


def items(what: str, values: Any, expected: str = "a list") -> Iterator[Any]:
    """The elements of anything that has some, one by one; an array without axes looks as if it had.

    >>> list(items("packed", 3))
    Traceback (most recent call last):
    ...
    TypeError: packed: expected a list, found an object of type int
    """
    if isinstance(values, str | bytes | Mapping) or getattr(values, "shape", None) == ():
        raise TypeError(f"{what}: expected {expected}, {found(values)}")
    try:
        elements: Iterator[Any] = iter(values)
    except TypeError:
        raise TypeError(f"{what}: expected {expected}, {found(values)}") from None
    return elements
