"""Where draws come from: what they may be believed for before anything is compared.

Draws prove nothing by themselves. Those of an exact sampler of this package have converged or not;
draws that were adopted may be well mixed and of something else. A calibration of the sampler that
made them (`ardvark.adopt(..., calibration=...)`) says that they are of the posterior.
"""

from collections.abc import Mapping
from typing import Literal

import xarray as xr

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


def why_not(tree: xr.DataTree) -> str:
    """Return why the limit of a fit's draws is not known to be the posterior, "" if it is."""
    if is_exact(tree):
        return ""
    if tree.attrs.get("kind") == "mcmc":
        return "its draws were adopted, and draws do not prove what they are of"
    return "there is no exact posterior to compare it with"


def opinion(tree: xr.DataTree) -> str:
    """Return who else agrees with a fit, "" if nobody is known to."""
    said = str(tree.attrs.get("second_opinion") or "")
    return "another exact sampler agrees" if said.startswith("agrees") else ""


def agreeing(reference: str, fits: Mapping[str, xr.DataTree], trusted: list[str]) -> str:
    """Return which trusted fits, by another exact sampler, agree with the reference."""
    own = _sampler(fits[reference])
    others = [n for n in trusted if is_exact(fits[n]) and _sampler(fits[n]) != own]
    return f"{others[0]}, another exact sampler, agrees" if others else opinion(fits[reference])


def _sampler(tree: xr.DataTree) -> str:
    return str(tree.attrs.get("sampler") or tree.attrs.get("method"))
