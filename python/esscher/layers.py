"""Gaussian measures through residual attention layers, in discrete steps and as a flow.

A residual layer moves every token by the attention of its own law, dx/dt = T[μ](x). At a Gaussian μ = N(m, S) each of
the four attentions is affine, T[μ](x) = b + Bx, so Gaussians stay Gaussian: dm/dt = b + Bm, dS/dt = BS + SBᵀ.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from esscher import _native
from esscher._arguments import items
from esscher._native import ExactFlow, Gaussian, exact_softmax_flow
from esscher._progress import Progress, ask
from esscher.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Collapse", "ExactFlow", "Layer", "LayerFlow", "LayerStack", "depth", "exact_softmax_flow"]

_Array = NDArray[np.float64]


class Collapse(NamedTuple):
    """A direction that the covariance lost: an eigenvalue fell below the threshold times the largest at the start."""

    time: float
    """When the threshold was passed."""
    rank: int
    """Eigenvalues above the threshold afterwards."""
    eigenvalue_ratio: float
    """The largest collapsed eigenvalue, as a fraction of the largest at the start."""


class _Laws(Results):
    """A Gaussian along the way: how much it spreads, and the law itself."""

    def __init__(self, name: str, along: ArrayLike, found: Mapping[str, Any], title: str, notes: Sequence[str]) -> None:
        self.mean: _Array = found["mean"]
        """The means, an array (rows, d)."""
        self.covariance: _Array = found["covariance"]
        """The covariances, an array (rows, d, d)."""
        self.eigenvalues: _Array = np.linalg.eigvalsh(self.covariance)
        """The eigenvalues of each covariance, increasing, an array (rows, d)."""
        columns = {
            name: along,
            "mean_norm": np.linalg.norm(self.mean, axis=1),
            "trace": np.trace(self.covariance, axis1=1, axis2=2),
            "smallest_eigenvalue": np.maximum(self.eigenvalues[:, 0], 0.0),
            "largest_eigenvalue": self.eigenvalues[:, -1],
        }
        super().__init__(columns, title=title, notes=notes)

    @property
    def laws(self) -> list[Gaussian]:
        """The token law at each row."""
        return [Gaussian(mean, covariance) for mean, covariance in zip(self.mean, self.covariance, strict=True)]

    def _draw(self, ax: Axes, **style: Any) -> None:
        """The eigenvalues of the covariance; those that are zero within rounding are not drawn."""
        along = self[self.names[0]]
        size = self.eigenvalues.shape[1]
        positive = np.where(self.eigenvalues > 0, self.eigenvalues, np.nan)
        shades = _colours(size)
        for index in range(size):
            label = f"eigenvalue {index + 1}" if size <= 6 else None
            ax.plot(along, positive[:, index], **{"color": shades[index], "label": label, **style})
        ax.set_yscale("log")
        ax.set_xlabel(self.names[0])
        ax.set_ylabel("eigenvalues of the covariance")
        if size <= 6:
            ax.legend()


class LayerFlow(_Laws):
    """A Gaussian along the continuous flow, as far as it got: time, size of the mean, and spread.

    ``plot()`` draws the eigenvalues of the covariance over time.
    """

    def __init__(self, found: Mapping[str, Any], title: str) -> None:
        self.stop: str = found["stop"]
        """Why the flow ended, in words."""
        self.finished: bool = found["finished"]
        """Whether the last time was reached."""
        self.blow_up_time: float | None = found["blow_up_time"]
        """When mean or covariance become infinite, if the flow ended there."""
        self.collapses: list[Collapse] = [Collapse(*collapse) for collapse in found["collapses"]]
        """Each loss of a direction that was met."""
        self.steps: int = found["steps"]
        """Steps of the integrator."""
        super().__init__("time", found["time"], found, title, [self.stop])

    def _draw(self, ax: Axes, **style: Any) -> None:
        super()._draw(ax, **style)
        for collapse in self.collapses:
            ax.axvline(collapse.time, color="grey", linestyle=":", linewidth=1)
        if self.blow_up_time is not None:
            ax.axvline(self.blow_up_time, color="firebrick", linestyle="--", linewidth=1, label="blow-up")
            ax.legend()


class LayerStack(_Laws):
    """A Gaussian through discrete residual layers: a row before the first layer and after each of them."""

    def __init__(self, found: Mapping[str, Any], title: str) -> None:
        super().__init__("layer", np.arange(len(found["mean"])), found, title, [])


class Layer(_native.Layer):
    """An attention layer on Rᵈ: how queries score tokens, and the d × d value matrix V.

    With y drawn from the token law μ and U = KᵀQ:

    ========  =============================================  ===============================================
    kind      T[μ](x)                                        at μ = N(m, S)
    ========  =============================================  ===============================================
    softmax   V E[y e^⟨y, Ux⟩] / E e^⟨y, Ux⟩                 V(m + SUx)
    linear    V E[y ⟨y, Ux⟩]                                 V(S + mmᵀ)Ux
    L2        V E[y e^−|Qx−Ky|²] / E e^−|Qx−Ky|²             V(m + G(Qx − Km)), G = SKᵀ(KSKᵀ + I/2)⁻¹
    Sinkhorn  V E[y | x] under the balanced plan             V(m + CᵀS⁻¹(x − m))
    ========  =============================================  ===============================================

    Made by :meth:`softmax`, :meth:`linear`, :meth:`l2` or :meth:`sinkhorn`.

    >>> import esscher as es
    >>> layer = es.Layer.softmax([[0.5]], [[2.0]])
    >>> offset, matrix = layer.affine_form(es.Gaussian([1.0], [[4.0]]))     # b = Vm, B = VSU
    >>> offset, matrix
    (array([2.]), array([[4.]]))
    """

    @classmethod
    def softmax(cls, score: ArrayLike, value: ArrayLike) -> Layer:
        """Softmax attention with score matrix U = KᵀQ and value matrix V, both d × d."""
        return cls("softmax", score, value)

    @classmethod
    def linear(cls, score: ArrayLike, value: ArrayLike) -> Layer:
        """Linear attention with score matrix U = KᵀQ and value matrix V, both d × d."""
        return cls("linear", score, value)

    @classmethod
    def l2(cls, query: ArrayLike, key: ArrayLike, value: ArrayLike) -> Layer:
        """L2 attention with query and key matrices Q, K, both k × d, and value matrix V, d × d."""
        return cls("l2", query, key, value)

    @classmethod
    def sinkhorn(cls, query: ArrayLike, key: ArrayLike, value: ArrayLike) -> Layer:
        """Sinkhorn attention with query and key matrices Q, K, both k × d, and value matrix V, d × d."""
        return cls("sinkhorn", query, key, value)

    def flow(
        self,
        start: Gaussian,
        times: ArrayLike = 1.0,
        *,
        relative_tolerance: float = 1e-10,
        absolute_tolerance: float = 1e-13,
        collapse_threshold: float = 1e-6,
        at_collapse: Literal["stop", "continue"] = "stop",
        max_steps: int = 100_000,
        progress: Progress = None,
    ) -> LayerFlow:
        """The flow dx/dt = T[μ_t](x), x ~ μ_t, from a Gaussian: dm/dt = b + Bm, dS/dt = BS + SBᵀ.

        ``times`` are increasing times at which to keep the law, or one number: the end of 101 evenly spaced times.
        ``collapse_threshold`` is the fraction of the largest eigenvalue at the start below which an eigenvalue has
        collapsed, and ``at_collapse`` what to do then. A blow-up or a collapse is a result, not an error: see
        ``stop``, ``blow_up_time`` and ``collapses``.

        >>> import esscher as es
        >>> flow = es.Layer.softmax([[-1.0]], [[1.0]]).flow(es.Gaussian.standard(1), [0.0, 2.0])
        >>> flow["trace"].round(9)                                   # S(t)⁻¹ = 1 + 2t
        array([1. , 0.2])
        >>> round(es.Layer.softmax([[0.5]], [[1.0]]).flow(es.Gaussian.standard(1), 2.0).blow_up_time, 9)
        1.0
        """
        asked = {**locals(), "times": _evenly(times) if np.ndim(times) == 0 else times}
        return LayerFlow(ask("flow", self._flow, asked), title=f"{self.kind} attention, d = {self.dimension}")


def depth(start: Gaussian, layers: Iterable[Layer], step_size: float = 1.0) -> LayerStack:
    """A Gaussian through a stack of residual layers: layer k maps x to x + h T_k[μ_k](x), h the step size.

    The same layer repeated with a small step size is Euler's method for :meth:`Layer.flow`.

    >>> import esscher as es
    >>> stack = es.depth(es.Gaussian.standard(1), [es.Layer.softmax([[-1.0]], [[1.0]])] * 1000, step_size=0.002)
    >>> round(float(stack["trace"][-1]), 3)                          # near S(2) = 1/5
    0.2
    """
    stack: list[Layer] = []
    for layer in items("layers", layers, "Layer objects"):
        if not isinstance(layer, Layer):
            raise TypeError(f"layers: expected Layer objects, found an object of type {type(layer).__name__}")
        stack.append(layer)
    return LayerStack(_native.depth(start, stack, step_size), title=f"{len(stack)} residual layers")


def _evenly(end_time: Any) -> _Array:
    """Evenly spaced times up to the end; one that is not a positive number is left for the native module to refuse."""
    if isinstance(end_time, bool | np.bool_):
        raise TypeError("times: expected numbers, found an object of type bool")
    end = _native.read_real("times", end_time)
    return np.linspace(0.0, end, 101) if 0 < end < np.inf else np.array([end])


def _colours(count: int) -> list[Any]:
    """Shades from the smallest eigenvalue to the largest."""
    import matplotlib as mpl

    shades = mpl.colormaps["viridis"]
    return [shades(index / max(count - 1, 1) * 0.85) for index in range(count)]
