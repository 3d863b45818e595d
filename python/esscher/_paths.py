"""Paths as users write them: text, bytes, or anything that ``open`` takes; what names no file is refused by name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any


def path(what: str, value: Any) -> Path:
    r"""The path that an argument is.

    >>> path("out", b"runs").name
    'runs'
    >>> path("out", "a\0b")
    Traceback (most recent call last):
    ...
    ValueError: out is 'a\x00b': expected a path, which holds no character zero
    >>> path("out", "\ud800")
    Traceback (most recent call last):
    ...
    ValueError: out is '\ud800': expected a path, and this text holds half a character (a lone surrogate)
    """
    try:
        text = os.fsdecode(value)
    except TypeError:
        found = type(value).__name__
        raise TypeError(f"{what}: expected a path, a text or a pathlib.Path, found an object of type {found}") from None
    if "\0" in text:
        raise ValueError(f"{what} is {text!r}: expected a path, which holds no character zero")
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        message = "expected a path, and this text holds half a character (a lone surrogate)"
        raise ValueError(f"{what} is {text!r}: {message}") from None
    return Path(text)
