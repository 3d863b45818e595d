"""Any question, asked as the command line and specification files ask it."""

from __future__ import annotations

import json
from typing import Any

from esscher import _native
from esscher._progress import Progress
from esscher._progress import ask as asked
from esscher.results import Results

__all__ = ["Answer", "ask", "schema"]


class Answer(Results):
    """The rows of an answer; see :func:`ask`. Printed, it is its sentences where it has no more to say."""

    sentences: tuple[str, ...]
    """The answer in words, as the command line gives it."""

    def __init__(self, found: dict[str, Any]) -> None:
        super().__init__(found["columns"], title=found["title"])
        self.sentences = tuple(found["sentences"])
        self._rows = found["rows"]

    def rows(self) -> list[dict[str, Any]]:
        """A dictionary for each row, the same in every door; what was not measured is None."""
        rows: list[dict[str, Any]] = json.loads(self._rows)
        return rows


def ask(
    question: str,
    *,
    seed: int | None = None,
    instruction_set: str | None = None,
    progress: Progress = None,
    **request: Any,
) -> Answer:
    """Answers a question here, without a run folder; ``catalogue("questions")`` lists them, ``schema`` says their keys.

    Args:
        question: its name.
        seed: which random numbers; 0.
        instruction_set: a name of :func:`instruction_sets`; the best one if None.
        progress: None shows progress of calls longer than two seconds, False never; a function gets the part done.
        request: the keys of the question, as in specification files. A law is a measure, a dictionary with a family, or
            short, "gaussian:4:0.5"; tokens may be an array; a head is a :class:`SoftmaxAttention` or a dictionary.

    >>> import esscher as es
    >>> answer = es.ask("horizon", tokens="gaussian:1", query=[0.5], tolerance=0.01)
    >>> answer.sentences[0]
    '16,050 tokens suffice: the root-mean-square error is at most 0.01 (exact)'
    >>> answer.rows()[0]["length"]
    16050
    """
    return Answer(asked(question, _native.ask, locals(), names={"kind": "question"}))


def schema(question: str | None = None) -> dict[str, Any]:
    """The JSON Schema of specifications, of one question or of all.

    >>> schema("horizon")["properties"]["tolerance"]["description"]
    'The root-mean-square error to reach, in the unit of what is measured'
    """
    found: dict[str, Any] = json.loads(_native.schema(question))
    return found
