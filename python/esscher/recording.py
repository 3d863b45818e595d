"""Records what the heads of a PyTorch model see, as a dump that ``esscher audit`` reads (docs/audit-dumps.md).

``record(model, inputs, path)`` serves models of transformers, whose attention goes through a registry, and any other
model that calls ``torch.nn.functional.scaled_dot_product_attention``. A :class:`Recorder` takes arrays from anywhere.
PyTorch is not among the requirements of this package, and is imported when it is first needed.
"""

from __future__ import annotations

import contextlib
import importlib
import math
import os
import secrets
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from esscher import _arguments, _native, _paths
from esscher._equality import Compared

__all__ = ["Recorder", "Recording", "record"]

_Array = npt.NDArray[np.float32]

#: The name under which transformers knows our attention function while a model is recorded.
_REGISTERED = "esscher_recording"
#: The tensor that every dump has.
_FIRST = "layer.0.queries"
#: Headers of .safetensors files are shorter.
_LONGEST_HEADER = 100_000_000
#: What models call the matrix from the heads' outputs to the stream.
_PROJECTIONS = ("o_proj", "out_proj", "c_proj", "dense", "wo", "output.dense")


@dataclass(frozen=True)
class Recording:
    """A dump that was written: where, and of what sizes."""

    path: Path
    order: str
    layers: int
    tokens: int
    heads: int
    key_value_heads: int
    head_dimension: int


@dataclass(frozen=True, eq=False)
class _Layer(Compared):
    queries: _Array
    keys: _Array
    values: _Array
    order: str
    scale: float
    residual: _Array | None
    output: _Array | None


def record(model: Any, inputs: Any, path: str | os.PathLike[str]) -> Recording:
    """Runs ``model`` on one text and writes queries, keys and values of every layer to ``path``.

    ``inputs`` is what a tokeniser of transformers returns, a mapping of keyword arguments, or a tensor of token ids;
    the text is one, without padding. ``path`` ends in ``.npz``, or in ``.safetensors`` if that package is installed.

    >>> from transformers import AutoModelForCausalLM, AutoTokenizer          # doctest: +SKIP
    >>> model = AutoModelForCausalLM.from_pretrained(name)                    # doctest: +SKIP
    >>> inputs = AutoTokenizer.from_pretrained(name)(text, return_tensors="pt")  # doctest: +SKIP
    >>> es.recording.record(model, inputs, "heads.npz")                       # doctest: +SKIP
    """
    _target(path)
    if not callable(model):
        raise TypeError(f"model: expected a PyTorch module, found an object of type {type(model).__name__}")
    torch = _torch()
    recorder = Recorder()
    listening = recorder.listen_to_transformers(model) if _of_transformers(model) else recorder.listen_to_torch()
    training = bool(getattr(model, "training", False))
    try:
        if training:
            model.eval()
        with torch.no_grad(), listening:
            if isinstance(inputs, Mapping) or hasattr(inputs, "keys"):
                model(**inputs)
            else:
                model(inputs)
    finally:
        if training:
            model.train()
    return recorder.write(path)


