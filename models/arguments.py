"""What a user may pass as a model, a data set and a basis, and the errors for anything else."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from ardvark.common.validate import InputError, matrix, named
from ardvark.data import Dataset, load
from ardvark.data.dataset import is_name

from .always import encoded
from .centres import drawn_rows
from .spec import COVARIATE_SD, BaseHypers, ModelSpec


def model_named(zoo: Mapping[str, ModelSpec], model: Any, data: Any) -> str:
    """Return the name of a model; an error says if model and data are swapped."""
    swapped = isinstance(data, str) and data.casefold() in zoo
    if not isinstance(model, str) or (swapped and model.casefold() not in zoo):
        shown = repr(model) if isinstance(model, str) else type(model).__name__
        raise InputError(
            f"the model comes first, and then the data: {shown} is not the name of a model."
            + (f" {data!r} is; swap the two." if swapped else "")
        )
    return named("model", model, zoo, "`ardvark models` lists them.")


def hypers_asked(
    zoo: Mapping[str, ModelSpec], spec: ModelSpec, given: Mapping[str, Any]
) -> BaseHypers:
    """Return what was asked for; the error for a kernel names the models that have it."""
    try:
        return spec.make_hypers(given)
    except InputError as error:
        having = [name for name, other in zoo.items() if given.get("kernel") in other.kernels]
        if not str(error).startswith("kernel ") or not having:
            raise
        raise InputError(f"{error} Models with this kernel: {', '.join(having)}.") from None


def filled(asked: BaseHypers, N: int, B: int, D: int) -> BaseHypers:
    """Return hyperparameters computed from the sizes of the data; raise an error on overflow."""
    try:
        with np.errstate(all="ignore"):
            return asked.fill(N, B, D)
    except InputError:
        raise
    except (ArithmeticError, ValueError) as error:  # a root that is nowhere, a number too large
        values = ", ".join(f"{name} = {value!r}" for name, value in asked.given().items())
        raise InputError(
            f"the other hyperparameters cannot be computed from {values}, because the result would "
            f"overflow ({error}). Give less extreme values."
        ) from error


def refuse_covariates(spec: ModelSpec, there: bool, hypers: Mapping[str, Any]) -> None:
    """Raise an error for covariates of a model without a place for them, or their prior alone."""
    takes = COVARIATE_SD in {d.name for d in spec.Hypers.declared()}
    if there and not takes:
        raise InputError(f"model {spec.name!r} takes no covariates; leave out always.")
    if takes and not there and hypers.get(COVARIATE_SD) is not None:
        raise InputError(
            f"{COVARIATE_SD} is the prior of covariates, and there are none. Name them in always."
        )


def as_dataset(
    data: Any, y: Any, X: Any, always: Sequence[str] = (), groups: Any = None
) -> Dataset:
    """Return the data set given as a Dataset, a name, a pair (X, y), or X and y separately.

    Text is encoded in the columns of a frame that are `always` in the model. `groups` says which
    rows belong together: an array (N,), or the name of a column of a frame.
    """
    if X is not None:
        if data is not None:
            raise InputError("give X= and y=, or data, not both.")
        data = X
    if y is not None and data is not None and not isinstance(data, Dataset | str):
        return _from_arrays(data, y, always, groups)
    if y is not None:
        what = "no X was given" if data is None else "a data set has its own labels"
        raise InputError(f"y was given, and {what}. Give X and y, or a data set alone.")
    if X is None and isinstance(data, Dataset | str):
        found = data if isinstance(data, Dataset) else load(data)
        if isinstance(groups, str):
            raise InputError(
                f"groups={groups!r} names a column of a frame, and this is a data set. "
                "Pass the groups themselves, one for each row, or av.table(..., groups=...)."
            )
        return found if groups is None else replace(found, groups=list(groups))
    if X is None and isinstance(data, tuple) and len(data) == 2:
        return _from_arrays(*data, always, groups)
    if X is not None or hasattr(data, "shape"):
        raise InputError("X was given without y. Also give the labels, one for each row of X.")
    raise InputError(
        "data must be a Dataset, the name of one, or a pair (X, y), "
        f"got {'nothing' if data is None else type(data).__name__}."
    )


def _from_arrays(X: Any, y: Any, always: Sequence[str], groups: Any = None) -> Dataset:
    """Return the data set of arrays; of a frame that is none, report all that is wrong with it."""
    if always and not isinstance(X, pd.DataFrame):
        raise InputError(
            f"always names columns, and X is {type(X).__name__} without names. Pass a data frame, "
            "or a Dataset with feature_names."
        )
    column = groups if isinstance(groups, str) else None
    found = encoded(X, y, always, column) if always else None
    if found is None and isinstance(X, pd.DataFrame) and is_name(y):
        from ardvark.data import table  # it reports all that is wrong, and takes longer to import

        found = table(X, y, groups=column)
    if found is None:
        return Dataset.from_arrays(X, y, groups=groups)
    return found if groups is None or column else replace(found, groups=list(groups))


def basis_centres(
    data: Dataset, X: np.ndarray, basis: Any, basis_labels: Any, spec: ModelSpec
) -> tuple[np.ndarray, tuple[str, ...], np.ndarray | None]:
    """Return basis centres (B, D), their names, and their labels if the model uses them.

    X (N, D) are the features of the data's rows: all columns, or all but the covariates.
    """
    if basis_labels is not None and not spec.labels_in_basis:
        raise InputError(f"model {spec.name!r} has no labels in its basis; omit basis_labels.")
    if isinstance(basis, str):
        if basis != "auto":
            raise InputError(f'basis must be "auto", row indices or centres, got {basis!r}.')
        basis = drawn_rows(data.y)
    rows: Sequence[int] | None
    if basis is None:
        centres, rows = X, range(data.N)
    elif np.ndim(basis) == 1:
        index = np.asarray(basis)
        if index.dtype.kind not in "iu" or index.size == 0 or not _inside(index, data.N):
            raise InputError(
                f"basis row indices must be integers in 0..{data.N - 1}, at least one, got "
                f"{basis!r}. Give row indices, an array of centres (B, D), or None for all rows."
            )
        centres, rows = X[index], index.tolist()
    else:
        centres, rows = matrix(basis, name="basis"), None
        if centres.shape[1] != X.shape[1]:
            raise InputError(
                f"basis centres have {centres.shape[1]} features and X has {X.shape[1]}; "
                "they must be equal."
            )
    if rows is None:
        names = tuple(f"centre_{j}" for j in range(len(centres)))
    else:
        names = tuple(data.sample_names[j] for j in rows)
    if len(set(names)) < len(names):
        raise InputError("basis rows must be distinct, because a repeated centre adds nothing.")
    if not spec.labels_in_basis:
        return centres, names, None
    if basis_labels is None:
        if rows is None:
            raise InputError("centres that are not training rows need basis_labels, -1 or +1 each.")
        basis_labels = 2 * data.y[list(rows)] - 1
    labels = np.asarray(basis_labels)
    if labels.shape != (len(centres),) or not np.isin(labels, (-1, 1)).all():
        raise InputError(
            f"basis_labels must be {len(centres)} values of -1 or +1, got {labels.tolist()[:6]}..."
        )
    return centres, names, labels.astype(np.float64)


def _inside(index: np.ndarray, N: int) -> bool:
    return bool((index >= 0).all() and (index < N).all())


@contextmanager
def needed(what: str) -> Iterator[None]:
    """Turn the KeyError for a variable that is missing from a point into one clear error."""
    try:
        yield
    except KeyError as error:
        raise InputError(
            f"{what} needs {error}, which is missing: fit with keep='all', or adopt it as well."
        ) from error


def refuse_underflow(hypers: BaseHypers) -> None:
    """Raise an error if a Gamma shape is so small that draws are 0 in float64."""
    for name, value in vars(hypers).items():
        if name.endswith("_shape") and value < 0.05:
            raise InputError(
                f"cannot simulate with {name} = {value:g}: most draws of such a Gamma are "
                "exactly 0 in float64. Use a shape of at least 0.05."
            )
