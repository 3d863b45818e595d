"""Runs on a real Ray cluster of two nodes on this machine: workers and nodes killed, drivers stopped and killed.

Each test proves that its disturbance came mid-run, and that the bytes are those of an undisturbed local run.
ESSCHER_LONG_TESTS=1 kills more.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from specifications import THIRTEEN_UNITS, UNITS

import esscher as es
from esscher import _native
from esscher import ray as on_ray

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
ray = pytest.importorskip("ray", reason="ray is not installed: pip install esscher[ray]")
from ray.cluster_utils import Cluster  # noqa: E402

KILLS = 12 if os.environ.get("ESSCHER_LONG_TESTS") else 2


@pytest.fixture(scope="module")
def specification(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("specification") / "paths.toml"
    file.write_text(THIRTEEN_UNITS)
    return file


@pytest.fixture(scope="module")
def undisturbed(specification: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes]:
    return identity(es.run(specification, out=tmp_path_factory.mktemp("undisturbed"), progress=False).folder)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head and a second node of one processor each."""
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    made.second = made.add_node(num_cpus=1)
    made.wait_for_nodes()
    yield made
    made.shutdown()


def identity(folder: Path) -> tuple[bytes, bytes]:
    return (folder / "spec.toml").read_bytes(), (folder / "result.parquet").read_bytes()


class UndisturbedError(AssertionError):
    """A run that ended well before its disturbance could come: a node that was just added may get no work in time."""


class Driver:
    """The command `python -m esscher.ray` as a process of its own."""

    def __init__(self, cluster: Any, specification: Path, out: Path) -> None:
        self.folder = out / "paths"
        self.errors = out / "errors.txt"
        out.mkdir(exist_ok=True)
        command = [sys.executable, "-m", "esscher.ray", specification, "--address", cluster.address, "--out", out]
        with self.errors.open("a") as errors:
            self.process = subprocess.Popen(
                [*map(str, command), "--json", "--quiet"], stdout=subprocess.PIPE, stderr=errors, text=True
            )

    def done(self) -> int:
        """Units that are safe on disk."""
        return len(list((self.folder / "shards").glob("0*.parquet")))

    def wait_until(self, condition: Callable[[], Any]) -> Any:
        """Waits until something is so while the run goes on; what it is."""
        end = time.monotonic() + 120
        while not (found := condition()):
            if self.process.poll() is not None:
                kind = UndisturbedError if self.process.returncode == 0 else AssertionError
                raise kind(f"ended early: {self.errors.read_text()}")
            assert time.monotonic() < end, f"waited in vain: {self.errors.read_text()}"
            time.sleep(0.005)
        assert not (self.folder / "result.parquet").exists(), "this is not mid-run"
        return found

    def finish(self) -> dict[str, Any]:
        """Waits for the end of a run that ends well; what it printed."""
        out, _ = self.process.communicate(timeout=180)
        assert self.process.returncode == 0, self.errors.read_text()
        return json.loads(out)  # type: ignore[no-any-return]


def workers(*nodes: Any) -> list[int]:
    """Processes that compute a unit now: children of these nodes' raylets that Ray names by their task."""
    raylets = {process.process.pid for node in nodes for process in node.all_processes["raylet"]}
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            title = (entry / "cmdline").read_bytes()
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if title.startswith(b"ray::") and b"esscher_unit" in title and parent in raylets:
            found.append(int(entry.name))
    return found


def sessions(folder: Path) -> list[dict[str, Any]]:
    return json.loads((folder / "provenance.json").read_text())["sessions"]  # type: ignore[no-any-return]


def test_two_nodes_make_the_bytes_of_a_local_run(
    cluster: Any, specification: Path, tmp_path: Path, undisturbed: tuple[bytes, bytes]
) -> None:
    driver = Driver(cluster, specification, tmp_path)
    # Both nodes compute, not one for both.
    driver.wait_until(lambda: workers(cluster.head_node) and workers(cluster.second))
    printed = driver.finish()
    assert printed["outcome"] == "finished"
    assert identity(driver.folder) == undisturbed
    run = es.read_run(printed["folder"])
    assert run.report.exists()
    (session,) = run.provenance["sessions"]
    assert (session["origin"]["program"], session["threads"], session["units"]) == ("esscher (Ray)", 2, UNITS)
    assert driver.errors.read_text() == ""


