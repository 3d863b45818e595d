"""The native module: measures and heads, and the functions that the other modules wrap."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, final

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from typing_extensions import disjoint_base

VERSION: str

__all__ = [
    "VERSION",
    "Affine",
    "Attention",
    "AuditCache",
    "Block",
    "Cube",
    "Custom",
    "DescentState",
    "DrawnCovariates",
    "Empirical",
    "ExactFlow",
    "Gaussian",
    "GaussianTask",
    "Gradient",
    "Heads",
    "HighDimensional",
    "Laplace",
    "Layer",
    "LinearAttention",
    "LinearAttentionTraining",
    "Measure",
    "Mixture",
    "Product",
    "Rademacher",
    "RegressionHead",
    "RegressionLayer",
    "SoftmaxAttention",
    "SpectralTask",
    "Sphere",
    "Task",
    "ZooMechanism",
    "ZooPass",
    "ZooStream",
    "audit_calibrate",
    "audit_model",
    "audit_models",
    "audit_replace",
    "audit_state_tokens",
    "authors_experiment",
    "baseline_risks",
    "catalogue",
    "compute_unit",
    "concentration",
    "critical_score_deviation",
    "delta_method",
    "depth",
    "descend",
    "exact_softmax_flow",
    "example",
    "finite_prompt",
    "gaussian_gradient_constant",
    "horizon",
    "instruction_sets",
    "local_slopes",
    "merge_shards",
    "opposite_pair",
    "output_bound",
    "plan",
    "prompt_lengths",
    "rate_exponent",
    "rate_fit",
    "read_run",
    "regime",
    "reproduce",
    "response",
    "run",
    "score_gradient_bound",
    "shrinkage",
    "simulate_risk",
    "spiked",
    "toeplitz",
    "trajectory_bound",
    "typical_error_exponent",
    "value_gradient_bound",
    "weight_moments",
    "write_report",
    "zoo_array",
    "zoo_catalogue",
    "zoo_simulate",
]

_Array = NDArray[np.float64]

@disjoint_base
class Measure:
    @property
    def dimension(self) -> int: ...
    @property
    def family(self) -> str: ...
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
    @property
    def weights(self) -> _Array: ...

@final
class Empirical(Measure):
    def __new__(cls, tokens: ArrayLike, weights: ArrayLike | None = None) -> Empirical: ...
    @property
    def tokens(self) -> _Array: ...
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
    @property
    def query_dimension(self) -> int: ...
    @property
    def token_dimension(self) -> int: ...
    @property
    def output_dimension(self) -> int: ...
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
    @property
    def score(self) -> _Array: ...
    @property
    def value(self) -> _Array: ...
    def tilt(self, query: ArrayLike) -> _Array: ...

_Moment = Literal["raw", "centred"]

@final
class LinearAttention(Attention):
    def __new__(cls, score: ArrayLike, value: ArrayLike, *, moment: _Moment = "raw") -> LinearAttention: ...
    @staticmethod
    def from_qkv(
        query: ArrayLike, key: ArrayLike, value: ArrayLike, *, scaling: _Scaling = None, moment: _Moment = "raw"
    ) -> LinearAttention: ...
    @property
    def score(self) -> _Array: ...
    @property
    def value(self) -> _Array: ...
    @property
    def moment(self) -> _Moment: ...

@final
class Heads:
    def __new__(cls, heads: Sequence[Attention]) -> Heads: ...
    def __call__(self, tokens: Measure | ArrayLike, queries: ArrayLike) -> _Array: ...
    def gradients(self, tokens: Measure | ArrayLike, query: ArrayLike) -> list[Gradient]: ...
    def __len__(self) -> int: ...

@final
class Gradient:
    @property
    def output(self) -> _Array: ...
    @property
    def tilt_sensitivity(self) -> _Array: ...
    @property
    def attended_token(self) -> _Array: ...
    @property
    def query(self) -> _Array: ...
    def in_score(self, output_weight: ArrayLike) -> _Array: ...
    def in_value(self, output_weight: ArrayLike) -> _Array: ...

# Runs; esscher.runs and esscher.ray wrap them. A file or a text is given.
def plan(file: Path | None, text: str | None, *, seed: int | None, instruction_set: str | None) -> dict[str, Any]: ...
def run(
    file: Path | None,
    text: str | None,
    *,
    out: Path,
    name: str | None,
    share: str | None,
    seed: int | None,
    instruction_set: str | None,
    engine: Callable[[list[tuple[int, str, float]]], Iterator[tuple[str, bytes]]] | None,
    threads: int,
    progress: Callable[[float], object] | None,
) -> Path: ...
def compute_unit(specification: str, unit: int, instruction_set: str) -> bytes: ...
def instruction_sets() -> list[str]: ...
def merge_shards(folders: list[Path], out: Path | None) -> Path: ...
def read_run(folder: Path) -> dict[str, Any]: ...
def write_report(runs: list[Path], out: Path | None) -> Path: ...
def reproduce(
    *,
    only: list[str],
    full: bool,
    out: Path,
    seed: int | None,
    instruction_set: str | None,
    progress: Callable[[float], object] | None,
) -> tuple[Path, list[dict[str, Any]]]: ...
def catalogue(group: str | None) -> dict[str, list[str]]: ...
def example(name: str) -> str: ...

# Called by position from the modules that document them.
_Report = Callable[[float], object] | None

def finite_prompt(
    head: SoftmaxAttention, tokens: Measure | ArrayLike, queries: ArrayLike, lengths: ArrayLike, progress: _Report
) -> dict[str, Any]: ...
def delta_method(
    head: SoftmaxAttention, tokens: Measure | ArrayLike, query: ArrayLike
) -> tuple[_Array, _Array, float]: ...
def gaussian_gradient_constant(head: SoftmaxAttention, tokens: Measure, query: ArrayLike) -> float: ...
def concentration(
    head: SoftmaxAttention,
    tokens: Measure | ArrayLike,
    queries: Measure | ArrayLike,
    lengths: ArrayLike,
    engine: str,
    directions: int | None,
    randomisations: int | None,
    trials: int | None,
    query_count: int | None,
    score_gradient: bool,
    precision: str,
    instruction_set: str | None,
    seed: int,
    progress: _Report,
) -> dict[str, Any]: ...
def rate_fit(
    lengths: ArrayLike,
    values: ArrayLike,
    errors: ArrayLike | None,
    covariance: ArrayLike | None,
    draws: int | None,
    level: float,
) -> dict[str, Any]: ...
def local_slopes(
    lengths: ArrayLike,
    values: ArrayLike,
    errors: ArrayLike | None,
    covariance: ArrayLike | None,
    draws: int | None,
) -> list[tuple[int, int, float, float]]: ...
def horizon(
    head: SoftmaxAttention,
    tokens: Measure | ArrayLike,
    tolerance: float,
    query: ArrayLike | None,
    queries: Measure | ArrayLike | None,
    quantity: str,
    directions: int | None,
    randomisations: int | None,
    seed: int,
    progress: _Report,
) -> dict[str, Any]: ...
def prompt_lengths(lengths: ArrayLike) -> list[int]: ...
def weight_moments(score_deviation: float, lengths: ArrayLike) -> dict[str, _Array]: ...
def shrinkage(score_deviation: float, lengths: ArrayLike) -> dict[str, _Array]: ...
def opposite_pair(score_deviation: float, length: float) -> dict[str, _Array]: ...
def regime(score_deviation: float, length: float) -> str: ...
def typical_error_exponent(score_deviation: float, length: float) -> float: ...
def critical_score_deviation(length: float) -> float: ...
def rate_exponent(operator_norm: float) -> float: ...
def output_bound(length: float, sub_gaussian: float, factor: float, exponent: float) -> float: ...
def score_gradient_bound(length: float, sub_gaussian: float, factor: float, exponent: float) -> float: ...
def value_gradient_bound(length: float, sub_gaussian: float, factor: float, exponent: float) -> float: ...
def trajectory_bound(gradient_gap: float, growth: float, time: float) -> float: ...

@final
class Layer:
    @staticmethod
    def softmax(score: ArrayLike, value: ArrayLike) -> Layer: ...
    @staticmethod
    def linear(score: ArrayLike, value: ArrayLike) -> Layer: ...
    @staticmethod
    def l2(query: ArrayLike, key: ArrayLike, value: ArrayLike) -> Layer: ...
    @staticmethod
    def sinkhorn(query: ArrayLike, key: ArrayLike, value: ArrayLike) -> Layer: ...
    @property
    def dimension(self) -> int: ...
    @property
    def kind(self) -> str: ...
    @property
    def value(self) -> _Array: ...
    def affine_form(self, tokens: Gaussian) -> tuple[_Array, _Array]: ...
    def velocity(self, tokens: Gaussian) -> tuple[_Array, _Array]: ...
    def step(self, tokens: Gaussian, step_size: float) -> Gaussian: ...
    def push_forward(self, tokens: Gaussian) -> Gaussian: ...
    def flow(self, start: Gaussian, wishes: dict[str, Any], progress: _Report) -> dict[str, Any]: ...

@final
class ExactFlow:
    @property
    def blow_up_time(self) -> float | None: ...
    @property
    def limit_rank(self) -> int | None: ...
    def covariance(self, time: float) -> _Array: ...

def depth(start: Gaussian, layers: Sequence[Layer], step_size: float) -> dict[str, Any]: ...
def exact_softmax_flow(score: ArrayLike, start: Gaussian) -> ExactFlow: ...

@final
class Block:
    def __new__(cls, matrix: ArrayLike, gain: float) -> Block: ...
    @staticmethod
    def initial(theta: ArrayLike, scale: float) -> Block: ...
    @property
    def dimension(self) -> int: ...
    @property
    def matrix(self) -> _Array: ...
    @property
    def gain(self) -> float: ...
    @property
    def conserved(self) -> float: ...
    def product(self) -> _Array: ...
    def head(self) -> RegressionHead: ...

@final
class RegressionHead:
    def __new__(cls, score: ArrayLike, value: ArrayLike) -> RegressionHead: ...
    @property
    def dimension(self) -> int: ...
    @property
    def score(self) -> _Array: ...
    @property
    def value(self) -> _Array: ...

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
    @property
    def dimension(self) -> int: ...
    @property
    def attention(self) -> _Kind: ...
    @property
    def parameters(self) -> _Array: ...
    @property
    def balance(self) -> float | None: ...
    @property
    def heads(self) -> list[RegressionHead]: ...
    def with_parameters(self, parameters: ArrayLike) -> RegressionLayer: ...
    def predict(self, tokens: ArrayLike, query: ArrayLike) -> float: ...
    def predict_with_gradient(self, tokens: ArrayLike, query: ArrayLike) -> tuple[float, _Array]: ...

@final
class LinearAttentionTraining:
    @property
    def prompt_length(self) -> float: ...
    @property
    def gamma(self) -> _Array: ...
    @property
    def minimiser(self) -> _Array: ...
    @property
    def minimal_risk(self) -> float: ...
    @property
    def scale_bounds(self) -> tuple[float, float]: ...
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
    @property
    def sample_ratio(self) -> float: ...
    @property
    def context_ratio(self) -> float: ...
    @property
    def noise(self) -> float: ...
    @property
    def diversity(self) -> float: ...
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
    @property
    def step(self) -> int: ...
    @property
    def parameters(self) -> _Array: ...
    @property
    def first_moment(self) -> _Array: ...
    @property
    def second_moment(self) -> _Array: ...
    @property
    def smoothed_loss(self) -> float | None: ...
    @property
    def rows(self) -> list[tuple[int, float | None, float | None, _Array]]: ...

# What esscher.tasks and esscher.regression wrap.

_Predictor = Block | RegressionHead | RegressionLayer

@disjoint_base
class Task:
    @staticmethod
    def linear(
        covariates: Measure | ArrayLike,
        queries: Measure | ArrayLike | None,
        noise: float,
        query_noise: float | None,
        prior: float,
    ) -> Task: ...
    @staticmethod
    def generalised(
        link: str, covariates: Measure | ArrayLike, queries: Measure | ArrayLike | None, noise: float, prior: float
    ) -> Task: ...
    @staticmethod
    def sparse(
        non_zero: int, covariates: Measure | ArrayLike, queries: Measure | ArrayLike | None, noise: float, prior: float
    ) -> Task: ...
    @staticmethod
    def classification(
        separation: float, noise: Measure | ArrayLike, query_noise: Measure | ArrayLike | None
    ) -> Task: ...
    @property
    def dimension(self) -> int: ...
    def draw(self, prompt_length: float, seed: int) -> tuple[_Array, _Array, float, _Array]: ...

@final
class GaussianTask(Task):
    def __new__(
        cls,
        covariance: ArrayLike,
        noise: float,
        prior: float,
        query_covariance: ArrayLike | None,
        query_noise: float | None,
    ) -> GaussianTask: ...
    @property
    def covariance(self) -> _Array: ...
    @property
    def query_covariance(self) -> _Array: ...
    @property
    def noise(self) -> float: ...
    @property
    def query_noise(self) -> float: ...
    @property
    def prior(self) -> float: ...
    @property
    def noise_floor(self) -> float: ...
    def spectral(self) -> SpectralTask: ...
    def linear_attention(self, prompt_length: float | None) -> LinearAttentionTraining: ...
    def risk(
        self,
        predictor: _Predictor,
        prompt_length: float | None,
        attention: str | None,
        gradient: bool,
        points: dict[str, Any],
    ) -> dict[str, Any]: ...
    def flow(
        self,
        initial: _Predictor | float | None,
        prompt_length: float | None,
        attention: str,
        wishes: dict[str, Any],
        points: dict[str, Any],
        progress: _Report,
    ) -> dict[str, Any]: ...
    def settle(self, guess: Block, prompt_length: float | None, attention: str, stationary: float) -> Block | None: ...
    def bayes_risk(
        self, prompt_length: float, prompts: int, seed: int, progress: _Report
    ) -> tuple[float, float | None, int]: ...

@final
class SpectralTask:
    def __new__(
        cls,
        eigenvalues: ArrayLike,
        multiplicities: ArrayLike,
        query_eigenvalues: ArrayLike | None,
        noise: float,
        prior: float,
    ) -> SpectralTask: ...
    @property
    def dimension(self) -> int: ...
    @property
    def eigenvalues(self) -> _Array: ...
    @property
    def query_eigenvalues(self) -> _Array: ...
    @property
    def multiplicities(self) -> _Array: ...
    @property
    def eigenvectors(self) -> _Array | None: ...
    @property
    def noise_floor(self) -> float: ...
    @property
    def proved_scale(self) -> float: ...
    def initial(self, scale: float) -> _Array: ...
    def valley(self, gain: float) -> _Array: ...
    def infinite_limit(self, conserved: float) -> tuple[_Array, float]: ...
    def block(self, entries: ArrayLike, gain: float) -> Block: ...
    def entries_of(self, block: Block) -> _Array | None: ...
    def first_order(self, entries: ArrayLike, gain: float) -> float | None: ...
    def risk_and_gradient(
        self, entries: ArrayLike, gain: float, prompt_length: float | None, attention: str
    ) -> tuple[float, _Array, float]: ...
    def flow(
        self,
        start: ArrayLike,
        prompt_length: float | None,
        attention: str,
        wishes: dict[str, Any],
        progress: _Report,
    ) -> dict[str, Any]: ...
    def train(
        self,
        scale: float | None,
        prompt_length: float | None,
        attention: str,
        wishes: dict[str, Any],
        progress: _Report,
    ) -> dict[str, Any]: ...
    def settle(
        self, guess: ArrayLike, prompt_length: float | None, attention: str, stationary: float
    ) -> _Array | None: ...
    def horizon(
        self, scale: float | None, tolerance: float, progress: _Report
    ) -> tuple[int | None, float | None, float | None, str]: ...

@final
class DrawnCovariates:
    def __new__(
        cls, covariates: Measure | ArrayLike, noise: float, prior: float, prompts: int, longest: int, seed: int
    ) -> DrawnCovariates: ...
    def risk_and_gradient(self, block: Block, prompt_length: float | None) -> tuple[float, _Array, float]: ...
    def flow(
        self, initial: Block, prompt_length: float | None, wishes: dict[str, Any], progress: _Report
    ) -> dict[str, Any]: ...

def response(score_variance: ArrayLike, prompt_length: float | None, attention: str) -> dict[str, _Array]: ...
def toeplitz(dimension: int, correlation: float) -> _Array: ...
def spiked(dimension: int, strength: float) -> _Array: ...
def simulate_risk(
    task: Task,
    predictor: _Predictor,
    prompt_length: float,
    attention: str | None,
    prompts: int,
    gradient: bool,
    seed: int,
    instructions: str | None,
    progress: _Report,
) -> dict[str, Any]: ...
def baseline_risks(
    task: Task,
    prompt_length: float,
    baselines: Sequence[tuple[str, float]],
    prompts: int,
    seed: int,
    progress: _Report,
) -> list[tuple[float | None, float | None]]: ...
def descend(
    task: Task,
    predictor: _Predictor,
    prompt_length: float,
    attention: str | None,
    manner: dict[str, Any],
    state: DescentState | None,
    progress: _Report,
) -> tuple[DescentState, RegressionLayer, str]: ...
def authors_experiment(wanted: dict[str, Any], progress: _Report) -> dict[str, Any]: ...

_ZooState = tuple[int, NDArray[Any]]

@final
class ZooMechanism:
    def __new__(cls, name: str, key_width: int, value_width: int) -> ZooMechanism: ...
    @property
    def ports(self) -> list[tuple[str, int, str]]: ...
    @property
    def parameters(self) -> list[tuple[str, int, bool, bool]]: ...
    @property
    def output_width(self) -> int: ...
    @property
    def causal(self) -> bool: ...
    def initial_parameters(self, seed: int, heads: int) -> list[_Array]: ...
    def evaluate(
        self,
        form: str,
        tokens: list[NDArray[Any]],
        parameters: list[NDArray[Any]],
        heads: int,
        lengths: list[int],
        longest: int | None,
        initial: list[_ZooState] | None,
    ) -> tuple[NDArray[Any], list[_ZooState]]: ...
    def forward(
        self,
        tokens: list[NDArray[Any]],
        parameters: list[NDArray[Any]],
        heads: int,
        lengths: list[int],
        longest: int | None,
        initial: list[_ZooState] | None,
    ) -> tuple[NDArray[Any], list[_ZooState], ZooPass]: ...
    def dynamical_system(
        self, tokens: list[NDArray[Any]], parameters: list[NDArray[Any]], length: int
    ) -> dict[str, Any]: ...
    def weights(
        self, tokens: list[NDArray[Any]], parameters: list[NDArray[Any]], length: int, channel: int
    ) -> _Array: ...
    def stream(self, parameters: list[NDArray[Any]], heads: int, single: bool) -> ZooStream: ...

@final
class ZooPass:
    def backward(
        self, output_slopes: NDArray[Any], state_slopes: list[NDArray[Any]] | None
    ) -> tuple[list[NDArray[Any]], list[NDArray[Any]], list[_ZooState]]: ...

@final
class ZooStream:
    def act(self, what: str, tokens: list[NDArray[Any]]) -> NDArray[Any]: ...
    def extend(self, tokens: list[NDArray[Any]], length: int) -> NDArray[Any]: ...
    @property
    def seen(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    def state(self) -> _ZooState: ...
    def set_state(self, seen: int, numbers: NDArray[Any]) -> None: ...
    def copy(self) -> ZooStream: ...

def zoo_array(what: str, value: ArrayLike) -> NDArray[Any]: ...
def zoo_catalogue() -> list[dict[str, Any]]: ...
def zoo_simulate(
    transition: ArrayLike, input: ArrayLike, readout: ArrayLike, feedthrough: ArrayLike, inputs: ArrayLike
) -> _Array: ...

_Singles = NDArray[np.float32]
# First tokens, share that makes a value light, most light tokens, window.
_AuditFrame = tuple[int, float, int, int]
# Mean tilt, covariance of tilts, median norm of values.
_AuditReaders = tuple[ArrayLike, ArrayLike, float]

@final
class AuditCache:
    def __new__(
        cls, candidate: str, dimension: int, readers: _AuditReaders, *, scale: float | None, frame: _AuditFrame
    ) -> AuditCache: ...
    def absorb(self, key: ArrayLike, value: ArrayLike) -> None: ...
    def read(self, query: ArrayLike) -> _Singles: ...
    @property
    def tokens_seen(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    def copy(self) -> AuditCache: ...

def audit_models() -> list[tuple[str, str, list[tuple[str, str]]]]: ...
def audit_model(
    models: list[str],
    *,
    text: str | None,
    test: str | None,
    lengths: Sequence[int],
    tolerance: float,
    criterion: str,
    candidates: list[str],
    texts: int | None,
    heads_only: bool,
    out: Path,
    seed: int | None,
    told: Callable[[str], object] | None,
    progress: _Report,
) -> dict[str, Any]: ...
def audit_replace(
    queries: ArrayLike,
    keys: ArrayLike,
    values: ArrayLike,
    candidate: str,
    *,
    scale: float | None,
    order: str,
    running: str,
    frame: _AuditFrame,
    readers: _AuditReaders | None,
) -> _Singles: ...
def audit_calibrate(
    queries: ArrayLike, values: ArrayLike, *, scale: float | None
) -> tuple[_Singles, _Singles, float]: ...
def audit_state_tokens(candidate: str, dimension: int, frame: _AuditFrame) -> float: ...
