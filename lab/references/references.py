"""Reference posteriors: long runs on real data, each in a file of a few hundred kB, without data.

A file of `stored/` contains a few hundred draws of the weights and the scalars, far enough apart to
be almost independent, to eight bits; moments, quantiles, effective sizes and Monte Carlo errors of
every component from all draws; its provenance; and which criteria of posteriordb it meets. X and y
come from their usual source; eta and the effects are computed from them and the weights:

    fit = opened("rfvm-colon")
    av.compare({"paper": av.fit(problem_of("rfvm-colon"), "paper")}, reference=fit)

`REFERENCES.md` lists them. The code that made them is that of the commit which that page names.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
import xarray as xr

from ardvark.common.validate import InputError, named
from ardvark.inference.fits.activity import activity
from ardvark.inference.fits.datatree import assemble, group, read
from ardvark.inference.fits.selection import described, weights_of
from ardvark.inference.target.backend import Result
from ardvark.models import Problem
from ardvark.models import problem as make_problem

FOLDER = Path(__file__).with_name("stored")
NAMES = sorted(path.stem for path in FOLDER.glob("*.nc"))
FIXED = "-fixed"
"""The end of a name: the model's scale is fixed, as in its paper, and not learned."""
_BUDGET = 0.1  # of the budgets of a selection


def hypers_of(name: str) -> dict[str, Any]:
    """Return the hyperparameters of a reference that are not the model's default."""
    return {"scale": "fixed"} if name.endswith(FIXED) else {}


def problem_of(name: str) -> Problem:
    """Return the problem whose posterior a reference is; its data must be there."""
    attrs = attributes(named("reference", name, NAMES))
    return make_problem(attrs["model"], attrs["data"], **hypers_of(name))


def attributes(name: str) -> dict[str, Any]:
    """Return the attributes of a reference, without reading its draws."""
    with h5py.File(FOLDER / f"{name}.nc") as file:
        return {k: v.item() if hasattr(v, "item") else v for k, v in file.attrs.items()}


def inputs_hash(problem: Problem) -> str:
    """Hash X, y, basis and its labels, covariates, as the model sees them, to six decimals.

    A fingerprint would be too strict: it changes with the last digit of a logarithm, which differs
    between processors.
    """
    digest = hashlib.sha256(problem.spec.name.encode())
    for array in (problem.X, problem.Z, problem.y, problem.basis_labels):
        # + 0: there is one zero
        digest.update(b"-" if array is None else (np.round(array, 6) + 0.0).tobytes())
    if problem.C is not None:
        digest.update((np.round(problem.C, 6) + 0.0).tobytes())
    return digest.hexdigest()[:16]


def opened(name: str, problem: Problem | None = None) -> xr.DataTree:
    """Return a reference as a fit of its problem, or of one that has the same inputs.

    The diagnostics of the whole run are in the attributes.

    Raises
    ------
    InputError
        There is none of this name, or the inputs of the problem are others.
    """
    problem = problem or problem_of(name)
    file = read(FOLDER / f"{name}.nc")
    if file.attrs["inputs"] != inputs_hash(problem):
        raise InputError(f"{name} is the posterior of other rows than those of {problem}.")
    point, stats = (
        {str(k): v.values.astype(float) for k, v in group(file, part).data_vars.items()}
        for part in ("posterior", "sample_stats")
    )
    constants = problem.simulate(np.random.default_rng(0))  # of the file they have eight bits
    for constant in problem.spec.fixed:
        point[constant] = np.broadcast_to(constants[constant], point[constant].shape).copy()
    chains = range(len(point["feature_weight"]))
    point["eta"] = np.stack([problem.decision({k: v[c] for k, v in point.items()}) for c in chains])
    attrs = {str(k): v for k, v in file.attrs.items()} | {
        "fingerprint": problem.fingerprint,
        "kind": "mcmc",
    }
    result = Result(posterior=point, sample_stats=stats)
    tree = assemble(result, model=None, problem=problem, attrs=attrs)
    posterior = group(tree, "posterior")
    active = activity(problem, weights_of(problem, posterior), budget=_BUDGET)
    tree["selection"] = xr.DataTree(described(problem, active, posterior))
    told = group(file, "summary")
    names = {d: list(n) for d, n in problem.coords.items() if d in told.dims}
    tree["summary"] = xr.DataTree(told.assign_coords(names))
    return tree


def missed(attrs: dict[str, Any]) -> list[str]:
    """Return which criteria of posteriordb a reference misses, with the numbers."""
    lines = json.loads(attrs["bar"])
    return [f"{i['what']} {i['value']:.4g} ({i['limit']})" for i in lines if not i["met"]]


def table() -> pd.DataFrame:
    """Return the references: method, draws, worst R-hat, smallest ESS and missed criteria."""
    rows = []
    for name in NAMES:
        attrs = attributes(name)
        bar = {line["what"]: line["value"] for line in json.loads(attrs["bar"])}
        rows.append(
            {
                "reference": name,
                "method": attrs["method"],
                "draws": f"{attrs['chains']} x {attrs['draws']}",
                "R-hat": bar["R-hat"],
                "bulk ESS": round(bar["bulk ESS"]),
                "misses": "; ".join(missed(attrs)),
            }
        )
    return pd.DataFrame(rows)
