"""The gradient of the finite-prompt risk by PyTorch autograd on simulated prompts, and Esscher's (see the script)."""

import math
import subprocess
import sys
import time

import torch

torch.set_num_threads(1)
D, L, NOISE, BATCH, BATCHES = 20, 1000, 0.1, 64, 100


def head() -> tuple[torch.Tensor, torch.Tensor]:
    """The same head as in the example training_speed."""
    size = D + 1
    score = torch.tensor(
        [
            [0.005 * math.sin(3 * i + 5 * j) + (0.3 if i == j and i < D else 0.0) for j in range(size)]
            for i in range(size)
        ],
        dtype=torch.float64,
    )
    value = torch.tensor([2.0 if i == D else 0.05 * math.cos(i) for i in range(size)], dtype=torch.float64)
    return score.requires_grad_(), value.requires_grad_()


score, value = head()
torch.manual_seed(0)
risks, gradients = [], []
start = time.process_time()
for _ in range(BATCHES):
    w = torch.randn(BATCH, D, dtype=torch.float64)
    x = torch.randn(BATCH, L, D, dtype=torch.float64)
    y = (x @ w[:, :, None])[:, :, 0] + math.sqrt(NOISE) * torch.randn(BATCH, L, dtype=torch.float64)
    query = torch.randn(BATCH, D, dtype=torch.float64)
    target = (w * query).sum(1) + math.sqrt(NOISE) * torch.randn(BATCH, dtype=torch.float64)
    tokens = torch.cat([x, y[:, :, None]], 2)
    tilt = torch.cat([query, torch.zeros(BATCH, 1, dtype=torch.float64)], 1) @ score.T
    weights = torch.softmax((tokens @ tilt[:, :, None])[:, :, 0], 1)
    prediction = ((weights[:, None, :] @ tokens)[:, 0, :] * value).sum(1)
    risk = 0.5 * ((prediction - target) ** 2).mean()
    of_score, of_value = torch.autograd.grad(risk, [score, value])
    risks.append(risk.item())
    gradients.append(torch.cat([of_score.flatten(), of_value]))
seconds = time.process_time() - start

stacked = torch.stack(gradients)
error = (stacked.var(0) / BATCHES).sum().sqrt().item()
risk = torch.tensor(risks, dtype=torch.float64)
# The best of three: other work on the machine can only slow it down.
runs = []
for _ in range(3):
    output = subprocess.run([sys.argv[1]], check=True, capture_output=True, text=True).stdout
    runs.append({name: float(number) for name, number in (line.split() for line in output.splitlines())})
ours = min(runs, key=lambda run: run["seconds"])
print(f"risk: Esscher {ours['risk']:.5f}, PyTorch {risk.mean():.5f} ± {risk.std() / BATCHES**0.5:.5f}")
print(
    f"gradient error (all entries): Esscher {ours['gradient_error']:.3e}, "
    f"PyTorch {error:.3e} with {BATCH * BATCHES} prompts"
)
print(f"CPU seconds: Esscher {ours['seconds']:.3f}, PyTorch {seconds:.3f}")
equal = seconds * (error / ours["gradient_error"]) ** 2
print(f"CPU seconds of PyTorch at Esscher's error (errors fall with the root of the prompts): {equal:.3e}")
print(f"ratio at equal gradient error: {equal / ours['seconds']:.0f}")
