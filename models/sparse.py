"""Priors of models that are sparse by default: what may be given, and how the rest is filled.

A user gives a number of visible weights (`active_features`, `active_samples`), or "all" for the
dense prior, or the shape and rate of the Gamma hyperprior. A slab may be given too. From these,
`SparseHypers.fill` computes the prior of each group of weights. A model imports only this file and
`parts/ard.py`: `parts/sparsity.py` searches for the rates, and `parts/slab.py` is the slab's part
of the density in `parts/ard.py`.
"""

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np

from ardvark.common.declared import hyper, plain
from ardvark.common.validate import InputError

from .parts import covariates
from .parts.ard import Form, WeightPrior
from .parts.effects import VISIBLE
from .parts.kernels import KernelName, kernel_hyper
from .parts.sparsity import Sizes, kernel_factors, sparse_features, sparse_samples
from .spec import BaseHypers

Active = float | Literal["all"]
"""The prior expected number of visible weights; "all" is the dense prior."""

DEFAULT_SLAB = 1.0
"""In logits. Between 1/4 and 2, the held-out score on planted effects of 1.5 logits hardly changes
(0.646 to 0.634 nats). Chains mix better with a smaller slab: with 2, one feature takes all of an
effect that correlated features share."""

LEAST_SLAB, LARGEST_SLAB = 0.01, 1000.0
"""Range of the slab of a sparse prior. Below it, no weight is visible (`VISIBLE` is 0.1). Above it,
one visible weight makes a label certain, and the search for the scale overflows."""


# --- what every model with a sparse prior declares in the same way --------------------------------


_IMPROPER = (
    "A flat hyperprior on the precisions (shape 0 or rate 0) makes the posterior improper: "
    "infinite mass at weight zero, or in the tails on separable data (compare Dixit & Roy 2021, "
    "doi 10.1016/j.spl.2021.109039). A type-II estimate hides this, a posterior does not exist. "
    "Leave it out for a proper default."
)
_WHOSE = {kind: f"of a {kind} weight" for kind in ("sample", "feature")}
DENSE_SHAPE = "filled: 1/2; dense: 1.5 (a moment of order r needs shape > r / 2)"


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


def shape(
    of: str,
    default: float | None = None,
    *,
    why: str,
    paper: str = "0",
    outside: str = _IMPROPER,
) -> Any:
    """Declare the shape of the Gamma prior of a precision.

    Parameters
    ----------
    of : str
        Whose precision it is: that of a "sample" or "feature" weight, or another one in words.
    default : float, optional
        None: filled.
    why, paper, outside : str
        As for `hyper`.
    """
    meaning = f"shape of the Gamma prior of the precision {_WHOSE.get(of, of)}"
    return hyper(default, meaning, above=0.0, paper=paper, why=why, outside=outside)


def rate(
    of: str,
    default: float | None = None,
    *,
    why: str,
    paper: str = "0",
    outside: str = _IMPROPER,
) -> Any:
    """Declare the rate of that Gamma prior; the arguments are those of `shape`."""
    meaning = f"rate of the Gamma prior of the precision {_WHOSE.get(of, of)}"
    return hyper(default, meaning, above=0.0, paper=paper, why=why, outside=outside)


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


def form_hyper(default: str) -> Any:
    """Declare the parametrisation of weights with Gamma precisions."""
    meaning = "precisions integrated out (marginal) or explicit"
    return hyper(default, meaning, paper="hierarchical")


def bias_hyper(paper: str) -> Any:
    """Declare the prior standard deviation of the bias."""
    return hyper(1.0, "prior standard deviation of the bias", above=0.0, paper=paper)


# --- what is given, and how it is filled ----------------------------------------------------------

_ENDED_BY = {"sample_shape": "sample_slab", "feature_shape": "feature_slab"}
"""For each shape, the slab that cuts off the tail of the same weights."""

_FILLED_FROM = ("active_features", "active_samples", "slab")
"""The settings from which shapes, rates and the two slabs are computed."""


class Group(NamedTuple):
    """The hyperparameters given for one kind of weights, and the values of the dense prior."""

    kind: str
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

    def number(self, default: float, size: int) -> float:
        """Return how many weights are to be active; checked only if it is used."""
        number = default if self.active is None or isinstance(self.active, str) else self.active
        if self.sparse and not number < size:
            raise InputError(
                f"active_{self.kind}s must be between 0 and the number of {self.kind}s, got "
                f"{number:g} of {size}. It is the prior expected number of visible weights; "
                '"all" asks for the dense prior.'
            )
        return number

    def filled(self, number: float, prior: WeightPrior) -> dict[str, Any]:
        """Return the hyperparameters of these weights, complete."""
        values = {f"{self.kind}_{name}": value for name, value in prior._asdict().items()}
        return values | {f"active_{self.kind}s": number if self.sparse else "all"}


