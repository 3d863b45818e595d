"""Chunked gated linear attention, forward and backward in f32 on one thread: Esscher against PyTorch, as ratios.

Two PyTorch versions, batched over sequences, heads and chunks, with the state carried from chunk to chunk. `stable`
keeps every exponent at or below zero as Esscher does (blocks of 16 in chunks of 64, their own pairs written out).
`quotient` divides keys by decayed products, which is faster and overflows for strong gates. The best chunk size counts.
"""

import subprocess
import sys
import time

import torch

torch.set_num_threads(1)


def chunks_of(x, chunk):
    """Cut the length into chunks."""
    batch, heads, length, width = x.shape
    return x.view(batch, heads, length // chunk, chunk, width)


def carry(query, key, value, log_decay, chunk):
    """Contributions of earlier chunks, by a loop over chunks: what all versions share."""
    sums = log_decay.cumsum(-2)
    total = sums[..., -1:, :]
    decayed_query = query * sums.exp()
    writes = (key * (total - sums).exp()).transpose(-1, -2) @ value
    kept = total.exp().transpose(-1, -2)
    state = torch.zeros_like(writes[:, :, 0])
    states = []
    for index in range(query.shape[2]):
        states.append(state)
        state = kept[:, :, index] * state + writes[:, :, index]
    return sums, decayed_query @ torch.stack(states, 2)


def quotient(query, key, value, log_decay, chunk):
    """Divide by decayed products."""
    query, key, value, log_decay = (chunks_of(x, chunk) for x in (query, key, value, log_decay))
    sums, carried = carry(query, key, value, log_decay, chunk)
    weights = ((query * sums.exp()) @ (key * (-sums).exp()).transpose(-1, -2)).tril()
    return (weights @ value + carried).flatten(2, 3)


def stable(query, key, value, log_decay, chunk, block=16):
    """Keep every exponent at or below zero."""
    query, key, value, log_decay = (chunks_of(x, chunk) for x in (query, key, value, log_decay))
    sums, carried = carry(query, key, value, log_decay, chunk)
    rows = []
    for start in range(0, chunk, block):
        own = slice(start, start + block)
        base = sums[..., start : start + 1, :]
        gaps = (sums[..., own, None, :] - sums[..., None, own, :]).clamp(max=0)
        inside = torch.einsum("...ta,...ra,...tra->...tr", query[..., own, :], key[..., own, :], gaps.exp()).tril()
        parts = [inside]
        if start:
            leaning = query[..., own, :] * (sums[..., own, :] - base).exp()
            earlier = key[..., :start, :] * (base - sums[..., :start, :]).exp()
            parts.insert(0, leaning @ earlier.transpose(-1, -2))
        weights = torch.cat(parts, -1)
        rows.append(weights @ value[..., : start + block, :])
    return (torch.cat(rows, -2) + carried).flatten(2, 3)


def seconds(version, batch, length, heads, keys, values, chunk):
    """Time one version, the best of five."""
    shape = (batch, heads, length)
    query, key = (torch.randn(*shape, keys, requires_grad=True) for _ in range(2))
    value = torch.randn(*shape, values, requires_grad=True)
    gates = torch.nn.functional.logsigmoid(torch.randn(*shape, keys)) / 16
    log_decay = gates.detach().requires_grad_()
    slopes = torch.randn(*shape, values)
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        outputs = version(query * keys**-0.5, key, value, log_decay, chunk)
        torch.autograd.grad(outputs, (query, key, value, log_decay), slopes)
        best = min(best, time.perf_counter() - start)
    return best


def agree():
    """The two versions and a plain loop give the same numbers."""
    torch.manual_seed(0)
    query, key, value = (torch.randn(1, 2, 128, 8, dtype=torch.float64) for _ in range(3))
    log_decay = torch.nn.functional.logsigmoid(torch.randn(1, 2, 128, 8, dtype=torch.float64)) / 16
    state, rows = torch.zeros(1, 2, 8, 8, dtype=torch.float64), []
    for t in range(128):
        write = key[:, :, t, :, None] * value[:, :, t, None, :]
        state = log_decay[:, :, t, :, None].exp() * state + write
        rows.append((query[:, :, t, None, :] @ state)[:, :, 0])
    expected = torch.stack(rows, 2)
    for version in (quotient, stable):
        assert torch.allclose(version(query, key, value, log_decay, 64), expected)


def main():
    """Print the table."""
    agree()
    print("batch length heads keys values | Esscher s | PyTorch stable, quotient: times over Esscher's")
    for sizes in [(4, 1024, 4, 32, 32), (2, 2048, 4, 64, 64), (1, 8192, 2, 64, 64), (1, 2048, 2, 128, 128)]:
        run = subprocess.run([sys.argv[1], *map(str, sizes)], capture_output=True, text=True, check=True)
        ours = float(run.stdout.split()[0])
        ratios = [min(seconds(version, *sizes, chunk) for chunk in (32, 64)) / ours for version in (stable, quotient)]
        print(*sizes, f"| {ours:.4f} |", ", ".join(f"{ratio:.2f}" for ratio in ratios), flush=True)


main()
