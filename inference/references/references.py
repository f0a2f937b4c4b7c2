"""Reference posteriors: long runs on real data, made once, kept with the package.

`declared.py` declares them. Each is a file of a few hundred kB in `FOLDER`. It contains a few
hundred draws of the weights and the scalars, far enough apart to be almost independent, to eight
bits; moments, quantiles, effective sizes and Monte Carlo errors of every component from all draws;
P(active); its provenance; and which criteria of the bar it meets (`bar.py`). It contains no data:
X and y come from their usual source, and eta is computed from them and the weights.

A file belongs to a problem if model, hyperparameters and inputs are the same up to rounding. A
fingerprint would be too strict: it changes with the last digit of a logarithm, which differs
between processors. So the file has a hash of the inputs to six decimals (`inputs_hash`).
Hyperparameters are computed by numerical root finding, and are compared to five digits.
"""

import dataclasses
import datetime
import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import h5py
import numpy as np
import pandas as pd
import xarray as xr

from ardvark.common.validate import InputError, logger, named
from ardvark.common.work import Work
from ardvark.models import Problem

from ..contract.backend import FitFailed, Result
from ..contract.sampling import Sampling
from ..contract.target import Target
from ..fits.activity import activity
from ..fits.datatree import as_json, assemble, group, read, replacing
from ..fits.selection import described, weights_of
from ..fitting import registry, run
from ..fitting.request import request
from ..verdicts.findings import findings
from .bar import agreement, bar, extreme, summarise
from .declared import REFERENCES, Reference

FOLDER = Path(__file__).with_name("stored")
NUMBERS, FEWEST, MOST = 120_000, 100, 1000
"""Numbers of draws that are stored, about, and draws at least and at most."""
BITS = 7
"""Binary digits kept behind the leading one: a draw is right to 0.4 %, a tenth of the Monte Carlo
error of so few. A mean of all draws is known better than that: summaries are not rounded."""
WHOLE = 23
"""Those of single precision."""
_BUDGET = 0.1  # of the budgets of a selection
CLOSE = 1e-5
"""Relative difference up to which filled hyperparameters are the same."""


_WHOLE = ("lp", "active_features", "active_samples", "n90_features", "n90_samples")
"""What is not rounded: counts, and a number whose differences matter."""


# --- made -----------------------------------------------------------------------------------------


def make(
    name: str,
    folder: Path | None = None,
    *,
    seed: int | None = None,
    one_core: bool = False,
    progressbar: bool = True,
) -> Path:
    """Run a reference's method and write its file, unless the folder already has that run.

    Parameters
    ----------
    name : str
        In `REFERENCES`.
    folder : Path, optional
        By default the package's own.
    seed : int, optional
        A seed other than that of the reference.
    one_core : bool
        Whether it is one of several that run at once.

    Raises
    ------
    InputError
        The name is unknown, or the data are missing.
    FitFailed
        The method returned no draws.
    """
    reference = REFERENCES[known(name)]
    path = (folder or FOLDER) / f"{reference.name}.nc"
    problem, plan, sampling = _planned(reference, reference.seed if seed is None else seed)
    if _is_made(path, request(problem, plan, sampling)):
        logger.info("%s: already stored", reference.name)
        return path
    plan = plan.on_one_core() if one_core else plan
    sampling = dataclasses.replace(sampling, progressbar=progressbar)
    tree = run.compute(Target(problem), plan, sampling)
    if tree.attrs["status"] == "failed":
        raise FitFailed(f"{reference.name}: {tree.attrs['reason']}")
    made = {"reference": reference.name, "command": reference.command, "note": reference.note}
    write(condensed(problem, tree, made), path)
    return path


def _planned(reference: Reference, seed: int) -> tuple[Problem, registry.Plan, Sampling]:
    problem = reference.problem()
    plan = registry.prepare(reference.method, problem, reference.options)
    sampling = Sampling(draws=reference.draws, chains=reference.chains, seed=seed, keep="shared")
    return problem, plan, sampling


def _is_made(path: Path, asked: str) -> bool:
    return path.exists() and attributes(path).get("request") == asked


