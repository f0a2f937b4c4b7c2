"""The contract of a model: what the file of a paper must define.

A file in this folder is a `ModelFile`. It defines these names, and mypy checks their arguments and
types where the file is registered (`ModelSpec.of` in `models/__init__.py`):

    Hypers        frozen dataclass of the hyperparameters as the user specified them, each declared
                  with `hyper(...)`. None: a scale that is computed from the sizes of the data
    Priors        frozen dataclass of the same hyperparameters with a value for each. It is what
                  `Hypers.solve(N, B, D)` returns and all functions take
    build         (inputs, y, priors, coords) -> pm.Model
    log_joint     (point, inputs, y, priors) -> log density of the paper's variables, NumPy/SciPy,
                  written from the paper and never from `build`: the two check each other
    log_jacobian  (point, priors) -> log |d paper's variables / d unconstrained vector|, so that
                  log_joint + log_jacobian is the density a gradient sampler works on
    to_free       (point, inputs, priors) -> values of the PyMC model's free variables
    simulate      (rng, inputs, priors) -> one ancestral draw of everything, with y
    decision      (point, inputs, priors) -> eta at the rows of inputs.X
    log_predictive (y, eta, point, priors) -> log P(y | eta), latent noise integrated out
    CARD          a `ModelCard`: the name, the paper, and what the model can do

A model that shares functions with another imports them under their names (`sklr.py`). Other code
asks the card what a model can do, and never tests for the name of a model.

`inputs` is an `Inputs`: the rows X and the basis centres. In `build`, every array that depends on
the data is a `pm.Data`, named as in `REBOUND` or after the hyperparameter that it holds. Folds and
calibration runs use these names to bind other values to the compiled model.

`point` maps variable names to arrays; all functions accept leading axes (draws) in front of each
variable's own shape, so a whole posterior is evaluated in one call.
"""

import dataclasses
import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np

from ardvark.common.declared import Settings, plain
from ardvark.common.html import table
from ardvark.common.registry import Registry
from ardvark.common.validate import InputError, logger, unknown_option

if TYPE_CHECKING:
    import pymc as pm

    from .parts.ard import WeightPrior
    from .parts.kernels import Kernel

Point = Mapping[str, np.ndarray]
Coords = Mapping[str, Sequence[str]]
SHARED = ("feature_weight", "sample_weight", "eta")
"""The three quantities of every model, by which posteriors of different papers are compared."""
REBOUND = ("X", "Z", "label", "basis_labels", "K")
"""Names of the `pm.Data` that hold data: inputs, centres, labels y, labels in the basis, and the
kernel matrix of a model whose theta is fixed. A model has those of them that it needs."""


@dataclass(frozen=True, eq=False)
class Inputs:
    """What eta depends on apart from the weights: the rows, and the basis of the kernels.

    Attributes
    ----------
    X : array (N, D)
        Rows, standardised.
    Z : array (B, D)
        Basis centres, standardised.
    basis_labels : array (B,) or None
        -1 or +1 for each centre, in models whose labels enter the basis.

    Examples
    --------
    >>> import ardvark as av
    >>> inputs = av.problem("rfvm", "digits38", basis=range(50)).inputs
    >>> inputs.N, inputs.B, inputs.D  # rows, basis centres, features
    (357, 50, 64)
    """

    X: np.ndarray
    Z: np.ndarray
    basis_labels: np.ndarray | None = None

    @property
    def N(self) -> int:
        """The number of rows."""
        return len(self.X)

    @property
    def B(self) -> int:
        """The number of basis centres."""
        return len(self.Z)

    @property
    def D(self) -> int:
        """The number of features."""
        return self.X.shape[1]

    def at(self, X: np.ndarray) -> "Inputs":
        """Return the inputs for other rows X (M, D) with the same basis.

        Examples
        --------
        >>> import ardvark as av
        >>> problem = av.problem("rfvm", "digits38", basis=range(50))
        >>> new = problem.inputs.at(problem.X[:3])
        >>> new.N, new.B
        (3, 50)
        """
        return dataclasses.replace(self, X=X)

    def first(self, count: int) -> "Inputs":
        """Return the first rows and centres, which are enough to read names and dims.

        Examples
        --------
        >>> import ardvark as av
        >>> few = av.problem("rfvm", "digits38").inputs.first(2)
        >>> few.X.shape, few.Z.shape
        ((2, 64), (2, 64))
        """
        labels = None if self.basis_labels is None else self.basis_labels[:count]
        return Inputs(self.X[:count], self.Z[:count], labels)


