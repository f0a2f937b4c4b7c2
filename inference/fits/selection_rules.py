"""Which features, or samples, each rule selects by their P(active).

P > 1/2    P(active) above one half: the median model
FDR 10 %   the longest list, in the order of P(active), whose mean of 1 - P(active) is at most
           0.1. That mean is its expected share of false discoveries (Mueller, Parmigiani & Rice
           2006). The list is empty if even its first entry would be too uncertain
own        the rule of the method's paper, if it has one (`fit/selected_feature`)
"""

import numpy as np
import xarray as xr

from .datatree import group
from .selection import PROBABILITY

RATE = 0.1
"""The expected share of false discoveries that the rule FDR allows."""
RULES = ("P > 1/2", "FDR 10 %", "own")


def rules(tree: xr.DataTree, what: str = "feature") -> dict[str, np.ndarray]:
    """Return which features, or samples, each rule selects in a fit with P(active)."""
    p, own = group(tree, "selection")[f"p_active_{what}"].values, group(tree, "fit")
    found = {"P > 1/2": p > PROBABILITY, "FDR 10 %": discoveries(p)}
    if f"selected_{what}" in own:
        found["own"] = own[f"selected_{what}"].values.ravel() != 0
    return found


def discoveries(p: np.ndarray, rate: float = RATE) -> np.ndarray:
    """Return which are in the longest list of an expected false discovery rate below `rate`."""
    order = np.argsort(-p, kind="stable")
    false = np.cumsum(1.0 - p[order]) / np.arange(1, len(p) + 1)  # grows along the list
    chosen = np.zeros(len(p), dtype=bool)
    chosen[order[false <= rate + 1e-12]] = True
    return chosen
