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

from collections.abc import Sequence
from typing import Any, Literal, get_args

from pytensor import config

from ardvark.common.validate import logger
from ardvark.data import Dataset

from .always import columns_of, compared, features_of, listed, standardization
from .arguments import (
    as_dataset,
    basis_centres,
    filled,
    hypers_asked,
    model_named,
    refuse_covariates,
)
from .centres import refuse_many
from .problems import Problem
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
    always: Sequence[str] = (),
    groups: Any = None,
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
    basis : None, "auto", row indices, or array (B, D)
        Basis centres: all training rows, some of them, or points in the original units of X. "auto"
        draws 200 rows within each class, which keep their labels: for a kernel with thousands of
        rows. The posterior is then the one given these centres.
    basis_labels : array (B,) of -1 and +1, optional
        Only for models whose labels enter the basis; by default the labels of the basis rows.
    standardize : bool
        Use the mean and population standard deviation of each training feature (ddof = 0). A
        feature that does not vary in the training rows, but for rounding, contributes nothing to
        any row, standardised or not. Nothing can be learned of it: its effect on rows with other
        values would be that of the prior alone, and in the training rows it would be a second bias.
        `ardvark.predict` warns of such rows.
    always : sequence of str
        Columns that are always in the model, such as age and sex: covariates with the prior
        Normal(0, covariate_sd) each, per standard deviation of the column. They are outside of the
        kernel, never selected and never counted as active; features are judged beside them. The
        data must have names: a frame, a Dataset, a table. A text column of a frame has a covariate
        for each of its levels but one, the reference: the first, or what the table says
        (`ardvark.table(..., reference=["batch=plate1"])`). Their effects are against it.
    groups : array (N,), or the name of a column of a frame, optional
        Which rows belong together, such as visits of a patient: splits, folds, panels and baselines
        keep them on one side.
    **hypers
        Hyperparameters of the model. Those left out take their defaults; scales are computed from
        the sizes of the data (`Problem.describe` shows them).

    Raises
    ------
    InputError
        Unknown model or data set, bad X or y, a hyperparameter outside its range; an unknown column
        in `always`, every column in it, or data without names; more rows than a kernel can have
        centres.
    TypeError
        A hyperparameter that the model does not have.

    Examples
    --------
    >>> import ardvark as av
    >>> av.problem("rfvm", "digits38").X.shape
    (357, 64)
    >>> av.problem("pfcvm", [[1.0, 2.0], [2.0, 4.0], [3.0, 1.0]], ["no", "yes", "no"], kernel="rbf")
    Problem('pfcvm' on 'data': N=3, D=2, B=3, fingerprint ...)
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": [31, 45, 52], "sex": ["f", "m", "f"], "gene": [0.1, 0.7, 0.2]})
    >>> adjusted = av.problem("rfvm", frame, ["well", "ill", "ill"], always=["age", "sex"])
    >>> adjusted.feature_names, adjusted.always
    (('gene',), ('age', 'sex=m'))
    """
    spec = ZOO[model_named(ZOO, model, data)]
    asked = hypers_asked(ZOO, spec, hypers)
    names_always = listed(always)
    dataset = compared(as_dataset(data, y, X, names_always, groups), names_always)
    columns = columns_of(dataset, names_always) if names_always else ()
    refuse_covariates(spec, bool(columns), hypers)
    center, scale, covariates = standardization(dataset, standardize, columns)
    if constant := dataset.constant_features:  # named here once, and not again by each fold
        shown = ", ".join(constant[:10]) + (", ..." if len(constant) > 10 else "")
        said = "%s: %d constant feature(s), which contribute nothing: %s"
        logger.info(said, dataset.name, len(constant), shown)
    rows = features_of(dataset.X, dataset, covariates) if covariates else dataset.X
    if spec.kernels and not asked.kernel_of().is_linear:
        refuse_many(dataset.N, basis)
    centres, names, labels = basis_centres(dataset, rows, basis, basis_labels, spec)
    return Problem(
        spec=spec,
        data=dataset,
        asked=asked,
        hypers=filled(asked, dataset.N, len(centres), rows.shape[1]),
        basis=centres,
        basis_names=names,
        basis_labels=labels,
        center=center,
        scale=scale,
        covariates=covariates,
        standardize=standardize,
    )
