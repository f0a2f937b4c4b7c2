"""A study: fits of one problem by several methods, kept in a folder, resumed after a kill.

The folder holds `study.json` (what was asked), one NetCDF file per fit, written as it finishes,
`scorecard.csv`, the figures and `report.html`. A stored fit is used again when its request
(problem, form, method, options, draws, chains, seed, versions) is the one asked for; a failed one
is tried again.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import xarray as xr

from ardvark.data import Dataset
from ardvark.models import Problem
from ardvark.validate import InputError, logger

from .. import fitting
from ..backend import Result
from ..datatree import assemble, read, replacing, save
from ..progress import Reporter
from .table import Comparison, compare

SETTINGS = "study.json"


def run(
    problem: Problem,
    methods: Mapping[str, Mapping[str, Any]],
    folder: str | os.PathLike[str],
    *,
    draws: int = 1000,
    chains: int = 4,
    random_seed: int = 0,
    progressbar: bool = True,
    settings: Mapping[str, Any] | None = None,
) -> dict[str, xr.DataTree]:
    """Fit the problem by each method that is not in the folder yet; return all the fits.

    One failing method does not lose the others: its row says why. A method that does not apply, or
    an unknown option, is an error before anything is computed.

    Parameters
    ----------
    methods : dict of dict
        Options by method name ("paper" for the model's own algorithm).
    folder : path
        Made if it does not exist, and only once everything asked for has been checked.
    settings : dict, optional
        Kept in the folder, so that `ardvark report` can make the problem again.

    Raises
    ------
    InputError
        An unknown method, one that does not apply, or a folder that holds another problem's study.
    """
    folder = Path(folder)
    plan = {}
    for method, given in methods.items():
        prepared = fitting.prepare(method, problem, given)
        plan[prepared.name] = (prepared.options, given)
    if settings is not None:
        write_settings(folder, {**settings, "fingerprint": problem.fingerprint})
    folder.mkdir(parents=True, exist_ok=True)
    fits = {}
    for name, (options, given) in plan.items():
        asked = fitting.request(
            problem, name, options, draws=draws, chains=chains, seed=random_seed, keep="all"
        )
        stored = _stored(folder / f"{name}.nc", asked)
        if stored is not None:
            logger.info("%s: stored fit used again", name)
            fits[name] = stored
            continue
        try:
            tree = fitting.fit(
                problem,
                name,
                random_seed=random_seed,
                progressbar=progressbar,
                draws=draws,
                chains=chains,
                **given,
            )
        except Exception as error:
            logger.error("%s failed: %s: %s", name, type(error).__name__, error)
            logger.debug("traceback", exc_info=True)
            tree = _failure(problem, name, f"{type(error).__name__}: {error}")
        save(tree, folder / f"{name}.nc")
        fits[name] = tree
    return fits


def _stored(path: Path, asked: str) -> xr.DataTree | None:
    """Return the fit at a path if it is the one asked for, and did not fail."""
    if not path.exists():
        return None
    try:
        tree = read(path)
    except (OSError, ValueError) as error:
        logger.warning("%s cannot be read and is computed again: %s", path.name, error)
        return None
    same = tree.attrs.get("request") == asked and tree.attrs.get("status") != "failed"
    return tree if same else None


def _failure(problem: Problem, name: str, reason: str) -> xr.DataTree:
    attrs = {
        "method": name,
        "kind": fitting.BACKENDS[name].KIND,
        "status": "failed",
        "reason": reason,
        "fingerprint": problem.fingerprint,
        "form": problem.form,
    }
    return assemble(Result(posterior={}), model=None, problem=problem, attrs=attrs)


def load_fits(folder: str | os.PathLike[str], problem: Problem) -> dict[str, xr.DataTree]:
    """Return the fits of a problem that a folder holds, in the order they were asked for."""
    fits = {path.stem: read(path) for path in sorted(Path(folder).glob("*.nc"))}
    mine = {n: t for n, t in fits.items() if t.attrs.get("fingerprint") == problem.fingerprint}
    if not mine:
        raise InputError(
            f"{folder} holds no fit of this problem (fingerprint {problem.fingerprint}); "
            "has the data changed since? Run `ardvark compare` again."
        )
    order = list(fitting.BACKENDS)
    return dict(sorted(mine.items(), key=lambda item: order.index(item[0])))


def write_settings(folder: str | os.PathLike[str], settings: Mapping[str, Any]) -> None:
    """Keep what was asked, so that `ardvark report` can make the same problem again.

    Raises
    ------
    InputError
        The folder holds a study of another problem; nothing is overwritten.
    """
    path = Path(folder) / SETTINGS
    if path.exists():
        before = read_settings(folder)
        if before["fingerprint"] != settings["fingerprint"]:
            raise InputError(
                f"{folder} holds a study of another problem ({before['command']}). "
                "Choose another folder with --out, or remove that one."
            )
    with replacing(path) as part:
        part.write_text(json.dumps(settings, indent=2) + "\n")


def read_settings(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what `write_settings` kept."""
    path = Path(folder) / SETTINGS
    if not path.exists():
        raise InputError(f"{folder} holds no study ({SETTINGS} is missing). Run `ardvark compare`.")
    return dict(json.loads(path.read_text()))


def summarise(
    folder: str | os.PathLike[str],
    problem: Problem,
    fits: Mapping[str, xr.DataTree],
    test: Dataset | None = None,
    command: str = "",
    progressbar: bool = True,
) -> Comparison:
    """Compare the fits and write scorecard.csv, the figures and report.html."""
    folder = Path(folder)
    reporter = Reporter("comparison", progressbar)
    with reporter.stage("diagnostics, predictions, baselines"):
        comparison = compare(fits, problem=problem, test=test)
    with reporter.stage("figures and report"):
        comparison.table.to_csv(folder / "scorecard.csv")
        for name, figure in comparison.figures().items():
            figure.savefig(folder / f"{name}.png", dpi=150)
        comparison.to_html(folder / "report.html", command)
    return comparison