@dataclass(frozen=True, kw_only=True)
class SparseHypers(BaseHypers):
    """Hyperparameters with a sparse prior for the sample weights or for both kinds of weights.

    For each kind of weights, "sample" and "feature", a model declares the number of active weights,
    shape, rate and slab, and for both one `slab` in logits. A number of active weights replaces
    shape and rate. A kind is sparse unless its shape or rate is given, or its number is "all". In
    those cases it is dense, and has no slab unless one is given.
    """

    def fill(self, N: int, B: int, D: int) -> Self:
        """Return a copy with the priors of sample and feature weights.

        Raises
        ------
        InputError
            A number is given beside a shape or rate, more active weights are requested than exist,
            the slab is out of range, or no scale gives the requested numbers.
        """
        sizes = Sizes(self.kernel_of(), N, B, D)
        sample_scale, feature_scale = sizes.kernel.scales(N, D)
        sample = self._group("sample", 1.5, sample_scale)
        feature = self._group("feature", sizes.kernel.dense_shape, feature_scale)
        filled = _filled(sizes, vars(self)["slab"], sample, feature)
        return dataclasses.replace(self, **filled)

    def fill_samples(self, N: int, B: int, theta: np.ndarray) -> Self:
        """Return a copy with the prior of the sample weights, for fixed feature weights theta (D,).

        It raises the same errors as `fill`.
        """
        sizes, slab = Sizes(self.kernel_of(), N, B, len(theta)), vars(self)["slab"]
        sample = self._group("sample", 1.5, sizes.kernel.scales(N, len(theta))[0])
        filled = _filled_samples(sizes, slab, sample, theta)
        return dataclasses.replace(self, **filled)

    def _group(self, kind: str, dense_shape: float, dense_scale: float) -> Group:
        """Return what was given for one kind of weights."""
        fields = vars(self)
        active = fields[f"active_{kind}s"]
        for name in (f"{kind}_shape", f"{kind}_rate"):
            if active is not None and fields[name] is not None:
                raise InputError(
                    f"give active_{kind}s or {name}, not both: active_{kind}s = {plain(active)!r} "
                    f"and {name} = {plain(fields[name])!r} specify different priors."
                )
        shape, rate, slab = (fields[f"{kind}_{name}"] for name in WeightPrior._fields)
        return Group(kind, active, shape, rate, slab, dense_shape, dense_scale)

    def weight_priors(self) -> dict[str, WeightPrior]:
        """Return the priors of the weights: of both kinds, or of the samples' beside fixed ones."""
        fields, priors = vars(self), {}
        for kind in ("sample", "feature"):
            if f"{kind}_rate" in fields:
                prior = (fields[f"{kind}_{name}"] for name in WeightPrior._fields)
                priors[f"{kind}_weight"] = WeightPrior(*prior)
        return priors

    @property
    def sample_prior(self) -> WeightPrior:
        """Prior of the sample weights and their precisions."""
        return self.weight_priors()["sample_weight"]

    @property
    def feature_prior(self) -> WeightPrior:
        """Prior of the feature weights and their precisions."""
        return self.weight_priors()["feature_weight"]

    def heavy_tails(self) -> dict[str, float]:
        """Return the shapes at or below 1 of weights without a slab."""
        given = self.given()
        slabs = {name: given.get(own, given.get("slab", np.inf)) for name, own in _ENDED_BY.items()}
        return {k: v for k, v in super().heavy_tails().items() if slabs.get(k, np.inf) == np.inf}

    def posterior_fields(self) -> dict[str, Any]:
        """Return the shapes, rates and slabs, which define the posterior, not their sources."""
        fields = {k: v for k, v in super().posterior_fields().items() if k not in _FILLED_FROM}
        return {k: v for k, v in fields.items() if not (k in _ENDED_BY.values() and v == np.inf)}