class Recorder(Compared):
    """Layers of heads, collected one by one and then written.

    ``add`` takes arrays; ``listen_to_torch`` and ``listen_to_transformers`` add what a forward pass inside does.
    """

    def __init__(self) -> None:
        self._layers: list[_Layer] = []

    def __len__(self) -> int:
        return len(self._layers)

    def __repr__(self) -> str:
        return f"Recorder({len(self)} layers)"

    def add(
        self,
        queries: Any,
        keys: Any,
        values: Any,
        *,
        order: str,
        scale: float | None = None,
        residual: Any = None,
        output: Any = None,
    ) -> Recorder:
        """Adds the next layer, and returns itself.

        ``queries`` are (tokens, heads, d), ``keys`` and ``values`` (tokens, key-value heads, d), all with positions
        applied. ``order`` is ``"causal"`` if a token sees itself and those before it, ``"whole"`` if it sees all.
        A score is ``scale`` · ⟨query, key⟩, with 1/√d unless given. ``residual`` (tokens, width) is the stream that the
        layer's output is added to, ``output`` (width, heads·d) the matrix that takes the heads' outputs there.
        """
        where = f"layer {len(self._layers)}"
        order = _arguments.word(f"{where}: order", order, "causal", "whole")
        given = {"queries": queries, "keys": keys, "values": values}
        q, k, v = (_numbers(f"{where}: {name}", array, 3) for name, array in given.items())
        if q.shape[0] != k.shape[0]:
            raise ValueError(
                f"{where}: {q.shape[0]} queries but {k.shape[0]} keys: attention to another sequence, or after a "
                "cache, is not recorded; run the whole text at once"
            )
        if k.shape != v.shape or q.shape[2] != k.shape[2]:
            raise ValueError(
                f"{where}: queries {q.shape}, keys {k.shape} and values {v.shape} must have one d, and "
                "keys and values one shape"
            )
        if k.shape[1] == 0 or q.shape[1] % k.shape[1] != 0:
            raise ValueError(f"{where}: {q.shape[1]} query heads cannot share {k.shape[1]} key-value heads evenly")
        for first in self._layers[:1]:
            if (q.shape, k.shape) != (first.queries.shape, first.keys.shape):
                raise ValueError(
                    f"{where}: queries {q.shape} and keys {k.shape}, but layer 0 has {first.queries.shape} and "
                    f"{first.keys.shape}: a dump is of one text and of equal layers"
                )
            if order != first.order:
                raise ValueError(f"{where}: order is {order!r}, but that of layer 0 is {first.order!r}")
        scale = 1 / math.sqrt(q.shape[2]) if scale is None else _native.read_real(f"{where}: scale", scale)
        # Dumps are of single precision, and beside layers of other scales the queries take up this one, see `write`.
        with np.errstate(over="ignore", invalid="ignore"):
            single, taken_up = np.float32(scale), q * np.float32(scale * math.sqrt(q.shape[2]))
        if not (np.isfinite(single) and single > 0):
            raise ValueError(f"{where}: scale must be a number above 0 in single precision, found {scale}")
        if not np.all(np.isfinite(taken_up)):
            raise ValueError(f"{where}: scale is {scale}: queries times it are too large for single precision")
        stream = None if residual is None else _numbers(f"{where}: residual", residual, 2)
        matrix = None if output is None else _numbers(f"{where}: output", output, 2)
        if stream is not None and stream.shape[0] != q.shape[0]:
            raise ValueError(f"{where}: residual has {stream.shape[0]} rows for {q.shape[0]} tokens")
        if matrix is not None and matrix.shape[1] != q.shape[1] * q.shape[2]:
            raise ValueError(f"{where}: output {matrix.shape} must have heads·d = {q.shape[1] * q.shape[2]} columns")
        if stream is not None and matrix is not None and stream.shape[1] != matrix.shape[0]:
            raise ValueError(f"{where}: output {matrix.shape} must have a row for each of {stream.shape[1]} columns")
        self._layers.append(_Layer(q, k, v, order, scale, stream, matrix))
        return self

    @contextlib.contextmanager
    def listen_to_torch(self) -> Iterator[None]:
        """Adds a layer at every call of ``torch.nn.functional.scaled_dot_product_attention`` inside, in their order."""
        functional = _torch().nn.functional
        exact = functional.scaled_dot_product_attention

        def listening(
            query: Any,
            key: Any,
            value: Any,
            attn_mask: Any = None,
            dropout_p: float = 0.0,
            is_causal: bool = False,
            scale: float | None = None,
            **options: Any,
        ) -> Any:
            order = self._order(attn_mask, is_causal, key)
            self.add(_rows(query), _rows(key), _rows(value), order=order, scale=scale)
            return exact(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, **options)

        functional.scaled_dot_product_attention = listening
        try:
            yield
        finally:
            functional.scaled_dot_product_attention = exact

    @contextlib.contextmanager
    def listen_to_transformers(self, model: Any) -> Iterator[None]:
        """Adds a layer, with stream and output, at every call of an attention function of transformers inside."""
        try:
            registry = importlib.import_module("transformers.modeling_utils").ALL_ATTENTION_FUNCTIONS
            exact: Callable[..., Any] = registry["sdpa"]
        except (ImportError, AttributeError, KeyError) as error:
            raise ImportError("transformers has no registry of attention functions: install 4.48 or later") from error
        streams: dict[int, Any] = {}
        parts = dict(model.named_modules())
        parents = {id(module): parts.get(name.rpartition(".")[0]) for name, module in parts.items()}

        def listening(
            module: Any, query: Any, key: Any, value: Any, attention_mask: Any, *rest: Any, **options: Any
        ) -> Any:
            where = f"layer {len(self._layers)}"
            for option in ("softcap", "s_aux", "position_bias"):
                if options.get(option) is not None:
                    raise ValueError(f"{where}: `{option}` makes its weights another function of scores than softmax")
            causal = options.get("is_causal")
            causal = getattr(module, "is_causal", True) if causal is None else causal
            parent = parents.get(id(module), model)
            output = _projection(module, parent, query.shape[1] * query.shape[3])
            residual = streams.get(id(parent))
            matching = residual is not None and output is not None and residual.shape[-1] == output.shape[0]
            self.add(
                _rows(query),
                _rows(key),
                _rows(value),
                order=self._order(attention_mask, bool(causal), key),
                scale=options.get("scaling"),
                residual=residual if matching else None,
                output=output if matching else None,
            )
            return exact(module, query, key, value, attention_mask, *rest, **options)

        def keep_stream(module: Any, given: tuple[Any, ...], named: dict[str, Any]) -> None:
            stream: Any = given[0] if given else named.get("hidden_states")
            if getattr(stream, "ndim", 0) == 3 and stream.shape[0] == 1:
                streams[id(module)] = _array(stream)[0]

        registry.register(_REGISTERED, listening)
        masks = _masks()
        if masks is not None:
            masks.register(_REGISTERED, masks["sdpa"])
        configurations: dict[int, Any] = {
            id(it): it for it in (getattr(part, "config", None) for part in model.modules())
        }
        before = [
            (it, it._attn_implementation) for it in configurations.values() if hasattr(it, "_attn_implementation")
        ]
        hooks = [part.register_forward_pre_hook(keep_stream, with_kwargs=True) for part in _holders(model)]
        try:
            for configuration, _ in before:
                configuration._attn_implementation = _REGISTERED
            yield
        finally:
            for configuration, implementation in before:
                configuration._attn_implementation = implementation
            for hook in hooks:
                hook.remove()
            for mapping in (registry, masks):
                getattr(mapping, "_global_mapping", {}).pop(_REGISTERED, None)

    def write(self, path: str | os.PathLike[str]) -> Recording:
        """Writes the layers to a ``.npz`` or ``.safetensors`` file, whole or not at all.

        An older dump of that name is replaced; anything else that has the name is refused and stays.
        """
        target = _target(path)
        if not self._layers:
            raise ValueError(
                "nothing was recorded: the model called neither the attention functions of transformers nor "
                "torch.nn.functional.scaled_dot_product_attention; add its layers with Recorder.add"
            )
        first = self._layers[0]
        width = first.queries.shape[2]
        # One scale for all layers: queries carry what is left of it, so that every score is what it was.
        common = first.scale if all(layer.scale == first.scale for layer in self._layers) else 1 / math.sqrt(width)
        tensors: dict[str, _Array] = {"scale": np.array([common], dtype=np.float32)}
        for number, layer in enumerate(self._layers):
            factor = np.float32(layer.scale / common)
            tensors[f"layer.{number}.queries"] = layer.queries if factor == 1 else layer.queries * factor
            tensors[f"layer.{number}.keys"] = layer.keys
            tensors[f"layer.{number}.values"] = layer.values
            for name, optional in (("residual", layer.residual), ("output", layer.output)):
                if optional is not None:
                    tensors[f"layer.{number}.{name}"] = optional
        part = target.with_name(f".part-{secrets.token_hex(8)}")
        try:
            # A file and no name: savez would take a tensor called `file` for its own argument, and add endings.
            with open(part, "xb") as file:
                if target.suffix == ".npz":
                    np.savez(file, order=np.array(first.order), **tensors)  # type: ignore[arg-type]
                else:
                    _safetensors().save_file(tensors, part, metadata={"order": first.order})
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, target)
        except BaseException:
            with contextlib.suppress(OSError):
                os.remove(part)
            raise
        tokens, heads, _ = first.queries.shape
        return Recording(
            _paths.path("path", path), first.order, len(self._layers), tokens, heads, first.keys.shape[1], width
        )

    def _order(self, mask: Any, causal: bool, key: Any) -> str:
        """Who sees whom; the mask says it if there is one."""
        if mask is None:
            return "causal" if causal else "whole"
        where = f"layer {len(self._layers)}"
        numbers = _array(mask)
        if str(getattr(mask, "dtype", "")).endswith("bool"):
            seen = numbers != 0
        else:
            # Masks hide with −∞ or with the lowest number of their precision, which half precision has at −65504.
            seen, hidden = numbers == 0, numbers <= _lowest(mask) / 4
            if not np.all(seen | hidden):
                raise ValueError(f"{where}: its mask adds to scores (a position bias), which a dump cannot hold")
        if seen.ndim < 2 or seen.shape[-1] != key.shape[-2] or seen.shape[-2] not in (1, key.shape[-2]):
            raise ValueError(
                f"{where}: a mask of shape {seen.shape} for {key.shape[-2]} tokens: run the whole text at once"
            )
        if np.all(seen):
            return "whole"
        if np.all(seen == np.tri(seen.shape[-2], seen.shape[-1], dtype=np.bool_)) and seen.shape[-2] > 1:
            return "causal"
        raise ValueError(
            f"{where}: its mask is neither causal nor whole (padding, or a sliding window): record one text without "
            "padding, shorter than the window"
        )


