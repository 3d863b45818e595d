"""What several tests need."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def binary() -> Path:
    """The command line: the one that ESSCHER names, or the one that was built here, as python/check does."""
    named = os.environ.get("ESSCHER")
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    binary = Path(named) if named else target / "release" / "esscher"
    if not binary.is_file():
        missing = f"no binary at {binary}: cargo build --release makes it"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(missing)
    return binary
