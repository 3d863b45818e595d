"""torch.autograd.gradcheck of every mechanism of the zoo, in double precision: in all ports and all parameters."""

import time

import torch

from esscher import zoo, zoo_torch

HEADS = 2
AXES = {"one sequence": (5, HEADS), "a padded batch": (2, 4, HEADS)}


def drawn(mechanism, axes):
    """Allowed numbers for every port, and parameters a little away from where they start."""
    made = {
        "log decay": lambda z: -0.1 * z.exp(),
        "rate": lambda z: 0.1 * z.exp(),
        "fraction": torch.sigmoid,
    }
    ports = {
        port.name: made.get(port.meaning, lambda z: z)(torch.randn(*axes, port.width, dtype=torch.float64))
        for port in mechanism.ports
    }
    start = mechanism.initial_parameters(heads=HEADS)
    parameters = {name: torch.tensor(numbers) for name, numbers in start.items()}
    parameters = {name: numbers + 0.05 * torch.randn_like(numbers) for name, numbers in parameters.items()}
    return ports, parameters


torch.manual_seed(0)
began = time.perf_counter()
for entry in zoo.mechanisms():
    mechanism = zoo.Mechanism(entry.name, key_width=4, value_width=3)
    for what, axes in AXES.items():
        ports, parameters = drawn(mechanism, axes)
        names = [*ports, *parameters]
        tensors = [tensor.requires_grad_() for tensor in (*ports.values(), *parameters.values())]
        lengths = [4, 2] if len(axes) == 3 else None

        def outputs(*values, mechanism=mechanism, names=names, ports=ports, lengths=lengths):
            """The mechanism as a function of all its tensors."""
            named = dict(zip(names, values, strict=True))
            constants = {name: named.pop(name) for name in names if name not in ports}
            return zoo_torch.apply(mechanism, parameters=constants, lengths=lengths, **named)

        assert torch.autograd.gradcheck(outputs, tensors, eps=1e-6, atol=1e-6, rtol=1e-4), f"{entry.name}, {what}"
    print(f"{entry.name:24} {len(ports)} ports, {len(parameters)} parameters: gradcheck holds")
print(f"{len(zoo.mechanisms())} mechanisms in {time.perf_counter() - began:.0f} s")