@dataclass(frozen=True, kw_only=True)
class KernelHypers(SparseHypers):
    """What PFCVM, PCVM and RVM share: the kernel, the sample weights' hyperprior, the bias."""

    FORM: ClassVar[tuple[str, ...]] = ("parametrization",)

    kernel: KernelName = kernel_hyper("linear", paper="rbf; linear on gene expression")
    degree: int = hyper(
        2,
        "power P of the polynomial kernel (1 + x'z)^P",
        at_least=1,
        paper="P",
        why="of the polynomial kernel; the others ignore it",
        outside="It is the power P of the polynomial kernel (1 + x'z)^P.",
    )
    parametrization: Form = form_hyper("marginal")
    active_samples: Active = active("sample")
    slab: float = logit_slab()
    sample_shape: float = shape("sample", why=DENSE_SHAPE)
    sample_rate: float = rate(
        "sample", why="filled from active_samples; dense: shape * the kernel's scale^2"
    )
    sample_slab: float = own_slab("sample", why="filled from slab, on the weight's own scale")
    bias_sd: float = bias_hyper(paper="re-estimated")
    covariate_sd: float = covariates.sd_hyper()

    def posterior_fields(self) -> dict[str, Any]:
        """The degree defines the posterior only where the kernel has one."""
        fields = super().posterior_fields()
        if not self.kernel_of().has_degree:
            del fields["degree"]
        return fields


# --- the search for shapes, rates and slabs -------------------------------------------------------


def _filled(sizes: Sizes, slab: float | None, sample: Group, feature: Group) -> dict[str, Any]:
    """Return the slab in logits, and the hyperparameters of both kinds of weights.

    A slab of None is `DEFAULT_SLAB` for a sparse group, and no slab for a dense one.
    """
    features, _, each = sizes.kernel.sparse_defaults
    logits, unit = _logits(slab, sample.sparse or feature.sparse), sizes.kernel.feature_unit
    most, own_slab = _most_samples(sizes), sample.slab or logits
    a = None if sample.sparse else sample.dense(None if slab is None else logits)
    f = feature.number(min(features, sizes.D / 3), sizes.D)
    if feature.sparse:
        while True:  # the number of features is halved until some scale gives it
            few = (sample.number(min(most, k * f), sizes.B) for k in each)
            try:
                m, v, a = _first_sparse(f, feature.slab or unit, sizes, a, few, own_slab)
                break
            except InputError as error:
                if feature.active is not None:
                    least = most if sample.sparse and sample.active is None else None
                    m, v, a = _beside_more(
                        f, feature.slab or unit, sizes, a, least, own_slab, error
                    )
                    break
                if f < 1e-3:
                    raise
                f *= 0.5
    else:
        m = sample.number(most, sizes.B)
        v = feature.dense(None if slab is None else unit)
        a = a or sparse_samples(m, own_slab, sizes.B, kernel_factors(sizes, v)[1])
    return {"slab": logits} | sample.filled(m, a) | feature.filled(f, v)


def _filled_samples(
    sizes: Sizes, slab: float | None, sample: Group, theta: np.ndarray
) -> dict[str, Any]:
    """Return the slab in logits and the hyperparameters of the sample weights, for fixed theta."""
    logits = _logits(slab, sample.sparse)
    # a sample is visible by the spread of its column; its slab limits what it adds at a row
    r, size = sizes.kernel.fixed_factors(theta, sizes.N)
    sample_slab = logits / size
    m = sample.number(_most_samples(sizes), sizes.B)
    if sample.sparse:
        prior = sparse_samples(m, sample.slab or sample_slab, sizes.B, np.array([r]))
    else:
        prior = sample.dense(None if slab is None else sample_slab)
    return {"slab": logits} | sample.filled(m, prior)


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


def _beside_more(
    active: float,
    slab: float,
    sizes: Sizes,
    dense: WeightPrior | None,
    least: float | None,
    sample_slab: float,
    error: InputError,
) -> tuple[float, WeightPrior, WeightPrior]:
    """Return what `_first_sparse` does beside more than the `least` active samples.

    A feature is visible through samples that are, so many features need more samples than a few
    do. The first sufficient one of the numbers least * 1.25, * 1.25^2, ... is taken.

    Raises
    ------
    InputError
        No number below that of the samples is sufficient, or the number is not to be chosen
        (`least` is None): the `error` beside the number that was tried first.
    """
    while least is not None and 1.25 * least < sizes.B:
        least *= 1.25
        try:
            return _first_sparse(active, slab, sizes, dense, (least,), sample_slab)
        except InputError:
            continue
    raise error


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
    fallback, why = None, None
    for m in dict.fromkeys(numbers):
        try:
            v, a = sparse_features(active, slab, sizes, dense or (m, sample_slab))
        except InputError as error:
            why = why or error
            continue
        fallback = fallback or (m, v, a)
        if dense or a.scale < a.slab:
            return m, v, a
    if fallback is None:
        assert why is not None
        raise why
    return fallback
