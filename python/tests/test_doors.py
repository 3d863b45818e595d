"""Every door is asked the same twelve questions, and the answers are the same, digit for digit."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import esscher as es

MIXTURE = {
    "family": "mixture",
    "dimension": 2,
    "component": [{"weight": 0.3, "mean": [1.0, 0.0]}, {"weight": 0.7, "mean": [-1.0, 0.5], "scale": 0.5}],
}
SMALL_TRAINING = {"covariance": "isotropic", "dimensions": [2], "noise": 0.1}

# What is asked, under the name of the question; the options of the command line where it has some.
QUESTIONS: dict[str, tuple[str, dict[str, Any], list[str] | None]] = {
    "one-dimensional law": (
        "horizon",
        {"tokens": "gaussian:1", "query": [0.5], "tolerance": 0.01},
        ["--tokens", "gaussian:1", "--query", "0.5", "--tolerance", "0.01"],
    ),
    "queries of one dimension": (
        "horizon",
        {"tokens": "gaussian:1:0.5", "tolerance": 0.05},
        ["--tokens", "gaussian:1:0.5", "--tolerance", "0.05"],
    ),
    "mixture tokens": (
        "horizon",
        {
            "tokens": MIXTURE,
            "queries": "gaussian:2:0.3",
            "directions": 2,
            "randomisations": 2,
            "tolerance": 0.5,
        },
        [
            "--tokens",
            '{family = "mixture", dimension = 2, component = [{weight = 0.3, mean = [1.0, 0.0]}, '
            "{weight = 0.7, mean = [-1.0, 0.5], scale = 0.5}]}",
            "--queries",
            "gaussian:2:0.3",
            "--directions",
            "2",
            "--randomisations",
            "2",
            "--tolerance",
            "0.5",
        ],
    ),
    "Rademacher queries": (
        "horizon",
        {"tokens": "gaussian:2:0.5", "queries": "rademacher:2", "tolerance": 0.05},
        ["--tokens", "gaussian:2:0.5", "--queries", "rademacher:2", "--tolerance", "0.05"],
    ),
    "beyond 1e12": (
        "horizon",
        {"tokens": "gaussian:1", "query": [0.5], "tolerance": 1e-9, "quantity": "score-gradient"},
        ["--tokens", "gaussian:1", "--query", "0.5", "--tolerance", "1e-9", "--quantity", "score-gradient"],
    ),
    "outputs": (
        "attend",
        {"tokens": "gaussian:2", "query": [0.5, -1.0], "length": [100, 10**12]},
        ["--tokens", "gaussian:2", "--query", "0.5,-1", "--length", "100", "--length", "1e12"],
    ),
    "outputs of a mixture": (
        "attend",
        {"tokens": MIXTURE, "query": [[0.5, -1.0], [0.0, 2.0]], "head": {"score": 0.5, "value": [[1.0, -1.0]]}},
        None,
    ),
    "linearity": (
        "linearity",
        {"radii": [0.5, 2.0], "tokens": {"family": "rademacher", "dimension": 2}},
        None,
    ),
    "concentration": (
        "concentration",
        {"lengths": [10, 1000], "tokens": {"family": "gaussian", "dimension": 2}, "queries": "gaussian:2"},
        None,
    ),
    "training": (
        "training",
        {"models": ["softmax", "infinite"], "lengths": [100], "rows": 4, "task": SMALL_TRAINING},
        None,
    ),
    "audit": (
        "audit-heads",
        {"model": "tiny-random", "text": "stories", "lengths": [128], "texts": 3, "candidates": ["mean"]},
        None,
    ),
}


def toml(request: dict[str, Any]) -> str:
    """Inline tables all through: nested values are written as TOML writes them in one line."""

    def value(found: Any) -> str:
        if isinstance(found, dict):
            return "{" + ", ".join(f"{key} = {value(inner)}" for key, inner in found.items()) + "}"
        if isinstance(found, list):
            return "[" + ", ".join(value(inner) for inner in found) + "]"
        return json.dumps(found)

    return "".join(f"{key} = {value(found)}\n" for key, found in request.items())


def rows(binary: Path, *arguments: Any) -> list[dict[str, Any]]:
    command = [binary, *map(str, arguments), "--json", "--quiet"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found: list[dict[str, Any]] = json.loads(printed)["rows"]
    return found


@pytest.mark.parametrize("name", QUESTIONS)
def test_doors_agree(name: str, binary: Path, tmp_path: Path) -> None:
    question, request, options = QUESTIONS[name]
    expected = es.ask(question, **request).rows()
    assert expected
    whole = {"kind": question, **request}
    (tmp_path / "asked.toml").write_text(toml(whole))
    (tmp_path / "asked.json").write_text(json.dumps(whole))
    assert rows(binary, "ask", tmp_path / "asked.toml") == expected
    assert rows(binary, "ask", tmp_path / "asked.json") == expected
    if options is not None:
        assert rows(binary, question, *options) == expected
    run = es.run(tmp_path / "asked.toml", out=tmp_path, progress=False)
    for column in expected[0]:
        found = [None if value is None or value != value else value for value in run.result[column].tolist()]
        assert found == [row[column] for row in expected], column


@pytest.mark.parametrize("name", [name for name in QUESTIONS if QUESTIONS[name][0] == "horizon"])
def test_a_horizon_is_the_answer_of_its_question(name: str) -> None:
    request = dict(QUESTIONS[name][1])
    answer = es.ask("horizon", **request)
    (row,) = answer.rows()
    dimension = 1 if request["tokens"] in ("gaussian:1", "gaussian:1:0.5") else 2
    identity = es.SoftmaxAttention(score=np.eye(dimension), value=np.eye(dimension))
    found = es.horizon(identity, request.pop("tokens"), **request)
    assert (found.outcome, found.length, found.too_short) == (row["outcome"], row["length"], row["too_short"])
    assert (found.error, found.error.error, found.accuracy) == (row["value"], row["error"], row["accuracy"])
    assert str(found) == "\n".join(answer.sentences)


@pytest.mark.parametrize(("tokens", "engine"), [("gaussian:2", "exact"), ("rademacher:2", "sampled")])
def test_a_study_is_the_answer_of_its_question(tokens: str, engine: str) -> None:
    lengths, quantities = [10, 100, 1000], ["output", "score-gradient", "value-gradient"]
    identity = es.SoftmaxAttention(score=np.eye(2), value=np.eye(2))
    asked: dict[str, Any] = {"queries": "gaussian:2", "lengths": lengths, "seed": 3}
    study = es.concentration(identity, tokens, **asked)
    rows = es.ask("concentration", tokens=tokens, quantities=quantities, **asked).rows()
    assert {row["engine"] for row in rows} == {engine}
    assert study.operator_norm == rows[0]["operator_norm"]
    for quantity in quantities:
        errors, slopes, (rate,) = (
            [row for row in rows if (row["quantity"], row["statistic"]) == (quantity, statistic)]
            for statistic in ("error", "slope", "rate")
        )
        column = f"{quantity.replace('-', '_')}_error"
        assert study[column].tolist() == [row["value"] for row in errors]
        assert study[f"{column}_uncertainty"].tolist() == [row["error"] for row in errors]
        assert study["accuracy"].tolist() == [row["accuracy"] for row in errors]
        # The fits are made again from the same numbers and their joint covariance.
        found = study.local_slopes(quantity)  # type: ignore[arg-type]
        assert found["slope"].tolist() == [row["value"] for row in slopes]
        assert found["standard_error"].tolist() == [row["error"] for row in slopes]
        fit = study.rate(quantity)  # type: ignore[arg-type]
        assert (fit.exponent, *fit.interval) == (rate["value"], rate["lower"], rate["upper"])


def test_classes_come_from_where_numbers_are_computed() -> None:
    def accuracy(name: str) -> Any:
        question, request, _ = QUESTIONS[name]
        return es.ask(question, **request).rows()[0]["accuracy"]

    assert accuracy("one-dimensional law") == "exact"
    assert accuracy("queries of one dimension") == "exact"
    assert accuracy("Rademacher queries") == "sampled"
    assert accuracy("mixture tokens") == "quasi-monte-carlo"
    beyond = es.ask("horizon", **QUESTIONS["beyond 1e12"][1]).rows()[0]
    assert (beyond["outcome"], beyond["length"], beyond["too_short"]) == ("beyond", None, 10**12)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_stopped_question_says_so(binary: Path, tmp_path: Path) -> None:
    """The twelfth: stopped in the command line and in Python, neither invents an answer."""
    law = {"family": "gaussian", "dimension": 2}
    long = {"kind": "path", "prompts": 4000, "lengths": [10**6], "queries": [[1.0, 0.0]], "tokens": law}
    (tmp_path / "long.toml").write_text(toml(long))
    process = subprocess.Popen(
        [binary, "ask", tmp_path / "long.toml", "--quiet"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, ""), err
    assert err == "interrupted\n"

    class EnoughError(Exception):
        pass

    def stop(_: float) -> None:
        raise EnoughError

    keys = {key: value for key, value in long.items() if key != "kind"}
    with pytest.raises(EnoughError):
        es.ask("path", progress=stop, **keys)
    assert os.listdir(tmp_path) == ["long.toml"]
