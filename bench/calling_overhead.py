"""Times head(tokens, query) for one query against the same call in Rust (see calling_overhead)."""

import subprocess
import sys
import time

import numpy as np

import esscher as es

DIMENSION, CALLS = 16, 2000


def least_nanoseconds(call) -> float:
    """The least time of many rounds: other work on the machine can only add."""
    least = float("inf")
    for _ in range(50):
        began = time.perf_counter()
        for _ in range(CALLS):
            call()
        least = min(least, time.perf_counter() - began)
    return 1e9 * least / CALLS


lines = subprocess.run([sys.argv[1]], check=True, capture_output=True, text=True).stdout.splitlines()
rust = {name: float(value) for name, value in map(str.split, lines)}
head = es.SoftmaxAttention(np.eye(DIMENSION), np.eye(DIMENSION))
query = np.full(DIMENSION, 0.1)
gaussian = es.Gaussian.standard(DIMENSION)
print(f"{'tokens':14}{'Rust':>9}{'Python':>9}{'overhead':>10}   (nanoseconds per call at one query)")
for name, time_of_rust in rust.items():
    tokens = gaussian if name == "gaussian" else gaussian.sample(int(name.removeprefix("prompt-")))
    time_of_python = least_nanoseconds(lambda tokens=tokens: head(tokens, query))
    overhead = time_of_python - time_of_rust
    print(f"{name:14}{time_of_rust:9.0f}{time_of_python:9.0f}{overhead:10.0f}")
    assert overhead <= 5000, f"{name}: {overhead:.0f} ns more than Rust: expected at most 5000"
