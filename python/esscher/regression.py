"""In-context linear regression: what gradient training does to one attention layer, at any prompt length.

Risks are halved mean squared errors, R = ½ E (prediction − target)². On Gaussian covariates a prompt enters them
through three functions of the score variance (:func:`response`), so that no prompt is sampled at any length.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from esscher import _native
from esscher._native import (
    Block,
    HighDimensional,
    LinearAttentionTraining,
    Measure,
    RegressionHead,
    RegressionLayer,
)
from esscher._progress import Progress, shown
from esscher.estimate import Estimate
from esscher.flows import Attention, Flow, Method, Training, length_words, wishes
from esscher.results import Results
from esscher.tasks import Predictor, Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "Block",
    "BlockGradient",
    "DrawnCovariates",
    "HeadGradient",
    "HighDimensional",
    "LinearAttentionTraining",
    "LinearRegression",
    "RegressionHead",
    "RegressionLayer",
    "Response",
    "SpectralGradient",
    "SpectralTask",
    "TrainingHorizon",
    "regression",
    "response",
    "spiked",
    "toeplitz",
]

_Array = NDArray[np.float64]

_EXACT = 1e-9  # the relative error of the tables of a response


@dataclass(frozen=True)
class BlockGradient:
    """A risk with its gradient in A and b."""

    risk: Estimate
    matrix: _Array
    gain: float

    @property
    def norm(self) -> float:
        """The Euclidean norm of the gradient in both parts together."""
        return float(np.hypot(np.linalg.norm(self.matrix), self.gain))


@dataclass(frozen=True)
class HeadGradient:
    """A risk with its gradient in U and v; the last column of that in U is zero, as the query's last entry is."""

    risk: Estimate
    score: _Array
    value: _Array
    gradient_error: float
    """Root of the summed squared errors of all entries of the gradient; 0 where it is exact."""


@dataclass(frozen=True)
class SpectralGradient:
    """A risk with its gradient in the entries of A, one per direction of each group, and in b."""

    risk: Estimate
    entries: _Array
    gain: float


class TrainingHorizon(NamedTuple):
    """How long prompts must be for training to come close to the noise floor."""

    length: int | None
    """The smallest such length; None if 10¹² tokens are not enough."""
    excess_risk: float
    """The risk above the noise floor there (at the longest length if there is none)."""
    excess_before: float | None
    """The same with one token less, above the tolerance; None if one token is enough or none was found."""
    ending: str
    """How the search ended, in words."""


