"""Softmax attention on one prompt in NumPy, PyTorch and Esscher: the largest difference, and times as ratios."""

import os
import time

import numpy as np
import torch

import esscher as es

THREADS = int(os.environ["RAYON_NUM_THREADS"])
torch.set_num_threads(THREADS)


def numpy_attention(tokens, queries, score, value):
    """As one writes it: stable softmax over the whole score matrix."""
    scores = (queries @ score.T) @ tokens.T
    scores -= scores.max(axis=1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=1, keepdims=True)
    return (scores @ tokens) @ value.T


def torch_attention(tokens, queries, score, value):
    """The same in PyTorch."""
    weights = torch.softmax((queries @ score.T) @ tokens.T, dim=1)
    return (weights @ tokens) @ value.T


def torch_fused(tokens, queries, score, value):
    """PyTorch's own fused attention, keys and values being the tokens."""
    tilts = queries @ score.T
    attended = torch.nn.functional.scaled_dot_product_attention(tilts[None], tokens[None], tokens[None], scale=1.0)
    return attended[0] @ value.T


def seconds(calls):
    """The least time of each call, taken in turns so that a drift of the machine hits all alike."""
    least = [float("inf")] * len(calls)
    for _ in range(7):
        for index, call in enumerate(calls):
            began = time.perf_counter()
            call()
            least[index] = min(least[index], time.perf_counter() - began)
    return least


print(f"NumPy {np.__version__}, PyTorch {torch.__version__}, {THREADS} thread(s), float64; times over Esscher's")
print(f"{'L':>8}{'d':>4}{'queries':>9}{'NumPy':>8}{'PyTorch':>9}{'fused':>8}   largest difference")
worst = 0.0
for length, dimension, count in [
    (100, 16, 1),
    (1000, 64, 64),
    (100_000, 16, 256),
    (1_000_000, 16, 1),
    (1_000_000, 16, 64),
]:
    random = np.random.default_rng(0)
    score = random.normal(size=(dimension, dimension)) / dimension
    value = random.normal(size=(dimension, dimension)) / dimension**0.5
    tokens, queries = random.normal(size=(length, dimension)), random.normal(size=(count, dimension))
    arrays = (tokens, queries, score, value)
    tensors = [torch.from_numpy(array) for array in arrays]
    head = es.SoftmaxAttention(score=score, value=value)
    asked = queries[0] if count == 1 else queries
    found = head(tokens, asked).reshape(count, dimension)
    others = [numpy_attention(*arrays), torch_attention(*tensors).numpy(), torch_fused(*tensors).numpy()]
    scale = np.abs(found).max()
    difference = max(np.abs(found - other).max() / scale for other in others)
    worst = max(worst, difference)
    ours, *theirs = seconds(
        [
            lambda head=head, tokens=tokens, asked=asked: head(tokens, asked),
            lambda arrays=arrays: numpy_attention(*arrays),
            lambda tensors=tensors: torch_attention(*tensors),
            lambda tensors=tensors: torch_fused(*tensors),
        ]
    )
    numbers, plain, fused = (other / ours for other in theirs)
    print(f"{length:8}{dimension:4}{count:9}{numbers:8.2f}{plain:9.2f}{fused:8.2f}   {difference:.1e}")
assert worst <= 1e-12, f"the three differ by {worst:.1e} of the largest output: expected at most 1e-12"
