"""The zoo: softmax attention and its linear relatives, one interface, three forms that agree.

A mechanism maps a sequence to outputs. It reads *ports* of every token (query, key, value, gates) and *parameters*
once, and its state summarises the tokens absorbed so far. Arrays are ``(length, width)``, ``(length, heads, width)`` or
``(batch, length, heads, width)``, float32 or float64: the precision of the ports is that of the answer.

>>> import numpy as np
>>> from esscher import zoo
>>> gated = zoo.Mechanism("gla", key_width=2, value_width=3)
>>> [port.name for port in gated.ports]
['query', 'key', 'value', 'log_decay']
>>> random = np.random.default_rng(0)
>>> tokens = {port.name: -random.random((5, port.width)) for port in gated.ports}
>>> whole = gated(**tokens)                                      # all tokens at once, in chunks
>>> stream = gated.stream()                                      # one after the other
>>> steps = [stream.step(**{name: rows[t] for name, rows in tokens.items()}) for t in range(5)]
>>> bool(np.allclose(whole, steps))
True
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from esscher import _native
from esscher._arguments import items
from esscher._equality import Compared, made_alike
from esscher.results import Results
from esscher.tasks import of_native

if not hasattr(_native, "ZooMechanism"):
    raise ImportError("esscher was built without its zoo: build it with the cargo feature zoo, which is on by default")

__all__ = [
    "DynamicalSystem", "Entry", "Mechanism", "Parameter", "Port", "State", "Stream", "mechanisms", "table",
]  # fmt: skip

Form = Literal["chunked", "recurrent", "reference"]
"""How a mechanism is evaluated: fast, token by token, or as its definition says."""

_Array = NDArray[Any]

_LARGEST = 1 << 32  # heads, tokens: beyond any memory


@dataclass(frozen=True)
class Entry:
    """What the catalogue knows of a mechanism."""

    name: str
    """As :class:`Mechanism` takes it."""
    summary: str
    """One sentence with its formula."""
    year: int
    """Year of the paper."""
    paper: str
    """Authors and arXiv number, or where it was published."""
    causal: bool
    """Whether a token reads only tokens up to itself."""
    normalised: bool
    """Whether equal values are returned unchanged: the weights of a row sum to one."""
    state: str
    """Numbers of the state of a head; ``L`` is the number of tokens."""
    cost: str
    """How the work grows with the length: "linear" or "quadratic"."""
    fate: str
    """The output on long prompts of i.i.d. tokens: "limit", "stationary law" or "grows"."""
    dynamical_system: bool
    """Whether it is a linear dynamical system in its input."""
    recalls: bool
    """Whether a small model of it passes the recall task."""


def mechanisms() -> tuple[Entry, ...]:
    """All mechanisms of the catalogue.

    >>> from esscher import zoo
    >>> [entry.year for entry in zoo.mechanisms() if entry.name == "gla"]
    [2023]
    """
    return tuple(Entry(**row) for row in _native.zoo_catalogue())


def table() -> Results:
    """The catalogue as a table.

    >>> from esscher import zoo
    >>> zoo.table()["name"].tolist() == [entry.name for entry in zoo.mechanisms()]
    True
    """
    entries = mechanisms()
    names = [field.name for field in dataclasses.fields(Entry)]
    return Results({name: [getattr(entry, name) for entry in entries] for name in names}, title="the zoo")


@dataclass(frozen=True)
class Port:
    """One thing that a mechanism reads of every token."""

    name: str
    """Its name, the keyword of a call."""
    width: int
    """Numbers per token and head."""
    meaning: str
    """What they mean: "content" (any number), "log decay" (at most 0), "rate" (more than 0), "fraction" (0 to 1),
    "logit" (the argument of a gate) or "angle" (in radians)."""


@dataclass(frozen=True)
class Parameter:
    """One thing that a mechanism reads once."""

    name: str
    """Its name, the key in ``parameters``."""
    size: int
    """How many numbers it has, per head or in all."""
    shared: bool
    """Whether all heads read the same numbers."""
    trained: bool
    """Whether training changes it."""


@dataclass(frozen=True, eq=False)
class State(Compared):
    """What a mechanism remembers of the tokens of one sequence."""

    seen: int
    """How many tokens were absorbed."""
    numbers: _Array
    """Everything else, an array (heads, numbers), in a layout of the mechanism's own."""


