"""Progress of long calls: where it cannot be shown, the work goes on."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest

import esscher as es
from esscher import _progress

HEAD, NORMAL = es.SoftmaxAttention([[1.0]], [[1.0]]), es.Gaussian.standard(1)


class Full(io.StringIO):
    def write(self, text: str) -> int:
        raise OSError(28, "No space left on device")


class Gone(io.StringIO):
    def flush(self) -> None:
        raise BrokenPipeError(32, "Broken pipe")

    def isatty(self) -> bool:
        return True


def closed() -> io.StringIO:
    stream = io.StringIO()
    stream.close()
    return stream


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every call counts as long."""
    monkeypatch.setattr(_progress, "_PATIENCE", -1.0)
    monkeypatch.delenv("ESSCHER_PROGRESS", raising=False)


def shown(fractions: tuple[float, ...] = (0.2, 0.9)) -> None:
    with _progress.shown("work", None) as report:
        for fraction in fractions:
            if report is not None:
                report(fraction)


@pytest.mark.parametrize("make", [Full, Gone, closed])
def test_a_display_that_fails_stops_nothing(make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", make())
    shown()
    study = es.concentration(HEAD, es.Cube(1), queries=NORMAL, lengths=[10**5], trials=64)
    assert study["output_error"][0] > 0


def test_without_standard_error_nothing_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    shown()
    _progress.say("a download")
    assert capsys.readouterr().out == ""


def test_progress_is_shown_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    shown()
    assert capsys.readouterr().err.startswith("work: 20 %")
    with _progress.shown("work", np.False_) as report:
        assert report is None
