"""What a paper's file must offer: the contract of a model.

Mandatory, under the same names in every file of this folder:

    Hypers        frozen dataclass of every hyperparameter, each declared with `hyper(...)`
    build         (X, y, Z, basis_labels, hypers, coords) -> pm.Model
    log_joint     (point, ...) -> log density of the paper's variables, NumPy/SciPy, written from
                  the paper and never from `build`: the two check each other
    log_jacobian  (point, hypers) -> log |d paper's variables / d unconstrained vector|, so that
                  log_joint + log_jacobian is the density a gradient sampler works on
    to_free       (point, hypers) -> values of the PyMC model's free variables
    simulate      (rng, X, Z, basis_labels, hypers) -> one ancestral draw of everything, with y
    decision      (point, X, Z, basis_labels, hypers) -> eta at the rows of X
    log_predictive (y, eta, point, hypers) -> log P(y | eta), latent noise integrated out
    SPEC          a ModelSpec that names them, and gives the dims of every variable

`point` maps variable names to arrays; all functions accept leading axes (draws) in front of each
variable's own shape, so a whole posterior is evaluated in one call.
"""

import dataclasses
import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from ardvark.validate import InputError, logger, one_of, positive, unknown_option

Point = Mapping[str, np.ndarray]
SHARED = ("feature_weight", "sample_weight", "eta")
"""The three quantities every model has, so that posteriors of different papers lie side by side."""


def hyper(default: Any, *, paper: str, why: str = "", choices: tuple[str, ...] = ()) -> Any:
    """Declare one hyperparameter: our default, the paper's value in words, why they differ.

    A setting that is one of a few words lists them in `choices`: they are validated, and the tests
    run over all of them.
    """
    metadata = {"paper": paper, "why": why, "choices": choices}
    return dataclasses.field(default=default, metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class BaseHypers(ABC):
    """What the hyperparameters of every model can do. A field left at None is a scale to fill."""

    FORM: ClassVar[tuple[str, ...]] = ()
    """The fields that change how the posterior is written, not the posterior."""

    def __post_init__(self) -> None:
        for f in dataclasses.fields(self):
            value = getattr(self, f.name)
            if f.metadata["choices"]:
                one_of(f.name, value, f.metadata["choices"])
            if "float" in str(f.type) and isinstance(value, Real) and not isinstance(value, bool):
                # PyTensor makes a float32 constant of a Python float that float32 holds exactly,
                # such as 3.0, and then computes 1 / 3.0 in float32; a NumPy float stays float64
                object.__setattr__(self, f.name, np.float64(value))

    @abstractmethod
    def filled(self, N: int, B: int, D: int) -> Self:
        """Return a copy whose scales left at None are set from the sizes of the data."""

    def posterior_fields(self) -> dict[str, Any]:
        """Return the fields that define the posterior (a subclass may add to FORM by value)."""
        return {k: v for k, v in dataclasses.asdict(self).items() if k not in self.FORM}

    def form_fields(self) -> dict[str, Any]:
        """Return the fields that define how the posterior is written."""
        return {k: v for k, v in dataclasses.asdict(self).items() if k in self.FORM}

    def heavy_tails(self) -> dict[str, float]:
        """Return the Gamma shapes at or below 1: those weights have no finite second moment."""
        fields = dataclasses.asdict(self)
        shapes = {k: v for k, v in fields.items() if k.endswith("_shape") and v is not None}
        return {k: v for k, v in shapes.items() if v <= 1.0}


class GammaPrior(NamedTuple):
    """Gamma(shape, rate), the hyperprior of the precisions of one group of weights."""

    shape: float
    rate: float

    @property
    def scale(self) -> float:
        """Scale of the weights: sqrt(rate / shape)."""
        # NumPy's float: PyTensor may turn a Python one into a float32 constant
        return np.float64(np.sqrt(self.rate / self.shape))

    @classmethod
    def filled(cls, shape: float | None, rate: float | None) -> "GammaPrior":
        """Return the prior of filled hyperparameters."""
        if shape is None or rate is None:
            raise InputError("shape and rate are not filled yet: use hypers.filled(N, B, D).")
        return cls(shape, rate)


@dataclass(frozen=True)
class ModelSpec:
    """One paper's model. The module docstring gives the mathematics; this names its parts."""

    name: str
    title: str
    citation: str
    year: int
    link: str
    priors: str
    kernels: tuple[str, ...]
    paper_method: str
    Hypers: type[BaseHypers]
    build: Callable[..., Any]
    log_joint: Callable[..., np.ndarray]
    log_jacobian: Callable[..., np.ndarray]
    to_free: Callable[..., dict[str, np.ndarray]]
    simulate: Callable[..., dict[str, np.ndarray]]
    decision: Callable[..., np.ndarray]
    log_predictive: Callable[..., np.ndarray]
    dims: dict[str, tuple[str, ...]]
    doc: str
    labels_in_basis: bool = False
    shared: tuple[str, ...] = SHARED
    """The shared quantities the model has: one without a basis has no sample weights."""
    needed: tuple[str, ...] = ()
    """What `decision` reads beside the shared quantities and the scalars: always kept."""
    fixed: tuple[str, ...] = ()
    """Those that are constants of the model, such as the feature weights of RVM."""
    masked: tuple[str, ...] = ()
    """Those that a binary mask switches off: exactly 0 with a positive probability."""

    def choices(self) -> list[dict[str, str]]:
        """Return every accepted combination of the settings that are one of a few words."""
        fields = [f for f in dataclasses.fields(self.Hypers) if f.metadata["choices"]]
        names = [f.name for f in fields]
        values = itertools.product(*(f.metadata["choices"] for f in fields))
        combinations = (dict(zip(names, words, strict=True)) for words in values)
        return [c for c in combinations if self._accepts(c)]

    def _accepts(self, choice: Mapping[str, Any]) -> bool:
        try:
            self.Hypers(**choice)
        except InputError:
            return False
        return True

    def make_hypers(self, given: Mapping[str, Any]) -> BaseHypers:
        """Return Hypers from keyword arguments; an unknown one is a TypeError that lists them."""
        known = {f.name for f in dataclasses.fields(self.Hypers)}
        wrong = [name for name in given if name not in known]
        if wrong:
            raise unknown_option(f"model {self.name!r}", wrong, known)
        hypers = self.Hypers(**given)
        for name, value in hypers.heavy_tails().items():
            logger.warning(
                "%s = %g: weights whose precision has a Gamma shape of 1 or less have no finite "
                "second moment on separable data; compare ranks, quantiles or bounded functions",
                name,
                value,
            )
        return hypers


def check_gamma(name: str, shape: object, rate: object, why: str) -> None:
    """Refuse a Gamma prior that is not proper."""
    positive(f"{name}_shape", shape, why)
    if rate is not None:
        positive(f"{name}_rate", rate, why)


def check_simulable(hypers: BaseHypers) -> None:
    """Refuse to simulate from Gamma shapes whose draws underflow to exactly 0 in float64."""
    for name, value in dataclasses.asdict(hypers).items():
        if name.endswith("_shape") and value < 0.05:
            raise InputError(
                f"cannot simulate with {name} = {value:g}: most draws of such a Gamma are exactly "
                "0 in float64. Use a shape of at least 0.05."
            )
