"""Calls that meet the outside world: signals, the end of the interpreter, forked and spawned processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

PRELUDE = """
import os, re, sys, threading, time
os.environ["ESSCHER_PROGRESS"] = "0"
import numpy as np
import esscher as es
from esscher import audit, zoo

head, normal = es.SoftmaxAttention(np.eye(8), np.eye(8)), es.Gaussian.standard(8)

def busy_law():
    # A law whose functions are Python's own work, not sleep.
    def log_partition(tilt):
        for _ in range(100_000):
            pass
        return float(tilt @ tilt / 2)
    return es.Custom(8, log_partition)

def endless_cache():
    readers = audit.calibrate(*np.random.default_rng(0).standard_normal((2, 300, 256)))
    cache, rows = audit.StreamingCache("tilted-gaussian", 256, readers), np.ones((200_000, 256), np.float32)
    while True:
        cache.absorb(rows, rows)

def long_run():
    longer, changed = re.subn(r"(?m)^trials = \\d+$", "trials = 600000", es.example("concentration"))
    assert changed == 1, "the example of concentration says its trials in another way"
    es.run(longer, out="runs")

def wide_head():
    es.SoftmaxAttention(np.eye(1000), np.eye(1000))(np.ones((2, 1000)), np.ones((60_000, 1000)))

def wide_linear_head():
    es.LinearAttention(np.eye(1000), np.eye(1000))(np.ones((20_000, 1000)), np.ones((60_000, 1000)))

def endless_gradients():
    wide, prompt = es.SoftmaxAttention(np.eye(512), np.eye(512)), np.ones((50_000, 512))
    while True:
        wide.gradient(prompt, np.ones(512))
