"""Where draws come from: what they may be believed for before anything is compared.

Draws prove nothing by themselves. Those of an exact sampler of this package have converged or not;
draws that were adopted may be well mixed and of something else. A calibration of the sampler that
made them (`ardvark.adopt(..., calibration=...)`) says that they are of the posterior.
"""

from collections.abc import Mapping
from typing import Literal

import xarray as xr

from ..contract.reasons import Reason
from ..exact.choice import SAMPLERS

Basis = Literal["distances", "chains", "opinion", "nothing"]
"""What a verdict rests on: distances from a reference, convergence alone, convergence and another
exact sampler that agrees, or nothing."""
EXACT = (*SAMPLERS, "exact")
"""The methods whose chains have the posterior as their limit."""


def is_exact(tree: xr.DataTree) -> bool:
    """Whether the limit of a fit's draws is known to be the posterior."""
    kind, method = tree.attrs.get("kind"), tree.attrs.get("method")
    if kind == "reference":
        return True
    return kind == "mcmc" and (method in EXACT or tree.attrs.get("calibrated") == 1)


def why_not(tree: xr.DataTree) -> Reason | None:
    """Return why the limit of a fit's draws is not known to be the posterior, None if it is."""
    if is_exact(tree):
        return None
    return Reason("adopted" if tree.attrs.get("kind") == "mcmc" else "nothing exact")


def asked(tree: xr.DataTree) -> str:
    """Return what a second opinion said: "agrees", "disagrees", "none", or "" if none was asked.

    The text of an opinion begins with it.
    """
    return str(tree.attrs.get("second_opinion") or "").partition(":")[0]


def agreeing(reference: str, fits: Mapping[str, xr.DataTree], trusted: list[str]) -> str | None:
    """Return which trusted fit, by another exact sampler, agrees with the reference.

    It is "" if a second opinion agreed, which has no name among the fits, and None if nobody is
    known to agree.
    """
    own = _sampler(fits[reference])
    others = [n for n in trusted if is_exact(fits[n]) and _sampler(fits[n]) != own]
    return others[0] if others else opinion(fits[reference])


def opinion(tree: xr.DataTree) -> str | None:
    """Return "" if a second opinion agrees with a fit, None if nobody is known to."""
    return "" if asked(tree) == "agrees" else None


def _sampler(tree: xr.DataTree) -> str:
    return str(tree.attrs.get("sampler") or tree.attrs.get("method"))
