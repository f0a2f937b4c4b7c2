"""What each paper assumes: one file per paper, one registry, one function to make a problem.

>>> from typing import get_args
>>> from ardvark.models import SHARED, ZOO, ModelName
>>> SHARED  # what every model with a basis has
('feature_weight', 'sample_weight', 'eta')
>>> ZOO["rfvm"].title
'Relevance Feature and Vector Machine'
>>> set(get_args(ModelName)) == set(ZOO)
True
"""

from typing import Any, Literal, get_args

from pytensor import config

from ardvark.common.validate import logger
from ardvark.data import Dataset

from .arguments import as_dataset, basis_centres, hypers_asked, model_named
from .problems import Problem, filled, standardization
from .spec import SHARED, BaseHypers, Inputs, ModelSpec, Zoo

# PyTensor writes the source of each function that it makes to a file, which tracebacks and Numba
# read. By default this is a new file in the temporary folder, and nobody removes it. Here the files
# are beside PyTensor's cache of compiled code, one for each source, and PyTensor removes those that
# were not used for a month. That cache is looked up by content and does not depend on the files.
if not config.generated_src_dir:
    config.generated_src_dir = str(config.base_compiledir / "generated")

ModelName = Literal[
    "pfcvm",
    "pcvm",
    "rvm",
    "jcfo",
    "sparse_probit",
    "fsklr",
    "sklr",
    "fs_skr",
    "rfvm",
    "horseshoe",
]
"""The names in `ZOO`, for editors to complete."""

ZOO = Zoo(__name__, {name: f".{name}" for name in get_args(ModelName)}, ModelSpec.of)
"""Every model, by name: those of the four papers, the simpler models that they extend, and a
regularised horseshoe to compare them with."""

__all__ = [
    "SHARED",
    "ZOO",
    "BaseHypers",
    "Inputs",
    "ModelName",
    "ModelSpec",
    "Problem",
    "problem",
]


def problem(
    model: ModelName | str,
    data: Dataset | str | tuple[Any, Any] | Any = None,
    y: Any = None,
    *,
    X: Any = None,
    basis: Any = None,
    basis_labels: Any = None,
    standardize: bool = True,
    **hypers: Any,
) -> Problem:
    """Return the problem of fitting a model of the zoo to data.

    Parameters
    ----------
    model : str
        A name in `ZOO`, in capitals or not.
    data : Dataset, str, (X, y), or X
        A Dataset, the name of one (`available()` lists them), or arrays: X (N, D) may be a data
        frame, y (N,) may hold any two labels (the second in sorted order is y = 1) or name the
        column of the frame that holds them.
    y, X : array-like, or str
        The same as arguments of their own: `problem(model, X, y)`, `problem(model, X=X, y=y)`,
        `problem(model, frame, "column")`.
    basis : None, row indices, or array (B, D)
        Basis centres: all training rows, some of them, or points in the original units of X.
    basis_labels : array (B,) of -1 and +1, optional
        Only for models whose labels enter the basis; by default the labels of the basis rows.
    standardize : bool
        Use the mean and population standard deviation of each training feature (ddof = 0); a
        constant feature is only centred.
    **hypers
        Hyperparameters of the model. Those left out take their defaults; scales are computed from
        the sizes of the data (`Problem.describe` shows them).

    Raises
    ------
    InputError
        Unknown model or data set, bad X or y, a hyperparameter outside its range.
    TypeError
        A hyperparameter that the model does not have.

    Examples
    --------
    >>> import ardvark as av
    >>> av.problem("rfvm", "digits38").X.shape
    (357, 64)
    >>> av.problem("pfcvm", [[1.0, 2.0], [2.0, 4.0], [3.0, 1.0]], ["no", "yes", "no"], kernel="rbf")
    Problem('pfcvm' on 'data': N=3, D=2, B=3, fingerprint ...)
    """
    spec = ZOO[model_named(ZOO, model, data)]
    asked = hypers_asked(ZOO, spec, hypers)
    dataset = as_dataset(data, y, X)
    center, scale = standardization(dataset, standardize)
    if standardize and dataset.constant_features:  # named here once, and not again by each fold
        constant = dataset.constant_features
        shown = ", ".join(constant[:10]) + (", ..." if len(constant) > 10 else "")
        logger.info(
            "%s: %d constant feature(s), centred only: %s", dataset.name, len(constant), shown
        )
    centres, names, labels = basis_centres(dataset, basis, basis_labels, spec)
    return Problem(
        spec=spec,
        data=dataset,
        asked=asked,
        hypers=filled(asked, dataset, len(centres)),
        basis=centres,
        basis_names=names,
        basis_labels=labels,
        center=center,
        scale=scale,
    )
