"""The native module: the classes that users hold, and those that Python adds to.

Its functions are called by the modules that document them, and are not described here.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, final

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from typing_extensions import Self, disjoint_base

VERSION: str

__all__ = [
    "Affine", "Attention", "Block", "Cube", "Custom", "DescentState", "Empirical", "ExactFlow", "Gaussian", "Gradient",
    "Heads", "HighDimensional", "Laplace", "LinearAttention", "LinearAttentionTraining", "Measure", "Mixture",
    "Product", "Rademacher", "RegressionHead", "RegressionLayer", "SoftmaxAttention", "Sphere",
]  # fmt: skip

_Array = NDArray[np.float64]
_Singles = NDArray[np.float32]

def __getattr__(name: str) -> Any: ...
def exact_softmax_flow(score: ArrayLike, start: Gaussian) -> ExactFlow: ...
def toeplitz(dimension: int, correlation: float) -> _Array: ...
def spiked(dimension: int, strength: float) -> _Array: ...

@disjoint_base
class Measure:
    dimension: Final[int]
    family: Final[str]
    # A number for one tilt (d,), an array (...) for tilts (..., d).
    def log_partition(self, tilt: ArrayLike) -> Any: ...
    def tilted_mean(self, tilt: ArrayLike) -> _Array: ...
    def tilted_covariance(self, tilt: ArrayLike) -> _Array: ...
    def tilt_divergence(self, tilt: ArrayLike) -> Any: ...
    def renyi_divergence(self, tilt: ArrayLike) -> Any: ...
    def mean(self) -> _Array: ...
    def covariance(self) -> _Array: ...
    def second_moment(self) -> _Array: ...
    def sample(self, count: int, *, seed: int = 0, tilt: ArrayLike | None = None) -> _Array: ...
    def tilted(self, tilt: ArrayLike) -> Measure: ...
    def gaussian_limit(self, tilt: ArrayLike) -> Gaussian: ...
    def gaussian_mixture(self) -> tuple[_Array, _Array, _Array] | None: ...
    def sub_gaussian(self) -> tuple[float, bool] | None: ...
    def sub_gaussian_under_tilts(self) -> float | None: ...
    def check_laws(
        self, tilts: ArrayLike, *, identity: float = 1e-10, derivative: float = 1e-6, draws: int = 20_000
    ) -> None: ...

@final
class Gaussian(Measure):
    def __new__(cls, mean: ArrayLike, covariance: ArrayLike) -> Gaussian: ...
    @staticmethod
    def standard(dimension: int) -> Gaussian: ...
    @staticmethod
    def centred(covariance: ArrayLike) -> Gaussian: ...

@final
class Mixture(Measure):
    def __new__(cls, components: Sequence[Measure], weights: ArrayLike | None = None) -> Mixture: ...
    weights: Final[_Array]

@final
class Empirical(Measure):
    def __new__(cls, tokens: ArrayLike, weights: ArrayLike | None = None) -> Empirical: ...
    tokens: Final[_Array]
    def __len__(self) -> int: ...

@final
class Rademacher(Measure):
    def __new__(cls, dimension: int) -> Rademacher: ...

@final
class Cube(Measure):
    def __new__(cls, dimension: int) -> Cube: ...

@final
class Sphere(Measure):
    def __new__(cls, dimension: int, radius: float = 1.0) -> Sphere: ...

@final
class Laplace(Measure):
    def __new__(cls, dimension: int, scale: float = 1.0) -> Laplace: ...

@final
class Affine(Measure):
    def __new__(cls, base: Measure, matrix: ArrayLike, shift: ArrayLike | None = None) -> Affine: ...

@final
class Product(Measure):
    def __new__(cls, factors: Sequence[Measure]) -> Product: ...

@final
class Custom(Measure):
    def __new__(
        cls,
        dimension: int,
        log_partition: Callable[[_Array], float],
        *,
        tilted_mean: Callable[[_Array], ArrayLike] | None = None,
        tilted_covariance: Callable[[_Array], ArrayLike] | None = None,
        sampler: Callable[[_Array, int, Generator], ArrayLike] | None = None,
        sub_gaussian: float | None = None,
    ) -> Custom: ...

@disjoint_base
class Attention:
    query_dimension: Final[int]
    token_dimension: Final[int]
    output_dimension: Final[int]
    def __call__(self, tokens: Measure | ArrayLike, queries: ArrayLike) -> _Array: ...
    def gradient(self, tokens: Measure | ArrayLike, query: ArrayLike) -> Gradient: ...

_Scaling = Literal["inverse-root-dimension"] | float | None

@final
class SoftmaxAttention(Attention):
    def __new__(cls, score: ArrayLike, value: ArrayLike) -> SoftmaxAttention: ...
    @staticmethod
    def from_qkv(
        query: ArrayLike, key: ArrayLike, value: ArrayLike, *, scaling: _Scaling = None
    ) -> SoftmaxAttention: ...
    score: Final[_Array]
    value: Final[_Array]
    def tilt(self, query: ArrayLike) -> _Array: ...

_Moment = Literal["raw", "centred"]

@final
class LinearAttention(Attention):
    def __new__(cls, score: ArrayLike, value: ArrayLike, *, moment: _Moment = "raw") -> LinearAttention: ...
    @staticmethod
    def from_qkv(
        query: ArrayLike, key: ArrayLike, value: ArrayLike, *, scaling: _Scaling = None, moment: _Moment = "raw"
    ) -> LinearAttention: ...
    score: Final[_Array]
    value: Final[_Array]
    moment: Final[_Moment]

@final
class Heads:
    def __new__(cls, heads: Sequence[Attention]) -> Heads: ...
    def __call__(self, tokens: Measure | ArrayLike, queries: ArrayLike) -> _Array: ...
    def gradients(self, tokens: Measure | ArrayLike, query: ArrayLike) -> list[Gradient]: ...
    def __len__(self) -> int: ...

@final
class Gradient:
    output: Final[_Array]
    tilt_sensitivity: Final[_Array]
    attended_token: Final[_Array]
    query: Final[_Array]
    def in_score(self, output_weight: ArrayLike) -> _Array: ...
    def in_value(self, output_weight: ArrayLike) -> _Array: ...

@final
class ExactFlow:
    blow_up_time: Final[float | None]
    limit_rank: Final[int | None]
    def covariance(self, time: float) -> _Array: ...

@final
class Block:
    def __new__(cls, matrix: ArrayLike, gain: float) -> Block: ...
    @staticmethod
    def initial(theta: ArrayLike, scale: float) -> Block: ...
    dimension: Final[int]
    matrix: Final[_Array]
    gain: Final[float]
    conserved: Final[float]
    def product(self) -> _Array: ...
    def head(self) -> RegressionHead: ...

@final
class RegressionHead:
    def __new__(cls, score: ArrayLike, value: ArrayLike) -> RegressionHead: ...
    dimension: Final[int]
    score: Final[_Array]
    value: Final[_Array]

_Kind = Literal["softmax", "linear"]

@final
class RegressionLayer:
    def __new__(cls, heads: Sequence[RegressionHead], *, attention: _Kind = "softmax") -> RegressionLayer: ...
    @staticmethod
    def projections(
        query: ArrayLike, key: ArrayLike, value: ArrayLike, output: ArrayLike, *, attention: _Kind = "softmax"
    ) -> RegressionLayer: ...
    @staticmethod
    def at_random(dimension: int, *, attention: _Kind = "softmax", seed: int | None = None) -> RegressionLayer: ...
    dimension: Final[int]
    attention: Final[_Kind]
    parameters: Final[_Array]
    balance: Final[float | None]
    heads: Final[list[RegressionHead]]
    def with_parameters(self, parameters: ArrayLike) -> RegressionLayer: ...
    def predict(self, tokens: ArrayLike, query: ArrayLike) -> float: ...
    def predict_with_gradient(self, tokens: ArrayLike, query: ArrayLike) -> tuple[float, _Array]: ...

@final
class LinearAttentionTraining:
    prompt_length: Final[float]
    gamma: Final[_Array]
    minimiser: Final[_Array]
    minimal_risk: Final[float]
    scale_bounds: Final[tuple[float, float]]
    def risk(self, matrix: ArrayLike | Block) -> float: ...
    def excess_risk(self, matrix: ArrayLike | Block) -> float: ...
    def gradient(self, matrix: ArrayLike | Block) -> _Array: ...
    def flow_limit(self, conserved: float = 0.0) -> Block: ...
    def initial_scale(self, scale: float) -> tuple[bool, bool]: ...
    @staticmethod
    def predict(matrix: ArrayLike | Block, covariates: ArrayLike, targets: ArrayLike, query: ArrayLike) -> float: ...

@final
class HighDimensional:
    def __new__(
        cls, sample_ratio: float, context_ratio: float, noise: float = 0.0, diversity: float = ...
    ) -> HighDimensional: ...
    sample_ratio: Final[float]
    context_ratio: Final[float]
    noise: Final[float]
    diversity: Final[float]
    def error_on_new_tasks(self) -> float: ...

@final
class DescentState:
    def __new__(
        cls,
        step: int,
        parameters: ArrayLike,
        first_moment: ArrayLike,
        second_moment: ArrayLike,
        smoothed_loss: float | None,
        rows: Sequence[tuple[int, float | None, float | None, ArrayLike]],
    ) -> DescentState: ...
    step: Final[int]
    parameters: Final[_Array]
    first_moment: Final[_Array]
    second_moment: Final[_Array]
    smoothed_loss: Final[float | None]
    rows: Final[list[tuple[int, float | None, float | None, _Array]]]

# What esscher.layers, esscher.regression and esscher.audit add to.

@disjoint_base
class Layer:
    def __new__(cls, kind: str, *matrices: ArrayLike) -> Self: ...
    dimension: Final[int]
    kind: Final[str]
    value: Final[_Array]
    def affine_form(self, tokens: Gaussian) -> tuple[_Array, _Array]: ...
    def velocity(self, tokens: Gaussian) -> tuple[_Array, _Array]: ...
    def step(self, tokens: Gaussian, step_size: float = 1.0) -> Gaussian: ...
    def push_forward(self, tokens: Gaussian) -> Gaussian: ...
    def _flow(self, asked: dict[str, Any]) -> Any: ...

@disjoint_base
class SpectralTask:
    def __new__(
        cls,
        eigenvalues: ArrayLike | SpectralTask,
        multiplicities: ArrayLike | None = None,
        *,
        query_eigenvalues: ArrayLike | None = None,
        noise: float = 0.0,
        prior: float = 1.0,
    ) -> Self: ...
    dimension: Final[int]
    eigenvalues: Final[_Array]
    query_eigenvalues: Final[_Array]
    multiplicities: Final[NDArray[np.int64]]
    eigenvectors: Final[_Array | None]
    noise_floor: Final[float]
    proved_scale: Final[float]
    def initial(self, scale: float) -> _Array: ...
    def valley(self, gain: float) -> _Array: ...
    def infinite_limit(self, conserved: float = 0.0) -> tuple[_Array, float]: ...
    def block(self, entries: ArrayLike, gain: float) -> Block: ...
    def entries_of(self, block: Block) -> _Array | None: ...
    def first_order(self, entries: ArrayLike, gain: float) -> float | None: ...
    def _risk_and_gradient(self, asked: dict[str, Any]) -> Any: ...
    def _flow(self, asked: dict[str, Any]) -> Any: ...
    def _train(self, asked: dict[str, Any]) -> Any: ...
    def _settle(self, asked: dict[str, Any]) -> Any: ...
    def _horizon(self, asked: dict[str, Any]) -> Any: ...

@final
class StreamingCache:
    def __copy__(self) -> StreamingCache: ...
    def __deepcopy__(self, _memo: object) -> StreamingCache: ...
    def __new__(
        cls,
        candidate: str,
        dimension: int,
        readers: Any,
        *,
        scale: float | None = None,
        window: int = 64,
        first: int = 4,
        light: float = 0.4,
        most_light: int = 16,
    ) -> StreamingCache: ...
    tokens_seen: Final[int]
    bytes: Final[int]
    def absorb(self, key: ArrayLike, value: ArrayLike) -> None: ...
    def read(self, query: ArrayLike) -> _Singles: ...
    def copy(self) -> StreamingCache: ...