@dataclass(frozen=True, eq=False)
class DynamicalSystem(Compared):
    """h_i = Λ_i h_{i−1} + B_i u_i, y_i = C_i h_i + D_i u_i, from h = 0: N states, one of every matrix per token."""

    transition: NDArray[np.float64]
    """Λ: the diagonals (length, N), or the matrices (length, N, N)."""
    input: NDArray[np.float64]
    """B, an array (length, N, d_in)."""
    readout: NDArray[np.float64]
    """C, an array (length, d_out, N)."""
    feedthrough: NDArray[np.float64]
    """D, an array (length, d_out, d_in)."""
    input_port: str
    """The port that is the input u; the others decide the matrices."""

    @property
    def states(self) -> int:
        """N."""
        return int(self.input.shape[1])

    def simulate(self, inputs: ArrayLike) -> NDArray[np.float64]:
        """The outputs y (length, d_out) on inputs u (length, d_in)."""
        numbers = _native.zoo_array("inputs", inputs)
        if not np.isfinite(numbers).all():
            raise ValueError("inputs: expected finite numbers")
        return _finite("an output of the dynamical system", _native.zoo_simulate({**vars(self), "inputs": numbers}))


class Mechanism:
    """A mechanism of the catalogue with the widths of its head.

    ``key_width`` is the width of queries and keys, or the state expansion of mechanisms without them; ``value_width``
    that of values and outputs. Called with its ports, it gives the outputs.

    >>> import numpy as np
    >>> from esscher import zoo
    >>> gated = zoo.Mechanism("gla", key_width=1, value_width=1)
    >>> ones = np.ones((4, 1))
    >>> gated(query=ones, key=ones, value=ones, log_decay=np.log(ones / 2)).ravel()
    array([1.   , 1.5  , 1.75 , 1.875])
    """

    def __init__(self, name: str, *, key_width: int, value_width: int) -> None:
        self._native = _native.ZooMechanism(name, key_width, value_width)
        self.name = name
        """Its name in the catalogue."""
        self.key_width = int(key_width)
        """Width of queries and keys."""
        self.value_width = int(value_width)
        """Width of values."""
        self.ports = tuple(Port(*port) for port in self._native.ports)
        """What it reads of every token."""
        self.parameters = tuple(Parameter(*parameter) for parameter in self._native.parameters)
        """What it reads once."""

    output_width: int = of_native("output_width", "Numbers per output and head.")
    causal: bool = of_native("causal", "Whether every token reads the tokens up to itself, or all of them.")

    def initial_parameters(
        self, seed: int = 0, *, heads: int | None = None, dtype: DTypeLike = np.float64
    ) -> dict[str, _Array]:
        """The numbers that parameters start with: (heads, size) each, or (size,) without ``heads`` or where shared."""
        precision = _precision(dtype)
        count = 1 if heads is None else _whole("heads", heads, 1, _LARGEST)
        found = self._native.initial_parameters(seed, count)
        return {
            parameter.name: numbers.astype(precision, copy=False).reshape(
                (parameter.size,) if parameter.shared or heads is None else (count, parameter.size)
            )
            for parameter, numbers in zip(self.parameters, found, strict=True)
        }

    @overload
    def __call__(self, *, return_state: Literal[False] = ..., **arguments: Any) -> _Array: ...

    @overload
    def __call__(
        self, *, return_state: Literal[True], **arguments: Any
    ) -> tuple[_Array, State | tuple[State, ...]]: ...

    def __call__(
        self,
        *,
        parameters: Mapping[str, ArrayLike] | None = None,
        lengths: ArrayLike | None = None,
        packed: ArrayLike | None = None,
        initial: State | Sequence[State] | None = None,
        form: Form = "chunked",
        return_state: bool = False,
        **ports: ArrayLike,
    ) -> _Array | tuple[_Array, State | tuple[State, ...]]:
        """The outputs, in the shape of the ports; with ``return_state`` also the state after the last token.

        Ports are arrays ``(length, width)``, ``(length, heads, width)`` or ``(batch, length, heads, width)``.
        ``parameters`` are those of :meth:`initial_parameters` unless given, and are read in the precision of the ports.

        ``lengths`` are the numbers of tokens of a padded batch; outputs of padding are zero. ``packed`` are the lengths
        of sequences that stand one behind the other in arrays without a batch axis. A batch, and packed sequences, have
        a tuple of states, one per sequence, and so has ``initial``, the states to start from.

        ``form`` says how: "chunked" is the fast one, "recurrent" goes token by token, and "reference" is the
        definition, which starts from the empty state only and is slow. All of them agree.
        """
        with_state = _native.read_truth("return_state", return_state)
        call = _Call(self, ports, parameters, lengths, packed, initial)
        outputs, states = self._native.evaluate(form, call)
        shaped = call.outputs(outputs)
        return (shaped, call.states_out(states)) if with_state else shaped

    def gradient(
        self,
        output_slopes: ArrayLike,
        *,
        state_slopes: State | Sequence[State] | None = None,
        parameters: Mapping[str, ArrayLike] | None = None,
        lengths: ArrayLike | None = None,
        packed: ArrayLike | None = None,
        initial: State | Sequence[State] | None = None,
        **ports: ArrayLike,
    ) -> dict[str, _Array]:
        """The derivatives of a loss in ports and parameters, from its derivatives in the outputs.

        ``output_slopes`` has the shape of the outputs; ``state_slopes``, if the loss reads the final state, its layout.
        The answer has an array for every port and parameter, by name. The other arguments are those of a call.

        >>> import numpy as np
        >>> from esscher import zoo
        >>> gated, ones = zoo.Mechanism("gla", key_width=1, value_width=1), np.ones((2, 1))
        >>> tokens = dict(query=ones, key=ones, value=ones, log_decay=0 * ones)
        >>> gated.gradient(ones, **tokens)["value"].ravel()        # o = (v₁, v₁ + v₂)
        array([2., 1.])
        """
        call = _Call(self, ports, parameters, lengths, packed, initial)
        return call.gradient(self._native.forward(call)[1], output_slopes, state_slopes)

    def stream(
        self,
        parameters: Mapping[str, ArrayLike] | None = None,
        *,
        heads: int | None = None,
        dtype: DTypeLike = np.float64,
    ) -> Stream:
        """The mechanism before its first token, ready to read one after the other.

        Tokens have rows (width,), or (heads, width) if ``heads`` is given.
        """
        return Stream(self, parameters, heads, dtype)

    def dynamical_system(
        self, *, parameters: Mapping[str, ArrayLike] | None = None, **ports: ArrayLike
    ) -> DynamicalSystem:
        """The mechanism on these tokens, (length, width) each, as a linear dynamical system in one of its ports.

        >>> import numpy as np
        >>> from esscher import zoo
        >>> gated = zoo.Mechanism("gla", key_width=2, value_width=1)
        >>> rows, random = 4, np.random.default_rng(0)
        >>> tokens = {port.name: -random.random((rows, port.width)) for port in gated.ports}
        >>> system = gated.dynamical_system(**tokens)
        >>> system.transition.shape, system.input_port
        ((4, 2), 'value')
        >>> bool(np.allclose(system.simulate(tokens["value"]), gated(**tokens)))
        True
        """
        call = self._one_sequence("a dynamical system", parameters, ports)
        system = DynamicalSystem(**self._native.dynamical_system(call))
        for name in ("transition", "input", "readout", "feedthrough"):
            _finite(f"the {name} of the dynamical system of {self.name}", getattr(system, name))
        return system

    def weights(
        self, *, channel: int = 0, parameters: Mapping[str, ArrayLike] | None = None, **ports: ArrayLike
    ) -> NDArray[np.float64]:
        """What every output takes of every value, (length, length), in one channel: the rows of attention.

        For softmax these are its weights; a mechanism that is not linear in its values is refused. Ports are
        (length, width) each, and the numbers of the value do not matter. One evaluation per token.

        >>> import numpy as np
        >>> from esscher import zoo
        >>> softmax, ones = zoo.Mechanism("softmax", key_width=1, value_width=1), np.ones((3, 1))
        >>> softmax.weights(query=ones, key=ones, value=ones).round(3)
        array([[1.   , 0.   , 0.   ],
               [0.5  , 0.5  , 0.   ],
               [0.333, 0.333, 0.333]])
        """
        number = _whole("channel", channel, 0, self.output_width - 1)
        call = self._one_sequence("weights", parameters, ports)
        found: NDArray[np.float64] = self._native.weights(call, number)
        return found

    def _one_sequence(
        self, what: str, parameters: Mapping[str, ArrayLike] | None, ports: Mapping[str, ArrayLike]
    ) -> _Call:
        """The call for one sequence and head."""
        call = _Call(self, ports, parameters)
        if len(call.output_shape) != 2:
            raise ValueError(f"{what}: of one sequence and head, expected ports of shape (length, width)")
        return call

    def __repr__(self) -> str:
        return f'Mechanism("{self.name}", key_width={self.key_width}, value_width={self.value_width})'

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mechanism) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return (partial(Mechanism, key_width=self.key_width, value_width=self.value_width), (self.name,))


