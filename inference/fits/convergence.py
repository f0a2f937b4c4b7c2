"""Have chains converged? One table of what each use of them asks, and one rule that reads it.

    profile  chains  R-hat below                       bulk ESS  tail ESS  divergent  E-FMI
    FIT           2  its limit; from ESS 400 noise            -         -      0.1 %    0.2
    EXACT         2  its limit                             1000       400      0.1 %    0.2
    VERDICT       2  its noise                              400       400      0.1 %    0.2

`mixing.py` says of which quantities this is asked, and has the limit and the noise of each R-hat.

- A fit has the status "finished" by FIT. It asks for no effective sample size: Monte Carlo errors
  say how precise the draws are. Below an ESS of 400 Vehtari et al. (2021) do not trust R-hat, so
  its limit stays; from there on it may be as large as that of agreeing chains is by chance.
- `exact` runs until EXACT is met. The Monte Carlo error of a mean is then 3 % of the posterior sd,
  and that of a probability at most 0.016. Quantiles are known to about 1 % of probability, and more
  is not needed for an interval. Divergences and energies do not change with the length of a run, so
  they are asked for at its end.
- A verdict never says more than the status. VERDICT adds that there are enough draws (with 400 a
  mean is known to 0.05 sd), and tells chains that disagree from too few draws, which a longer run
  mends: an R-hat within its noise does not speak against them.
"""

from dataclasses import dataclass

import xarray as xr

from ..target.reasons import Reason
from . import chains
from .diagnostics import divergences, lowest_energy, transitions
from .mixing import Mixing, mixing_of

CHAINS = 2
"""At least so many."""


@dataclass(frozen=True, kw_only=True)
class Profile:
    """What one use of chains asks of them: a row of the table.

    Attributes
    ----------
    noise : float
        Effective draws from which an R-hat may be as large as that of agreeing chains is by chance
        (`Mixing.noise`).
    bulk, tail : float
        Effective sample sizes of every quantity; 0 asks for none.
    divergent : float
        The largest share of divergent transitions.
    energy : float
        The smallest E-FMI. Below 0.2 momentum cannot reach the energies of the tails (Betancourt
        2016).
    """

    noise: float = float("inf")
    bulk: float = 0.0
    tail: float = 0.0
    divergent: float = 1.0
    energy: float = 0.0


FIT = Profile(noise=400.0, divergent=0.001, energy=0.2)
"""Up to its share of divergent transitions NUTS does not run again with smaller steps either."""
EXACT = Profile(bulk=1000.0, tail=400.0, divergent=0.001, energy=0.2)
VERDICT = Profile(noise=0.0, bulk=400.0, tail=400.0, divergent=0.001, energy=0.2)


def lacking(mixed: Mixing, asked: Profile) -> list[Reason]:
    """Return what the chains lack of a profile; nothing if they have converged.

    Examples
    --------
    >>> import numpy as np
    >>> from ardvark.inference.target.reasons import joined
    >>> from ardvark.inference.fits.convergence import EXACT, FIT, lacking
    >>> from ardvark.inference.fits.mixing import mixing
    >>> eta = np.random.default_rng(0).normal(size=(4, 2000, 3))
    >>> lacking(mixing(None, {"eta": eta}), EXACT)
    []
    >>> eta[:2, :, 1] += 1.0
    >>> joined(lacking(mixing(None, {"eta": eta}), FIT))
    'R-hat of eta[1] is 1.14... (limit 1.01)'
    """
    count, draws = mixed.sizes
    if draws < chains.FEWEST:
        return [Reason("draws", {"least": chains.FEWEST})]
    if count < CHAINS:
        return [Reason("chains", {"least": CHAINS})]
    if mixed.frozen is not None:
        return [mixed.frozen]
    found = [
        apart(mixed, asked),
        few(mixed, "bulk", asked.bulk),
        few(mixed, "tail", asked.tail),
    ]
    return [reason for reason in found if reason is not None]


def apart(mixed: Mixing, asked: Profile) -> Reason | None:
    """Return the R-hat that is farthest above its limit, and how many more are above theirs."""
    beyond = mixed.beyond(asked.noise)
    if beyond.table.empty:
        return None
    value, quantity, limit = beyond.rhat
    more = len(beyond.table) - 1
    others = Reason("others", {"more": more, "of": len(mixed.table)}) if more else ""
    return Reason("rhat", {"quantity": quantity, "value": value, "limit": limit, "others": others})


def few(mixed: Mixing, kind: str, least: float) -> Reason | None:
    """Return the smallest effective sample size, "bulk" or "tail", if it is below the least."""
    value, quantity, _ = mixed.ess_bulk if kind == "bulk" else mixed.ess_tail
    if not value < least:
        return None
    return Reason("ess", {"kind": kind, "quantity": quantity, "value": value, "least": least})


def missed(tree: xr.DataTree, asked: Profile = FIT) -> list[Reason]:
    """Return what a gradient sampler's trajectories say against a fit: divergences, energies."""
    found, count, total = [], divergences(tree), transitions(tree)
    if count > asked.divergent * total:
        found += [Reason("region missed", {"count": count, "total": total})]
    low = lowest_energy(tree)
    if low is not None and low < asked.energy:
        found += [Reason("energy", {"value": low, "limit": asked.energy})]
    return found


def convergence(tree: xr.DataTree) -> list[Reason]:
    """Return why the draws of a fit by a Markov chain have not converged; nothing if they have."""
    return lacking(mixing_of(tree), FIT) or missed(tree)
