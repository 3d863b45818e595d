"""Progress of long calls: an HTML bar in notebooks, a line on terminals, plain lines elsewhere."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

Progress = bool | Callable[[float], object] | None
"""What ``progress=`` takes: None shows it after two seconds, False never, a function is called with the part done."""

_PATIENCE = 2.0  # seconds until a call counts as long
_BETWEEN_LINES = 5.0


@contextmanager
def shown(label: str, progress: Progress) -> Iterator[Callable[[float], object] | None]:
    """Gives the native call something to report its progress to, and tidies up afterwards."""
    if callable(progress):
        yield progress
        return
    if progress is not None and not isinstance(progress, bool | np.bool_):
        found = type(progress).__name__
        raise TypeError(f"progress: expected None, a bool or a function, found an object of type {found}")
    unwanted = progress is not None and not progress
    display = None if unwanted or os.environ.get("ESSCHER_PROGRESS") == "0" else _display(label)
    if display is None:
        yield None
        return
    try:
        yield display.report
    finally:
        display.close()


def ask(label: str, function: Callable[..., Any], asked: dict[str, Any], **more: Any) -> Any:
    """Calls a native function with the arguments of a Python one, its ``locals()``, and shows its progress."""
    with shown(label, asked.get("progress")) as report:
        return function({**asked, **more, "progress": report})


def say(text: str, end: str = "\n") -> None:
    """Writes to standard error, if there is one: to ``print`` its absence would mean standard output."""
    if sys.stderr is not None:
        print(text, end=end, file=sys.stderr, flush=True)


def _display(label: str) -> _Display | None:
    """What shows progress here; nothing where nobody would see it."""
    if _in_notebook():
        return _Notebook(label)
    try:
        return _Terminal(label) if sys.stderr.isatty() else _Lines(label)
    except Exception:
        # Standard error is closed, or there is none.
        return None


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and shell.__class__.__name__ == "ZMQInteractiveShell"


class _Display:
    """Shows a fraction now and then, from the moment the call turns out to be long."""

    between = 0.2

    def __init__(self, label: str) -> None:
        self.label = label
        self.began = time.monotonic()
        self.last = self.began + _PATIENCE - self.between
        self.visible = False
        self.broken = False

    def report(self, fraction: float) -> None:
        now = time.monotonic()
        if now - self.last >= self.between and not self.broken:
            self.last = now
            self.visible = True
            elapsed = now - self.began
            left = elapsed * (1.0 - fraction) / fraction if fraction > 0.01 else None
            self.safely(self.show, fraction, "" if left is None else f"{_duration(left)} left")

    def close(self) -> None:
        if self.visible and not self.broken:
            self.safely(self.tidy)

    def safely(self, show: Callable[..., None], *what: Any) -> None:
        """Shows something. Where that fails, because a disk is full or a pipe closed, the work goes on unseen."""
        try:
            show(*what)
        except Exception:
            self.broken = True

    def show(self, fraction: float, left: str) -> None:
        raise NotImplementedError

    def tidy(self) -> None:
        """Leaves no trace of what changed in place."""


class _Notebook(_Display):
    handle: Any = None

    def show(self, fraction: float, left: str) -> None:
        from IPython.display import HTML, display

        bar = HTML(f'{self.label} <progress value="{fraction:.3f}" max="1"></progress> {100 * fraction:.0f} % {left}')
        if self.handle is None:
            self.handle = display(bar, display_id=True)
        else:
            self.handle.update(bar)

    def tidy(self) -> None:
        if self.handle is not None:
            from IPython.display import HTML

            self.handle.update(HTML(""))


class _Terminal(_Display):
    def show(self, fraction: float, left: str) -> None:
        filled = round(24 * fraction)
        bar = "━" * filled + "─" * (24 - filled)
        say(f"\r\x1b[K{self.label} {bar} {100 * fraction:3.0f} %  {left}", end="")

    def tidy(self) -> None:
        say("\r\x1b[K", end="")


class _Lines(_Display):
    between = _BETWEEN_LINES

    def show(self, fraction: float, left: str) -> None:
        say(f"{self.label}: {100 * fraction:.0f} %{', ' + left if left else ''}")


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 3600 else f"{seconds / 3600:.1f} h"
