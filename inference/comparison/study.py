"""A study: fits of one problem by several methods, kept in a folder and resumed if interrupted.

The folder holds `study.json` (what was asked), one NetCDF file per fit, written as it finishes,
`scorecard.csv`, `distances.csv`, the figures and `report.html`; refits under other priors in
`sensitivity/`. A stored fit is used again (`methods/reuse.py`).
"""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import xarray as xr

from ardvark.common.progress import Reporter
from ardvark.common.validate import InputError, logger
from ardvark.data import Dataset
from ardvark.models import Problem

from ..checks.sensitivity import Sensitivity, changes, sensitivity
from ..fits.datatree import read, replacing, write_files
from ..methods import registry
from ..methods.reuse import Fits
from ..target.sampling import Sampling
from .entry import reference_of
from .table import Comparison, compare

SETTINGS = "study.json"
SENSITIVITY = "sensitivity"
REPORT = "report.html"
"""Written last: a study without it was stopped."""


def run(
    problem: Problem,
    methods: Mapping[str, Mapping[str, Any]],
    folder: str | os.PathLike[str],
    sampling: Sampling,
    *,
    settings: Mapping[str, Any] | None = None,
) -> dict[str, xr.DataTree]:
    """Fit the problem by each method that is not in the folder yet, and return all the fits.

    If one method fails, the others are kept; its row says why it failed. A method that does not
    apply, or an unknown option, raises an error before anything is computed.

    Parameters
    ----------
    methods : dict of dict
        Options by method name ("paper" for the model's own algorithm).
    folder : path
        Made if it does not exist, and only once everything asked for has been checked.
    sampling : Sampling
        Of each fit.
    settings : dict, optional
        Stored in the folder, so that `ardvark panel` and `predict` can rebuild the problem.

    Raises
    ------
    InputError
        The method is unknown or does not apply, or the folder contains another problem's study.
    """
    folder = Path(folder)
    plans = [registry.prepare(m, problem, given, sampling) for m, given in methods.items()]
    if settings is not None:
        write_settings(folder, {**settings, "fingerprint": problem.fingerprint})
    folder.mkdir(parents=True, exist_ok=True)
    work = Fits({plan.name: plan for plan in plans}, folder)
    return work.run(list(work.plans))


def check_sensitivity(problem: Problem, methods: Iterable[str]) -> None:
    """Refuse prior sensitivity that no fit by these methods can have, before any fit is made."""
    changes(problem)
    kinds = [registry.prepare(m, problem, {}).backend.KIND for m in methods]
    if "mcmc" not in kinds:
        raise InputError(
            "prior sensitivity refits with an exact method, and none of the chosen methods is a "
            "Markov chain. Add exact to --methods."
        )


def prior_sensitivity(
    folder: str | os.PathLike[str],
    problem: Problem,
    fits: Mapping[str, xr.DataTree],
    progressbar: bool = True,
) -> Sensitivity:
    """Return the prior sensitivity of the study's reference, refitted with its own settings.

    Refits are kept in `SENSITIVITY` inside the folder, and reused.

    Raises
    ------
    InputError
        No fit is a Markov chain, or the problem has no sparse prior.
    """
    reference = reference_of(fits)
    if reference is None:
        raise InputError("no fit of this study is a Markov chain with draws.")
    attrs = fits[reference].attrs
    return sensitivity(
        problem,
        attrs["method"],
        draws=int(attrs["draws"]),
        chains=int(attrs["chains"]),
        random_seed=int(attrs["seed"]),
        folder=Path(folder) / SENSITIVITY,
        baseline=fits[reference],
        progressbar=progressbar,
        **json.loads(attrs["options"]),
    )


def load_fits(folder: str | os.PathLike[str], problem: Problem) -> dict[str, xr.DataTree]:
    """Return the fits of a problem in a folder, first those by `BACKENDS`, in their order.

    A file that cannot be read is left out with a warning.
    """
    fits, paths = {}, sorted(Path(folder).glob("*.nc"))
    if not paths:
        raise InputError(
            f"{folder} contains no fit yet: the study was stopped before its first one had ended. "
            f"To go on: {read_settings(folder)['command']}"
        )
    for path in paths:
        try:
            fits[path.stem] = read(path)
        except InputError as error:
            logger.warning("left out: %s", error)
    mine = {n: t for n, t in fits.items() if t.attrs.get("fingerprint") == problem.fingerprint}
    if not mine:
        raise InputError(
            f"{folder} contains no fit of this problem (fingerprint {problem.fingerprint}). "
            "Have the data changed? Run `ardvark compare` again."
        )
    order = list(registry.BACKENDS)
    return {n: mine[n] for n in sorted(mine, key=lambda n: order.index(n) if n in order else 99)}


def write_settings(folder: str | os.PathLike[str], settings: Mapping[str, Any]) -> None:
    """Store the settings, so that `ardvark panel` and `predict` can rebuild the same problem.

    Raises
    ------
    InputError
        The folder contains a study of another problem; nothing is overwritten.
    """
    path = Path(folder) / SETTINGS
    if path.exists():
        before = read_settings(folder)
        if before["fingerprint"] != settings["fingerprint"]:
            raise InputError(
                f"{folder} contains a study of another problem ({before['command']}). "
                "Choose another folder with --out, or delete this one."
            )
    with replacing(path) as part:
        part.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")


def read_settings(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what `write_settings` kept."""
    path = Path(folder) / SETTINGS
    if not path.exists():
        raise InputError(
            f"{folder} contains no study ({SETTINGS} is missing). Run `ardvark compare`."
        )
    return dict(json.loads(path.read_text(encoding="utf-8")))


def summarise(
    folder: str | os.PathLike[str],
    problem: Problem,
    fits: Mapping[str, xr.DataTree],
    test: Dataset | None = None,
    command: str = "",
    progressbar: bool = True,
    sensitivity: Sensitivity | None = None,
) -> Comparison:
    """Compare the fits and write scorecard.csv, distances.csv, the figures and report.html.

    A sensitivity adds sensitivity.csv and a section in the report.
    """
    folder = Path(folder)
    reporter = Reporter("comparison", progressbar)
    with reporter.stage("diagnostics, predictions, figures and report"):
        comparison = compare(fits, problem=problem, test=test)
        tables = {
            "scorecard": comparison.table,
            "distances": comparison.distances.set_index("fit"),
        }
        if len(comparison.scores):
            tables["scores"] = comparison.scores.set_index("fit")
        if sensitivity is not None:
            tables["sensitivity"] = sensitivity.table
        write_files(folder, {f"{name}.csv": table for name, table in tables.items()})
        pictures = comparison.pictures()
        drawn = {f"{name}.{end}": picture.figure for name, picture in pictures.items()
                 for end in ("png", "pdf", "svg")}  # fmt: skip
        write_files(folder, drawn)
        comparison.to_html(folder / REPORT, command, sensitivity, pictures)
    return comparison