class Stream:
    """A mechanism in the middle of a sequence; made by :meth:`Mechanism.stream`.

    A causal mechanism is stepped: every token is absorbed and then read. Others absorb all tokens first. A stream can
    be copied and pickled, and its state can be taken out and set.

    >>> import numpy as np
    >>> from esscher import zoo
    >>> stream = zoo.Mechanism("gla", key_width=1, value_width=1).stream()
    >>> one = np.ones(1)
    >>> stream.step(query=one, key=one, value=one, log_decay=-one)
    array([1.])
    >>> stream.seen, stream.bytes, stream.state.numbers
    (1, 8, array([[1.]]))
    """

    def __init__(
        self,
        mechanism: Mechanism,
        parameters: Mapping[str, ArrayLike] | None,
        heads: int | None,
        dtype: DTypeLike,
    ) -> None:
        self.mechanism = mechanism
        """What reads."""
        self._heads = None if heads is None else _whole("heads", heads, 1, _LARGEST)
        self._precision = _precision(dtype)
        given = _read_parameters(mechanism, parameters, self._heads)
        self._native = mechanism._native.stream(given, self._heads or 1, self._precision == np.float32)
        # Copies: an array that is changed later changes no stream.
        copies = [np.array(numbers, dtype=self._precision) for numbers in given]
        self._parameters = {each.name: copy for each, copy in zip(mechanism.parameters, copies, strict=True)}

    seen: int = of_native("seen", "How many tokens were absorbed.")
    bytes: int = of_native("bytes", "Bytes of the state, of all heads.")

    @property
    def state(self) -> State:
        """The state, a copy; setting it goes on from there."""
        return _state_of(self.mechanism, *self._native.state())

    @state.setter
    def state(self, state: State) -> None:
        self._native.set_state(*_read_state("state", state))

    def step(self, **ports: ArrayLike) -> _Array:
        """Absorbs a token and answers it: an output (width,) or (heads, width).

        Where an output overflows the call is refused, but the token is absorbed: a copy of the stream goes on without.
        """
        if not self.mechanism.causal:
            raise ValueError(f"{self.mechanism.name} absorbs all tokens before it reads the first: absorb, then read")
        return self._act("step", ports)

    def absorb(self, **ports: ArrayLike) -> None:
        """Takes a token into the state."""
        self._act("absorb", ports)

    def read(self, **ports: ArrayLike) -> _Array:
        """Answers a token from the state, which does not change; a causal mechanism should have absorbed it."""
        return self._act("read", ports)

    def extend(self, **ports: ArrayLike) -> _Array:
        """Reads a piece of the sequence, (length, width) or (length, heads, width), by the chunked form.

        Where a mechanism is not causal, the outputs of a piece have seen all pieces up to this one.
        """
        self._read(ports, _SEQUENCES)
        call = _Call(self.mechanism, ports, self._parameters, initial=self.state)
        outputs, (state,) = self.mechanism._native.evaluate("chunked", call)
        shaped = call.outputs(outputs)
        self._native.set_state(*state)
        return shaped

    def copy(self) -> Stream:
        """Another stream in the same state."""
        twin = object.__new__(Stream)
        twin.__dict__.update(self.__dict__, _native=self._native.copy())
        return twin

    def _act(self, what: Literal["step", "absorb", "read"], ports: Mapping[str, ArrayLike]) -> _Array:
        shape, tokens = self._read(ports, _TOKENS)
        found = _finite(f"an output of {self.mechanism.name}", self._native.act(what, tokens))
        return found if what == "absorb" else found.reshape((*shape, self.mechanism.output_width))

    def _read(self, ports: Mapping[str, ArrayLike], shapes: Mapping[int, str]) -> tuple[tuple[int, ...], list[_Array]]:
        """The arrays of the ports in order, with the axes that the heads ask for, and their shape without the width."""
        axes = min(shapes) + (self._heads is not None)
        arrays = _read_ports(self.mechanism, ports, {axes: shapes[axes]})
        found = arrays[0]
        if found.dtype != self._precision:
            raise TypeError(f"the ports are {found.dtype}, the stream is {self._precision}: convert one of them")
        shape = found.shape[:-1]
        if self._heads is not None and shape[-1] != self._heads:
            raise ValueError(f"heads: the stream has {self._heads}, the ports have {shape[-1]}")
        return shape, arrays

    def __copy__(self) -> Stream:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Stream:
        return self.copy()

    def __repr__(self) -> str:
        heads = "" if self._heads is None else f", heads={self._heads}"
        return f"Stream({self.mechanism.name}{heads}, seen={self.seen})"

    def __eq__(self, other: object) -> bool:
        return made_alike(self, other)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return (_resumed, (self.state, self.mechanism, self._parameters, self._heads, self._precision))