class LinearRegression(Task):
    """Linear regression with Gaussian covariates, the task of the theory.

    w ~ N(0, kI), x ~ N(0, Σ), y = ⟨w, x⟩ + noise of variance s²; query x_q ~ N(0, Σ_q) with target ⟨w, x_q⟩ + noise.
    ``covariance`` is Σ, ``noise`` is s², ``prior`` is k; queries are like the covariates unless ``query_covariance`` or
    ``query_noise`` say otherwise.

    >>> import numpy as np
    >>> import esscher as es
    >>> task = es.LinearRegression(es.toeplitz(3, 0.5), noise=0.1)
    >>> task.noise_floor
    0.05
    >>> block = es.Block(0.5 * np.eye(3), 1.5)
    >>> task.risk(block)                                                          # the infinite prompt
    0.3546875 ± 4e-10 (exact)
    >>> bool(task.risk(block, 1000) > task.risk(block, 1e12) > 0.354687)
    True
    """

    _native: _native.GaussianTask

    def __init__(
        self,
        covariance: ArrayLike,
        *,
        noise: float = 0.0,
        prior: float = 1.0,
        query_covariance: ArrayLike | None = None,
        query_noise: float | None = None,
    ) -> None:
        self._native = _native.GaussianTask(covariance, noise, prior, query_covariance, query_noise)
        self._ridge = noise / prior
        query = None if query_covariance is None else self._native.query_covariance
        keywords = {"noise": noise, "prior": prior, "query_covariance": query, "query_noise": query_noise}
        self._recipe = ((self._native.covariance,), keywords)

    @classmethod
    def isotropic(cls, dimension: int, *, noise: float = 0.0, prior: float = 1.0) -> LinearRegression:
        """Σ = I. For dimensions beyond a few thousand use ``SpectralTask([1.0], [dimension])``."""
        return cls(toeplitz(dimension, 0.0), noise=noise, prior=prior)

    @property
    def covariance(self) -> _Array:
        """Σ."""
        return self._native.covariance

    @property
    def query_covariance(self) -> _Array:
        """Σ_q."""
        return self._native.query_covariance

    @property
    def noise(self) -> float:
        """s², the variance of the label noise in the prompt."""
        return self._native.noise

    @property
    def query_noise(self) -> float:
        """The variance of the noise on the query's target."""
        return self._native.query_noise

    @property
    def prior(self) -> float:
        """k."""
        return self._native.prior

    @property
    def noise_floor(self) -> float:
        """Half the variance of the query's noise: no predictor has a smaller risk, at any prompt length."""
        return self._native.noise_floor

    @property
    def spectral(self) -> SpectralTask:
        """The task by its eigenvalues; ValueError if Σ and Σ_q do not commute."""
        return SpectralTask._of(self._native.spectral())

    def risk(
        self,
        predictor: Predictor,
        prompt_length: float | None = None,
        *,
        attention: Attention | None = None,
        points: int = 2048,
        randomisations: int = 8,
        seed: int = 0,
    ) -> Estimate:
        """½ E (prediction − target)² of a block, a head or a layer of one head; no prompt is sampled.

        ``prompt_length`` goes from 1 to 10¹²; None or infinity is the infinite prompt. ``attention`` is "softmax",
        "linear" or "opposite-heads"; a layer has its own. Blocks are exact; full heads of softmax attention at finite
        length are exact in the tokens and averaged over (w, x_q) by ``points`` in ``randomisations`` (and ``seed``).

        >>> import esscher as es
        >>> task = es.regression([[1.0]])
        >>> task.risk(es.Block([[2.0]], 1.0), 1, attention="linear")              # ½ E(2x² − 1)²⟨w, x_q⟩²
        4.5 ± 5e-09 (exact)
        """
        wanted = {"points": points, "randomisations": randomisations, "seed": seed}
        return _estimate(self._native.risk(predictor, prompt_length, attention, False, wanted))

    def risk_and_gradient(
        self,
        predictor: Predictor,
        prompt_length: float | None = None,
        *,
        attention: Attention | None = None,
        points: int = 2048,
        randomisations: int = 8,
        seed: int = 0,
    ) -> BlockGradient | HeadGradient:
        """The risk with its gradient: in A and b for a block, in U and v for a head or a layer of one head.

        The arguments are those of :meth:`risk`.

        >>> import esscher as es
        >>> found = es.regression([[1.0]]).risk_and_gradient(es.Block([[0.5]], 2.0))     # on the valley bΣA = I
        >>> found.matrix, found.gain
        (array([[0.]]), 0.0)
        """
        wanted = {"points": points, "randomisations": randomisations, "seed": seed}
        found = self._native.risk(predictor, prompt_length, attention, True, wanted)
        if "matrix" in found:
            return BlockGradient(_estimate(found), found["matrix"], found["gain"])
        return HeadGradient(_estimate(found), found["score"], found["value"], found["gradient_error"])

    def flow(
        self,
        prompt_length: float | None = 1000,
        *,
        attention: Attention = "softmax",
        initial: Predictor | float | None = None,
        end_time: float = 1e9,
        rows: int = 100,
        tolerance: float | None = None,
        stationary: float | None = None,
        largest: float = 1e6,
        method: Method | None = None,
        points: int = 2048,
        randomisations: int = 8,
        seed: int = 0,
        progress: Progress = None,
    ) -> Flow:
        """Gradient flow θ′ = −∇R at a prompt length, without sampling prompts.

        ``initial`` is a block, a head, a layer, or a number α for the paper's initialisation A = αI/√d, b = α; half of
        the proved bound on α unless told. A block that commutes with the covariances has one parameter per distinct
        eigenvalue. The flow ends at ``end_time``, where the gradient's norm falls to ``stationary``, or where the
        parameters' norm exceeds ``largest``. ``tolerance`` is the error of a step, and ``method`` is "stiff" for finite
        prompts and "explicit" for infinite ones and for linear attention unless told. ``points``, ``randomisations``
        and ``seed`` are for heads and layers, as in :meth:`risk`.

        >>> import numpy as np
        >>> import esscher as es
        >>> task = es.regression(np.diag([1.0, 2.0]), noise=0.1)
        >>> flow = task.flow(None)                                               # the infinite prompt
        >>> (flow.gain[-1] * flow.matrix[-1]).round(6)                           # bA = Σ⁻¹
        array([[1. , 0. ],
               [0. , 0.5]])
        >>> task.flow(prompt_length=1000, end_time=1.0, rows=2)["risk"].round(4)
        array([1.2558, 0.3669, 0.1663])
        """
        options = wishes(end_time, rows, tolerance, stationary, largest, method)
        wanted = {"points": points, "randomisations": randomisations, "seed": seed}
        with shown("flow", progress) as report:
            found = self._native.flow(initial, prompt_length, attention, options, wanted, report)
        return Flow(found, title=self._title(attention, prompt_length), noise_floor=self.noise_floor)

    def train(
        self,
        prompt_length: float | None = 1000,
        *,
        attention: Attention = "softmax",
        scale: float | None = None,
        end_time: float = 1e9,
        rows: int = 100,
        tolerance: float | None = None,
        stationary: float | None = None,
        largest: float = 1e6,
        method: Method | None = None,
        progress: Progress = None,
    ) -> Training:
        """The flow from the paper's initialisation, with its distances from the infinite prompt's flow and its limit.

        ``scale`` is α, half of the proved bound unless told; Σ and Σ_q must commute. The other arguments are those of
        :meth:`flow`.

        >>> import numpy as np
        >>> import esscher as es
        >>> training = es.regression(np.eye(6), noise=0.1).train(1e6, end_time=20, rows=10)
        >>> training.within_theorem, bool(training["distance_to_infinite"].max() < 0.1)
        (True, True)
        """
        return self.spectral.train(
            prompt_length,
            attention=attention,
            scale=scale,
            end_time=end_time,
            rows=rows,
            tolerance=tolerance,
            stationary=stationary,
            largest=largest,
            method=method,
            progress=progress,
        )

    def horizon(
        self, tolerance: float = 0.1, *, scale: float | None = None, progress: Progress = None
    ) -> TrainingHorizon:
        """The smallest L at which training as in the paper ends within ``tolerance`` of the noise floor.

        >>> import numpy as np
        >>> import esscher as es
        >>> es.regression(np.eye(5), noise=0.1).horizon(0.3, scale=0.6).length
        132
        """
        return self.spectral.horizon(tolerance, scale=scale, progress=progress)

    def linear_attention(self, prompt_length: float | None = None) -> LinearAttentionTraining:
        """Linear attention on prompts of this length, in closed form: Γ, its minimiser, risks, the flow's limit."""
        return self._native.linear_attention(prompt_length)

    def infinite_limit(self, conserved: float = 0.0) -> Block:
        """The block with bΣA = I, b > 0 and ‖A‖²_F − b² = ``conserved``: where the infinite prompt's flow ends.

        >>> import esscher as es
        >>> es.regression([[4.0]]).infinite_limit().gain                         # b⁴ = tr Σ⁻²
        0.5
        """
        return self.linear_attention().flow_limit(conserved)

    def settle(
        self,
        guess: Block,
        prompt_length: float | None = 1000,
        *,
        attention: Attention = "softmax",
        stationary: float = 1e-9,
    ) -> Block | None:
        """The stationary block next to a guess, by Newton's method; None if there is no minimum nearby.

        For following a limit through neighbouring lengths: a flow decides which valley, this only where its floor is.
        """
        return self._native.settle(guess, prompt_length, attention, stationary)

    def bayes_risk(
        self, prompt_length: float, *, prompts: int = 10_000, seed: int = 0, progress: Progress = None
    ) -> Estimate:
        """The risk of the posterior mean of w given L examples: no predictor does better at this length.

        Labels, w and query are averaged in closed form; only XᵀX is drawn, as a Wishart matrix, at any length.

        >>> import esscher as es
        >>> es.regression([[1.0]], noise=0.1).bayes_risk(1e12)
        0.0500000000001 ± 0 (sampled)
        """
        with shown("posterior mean", progress) as report:
            mean, error, _ = self._native.bayes_risk(prompt_length, prompts, seed, report)
        return Estimate(mean, "sampled", float("nan") if error is None else error)

    def _title(self, attention: str, prompt_length: float | None) -> str:
        return f"{attention.replace('-', ' ')} attention, d = {self.dimension}, {length_words(prompt_length)}"


