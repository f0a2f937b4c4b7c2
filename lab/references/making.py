"""Reference posteriors are made and checked here; `ardvark.inference.references` finds them.

    python -m lab.references make [NAME ...]      make those that are missing (minutes each)
    python -m lab.references check [NAME ...]     run them again with another seed and compare
    python -m lab.references export [NAME ...]    write them in the layout of posteriordb

`declared.py` declares the runs; `bar.py` says what a run must reach.
"""

import dataclasses
import datetime
import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar

import numpy as np
import pandas as pd
import xarray as xr

from ardvark.common.validate import InputError, logger
from ardvark.common.work import Work
from ardvark.inference.comparison.verdicts.findings import as_stored, findings_of
from ardvark.inference.fits.datatree import as_json, group, read, replacing
from ardvark.inference.methods import registry, run
from ardvark.inference.references.references import FOLDER, attributes, files, inputs_hash
from ardvark.inference.target.backend import FitFailed
from ardvark.inference.target.sampling import Sampling
from ardvark.models import Problem

from .bar import agreement, bar, extreme, summarise
from .declared import REFERENCES, Reference, checked_name

NUMBERS, FEWEST, MOST = 120_000, 100, 1000
"""Numbers of draws that are stored, about, and draws at least and at most."""
BITS = 7
"""Binary digits kept behind the leading one: a draw is right to 0.4 %, a tenth of the Monte Carlo
error of so few. A mean of all draws is known better than that: summaries are not rounded."""
WHOLE = 23
"""Those of single precision."""
_WHOLE = ("lp", "active_features", "active_samples", "n90_features", "n90_samples")
"""What is not rounded: counts, and a number whose differences matter."""


def command(name: str) -> str:
    """Return what makes a reference."""
    return f"python -m lab.references make {name}"


def not_stored(name: str, folder: Path | None = None) -> InputError:
    """Return the error for a reference that is declared but not stored."""
    return InputError(f"{name} is not in {folder or FOLDER}: run `{command(name)}` to make it.")


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
    reference = REFERENCES[checked_name(name)]
    path = (folder or FOLDER) / f"{reference.name}.nc"
    plan = _planned(reference, reference.seed if seed is None else seed, progressbar)
    if _is_made(path, plan.request):
        logger.info("%s: already stored", reference.name)
        return path
    tree = run.compute(plan.on_one_core() if one_core else plan)
    if tree.attrs["status"] == "failed":
        raise FitFailed(f"{reference.name}: {tree.attrs['reason']}")
    made = {"reference": reference.name, "command": command(reference.name), "note": reference.note}
    write(condensed(plan.target.zoo_problem, tree, made), path)
    return path


def _planned(reference: Reference, seed: int, progressbar: bool = False) -> registry.Plan:
    sampling = Sampling(
        draws=reference.draws,
        chains=reference.chains,
        seed=seed,
        keep="shared",
        progressbar=progressbar,
    )
    return registry.prepare(reference.method, reference.problem(), reference.options, sampling)


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

    def get(self, key: str) -> bytes | None:
        """Return the file that is there, if it is of the run that is declared."""
        reference = REFERENCES[key]
        try:
            asked = _planned(reference, reference.seed).request
        except InputError:  # the data are missing, which is the result of the piece
            return None
        if not _is_made(self.path(key), asked):
            return None
        logger.info("%s: already stored", key)
        return self.path(key).read_bytes()

    def put(self, key: str, result: bytes | str) -> None:
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
        "prior": as_json(problem.posterior_fields()),
        "bar": as_json([dataclasses.asdict(line) for line in bar(tree, summary, thin)]),
        "findings": as_json(as_stored(findings_of(tree))),
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


# --- checked --------------------------------------------------------------------------------------


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
    chosen = [checked_name(name) for name in names]
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