def _resumed(state: State, *made_of: Any) -> Stream:
    """A stream from its recipe, for pickles."""
    stream = Stream(*made_of)
    stream.state = state
    return stream


class _Call:
    """The arguments of a call, as the native module reads them from here, and how its answers are shaped."""

    def __init__(
        self,
        mechanism: Mechanism,
        ports: Mapping[str, ArrayLike],
        parameters: Mapping[str, ArrayLike] | None,
        lengths: ArrayLike | None = None,
        packed: ArrayLike | None = None,
        initial: State | Sequence[State] | None = None,
    ) -> None:
        self.mechanism = mechanism
        self.tokens = _read_ports(mechanism, ports, _SEQUENCES)
        found = self.tokens[0].shape
        shape = found[:-1]
        if 0 in shape:
            raise ValueError(f"the ports have shape {found}: expected at least one token, head and sequence")
        batched = len(shape) == 3
        rows = shape[1] if batched else shape[0]
        heads = None if len(shape) == 1 else shape[-1]
        self.parameters = _read_parameters(mechanism, parameters, heads)
        self.names = [*(port.name for port in mechanism.ports), *(each.name for each in mechanism.parameters)]
        self.heads = heads or 1
        self.block = rows if batched else None
        self.output_shape = (*shape, mechanism.output_width)
        if lengths is not None and not batched:
            raise ValueError("lengths are of a padded batch: expected ports of shape (batch, length, heads, width)")
        if packed is not None and batched:
            raise ValueError("packed sequences have no batch axis: expected ports of shape (length, heads, width)")
        self.single = not batched and packed is None
        if batched:
            self.lengths = [rows] * shape[0] if lengths is None else _read_lengths("lengths", lengths, rows)
            if len(self.lengths) != shape[0]:
                raise ValueError(f"lengths: expected {shape[0]}, one per sequence, found {len(self.lengths)}")
        else:
            self.lengths = [rows] if packed is None else _read_lengths("packed", packed, rows)
            if sum(self.lengths) != rows:
                raise ValueError(f"packed: expected lengths whose sum is {rows}, found {sum(self.lengths)}")
        self.initial = self.states_in("initial", initial)

    def states_in(self, what: str, states: State | Sequence[State] | None) -> list[tuple[int, ArrayLike]] | None:
        """A state per sequence, as the native module takes them."""
        if states is None:
            return None
        given = [states] if isinstance(states, State) else _listed(what, states)
        if len(given) != len(self.lengths):
            raise ValueError(f"{what}: expected {len(self.lengths)}, one state per sequence, found {len(given)}")
        return [_read_state(what, state) for state in given]

    def states_out(self, states: list[tuple[int, _Array]]) -> State | tuple[State, ...]:
        """One state, or one per sequence."""
        made = tuple(_state_of(self.mechanism, *state) for state in states)
        return made[0] if self.single else made

    def outputs(self, found: _Array) -> _Array:
        """The outputs in the shape of the ports."""
        return _finite(f"an output of {self.mechanism.name}", found).reshape(self.output_shape)

    def gradient(
        self, made: Any, output_slopes: ArrayLike, state_slopes: State | Sequence[State] | None = None
    ) -> dict[str, _Array]:
        """Derivatives in ports and parameters, by name."""
        slopes = _native.zoo_array("output_slopes", output_slopes)
        if slopes.shape != self.output_shape:
            raise ValueError(f"output_slopes: expected shape {self.output_shape}, found {slopes.shape}")
        if not np.isfinite(slopes).all():
            raise ValueError("output_slopes: expected finite numbers")
        found = made.backward(self, slopes, self.states_in("state_slopes", state_slopes))
        parts = zip(self.names, found, [*self.tokens, *self.parameters], strict=True)
        return {
            name: _finite(f"the derivative of {self.mechanism.name} in {name}", part).reshape(np.shape(like))
            for name, part, like in parts
        }