def regression(
    covariance: ArrayLike,
    *,
    noise: float = 0.0,
    prior: float = 1.0,
    query_covariance: ArrayLike | None = None,
    query_noise: float | None = None,
) -> LinearRegression:
    """In-context linear regression with Gaussian covariates: see :class:`LinearRegression`.

    >>> import numpy as np
    >>> import esscher as es
    >>> es.regression(np.eye(2), noise=0.1).flow(prompt_length=1000).stationary
    True
    """
    return LinearRegression(
        covariance, noise=noise, prior=prior, query_covariance=query_covariance, query_noise=query_noise
    )


class SpectralTask:
    """Linear regression whose Σ and Σ_q commute, by groups of equal eigenvalues: any dimension.

    Blocks are given by their entries, one per group, and the gain b. ``multiplicities`` are the numbers of directions,
    one unless told; the query's noise is that of the labels.

    >>> import esscher as es
    >>> task = es.SpectralTask([1.0, 0.1], [10, 1_000_000], noise=0.1)
    >>> task.dimension
    1000010
    >>> task.risk_and_gradient([0.1, 0.1], 1.0, 1e12).entries.shape
    (2,)
    """

    def __init__(
        self,
        eigenvalues: ArrayLike,
        multiplicities: ArrayLike | None = None,
        *,
        query_eigenvalues: ArrayLike | None = None,
        noise: float = 0.0,
        prior: float = 1.0,
    ) -> None:
        counts = np.ones(np.shape(eigenvalues)) if multiplicities is None else multiplicities
        self._native = _native.SpectralTask(eigenvalues, counts, query_eigenvalues, noise, prior)

    @classmethod
    def _of(cls, native: _native.SpectralTask) -> SpectralTask:
        task = cls.__new__(cls)
        task._native = native
        return task

    @property
    def dimension(self) -> int:
        """The dimension d, the sum of the multiplicities."""
        return self._native.dimension

    @property
    def eigenvalues(self) -> _Array:
        """The eigenvalue of Σ in each group."""
        return self._native.eigenvalues

    @property
    def query_eigenvalues(self) -> _Array:
        """The eigenvalue of Σ_q in each group."""
        return self._native.query_eigenvalues

    @property
    def multiplicities(self) -> NDArray[np.int64]:
        """The number of directions of each group."""
        return self._native.multiplicities.astype(np.int64)

    @property
    def eigenvectors(self) -> _Array | None:
        """The eigenvectors, columns in the order of the groups; None for a task given by eigenvalues."""
        return self._native.eigenvectors

    @property
    def noise_floor(self) -> float:
        """Half the variance of the query's noise."""
        return self._native.noise_floor

    @property
    def proved_scale(self) -> float:
        """√2/(d^¼‖Σ‖): the paper's theorem is proved for initial scales α below this."""
        return self._native.proved_scale

    def initial(self, scale: float) -> _Array:
        """The paper's initialisation, one vector: every entry α/√d, then the gain b = α."""
        return self._native.initial(scale)

    def valley(self, gain: float) -> _Array:
        """The floor of the infinite prompt's valley bΣA = I at gain b: the entries 1/(b sᵢ)."""
        return self._native.valley(gain)

    def infinite_limit(self, conserved: float = 0.0) -> tuple[_Array, float]:
        """The point of the valley with ‖A‖²_F − b² = ``conserved`` and b > 0, where the infinite prompt's flow ends."""
        return self._native.infinite_limit(conserved)

    def block(self, entries: ArrayLike, gain: float) -> Block:
        """The block with these entries in the eigenvectors, for tasks that have them."""
        return self._native.block(entries, gain)

    def entries_of(self, block: Block) -> _Array | None:
        """The entries of a block in the eigenvectors; None if it is not of that form."""
        return self._native.entries_of(block)

    def first_order(self, entries: ArrayLike, gain: float) -> float | None:
        """The coefficient of 1/L in the risk of softmax at long prompts; None where it is infinite.

        >>> import esscher as es
        >>> task = es.SpectralTask([1.0], [6], noise=0.5)
        >>> coefficient = task.first_order([0.25], 4.0)
        >>> gap = task.risk_and_gradient([0.25], 4.0, 1e9).risk - task.risk_and_gradient([0.25], 4.0).risk
        >>> bool(abs(gap * 1e9 / coefficient - 1) < 1e-3)
        True
        """
        return self._native.first_order(entries, gain)

    def risk_and_gradient(
        self,
        entries: ArrayLike,
        gain: float,
        prompt_length: float | None = None,
        *,
        attention: Attention = "softmax",
    ) -> SpectralGradient:
        """The exact risk of A = Σ entryᵢ (projection on group i) and gain b, with its gradient."""
        risk, slopes, slope = self._native.risk_and_gradient(entries, gain, prompt_length, attention)
        return SpectralGradient(Estimate(risk, "exact", _EXACT * abs(risk)), slopes, slope)

    def flow(
        self,
        prompt_length: float | None = 1000,
        *,
        attention: Attention = "softmax",
        initial: ArrayLike | None = None,
        end_time: float = 1e9,
        rows: int = 100,
        tolerance: float | None = None,
        stationary: float | None = None,
        largest: float = 1e6,
        method: Method | None = None,
        progress: Progress = None,
    ) -> Flow:
        """Gradient flow in the entries and the gain: see :meth:`LinearRegression.flow`.

        ``initial`` is the scale α of the paper's initialisation, or the entries and the gain in one vector.
        """
        if initial is None:
            initial = 0.5 * self.proved_scale
        start = self.initial(initial) if isinstance(initial, float | int) else initial
        options = wishes(end_time, rows, tolerance, stationary, largest, method)
        with shown("flow", progress) as report:
            found = self._native.flow(start, prompt_length, attention, options, report)
        return Flow(self._completed(found), title=self._title(attention, prompt_length), noise_floor=self.noise_floor)

    def train(
        self,
        prompt_length: float | None = 1000,
        *,
        attention: Attention = "softmax",
        scale: float | None = None,
        end_time: float = 1e9,
        rows: int = 100,
        tolerance: float | None = None,
        stationary: float | None = None,
        largest: float = 1e6,
        method: Method | None = None,
        progress: Progress = None,
    ) -> Training:
        """The flow from the paper's initialisation, with its distances: see :meth:`LinearRegression.train`."""
        options = wishes(end_time, rows, tolerance, stationary, largest, method)
        with shown("training", progress) as report:
            found = self._native.train(scale, prompt_length, attention, options, report)
        title = self._title(attention, prompt_length)
        return Training(self._completed(found), title=title, noise_floor=self.noise_floor)

    def settle(
        self,
        guess: ArrayLike,
        prompt_length: float | None = 1000,
        *,
        attention: Attention = "softmax",
        stationary: float = 1e-9,
    ) -> _Array | None:
        """The stationary point next to a guess, entries and gain in one vector; None if there is no minimum nearby."""
        return self._native.settle(guess, prompt_length, attention, stationary)

    def horizon(
        self, tolerance: float = 0.1, *, scale: float | None = None, progress: Progress = None
    ) -> TrainingHorizon:
        """How long prompts must be for training: see :meth:`LinearRegression.horizon`."""
        with shown("horizon", progress) as report:
            length, excess, before, ending = self._native.horizon(scale, tolerance, report)
        return TrainingHorizon(length, float("nan") if excess is None else excess, before, ending)

    def _completed(self, found: dict[str, Any]) -> dict[str, Any]:
        return {**found, "form": "spectral", "spectral": self._native}

    def _title(self, attention: str, prompt_length: float | None) -> str:
        return f"{attention.replace('-', ' ')} attention, d = {self.dimension:,}, {length_words(prompt_length)}"

    def __repr__(self) -> str:
        return f"SpectralTask(dimension={self.dimension}, groups={len(self.eigenvalues)})"


