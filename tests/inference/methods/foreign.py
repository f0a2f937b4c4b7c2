"""Draws that ardvark did not make, as arrays and as the trees of other libraries."""

import numpy as np
import xarray as xr

from ardvark.models import ZOO
from tests.support import rng

CHAINS, DRAWS = 2, 6
FORMS = {
    **{name: {} for name in ZOO},
    "rfvm marginal": {"parametrization": "marginal", "latent_noise": "integrated"},
    "jcfo latent": {"parametrization": "latent"},
    "fsklr explicit": {"mask_probability": "explicit"},
}


def paper_variables(problem, chains=CHAINS, draws=DRAWS, number=0):
    """Draws (chain, draw, ...) of the paper's variables, as an algorithm of one's own has them.

    They are of the prior, and so inside the support.
    """
    random = rng(number)
    points = [problem.simulate(random) for _ in range(chains * draws)]
    if problem.spec.name == "jcfo":  # a latent z has the sign of its label
        points = [p | {"z": np.abs(p["z"]) * (2 * problem.y - 1)} for p in points]
    names = [name for name in points[0] if name in problem.shapes and name != "eta"]
    arrays = {n: np.stack([p[n] for p in points]) for n in names}
    return {n: x.reshape(chains, draws, *x.shape[1:]) for n, x in arrays.items()}


def as_tree(point, stats=None, coords=None, observed=None):
    """Return the tree that a library makes: dims of its own, statistics by its names."""
    lead = ("chain", "draw")
    own = {k: tuple(f"{k}_{i}" for i in range(x.ndim - 2)) for k, x in point.items()}
    own |= {} if coords is None else {"feature_weight": ("feature",)}
    groups = {
        "/posterior": xr.Dataset(
            {k: ((*lead, *own[k]), x) for k, x in point.items()}, coords=coords or {}
        ),
        "/sample_stats": xr.Dataset({k: (lead, x) for k, x in (stats or {}).items()}),
    }
    if observed is not None:
        groups["/observed_data"] = xr.Dataset({"y": ("obs", observed)})
    return xr.DataTree.from_dict(groups)
