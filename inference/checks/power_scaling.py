"""Power scaling: how a posterior moves when its prior, or likelihood, is made a little stronger.

The prior is raised to a power alpha near 1, and the draws of one fit are reweighted by smoothed
importance sampling with weights p(theta)^(alpha - 1). The sensitivity of a quantity is the distance
(cumulative Jensen-Shannon) between its two distributions per doubling of alpha. Above `LIMIT` the
quantity is sensitive. Kallioinen, Paananen, Burkner, Vehtari (2024), "Detecting and diagnosing
prior and likelihood sensitivity with power-scaling", Stat. Comput. 34, 57; ArviZ computes it
(`psense`).

The prior is that of the variables on which the likelihood depends, with precisions and latent noise
integrated out (`Problem.log_prior`). It is the same in every form. A sparse prior of D weights is a
product of D factors, so doubling alpha is a far larger step than doubling `active_features`:
P(visible) ~ (scale / threshold) of a half-Cauchy weight is squared. So in these models the prior
matters almost always. The parts show which part of it matters, and refits (`sensitivity.py`) show
how much another plausible prior changes. With many features the importance weights may be
unreliable; their k-hat shows that.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import xarray as xr

from ardvark.common.validate import InputError

from ..fits.datatree import group, pointwise
from ..fits.diagnostics import khat, khat_limit

LIMIT = 0.05
"""Of Kallioinen et al.; a normal mean that moves by 0.3 sd a doubling has about this much."""
ALPHAS = (0.99, 1.01)
FEWEST = 100
"""Draws below which a k-hat says nothing."""


def power_scaling(
    tree: xr.DataTree,
    quantities: Mapping[str, xr.DataArray] | None = None,
    alphas: tuple[float, float] = ALPHAS,
) -> pd.DataFrame:
    """Return how far quantities of a fit depend on the prior and on the likelihood.

    Parameters
    ----------
    tree : xarray.DataTree
        A fit with the groups log_prior and log_likelihood.
    quantities : dict of DataArray (chain, draw, ...), optional
        By default the bias; eta; the margin, which is the mean over rows of (2 y - 1) eta; how many
        features and samples are active. Of several components the most sensitive one counts. Draws
        that are NaN in every component are left out.
    alphas : (float, float)
        The powers, one below and one above 1.

    Returns
    -------
    pandas.DataFrame
        One row per quantity. `prior` and `likelihood` are the sensitivities.
        `prior_feature_weight`, `prior_sample_weight` and `prior_rest` are those to each part of the
        prior alone. `khat` is the largest tail index of the importance weights of prior and
        likelihood. `diagnosis` is "" if there is nothing to report.

    Raises
    ------
    InputError
        A group is missing, or there are too few draws.

    Examples
    --------
    >>> import arviz as az
    >>> import numpy as np
    >>> import ardvark as av
    >>> problem = av.problem("rvm", [[0.0], [1.0], [3.0]], [0, 0, 1])
    >>> rng = np.random.default_rng(0)
    >>> simulated = [problem.simulate(rng) for _ in range(6000)]
    >>> exact = [s for s in simulated if (s["y"] == problem.y).all()]  # rejection sampling
    >>> chains = exact[:300], exact[300:600]
    >>> names = ("alpha", "bias", "sample_weight", "feature_weight")
    >>> draws = {name: np.array([[s[name] for s in chain] for chain in chains]) for name in names}
    >>> stats = {"lp": problem.log_density(draws)}
    >>> fit = av.adopt(problem, az.from_dict({"posterior": draws, "sample_stats": stats}))
    >>> table = av.power_scaling(fit)
    >>> table.index.tolist()
    ['bias', 'eta', 'margin', 'active features', 'active samples']
    >>> table.loc["margin", "diagnosis"]
    'prior and data both matter'
    """
    prior, likelihood = group(tree, "log_prior"), pointwise(tree)
    for missing, part in (("log_prior", prior), ("log_likelihood", likelihood)):
        if not part.data_vars:
            raise InputError(
                f"power scaling needs the group {missing}, which this fit lacks. Either not all "
                "variables were kept (keep='all' keeps them), or the fit predates that group."
            )
    if prior.sizes["chain"] * prior.sizes["draw"] < FEWEST:
        raise InputError(f"power scaling needs at least {FEWEST} draws in total.")
    found = _quantities(tree) if quantities is None else dict(quantities)
    together: dict[bytes, list[str]] = {}  # those of the same draws share importance weights
    for name, values in found.items():
        array = found[name] = values.transpose("chain", "draw", ...)
        looked = ~np.isnan(array.values.reshape(*array.shape[:2], -1)).all(-1).any(0)
        together.setdefault(looked.tobytes(), []).append(name)
    rows: dict[str, dict[str, float | str]] = {}
    for mask, names in together.items():
        draws = np.frombuffer(mask, dtype=bool)
        some = {name: found[name].isel(draw=draws) for name in names}
        rows |= _rows(some, prior.isel(draw=draws), likelihood.isel(draw=draws), alphas)
    frame = pd.DataFrame([rows[name] for name in found], index=list(found))
    frame.index.name = "quantity"
    return frame


def _quantities(tree: xr.DataTree) -> dict[str, xr.DataArray]:
    posterior, selection = group(tree, "posterior"), group(tree, "selection")
    sign = 2.0 * group(tree, "observed_data")["y"].values - 1.0
    eta = posterior["eta"]
    found = {"bias": posterior["bias"]} if "bias" in posterior else {}
    found |= {"eta": eta, "margin": (eta * sign).mean("obs")}
    if tree.attrs.get("kind") == "reference" and "draw" in selection.dims:  # counts of all draws
        thin = int(tree.attrs["thin"])
        selection = selection.isel(draw=slice(thin - 1, None, thin))
    counts = {"active features": "active_features", "active samples": "active_samples"}
    known = {k: selection[name] for k, name in counts.items() if name in selection}
    return found | {k: n for k, n in known.items() if np.isfinite(n.values).sum() >= FEWEST}


def _rows(
    found: Mapping[str, xr.DataArray],
    prior: xr.Dataset,
    likelihood: xr.Dataset,
    alphas: tuple[float, float],
) -> dict[str, dict[str, float | str]]:
    from arviz_stats import psense

    # without coordinates, whose names could clash
    posterior = {
        f"x{i}": (("chain", "draw", *(f"x{i}_{d}" for d in x.dims[2:])), x.values)
        for i, x in enumerate(found.values())
    }
    groups = {
        "/posterior": xr.Dataset(posterior),
        "/log_prior": prior,
        "/log_likelihood": likelihood,
    }
    tree = xr.DataTree.from_dict(groups)

    def sensitivity(what: str, part: str | None = None) -> list[float]:
        with np.errstate(all="ignore"):
            values = psense(tree, group=what, group_var_names=part, alphas=alphas)
        return [float(values[x].max()) for x in posterior]

    sums = [_total(prior), _total(likelihood)]
    draws = sums[0].size
    worst = max(khat((a - 1.0) * s, np.zeros(draws)) for a in alphas for s in sums)
    columns = {"prior": sensitivity("prior"), "likelihood": sensitivity("likelihood")}
    columns |= {f"prior_{part}": sensitivity("prior", str(part)) for part in prior.data_vars}
    rows: dict[str, dict[str, float | str]] = {}
    for i, name in enumerate(found):
        values = {column: numbers[i] for column, numbers in columns.items()}
        diagnosis = _diagnosis(values["prior"], values["likelihood"], worst, draws)
        rows[name] = {**values, "khat": worst, "diagnosis": diagnosis}
    return rows


def _total(part: xr.Dataset) -> np.ndarray:
    """Return the sum over everything but draws (chain, draw)."""
    arrays = (x.transpose("chain", "draw", ...).values for x in part.values())
    return np.sum([x.reshape(*x.shape[:2], -1).sum(-1) for x in arrays], axis=0)


def _diagnosis(prior: float, likelihood: float, worst: float, draws: int) -> str:
    if not worst < khat_limit(draws):
        return "weights fail: refit"
    if prior < LIMIT or np.isnan(prior):
        return ""
    if likelihood < LIMIT:
        return "strong prior or weak likelihood"
    return "prior and data both matter"
