"""Hyperparameters of models that are sparse by default: which may be given, how they are filled.

A user gives a number of visible weights (`active_features`, `active_samples`), or "all" for the
dense prior, or the shape and rate of the Gamma hyperprior. A slab may be given too. From these,
`filled` computes shape, rate and slab of each group of weights (`parts/sparsity.py`).
"""

import dataclasses
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ardvark.common.declared import hyper
from ardvark.common.validate import InputError

from .parts.ard import WeightPrior
from .parts.effects import VISIBLE
from .parts.sparsity import (
    Sizes,
    kernel_factors,
    sparse_features,
    sparse_samples,
)
from .spec import BaseHypers

BIAS_SD = "prior standard deviation of the bias"

DEFAULT_SLAB = 1.0
"""In logits. Between 1/4 and 2, the held-out score on planted effects of 1.5 logits hardly changes
(0.646 to 0.634 nats). Chains mix better with a smaller slab: with 2, one feature takes all of an
effect that correlated features share."""

LEAST_SLAB, LARGEST_SLAB = 0.01, 1000.0
"""Range of the slab of a sparse prior. Below it, no weight is visible (`VISIBLE` is 0.1). Above it,
one visible weight makes a label certain, and the search for the scale overflows."""


# --- what every model with a sparse prior declares in the same way --------------------------------


def active(kind: str) -> Any:
    """Declare the expected number of visible weights of a kind, "sample" or "feature"."""
    whose = "features" if kind == "feature" else "sample weights"
    return hyper(
        None,
        f"prior expected number of {whose} with a visible effect on eta",
        above=0.0,
        paper="none",
        why=f'expected number of visible {whose}; "all": the dense prior',
        outside='It is an expected number; "all" asks for the dense prior.',
    )


def shape(kind: str, *, paper: str, why: str, outside: str) -> Any:
    """Declare the shape of the Gamma prior of the precisions of a kind of weights."""
    meaning = f"shape of the Gamma prior of the precision of a {kind} weight"
    return hyper(None, meaning, above=0.0, paper=paper, why=why, outside=outside)


def rate(kind: str, *, paper: str, why: str, outside: str) -> Any:
    """Declare the rate of that Gamma prior."""
    meaning = f"rate of the Gamma prior of the precision of a {kind} weight"
    return hyper(None, meaning, above=0.0, paper=paper, why=why, outside=outside)


def slab(meaning: str, *, why: str) -> Any:
    """Declare the standard deviation of a slab; infinity means no slab."""
    return hyper(
        None,
        f"{meaning}; inf: no slab",
        above=0.0,
        at_most=np.inf,
        paper="none",
        why=why,
        outside="It is a standard deviation.",
    )


def logit_slab() -> Any:
    """Declare the slab from which those of both kinds of weights are filled, in logits.

    A slab ends the tail of one weight (`parts/slab.py`). An effect is made of weights of both
    kinds, theta_k (Z'a)_k under the linear kernel, so two slabs meet in it: the slab is not the
    standard deviation of an effect.
    """
    meaning = "standard deviation, in logits, of the normal factor that ends a weight's tail"
    return slab(meaning, why="of a sample weight with a unit kernel; filled: 1 where sparse")


def own_slab(kind: str, *, why: str) -> Any:
    """Declare the slab of a kind of weights, on their own scale."""
    return slab(f"standard deviation of the slab of a {kind} weight", why=why)


@dataclass(frozen=True, kw_only=True)
class SparseHypers(BaseHypers):
    """Hyperparameters with a sparse prior for the weights of each of `KINDS`.

    For each kind a model declares `active_{kind}s`, `{kind}_shape`, `{kind}_rate` and
    `{kind}_slab`, and one `slab`. A number of active weights replaces shape and rate.
    """

    KINDS: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def conflicts(cls) -> list[tuple[str, str]]:
        """Return the pairs of hyperparameters of which only one may be given."""
        return [(f"active_{k}s", f"{k}_{what}") for k in cls.KINDS for what in ("shape", "rate")]

    def posterior_fields(self) -> dict[str, Any]:
        """Return the shapes, rates and slabs, which define the posterior, not their sources."""
        fields = super().posterior_fields()
        for name in ("slab", *(f"active_{kind}s" for kind in self.KINDS)):
            del fields[name]
        return {k: v for k, v in fields.items() if not (k.endswith("_slab") and v == np.inf)}

    def weight_priors(self) -> dict[str, WeightPrior]:
        """Return the priors of the shared weights, filled."""
        return {f"{kind}_weight": getattr(self, f"{kind}_prior") for kind in self.KINDS}

    def numbers(self) -> dict[str, float]:
        """Return the expected numbers of visible weights and the slab, where they are numbers."""
        fields = dataclasses.asdict(self)
        names = (*(f"active_{kind}s" for kind in reversed(self.KINDS)), "slab")
        return {name: float(fields[name]) for name in names if isinstance(fields[name], Real)}

    def heavy_tails(self) -> dict[str, float]:
        """Return the shapes at or below 1 of weights without a slab."""
        fields = dataclasses.asdict(self)
        slabs = {f"{k}_shape": fields[f"{k}_slab"] or fields["slab"] or np.inf for k in self.KINDS}
        ended = [name for name, slab in slabs.items() if slab < np.inf]
        return {k: v for k, v in super().heavy_tails().items() if k not in ended}


