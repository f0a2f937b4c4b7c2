"""What is stored of a long run besides some of its draws, and the criteria that it has to meet.

The criteria ("the bar") are those of posteriordb (Magnusson et al. 2025, AISTATS), the profile
`REFERENCE` of `fits/convergence.py`: at least four chains; R-hat below 1.01 for every scalar; bulk
and tail ESS of 4000 for eta and the weights; no divergence; E-FMI above 0.2; nearly uncorrelated
stored draws. One criterion is added: R-hat of
everything that may be quoted, bits included, is below its limit (`fits/mixing.py`). A run that
misses a criterion is still stored, together with that criterion and its number. Its Monte Carlo
errors say how precise it is.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr
from scipy import stats

from ardvark.inference.fits import chains, diagnostics
from ardvark.inference.fits.convergence import REFERENCE
from ardvark.inference.fits.datatree import group
from ardvark.inference.fits.mixing import RHAT_LIMIT, mixing_of
from ardvark.models import SHARED

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
STATISTICS = (
    "mean", "sd", *(f"q{100 * q:02.0f}" for q in QUANTILES),
    "mcse_mean", "mcse_sd", "ess_bulk", "ess_tail", "rhat",
)  # fmt: skip
"""What is known of each component."""
AUTOCORRELATION = 0.05
QUOTED = "quantities above their R-hat limit"
"""The name of that line of the bar."""
ALARM = 0.001
"""Probability that two right runs are said to differ in any number that `agreement` looks at."""


# --- the summary ----------------------------------------------------------------------------------


def summarise(tree: xr.DataTree) -> xr.Dataset:
    """Return moments, quantiles, Monte Carlo errors and diagnostics of eta, weights and scalars.

    Parameters
    ----------
    tree : DataTree
        A fit by a Markov chain.

    Returns
    -------
    Dataset
        Each quantity (statistic, component's dim), with the statistics in `STATISTICS`. Convergence
        statistics are NaN for a component that never changes. Constants of the model are left out.
    """
    posterior, fixed = group(tree, "posterior"), str(tree.attrs.get("fixed", "")).split()
    found = {}
    for name, values in posterior.data_vars.items():
        if name in fixed or (name not in SHARED and values.ndim > 2):
            continue
        array = values.transpose("chain", "draw", ...)
        dims = array.dims[2:]
        found[str(name)] = (("statistic", *dims), _of_one(array).reshape(-1, *array.shape[2:]))
    return xr.Dataset(found, coords={"statistic": list(STATISTICS)})


def _of_one(values: xr.DataArray) -> np.ndarray:
    """Return the statistics (statistic, K) of one variable's components."""
    draws = values.values.reshape(values.shape[0] * values.shape[1], -1).astype(float)
    moves = (draws != draws[:1]).any(axis=0)
    out = np.full((len(STATISTICS), draws.shape[1]), np.nan)
    out[0], out[1] = draws.mean(axis=0), draws.std(axis=0, ddof=1)
    out[2 : 2 + len(QUANTILES)] = np.quantile(draws, QUANTILES, axis=0)
    if moves.any():
        live = draws[:, moves].reshape(*values.shape[:2], -1)
        rhat, bulk, tail = chains.mixed(live)
        errors = [chains.mcse(live, "mean"), chains.mcse(live, "sd")]
        out[-5:, moves] = [*errors, bulk, tail, rhat]
    return out


def extreme(summary: xr.Dataset, statistic: str, names: list[str] | None = None) -> float:
    """Return the worst R-hat, or the smallest of another statistic, over all that moved."""
    chosen = summary if names is None else summary[[n for n in names if n in summary]]
    parts = [chosen[n].sel(statistic=statistic).values.ravel() for n in chosen.data_vars]
    values = np.concatenate([*parts, np.empty(0)])
    values = values[~np.isnan(values)]
    if not len(values):
        return float("nan")
    return float(values.max() if statistic == "rhat" else values.min())


# --- the bar --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Line:
    """One criterion of the bar: its name, the limit in words, the number and whether it is met."""

    what: str
    limit: str
    value: float
    met: bool


def bar(tree: xr.DataTree, summary: xr.Dataset, thin: int) -> list[Line]:
    """Return every line of the bar that concerns a fit.

    Parameters
    ----------
    tree : DataTree
        All draws of the run.
    summary : Dataset
        The result of `summarise`.
    thin : int
        One draw in every `thin` is stored.
    """
    sample_stats = group(tree, "sample_stats")
    count = float(group(tree, "posterior").sizes["chain"])
    least = REFERENCE.chains
    lines = [Line("chains", f"at least {least}", count, count >= least)]
    rhat = extreme(summary, "rhat")
    lines.append(Line("R-hat", f"below {RHAT_LIMIT}", rhat, rhat < RHAT_LIMIT))
    mixed = mixing_of(tree)
    beyond = len(mixed.beyond(float("inf")).table)
    lines.append(Line(QUOTED, "none", beyond, not beyond))
    for kind, ess in (("bulk", REFERENCE.bulk), ("tail", REFERENCE.tail)):
        size = extreme(summary, f"ess_{kind}", list(SHARED))
        lines.append(Line(f"{kind} ESS", f"at least {ess:.0f}", size, size >= ess))
    if "diverging" in sample_stats:
        count = float(diagnostics.divergences(tree))
        lines.append(Line("divergences", "none", count, count == REFERENCE.divergent))
    low = diagnostics.lowest_energy(tree)
    if low is not None:
        lines.append(Line("E-FMI", f"above {REFERENCE.energy}", low, low > REFERENCE.energy))
    memory = autocorrelation(group(tree, "posterior")["eta"], thin)
    lines.append(
        Line("autocorrelation", f"below {AUTOCORRELATION}", memory, memory < AUTOCORRELATION)
    )
    for name, weight in diagnostics.masks(tree).items():
        flips = float(diagnostics.inclusion(weight)["flips"].min())
        lines.append(Line(f"fewest flips of a bit of {name}", "counted", flips, True))
    return lines


def autocorrelation(values: xr.DataArray, lag: int) -> float:
    """Return the largest |autocorrelation| over components at a lag, from all draws.

    If the lag is the distance between stored draws, this is their lag-1 autocorrelation. The few
    stored draws alone would not give it with an error below 0.05.
    """
    x = values.transpose("chain", "draw", ...).values
    if x.shape[1] <= lag:
        return 0.0  # one stored draw a chain
    x = x - x.mean(axis=(0, 1))
    products = (x[:, lag:] * x[:, :-lag]).mean(axis=(0, 1))
    return float(np.abs(products / np.square(x).mean(axis=(0, 1))).max())


# --- two runs -------------------------------------------------------------------------------------


def agreement(first: xr.DataTree, second: xr.DataTree) -> pd.DataFrame:
    """Return for each quantity whether two runs agree within Monte Carlo error.

    The means and sds of every component in the groups "summary" are compared, and P(active) in the
    groups "selection". The difference of two independent runs, divided by the root of the sum of
    their squared errors, follows Student's t with about ESS - 1 degrees of freedom, where ESS is
    the smaller effective size. The limit is Bonferroni's over all numbers compared, with a total
    false-alarm probability of `ALARM`; it is valid whatever the dependence among them. A component
    that changed in only one run has the error of that run in both. A component that changed in
    neither run must be equal.

    Returns
    -------
    pandas.DataFrame
        One row per quantity: `numbers` compared, the largest `z`, the `limit` at that component,
        the number `beyond` their limit, and `agrees`.
    """
    compared = list(_compared(first, second))
    total = sum(len(z) for _, z, _ in compared)
    rows = {}
    for name, z, size in compared:
        limit = stats.t.isf(ALARM / (2 * total), np.maximum(size - 1.0, 1.0))
        beyond = ~(z <= limit)
        worst = int(np.argmax(np.where(np.isnan(z), np.inf, z) / limit))
        rows[name] = (len(z), z[worst], limit[worst], int(beyond.sum()), not beyond.any())
    columns = ["numbers", "z", "limit", "beyond", "agrees"]
    frame = pd.DataFrame.from_dict(rows, orient="index", columns=columns)
    frame.index.name = "quantity"
    return frame


def _compared(
    first: xr.DataTree, second: xr.DataTree
) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield name, |z| (K,) and the smaller effective sizes (K,) of everything compared."""
    one, two = (group(t, "summary") for t in (first, second))
    for name in one.data_vars:
        for moment in ("mean", "sd"):
            a, b = (
                s[name].sel(statistic=[moment, f"mcse_{moment}", "ess_bulk"]).values.reshape(3, -1)
                for s in (one, two)
            )
            yield f"{moment} of {name}", _z(a[0], b[0], a[1], b[1]), _size(a[2], b[2])
    one, two = (group(t, "selection") for t in (first, second))
    for what in ("feature", "sample"):
        name = f"p_active_{what}"
        if name in one and name in two:
            p, q = one[name].values, two[name].values
            errors = (s[f"mcse_{what}"].values for s in (one, two))
            batches = min(s.attrs[f"batches_{what}s"] for s in (one, two))
            yield f"P(active) of {what}s", _z(p, q, *errors), np.full(len(p), float(batches))


def _z(a: np.ndarray, b: np.ndarray, error_a: np.ndarray, error_b: np.ndarray) -> np.ndarray:
    """Return |a - b| over its standard error; infinite if both never change and differ."""
    own = np.where(np.isnan(error_a), error_b, error_a)
    other = np.where(np.isnan(error_b), error_a, error_b)
    error = np.sqrt(np.nan_to_num(own) ** 2 + np.nan_to_num(other) ** 2)
    distance = np.abs(a - b)
    # summaries are stored in single precision
    same = distance <= 4.0 * np.finfo(np.float32).eps * np.maximum(np.abs(a), np.abs(b))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(same, 0.0, distance / error)


def _size(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the smaller effective size of each component; any value if neither ever changed."""
    return np.nan_to_num(np.fmin(a, b), nan=2.0)