# What Ray says of a failure of its own.
RAYS_OWN = "You have likely discovered a bug in Ray"
RETRIED = "its worker died and it is computed again"
ATTEMPTS = 5
"""A kill may hit the moment between two units, where nothing is computed again: then the whole run is tried anew."""


def test_killed_workers_lose_nothing(
    cluster: Any, specification: Path, tmp_path: Path, undisturbed: tuple[bytes, bytes]
) -> None:
    for attempt in range(ATTEMPTS):
        driver = Driver(cluster, specification, tmp_path / str(attempt))
        driver.wait_until(lambda driver=driver: driver.done() >= 2)
        killed: set[int] = set()
        for _ in range(KILLS):
            worker = driver.wait_until(lambda killed=killed: set(workers(*cluster.list_all_nodes())) - killed).pop()
            os.kill(worker, signal.SIGKILL)
            killed.add(worker)
            assert driver.done() < UNITS
        driver.finish()
        assert identity(driver.folder) == undisturbed
        assert sessions(driver.folder)[0]["units"] == UNITS
        told = driver.errors.read_text().count(RETRIED)
        assert told <= len(killed)
        if told:
            return
    pytest.fail(f"no kill hit a running unit in {ATTEMPTS} runs")


def test_a_removed_node_loses_nothing(
    cluster: Any, specification: Path, tmp_path: Path, undisturbed: tuple[bytes, bytes]
) -> None:
    for attempt in range(ATTEMPTS):
        driver = Driver(cluster, specification, tmp_path / str(attempt))
        try:
            driver.wait_until(lambda driver=driver: driver.done() >= 2 and workers(cluster.second))
        except UndisturbedError:
            continue
        cluster.remove_node(cluster.second, allow_graceful=False)
        try:
            assert driver.done() < UNITS - 1
            driver.finish()
        finally:
            cluster.second = cluster.add_node(num_cpus=1)
            cluster.wait_for_nodes()
        assert identity(driver.folder) == undisturbed
        assert sessions(driver.folder)[0]["units"] == UNITS
        if RETRIED in driver.errors.read_text():
            return
    # Ray may give a node that was just added no work for as long as a run lasts: then nothing was tested.
    pytest.skip(f"no removal hit a running unit in {ATTEMPTS} runs")


def test_stopped_and_killed_drivers_are_resumed(
    cluster: Any, specification: Path, tmp_path: Path, undisturbed: tuple[bytes, bytes]
) -> None:
    for attempt in range(ATTEMPTS):
        folder = tmp_path / str(attempt)
        driver = Driver(cluster, specification, folder)
        driver.wait_until(lambda driver=driver: driver.done() >= 2)
        driver.process.send_signal(signal.SIGINT)
        driver.process.communicate(timeout=60)
        if RAYS_OWN not in driver.errors.read_text():
            break
        # Seen once: Ray's own process fails while its tasks are cancelled.
        warnings.warn(f"Ray failed while a driver stopped, attempt {attempt}", stacklevel=1)
    assert driver.process.returncode == 130, driver.errors.read_text()
    assert "stopped; the same command goes on from here" in driver.errors.read_text()
    stopped = driver.done()
    assert 2 <= stopped < UNITS
    # Tasks of a stopped driver do not go on.
    end = time.monotonic() + 30
    while workers(*cluster.list_all_nodes()):
        assert time.monotonic() < end
        time.sleep(0.05)

    driver = Driver(cluster, specification, folder)
    driver.wait_until(lambda: driver.done() >= stopped + 2)
    driver.process.kill()
    driver.process.communicate(timeout=60)
    killed = driver.done()
    assert stopped + 2 <= killed < UNITS

    resumed = Driver(cluster, specification, folder)
    resumed.finish()
    assert identity(resumed.folder) == undisturbed
    history = sessions(resumed.folder)
    assert [session["units"] for session in history] == [stopped, None, UNITS - killed]
    assert history[1]["ended"] is None
    # A finished run is read, not computed.
    Driver(cluster, specification, folder).finish()
    assert len(sessions(resumed.folder)) == 3


