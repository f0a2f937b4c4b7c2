"""Can draws be trusted? R-hat, effective sample size, divergences, inclusion and Pareto k-hat.

R-hat is rank-normalised and split, and ESS is bulk and tail (Vehtari, Gelman, Simpson, Carpenter,
Burkner 2021, Bayesian Analysis 16), see `chains.py`. They judge Markov chains. Independent draws of
an approximation always look perfect, so they are not computed for those. `mixing.py` says of which
quantities they are asked, and `convergence.py` what is asked of them.

A binary variable needs more. If it never changes, R-hat does not exist; if it changes twice, R-hat
may look good. `inclusion` gives the probability of each bit with a Monte Carlo error from its
effective sample size, its number of changes, and the distance between chains. Bits that never
changed are counted, but their probability is not trusted.

k-hat (Vehtari, Simpson, Gelman, Yao, Gabry 2024, J. Mach. Learn. Res. 25) is the tail index of the
importance ratios p / q of an approximation's draws. Above `khat_limit(S)` the mean of the ratios
cannot be estimated, so q misses part of the mass of p. Below the limit, q may still be wrong.
"""

from typing import Literal

import numpy as np
import xarray as xr

from . import chains
from .datatree import group


def rhat(values: xr.DataArray) -> np.ndarray:
    """Return R-hat of each component, flat; infinite for a component that never changes.

    The formula gives NaN in that case, which is easily lost on the way to a table.
    """
    found = chains.rhat(draws_of(values))
    return np.where(np.isnan(found), np.inf, found)


def ess(values: xr.DataArray, method: chains.EssKind) -> np.ndarray:
    """Return the effective sample size of each component ("bulk" or "tail"), flat.

    A component that never changes counts as one draw per chain; ArviZ would count every draw.
    """
    array = draws_of(values)
    return np.where(stuck(array), array.shape[0], chains.ess(array, method))


def mcse(values: xr.DataArray, method: Literal["mean", "sd"]) -> np.ndarray:
    """Return the Monte Carlo error of each component's "mean" or "sd", flat."""
    return chains.mcse(draws_of(values), method)


def draws_of(values: xr.DataArray) -> np.ndarray:
    """Return draws as an array (chain, draw, K)."""
    array = values.transpose("chain", "draw", ...).values
    return array.reshape(*array.shape[:2], -1)


def stuck(array: np.ndarray) -> np.ndarray:
    """Return which components (K,) of draws (chain, draw, K) change in no chain."""
    return (array == array[:, :1]).all(axis=(0, 1))


def drawn(tree: xr.DataTree) -> int:
    """Return the number of draws of all chains."""
    sizes = group(tree, "posterior").sizes
    return sizes["chain"] * sizes["draw"]


def transitions(tree: xr.DataTree) -> int:
    """Return the number of transitions of all chains: one a draw, unless draws were thinned."""
    return int(tree.attrs.get("transitions", drawn(tree)))


def divergences(tree: xr.DataTree) -> int:
    """Return the number of divergent transitions."""
    if "divergences" in tree.attrs:
        return int(tree.attrs["divergences"])
    stats = group(tree, "sample_stats")
    return int(stats["diverging"].sum()) if "diverging" in stats else 0


def lowest_energy(tree: xr.DataTree) -> float | None:
    """Return the smallest E-FMI of the chains; None if their energies are not known.

    It compares the energies of neighbouring transitions. A fit whose draws were thinned says what
    it was before that.
    """
    if "e_fmi" in tree.attrs:
        return float(tree.attrs["e_fmi"])
    stats = group(tree, "sample_stats")
    if "energy" not in stats:
        return None
    return float(bfmi(stats["energy"].transpose("chain", "draw").values).min())


def bfmi(energy: np.ndarray) -> np.ndarray:
    """Return the E-FMI of each chain of energies (chain, draw); NaN where they never change."""
    from arviz_stats.base import array_stats

    with np.errstate(divide="ignore", invalid="ignore"):
        return array_stats.bfmi(energy, chain_axis=0, draw_axis=1)


