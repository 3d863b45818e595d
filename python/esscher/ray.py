"""Runs on a Ray cluster: units become tasks, and what they compute is kept in a normal run folder as it arrives.

The driver (the process that calls) has the folder; a task gets a specification and a unit's number and gives back the
bytes of its shard, which the driver checks and writes whole or not at all. A worker or a node that dies costs the units
it was computing, a driver that dies nothing that had arrived: the same command goes on from there.
``python -m esscher.ray`` is the same from a shell.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import socket
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from esscher import _native
from esscher._progress import ask

__all__ = ["run_on_cluster"]

ATTEMPTS = 5
"""How often a unit is tried before the deaths of its workers are taken to be its own fault."""

_TASKS_PER_CPU = 3  # enough queued that no worker waits for the driver, few enough that a stop cancels little
_CONNECTION_PATIENCE = 10.0  # seconds
_PATIENCE = 0.5  # seconds between looks for signals and for nodes that joined

_log = logging.getLogger("esscher.ray")

Unit = tuple[int, str, float]


def run_on_cluster(asked: dict[str, Any], address: str | None) -> Path:
    """Runs a specification on the cluster at ``address``; the run folder. See ``esscher.run``."""
    # Mistakes are told before a cluster is asked for anything.
    plan = _native.plan(asked)
    with _connected(address) as ray:
        tasks = _Tasks(ray, plan["specification"], plan["instruction_set"])
        processors = tasks.processors()
        if processors == 0:
            raise RuntimeError("the Ray cluster has no processors for tasks: start a node with --num-cpus=1 or more")
        engine = {"instruction_set": plan["instruction_set"], "engine": tasks.compute, "threads": processors}
        folder: Path = ask(asked["name"] or plan["name"], _native.run, asked, **engine)
    return folder


@contextlib.contextmanager
def _connected(address: str | None) -> Iterator[Any]:
    """The module ray, connected: as it is already, or to the address until the run ends."""
    # Ray would tell its makers over the network that it is used.
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    try:
        import ray
    except ImportError as error:
        raise ImportError("ray is not installed: pip install esscher[ray]") from error
    if ray.is_initialized():
        here = ray.get_runtime_context().gcs_address
        if address not in (None, "auto", here):
            raise ValueError(f"address is {address}: this process is connected to {here}; ray.shutdown() ends that")
        yield ray
        return
    try:
        _check_answers(address)
        ray.init(address=address, log_to_driver=False, logging_level=logging.WARNING)
    except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise ConnectionError(f"no Ray cluster answers at {address or 'the default address'}: {reason}") from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _check_answers(address: str | None) -> None:
    """Refuses an address where nobody listens: Ray itself would wait for minutes."""
    host, colon, port = (address or "").removeprefix("ray://").rpartition(":")
    if colon and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECTION_PATIENCE).close()


class _Tasks:
    """The units of one run as tasks of a cluster."""

    def __init__(self, ray: Any, specification: str, instruction_set: str) -> None:
        self.ray = ray
        # Retries are ours: the number of them is told, and a refusal is never repeated.
        self.task = ray.remote(num_cpus=1, max_retries=0)(_task())
        self.arguments = (specification, instruction_set, _native.VERSION)

    def processors(self) -> int:
        """The processors that the cluster has now: nodes come and go."""
        return int(self.ray.cluster_resources().get("CPU", 0))

    def compute(self, pending: list[Unit]) -> Iterator[tuple[str, bytes]]:
        """The shards of these units, each with where it was computed, in the order of their arrival."""
        waiting = deque(pending)
        flying: dict[Any, Unit] = {}
        attempts: Counter[int] = Counter()
        try:
            while waiting or flying:
                most = _TASKS_PER_CPU * max(self.processors(), 1)
                while waiting and len(flying) < most:
                    unit = waiting.popleft()
                    attempts[unit[0]] += 1
                    flying[self.task.remote(unit[0], *self.arguments)] = unit
                ready, _ = self.ray.wait(list(flying), num_returns=1, timeout=_PATIENCE)
                for reference in ready:
                    unit = flying.pop(reference)
                    answer = self.answer(reference, unit, attempts[unit[0]])
                    if answer is None:
                        waiting.appendleft(unit)
                    else:
                        yield answer
        finally:
            for reference in flying:
                with contextlib.suppress(Exception):
                    self.ray.cancel(reference, force=True)

    def answer(self, reference: Any, unit: Unit, attempt: int) -> tuple[str, bytes] | None:
        """What a task gave back; nothing if its worker died and it is worth another attempt."""
        number, label, _ = unit
        try:
            outcome, host, content = self.ray.get(reference)
        except self.ray.exceptions.RayTaskError as error:
            raise RuntimeError(f"{label}: {error.cause or error}") from error
        except self.ray.exceptions.RayError as error:
            reason = f"{type(error).__name__}: {str(error).strip()}".partition("\n")[0]
            if attempt >= ATTEMPTS:
                raise RuntimeError(
                    f"{label}: its worker died {attempt} times, the last time with {reason}\n"
                    "hint: look at the memory of the nodes; finished units are kept, the same call goes on from there"
                ) from error
            _log.warning("%s: its worker died and it is computed again, attempt %d (%s)", label, attempt + 1, reason)
            return None
        if outcome == "shard":
            return f"unit {number} from {host}", content
        raise _refusal(outcome, host, content, self.arguments[1])


def _task() -> Callable[..., tuple[str, str, Any]]:
    """The function that workers run: made here, so that it is sent by value and can say that they lack the package."""

    def esscher_unit(unit: int, specification: str, instruction_set: str, version: str) -> tuple[str, str, Any]:
        import socket

        host = socket.gethostname()
        try:
            from esscher import _native
        except ImportError:
            return "absent", host, None
        if version != _native.VERSION:
            return "version", host, _native.VERSION
        if instruction_set not in _native.instruction_sets():
            return "instruction set", host, ", ".join(_native.instruction_sets())
        try:
            return "shard", host, _native.compute_unit(specification, unit, instruction_set)
        except (ValueError, OSError, RuntimeError) as error:
            return "refused", host, error

    return esscher_unit


def _refusal(outcome: str, host: str, content: Any, instruction_set: str) -> Exception:
    """Why a worker did not compute a unit, in a sentence that says what to do."""
    if outcome == "refused":
        return content  # type: ignore[no-any-return]
    if outcome == "absent":
        return RuntimeError(f"the worker on {host} has no esscher: pip install esscher=={_native.VERSION} there")
    if outcome == "version":
        return RuntimeError(
            f"the worker on {host} has esscher {content}, this is {_native.VERSION}: "
            f"pip install esscher=={_native.VERSION} there, since all units of a run come from one version"
        )
    return RuntimeError(
        f"the worker on {host} lacks the instruction set {instruction_set} of this run and has {content}: "
        'run with instruction_set="portable" in a new folder, since all units of a run come from one instruction set'
    )


_DESCRIPTION = """\
Runs an experiment on a Ray cluster, into a run folder on this machine.

