"""Go on with a run of `exact` that ended before it had converged."""

import dataclasses
import json
from typing import TYPE_CHECKING, Any

import xarray as xr

from ardvark.common.validate import InputError
from ardvark.models import Problem

from ..fits.datatree import check_same
from ..fits.own_groups import data_of, other_data
from ..target.sampling import Sampling
from ..target.target import Target
from .checkpoint import earlier_of
from .registry import prepare
from .run import compute

if TYPE_CHECKING:
    import pymc as pm


def resume(
    problem: "Problem | pm.Model", fit: xr.DataTree, *, progressbar: bool = True, **options: Any
) -> xr.DataTree:
    """Take a fit by `exact` on from where it ended, and return the fit by all draws together.

    Parameters
    ----------
    problem : Problem or pm.Model
        What was fitted.
    fit : xarray.DataTree
        A fit of it by ``method="exact"``, also one that was stored and read again. It stays as it
        is.
    progressbar : bool
        Show each stage.
    **options
        Options of `exact` that change. By default `limit` is four times that of the fit, and there
        is no limit of time.

    Returns
    -------
    xarray.DataTree
        A fit, as `ardvark.fit` returns it. Its draws are not those of one longer run under the same
        seed, so ``attrs["reproducible"]`` is 0, and a study does not reuse it.

    Raises
    ------
    InputError
        The fit is of another problem or of other data, by another method, or holds no draws.

    Examples
    --------
    >>> import numpy as np
    >>> import ardvark as av
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> problem = av.problem("sparse_probit", X, X[:, 0] > 0)
    >>> asked = {"sampler": "gibbs", "ess": 100, "random_seed": 0, "progressbar": False}
    >>> fit = av.fit(problem, "exact", **asked)
    >>> more = av.resume(problem, fit, ess=400, progressbar=False)  # for half the errors
    >>> more.attrs["status"], more.attrs["iterations"] > fit.attrs["iterations"]
    ('finished', True)
    """
    target = Target(problem)
    if target.problem is not None:
        check_same(target.problem, fit)
    elif other := other_data(data_of(target.model), fit):
        raise InputError(
            f"{other} of this fit differs from that of this model: it was made with other data. "
            "Fit the model anew, or set its data as they were."
        )
    if fit.attrs.get("method") != "exact":
        raise InputError(
            f"only a fit by 'exact' can go on, and this one is by {fit.attrs.get('method')!r}."
        )
    attrs = fit.attrs
    asked = json.loads(attrs["options"])
    given = {"limit": 4 * asked["limit"], "minutes": None, "sampler": attrs["sampler"]} | options
    names = {f.name for f in dataclasses.fields(Sampling)} - {"seed", "progressbar"}
    sampling = Sampling(
        seed=int(attrs["seed"]),
        progressbar=progressbar,
        **{n: attrs[n] for n in names} | {"draws": attrs.get("draws_asked", attrs["draws"])},
    )
    plan = prepare("exact", target, asked | given, sampling)
    return compute(plan, earlier=earlier_of(fit))