# Shapes of ports, by the number of axes.
_SEQUENCES = {2: "(length, width)", 3: "(length, heads, width)", 4: "(batch, length, heads, width)"}
_TOKENS = {1: "(width,)", 2: "(heads, width)"}


def _read_ports(mechanism: Mechanism, ports: Mapping[str, ArrayLike], shapes: Mapping[int, str]) -> list[_Array]:
    """The arrays of all ports in order: of one precision and one shape but for the width."""
    _check_names("port", [port.name for port in mechanism.ports], ports, mechanism.name)
    arrays = [_native.zoo_array(port.name, ports[port.name]) for port in mechanism.ports]
    first, array = mechanism.ports[0], arrays[0]
    for port, other in zip(mechanism.ports, arrays, strict=True):
        if other.ndim not in shapes:
            raise ValueError(f"{port.name}: expected shape {' or '.join(shapes.values())}, found {other.shape}")
        if other.dtype != array.dtype:
            raise TypeError(
                f"{first.name} is {array.dtype}, {port.name} is {other.dtype}: ports must have one precision"
            )
        if other.shape[-1] != port.width:
            raise ValueError(f"{port.name}: expected width {port.width} (last axis), found shape {other.shape}")
        if other.shape[:-1] != array.shape[:-1]:
            raise ValueError(f"{port.name}: expected shape {(*array.shape[:-1], port.width)}, found {other.shape}")
    return arrays