class Group(NamedTuple):
    """The hyperparameters given for one kind of weights, and the values of the dense prior."""

    shape: float | None
    rate: float | None
    slab: float | None
    active: float | str | None
    dense_shape: float
    dense_scale: float

    @property
    def sparse(self) -> bool:
        """Whether the rate is computed from a number of active weights."""
        given = self.shape is not None or self.rate is not None
        return self.active != "all" and not (self.active is None and given) and self.rate is None

    @classmethod
    def of(cls, hypers: object, kind: str, dense_shape: float, dense_scale: float) -> "Group":
        """Return the group made from the fields `{kind}_shape`, `{kind}_rate`, ... ."""
        shape, rate, slab = (
            getattr(hypers, f"{kind}_{what}") for what in ("shape", "rate", "slab")
        )
        return cls(shape, rate, slab, getattr(hypers, f"active_{kind}s"), dense_shape, dense_scale)

    def dense(self, slab: float | None) -> WeightPrior:
        """Return the prior with the given or dense shape and rate; a slab only if given."""
        shape = self.dense_shape if self.shape is None else self.shape
        rate = shape * self.dense_scale**2 if self.rate is None else self.rate
        given = self.slab if self.slab is not None else slab
        return WeightPrior(shape, rate, np.inf if given is None else given)


def filled(
    sizes: Sizes,
    slab: float | None,
    sample: Group,
    feature: Group | None,
    theta: np.ndarray | None = None,
) -> dict[str, Any]:
    """Return the filled fields of both groups, by name.

    A group is sparse unless its shape or rate is given, or `active` is "all": then it is dense,
    with no slab unless one is given.

    Parameters
    ----------
    sizes : Sizes
    slab : float or None
        In logits; None: `DEFAULT_SLAB` where a group is sparse, no slab where it is dense.
    sample, feature : Group
        What was given; `feature` is omitted if theta is fixed.
    theta : array (D,), optional
        The fixed feature weights.

    Raises
    ------
    InputError
        More active weights are requested than exist, the slab is out of range, or no scale gives
        the requested numbers.
    """
    features, samples, each = sizes.kernel.sparse_defaults
    sparse = sample.sparse or (feature is not None and feature.sparse)
    if sparse and slab is not None and not LEAST_SLAB <= slab <= LARGEST_SLAB:
        raise InputError(
            f"slab must be between {LEAST_SLAB:g} and {LARGEST_SLAB:g} for a sparse prior, got "
            f"{slab:g}. It is the standard deviation, in logits, of the normal factor that ends "
            f"the tail of a weight. The default is {DEFAULT_SLAB:g}, 0.25 to 5 make sense, and "
            f"below {VISIBLE:g} hardly any weight is visible. For a dense prior without a slab use "
            'active_features="all", active_samples="all".'
        )
    logits = slab if slab is not None else DEFAULT_SLAB if sparse else np.inf
    unit = sizes.kernel.feature_unit
    r = None if theta is None else np.array([sizes.kernel.fixed_factor(theta, sizes.N)])
    of_sample = logits / (1.0 if r is None else float(r[0]))  # a sample's slab, on its own scale
    most = min(samples, max(sizes.B / 5, min(2.0, sizes.B / 2.0)))  # samples, if not asked
    a = None if sample.sparse else sample.dense(None if slab is None else of_sample)
    own_slab = sample.slab or of_sample
    if feature is None:
        assert r is not None
        m = _number("sample", sample, most, sizes.B)
        a = a or sparse_samples(m, own_slab, sizes.B, r)
        return _fields("sample", sample, m, a, logits)
    f = _number("feature", feature, min(features, sizes.D / 3), sizes.D)
    if feature.sparse:
        while True:  # the number of features is halved until some scale gives it
            m = _number("sample", sample, min(most, each * f), sizes.B)
            try:
                v, a = sparse_features(f, feature.slab or unit, sizes, a or (m, own_slab))
                break
            except InputError:
                if feature.active is not None or f < 1e-3:
                    raise
                f *= 0.5
    else:
        m = _number("sample", sample, most, sizes.B)
        v = feature.dense(None if slab is None else unit)
        a = a or sparse_samples(m, own_slab, sizes.B, kernel_factors(sizes, v)[1])
    return _fields("sample", sample, m, a, logits) | _fields("feature", feature, f, v, logits)


def _number(kind: str, group: Group, default: float, size: int) -> float:
    """Return how many weights are to be active; checked only if it is used."""
    number = default if group.active is None or isinstance(group.active, str) else group.active
    if group.sparse and not number < size:
        raise InputError(
            f"active_{kind}s must be between 0 and the number of {kind}s, got {number:g} of "
            f'{size}. It is the prior expected number of visible weights; "all" asks for the '
            "dense prior."
        )
    return number


def _fields(
    kind: str, group: Group, number: float, prior: WeightPrior, slab: float
) -> dict[str, Any]:
    already = group.active is not None and group.rate is not None  # filled before
    active = group.active if already else number if group.sparse else "all"
    return {
        f"{kind}_shape": prior.shape,
        f"{kind}_rate": prior.rate,
        f"{kind}_slab": prior.slab,
        f"active_{kind}s": active,
        "slab": slab,
    }