The result is that of `esscher run` on the same instruction set, byte for byte. Workers need the package esscher in this
version, and no access to the folder. A worker or node that dies costs the units it was computing; Ctrl-C, or a kill of
this command, nothing that had arrived: the same command goes on from there."""

_EXAMPLES = """\
examples:
  python -m esscher.ray experiment.toml                          the cluster on this machine, or else all its cores
  python -m esscher.ray experiment.toml --address auto           the cluster that `ray start` made here, nothing else
  python -m esscher.ray experiment.toml --address 10.0.0.5:6379  a cluster, from one of its nodes
  python -m esscher.ray experiment.toml --address ray://10.0.0.5:10001          a cluster, from outside
  python -m esscher.ray experiment.toml --instruction-set portable              machines of different kinds

exit codes:
  0    done
  1    it could not be done: a file, the cluster, a request that the mathematics has no answer to
  2    the request makes no sense: arguments, a specification
  130  interrupted; the same command goes on from there"""


def _main(arguments: list[str] | None = None) -> int:
    """The command: the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m esscher.ray",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("spec", type=Path, help="a specification in TOML (`esscher example KIND` prints one)")
    parser.add_argument("--address", help="auto, HOST:PORT or ray://HOST:PORT [default: a cluster here, or all cores]")
    parser.add_argument("--out", type=Path, default=Path("runs"), help="where the run folder is made [default: runs]")
    parser.add_argument("--name", help="the run folder's name [default: the file's]")
    parser.add_argument("--seed", type=int, help="replaces the seed of the specification")
    parser.add_argument("--instruction-set", metavar="NAME", help="portable, avx2 or avx512 [default: the best here]")
    parser.add_argument("--json", action="store_true", help="print one JSON object for machines")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    asked = parser.parse_args(arguments)
    logging.basicConfig(format="%(message)s")
    from esscher.runs import run

    try:
        # Ray's threads print what its nodes say to standard output, which is for the answer.
        with contextlib.redirect_stdout(sys.stderr):
            done = run(
                asked.spec,
                out=asked.out,
                name=asked.name,
                engine="ray",
                address=asked.address,
                seed=asked.seed,
                instruction_set=asked.instruction_set,
                progress=False if asked.quiet else None,
            )
    except KeyboardInterrupt:
        return _ended(asked.json, "stopped; the same command goes on from here", 130)
    except (ValueError, FileNotFoundError) as error:
        return _ended(asked.json, str(error), 2)
    except (OSError, RuntimeError, ImportError) as error:
        return _ended(asked.json, str(error), 1)
    if asked.json:
        files = {"folder": done.folder, "result": done.folder / "result.parquet", "report": done.report}
        print(json.dumps({"outcome": "finished", **{name: str(path) for name, path in files.items()}}))
    else:
        print(f"{done.result}\n\nreport: {done.report}")
    return 0


def _ended(as_json: bool, message: str, code: int) -> int:
    message, _, hint = message.partition("\nhint: ")
    if as_json:
        print(json.dumps({"error": message, "hint": hint or None}), file=sys.stderr)
    else:
        print(f"error: {message}" + (f"\nhint: {hint}" if hint else ""), file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(_main())
