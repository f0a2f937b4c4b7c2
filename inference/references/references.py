"""Reference posteriors: long runs on real data, made once, kept with the package.

Each is a file of a few hundred kB in `FOLDER`. It contains a few
hundred draws of the weights and the scalars, far enough apart to be almost independent, to eight
bits; moments, quantiles, effective sizes and Monte Carlo errors of every component from all draws;
P(active); its provenance; and which criteria of the bar it meets. It contains no data: X and y come
from their usual source, and eta is computed from them and the weights. `python -m lab.references`
makes and checks those that `lab/references/declared.py` declares.

A file belongs to a problem if model, hyperparameters and inputs are the same up to rounding. A
fingerprint would be too strict: it changes with the last digit of a logarithm, which differs
between processors. So the file has a hash of the inputs to six decimals (`inputs_hash`).
Hyperparameters are computed by numerical root finding, and are compared to five digits.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
import xarray as xr

from ardvark.common.validate import InputError, logger
from ardvark.models import Problem

from ..fits.activity import activity
from ..fits.datatree import as_json, assemble, group, read
from ..fits.selection import described, weights_of
from ..target.backend import Result

FOLDER = Path(__file__).with_name("stored")
_BUDGET = 0.1  # of the budgets of a selection
CLOSE = 1e-5
"""Relative difference up to which filled hyperparameters are the same."""


def inputs_hash(problem: Problem) -> str:
    """Hash X, y, basis and its labels, covariates, as the model sees them, to six decimals."""
    digest = hashlib.sha256(problem.spec.name.encode())
    for array in (problem.X, problem.Z, problem.y, problem.basis_labels):
        # + 0: there is one zero
        digest.update(b"-" if array is None else (np.round(array, 6) + 0.0).tobytes())
    if problem.C is not None:
        digest.update((np.round(problem.C, 6) + 0.0).tobytes())
    return digest.hexdigest()[:16]


def attributes(path: Path) -> dict[str, Any]:
    """Return the attributes of a stored reference, without reading its draws."""
    try:
        with h5py.File(path) as file:
            return {k: v.item() if hasattr(v, "item") else v for k, v in file.attrs.items()}
    except OSError as error:
        logger.warning("%s cannot be read: %s", path, error)
        return {}


def files(folder: Path | None = None) -> dict[str, Path]:
    """Return the stored references by name."""
    return {path.stem: path for path in sorted((folder or FOLDER).glob("*.nc"))}


def find(problem: Problem, folder: Path | None = None) -> Path | None:
    """Return the file with the reference of a problem's posterior, in whatever form it was run."""
    inputs, hypers = "", json.loads(as_json(problem.posterior_fields()))
    for path in files(folder).values():
        attrs = attributes(path)
        if attrs.get("model") != problem.spec.name:
            continue
        if not _close(hypers, json.loads(attrs["prior"])):
            continue
        inputs = inputs or inputs_hash(problem)
        if attrs["inputs"] == inputs:
            return path
    return None


def _close(wanted: Mapping[str, Any], found: Mapping[str, Any]) -> bool:
    """Whether hyperparameters are equal up to the last digits of a numerical root."""

    def same(a: Any, b: Any) -> bool:
        if isinstance(a, list) and isinstance(b, list):
            return len(a) == len(b) and all(map(same, a, b))
        if isinstance(a, float) and isinstance(b, int | float):
            return math.isclose(a, b, rel_tol=CLOSE)
        return bool(a == b)

    return wanted.keys() == found.keys() and all(same(v, found[k]) for k, v in wanted.items())


