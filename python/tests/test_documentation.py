"""Docstrings run as they stand, those of the native classes too; every public thing has one."""

import doctest
import importlib
import inspect
import pkgutil

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