@pytest.fixture
def tasks(cluster: Any) -> Iterator[on_ray._Tasks]:
    """The units of the specification on the cluster, from this process."""
    with on_ray._connected(cluster.address) as connected:
        plan = es.plan(THIRTEEN_UNITS)
        yield on_ray._Tasks(connected, plan.specification, plan.instruction_set)


def test_what_workers_refuse_is_told_once_and_says_what_to_do(tasks: on_ray._Tasks) -> None:
    unit = (0, "signs, σ = 1: expected", 0.1)
    specification, instruction_set, version = tasks.arguments
    tasks.arguments = (specification, "avx1024", version)
    with pytest.raises(RuntimeError, match=r'lacks the instruction set avx1024 .* run with instruction_set="portable"'):
        list(tasks.compute([unit]))
    tasks.arguments = (specification, instruction_set, "0.0.1")
    with pytest.raises(RuntimeError, match=f"has esscher {_native.VERSION}, this is .* since all units"):
        list(tasks.compute([unit]))
    tasks.arguments = (specification, instruction_set, version)
    with pytest.raises(RuntimeError, match="the plan has 13 units, there is no unit 99"):
        list(tasks.compute([(99, "no such unit", 0.1)]))
    ((source, shard),) = tasks.compute([unit])
    assert source.startswith("unit 0 from ")
    assert shard == _native.compute_unit(specification, 0, instruction_set)


def test_a_unit_that_always_kills_its_worker_is_named(
    tasks: on_ray._Tasks, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def die(*_: Any) -> None:
        os._exit(1)

    monkeypatch.setattr(on_ray, "ATTEMPTS", 3)
    tasks.task = ray.remote(num_cpus=1, max_retries=0)(die)
    with pytest.raises(RuntimeError, match="heavy unit: its worker died 3 times, the last time with WorkerC"):
        list(tasks.compute([(0, "heavy unit", 1.0)]))
    assert [record.message.startswith("heavy unit: its worker died") for record in caplog.records] == [True, True]


def test_a_worker_without_the_package_can_say_so() -> None:
    sent = ray.cloudpickle.dumps(on_ray._task())
    program = (
        "import sys; sys.modules['esscher'] = None; from ray import cloudpickle;"
        "print(cloudpickle.load(sys.stdin.buffer)(0, '', '', '')[0])"
    )
    answer = subprocess.run([sys.executable, "-c", program], input=sent, capture_output=True, check=True)
    assert answer.stdout.strip() == b"absent"
    assert "pip install esscher==" in str(on_ray._refusal("absent", "node 7", None, "avx2"))


def test_the_engine_works_in_a_process_that_is_connected(tasks: on_ray._Tasks, tmp_path: Path) -> None:
    text = es.example("path")
    there = es.run(text, out=tmp_path / "there", engine="ray", progress=False)
    assert tasks.ray.is_initialized(), "a connection that was there stays"
    assert identity(there.folder) == identity(es.run(text, out=tmp_path / "here").folder)


def test_no_cluster_is_told_in_a_sentence(tmp_path: Path, specification: Path) -> None:
    with pytest.raises(ConnectionError, match=r"no Ray cluster answers at 127\.0\.0\.1:1: "):
        es.run(specification, out=tmp_path, engine="ray", address="127.0.0.1:1", progress=False)
    assert not (tmp_path / "paths").exists()


def test_the_command_explains_itself_and_its_mistakes(tmp_path: Path) -> None:
    def command(*arguments: str) -> subprocess.CompletedProcess[str]:
        run = [sys.executable, "-m", "esscher.ray", *arguments]
        return subprocess.run(run, capture_output=True, text=True, check=False, cwd=tmp_path)

    explained = command("--help")
    assert explained.returncode == 0
    assert "the same command goes on from there" in explained.stdout
    absent = command("absent.toml")
    assert absent.returncode == 2
    assert absent.stderr.startswith("error: cannot read absent.toml: no such file or directory\nhint: give a spec")
    (tmp_path / "wrong.toml").write_text('kind = "pth"')
    wrong = command("wrong.toml", "--json")
    assert wrong.returncode == 2
    assert json.loads(wrong.stderr)["hint"] == 'did you mean "path"?'