@dataclass(frozen=True, kw_only=True)
class BasePriors:
    """Base class of the complete hyperparameters of every model, which its functions take.

    The fields are those of the model's `Hypers`, in the same order. None of them is None.

    Examples
    --------
    >>> import ardvark as av
    >>> priors = av.problem("rfvm", "digits38").hypers
    >>> type(priors).__name__, priors.kernel_of().name
    ('Priors', 'linear')
    >>> sorted(priors.weight_priors())
    ['feature_weight', 'sample_weight']
    >>> sorted(priors.form_fields())  # how it is written; all else defines the posterior
    ['latent_noise', 'parametrization']
    """

    FORM: ClassVar[tuple[str, ...]] = ()
    """The fields that change how the posterior is written, but not the posterior itself."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, float):
                # PyTensor makes a float32 constant of a Python float that float32 holds exactly,
                # such as 3.0, and then computes 1 / 3.0 in float32; a NumPy float stays float64
                object.__setattr__(self, field.name, np.float64(value))

    def kernel_of(self) -> "Kernel | None":
        """Return the kernel; None in a model without one, whose eta is primal weights times x."""
        return None

    def posterior_fields(self) -> dict[str, Any]:
        """Return the fields that define the posterior (a subclass may add to FORM by value)."""
        return {k: v for k, v in dataclasses.asdict(self).items() if k not in self.FORM}

    def form_fields(self) -> dict[str, Any]:
        """Return the fields that define how the posterior is written."""
        return {k: v for k, v in dataclasses.asdict(self).items() if k in self.FORM}

    def marginal(self) -> Self:
        """Return a copy in the form that integrates out as much as possible."""
        words = {"hierarchical": "marginal", "latent": "marginal", "explicit": "integrated"}
        form = {name: words.get(value, value) for name, value in self.form_fields().items()}
        return dataclasses.replace(self, **form)

    def weight_priors(self) -> "dict[str, WeightPrior]":
        """Return the priors of the shared weights that have ARD priors, by name."""
        return {}


@dataclass(frozen=True, kw_only=True)
class BaseHypers[P: BasePriors](Settings, ABC):
    """Base class of the hyperparameters of every model, as the user specified them.

    A field left at None is computed by `solve`, which returns another object.

    Examples
    --------
    >>> import ardvark as av
    >>> Hypers = av.ZOO["rfvm"].Hypers
    >>> asked = Hypers(active_features=5, slab=2.0)
    >>> float(asked.slab)
    2.0
    >>> Hypers(slab=-1.0)
    Traceback (most recent call last):
        ...
    ardvark.common.validate.InputError: slab must be ...
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        for declared in self.declared():
            value = getattr(self, declared.name)
            if declared.kind is float and isinstance(value, Real):
                # 2 and 2.0 are the same value, and an overflow in `solve` gives inf, as in NumPy
                object.__setattr__(self, declared.name, np.float64(value))

    @abstractmethod
    def solve(self, N: int, B: int, D: int) -> P:
        """Return every hyperparameter; those left at None follow from the sizes of the data."""

    def given(self) -> dict[str, Any]:
        """Return the fields that differ from their defaults, as Python values."""
        fields = ((d, getattr(self, d.name)) for d in self.declared())
        return {d.name: plain(value) for d, value in fields if value != d.default}

    def heavy_tails(self) -> dict[str, float]:
        """Return the Gamma shapes at or below 1: those weights have no finite second moment."""
        fields = dataclasses.asdict(self)
        shapes = {k: v for k, v in fields.items() if k.endswith("_shape") and v is not None}
        return {k: v for k, v in shapes.items() if v <= 1.0}


