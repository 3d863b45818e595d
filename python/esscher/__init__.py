"""A laboratory for softmax attention seen as an operator on measures.

Attention is the mean of an exponentially tilted token law, T[μ](z) = V ∇Λ_μ(Uz). A prompt of L tokens is an empirical
measure, an infinite prompt is a distribution, and for Gaussian tokens the infinite prompt *is* linear attention.

>>> import esscher as es
>>> tokens = es.Gaussian([0, 1], [[1, 0.3], [0.3, 0.5]])
>>> head = es.SoftmaxAttention(score=[[1, 0], [0, 1]], value=[[1, -1]])
>>> head(tokens, [0.5, -0.2])                   # infinite prompt: V(m + GUz)
array([-0.61])
>>> head(tokens.sample(1000), [0.5, -0.2]).shape   # finite prompt: an (L, d) array
(1,)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from esscher import recording as recording
from esscher._native import *
from esscher._native import VERSION
from esscher.authors import *
from esscher.estimate import *
from esscher.flows import *
from esscher.horizons import *
from esscher.layers import *
from esscher.prompts import *
from esscher.questions import *
from esscher.rates import *
from esscher.regression import *
from esscher.results import *
from esscher.runs import *
from esscher.scales import *
from esscher.studies import *
from esscher.tasks import *
from esscher.weights import *

if TYPE_CHECKING:
    from esscher import audit as audit
    from esscher import zoo as zoo

__version__ = VERSION


def __getattr__(name: str) -> Any:
    """Modules that are imported when they are first asked for, since a small build may not have them."""
    if name in ("audit", "zoo"):
        return importlib.import_module(f"esscher.{name}")
    raise AttributeError(f"module 'esscher' has no attribute {name!r}")


# Everything above that is ours: each module says what it offers.
_offered = [name for name, thing in globals().items() if getattr(thing, "__module__", "").startswith("esscher")]
__all__ = ["audit", "recording", "zoo", *(name for name in _offered if not name.startswith("_"))]
