"""A Problem: model, data and hyperparameters, which together define one posterior."""

import dataclasses
import hashlib
import json
import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ardvark.common.validate import InputError
from ardvark.data.dataset import Dataset, row_labels

from .always import Covariates, features_of, hashed, standardization
from .arguments import filled, needed, refuse_underflow
from .centres import staying
from .describing import Described
from .layout import Layout, layout_of
from .new_rows import Rows, data_of_rows, rows_of
from .parts import ard
from .parts.building import no_parent
from .parts.kernels import Kernel
from .spec import COVARIATE_SD, BaseHypers, Inputs, ModelSpec, Point

if TYPE_CHECKING:
    import pymc as pm


@dataclass(frozen=True, eq=False)
class Problem:
    """One posterior: a model, its training data, its basis and its hyperparameters.

    Made by `problem`. Attributes in the original units of the data: `data` (Dataset),
    `basis` (B, D). Standardised by `center` and `scale` (D,): `X` (N, D), `Z` (B, D); a column
    without variation in the training rows has the scale infinity, and is 0 in all rows. `y` (N,)
    holds 0 and 1. `covariates` are the columns of the data that are always in the model, or None.
    `asked` has the hyperparameters that the user specified, and None for the rest; `hypers` is its
    complete copy, which the model's functions take.

    Examples
    --------
    >>> import numpy as np
    >>> import ardvark as av
    >>> problem = av.problem("rfvm", [[0.0, 1.0], [1.0, 3.0], [2.0, 2.0]], ["no", "no", "yes"])
    >>> problem.model.free_RVs
    [psi, sample_weight_raw, delta, feature_weight_raw, bias, tau, u_raw]
    >>> point = problem.simulate(np.random.default_rng(0))  # one draw of everything from the model
    >>> sorted(point)
    ['bias', 'delta', 'eta', 'feature_weight', 'psi', 'sample_weight', 'tau', 'u', 'y']
    >>> eta = problem.decision(point)
    >>> np.allclose(eta, point["eta"])
    True
    >>> problem.decision(point, problem.standardized(np.array([[0.0, 2.0]]))).shape
    (1,)
    >>> likelihood = problem.log_likelihood(point)  # log P(y_n | eta_n), one number a row
    >>> np.allclose(likelihood, problem.log_predictive(problem.y, eta, point))
    True
    >>> sorted(problem.log_prior(point))  # in parts, which add up
    ['feature_weight', 'rest', 'sample_weight']
    >>> set(problem.recorded()) - set(problem.posterior_fields()) >= {"latent_noise"}
    True
    >>> free = problem.to_free(point)  # the values that PyMC's sampler moves
    >>> jacobian = problem.log_density(point) - problem.log_joint(point)
    >>> bool(np.isfinite(jacobian))
    True
    """

    spec: ModelSpec
    data: Dataset
    asked: BaseHypers
    hypers: BaseHypers
    basis: np.ndarray
    basis_names: tuple[str, ...]
    basis_labels: np.ndarray | None
    center: np.ndarray
    scale: np.ndarray
    covariates: Covariates | None = field(default=None, kw_only=True)
    standardize: bool = field(default=True, kw_only=True)

    @property
    def D(self) -> int:
        """The number of features: the columns of the data that are not covariates."""
        return len(self.center)

    @cached_property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the features (D,)."""
        names, always = self.data.feature_names, self.always
        return tuple(n for n in names if n not in always) if always else tuple(names)

    @property
    def always(self) -> tuple[str, ...]:
        """The names of the covariates (K,)."""
        return () if self.covariates is None else self.covariates.names

    @cached_property
    def rows(self) -> np.ndarray:
        """The features of the training rows (N, D), in original units; the basis, if it is they."""
        if self.covariates is None:
            return self.data.X
        found = features_of(self.data.X, self.data, self.covariates)
        ours = self.basis_names == tuple(self.data.sample_names)
        return self.basis if ours and np.array_equal(found, self.basis) else found

    @cached_property
    def X(self) -> np.ndarray:
        """Standardised inputs (N, D)."""
        return self.standardized(self.rows)

    @cached_property
    def Z(self) -> np.ndarray:
        """Standardised basis centres (B, D)."""
        return self.X if self.basis is self.rows else self.standardized(self.basis)

    @cached_property
    def C(self) -> np.ndarray | None:
        """Standardised covariates (N, K); None without any."""
        return None if self.covariates is None else self.covariates.of(self.data.X, self.data)

    @property
    def inputs(self) -> Inputs:
        """X, Z, basis labels and covariates, as the model's functions take them."""
        return Inputs(self.X, self.Z, self.basis_labels, self.C)

    def at(self, rows: np.ndarray) -> Inputs:
        """Return the inputs of other rows (M, D + K), with the columns of `data` in its units.

        Examples
        --------
        >>> import numpy as np
        >>> import ardvark as av
        >>> problem = av.problem("rfvm", "digits38")
        >>> new = problem.at(problem.data.X[:3])
        >>> problem.decision(problem.simulate(np.random.default_rng(0)), new).shape
        (3,)
        """
        if self.covariates is None:
            return self.inputs.at(self.standardized(rows))
        X = self.standardized(features_of(rows, self.data, self.covariates))
        return self.inputs.at(X, self.covariates.of(rows, self.data))

    def new_rows(self, rows: Rows) -> dict[str, dict[str, Any]]:
        """Return what `pm.set_data` takes for other rows, given in the units of the table.

        Their labels are not known, and no draw of them depends on the zeros that stand there. To
        predict them, PyMC is told to draw ``["y", *problem.row_variables]``.

        Examples
        --------
        >>> import ardvark as av
        >>> problem = av.problem("rvm", "digits38")
        >>> given = problem.new_rows(problem.data.X[:3])  # with problem.model: pm.set_data(**given)
        >>> {name: values.shape for name, values in given["new_data"].items()}, given["coords"]
        ({'K': (3, 357), 'label': (3,)}, {'obs': (0, 1, 2)})
        """
        X, names = rows_of(self.data, rows, self.always)
        coords = self.coords | {"obs": row_labels(names)}
        labels = np.zeros(len(X), self.y.dtype)
        with no_parent():
            model = self.spec.build(self.at(X), labels, self.hypers, coords)
        return {"new_data": data_of_rows(model), "coords": {"obs": coords["obs"]}}

    @property
    def row_variables(self) -> tuple[str, ...]:
        """Free variables with a value for each row, such as a latent noise."""
        dims = self.model.named_vars_to_dims
        return tuple(v.name for v in self.model.free_RVs if "obs" in (dims.get(v.name) or ()))

    @property
    def y(self) -> np.ndarray:
        """Labels (N,), 0 or 1."""
        return self.data.y

    @property
    def kernel(self) -> Kernel | None:
        """The kernel; None in a model without one, whose eta is primal weights times x."""
        return self.hypers.kernel_of() if self.spec.kernels else None

    @property
    def coords(self) -> dict[str, tuple[Any, ...]]:
        """Names along the dims "obs", "basis", "feature", and "covariate"; numbers are integers."""
        names: dict[str, tuple[Any, ...]] = {
            "obs": row_labels(self.data.sample_names),
            "basis": row_labels(self.basis_names),
            "feature": self.feature_names,
        }
        return names | ({"covariate": self.always} if self.always else {})

    @cached_property
    def model(self) -> "pm.Model":
        """The plain `pm.Model`, which is yours: sample it, plot it, change it by `pm.set_data`.

        A fit of the problem never reads it. `av.fit(problem.model, ...)` fits it as it is now.
        """
        return self._built()

    @cached_property
    def fitted_model(self) -> "pm.Model":
        """The `pm.Model` that methods read. It is a build of its own, and nobody may change it."""
        return self._built()

    def _built(self) -> "pm.Model":
        with no_parent():
            return self.spec.build(self.inputs, self.y, self.hypers, dict(self.coords))

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each variable of `model`, without building it on all the data."""
        return self._layout.shapes

    @property
    def sizes(self) -> dict[str, int]:
        """How many numbers each variable of `model` holds, without building it on all the data."""
        return {name: math.prod(shape) for name, shape in self.shapes.items()}

    @property
    def free_size(self) -> int:
        """P, the length of the unconstrained vector, without building `model` on all the data."""
        return self._layout.free_size

    @property
    def free_feature_size(self) -> int:
        """How many numbers of the unconstrained vector belong to one feature each."""
        return self._layout.free_feature_size

    @property
    def constants(self) -> dict[str, np.ndarray]:
        """The numbers that `model` holds as data: filled hyperparameters, without building it."""
        return self._layout.constants

    @cached_property
    def _layout(self) -> Layout:
        def build(coords: dict[str, tuple[Any, ...]]) -> "pm.Model":
            return self.spec.build(self.inputs.first(2), self.y[:2], self.hypers, coords)

        return layout_of(build, self.coords)

    def standardized(self, X: np.ndarray) -> np.ndarray:
        """Return features X (M, D), in original units, on the scale of the training data.

        `at` takes whole rows, of which some columns may be covariates.
        """
        out = X - self.center
        out /= self.scale  # in place: X may be most of the memory
        out.setflags(write=False)
        return out

    def take(self, rows: Any) -> "Problem":
        """Return the problem of some of its training rows: a fold of a cross-validation.

        The others leave X, y and the basis; centres of the basis that are not training rows stay.
        If this problem is standardised, the remaining rows are standardised again, as in every
        problem: by the mean and population standard deviation of each feature. A feature that does
        not vary in the remaining rows contributes nothing to any row, even if it varies in the
        others. Hyperparameters keep their filled values.

        Parameters
        ----------
        rows : array-like of int or bool
            Distinct row numbers, or a mask (N,).

        Returns
        -------
        Problem

        Raises
        ------
        InputError
            `Dataset.take` does not accept the rows, for example because they have only one class;
            or the basis would be empty without the others.

        Examples
        --------
        >>> import ardvark as av
        >>> problem = av.problem("rfvm", "digits38")
        >>> fold = problem.take(range(40))
        >>> fold.X.shape, fold.Z.shape
        ((40, 64), (40, 64))
        >>> fold.hypers == problem.hypers
        True
        """
        data, labels = self.data, self.basis_labels
        left = data.take(rows)
        center, scale, covariates = standardization(left, self.standardize, self.always)
        if self.basis is self.rows:
            stays = np.arange(data.N)[np.asarray(rows)]
            basis = left.X if covariates is None else features_of(left.X, left, covariates)
        else:
            row = dict(zip(data.sample_names, self.rows, strict=True))
            gone = row.keys() - set(left.sample_names)
            stays = staying(self.basis, self.basis_names, {name: row[name] for name in gone})
            basis = self.basis[stays]
        if len(basis) == 0:
            raise InputError(
                "the basis would be empty without the rows that are left out: "
                f"{', '.join(self.basis_names[:6])}. Give more basis rows, or your own centres."
            )
        return dataclasses.replace(
            self,
            data=left,
            basis=basis,
            basis_names=tuple(self.basis_names[j] for j in stays),
            basis_labels=None if labels is None else labels[stays],
            center=center,
            scale=scale,
            covariates=covariates,
        )

    def with_hypers(self, **changes: Any) -> "Problem":
        """Return the problem of the same data, basis and labels with other hyperparameters.

        The others stay as the user gave them. Whatever is filled from them, or from the sizes of
        the data, is filled again. A change to None resets a hyperparameter to its default.

        Parameters
        ----------
        **changes
            Hyperparameters by name.

        Raises
        ------
        InputError
            A value outside its range, one that conflicts with what was given, or an
            `active_features` that no scale of the prior gives.
        TypeError
            A hyperparameter that the model does not have.

        Examples
        --------
        >>> import ardvark as av
        >>> problem = av.problem("rfvm", "digits38", slab=1.0)
        >>> wider = problem.with_hypers(slab=2.0)
        >>> float(problem.hypers.slab), float(wider.hypers.slab)
        (1.0, 2.0)
        >>> wider.fingerprint == problem.fingerprint  # it is another posterior
        False
        """
        asked = self.spec.make_hypers({**vars(self.asked), **changes})
        hypers = filled(asked, self.data.N, len(self.basis), self.D)
        return dataclasses.replace(self, asked=asked, hypers=hypers)

    # --- the model's functions, with this problem's data filled in ---

    def log_joint(self, point: Point) -> np.ndarray:
        """Return the log density of the paper's variables at `point` (leading axes allowed)."""
        return self.spec.log_joint(point, self.inputs, self.y, self.hypers)

    def log_density(self, point: Point) -> np.ndarray:
        """Return the log density of the unconstrained vector of `model`, Jacobian included."""
        return self.log_joint(point) + self.spec.log_jacobian(point, self.hypers)

    def to_free(self, point: Point) -> dict[str, np.ndarray]:
        """Return the values of the PyMC model's free variables at `point`."""
        return self.spec.to_free(point, self.inputs, self.hypers)

    def simulate(
        self, rng: np.random.Generator, inputs: Inputs | None = None
    ) -> dict[str, np.ndarray]:
        """Return one ancestral draw of every variable, `eta` and `y`, at this problem's inputs.

        Or at others, which its hyperparameters are not filled for.

        Raises
        ------
        InputError
            A Gamma shape is so small that most draws underflow to exactly 0 in float64.
        """
        refuse_underflow(self.hypers)
        return self.spec.simulate(rng, inputs or self.inputs, self.hypers)

    def decision(self, point: Point, X: np.ndarray | Inputs | None = None) -> np.ndarray:
        """Return eta (..., M) at standardised inputs X (M, D), by default the training ones.

        With covariates, other rows are the `Inputs` that `at` returns.

        Raises
        ------
        InputError
            A variable that eta is made of is missing, or the covariates of other rows.
        """
        inputs = self.inputs if X is None else X
        inputs = inputs if isinstance(inputs, Inputs) else self.inputs.at(inputs)
        with needed("eta"):
            return self.spec.decision(point, inputs, self.hypers)

    def log_predictive(self, y: Any, eta: np.ndarray, point: Point) -> np.ndarray:
        """Return log P(y | eta, ...), shape of eta, with latent noise integrated out in every form.

        Raises
        ------
        InputError
            A variable that the noise depends on is missing.
        """
        with needed("the probability of a label"):
            return self.spec.log_predictive(y, eta, point, self.hypers)

    def log_likelihood(self, point: Point, eta: np.ndarray | None = None) -> np.ndarray:
        """Return log P(y_n | ...) (..., N), latent noise integrated out in every form."""
        return self.log_predictive(self.y, self.decision(point) if eta is None else eta, point)

    def log_prior(self, point: Point) -> dict[str, np.ndarray]:
        """Return the log prior density of the variables in the likelihood, in parts (...,).

        It is the joint density without any observation, with precisions and latent noise integrated
        out (the noise belongs to the likelihood: `log_likelihood` integrates it). So it is the same
        in every form. Power scaling needs this density. If the joint prior of weight and precision
        were scaled instead, Gamma(1/2, rate) to the power alpha is Gamma(1/2, alpha rate) and the
        precision of the normal is multiplied by alpha. Together they give the half-Cauchy prior
        unchanged.

        Parameters
        ----------
        point : dict of array
            The variables of the form with everything integrated out; others are ignored.

        Returns
        -------
        dict of array
            "feature_weight" and "sample_weight" if they have a prior with Gamma precisions, and
            "rest". Their sum is the log prior density.

        Raises
        ------
        InputError
            A variable is missing.
        """
        none, hypers = self.at(self.data.X[:0]), self.hypers.marginal()
        with needed("the prior's density"):
            rest = self.spec.log_joint(point, none, self.y[:0], hypers)
            parts = {}
            for name, prior in self.hypers.weight_priors().items():
                signed = name == "sample_weight" and not self.spec.labels_in_basis
                x = point[name] if signed else np.abs(point[name])  # labels sign the basis
                parts[name] = ard.logp(x, None, prior, signed=signed)
                rest = rest - parts[name]
        return {**parts, "rest": rest}

    # --- identity ---

    def posterior_fields(self) -> dict[str, Any]:
        """Return the hyperparameters that define the posterior."""
        used = {COVARIATE_SD: vars(self.hypers)[COVARIATE_SD]} if self.always else {}
        return {**self.hypers.posterior_fields(), **used}

    def recorded(self) -> dict[str, Any]:
        """Return every hyperparameter, as a fit records them."""
        fields = dataclasses.asdict(self.hypers)
        return {k: v for k, v in fields.items() if self.always or k != COVARIATE_SD}

    @cached_property
    def fingerprint(self) -> str:
        """Hash of what defines the posterior: data, basis, standardisation, hyperparameters."""
        digest = hashlib.sha256(self.spec.name.encode())
        known = self.rows[0], self.center, self.scale
        X, Z = (hashed(*pair, *known) for pair in ((self.X, self.rows), (self.Z, self.basis)))
        arrays = [X[0], self.y, Z[0], *X[1:], self.basis_labels]
        if self.covariates is not None and self.C is not None:
            raw = self.covariates.among(self.data.X, self.data)
            arrays += hashed(self.C, raw, raw[0], *self.covariates[1:])
        for array in arrays:
            digest.update(b"-" if array is None else np.ascontiguousarray(array))
        digest.update(json.dumps(self.posterior_fields(), sort_keys=True).encode())
        return digest.hexdigest()[:16]

    @cached_property
    def form(self) -> str:
        """Hash of how the posterior is written (parametrisation, explicit or integrated noise)."""
        fields = json.dumps(self.hypers.form_fields(), sort_keys=True)
        return hashlib.sha256(f"{self.spec.name} {fields}".encode()).hexdigest()[:16]

    def describe(self) -> str:
        """Return a description: sizes, classes, and the value of every hyperparameter.

        Examples
        --------
        >>> import ardvark as av
        >>> problem = av.problem("rfvm", "digits38", active_features=5)
        >>> print(problem.describe())
        Relevance Feature and Vector Machine (rfvm) on digits38
          357 samples x 64 features, 357 basis centres; y = 1 is '8' (174), y = 0 is '3' (183)
        ...
        """
        return self._described.text()

    def _repr_html_(self) -> str:
        return self._described.html()

    @property
    def _described(self) -> Described:
        known = self.D, len(self.basis), self.always, self.recorded()
        return Described(self.spec, self.data, *known)

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields; cached values, such as the `pm.Model`, are made again when read."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}

    def __repr__(self) -> str:
        return f"Problem({self._described.line()}, fingerprint {self.fingerprint})"
