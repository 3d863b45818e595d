"""The Slurm script of docs/how-to/cluster.md: three tasks of an array and the merge make the bytes of a single run."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import esscher as es

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "docs" / "slurm" / "esscher-array.sh"


def _task(binary: Path, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SLURM_")}
    environment |= {"ESSCHER": str(binary), **variables}
    command = [SCRIPT, folder / "experiment.toml", folder / "runs"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


# Arrays that begin anywhere.
@pytest.mark.parametrize("first", [0, 5])
def test_an_array_of_three_tasks_merges_into_the_bytes_of_a_single_run(
    binary: Path, tmp_path: Path, first: int
) -> None:
    (tmp_path / "experiment.toml").write_text(es.example("path"))
    for task in (2, 0, 1):
        identity = {"ID": first + task, "MIN": first, "COUNT": 3}
        variables = {f"SLURM_ARRAY_TASK_{name}": str(value) for name, value in identity.items()}
        done = _task(binary, tmp_path, **variables)
        assert done.returncode == 0, done.stderr
        # A task that is requeued finds its units.
        again = _task(binary, tmp_path, **variables)
        assert "0 of its" in again.stdout, again.stdout
    shards = sorted((tmp_path / "runs").glob("experiment.shard-*-of-3"))
    assert [shard.name[-6:] for shard in shards] == ["0-of-3", "1-of-3", "2-of-3"]
    subprocess.run([binary, "merge", *shards], check=True, capture_output=True)
    single = es.run(tmp_path / "experiment.toml", out=tmp_path / "single", instruction_set="portable")
    for name in ("spec.toml", "result.parquet"):
        assert (tmp_path / "runs" / "experiment" / name).read_bytes() == (single.folder / name).read_bytes()


def test_the_script_says_what_it_needs(tmp_path: Path) -> None:
    refused = _task(Path("esscher"), tmp_path)
    assert refused.returncode != 0
    assert "submit it with sbatch --array" in refused.stderr
