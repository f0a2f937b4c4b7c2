"""How far P(active) of a feature is from the reference's."""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from ...fits.datatree import group
from ..draws import REPEATS
from ..floors import floor
from ..statistic import Statistic


@dataclass(frozen=True)
class Probabilities:
    """P(active) of each feature (D,), and its Monte Carlo error (D,), which is 0 for one draw."""

    p: np.ndarray
    error: np.ndarray
    draws: int = 1
    labels: tuple[str, ...] = ()


def probabilities(tree: xr.DataTree) -> Probabilities | None:
    """Return P(active) of a fit; None if the fit has none.

    If a feature was active in all draws or in none, its error is not known, and 1 / draws is used.
    """
    selection, posterior = group(tree, "selection"), group(tree, "posterior")
    if "p_active_feature" not in selection:
        return None
    p = selection["p_active_feature"].values
    draws = posterior.sizes["chain"] * posterior.sizes["draw"]
    names = selection["feature"].values if "feature" in selection.coords else range(len(p))
    labels = tuple(map(str, names))
    if draws == 1:
        return Probabilities(p, np.zeros(p.shape), 1, labels)
    error = np.nan_to_num(selection["mcse_feature"].values, nan=1.0 / draws)
    return Probabilities(p, error, draws, labels)


def differences(fit: Probabilities, reference: Probabilities) -> np.ndarray:
    """Return the absolute differences (D,) of the two probabilities."""
    return np.abs(fit.p - reference.p)


def noise(
    statistic: Statistic, fit: Probabilities, reference: Probabilities
) -> tuple[float, float]:
    """Return floor and median of the largest of normal errors with both Monte Carlo errors.

    Normal errors of any correlation have a smaller maximum than independent ones (Sidak 1967), so
    the floor is an upper bound. A fit that happens to have no draw of a feature knows its P(active)
    no better than the binomial law says with the reference's P(active).
    """
    binomial = np.sqrt(reference.p * (1.0 - reference.p) / fit.draws) if fit.draws > 1 else 0.0
    spread = np.sqrt(np.maximum(fit.error, binomial) ** 2 + reference.error**2)
    normal = np.random.default_rng(0).normal(size=(REPEATS, len(fit.p))) * spread
    return floor(statistic.reduce(np.abs(normal)))


P_ACTIVE = Statistic(
    name="p_active",
    of="selection",
    compute=differences,
    over="worst",
    floor=noise,
)