def stored(problem: Problem, folder: Path | None = None) -> xr.DataTree:
    """Return the stored reference of a problem, as a fit: draws, likelihood, selection, summary.

    Its `attrs["kind"]` is "reference". Its draws count as independent. The diagnostics of the whole
    run are in the attributes, so that it is not judged by the few draws that are stored.

    Raises
    ------
    InputError
        There is none; the message names the stored ones of this model, or of these data.
    """
    path = find(problem, folder)
    if path is None:
        model, data = problem.spec.name, problem.data.name
        there = {name: attributes(path) for name, path in files(folder).items()}
        near = [n for n, a in there.items() if a.get("model") == model or a.get("data") == data]
        of = f"Of this model or of these data there are: {', '.join(near)}. " if near else ""
        raise InputError(
            f"there is no stored reference of {model} on {data} (fingerprint "
            f"{problem.fingerprint}) with all of its rows and these hyperparameters. {of}"
            f"`ardvark reference list` lists all {len(there)}. "
            "Fit the problem by exact, and name that fit as the reference."
        )
    return opened(path, problem)


def opened(path: Path, problem: Problem) -> xr.DataTree:
    """Return a stored reference as a fit of the problem that it belongs to."""
    file = read(path)
    point, stats = (
        {str(k): v.values.astype(float) for k, v in group(file, name).data_vars.items()}
        for name in ("posterior", "sample_stats")
    )
    constants = problem.simulate(np.random.default_rng(0))  # of the file they have eight bits
    for name in problem.spec.fixed:
        point[name] = np.broadcast_to(constants[name], point[name].shape).copy()
    chains = range(len(point["feature_weight"]))
    point["eta"] = np.stack([problem.decision({k: v[c] for k, v in point.items()}) for c in chains])
    attrs = {str(k): v for k, v in file.attrs.items()} | {"fingerprint": problem.fingerprint}
    result = Result(posterior=point, sample_stats=stats)
    exact = attrs | {"kind": "mcmc"}  # draws of the posterior itself: groups are named by that
    tree = assemble(result, model=None, problem=problem, attrs=exact)
    tree.attrs["kind"] = attrs["kind"]
    stored_ones = {n: group(file, n) for n in ("selection", "summary")}
    stored_ones["selection"] = _with_effects(problem, tree, stored_ones["selection"])
    for name, found in stored_ones.items():
        names = {d: n for d, n in problem.coords.items() if d in found.dims}
        tree[name] = xr.DataTree(found.assign_coords({d: list(n) for d, n in names.items()}))
    return tree


def _with_effects(problem: Problem, tree: xr.DataTree, found: xr.Dataset) -> xr.Dataset:
    """Return the selection of a reference with what its file lacks, from the draws it has.

    Files made before the signed effects, the prior's numbers and the groups were stored lack them.
    """
    if "effect_feature" in found:
        return found
    posterior = group(tree, "posterior")
    active = activity(problem, weights_of(problem, posterior), budget=_BUDGET)
    own = described(problem, active, posterior).drop_dims(["chain", "draw"])
    own = own.drop_vars([n for n in own.coords if n != "quantile"])
    missing = own[[n for n in own.data_vars if n not in found]]
    return found.merge(missing).assign_attrs(own.attrs | found.attrs)


# --- listed ---------------------------------------------------------------------------------------


def missed(attrs: Mapping[str, Any]) -> list[str]:
    """Return which criteria of the bar a stored reference misses, with the numbers."""
    lines = json.loads(attrs["bar"])
    return [f"{i['what']} {i['value']:.4g} ({i['limit']})" for i in lines if not i["met"]]


def table(folder: Path | None = None) -> pd.DataFrame:
    """Return the stored references: sizes, method, diagnostics and missed criteria."""
    rows = {}
    for name, path in files(folder).items():
        attrs = attributes(path)
        rows[name] = {
            "model": attrs["model"],
            "method": attrs["method"],
            "draws": f"{attrs['chains']} x {attrs['draws']}",
            "rhat": float(attrs["rhat"]),
            "ess_bulk": float(attrs["ess_bulk"]),
            "seconds": float(attrs["seconds_run"]),
            "kB": path.stat().st_size / 1000.0,
            "missed": "; ".join(missed(attrs)),
        }
    frame = pd.DataFrame.from_dict(rows, orient="index")
    frame.index.name = "reference"
    return frame
