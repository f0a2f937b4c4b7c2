"""The contract of a model: what the file of a paper must define.

A file in this folder defines these names; `ModelSpec` has their types, and
`tests/models/test_contract.py` calls all of them in every form:

    Hypers        frozen dataclass of the hyperparameters, each declared with `hyper(...)`. A scale
                  that is computed from the sizes of the data has the default None, and
                  `fill(N, B, D)` returns a copy with a value for it. That copy is the argument `h`
                  of all functions
    build         (inputs, y, h, coords) -> pm.Model
    log_joint     (point, inputs, y, h) -> log density of the paper's variables, NumPy/SciPy,
                  written from the paper and never from `build`: the two check each other
    log_jacobian  (point, h) -> log |d paper's variables / d unconstrained vector|, so that
                  log_joint + log_jacobian is the density a gradient sampler works on
    to_free       (point, inputs, h) -> values of the PyMC model's free variables
    simulate      (rng, inputs, h) -> one ancestral draw of everything, with y
    decision      (point, inputs, h) -> eta at the rows of inputs.X
    log_predictive (y, eta, point, h) -> log P(y | eta), latent noise integrated out
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
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from ardvark.common.declared import Settings, plain
from ardvark.common.html import table
from ardvark.common.registry import Registry
from ardvark.common.validate import InputError, logger, unknown_option

from .parts.ard import WeightPrior
from .parts.derived import NAMES, Derived
from .parts.kernels import Kernel, make_kernel

if TYPE_CHECKING:
    import pymc as pm

Point = Mapping[str, np.ndarray]
Coords = Mapping[str, Sequence[str]]
COVARIATE_SD = "covariate_sd"
"""The hyperparameter that only covariates use; a model that has it takes them."""
SHARED = ("feature_weight", "sample_weight", "eta")
"""The quantities of every model (the second where it has a basis), by which posteriors of different
papers are compared."""
REBOUND = ("X", "Z", "label", "basis_labels", "K", "C")
"""Names of the `pm.Data` that hold data: inputs, centres, labels y, labels in the basis, the kernel
matrix of a model whose theta is fixed, and covariates. A model has those of them that it needs."""


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
    C : array (N, K) or None
        Covariates of the rows, standardised: what is always in the model, outside of the kernel.

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
    C: np.ndarray | None = None

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

    def at(self, X: np.ndarray, C: np.ndarray | None = None) -> "Inputs":
        """Return the inputs for other rows X (M, D), C (M, K), with the same basis.

        Raises
        ------
        InputError
            There are covariates, and those of the other rows are not given.

        Examples
        --------
        >>> import ardvark as av
        >>> problem = av.problem("rfvm", "digits38", basis=range(50))
        >>> new = problem.inputs.at(problem.X[:3])
        >>> new.N, new.B
        (3, 50)
        """
        if self.C is not None and C is None:
            raise InputError(
                f"eta depends on {self.C.shape[1]} covariate(s), and other rows need theirs: "
                "problem.at(rows) has all, of rows with every column of the data."
            )
        return dataclasses.replace(self, X=X, C=C)

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
        C = None if self.C is None else self.C[:count]
        return Inputs(self.X[:count], self.Z[:count], labels, C)


@dataclass(frozen=True, kw_only=True)
class BaseHypers(Settings, ABC):
    """Base class of the hyperparameters of every model.

    As the user specifies them, a field whose default is None may be left out. `fill` computes it
    from the sizes of the data. It returns a complete copy, which the functions of a model take.

    Examples
    --------
    >>> import ardvark as av
    >>> Hypers = av.ZOO["rfvm"].Hypers
    >>> Hypers(slab=-1.0)
    Traceback (most recent call last):
        ...
    ardvark.common.validate.InputError: slab must be ...
    >>> asked = Hypers(active_features=5, slab=2.0)
    >>> asked.given()
    {'active_features': 5.0, 'slab': 2.0}
    >>> filled = asked.fill(N=50, B=50, D=20)
    >>> float(filled.sample_shape), filled.kernel_of().name
    (0.5, 'linear')
    >>> sorted(filled.weight_priors())
    ['feature_weight', 'sample_weight']
    >>> sorted(filled.form_fields())  # how it is written; all else defines the posterior
    ['latent_noise', 'parametrization']
    """

    FORM: ClassVar[tuple[str, ...]] = ()
    """The fields that change how the posterior is written, but not the posterior itself."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for declared in self.declared():
            value = getattr(self, declared.name)
            if declared.kind is float and isinstance(value, Real):
                # 2 and 2.0 are the same value, and an overflow in `fill` gives inf, as in NumPy.
                # PyTensor makes a float32 constant of a Python float that float32 holds exactly,
                # such as 3.0, and then computes 1 / 3.0 in float32; a NumPy float stays float64
                object.__setattr__(self, declared.name, np.float64(value))

    @abstractmethod
    def fill(self, N: int, B: int, D: int) -> Self:
        """Return a complete copy; what was left at None follows from the sizes of the data."""

    def given(self) -> dict[str, Any]:
        """Return the fields that differ from their defaults, as Python values."""
        fields = ((d, getattr(self, d.name)) for d in self.declared())
        return {d.name: plain(value) for d, value in fields if value != d.default}

    def heavy_tails(self) -> dict[str, float]:
        """Return the Gamma shapes at or below 1: those weights have no finite second moment."""
        fields = dataclasses.asdict(self)
        shapes = {k: v for k, v in fields.items() if k.endswith("_shape") and v is not None}
        return {k: v for k, v in shapes.items() if v <= 1.0}

    def kernel_of(self) -> Kernel:
        """Return the kernel, in a model that has one."""
        fields = vars(self)
        return make_kernel(fields["kernel"], fields.get("degree", 1))

    def posterior_fields(self) -> dict[str, Any]:
        """Return the fields that define the posterior (a subclass may add to FORM by value).

        The prior of covariates is not among them: `Problem.posterior_fields` adds it if there are
        any. Nor is a fixed scale: the posterior is what it was before a scale could be learned.
        """
        without = (*self.FORM, COVARIATE_SD, *(("scale",) if self.learned_scale is None else ()))
        return {k: v for k, v in dataclasses.asdict(self).items() if k not in without}

    def form_fields(self) -> dict[str, Any]:
        """Return the fields that define how the posterior is written."""
        return {k: v for k, v in dataclasses.asdict(self).items() if k in self.FORM}

    def marginal(self) -> Self:
        """Return a copy in the form that integrates out as much as possible."""
        words = {"hierarchical": "marginal", "latent": "marginal", "explicit": "integrated"}
        form = {name: words.get(value, value) for name, value in self.form_fields().items()}
        return dataclasses.replace(self, **form)

    @property
    def learned_scale(self) -> str | None:
        """The variable that multiplies the scale of one kind of weights, if the prior has one."""
        return "feature_scale" if vars(self).get("scale") == "learned" else None

    def weight_priors(self) -> dict[str, WeightPrior]:
        """Return the priors of the shared weights that have ARD priors, by name."""
        return {}


