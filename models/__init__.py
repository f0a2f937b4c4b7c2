"""What each paper assumes: one file per paper, one registry, one way to make a problem."""

from typing import Any, Literal

from ardvark.data import Dataset

from . import fs_skr, fsklr, jcfo, pcvm, pfcvm, rfvm, rvm, sklr, sparse_probit
from .problems import Problem, make_problem
from .spec import SHARED, BaseHypers, Inputs, ModelSpec

ModelName = Literal[
    "pfcvm", "pcvm", "rvm", "jcfo", "sparse_probit", "fsklr", "sklr", "fs_skr", "rfvm"
]
"""The names in `ZOO`, for editors to complete."""

ZOO: dict[str, ModelSpec] = {
    module.SPEC.name: module.SPEC
    for module in (pfcvm, pcvm, rvm, jcfo, sparse_probit, fsklr, sklr, fs_skr, rfvm)
}
"""Every model, by name: the four papers', and the simpler models they contain."""

__all__ = ["SHARED", "ZOO", "BaseHypers", "Inputs", "ModelName", "ModelSpec", "Problem", "problem"]


def problem(
    model: ModelName | str,
    data: Dataset | str | tuple[Any, Any],
    *,
    basis: Any = None,
    basis_labels: Any = None,
    standardize: bool = True,
    **hypers: Any,
) -> Problem:
    """Return the problem of fitting a model of the zoo to data.

    Parameters
    ----------
    model : str
        A name in `ZOO`.
    data : Dataset, str, or (X, y)
        A Dataset, the name of one (`available()` lists them), or arrays: X (N, D) may be a data
        frame, y (N,) may hold any two labels (the second in sorted order is y = 1).
    basis : None, row indices, or array (B, D)
        Basis centres: all training rows, some of them, or points in the original units of X.
    basis_labels : array (B,) of -1 and +1, optional
        Only for models whose labels enter the basis; by default the labels of the basis rows.
    standardize : bool
        Use the mean and population standard deviation of each training feature (ddof = 0); a
        constant feature is centred only.
    **hypers
        Hyperparameters of the model; those left out take its defaults, scales are filled from the
        sizes of the data (`Problem.describe` shows them).

    Raises
    ------
    InputError
        Unknown model or data set, bad X or y, a hyperparameter outside its range.
    TypeError
        A hyperparameter that the model does not have.
    """
    return make_problem(
        ZOO,
        model,
        data,
        basis=basis,
        basis_labels=basis_labels,
        standardize=standardize,
        **hypers,
    )