class ModelFile[P: BasePriors](Protocol):
    """The names that a model's file defines; the module docstring explains each."""

    __doc__: str | None
    CARD: "ModelCard"

    @property
    def Hypers(self) -> type[BaseHypers[P]]:
        """The class of the hyperparameters as the user specifies them."""
        ...

    def build(self, inputs: Inputs, y: np.ndarray, priors: P, coords: Coords) -> "pm.Model":
        """Return the PyMC model."""
        ...

    def log_joint(self, point: Point, inputs: Inputs, y: np.ndarray, priors: P) -> np.ndarray:
        """Return the log density of the paper's variables."""
        ...

    def log_jacobian(self, point: Point, priors: P) -> np.ndarray:
        """Return the log Jacobian of the unconstrained vector."""
        ...

    def to_free(self, point: Point, inputs: Inputs, priors: P) -> dict[str, np.ndarray]:
        """Return the values of the free variables."""
        ...

    def simulate(
        self, rng: np.random.Generator, inputs: Inputs, priors: P
    ) -> dict[str, np.ndarray]:
        """Return one ancestral draw."""
        ...

    def decision(self, point: Point, inputs: Inputs, priors: P) -> np.ndarray:
        """Return eta."""
        ...

    def log_predictive(self, y: Any, eta: np.ndarray, point: Point, priors: P) -> np.ndarray:
        """Return log P(y | eta)."""
        ...


def _feature_weight(point: Point, priors: Any) -> np.ndarray:
    return np.asarray(point["feature_weight"])


@dataclass(frozen=True, kw_only=True)
class ModelCard:
    """What a model is called, where it comes from, and what it can do."""

    name: str
    title: str
    citation: str
    year: int
    link: str
    """From eta to the label, in words. "identity" has a fixed meaning: given eta, y is not a label
    but a real number, s = 2y - 1 ~ Normal(eta, tau^-1/2). Such a model has a variable `tau`,
    `simulate` draws a real y, `log_predictive` is the density of s at any real y, and the
    prediction is a score whose sign gives the class."""
    priors: str
    kernels: tuple[str, ...]
    paper_method: str
    dims: dict[str, tuple[str, ...]]
    labels_in_basis: bool = False
    shared: tuple[str, ...] = SHARED
    """The shared quantities of the model; a model without a basis has no sample weights."""
    needed: tuple[str, ...] = ()
    """What `decision` reads apart from the shared quantities and the scalars; always kept."""
    fixed: tuple[str, ...] = ()
    """Those that are constants of the model, such as the feature weights of RVM."""
    masked: tuple[str, ...] = ()
    """Those that a binary mask switches off: exactly 0 with positive probability."""
    theta: Callable[[Point, Any], np.ndarray] = _feature_weight
    """(point, priors) -> the kernel's feature weights (..., D), if they are not the shared
    `feature_weight` itself. Without a basis, the absolute values of the primal weights."""

    @property
    def has_basis(self) -> bool:
        """Whether eta is a sum over basis centres; else it is primal weights times x."""
        return "sample_weight" in self.shared

    @property
    def learns_theta(self) -> bool:
        """Whether the feature weights are variables; else they are constants of the model."""
        return "feature_weight" not in self.fixed


