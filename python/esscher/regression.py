"""In-context linear regression: what gradient training does to one attention layer, at any prompt length.

Risks are halved mean squared errors, R = ½ E (prediction − target)². On Gaussian covariates a prompt enters them
through three functions of the score variance (:func:`response`), so that no prompt is sampled at any length.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from esscher import _native
from esscher._equality import Compared, same
from esscher._native import Block, LinearAttentionTraining, Measure, spiked, toeplitz
from esscher._progress import Progress, ask
from esscher.estimate import Estimate
from esscher.flows import Attention, Flow, Method, Training, title_of
from esscher.results import Results
from esscher.tasks import Predictor, Task, kept, made_again, of_native, recipe

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "BlockGradient", "DrawnCovariates", "HeadGradient", "LinearRegression", "Response", "SpectralGradient",
    "SpectralTask", "TrainingHorizon", "regression", "response", "spiked", "toeplitz",
]  # fmt: skip

_Array = NDArray[np.float64]
_Kind = TypeVar("_Kind", bound=Flow)


@dataclass(frozen=True, eq=False)
class BlockGradient(Compared):
    """A risk with its gradient in A and b."""

    risk: Estimate
    matrix: _Array
    gain: float

    @property
    def norm(self) -> float:
        """The Euclidean norm of the gradient in both parts together."""
        return float(np.hypot(np.linalg.norm(self.matrix), self.gain))


@dataclass(frozen=True, eq=False)
class HeadGradient(Compared):
    """A risk with its gradient in U and v; the last column of that in U is zero, as the query's last entry is."""

    risk: Estimate
    score: _Array
    value: _Array
    gradient_error: float
    """Root of the summed squared errors of all entries of the gradient; 0 where it is exact."""


@dataclass(frozen=True, eq=False)
class SpectralGradient(Compared):
    """A risk with its gradient in the entries of A, one per direction of each group, and in b."""

    risk: Estimate
    entries: _Array
    gain: float


class TrainingHorizon(NamedTuple):
    """How long prompts must be for training to come close to the noise floor."""

    length: int | None
    """The smallest such length; None if 10¹² tokens are not enough."""
    excess_risk: Estimate
    """The risk above the noise floor there (at the longest length if there is none)."""
    excess_before: Estimate | None
    """The same with one token less, above the tolerance; None if one token is enough or none was found."""
    outcome: Literal["found", "beyond"]
    """"beyond" if 10¹² tokens are not enough."""

    @property
    def ending(self) -> str:
        """The outcome, by the name it had before."""
        return self.outcome


class _Trained:
    """Training as in the paper, for tasks that have eigenvalues."""

    @property
    def spectral(self) -> SpectralTask:
        """The task by its eigenvalues; ValueError if Σ and Σ_q do not commute."""
        raise NotImplementedError

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
        task = self.spectral
        return task._found(Training, ask("training", task._train, locals()), attention, prompt_length)

    def horizon(
        self, tolerance: float = 0.1, *, scale: float | None = None, progress: Progress = None
    ) -> TrainingHorizon:
        """The smallest L at which training as in the paper ends within ``tolerance`` of the noise floor.

        >>> import numpy as np
        >>> import esscher as es
        >>> es.regression(np.eye(5), noise=0.1).horizon(0.3, scale=0.6).length
        132
        """
        return TrainingHorizon(**ask("horizon", self.spectral._horizon, locals()))


