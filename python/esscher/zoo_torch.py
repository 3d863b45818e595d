"""Mechanisms of the zoo in PyTorch: ``apply`` is a differentiable function of tensors, ``Mixer`` a module around it.

PyTorch is not among the requirements of this package: ``pip install torch`` brings it. Tensors live on the CPU, in
float32 or float64, and are read without copies where they are contiguous. There are first derivatives, not second ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from esscher.zoo import Mechanism, Port, _Call

try:
    import torch
except ImportError as error:
    raise ImportError("PyTorch is not installed: pip install torch") from error

__all__ = ["Mixer", "apply"]


def apply(
    mechanism: Mechanism,
    *,
    parameters: Mapping[str, torch.Tensor] | None = None,
    lengths: Any = None,
    packed: Any = None,
    **ports: torch.Tensor,
) -> torch.Tensor:
    """The outputs of a mechanism on tensors, with derivatives in ports and parameters.

    Shapes and options are those of a call of :class:`esscher.zoo.Mechanism`. ``parameters`` must have the precision of
    the ports; unless given, they are the initial ones.
    """
    given = dict(parameters) if isinstance(parameters, Mapping) else parameters
    named = [*ports.items(), *(given or {}).items()]
    for name, tensor in named:
        _check(str(name), tensor)
    if len({tensor.dtype for _, tensor in named}) > 1:
        found = ", ".join(f"{name} is {tensor.dtype}" for name, tensor in named)
        raise TypeError(f"ports and parameters must have one precision: {found}")

    def call(*tensors: torch.Tensor) -> _Call:
        # Arrays share the memory of their tensors.
        arrays = [tensor.detach().resolve_neg().numpy() for tensor in tensors]
        of_ports, of_rest = arrays[: len(ports)], arrays[len(ports) :]
        rest = None if given is None else dict(zip(given, of_rest, strict=True))
        return _Call(mechanism, dict(zip(ports, of_ports, strict=True)), rest, lengths, packed)

    outputs: torch.Tensor = _Forward.apply(mechanism, call, [name for name, _ in named], *(it for _, it in named))
    return outputs


def _check(name: str, tensor: object) -> None:
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{name}: expected a tensor, found an object of type {type(tensor).__name__}")
    if tensor.device.type != "cpu":
        raise TypeError(f"{name}: expected a tensor on the CPU, found one on {tensor.device}: move it with .cpu()")
    if tensor.layout != torch.strided:
        raise TypeError(f"{name}: expected a dense tensor, found layout {tensor.layout}")
    if tensor.dtype not in (torch.float32, torch.float64):
        raise TypeError(f"{name}: expected torch.float32 or torch.float64, found {tensor.dtype}")


class _Forward(torch.autograd.Function):
    """The chunked form; its backward pass is a function of its own, so that it can refuse to be differentiated."""

    @staticmethod
    def forward(
        ctx: Any, mechanism: Mechanism, make: Callable[..., _Call], names: list[str], *tensors: torch.Tensor
    ) -> torch.Tensor:
        """Outputs; keeps the pass."""
        ctx.names, ctx.call = names, make(*tensors)
        (outputs, _), ctx.made = mechanism._native.forward(ctx.call)
        # Nothing of these is read again by us: saving lets PyTorch notice tensors that were changed in between.
        ctx.save_for_backward(*tensors)
        return torch.from_numpy(ctx.call.outputs(outputs))

    @staticmethod
    def backward(ctx: Any, *slopes: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Derivatives in all tensors."""
        gradients = _Backward.apply(ctx.made, ctx.call, ctx.names, slopes[0], *ctx.saved_tensors)
        return (None, None, None, *gradients)


class _Backward(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, made: Any, call: _Call, names: list[str], slopes: torch.Tensor, *_: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        found = call.gradient(made, slopes.detach().numpy())
        return tuple(torch.from_numpy(found[name]) for name in names)

    @staticmethod
    def backward(ctx: Any, *_: torch.Tensor) -> tuple[None, ...]:
        raise RuntimeError("mechanisms of the zoo have first derivatives only: differentiate once")


class Mixer(torch.nn.Module):
    """A layer that mixes tokens: a projection per port, the mechanism, and a projection of its outputs.

    Tokens are ``(batch, length, width)``. A projection z becomes what its port means: content, logits and angles are z,
    a log decay is ln σ(z)/16, a rate softplus(z + b), a fraction σ(z).

    ``mechanism`` has the widths of a head; ``heads`` of them stand side by side.
    """

    def __init__(self, mechanism: Mechanism, width: int, heads: int = 1, *, seed: int = 0) -> None:
        super().__init__()
        self.mechanism, self.heads = mechanism, heads
        self.projections = torch.nn.ModuleDict(
            {
                port.name: torch.nn.Linear(width, heads * port.width, bias=port.meaning == "rate")
                for port in mechanism.ports
            }
        )
        self.output = torch.nn.Linear(heads * mechanism.output_width, width, bias=False)
        precision = self.output.weight.dtype
        start = mechanism.initial_parameters(seed, heads=heads)
        self.constants = torch.nn.ParameterDict()
        for parameter in mechanism.parameters:
            numbers = torch.from_numpy(start[parameter.name].copy()).to(precision)
            self.constants[parameter.name] = torch.nn.Parameter(numbers, requires_grad=parameter.trained)

    def forward(self, tokens: torch.Tensor, lengths: Any = None) -> torch.Tensor:
        """Mixed tokens, (batch, length, width); ``lengths`` are those of a padded batch."""
        batch, length, _ = tokens.shape
        ports = {
            port.name: _as_meant(port, self.projections[port.name](tokens)).reshape(
                batch, length, self.heads, port.width
            )
            for port in self.mechanism.ports
        }
        mixed = apply(self.mechanism, parameters=dict(self.constants.items()), lengths=lengths, **ports)
        outputs: torch.Tensor = self.output(mixed.reshape(batch, length, -1))
        return outputs


def _as_meant(port: Port, projected: torch.Tensor) -> torch.Tensor:
    """What a layer makes of a projection."""
    match port.meaning:
        case "log decay":
            return torch.nn.functional.logsigmoid(projected) / 16
        case "rate":
            return torch.nn.functional.softplus(projected)
        case "fraction":
            return torch.sigmoid(projected)
        case _:
            return projected
