"""`complete` adds the groups that ArviZ's predictive checks need.

    prior                  prior draws of every variable in the posterior
    prior_predictive       labels at the training rows for these draws
    posterior_predictive   labels at the training rows, one set per posterior draw
    log_prior              the prior density at the posterior draws

With them, ArviZ's plot_prior_posterior, plot_ppc_*, loo_pit and psense run. Predictive labels have
their own latent noise: they belong to other samples with the same inputs. In a model with labels in
its basis (PFCVM, PCVM), the basis keeps the observed labels. If the likelihood is not that of a
label (link "identity"), the model draws real numbers around 0 and 1, in the units of y.
"""

from typing import Any

import numpy as np
import xarray as xr

from ardvark.common.validate import whole
from ardvark.models import Problem

from ..fits.datatree import check_same, dataset, group, log_prior, problem_dims


def complete(
    problem: Problem, tree: xr.DataTree, *, draws: int = 500, random_seed: int = 0
) -> xr.DataTree:
    """Return a fit with prior and predictive draws added; the given one stays as it is.

    Parameters
    ----------
    problem : Problem
        The problem that was fitted.
    tree : xarray.DataTree
        A fit of it, of any kind; or one that was adopted.
    draws : int
        Draws of the prior.
    random_seed : int
        Equal seeds give equal draws.

    Returns
    -------
    xarray.DataTree
        The fit with the groups of this module's docstring.

    Raises
    ------
    InputError
        The fit is of another problem, holds no draws, or lacks a variable that labels depend on;
        or the prior cannot be drawn from in float64.

    Examples
    --------
    >>> import ardvark as av
    >>> problem = av.problem("pfcvm", av.load("digits38").take(range(40)))
    >>> fit = av.fit(problem, "paper", draws=50, random_seed=0, progressbar=False)
    >>> full = av.complete(problem, fit, draws=20)
    >>> sorted(set(full.children) - set(fit.children))
    ['posterior_predictive', 'prior', 'prior_predictive']
    >>> dict(full["prior_predictive"]["y"].sizes)
    {'chain': 1, 'draw': 20, 'obs': 40}
    """
    check_same(problem, tree)
    draws, seed = whole("draws", draws, 1), whole("random_seed", random_seed)
    for_prior, for_labels = map(np.random.default_rng, np.random.SeedSequence(seed).spawn(2))
    posterior = group(tree, "posterior")
    point = {str(k): v.transpose("chain", "draw", ...).values for k, v in posterior.items()}
    dims: dict[str, tuple[str, ...]] = {**problem_dims(problem), "y": ("obs",)}

    def drawn(arrays: dict[str, np.ndarray]) -> xr.DataTree:
        return xr.DataTree(dataset(arrays, dims, problem.coords, draws=True))

    prior = _prior(problem, draws, for_prior)
    out = tree.copy()
    out["prior"] = drawn({name: prior[name] for name in point if name in prior})
    out["prior_predictive"] = drawn({"y": prior["y"]})
    out["posterior_predictive"] = drawn({"y": _labels(problem, point, for_labels)})
    held = set(problem.shapes) <= set(point) and posterior["eta"][..., 0].size > 1
    if "log_prior" not in out.children and held:
        out["log_prior"] = drawn(log_prior(problem, point))
    return out


def _prior(problem: Problem, draws: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return draws of everything (1, draw, ...), labels included."""
    points = []
    for _ in range(draws):
        point = problem.simulate(rng)
        points.append({**problem.to_free(point), **point})
    return {name: np.stack([p[name] for p in points])[None] for name in points[0]}


def _labels(problem: Problem, point: dict[str, Any], rng: np.random.Generator) -> np.ndarray:
    """Return labels (chain, draw, N) at the training rows, one set per draw."""
    eta = point["eta"] if "eta" in point else problem.decision(point)
    if problem.spec.link == "identity":  # s = 2y - 1 is normal
        return (1.0 + rng.normal(eta, np.asarray(point["tau"])[..., None] ** -0.5)) / 2.0
    return (np.log(rng.random(eta.shape)) < problem.log_predictive(1, eta, point)).astype(int)
