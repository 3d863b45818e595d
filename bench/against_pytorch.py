"""Streams L tokens through softmax attention in PyTorch and compares its time with Esscher's (see against_pytorch)."""

import subprocess
import sys
import time

import torch

torch.set_num_threads(1)
DIMENSION, QUERIES = 16, 256


def nanoseconds_per_token(dtype: torch.dtype, length: int, chunk: int, gradients: bool) -> float:
    """Sample, score, exponentiate and accumulate in chunks with online rescaling; never stores the prompt."""
    generator = torch.Generator().manual_seed(0)
    tilts = (torch.rand(QUERIES, DIMENSION, dtype=dtype, generator=generator) * 2 - 1) * (3 / DIMENSION) ** 0.5
    largest = torch.full((QUERIES,), -float("inf"), dtype=dtype)
    mass = torch.zeros(QUERIES, dtype=dtype)
    first = torch.zeros(QUERIES, DIMENSION, dtype=dtype)
    second = torch.zeros(QUERIES, DIMENSION * DIMENSION, dtype=dtype)
    start = time.process_time()
    for _ in range(length // chunk):
        tokens = torch.randn(chunk, DIMENSION, dtype=dtype, generator=generator)
        scores = tilts @ tokens.T
        raised = torch.maximum(largest, scores.amax(1))
        factor = torch.exp(largest - raised)
        weights = scores.sub_(raised[:, None]).exp_()
        mass = mass * factor + weights.sum(1)
        first = first * factor[:, None] + weights @ tokens
        if gradients:
            products = (tokens[:, :, None] * tokens[:, None, :]).reshape(chunk, -1)
            second = second * factor[:, None] + weights @ products
        largest = raised
    return (time.process_time() - start) / (length // chunk * chunk) * 1e9


def best(dtype: torch.dtype, length: int, gradients: bool = False) -> float:
    """PyTorch at its best chunk size, best of five like ours."""
    chunks = (1024, 2048, 4096)
    return min(nanoseconds_per_token(dtype, length, chunk, gradients) for chunk in chunks for _ in range(5))


def run_ours() -> dict[str, float]:
    """One run of the example: nanoseconds per token by name."""
    lines = subprocess.run([sys.argv[1], "speed"], check=True, capture_output=True, text=True).stdout.splitlines()
    return {name: float(value) for name, value in (line.split() for line in lines if not line.startswith("#"))}


# Ours before and after theirs, the best of both like theirs: the speed of a machine drifts.
before = run_ours()
theirs = {
    "float64": best(torch.float64, 1_000_000),
    "float32": best(torch.float32, 1_000_000),
    "float64-gradients": best(torch.float64, 200_000, gradients=True),
}
after = run_ours()
ours = {name: min(value, after[name]) for name, value in before.items()}
print(
    f"PyTorch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}; "
    f"d = {DIMENSION}, {QUERIES} queries, one thread"
)
print(f"{'':20}{'Esscher':>12}{'PyTorch':>12}{'ratio':>8}   (CPU nanoseconds per token)")
for name, time_of_torch in theirs.items():
    print(f"{name:20}{ours[name]:12.0f}{time_of_torch:12.0f}{time_of_torch / ours[name]:8.2f}")
