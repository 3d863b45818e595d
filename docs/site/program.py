"""The program itself, asked for what it can say about itself."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any


def said(*arguments: str) -> str:
    """What `esscher ARGUMENTS` prints; ``ESSCHER`` names another program than that of the path."""
    command = [os.environ.get("ESSCHER", "esscher"), *arguments]
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    if ended.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {ended.stderr.strip()}")
    return ended.stdout


def told(*arguments: str) -> Any:
    """The object that `esscher ARGUMENTS --json` prints."""
    return json.loads(said(*arguments, "--json"))


def names(group: str) -> list[str]:
    """The names of a group of the catalogue, in its order."""
    return [entry["name"] for entry in told("list", group)["entries"]]
