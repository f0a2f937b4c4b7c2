"""Priors of models that are sparse by default: what may be given, and how the rest is computed.

A user gives a number of visible weights (`active_features`, `active_samples`), or "all" for the
dense prior, or the shape and rate of the Gamma hyperprior. A slab may be given too. From these,
`solve` computes the prior of each group of weights. A model imports only this file and
`parts/ard.py`: `parts/sparsity.py` searches for the rates, and `parts/slab.py` is the slab's part
of the density in `parts/ard.py`.
"""

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, NamedTuple

import numpy as np

from ardvark.common.declared import hyper, plain
from ardvark.common.validate import InputError

from .parts.ard import WeightPrior
from .parts.effects import VISIBLE
from .parts.sparsity import Sizes as Sizes  # an argument of `solve`
from .parts.sparsity import kernel_factors, sparse_features, sparse_samples
from .spec import BaseHypers, BasePriors

Active = float | Literal["all"]
"""The prior expected number of visible weights; "all" is the dense prior."""

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
        why='"all": the dense prior',
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
    """Declare the slab, in logits, from which the slabs of both kinds of weights are computed.

    A slab cuts off the tail of one weight (`parts/slab.py`). An effect is a product of weights of
    both kinds, theta_k (Z'a)_k under the linear kernel, so it depends on two slabs. The slab is
    therefore not the standard deviation of an effect.
    """
    meaning = "standard deviation, in logits, of the normal factor that cuts off a weight's tail"
    return slab(meaning, why="of a sample weight with a unit kernel; filled: 1 where sparse")


def own_slab(kind: str, *, why: str) -> Any:
    """Declare the slab of a kind of weights, on their own scale."""
    return slab(f"standard deviation of the slab of a {kind} weight", why=why)


# --- what is specified, and the priors ------------------------------------------------------------

_EXCLUSIVE = (
    ("active_samples", "sample_shape"),
    ("active_samples", "sample_rate"),
    ("active_features", "feature_shape"),
    ("active_features", "feature_rate"),
)
"""The pairs of hyperparameters of which only one may be given."""

_ENDED_BY = {"sample_shape": "sample_slab", "feature_shape": "feature_slab"}
"""For each shape, the slab that cuts off the tail of the same weights."""

_SOLVED_FROM = ("active_features", "active_samples", "slab")
"""The settings from which shapes, rates and the two slabs are computed."""


@dataclass(frozen=True, kw_only=True)
class SparseHypers[P: SparsePriors](BaseHypers[P]):
    """Hyperparameters, as specified, with a sparse prior for the sample weights or for both kinds.

    For each kind of weights, "sample" and "feature", a model declares the number of active weights,
    shape, rate and slab, and for both one `slab` in logits. A number of active weights replaces
    shape and rate.
    """

    def __post_init__(self) -> None:
        asked = {name: value for name, value in vars(self).items() if value is not None}
        for one, other in _EXCLUSIVE:
            if one in asked and other in asked:
                raise InputError(
                    f"give {one} or {other}, not both: {one} = {plain(asked[one])!r} and {other} = "
                    f"{plain(asked[other])!r} specify different priors."
                )
        super().__post_init__()

    def heavy_tails(self) -> dict[str, float]:
        """Return the shapes at or below 1 of weights without a slab."""
        asked = self.given()
        slabs = {name: asked.get(own, asked.get("slab", np.inf)) for name, own in _ENDED_BY.items()}
        return {k: v for k, v in super().heavy_tails().items() if slabs.get(k, np.inf) == np.inf}


@dataclass(frozen=True, kw_only=True)
class SparsePriors(BasePriors):
    """Every hyperparameter of such a model, including shape, rate and slab of each kind."""

    def posterior_fields(self) -> dict[str, Any]:
        """Return the shapes, rates and slabs, which define the posterior, not their sources."""
        fields = {k: v for k, v in super().posterior_fields().items() if k not in _SOLVED_FROM}
        return {k: v for k, v in fields.items() if not (k in _ENDED_BY.values() and v == np.inf)}

    def numbers(self) -> dict[str, float]:
        """Return the expected numbers of visible weights and the slab, where they are numbers."""
        fields = dataclasses.asdict(self)
        found = {name: fields[name] for name in _SOLVED_FROM if name in fields}
        return {name: float(value) for name, value in found.items() if isinstance(value, Real)}


class Group(NamedTuple):
    """The hyperparameters given for one kind of weights, and the values of the dense prior."""

    active: Active | None
    shape: float | None
    rate: float | None
    slab: float | None
    dense_shape: float
    dense_scale: float

    @property
    def sparse(self) -> bool:
        """Whether the rate is computed from a number of active weights."""
        return self.active != "all" and self.shape is None and self.rate is None

    def dense(self, slab: float | None) -> WeightPrior:
        """Return the prior with the given or dense shape and rate; a slab only if given."""
        shape = self.dense_shape if self.shape is None else self.shape
        rate = shape * self.dense_scale**2 if self.rate is None else self.rate
        given = self.slab if self.slab is not None else slab
        return WeightPrior(shape, rate, np.inf if given is None else given)


