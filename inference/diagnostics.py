"""When may draws be believed: R-hat, effective sample size, divergences, Pareto k-hat.

R-hat is rank-normalised and split, ESS is bulk and tail (Vehtari, Gelman, Simpson, Carpenter,
Burkner 2021, Bayesian Analysis 16), both from ArviZ. They judge Markov chains: independent draws of
an approximation always look perfect, so they are not computed for one.

k-hat (Vehtari, Simpson, Gelman, Yao, Gabry 2024, J. Mach. Learn. Res. 25) is the tail index of the
importance ratios p / q of an approximation's draws. Above `khat_limit(S)` the ratios' mean cannot
be estimated, so q misses mass of p. Below it q may still be wrong: a warning, not a verdict.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import xarray as xr

RHAT_LIMIT = 1.01
DIVERGENT_SHARE = 0.01


def rhat(values: xr.DataArray) -> np.ndarray:
    """Return R-hat of each component, flat; infinite where a component never moves.

    ArviZ gives NaN there, which is easily dropped on the way to a table.
    """
    found = _statistic("rhat", values)
    return np.where(np.isnan(found), np.inf, found)


def ess(values: xr.DataArray, method: str) -> np.ndarray:
    """Return the effective sample size of each component ("bulk" or "tail"), flat.

    A component that never moves counts as one draw a chain; ArviZ would count every draw.
    """
    found = _statistic("ess", values, method=method)
    array = values.transpose("chain", "draw", ...).values
    stuck = (array == array[:, :1]).all(axis=(0, 1)).ravel()
    return np.where(stuck, array.shape[0], found)


def _statistic(name: str, values: xr.DataArray, **settings: Any) -> np.ndarray:
    import arviz_stats

    with np.errstate(all="ignore"):
        found = getattr(arviz_stats, name)(values.to_dataset(name="x"), **settings)["x"]
    return np.asarray(found.values, dtype=float).ravel()


def worst(parts: Iterable[np.ndarray], pick: Any) -> float:
    """Return pick (np.max, np.min) over all components of all variables."""
    return float(pick(np.concatenate([np.ravel(p) for p in parts])))


def divergences(tree: xr.DataTree) -> int:
    """Return the number of divergent transitions."""
    return int(tree["sample_stats"]["diverging"].sum()) if _has(tree, "diverging") else 0


def convergence(tree: xr.DataTree) -> tuple[str, str]:
    """Return ("ok", "") or ("not_converged", why) for the draws of a Markov chain.

    Judged on `eta`, the quantity every model identifies, or on everything where there is no `eta`.
    """
    posterior = tree["posterior"].to_dataset()
    names = ["eta"] if "eta" in posterior else list(posterior.data_vars)
    if posterior.sizes["draw"] < 4:
        return "not_converged", "fewer than 4 draws a chain: convergence cannot be judged"
    value = worst((rhat(posterior[n]) for n in names), np.max)
    what = "eta" if names == ["eta"] else "all variables"
    if not value < RHAT_LIMIT:
        return "not_converged", f"worst R-hat of {what} is {value:.3f} (limit {RHAT_LIMIT})"
    total = posterior.sizes["chain"] * posterior.sizes["draw"]
    count = divergences(tree)
    if count > DIVERGENT_SHARE * total:
        return "not_converged", f"{count} of {total} transitions diverged; raise target_accept"
    return "ok", ""


def khat(log_p: np.ndarray, log_q: np.ndarray) -> float:
    """Return the Pareto k-hat of the importance ratios p / q of an approximation's draws.

    Parameters
    ----------
    log_p, log_q : array
        Log densities of the same unconstrained vectors, one a draw; draws outside the support of
        p (NaN or -inf) count as ratio 0.
    """
    from arviz_stats.base import array_stats

    ratios = np.ravel(log_p) - np.ravel(log_q)
    ratios = ratios[np.isfinite(ratios)]
    if len(ratios) < 100 or np.ptp(ratios) < 1e-9:
        return float("nan") if len(ratios) < 100 else float("-inf")
    # psislw takes minus the log ratios: it was written for leave-one-out log likelihoods
    return float(array_stats.psislw(-(ratios - ratios.max()), axis=-1)[1])


def khat_limit(samples: int) -> float:
    """Return the k-hat above which S draws cannot be reweighted: min(1 - 1 / log10 S, 0.7)."""
    return float(min(1.0 - 1.0 / np.log10(max(samples, 10)), 0.7))


def _has(tree: xr.DataTree, name: str) -> bool:
    return "sample_stats" in tree.children and name in tree["sample_stats"]