def _numbers(name: str, given: Any, dimensions: int) -> _Array:
    try:
        array = _array(given)
    except (OverflowError, TypeError, ValueError) as error:
        raise ValueError(f"{name}: expected an array of real numbers: {error}") from error
    if array.ndim != dimensions or 0 in array.shape:
        raise ValueError(
            f"{name}: expected an array with {dimensions} dimensions and no empty one, found {array.shape}"
        )
    if not np.all(np.isfinite(array)):
        raise ValueError(f"{name}: there are numbers that are not finite")
    return array


def _array(given: Any) -> _Array:
    """A tensor of any precision and device, or anything NumPy reads, as float32 of its own."""
    if hasattr(given, "detach"):
        given = given.detach().float().cpu().numpy()
    array = np.asarray(given)
    if array.dtype.kind in "cOSUMm":
        raise TypeError(f"found dtype {array.dtype}")
    if np.ma.is_masked(given):
        raise ValueError("some entries are masked: fill them or leave them out")
    return np.array(array, dtype=np.float32, order="C")


def _lowest(mask: Any) -> float:
    """The lowest finite number of a mask's precision, or of single precision, to which wider ones are read."""
    half = str(getattr(mask, "dtype", "")).endswith(".float16") or getattr(mask, "dtype", None) == np.float16
    return float(np.finfo(np.float16 if half else np.float32).min)


