"""The notebooks run from top to bottom, each in a fresh kernel."""

from pathlib import Path

import pytest

nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


def test_there_are_three():
    assert len(NOTEBOOKS) == 3


def figures(notebook):
    """How many figures each cell shows."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [sum("image/png" in output.get("data", {}) for output in cell.outputs) for cell in code]


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_runs_and_shows_its_figures(file, tmp_path):
    notebook = nbformat.read(file, as_version=4)
    nbformat.validate(notebook)
    shown = figures(notebook)
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert figures(notebook) == shown
    assert sum(shown) >= 2