"""

LONG = {
    "a study": "es.concentration(head, es.Rademacher(8), queries=normal, lengths=[10**6], trials=4000)",
    "a run": "long_run()",
    "an audit": "audit.audit('tiny-random', lengths=256, texts=200, out='runs')",
    "a head": "head(np.ones((4_000_000, 8)), np.ones((400, 8)))",
    "a head for many wide queries": "wide_head()",
    "a linear head for many wide queries": "wide_linear_head()",
    "a head on a law": "head(es.Empirical(np.ones((4_000_000, 8))), np.ones((4000, 8)))",
    "gradients": "endless_gradients()",
    "a cache": "endless_cache()",
    "a user's law": "busy_law().tilted_covariance(np.zeros((1000, 8)))",
    "progress": """es.concentration(head, es.Rademacher(8), queries=normal, lengths=[10**6], trials=4000,
        progress=lambda part: sum(range(10**7)))""",
}


def started(script: str, folder: Path) -> subprocess.Popen[str]:
    program = PRELUDE + textwrap.dedent(script)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    child = subprocess.Popen([sys.executable, "-c", program], cwd=folder, text=True, **pipes)
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n", child.communicate()
    return child


@pytest.mark.parametrize("name", LONG)
def test_a_daemon_thread_inside_a_long_call_does_not_disturb_the_end(name, tmp_path):
    script = f"""
    def work():
        {LONG[name]}
    threading.Thread(target=work, daemon=True).start()
    print("ready", flush=True)
    time.sleep(0.5)
    """
    child = started(script, tmp_path)
    _, errors = child.communicate(timeout=60)
    assert (child.returncode, errors) == (0, "")


def ended(program: str, folder: Path) -> tuple[int, str, str]:
    """Exit code, output and errors of a program that ends soon, with progress as users have it."""
    environment = {name: value for name, value in os.environ.items() if name != "ESSCHER_PROGRESS"}
    command = [sys.executable, "-c", program]
    run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=20)
    return run.returncode, run.stdout, run.stderr


CALLS_ITSELF = {
    "in a study": ("sampler", "es.concentration(head, law, queries=es.Rademacher(2), lengths=[2], trials=3)"),
    "in a simulation": ("sampler", "es.LinearTask(law).simulate_risk(es.Block(np.eye(2), 1.0), 5, prompts=3)"),
    "in drawn covariates": ("sampler", "es.DrawnCovariates(law, prompts=3, longest=3)"),
    "in a head": ("log_partition", "head(own, np.ones((50, 2)))"),
    # Studies are planned before they draw.
    "in a study inside itself": (
        "log_partition",
        "es.concentration(head, study, queries=es.Rademacher(2), lengths=[2], trials=3)",
    ),
}


@pytest.mark.parametrize("name", CALLS_ITSELF)
def test_a_law_that_calls_itself_is_refused(name, tmp_path):
    function, call = CALLS_ITSELF[name]
    program = f"""
    import numpy as np
    import esscher as es

    def simulated(tilt, count, generator):
        es.concentration(head, study, queries=es.Rademacher(2), lengths=[2], trials=3)
        return np.zeros((count, 2))

    head = es.SoftmaxAttention(score=np.eye(2), value=np.eye(2))
    law = es.Custom(2, lambda tilt: float(tilt @ tilt) / 2, sampler=lambda tilt, count, generator: law.sample(count))
    own = es.Custom(2, lambda tilt: float(head(own, tilt)[0]) if tilt.any() else 0.0)
    study = es.Custom(2, lambda tilt: float(tilt @ tilt) / 2, sampler=simulated)
    {call}
    """
    code, _, errors = ended(textwrap.dedent(program), tmp_path)
    assert (code, errors.splitlines()[-1].split(":")[:2]) == (1, ["RecursionError", f" {function}"]), errors


def test_a_handler_of_the_end_that_came_before_the_import_may_still_ask(tmp_path):
    program = """
    import atexit

    def at_the_end():
        # Long enough for a look at the progress.
        es.concentration(head, es.Rademacher(8), queries=normal, lengths=[10**6], trials=20)
        print("computed")
        line = es.SoftmaxAttention([[1.0]], [[1.0]])
        own = es.Custom(1, lambda tilt: float(tilt @ tilt / 2), sampler=lambda tilt, count, _: np.zeros((count, 1)))
        print(own.tilted_mean([0.5]).round(6))
        try:
            es.concentration(line, own, queries=es.Gaussian.standard(1), lengths=[10], trials=4)
        except RuntimeError as refused:
            print(refused)

    atexit.register(at_the_end)
    import numpy as np
    import esscher as es
    head, normal = es.SoftmaxAttention(np.eye(8), np.eye(8)), es.Gaussian.standard(8)
    """
    code, output, errors = ended(textwrap.dedent(program), tmp_path)
    assert code == 0, errors
    assert output.splitlines() == ["computed", "[0.5]", "Python is ending: functions are no longer called"], errors


def test_a_handler_of_the_end_may_wait_for_a_daemon_thread(tmp_path):
    before = "import atexit\natexit.register(lambda: thread.join())\n"
    after = f"""
    thread = threading.Thread(target=lambda: {LONG["a user's law"]}, daemon=True)
    thread.start()
    time.sleep(0.5)
    """
    assert ended(before + PRELUDE + textwrap.dedent(after), tmp_path) == (0, "", "")


def test_files_are_flushed_at_the_end_beside_a_users_law(tmp_path):
    program = """
    import esscher as es
    file = open("out", "w")
    def write():
        file.write("hello\\n")
    write()
    law = es.Custom(1, lambda tilt: tilt[0] ** 2 / 2)
    """
    assert ended(textwrap.dedent(program), tmp_path) == (0, "", "")
    assert (tmp_path / "out").read_text() == "hello\n"


@pytest.mark.parametrize("name", LONG)
def test_an_interrupt_ends_a_long_call(name, tmp_path):
    script = f"""
    print("ready", flush=True)
    try:
        {LONG[name]}
    except KeyboardInterrupt:
        sys.exit(77)
    """
    child = started(script, tmp_path)
    time.sleep(0.7)
    began = time.monotonic()
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=60)
    assert child.returncode == 77, errors
    # Half a second of work between looks, on a machine that is busy with other tests.
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_of_multiprocessing_compute(method, tmp_path):
    script = tmp_path / "several.py"
    script.write_text(
        PRELUDE
        + textwrap.dedent("""
        import multiprocessing

        def work(seed):
            found = es.concentration(head, es.Rademacher(8), queries=normal, lengths=[10, 100], trials=8, seed=seed)
            return found, es.run(es.example("concentration"), out="runs", name=f"run {os.getpid()} {seed}").kind

        if __name__ == "__main__":
            work(0)
            with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
                answers = pool.map(work, [0, 1, 2])
            print(answers[0] == work(0), answers[1][0] == answers[2][0])
        """)
    )
    run = subprocess.run(
        [sys.executable, str(script), method], cwd=tmp_path, capture_output=True, text=True, timeout=240
    )
    assert run.stdout == "True False\n", run.stderr


def test_a_thread_that_is_not_the_main_one_is_not_interrupted_but_the_program_is(tmp_path):
    script = f"""
    done = []
    def work():
        try:
            {LONG["a study"].replace("4000", "20")}
            done.append("whole")
        except BaseException as raised:
            done.append(repr(raised))
    thread = threading.Thread(target=work)
    thread.start()
    print("ready", flush=True)
    while not done:
        try:
            time.sleep(0.05)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    print(done)
    """
    child = started(script, tmp_path)
    time.sleep(0.3)
    os.kill(child.pid, signal.SIGINT)
    output, errors = child.communicate(timeout=120)
    assert output == "interrupted\n['whole']\n", errors
