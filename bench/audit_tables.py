"""Prints the tables of audits: heads within tolerances, what the model loses, and how far two audits agree.

Usage: python bench/audit_tables.py FOLDER, which bench/audit_tables has filled.
"""

import itertools
import json
import math
import pathlib
import statistics
import sys


def number(estimated):
    """A mean with its standard error."""
    if estimated is None:
        return "-"
    error = estimated.get("standard_error")
    return f"{estimated['mean']:.4f}" + (f" ± {error:.4f}" if error is not None else "")


def candidates(verdicts):
    """Per candidate: the median over heads of the error, and heads whose mean or upper bound is within 5 and 10 %."""
    heads = verdicts["heads"]
    asked = [(error["candidate"], error["running"]) for error in heads[0]["errors"]]
    print(f"\n{verdicts['model']}, {verdicts['length']} tokens, {len(heads)} heads, {verdicts['criterion']} error")
    print(f"{'candidate':30}{'running':12}{'median':>9}{'mean<5%':>9}{'<10%':>6}{'sure<5%':>9}{'<10%':>6}")
    for place, (candidate, running) in enumerate(asked):
        errors = [head["errors"][place] for head in heads]
        means = [float("inf") if error["mean"] is None else error["mean"] for error in errors]
        highs = [float("inf") if error["high"] is None else error["high"] for error in errors]
        within = [sum(value <= bound for value in values) for values in (means, highs) for bound in (0.05, 0.10)]
        print(
            f"{candidate:30}{running:12}{statistics.median(means):9.4f}{within[0]:9}{within[1]:6}{within[2]:9}{within[3]:6}"
        )
    counts = {verdict: sum(head["verdict"] == verdict for head in heads) for verdict in ("accepted", "refused")}
    print(f"verdicts at {verdicts['tolerance']}: {counts}")


def assignments(found):
    """What the model does with replaced heads."""
    print(f"{'assignment':52}{'running':11}{'heads':>6}{'kv':>4}{'cache':>7}  log-loss difference    needles")
    for one in found.get("assignments") or []:
        share = f"{one['cache_share']:7.3f}"
        loss = f"{number(one['difference']):22}"
        needles = number(one.get("retrieval"))
        print(f"{one['name']:52}{one['running']:11}{one['heads']:6}{one['key_value_heads']:4}{share}  {loss} {needles}")


def agreement(one, other):
    """How far two audits of the same heads say the same, by candidate."""

    def errors(verdicts):
        return {
            (head["layer"], head["head"], error["candidate"], error["running"]): error
            for head in verdicts["heads"]
            for error in head["errors"]
            if error["mean"]
        }

    here, there = errors(one), errors(other)
    common = sorted({key[2:] for key in here} & {key[2:] for key in there})
    print(f"\n{'candidate':30}{'running':12}{'correlated':>12}{'sure<5%':>14}{'<5% there':>11}{'<7.5%':>7}{'<10%':>6}")
    for asked in common:
        pairs = [(here[key], there[key]) for key in here if key[2:] == asked and key in there]
        logs = [[math.log(error["mean"]) for error in side] for side in zip(*pairs, strict=True)]
        sure = [second["mean"] for first, second in pairs if first["high"] is not None and first["high"] <= 0.05]
        within = [sum(mean <= bound for mean in sure) for bound in (0.05, 0.075, 0.10)]
        print(
            f"{asked[0]:30}{asked[1]:12}{statistics.correlation(*logs):12.3f}{len(sure):14}"
            f"{within[0]:11}{within[1]:7}{within[2]:6}"
        )


def main():
    """Everything that a folder holds."""
    folder = pathlib.Path(sys.argv[1])
    found = [json.loads(path.read_text()) for path in sorted(folder.rglob("verdicts.json"))]
    for verdicts in found:
        candidates(verdicts)
    for path in sorted(folder.glob("*.json")):
        print(f"\n{path.name}")
        assignments(json.loads(path.read_text()))
    for one, other in itertools.combinations(found, 2):
        if len(one["heads"]) == len(other["heads"]):
            agreement(one, other)


if __name__ == "__main__":
    main()