def _feature_weight(point: Point, h: Any) -> np.ndarray:
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
    paper_method: str
    variables: Mapping[str, tuple[str, ...]]
    """The variables along each dim, in any form, apart from the shared quantities and scalars."""
    labels_in_basis: bool = False
    shared: tuple[str, ...] = SHARED
    """The shared quantities of the model; a model without a basis has no sample weights."""
    needed: tuple[str, ...] = ()
    """What `decision` reads apart from the shared quantities and the scalars; always kept."""
    fixed: tuple[str, ...] = ()
    """Those that are constants of the model, such as the feature weights of RVM."""
    masked: tuple[str, ...] = ()
    """Those that a binary mask switches off: exactly 0 with positive probability. A masked
    `feature_weight` is the mask itself, 0 or 1: its means are read as inclusion probabilities."""
    theta: Callable[[Point, Any], np.ndarray] = _feature_weight
    """(point, h) -> the kernel's feature weights (..., D), if they are not the shared
    `feature_weight` itself. Without a basis, the absolute values of the primal weights."""

    @property
    def dims(self) -> dict[str, tuple[str, ...]]:
        """The dims of each of `variables`."""
        return {name: (dim,) for dim, names in self.variables.items() for name in names}

    @property
    def has_basis(self) -> bool:
        """Whether eta is a sum over basis centres; else it is primal weights times x."""
        return "sample_weight" in self.shared

    @property
    def learns_theta(self) -> bool:
        """Whether the feature weights are variables; else they are constants of the model."""
        return "feature_weight" not in self.fixed


@dataclass(frozen=True, kw_only=True, repr=False)
class ModelSpec(ModelCard):
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

    # each model's functions take an object of its `Hypers`
    Hypers: type[BaseHypers]
    build: "Callable[[Inputs, np.ndarray, Any, Coords], pm.Model]"
    log_joint: Callable[[Point, Inputs, np.ndarray, Any], np.ndarray]
    log_jacobian: Callable[[Point, Any], np.ndarray]
    to_free: Callable[[Point, Inputs, Any], dict[str, np.ndarray]]
    simulate: Callable[[np.random.Generator, Inputs, Any], dict[str, np.ndarray]]
    decision: Callable[[Point, Inputs, Any], np.ndarray]
    log_predictive: Callable[[Any, np.ndarray, Point, Any], np.ndarray]
    doc: str
    """The file's docstring: the mathematics."""

    @classmethod
    def of(cls, file: Any) -> "ModelSpec":
        """Return the model that a file defines: a module of this folder, or one of your own.

        One of your own may leave out `log_joint`, `log_jacobian` and `to_free` (`derived.py`).

        Examples
        --------
        >>> from ardvark.models import ModelSpec, rvm
        >>> ModelSpec.of(rvm)
        ModelSpec('rvm': Relevance Vector Machine, Tipping (2001), JMLR 1, 211-244)
        """
        card = {f.name: getattr(file.CARD, f.name) for f in dataclasses.fields(ModelCard)}
        names = {f.name for f in dataclasses.fields(cls)} - {*card, "doc"}
        lacks = [name for name in NAMES if not hasattr(file, name)]
        parts = {name: getattr(file, name) for name in names - {*lacks}}
        if lacks:  # a file of one's own: its PyMC model says it
            derived = Derived(file.build)
            parts |= {name: getattr(derived, name) for name in ("build", *lacks)}
        return cls(**card, **parts, doc=file.__doc__ or "")

    def __repr__(self) -> str:
        return f"ModelSpec({self.name!r}: {self.title}, {self.citation})"

    @property
    def kernels(self) -> tuple[str, ...]:
        """The names of the kernels that it has, as its `Hypers` declares them."""
        return self.Hypers.choices().get("kernel", ())

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

    def make_hypers(self, given: Mapping[str, Any]) -> BaseHypers:
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


class Zoo(Registry[ModelSpec]):
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
