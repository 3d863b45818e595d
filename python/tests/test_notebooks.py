"""The notebooks as they are committed; docs/build runs them from top to bottom, each in a fresh kernel."""

import json
import re
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "tutorials").glob("*.ipynb"))


def test_there_are_five():
    assert len(NOTEBOOKS) == 5


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_what_a_notebook_shows_names_no_folder_of_the_machine_it_ran_on(file):
    notebook = nbformat.read(file, as_version=4)
    nbformat.validate(notebook)
    for output in [output for cell in code_cells(notebook) for output in cell.outputs]:
        data = {kind: text for kind, text in output.get("data", {}).items() if not kind.startswith("image/")}
        shown = json.dumps({**output, "data": data})
        assert not re.findall(r"(?<![\w:/.<])/(?:[\w.-]+/){2,}", shown)
