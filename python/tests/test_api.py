"""docs/api.toml is complete against core, zoo and audit; all of it, and the catalogue, answers from Python."""

import re
from pathlib import Path

import numpy as np
import pytest

import esscher as es

tomllib = pytest.importorskip("tomllib", reason="Python 3.10 has no TOML reader")

ROOT = Path(__file__).resolve().parents[2]
API = tomllib.loads((ROOT / "docs" / "api.toml").read_text())
CRATES = ROOT / "crates"
CORE = "esscher-core/src"
ZOO = "esscher-zoo/src"
AUDIT = "esscher-audit/src"
MODULES = {
    "measure": f"{CORE}/measure/mod.rs",
    "measure::laws": f"{CORE}/measure/laws.rs",
    "attention": f"{CORE}/attention/mod.rs",
    "softmax_weights": f"{CORE}/softmax_weights/mod.rs",
    "prompt": f"{CORE}/prompt/mod.rs",
    "concentration": f"{CORE}/concentration/mod.rs",
    "regression": f"{CORE}/regression/mod.rs",
    "regression::tasks": f"{CORE}/regression/tasks/mod.rs",
    "regression::authors": f"{CORE}/regression/authors.rs",
    "layers": f"{CORE}/layers/mod.rs",
    "zoo::batch": f"{ZOO}/batch.rs",
    "zoo::catalogue": f"{ZOO}/catalogue/mod.rs",
    "zoo::diagnostics": f"{ZOO}/diagnostics/mod.rs",
    "zoo::dynamical_system": f"{ZOO}/dynamical_system/mod.rs",
    "zoo::mechanism": f"{ZOO}/mechanism.rs",
    "audit::answer": f"{AUDIT}/answer.rs",
    "audit::assignment": f"{AUDIT}/assignment.rs",
    "audit::candidate": f"{AUDIT}/candidate.rs",
    "audit::eviction": f"{AUDIT}/eviction/mod.rs",
    "audit::head": f"{AUDIT}/head.rs",
    "audit::portrait": f"{AUDIT}/portrait.rs",
    "audit::readers": f"{AUDIT}/readers.rs",
    "audit::replacement": f"{AUDIT}/replacement/mod.rs",
    "audit::verdict": f"{AUDIT}/verdict.rs",
}


# Families are accounted for by the catalogue: each has its class, tested below.
FAMILIES = {name: {"points": "Empirical"}.get(name, name.capitalize()) for name in es.catalogue("measures")["name"]}


def public_names(file):
    """What a module offers: its own public items and those it re-exports."""
    text = file.read_text().split("#[cfg(test)]")[0]
    names = set(re.findall(r"^pub (?:fn|struct|enum|trait|type|const) (\w+)", text, re.M))
    for exported in re.findall(r"^pub use ([^;]+);", text, re.M):
        names |= set(re.findall(r"\b(\w+)\b(?!::)", exported.partition("::")[2]))
    return names


@pytest.mark.parametrize(("module", "file"), MODULES.items(), ids=MODULES)
def test_every_public_item_is_accounted_for(module, file):
    listed = {path for capability in API["capability"] for path in capability["rust"]} | set(API["only_rust"])
    listed |= {f"measure::{family}" for family in FAMILIES.values()}
    missing = {f"{module}::{name}" for name in public_names(CRATES / file)} - listed
    assert not missing, f"not in docs/api.toml: {sorted(missing)}"


def test_nothing_is_listed_that_does_not_exist():
    listed = {path for capability in API["capability"] for path in capability["rust"]} | set(API["only_rust"])
    known = {f"{module}::{name}" for module, file in MODULES.items() for name in public_names(CRATES / file)}
    assert not {path for path in listed if path.rpartition("::")[0] in MODULES} - known


def test_every_public_module_of_the_zoo_is_accounted_for():
    """A module is in the catalogue, where Python finds its mechanism, or its items are listed, or it is Rust's own."""
    public = set(re.findall(r"^pub mod (\w+);", (CRATES / ZOO / "lib.rs").read_text(), re.M))
    catalogued = set(re.findall(r"\bcrate::(\w+)", (CRATES / ZOO / "catalogue" / "entries.rs").read_text()))
    only_rust = {module.removeprefix("zoo::") for module in API["only_rust_modules"] if module.startswith("zoo::")}
    assert not public - catalogued - only_rust - {module.removeprefix("zoo::") for module in MODULES}
    assert not only_rust - public


def test_every_public_module_of_the_audit_is_accounted_for():
    """Its items are listed, or it is Rust's own: what an audit from Python goes through."""
    public = {
        f"audit::{name}" for name in re.findall(r"^pub mod (\w+);", (CRATES / AUDIT / "lib.rs").read_text(), re.M)
    }
    only_rust = {module for module in API["only_rust_modules"] if module.startswith("audit::")}
    assert not public - only_rust - set(MODULES)
    assert not only_rust - public


@pytest.mark.parametrize("capability", API["capability"], ids=lambda capability: capability["name"])
def test_every_capability_answers(capability, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    known = {"es": es, "np": np}
    exec(API["setting"], known)
    assert eval(capability["python"].strip(), known) is not None


@pytest.mark.parametrize(("name", "family"), FAMILIES.items(), ids=FAMILIES)
def test_every_measure_of_the_catalogue_has_its_class(name, family):
    law = getattr(es, family)
    assert issubclass(law, es.Measure)
    if name not in ("gaussian", "mixture", "points"):
        assert law(2).sample(5).shape == (5, 2)


@pytest.mark.parametrize("group", ["questions", "claims"])
def test_every_experiment_and_claim_of_the_catalogue_can_be_planned(group):
    for name in es.catalogue(group)["name"]:
        plan = es.plan(es.example(name))
        assert len(plan.units) > 0
        if group == "questions":
            assert plan.kind == name


def test_a_claim_of_the_catalogue_is_judged(tmp_path):
    found = es.reproduce("gaussian-lemma", out=tmp_path, progress=False)
    assert found["verdict"].tolist() == ["holds"]
    assert found.report.exists()
