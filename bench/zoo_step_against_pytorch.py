"""Training steps of small models in PyTorch eager and in Esscher from the same weights (see the script)."""

import json
import math
import struct
import subprocess
import sys
import tempfile
import time

import torch
from torch.nn import functional

torch.set_num_threads(1)
VOCABULARY, LENGTH, BATCH, WIDTH, HEADS, LAYERS = 512, 128, 32, 64, 2, 2
STEPS, ROUNDS = 12, 4


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    """The sequences of the example training_step."""
    s = torch.arange(BATCH)[:, None]
    t = torch.arange(LENGTH + 1)[None, :]
    tokens = (7 * t * t + 31 * s * t + 3 * s) % VOCABULARY
    return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()


def read_weights(path: str) -> dict[str, torch.Tensor]:
    """The tensors of a safetensors file of single precision."""
    with open(path, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        data = file.read()
    weights = {}
    for name, entry in header.items():
        if name != "__metadata__":
            start, end = entry["data_offsets"]
            numbers = torch.frombuffer(bytearray(data[start:end]), dtype=torch.float32)
            weights[name] = numbers.reshape(entry["shape"]).clone().requires_grad_()
    return weights


def heads_of(x: torch.Tensor) -> torch.Tensor:
    """Split the last axis into heads."""
    return x.view(BATCH, LENGTH, HEADS, -1).transpose(1, 2)


def softmax_mixer(w: dict[str, torch.Tensor], name: str, x: torch.Tensor) -> torch.Tensor:
    """Causal softmax attention by PyTorch's fused kernel."""
    q, k, v = (heads_of(x @ w[f"{name}.ports.{port}"]) for port in ("query", "key", "value"))
    mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    return mixed.transpose(1, 2).reshape(BATCH, LENGTH, -1) @ w[f"{name}.output"]


MASK = torch.ones(LENGTH, LENGTH).tril()


def gla_mixer(w: dict[str, torch.Tensor], name: str, x: torch.Tensor) -> torch.Tensor:
    """Gated linear attention as (Q ⊙ A)(K / A)ᵀ: overflows with strong decays, but fastest in eager PyTorch."""
    q, k, v = (heads_of(x @ w[f"{name}.ports.{port}"]) for port in ("query", "key", "value"))
    logits = torch.addmm(w[f"{name}.ports.log_decay.bias"], x.view(-1, WIDTH), w[f"{name}.ports.log_decay"])
    decay = heads_of(functional.logsigmoid(logits) / 16).cumsum(2)
    weights = (q * decay.exp()) @ (k * (-decay).exp()).transpose(2, 3) * MASK
    mixed = (weights @ v) / math.sqrt(q.shape[-1])
    mixed = functional.rms_norm(mixed, mixed.shape[-1:], eps=1e-6).transpose(1, 2).reshape(BATCH, LENGTH, -1)
    mixed = mixed * w[f"{name}.head_norm"] * functional.silu(x @ w[f"{name}.gate"])
    return mixed @ w[f"{name}.output"]


def loss_of(w: dict[str, torch.Tensor], mixer, tokens: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy of the model."""
    x = functional.embedding(tokens, w["embedding"])
    for layer in range(LAYERS):
        name = f"layers.{layer}"
        x = x + mixer(w, name, functional.rms_norm(x, (WIDTH,), w[f"{name}.norm"], eps=1e-6))
        seen = functional.rms_norm(x, (WIDTH,), w[f"{name}.mlp.norm"], eps=1e-6)
        inside = (seen @ w[f"{name}.mlp.up"]) * functional.silu(seen @ w[f"{name}.mlp.gate"])
        x = x + inside @ w[f"{name}.mlp.down"]
    x = functional.rms_norm(x, (WIDTH,), w["norm"], eps=1e-6)
    return functional.cross_entropy((x @ w["embedding"].T).view(-1, VOCABULARY), labels.view(-1))


def pytorch(path: str, mixer) -> tuple[list[float], float]:
    """Losses of the first steps, and the CPU seconds of the best step."""
    w = read_weights(path)
    groups = [
        {"params": [x for x in w.values() if x.dim() > 1], "weight_decay": 0.1},
        {"params": [x for x in w.values() if x.dim() == 1], "weight_decay": 0.0},
    ]
    optimiser = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.98), fused=True)
    tokens, labels = batch()
    losses, times = [], []
    for _ in range(STEPS):
        start = time.process_time()
        loss = loss_of(w, mixer, tokens, labels)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(w.values(), 1.0)
        optimiser.step()
        times.append(time.process_time() - start)
        losses.append(loss.item())
    return losses[:4], min(times)


for name, mixer in (("softmax", softmax_mixer), ("gla", gla_mixer)):
    ours, theirs, profile = math.inf, math.inf, []
    # In turns, and the best of each: other work on the machine can only slow them down.
    for _ in range(ROUNDS):
        with tempfile.NamedTemporaryFile() as file:
            output = subprocess.run([sys.argv[1], name, file.name], check=True, capture_output=True, text=True).stdout
            lines = [line.split(maxsplit=1) for line in output.splitlines()]
            numbers = {key: float(value) for key, value in lines if key != "part"}
            losses, seconds = pytorch(file.name, mixer)
        if numbers["seconds"] < ours:
            ours, profile = numbers["seconds"], [value for key, value in lines if key == "part"]
        theirs = min(theirs, seconds)
    print(
        f"{name}: losses of four steps, Esscher {[numbers[f'loss{i}'] for i in range(4)]}, "
        f"PyTorch {[round(x, 6) for x in losses]}"
    )
    print(
        f"{name}: a step takes {1e3 * ours:.2f} ms in Esscher, {1e3 * theirs:.2f} ms in PyTorch eager; "
        f"ratio {ours / theirs:.2f}"
    )
    for line in profile:
        print("   ", line)
