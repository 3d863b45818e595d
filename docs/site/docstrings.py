"""A Griffe extension: native classes get docstrings from the installed module, and all docstrings become Markdown."""

from __future__ import annotations

import importlib
import inspect
import re
from typing import Any

import griffe

NATIVE = "esscher._native"
# A prompt, what follows it up to an empty line: input and output of one example.
EXAMPLE = re.compile(r"^>>> .*(?:\n(?!\s*$).*)*(?:\n\n>>> .*(?:\n(?!\s*$).*)*)*", re.MULTILINE)


class Docstrings(griffe.Extension):
    """The stub has the signatures of native classes, the compiled module their words: both are shown."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Fills in and formats the docstrings of a package that was just read."""
        if pkg.path != "esscher":
            return
        self._adopt(pkg["_native"], importlib.import_module(NATIVE))
        self._format(pkg, set())

    def _adopt(self, described: griffe.Object, living: Any) -> None:
        for name, member in described.members.items():
            if member.is_alias or name.startswith("_") or not hasattr(living, name):
                continue
            thing = inspect.getattr_static(living, name)
            text = inspect.getdoc(thing) if not isinstance(thing, str) else None
            if member.docstring is None and text:
                member.docstring = griffe.Docstring(text, parent=member)
            if member.is_class:
                self._adopt(member, getattr(living, name))

    def _format(self, described: griffe.Object, seen: set[str]) -> None:
        if described.path in seen:
            return
        seen.add(described.path)
        if described.docstring:
            described.docstring.value = as_markdown(described.docstring.value)
        if described.is_class and "__new__" in described.members and "__init__" not in described.members:
            # The signature of a class is looked for in `__init__`.
            described.members["__init__"] = described.members["__new__"]
        for member in described.members.values():
            if not member.is_alias:
                self._format(member, seen)


def as_markdown(text: str) -> str:
    r"""The text with its interactive examples fenced, brackets that are no links, and names of other things as code.

    >>> as_markdown("T[μ](z), see :func:`ask`.\n\n>>> 1 + 1\n2\n\nMore.")
    'T\\[μ](z), see `ask`.\n\n```pycon\n>>> 1 + 1\n2\n```\n\nMore.'
    """
    text = re.sub(r":[a-z]+:`~?([^`]*)`", r"`\1`", inspect.cleandoc(text))
    text = re.sub(r"\[([^\]\n]*)\]\(", r"\\[\1](", text)
    return EXAMPLE.sub(lambda found: f"```pycon\n{found[0]}\n```", text)
