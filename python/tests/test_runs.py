"""Runs from Python: the bytes of the command line, resumption, Ctrl-C, shards, claims, and what is refused."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from specifications import THIRTEEN_UNITS

import esscher as es
from esscher import _native

ROOT = Path(__file__).parents[2]


def identity(folder: Path) -> tuple[bytes, bytes]:
    """What "the same bytes" means."""
    return (folder / "spec.toml").read_bytes(), (folder / "result.parquet").read_bytes()


def test_a_run_has_its_files_and_its_result(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(es.example("concentration"))
    run = es.run(tmp_path / "mine.toml", out=tmp_path / "runs")
    assert run.folder == tmp_path / "runs" / "mine"
    assert run.report.read_text().startswith("<!")
    assert list((run.folder / "figures").glob("*.svg"))
    assert run.kind == "concentration"
    assert run.specification == (run.folder / "spec.toml").read_text()
    assert run.provenance["sessions"][0]["origin"]["program"] == "esscher (Python)"
    assert (run.claim, run.verdict, run.reason) == (None, None, None)
    assert run.to_numpy().shape == (len(run.result),)
    assert "<table>" in run._repr_html_()
    assert str(run.folder) in repr(run)
    finished = (run.folder / "result.parquet").stat().st_mtime_ns
    again = es.run(str(tmp_path / "mine.toml"), out=tmp_path / "runs")
    assert (again.folder / "result.parquet").stat().st_mtime_ns == finished, "a finished run is read, not computed"
    assert es.read_run(run.folder).result.names == run.result.names


def test_the_result_is_that_of_the_parquet_file(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    run = es.run(es.example("path"), out=tmp_path)
    table = parquet.read_table(run.folder / "result.parquet")
    assert tuple(table.column_names) == run.result.names
    for name in run.result.names:
        values = table.column(name).to_pylist()
        if run.result[name].dtype == object:
            assert list(run.result[name]) == values
        else:
            expected = np.array([np.nan if value is None else value for value in values])
            np.testing.assert_array_equal(run.result[name], expected)


def test_the_bytes_are_those_of_the_command_line(tmp_path: Path, binary: Path) -> None:
    (tmp_path / "mine.toml").write_text(es.example("path"))
    command = [binary, "run", tmp_path / "mine.toml", "--out", tmp_path / "command", "--seed", "5", "--quiet"]
    subprocess.run(command, check=True, capture_output=True)
    run = es.run(tmp_path / "mine.toml", out=tmp_path / "python", seed=5)
    assert identity(run.folder) == identity(tmp_path / "command" / "mine")
    # Each reads the other's folder.
    assert es.read_run(tmp_path / "command" / "mine").seed == 5
    subprocess.run([binary, "report", run.folder], check=True, capture_output=True)


def test_shards_merge_into_the_bytes_of_a_single_run(tmp_path: Path) -> None:
    text = es.example("path")
    single = es.run(text, out=tmp_path / "single")
    folders = [es.shard(text, index, 3, out=tmp_path / "shards", name="mine") for index in range(3)]
    assert folders[1].name == "mine.shard-1-of-3"
    with pytest.raises(OSError, match="units are missing, the first is unit 1") as incomplete:
        es.merge([folders[0], folders[2]], out=tmp_path / "parts")
    assert "\nhint: run the shards that are missing" in str(incomplete.value)
    merged = es.merge(folders)
    assert merged.folder == tmp_path / "shards" / "mine"
    assert identity(merged.folder) == identity(single.folder)
    with pytest.raises(ValueError, match="the share `3/3` makes no sense"):
        es.shard(text, 3, 3, out=tmp_path / "shards")


def test_a_specification_is_a_path_or_a_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = es.example("linearity")
    Path("named").write_text(text)
    assert es.plan("named").specification == es.plan(text).specification
    assert es.plan(text).name.startswith("linearity-")
    assert es.plan(Path("named")).name == "named"
    with pytest.raises(TypeError, match="spec is int: expected the path of a TOML file"):
        es.plan(3)  # type: ignore[arg-type]


def test_a_plan_says_what_would_be_run() -> None:
    plan = es.plan(es.example("path"), seed=3)
    assert (plan.kind, plan.seed, "seed = 3" in plan.specification) == ("path", 3, True)
    assert es.plan(plan.specification).specification == plan.specification
    assert plan.units.names == ("label", "cost")
    assert "on one core" in repr(plan)
    assert "<pre>" in plan._repr_html_()


@pytest.mark.parametrize(
    ("text", "raised", "message"),
    [
        ("absent.toml", FileNotFoundError, r"cannot read absent.toml: no such file or directory\nhint: give a spec"),
        ("absent", FileNotFoundError, "cannot read absent: no such file"),
        ('kind = "pth"', ValueError, r'specification:1:8: .*\nhint: did you mean "path"\?'),
        ("kind = ", ValueError, "specification:1:"),
        ('kind = "concentration"\n[tokens]\nfamly = "x"', ValueError, "specification:"),
    ],
)
def test_mistakes_are_told_as_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, raised: type[Exception], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for call in (es.run, es.plan):
        with pytest.raises(raised, match=message):
            call(text)
    assert not (tmp_path / "runs").exists()


def test_requests_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    text = es.example("path")
    with pytest.raises(ValueError, match="instruction_set: "):
        es.run(text, out=tmp_path, instruction_set="abacus")
    with pytest.raises(ValueError, match="seed is -1: expected a whole number from 0"):
        es.run(text, out=tmp_path, seed=-1)
    with pytest.raises(ValueError, match='engine is "dask": expected "local" or "ray"'):
        es.run(text, out=tmp_path, engine="dask")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match='expected engine="ray"'):
        es.run(text, out=tmp_path, address="auto")
    with pytest.raises(ValueError, match="expected the name of a folder"):
        es.run(text, out=tmp_path, name="../elsewhere")
    with pytest.raises(ValueError, match=r"there is no question or claim `pth`\nhint: did you mean `path`\?"):
        es.example("pth")
    with pytest.raises(ValueError, match="there is no group `claim`\nhint: did you mean `claims`"):
        es.catalogue("claim")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="there is no claim `lemma`"):
        es.reproduce("lemma", out=tmp_path)
    with pytest.raises(FileNotFoundError, match="is not a run folder"):
        es.read_run(tmp_path)
    with pytest.raises(ValueError, match="no run folder was given"):
        es.merge([])


def test_files_that_are_not_this_runs_are_refused(tmp_path: Path) -> None:
    run = es.run(es.example("path"), out=tmp_path, name="mine", instruction_set="portable")
    with pytest.raises(FileExistsError, match="holds another specification") as other:
        es.run(es.example("linearity"), out=tmp_path, name="mine")
    assert "out=" in str(other.value)
    assert "--out" not in str(other.value)
    (run.folder / "result.parquet").write_bytes(b"not a table")
    with pytest.raises(OSError, match="is damaged: it does not begin and end like a Parquet file") as damaged:
        es.read_run(run.folder)
    assert "\nhint: delete it and run the experiment again" in str(damaged.value)
    (run.folder / "result.parquet").unlink()
    again = es.run(es.example("path"), out=tmp_path, name="mine", instruction_set="portable")
    units = [session["units"] for session in again.provenance["sessions"]]
    assert units == [len(es.plan(again.specification).units), 0], "merged anew, not computed"


def test_reports_are_made_again_and_runs_compared(tmp_path: Path) -> None:
    runs = [es.run(es.example("path"), out=tmp_path, name=f"seed-{seed}", seed=seed) for seed in (1, 2)]
    runs[0].report.unlink()
    assert es.report(runs[0]) == runs[0].report
    assert runs[0].report.exists()
    page = es.report([runs[0], str(runs[1].folder)], out=tmp_path / "both.html")
    assert page == tmp_path / "both.html"
    assert "seed-2" in page.read_text()


def test_a_report_replaces_nothing_of_somebody_else(tmp_path: Path) -> None:
    run = es.run(es.example("path"), out=tmp_path, name="mine")
    (tmp_path / "notes.html").write_text("mine")
    for kept in (tmp_path / "notes.html", run.folder / "result.parquet", tmp_path):
        with pytest.raises(FileExistsError, match="is not written"):
            es.report(run, out=kept)
    assert (tmp_path / "notes.html").read_text() == "mine"


def test_a_claim_is_measured_and_judged(tmp_path: Path) -> None:
    found = es.reproduce("gaussian-lemma", out=tmp_path, progress=False)
    assert found["claim"].tolist() == ["gaussian-lemma"]
    assert found["verdict"].tolist() == ["holds"]
    assert str(found).splitlines()[1].startswith("holds  gaussian-lemma  10 digits of agreement with an affine map")
    assert found.report == tmp_path / "reproduce" / "report.html"
    assert found.report.exists()
    run = es.read_run(found["folder"][0])
    assert (run.claim, run.verdict) == ("gaussian-lemma", "holds")
    assert run.reason == found["reason"][0]
    assert "holds" in run._repr_html_()
    # What was measured before stays in the report.
    more = es.reproduce(["gaussian-lemma"], out=tmp_path, progress=False)
    assert (more["claim"].tolist(), more.left_out) == (["gaussian-lemma"], [])
    # A run of another specification is not.
    Path(found["folder"][0]).rename(tmp_path / "reproduce" / "almost-sure")
    more = es.reproduce("gaussian-lemma", out=tmp_path, progress=False)
    assert more.left_out == ["almost-sure"]
    assert "almost-sure" in str(more)


def test_the_catalogue_names_everything() -> None:
    everything = es.catalogue()
    assert everything.names == ("group", "name", "summary")
    assert set(everything["group"]) == {"measures", "mechanisms", "questions", "claims", "models"}
    for kind in es.catalogue("questions")["name"]:
        assert es.plan(es.example(kind)).kind == kind


def test_progress_goes_from_nothing_to_everything(tmp_path: Path) -> None:
    seen: list[float] = []
    es.run(THIRTEEN_UNITS.replace("1e7", "1e6"), out=tmp_path, progress=seen.append)
    assert seen == sorted(seen)
    assert all(0 <= part <= 1 for part in seen)


def test_ctrl_c_stops_cleanly_and_the_same_call_goes_on(tmp_path: Path) -> None:
    program = textwrap.dedent("""
        import sys
        import esscher as es
        try:
            es.run(sys.argv[1], out=sys.argv[2], name="slow", progress=False)
        except KeyboardInterrupt:
            sys.exit(77)
    """)
    child = subprocess.Popen(
        [sys.executable, "-c", program, THIRTEEN_UNITS, str(tmp_path)], stderr=subprocess.PIPE, text=True
    )
    shards = tmp_path / "slow" / "shards"
    wait_for(lambda: shards.is_dir() and len(list(shards.glob("0*.parquet"))) >= 2, child)
    began = time.monotonic()
    child.send_signal(signal.SIGINT)
    assert child.wait(timeout=60) == 77, child.stderr.read() if child.stderr else ""
    assert time.monotonic() - began < 30
    done = len(list(shards.glob("0*.parquet")))
    assert 2 <= done < 13
    assert not (tmp_path / "slow" / "result.parquet").exists()
    run = es.run(THIRTEEN_UNITS, out=tmp_path, name="slow")
    assert [session["units"] for session in run.provenance["sessions"]] == [done, 13 - done]
    assert identity(run.folder) == identity(es.run(THIRTEEN_UNITS, out=tmp_path, name="undisturbed").folder)


def test_importing_the_package_imports_no_cluster() -> None:
    program = "import sys, esscher; sys.exit('ray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_missing_ray_is_told_in_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"^ray is not installed: pip install esscher\[ray\]$"):
        es.run(es.example("path"), out=tmp_path, engine="ray")


def wait_for(condition: object, child: subprocess.Popen[str], patience: float = 120.0) -> None:
    """Waits until something is so while a process runs."""
    assert callable(condition)
    end = time.monotonic() + patience
    while not condition():
        assert child.poll() is None, f"ended early: {child.stderr.read() if child.stderr else ''}"
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


@pytest.mark.parametrize("kind", es.catalogue("questions")["name"])
def test_units_computed_elsewhere_are_the_shards_of_a_local_run(kind: str, tmp_path: Path) -> None:
    found = es.run(es.example(kind), out=tmp_path, progress=False)
    shards = {file.read_bytes() for file in (found.folder / "shards").iterdir()}
    plan = es.plan(es.example(kind))
    cheapest = int(plan.units["cost"].argmin())
    assert _native.compute_unit(plan.specification, cheapest, plan.instruction_set) in shards