@dataclasses.dataclass(frozen=True)
class Making(Work[str, bytes | str]):
    """References to be made, by name: the bytes of each file, or why there is none.

    Attributes
    ----------
    folder : Path
        Where the files are written, by the process that asked for them.
    one_core : bool
        Whether several are made at once.
    """

    quiet: ClassVar[bool] = False
    folder: Path
    one_core: bool = False

    def start(self) -> Callable[[str], bytes]:
        """Return the function that makes one."""
        return self._make

    def _make(self, key: str) -> bytes:
        with TemporaryDirectory() as there:
            shown = not self.one_core
            path = make(key, Path(there), one_core=self.one_core, progressbar=shown)
            return path.read_bytes()

    def failure(self, key: str, reason: str) -> str:
        """Return why there is no file."""
        return reason

    def stored(self, keys: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """Yield the files that are there, of the runs that are declared."""
        for key in keys:
            reference = REFERENCES[key]
            try:
                asked = request(*_planned(reference, reference.seed))
            except InputError:  # the data are missing, which is the result of the piece
                continue
            if _is_made(self.path(key), asked):
                logger.info("%s: already stored", key)
                yield key, self.path(key).read_bytes()

    def keep(self, key: str, result: bytes | str) -> None:
        """Write the file."""
        if isinstance(result, bytes):
            with replacing(self.path(key)) as part:
                part.write_bytes(result)

    def path(self, key: str) -> Path:
        """Return a reference's file."""
        return self.folder / f"{key}.nc"


def condensed(problem: Problem, tree: xr.DataTree, made: Mapping[str, str]) -> xr.DataTree:
    """Return what is stored of a fit: a summary of all draws, and a few of them.

    Parameters
    ----------
    problem : Problem
        What was fitted.
    tree : DataTree
        A Markov chain's fit.
    made : dict of str
        Name, command and note, for the attributes.
    """
    posterior = group(tree, "posterior")
    draws = posterior.drop_vars("eta")
    size = sum(math.prod(v.shape[2:]) for v in draws.data_vars.values())
    chains = draws.sizes["chain"]
    kept = math.ceil(min(MOST, max(FEWEST, NUMBERS // size)) / chains)
    thin = max(1, draws.sizes["draw"] // kept)
    summary, selection = summarise(tree), group(tree, "selection")
    some = {"draw": slice(thin - 1, None, thin)}
    stats = group(tree, "sample_stats")
    groups = {
        "posterior": draws.isel(some),
        "sample_stats": stats[["lp"]].isel(some),
        "summary": summary,
        "selection": selection,
    }
    for what in ("feature", "sample"):
        looked = posterior.sizes["draw"] // int(selection.attrs.get(f"thin_{what}s", 1))
        selection.attrs[f"batches_{what}s"] = chains * max(1, math.isqrt(looked))
    draws_too = ("posterior", "sample_stats")
    small = {f"/{n}": _small(g, BITS if n in draws_too else WHOLE) for n, g in groups.items()}
    out = xr.DataTree.from_dict(small)
    out.attrs = {
        **tree.attrs,
        **made,
        "kind": "reference",
        "thin": thin,
        "date": datetime.date.today().isoformat(),
        "inputs": inputs_hash(problem),
        "prior": as_json(problem.hypers.posterior_fields()),
        "bar": as_json([dataclasses.asdict(line) for line in bar(tree, summary, thin)]),
        "findings": as_json([dataclasses.asdict(finding) for finding in findings(tree)]),
        "rhat": extreme(summary, "rhat"),
        "rhat_eta": extreme(summary, "rhat", ["eta"]),
        "ess_bulk": extreme(summary, "ess_bulk"),
        "ess_tail": extreme(summary, "ess_tail"),
    }
    return out


def write(condensed: xr.DataTree, path: Path) -> None:
    """Write what is stored of a fit, compressed and with checksums, completely or not at all."""
    packed = {"zlib": True, "complevel": 9, "shuffle": True, "fletcher32": True}
    encoding = {
        node.path: dict.fromkeys(node.to_dataset(inherit=False).data_vars, packed)
        for node in condensed.subtree
    }
    with replacing(path) as part:
        condensed.to_netcdf(part, engine="h5netcdf", encoding=encoding)


def _small(data: xr.Dataset, bits: int) -> xr.Dataset:
    """Return a Dataset in single precision, rounded to `bits`, without coordinates."""
    out = data.drop_vars([d for d in data.coords if d not in ("statistic", "quantile")])
    for name, values in out.data_vars.items():
        out[name] = (values.dims, rounded(values.values, WHOLE if name in _WHOLE else bits))
    return out


def rounded(values: np.ndarray, bits: int = BITS) -> np.ndarray:
    """Return values in single precision, rounded to `bits` bits after the leading one.

    The removed bits are zeros, which compress well.
    """
    if bits == WHOLE:
        return values.astype(np.float32)
    words = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    gone = 23 - bits
    half = np.uint32((1 << (gone - 1)) - 1) + ((words >> np.uint32(gone)) & np.uint32(1))
    kept = (words + half) & np.uint32(0xFFFFFFFF << gone & 0xFFFFFFFF)
    return np.where(np.isfinite(values), kept.view(np.float32), values).astype(np.float32)


def inputs_hash(problem: Problem) -> str:
    """Hash X, y, basis and its labels, as the model sees them, to six decimals."""
    digest = hashlib.sha256(problem.spec.name.encode())
    for array in (problem.X, problem.Z, problem.y, problem.basis_labels):
        # + 0: there is one zero
        digest.update(b"-" if array is None else (np.round(array, 6) + 0.0).tobytes())
    return digest.hexdigest()[:16]


# --- found ----------------------------------------------------------------------------------------


def known(name: str) -> str:
    """Return the reference that is meant, or raise one error that lists them."""
    return named("reference", name, REFERENCES, "`ardvark reference list` lists them.")


def not_stored(name: str, folder: Path | None = None) -> InputError:
    """Return the error for a reference that is declared but not stored."""
    return InputError(
        f"{name} is not in {folder or FOLDER}: run `{REFERENCES[name].command}` to make it."
    )


def attributes(path: Path) -> dict[str, Any]:
    """Return the attributes of a stored reference, without reading its draws."""
    try:
        with h5py.File(path) as file:
            return {k: v.item() if hasattr(v, "item") else v for k, v in file.attrs.items()}
    except OSError as error:
        logger.warning("%s cannot be read: %s", path, error)
        return {}


def files(folder: Path | None = None) -> dict[str, Path]:
    """Return the stored references by name, in the order of `REFERENCES`."""
    paths = {name: (folder or FOLDER) / f"{name}.nc" for name in REFERENCES}
    return {name: path for name, path in paths.items() if path.exists()}


def find(problem: Problem, folder: Path | None = None) -> Path | None:
    """Return the file with the reference of a problem's posterior, in whatever form it was run."""
    inputs, hypers = "", json.loads(as_json(problem.hypers.posterior_fields()))
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
        there = files(folder)
        near = [n for n in there if model == REFERENCES[n].model or data == REFERENCES[n].data]
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


# --- listed and checked ---------------------------------------------------------------------------


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


def check(
    names: Iterable[str], folder: Path, *, against: Path | None = None, progressbar: bool = True
) -> dict[str, pd.DataFrame]:
    """Run references again with another seed, and report whether the two runs agree.

    Reruns are kept in the folder, so that an interrupted check can continue.

    Returns
    -------
    dict of DataFrame
        The result of `bar.agreement`, by name.

    Raises
    ------
    InputError
        The name is unknown, or the reference is not stored, or its data are missing.
    """
    chosen = [known(name) for name in names]
    there = files(against)
    for name in chosen:
        if name not in there:
            raise not_stored(name, against)
    found = {}
    for name in chosen:
        seed = int(attributes(there[name])["seed"]) + 1
        again = make(name, folder, seed=seed, progressbar=progressbar)
        found[name] = agreement(read(there[name]), read(again))
    return found