def _rows(tensor: Any) -> _Array:
    """(1, heads, tokens, d) as (tokens, heads, d)."""
    array = _array(tensor)
    if array.ndim == 4 and array.shape[0] != 1:
        raise ValueError(f"a dump holds one text, found a batch of {array.shape[0]}: record them one by one")
    if array.ndim == 4:
        array = array[0]
    if array.ndim != 3:
        raise ValueError(f"expected queries, keys and values of shape (1, heads, tokens, d), found {array.shape}")
    return np.ascontiguousarray(array.transpose(1, 0, 2))


def _projection(module: Any, parent: Any, columns: int) -> _Array | None:
    """The matrix from the heads' outputs to the stream, if it has one of the usual names and the right shape."""
    for owner in (module, parent):
        for name in _PROJECTIONS:
            layer = owner
            for step in name.split("."):
                layer = getattr(layer, step, None)
            weight = getattr(layer, "weight", None)
            if weight is None or getattr(weight, "ndim", 0) != 2:
                continue
            # The convolutions of GPT-2 are matrices the other way round.
            matrix = _array(weight).T if type(layer).__name__ == "Conv1D" else _array(weight)
            if matrix.shape[1] == columns:
                return np.ascontiguousarray(matrix)
    return None


def _holders(model: Any) -> list[Any]:
    """The modules right above those that attend: what goes into them is the stream."""
    parts = dict(model.named_modules())
    holders = {
        name.rpartition(".")[0]
        for name, part in parts.items()
        if hasattr(part, "is_causal") or "Attention" in type(part).__name__
    }
    return [parts[name] for name in sorted(holders) if name in parts]


def _of_transformers(model: Any) -> bool:
    return hasattr(getattr(model, "config", None), "_attn_implementation")


def _masks() -> Any:
    """The registry of mask functions, which came later than that of attention functions."""
    try:
        return importlib.import_module("transformers.masking_utils").ALL_MASK_ATTENTION_FUNCTIONS
    except (ImportError, AttributeError):
        return None


def _target(path: str | os.PathLike[str]) -> Path:
    """Where a dump may be written: a new file, or a dump that it replaces. A link stays: what it points to is meant."""
    target = _paths.path("path", path)
    if target.suffix not in (".npz", ".safetensors"):
        raise ValueError(f"path: expected a name that ends in .npz or .safetensors, found {target.name!r}")
    if target.suffix == ".safetensors":
        _safetensors()
    target = Path(os.path.realpath(target))
    if not target.parent.is_dir():
        raise FileNotFoundError(f"path: there is no folder {target.parent}")
    if os.path.lexists(target) and not _is_dump(target):
        raise FileExistsError(f"path: {target} exists and is no dump: it is kept; choose another name or move it away")
    return target


def _is_dump(path: Path) -> bool:
    """Whether a file is a dump, as far as its table of contents says; an empty file counts, since nothing is lost."""
    if not path.is_file():
        return False
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                return f"{_FIRST}.npy" in archive.namelist()
        with open(path, "rb") as file:
            beginning = file.read(8)
            size = int.from_bytes(beginning, "little")
            return not beginning or (size < _LONGEST_HEADER and f'"{_FIRST}"'.encode() in file.read(size))
    except (OSError, zipfile.BadZipFile):
        return False


def _torch() -> Any:
    return _optional("torch", "PyTorch is not installed: pip install torch")


def _safetensors() -> Any:
    return _optional("safetensors.numpy", "safetensors is not installed: pip install safetensors, or write a .npz")


def _optional(module: str, advice: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(advice) from error