@dataclass(frozen=True, kw_only=True, repr=False)
class ModelSpec[P: BasePriors](ModelCard):
    """One paper's model: its card and the parts of its file.

    Examples
    --------
    >>> import ardvark as av
    >>> spec = av.ZOO["pfcvm"]
    >>> spec
    ModelSpec('pfcvm': Probabilistic Feature selection and Classification Vector
    Machine, Jiang et al. (2019), ACM TKDD 13(2), doi 10.1145/3309541)
    >>> spec.paper_method, spec.kernels, spec.labels_in_basis
    ('pfcvm_lp', ('linear', 'polynomial', 'rbf'), True)
    """

    Hypers: type[BaseHypers[P]]
    build: "Callable[[Inputs, np.ndarray, P, Coords], pm.Model]"
    log_joint: Callable[[Point, Inputs, np.ndarray, P], np.ndarray]
    log_jacobian: Callable[[Point, P], np.ndarray]
    to_free: Callable[[Point, Inputs, P], dict[str, np.ndarray]]
    simulate: Callable[[np.random.Generator, Inputs, P], dict[str, np.ndarray]]
    decision: Callable[[Point, Inputs, P], np.ndarray]
    log_predictive: Callable[[Any, np.ndarray, Point, P], np.ndarray]
    doc: str
    """The file's docstring: the mathematics."""

    @classmethod
    def of(cls, file: ModelFile[P]) -> "ModelSpec[P]":
        """Return the model that a file defines: a module of this folder, or one of your own.

        Examples
        --------
        >>> from ardvark.models import ModelSpec, rvm
        >>> ModelSpec.of(rvm)
        ModelSpec('rvm': Relevance Vector Machine, Tipping (2001), JMLR 1, 211-244)
        """
        return cls(
            **{f.name: getattr(file.CARD, f.name) for f in dataclasses.fields(ModelCard)},
            Hypers=file.Hypers,
            build=file.build,
            log_joint=file.log_joint,
            log_jacobian=file.log_jacobian,
            to_free=file.to_free,
            simulate=file.simulate,
            decision=file.decision,
            log_predictive=file.log_predictive,
            doc=file.__doc__ or "",
        )

    def __repr__(self) -> str:
        return f"ModelSpec({self.name!r}: {self.title}, {self.citation})"

    def choices(self) -> list[dict[str, str]]:
        """Return every accepted combination of the settings that accept only words.

        Examples
        --------
        >>> import ardvark as av
        >>> av.ZOO["rvm"].choices()[0]
        {'kernel': 'linear', 'parametrization': 'marginal'}
        """
        words = self.Hypers.choices()
        values = itertools.product(*words.values())
        combinations = (dict(zip(words, chosen, strict=True)) for chosen in values)
        return [c for c in combinations if self._accepts(c)]

    def _accepts(self, choice: Mapping[str, Any]) -> bool:
        try:
            self.Hypers(**choice)
        except InputError:
            return False
        return True

    def make_hypers(self, given: Mapping[str, Any]) -> BaseHypers[P]:
        """Return Hypers from keyword arguments; an unknown one is a TypeError that lists them.

        Examples
        --------
        >>> import ardvark as av
        >>> hypers = av.ZOO["rfvm"].make_hypers({"slab": 2.0})
        >>> float(hypers.slab)
        2.0
        >>> av.ZOO["rfvm"].make_hypers({"slap": 2.0})
        Traceback (most recent call last):
            ...
        TypeError: model 'rfvm' has no option 'slap' (did you mean 'slab'?). ...
        """
        names = {d.name for d in self.Hypers.declared()}
        wrong = [name for name in given if name not in names]
        if wrong:
            raise unknown_option(f"model {self.name!r}", wrong, names)
        hypers = self.Hypers(**given)
        for name, value in hypers.heavy_tails().items():
            logger.warning(
                "%s = %g: on separable data, weights whose precision has a Gamma shape of 1 or "
                "less have no finite second moment; compare ranks, quantiles or bounded functions",
                name,
                value,
            )
        return hypers


class Zoo(Registry[ModelSpec[Any]]):
    """Models by name, shown as a short table.

    Examples
    --------
    >>> import ardvark as av
    >>> av.ZOO
    pfcvm          Probabilistic Feature selection and Classification Vector Machine
    (2019)
    pcvm           Probabilistic Classification Vector Machine (2009)
    rvm            Relevance Vector Machine (2001)
    jcfo           Joint Classifier and Feature Optimization (2004)
    sparse_probit  Sparse probit regression (2001)
    fsklr          Doubly Sparse Bayesian Kernel Logistic Regression (2017)
    sklr           Sparse Bayesian Kernel Logistic Regression (2017)
    fs_skr         Doubly Sparse Bayesian Kernel Regression on the signs of the labels
    (2017)
    rfvm           Relevance Feature and Vector Machine (2024)
    horseshoe      Regularised horseshoe logistic regression (2017)
    >>> av.ZOO["jcfo"].citation
    'Krishnapuram, Carin & Hartemink (2004), J. Comput. Biol. 11'
    """

    def __repr__(self) -> str:
        return "\n".join(f"{name:<14} {spec.title} ({spec.year})" for name, spec in self.items())

    def _repr_html_(self) -> str:
        rows = [(s.name, s.title, s.citation, s.link, s.priors) for s in self.values()]
        columns = ("model", "title", "paper", "link", "priors")
        return table("Models of the zoo", rows, columns)


def check_simulable(priors: BasePriors) -> None:
    """Raise an error for Gamma shapes whose draws underflow to exactly 0 in float64."""
    for name, value in dataclasses.asdict(priors).items():
        if name.endswith("_shape") and value < 0.05:
            raise InputError(
                f"cannot simulate with {name} = {value:g}: most draws of such a Gamma are exactly "
                "0 in float64. Use a shape of at least 0.05."
            )