class Solved(NamedTuple):
    """The prior of one kind of weights, and the number that it makes visible ("all" if dense)."""

    active: Active
    prior: WeightPrior


def solve(
    sizes: Sizes, slab: float | None, sample: Group, feature: Group
) -> tuple[float, Solved, Solved]:
    """Return the slab in logits, and the priors of sample and feature weights.

    A group is sparse unless its shape or rate is given, or `active` is "all". In those cases
    it is dense, and has no slab unless one is given.

    Parameters
    ----------
    sizes : Sizes
    slab : float or None
        In logits; None: `DEFAULT_SLAB` for a sparse group, no slab for a dense one.
    sample, feature : Group
        What was given.

    Raises
    ------
    InputError
        More active weights are requested than exist, the slab is out of range, or no scale gives
        the requested numbers.
    """
    features, _, each = sizes.kernel.sparse_defaults
    logits, unit = _logits(slab, sample.sparse or feature.sparse), sizes.kernel.feature_unit
    most, own_slab = _most_samples(sizes), sample.slab or logits
    a = None if sample.sparse else sample.dense(None if slab is None else logits)
    f = _number("feature", feature, min(features, sizes.D / 3), sizes.D)
    if feature.sparse:
        while True:  # the number of features is halved until some scale gives it
            few = (_number("sample", sample, min(most, k * f), sizes.B) for k in each)
            try:
                m, v, a = _first_sparse(f, feature.slab or unit, sizes, a, few, own_slab)
                break
            except InputError:
                if feature.active is not None or f < 1e-3:
                    raise
                f *= 0.5
    else:
        m = _number("sample", sample, most, sizes.B)
        v = feature.dense(None if slab is None else unit)
        a = a or sparse_samples(m, own_slab, sizes.B, kernel_factors(sizes, v)[1])
    of_sample = Solved(m if sample.sparse else "all", a)
    return logits, of_sample, Solved(f if feature.sparse else "all", v)


def solve_fixed(
    sizes: Sizes, slab: float | None, sample: Group, theta: np.ndarray
) -> tuple[float, Solved]:
    """Return the slab in logits and the prior of the sample weights, for fixed theta (D,).

    It raises the same errors as `solve`.
    """
    logits = _logits(slab, sample.sparse)
    # a sample is visible by the spread of its column; its slab limits what it adds at a row
    r, size = sizes.kernel.fixed_factors(theta, sizes.N)
    own = logits / size
    m = _number("sample", sample, _most_samples(sizes), sizes.B)
    if sample.sparse:
        return logits, Solved(m, sparse_samples(m, sample.slab or own, sizes.B, np.array([r])))
    return logits, Solved("all", sample.dense(None if slab is None else own))


def _logits(slab: float | None, sparse: bool) -> float:
    """Return the slab in logits; raise an error if no sparse prior can have it."""
    if sparse and slab is not None and not LEAST_SLAB <= slab <= LARGEST_SLAB:
        raise InputError(
            f"slab must be between {LEAST_SLAB:g} and {LARGEST_SLAB:g} for a sparse prior, got "
            f"{slab:g}. It is the standard deviation, in logits, of the normal factor that ends "
            f"the tail of a weight. The default is {DEFAULT_SLAB:g}, 0.25 to 5 make sense, and "
            f"below {VISIBLE:g} hardly any weight is visible. For a dense prior without a slab use "
            'active_features="all", active_samples="all".'
        )
    return slab if slab is not None else DEFAULT_SLAB if sparse else np.inf


def _most_samples(sizes: Sizes) -> float:
    """Return the largest number of active samples, if none is given."""
    return min(sizes.kernel.sparse_defaults[1], max(sizes.B / 5, min(2.0, sizes.B / 2.0)))


def _first_sparse(
    active: float,
    slab: float,
    sizes: Sizes,
    dense: WeightPrior | None,
    numbers: Iterable[float],
    sample_slab: float,
) -> tuple[float, WeightPrior, WeightPrior]:
    """Return how many samples are to be active, and the priors of features and samples.

    It is the first number beside which the samples' prior is sparse, else the first that some scale
    of the features allows; with a `dense` prior of the samples none is needed.
    """
    found, why = None, None
    for m in dict.fromkeys(numbers):
        try:
            v, a = sparse_features(active, slab, sizes, dense or (m, sample_slab))
        except InputError as error:
            why = why or error
            continue
        found = found or (m, v, a)
        if dense or a.scale < a.slab:
            return m, v, a
    if found is None:
        assert why is not None
        raise why
    return found


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
