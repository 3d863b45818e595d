"""Runs: a specification becomes a folder with its result, figures and report, on this machine or on a cluster."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from numpy.typing import NDArray

from esscher import _native
from esscher._arguments import items, word
from esscher._equality import Compared
from esscher._paths import path
from esscher._progress import Progress, ask
from esscher.results import Results

if TYPE_CHECKING:
    import pandas
    import polars
    from matplotlib.axes import Axes

__all__ = [
    "Plan", "Reproduction", "Run", "catalogue", "example", "instruction_sets", "merge", "plan", "read_run", "report",
    "reproduce", "run", "shard",
]  # fmt: skip


class Run(Compared):
    """A finished run, read from its folder.

    ``result`` holds the numbers, ``provenance`` who computed them where and when, ``report`` the page for people; a run
    that measures a claim of the paper has its ``claim``, ``verdict`` and ``reason``, else they are None.
    """

    folder: Path
    specification: str
    title: str
    kind: str
    seed: int
    result: Results
    provenance: dict[str, Any]
    claim: str | None
    verdict: str | None
    reason: str | None

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = path("folder", folder)
        read = _native.read_run(self.folder)
        finding = read.pop("finding") or {}
        self.__dict__.update(read, **{name: finding.get(name) for name in ("claim", "verdict", "reason")})
        self.provenance = json.loads(read["provenance"])
        self.result = Results(read["result"], title=self.title)

    @property
    def report(self) -> Path:
        """The report, a page that asks nothing of a network."""
        return self.folder / "report.html"

    def to_polars(self) -> polars.DataFrame:
        """The result as a polars data frame."""
        return self.result.to_polars()

    def to_pandas(self) -> pandas.DataFrame:
        """The result as a pandas data frame."""
        return self.result.to_pandas()

    def to_numpy(self) -> NDArray[Any]:
        """The result as a structured array."""
        return self.result.to_numpy()

    def plot(self, ax: Axes | None = None, **style: Any) -> Axes:
        """Draws the result's columns; the figures made for its kind are in the folder's ``figures``."""
        return self.result.plot(ax, **style)

    def __repr__(self) -> str:
        verdict = f", {self.claim}: {self.verdict}" if self.claim else ""
        return f"<esscher.Run {self.title!r}, {self.kind}, {len(self.result)} rows in {self.folder}{verdict}>"

    def _repr_html_(self) -> str:
        verdict = ""
        if self.claim:
            verdict = f"<p><b>{html.escape(self.verdict or '')}</b>: {html.escape(self.reason or '')}</p>"
        report = f'<p>{html.escape(self.kind)}, <a href="{html.escape(str(self.report))}">report</a></p>'
        return f"{verdict}{self.result._repr_html_()}{report}"


class Plan(Compared):
    """What a specification would run: its normal form and its units of work.

    >>> import esscher as es
    >>> plan = es.plan(es.example("concentration"))
    >>> plan.kind, len(plan.units) == len(plan.units["label"])
    ('concentration', True)
    """

    specification: str
    title: str
    kind: str
    seed: int
    instruction_set: str
    name: str
    units: Results

    def __init__(self, read: dict[str, Any]) -> None:
        units = read.pop("units")
        labels, costs = ([unit[part] for unit in units] for part in (0, 1))
        self.__dict__.update(read)
        seconds = f"about {sum(costs):.0f} seconds on one core"
        self.units = Results({"label": labels, "cost": costs}, title=self.title, notes=[seconds])

    def __repr__(self) -> str:
        return f"{self.specification}\n{self.units!r}"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.specification)}</pre>{self.units._repr_html_()}"


class Reproduction(Results):
    """The claims of the paper with their verdicts, a row each; ``report`` is the page on all of them.

    ``left_out`` names claims that are not in the report because their folders hold runs of another specification.
    """

    def __init__(self, findings: Iterable[dict[str, Any]], report: Path, left_out: Iterable[str] = ()) -> None:
        rows = list(findings)
        names = ("claim", "verdict", "number", "meaning", "reason", "title", "folder")
        columns = {name: [row[name] for row in rows] for name in names}
        self.left_out = list(left_out)
        others = [f"left out, as their folders hold other runs: {', '.join(self.left_out)}"] if self.left_out else []
        super().__init__(columns, title="The claims of the paper", notes=[f"report: {report}", *others])
        self.report = report

    def __repr__(self) -> str:
        widest = max((len(row["claim"]) for row in self), default=0)
        lines = [f"{row['verdict']}  {row['claim']:<{widest}}  {row['number']} {row['meaning']}" for row in self]
        return "\n".join([self.title, *lines, *self.notes])


def run(
    spec: str | os.PathLike[str],
    *,
    out: str | os.PathLike[str] = "runs",
    name: str | None = None,
    engine: Literal["local", "ray"] = "local",
    address: str | None = None,
    seed: int | None = None,
    instruction_set: str | None = None,
    progress: Progress = None,
) -> Run:
    """Runs one experiment from its specification into the run folder ``out/name``.

    ``spec`` is a file (a path, or a string that ends with ``.toml`` or names a file) or the TOML text itself. The
    folder gets spec.toml, provenance.json, shards/, result.parquet, figures/ and report.html; ``name`` is the file's by
    default, for a text the kind with the beginning of its checksum. Ctrl-C stops after the work at hand, and the same
    call goes on from there; a finished run is read, not computed.

    ``engine="ray"`` computes the units on a Ray cluster (``pip install esscher[ray]``) at ``address``: None for the one
    this process is connected to, the one started on this machine or else one of its own; ``"auto"``, ``"host:port"`` or
    ``"ray://host:port"``. The result has the same bytes as a local run on the same instruction set; machines that do
    not all have it need ``instruction_set="portable"``.

    >>> import esscher as es, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = es.run(es.example("concentration"), out=folder)
    >>> found.kind, "length" in found.result.names
    ('concentration', True)
    """
    word("engine", engine, "local", "ray")
    if address is not None and engine != "ray":
        raise ValueError('address is given, but the engine is "local": expected engine="ray"')
    asked = _asked(locals(), engine=None)
    if engine == "ray":
        from esscher.ray import run_on_cluster

        return Run(run_on_cluster(asked, address))
    return Run(ask(asked["label"], _native.run, asked))


def plan(spec: str | os.PathLike[str], *, seed: int | None = None, instruction_set: str | None = None) -> Plan:
    """What ``run`` would compute: the normalised specification and its units of work, with their costs in seconds."""
    return Plan(_native.plan(_asked(locals())))


def shard(
    spec: str | os.PathLike[str],
    index: int,
    of: int,
    *,
    out: str | os.PathLike[str] = "runs",
    name: str | None = None,
    seed: int | None = None,
    instruction_set: str | None = None,
    progress: Progress = None,
) -> Path:
    """Runs one share of an experiment, ``index`` from 0 to ``of`` - 1, for ``merge``; its folder."""
    index, of = (_native.read_whole(name, value, 0, 2**64 - 1) for name, value in (("index", index), ("of", of)))
    asked = _asked(locals(), share=f"{index}/{of}")
    return Path(ask(f"{asked['label']} {index}/{of}", _native.run, asked))


def merge(folders: Sequence[str | os.PathLike[str]], out: str | os.PathLike[str] | None = None) -> Run:
    """Merges the folders that ``shard`` made into the bytes of a single run, by default named as the shards are."""
    return Run(_native.merge_shards(_paths("folders", folders), None if out is None else path("out", out)))


def read_run(folder: str | os.PathLike[str]) -> Run:
    """Reads a finished run, whoever made it: this package, the command line, a cluster."""
    return Run(folder)


def report(
    runs: str | os.PathLike[str] | Run | Sequence[str | os.PathLike[str] | Run],
    out: str | os.PathLike[str] | None = None,
    *,
    force: bool = False,
) -> Path:
    """Writes the report of a run again, or compares several on a page; the file, by default report.html of the run.

    A file that is no report of Esscher is replaced only with ``force``, a file of a run never.
    """
    folders = _paths("runs", [runs] if isinstance(runs, Run) else runs)
    return Path(_native.write_report(folders, None if out is None else path("out", out), force))


def reproduce(
    only: str | Sequence[str] | None = None,
    *,
    full: bool = False,
    out: str | os.PathLike[str] = "runs",
    seed: int | None = None,
    instruction_set: str | None = None,
    progress: Progress = None,
) -> Reproduction:
    """Measures the claims of the paper, each a run of its own below ``out/reproduce``, and writes one report on all.

    ``only`` names claims (see ``catalogue("claims")``); ``full`` is the paper's scale, hours instead of minutes. An
    interrupted reproduction goes on where it was, and a finished claim is never computed again.
    """
    if only is not None and (not isinstance(only, Sequence) or not all(isinstance(name, str) for name in only)):
        raise TypeError(f"only: expected names of claims, found an object of type {type(only).__name__}")
    names = [] if only is None else [only] if isinstance(only, str) else list(only)
    if only is not None and not names:
        raise ValueError("only: no claim is named; leave it out to measure all of them")
    page, findings, left_out = ask("reproduce", _native.reproduce, locals(), only=names, out=path("out", out))
    return Reproduction(findings, page, left_out)


def instruction_sets() -> list[str]:
    """The instruction sets of this machine that simulations can be made with, the best last.

    >>> import esscher as es
    >>> es.instruction_sets()[0]
    'portable'
    """
    return list(_native.instruction_sets())


def catalogue(group: Literal["measures", "mechanisms", "questions", "claims", "models"] | None = None) -> Results:
    """What there is: families of measures, mechanisms, questions, claims of the paper, checkpoints.

    >>> import esscher as es
    >>> "gaussian" in es.catalogue("measures")["name"]
    True
    """
    return Results(_native.catalogue(group), title="" if group is None else group)


def example(name: str) -> str:
    """A specification (TOML) to start from: of a question, running within seconds, or the one of a claim.

    >>> import esscher as es
    >>> 'kind = "concentration"' in es.example("concentration").splitlines()
    True
    """
    return str(_native.example(name))


def _asked(asked: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The arguments of a call with its specification as ``file`` or ``text``, its folder, and what to call it."""
    spec, name = asked["spec"], asked.get("name")
    if not isinstance(spec, str | os.PathLike):
        raise TypeError(f"spec is {type(spec).__name__}: expected the path of a TOML file, or TOML text")
    if spec == "":
        raise ValueError("spec is empty: expected the path of a TOML file, or TOML text")
    if not isinstance(name, str | None):
        raise TypeError(f"name: expected a text, found an object of type {type(name).__name__}")
    if name is not None and (not name or name.startswith(".") or path("name", name).name != name):
        raise ValueError(f"name is {name!r}: expected the name of a folder, without / and not beginning with a dot")
    # A text has keys; what has none is the name of a file that is missing.
    is_file = not isinstance(spec, str) or spec.endswith(".toml") or os.path.isfile(spec) or "=" not in spec
    file = path("spec", spec) if is_file else None
    source = {"text": spec} if file is None else {"file": file}
    label = name or ("run" if file is None else file.stem)
    return {**asked, **source, "label": label, "out": path("out", asked.get("out", ".")), **more}


def _paths(what: str, given: Any) -> list[Path]:
    """The folders of one run or of several, as paths or as runs."""
    one_path = isinstance(given, str | bytes | os.PathLike)
    several = [given] if one_path else items(what, given, "folders of runs")
    return [one.folder if isinstance(one, Run) else path(what, one) for one in several]