class DrawnCovariates:
    """Linear regression with covariates of any law, on prompts that are drawn once: risks and flows are smooth.

    w ~ N(0, kI) and labels are averaged in closed form; all lengths up to ``longest`` share queries and prefixes, so
    that differences between lengths are far more accurate than each alone. Softmax attention.

    >>> import numpy as np
    >>> import esscher as es
    >>> drawn = es.DrawnCovariates(es.Rademacher(2), noise=0.1, prompts=200, longest=50)
    >>> flow = drawn.flow(50, initial=es.Block(0.3 * np.eye(2), 0.5), end_time=10, rows=4)
    >>> bool(flow["risk"][-1] < flow["risk"][0])
    True
    """

    def __init__(
        self,
        covariates: Measure | ArrayLike,
        *,
        noise: float = 0.0,
        prior: float = 1.0,
        prompts: int = 1000,
        longest: int = 100,
        seed: int = 0,
    ) -> None:
        self._native = _native.DrawnCovariates(covariates, noise, prior, prompts, longest, seed)
        self.noise_floor = 0.5 * noise
        """Half the variance of the query's noise."""

    def risk_and_gradient(self, block: Block, prompt_length: float | None = None) -> BlockGradient:
        """The risk of a block and its gradient, averaged over the draws; ``error`` is not known and NaN."""
        risk, matrix, gain = self._native.risk_and_gradient(block, prompt_length)
        return BlockGradient(Estimate(risk, "sampled", float("nan")), matrix, gain)

    def flow(
        self,
        prompt_length: float | None,
        *,
        initial: Block,
        end_time: float = 1e9,
        rows: int = 100,
        tolerance: float | None = None,
        stationary: float | None = None,
        largest: float = 1e6,
        method: Method | None = None,
        progress: Progress = None,
    ) -> Flow:
        """Gradient flow of a block on the draws, at a length up to the longest, or at the infinite prompt (None)."""
        options = wishes(end_time, rows, tolerance, stationary, largest, method)
        with shown("flow", progress) as report:
            found = self._native.flow(initial, prompt_length, options, report)
        title = f"drawn covariates, {length_words(prompt_length)}"
        return Flow({**found, "form": "block"}, title=title, noise_floor=self.noise_floor)