class LinearRegression(_Trained, Task):
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

    def __init__(
        self,
        covariance: ArrayLike,
        *,
        noise: float = 0.0,
        prior: float = 1.0,
        query_covariance: ArrayLike | None = None,
        query_noise: float | None = None,
    ) -> None:
        self._made_of(_native.GaussianTask, asked=locals())
        self._ridge = self.noise / self.prior
        # Copies: an array that is changed later changes no task.
        self._recipe["covariance"] = self.covariance
        self._recipe["query_covariance"] = None if query_covariance is None else self.query_covariance

    @classmethod
    def isotropic(cls, dimension: int, *, noise: float = 0.0, prior: float = 1.0) -> LinearRegression:
        """Σ = I. For dimensions beyond a few thousand use ``SpectralTask([1.0], [dimension])``."""
        return cls(toeplitz(dimension, 0.0), noise=noise, prior=prior)

    covariance: _Array = of_native("covariance", "Σ.")
    query_covariance: _Array = of_native("query_covariance", "Σ_q.")
    noise: float = of_native("noise", "s², the variance of the label noise in the prompt.")
    query_noise: float = of_native("query_noise", "The variance of the noise on the query's target.")
    prior: float = of_native("prior", "k.")
    noise_floor: float = of_native(
        "noise_floor", "Half the variance of the query's noise: no predictor has a smaller risk, at any prompt length."
    )

    @property
    def spectral(self) -> SpectralTask:
        """The task by its eigenvalues; ValueError if Σ and Σ_q do not commute."""
        task = SpectralTask(self._native.spectral())
        task._made_by = (attrgetter("spectral"), (self,))
        return task

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
        risk: Estimate = self._native.risk(locals(), False)["risk"]
        return risk

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
        found = self._native.risk(locals(), True)
        return BlockGradient(**found) if "matrix" in found else HeadGradient(**found)

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
        if initial is None:
            initial = 0.5 * self.linear_attention().scale_bounds[1]
        start: Any = initial
        if isinstance(initial, float | int):
            start = Block.initial(np.eye(self.dimension), _native.read_real("initial", initial))
        found = ask("flow", self._native.flow, locals(), initial=start)
        return Flow(found, title=title_of(attention, prompt_length, self.dimension), noise_floor=self.noise_floor)

    def linear_attention(self, prompt_length: float | None = None) -> LinearAttentionTraining:
        """Linear attention on prompts of this length, in closed form: Γ, its minimiser, risks, the flow's limit."""
        found: LinearAttentionTraining = self._native.linear_attention(locals())
        return found

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
        found: Block | None = self._native.settle(locals())
        return found

    def bayes_risk(
        self, prompt_length: float, *, prompts: int = 10_000, seed: int = 0, progress: Progress = None
    ) -> Estimate:
        """The risk of the posterior mean of w given L examples: no predictor does better at this length.

        Labels, w and query are averaged in closed form; only XᵀX is drawn, as a Wishart matrix, at any length.

        >>> import esscher as es
        >>> es.regression([[1.0]], noise=0.1).bayes_risk(1e12)
        0.0500000000001 ± 0 (sampled)
        """
        found: Estimate = ask("posterior mean", self._native.bayes_risk, locals())
        return found


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
    return LinearRegression(**locals())


class SpectralTask(_Trained, _native.SpectralTask):
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

    def __init__(self, eigenvalues: ArrayLike | _native.SpectralTask, *more: Any, **named: Any) -> None:
        # The native half has read the arguments: they are kept for pickles.
        of_another = isinstance(eigenvalues, _native.SpectralTask)
        if of_another:
            self._made_by: Any = getattr(eigenvalues, "_made_by", None)
            return
        keywords = {name: kept(value) for name, value in named.items()}
        self._made_by = (partial(SpectralTask, **keywords), tuple(map(kept, (eigenvalues, *more))))

    def __reduce__(self) -> tuple[Any, ...]:
        made_by: tuple[Any, ...] = self._made_by
        return made_by

    @property
    def spectral(self) -> SpectralTask:
        """The task itself."""
        return self

    def risk_and_gradient(
        self,
        entries: ArrayLike,
        gain: float,
        prompt_length: float | None = None,
        *,
        attention: Attention = "softmax",
    ) -> SpectralGradient:
        """The exact risk of A = Σ entryᵢ (projection on group i) and gain b, with its gradient."""
        return SpectralGradient(**self._risk_and_gradient(locals()))

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
        start: Any = initial
        if isinstance(initial, float | int):
            start = self.initial(_native.read_real("initial", initial))
        found = ask("flow", self._flow, locals(), initial=start)
        return self._found(Flow, found, attention, prompt_length)

    def settle(
        self,
        guess: ArrayLike,
        prompt_length: float | None = 1000,
        *,
        attention: Attention = "softmax",
        stationary: float = 1e-9,
    ) -> _Array | None:
        """The stationary point next to a guess, entries and gain in one vector; None if there is no minimum nearby."""
        found: _Array | None = self._settle(locals())
        return found

    def _found(self, kind: type[_Kind], found: dict[str, Any], attention: str, length: float | None) -> _Kind:
        title = title_of(attention, length, self.dimension)
        return kind({**found, "spectral": self}, title=title, noise_floor=self.noise_floor)


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
        asked = locals()
        # What cannot be read is refused by name before it is kept.
        self._native = _native.DrawnCovariates(asked)
        self._recipe = recipe(asked)
        self.noise_floor = 0.5 * _native.read_real("noise", noise)
        """Half the variance of the query's noise."""

    def risk_and_gradient(self, block: Block, prompt_length: float | None = None) -> BlockGradient:
        """The risk of a block and its gradient, averaged over the draws; ``error`` is not known and NaN."""
        return BlockGradient(**self._native.risk_and_gradient(locals()))

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
        found = ask("flow", self._native.flow, locals())
        return Flow(found, title=title_of("drawn covariates, softmax", prompt_length), noise_floor=self.noise_floor)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DrawnCovariates) and same(self._recipe, other._recipe)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        asked = self._recipe
        return f"DrawnCovariates({asked['prompts']} prompts of up to {asked['longest']} tokens, seed={asked['seed']})"

    def __reduce__(self) -> tuple[Any, ...]:
        # The same seed draws the same prompts.
        return (made_again, (DrawnCovariates, self._recipe))


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
    return Response(_native.response(locals()), title=title_of(attention, prompt_length))