def _read_parameters(
    mechanism: Mechanism, parameters: Mapping[str, ArrayLike] | None, heads: int | None
) -> list[ArrayLike]:
    """The parameters in order; the native module reads them."""
    if parameters is None:
        parameters = mechanism.initial_parameters(heads=heads)
    elif not isinstance(parameters, Mapping):
        found = type(parameters).__name__
        raise TypeError(f"parameters: expected a dictionary by name, found an object of type {found}")
    names = [each.name for each in mechanism.parameters]
    _check_names("parameter", names, parameters, mechanism.name)
    return [parameters[name] for name in names]


def _check_names(what: str, known: list[str], given: Mapping[str, Any], mechanism: str) -> None:
    there_are = f"{mechanism} has the {what}s {', '.join(known)}" if known else f"{mechanism} has no {what}s"
    if unknown := [str(name) for name in given if name not in known]:
        raise TypeError(f"unknown {what} {', '.join(unknown)}: {there_are}")
    if missing := [name for name in known if name not in given]:
        raise TypeError(f"missing {what} {', '.join(missing)}: {there_are}")


def _read_state(what: str, state: State) -> tuple[int, ArrayLike]:
    if not isinstance(state, State):
        raise TypeError(f"{what}: expected a State, found an object of type {type(state).__name__}")
    return _whole("seen", state.seen, 0, _LARGEST), state.numbers


def _finite(what: str, numbers: _Array) -> _Array:
    """Numbers on their way out: no port holds NaN or infinity, so that these are too large for their precision."""
    if not np.isfinite(numbers).all():
        raise ValueError(_overflow(what, numbers))
    return numbers


def _overflow(what: str, numbers: _Array) -> str:
    precision = "single" if numbers.dtype == np.float32 else "double"
    return f"{what} overflows {precision} precision: scale the ports or the parameters down"


def _state_of(mechanism: Mechanism, seen: int, numbers: _Array) -> State:
    """A state on its way out. The largest score so far is −∞ before the first."""
    if not (numbers < np.inf).all():
        raise ValueError(_overflow(f"the state of {mechanism.name}", numbers))
    return State(seen, numbers)


def _read_lengths(what: str, lengths: ArrayLike, most: int) -> list[int]:
    """Lengths of sequences, each from 1 to ``most``."""
    return [_whole(what, length, 1, most) for length in _listed(what, lengths)]


def _listed(what: str, values: Any) -> list[Any]:
    if not hasattr(values, "__len__"):
        raise TypeError(f"{what}: expected a list, found an object of type {type(values).__name__}")
    return list(items(what, values))


def _whole(what: str, value: Any, least: int, most: int) -> int:
    try:
        if isinstance(value, bool | np.bool_):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        found = type(value).__name__
        raise TypeError(f"{what}: expected a whole number, found an object of type {found}") from None
    if not least <= number <= most:
        raise ValueError(f"{what} is {_native.shown(number)}: expected a whole number from {least} to {most}")
    return number


def _precision(dtype: DTypeLike) -> np.dtype[Any]:
    try:
        precision = np.dtype(dtype)
    except Exception:  # whatever NumPy has against it, such as half a character
        precision = np.dtype(object)
    if precision not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise TypeError(f"dtype: expected float32 or float64, found {dtype!r}")
    return precision