def toeplitz(dimension: int, correlation: float) -> _Array:
    """The Toeplitz covariance ρ^|i − j|.

    >>> import esscher as es
    >>> es.toeplitz(3, 0.5)
    array([[1.  , 0.5 , 0.25],
           [0.5 , 1.  , 0.5 ],
           [0.25, 0.5 , 1.  ]])
    """
    return _native.toeplitz(dimension, correlation)


def spiked(dimension: int, strength: float) -> _Array:
    """The spiked covariance I + strength · e eᵀ, e = (1, …, 1)/√d.

    >>> import esscher as es
    >>> es.spiked(2, 1.0)
    array([[1.5, 0.5],
           [0.5, 1.5]])
    """
    return _native.spiked(dimension, strength)


class Response(Results):
    """How attention answers Gaussian tokens, by score variance; ``plot()`` draws C₁, C₂ and D."""

    def _draw(self, ax: Axes, **style: Any) -> None:
        for name, symbol in (("first", "C₁"), ("second", "C₂"), ("spread", "D")):
            ax.plot(self["score_variance"], self[name], **{"label": f"{symbol} ({name})", **style})
        ax.set_xlabel("score variance σ")
        ax.set_ylabel("response")
        ax.legend()


def response(
    score_variance: ArrayLike, prompt_length: float | None = None, *, attention: Attention = "softmax"
) -> Response:
    """How attention answers centred Gaussian tokens: the functions of σ through which every risk knows the layer.

    For σ = ⟨θ, Gθ⟩, a = ⟨v, Gθ⟩ and q = ⟨v, Gv⟩ the prediction has mean C₁a and second moment C₂a² + Dq. Columns are
    C₁, C₂ and D (``first``, ``second``, ``spread``), 1 − C₁ and 1 − C₂ without cancellation (``..._deficit``), and
    derivatives in σ (``..._slope``).

    >>> import esscher as es
    >>> es.response([0.5, 2.0], 10, attention="linear")["spread"]                # σ/L
    array([0.05, 0.2 ])
    """
    columns = _native.response(np.atleast_1d(np.asarray(score_variance)), prompt_length, attention)
    title = f"{attention.replace('-', ' ')} attention, {length_words(prompt_length)}"
    return Response(columns, title=title)


def _estimate(found: dict[str, Any]) -> Estimate:
    return Estimate(found["risk"], found["accuracy"], found["error"])
