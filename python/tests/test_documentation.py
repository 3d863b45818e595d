"""Docstrings and pages run as they stand, docstrings of the native classes too; every public thing has one."""

import doctest
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import numpy as np
import pytest

import esscher
from esscher import _native

MODULES = [
    importlib.import_module(f"esscher.{module.name}")
    for module in pkgutil.iter_modules(esscher.__path__)
    if module.name not in ("ray", "zoo_torch", "_native")
]
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def native_objects():
    return [(name, value) for name, value in vars(_native).items() if callable(value) and value.__doc__]


@pytest.mark.parametrize("module", [esscher, *MODULES], ids=lambda module: module.__name__)
def test_examples_of_modules_run(module, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with np.printoptions():
        failed, _ = doctest.testmod(module, optionflags=OPTIONS)
    assert failed == 0


@pytest.mark.parametrize(("name", "value"), native_objects(), ids=[name for name, _ in native_objects()])
def test_examples_of_native_objects_run(name, value):
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    for test in doctest.DocTestFinder().find(value, name, module=False, globs={}):
        runner.run(test)
    assert runner.failures == 0


@pytest.mark.parametrize("name", esscher.__all__)
def test_every_public_thing_is_explained(name):
    thing = getattr(esscher, name)
    assert inspect.getdoc(thing), f"esscher.{name} has no docstring"
    if inspect.isclass(thing):
        for member, value in vars(thing).items():
            if not member.startswith("_") and (inspect.isroutine(value) or inspect.isdatadescriptor(value)):
                assert inspect.getdoc(value), f"esscher.{name}.{member} has no docstring"


DOCS = Path(__file__).parents[2] / "docs"
# Pages whose Python runs from top to bottom in one namespace. A block that cannot run here has a comment
# `not executed: why` on the line before it.
PAGES = [*sorted(DOCS.glob("how-to/*.md")), *sorted(DOCS.glob("mathematics/*.md")), DOCS / "mechanisms.md"]
BLOCK = re.compile(
    r"^(?:<!-- (?P<note>[^\n]*) -->\n)?```(?P<language>python|pycon)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL
)


def blocks_of(page):
    return [block for block in BLOCK.finditer(page.read_text()) if not (block["note"] or "").startswith("not executed")]


def run_session(code, name, names):
    """An interactive session, whose answers must be those of the page."""
    test = doctest.DocTestParser().get_doctest(code, names, name, None, None)
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    runner.run(test, clear_globs=False)
    names.update(test.globs)
    assert runner.failures == 0, f"{name}: an answer is not the one that the page has"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.stem}")
def test_the_python_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": page.stem}
    for number, block in enumerate(blocks_of(page)):
        if block["language"] == "pycon":
            run_session(block["code"], page.stem, names)
        else:
            exec(compile(block["code"], f"{page.name}, block {number}", "exec"), names)


def test_every_page_of_mathematics_and_every_recipe_has_code_that_runs():
    without = [page.stem for page in PAGES if not blocks_of(page) and page.stem not in ("index", "cluster")]
    assert without == []