def inclusion(values: xr.DataArray) -> xr.Dataset:
    """Return how often each bit is on, and how reliable that is.

    Parameters
    ----------
    values : DataArray (chain, draw, k)
        A mask, or weights that are exactly 0 where the mask is.

    Returns
    -------
    Dataset, each over k
        probability : the share of draws that are on.
        mcse : its standard error, from the effective sample size of the bit over all chains. If two
            of four chains say on and two say off, it is 0.25: as if each chain were one draw. NaN
            for a bit that never changed: its probability is near 0 or 1, but how near is not known.
        flips : number of changes from one stored draw to the next, over all chains.
        spread : the largest distance of a chain's own probability from the mean of all chains.
        unmoved : the bit has the same value in every draw of every chain.
    """
    on = (values != 0).transpose("chain", "draw", ...).astype(float)
    array, mean = on.values, on.mean(("chain", "draw"))
    unmoved = (array == array[:1, :1]).all((0, 1))
    mcse = np.full(unmoved.shape, np.nan)
    mcse[~unmoved] = _error(array[..., ~unmoved])
    flips = (array[:, 1:] != array[:, :-1]).sum((0, 1))
    dims = mean.dims
    return xr.Dataset(
        {
            "probability": mean,
            "mcse": (dims, mcse),
            "flips": (dims, flips),
            "spread": (dims, np.abs(array.mean(1) - mean.values).max(0)),
            "unmoved": (dims, unmoved),
        }
    )


def _error(bits: np.ndarray) -> np.ndarray:
    """Return the Monte Carlo error (k,) of the means of bits (chain, draw, k) that change."""
    p, draws = bits.mean(axis=(0, 1)), bits.shape[1]
    size = chains.bits(bits)[1] if draws >= chains.FEWEST else np.full(len(p), float(len(bits)))
    return np.sqrt(p * (1.0 - p) / np.maximum(size - 1.0, 1.0))


def masks(tree: xr.DataTree) -> dict[str, xr.DataArray]:
    """Return the weights that a binary mask switches off, by name."""
    posterior = tree["posterior"].to_dataset()
    return {n: posterior[n] for n in tree.attrs.get("masked", "").split() if n in posterior}


def khat(log_p: np.ndarray, log_q: np.ndarray) -> float:
    """Return the Pareto k-hat of the importance ratios p / q of an approximation's draws.

    Parameters
    ----------
    log_p, log_q : array (S,)
        Log densities of the same unconstrained vectors, one per draw of q. They need no constants.
        Draws outside the support of p (NaN or -inf) count as ratio 0.

    Returns
    -------
    float
        Above 0.7 (fewer than 2200 draws: above 1 - 1 / log10 S), q misses part of the mass of p.
        Below, q may still be wrong where none of its draws is. NaN from fewer than 100 draws.

    Examples
    --------
    >>> import numpy as np
    >>> import ardvark as av
    >>> narrow = np.random.default_rng(0).normal(scale=0.3, size=2000)
    >>> log_p, log_q = -0.5 * narrow**2, -0.5 * (narrow / 0.3) ** 2  # p is a standard normal
    >>> av.inference.khat(log_p, log_q) > 0.7
    True
    """
    return smoothed(np.ravel(log_p) - np.ravel(log_q))[1]


def smoothed(log_ratios: np.ndarray) -> tuple[np.ndarray, float]:
    """Return Pareto-smoothed importance weights, which add up to 1, and their k-hat.

    Parameters
    ----------
    log_ratios : array (...,)
        One per draw, but for a constant. NaN and -inf are weights 0.

    Returns
    -------
    array (...,), float
        Equal ratios have a k-hat of -inf, and fewer than 100 that are finite one of NaN.
    """
    from arviz_stats.base import array_stats

    usable = np.isfinite(log_ratios)
    log_w = log_ratios[usable] - log_ratios[usable].max(initial=-np.inf)
    k = float("nan")
    if len(log_w) >= 100:
        k = float("-inf")
        if np.ptp(log_w) >= 1e-9:
            # psislw takes minus the log ratios: it was written for leave-one-out log likelihoods
            log_w, k = array_stats.psislw(-log_w, axis=-1)
    weights = np.zeros(np.shape(log_ratios))
    weights[usable] = np.exp(log_w - log_w.max(initial=-np.inf))
    return weights / max(weights.sum(), 1e-300), float(k)


def khat_limit(samples: int) -> float:
    """Return the k-hat above which S draws cannot be reweighted: min(1 - 1 / log10 S, 0.7)."""
    return float(min(1.0 - 1.0 / np.log10(max(samples, 10)), 0.7))
