"""Fits kept in files: what has been computed is used again, and a failure is a fit that says why.

A stored fit is used again when its request (problem, form, method, options, draws, chains, seed,
versions) is the one asked for; a failed one is tried again. A file in its place that cannot be
read, or is no fit of this problem by this method, is set aside, not overwritten.
"""

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import xarray as xr

from ardvark.common.validate import InputError, logger
from ardvark.models import Problem

from ..contract.backend import Result
from ..fits.datatree import assemble, check_same, read, save
from . import registry, run
from .request import request


def stored_fit(
    problem: Problem,
    method: str,
    given: Mapping[str, Any],
    path: Path | None,
    *,
    draws: int,
    chains: int,
    random_seed: int,
    keep: run.Keep = "all",
    progressbar: bool = True,
) -> xr.DataTree:
    """Return the fit at a path if it is the one asked for; else fit, and write it there.

    A fit that fails, by whatever error, is returned with the status "failed" and the reason.

    Parameters
    ----------
    method : str
        A name in `BACKENDS`, or "paper".
    given : dict
        Options of the method.
    path : Path or None
        None: nothing is read or written.
    keep : {"all", "shared"}
        What of a fit is stored, as in `fit`.

    Raises
    ------
    InputError, TypeError
        The method does not apply, or an option is wrong (`registry.prepare`).
    """
    plan = registry.prepare(method, problem, given)
    asked = request(
        problem, plan.name, plan.options, draws=draws, chains=chains, seed=random_seed, keep=keep
    )
    stored = None if path is None else _stored(path, problem, plan.name, asked)
    if stored is not None:
        logger.info("%s: stored fit used again", path.stem if path else plan.name)
        return stored
    try:
        tree = run.fit(
            problem,
            plan.name,
            random_seed=random_seed,
            progressbar=progressbar,
            draws=draws,
            chains=chains,
            keep=keep,
            **given,
        )
    except Exception as error:
        logger.error("%s failed: %s: %s", plan.name, type(error).__name__, error)
        logger.debug("traceback", exc_info=True)
        tree = _failure(problem, plan.name, f"{type(error).__name__}: {error}")
    if path is not None:
        save(tree, path)
    return tree


def _stored(path: Path, problem: Problem, method: str, asked: str) -> xr.DataTree | None:
    """Return the fit at a path if it is the one asked for, and did not fail."""
    if not path.exists():
        return None
    try:
        tree = read(path)
        check_same(problem, tree, empty=True)
        if tree.attrs["method"] != method:
            raise InputError(f"{path} holds a fit by {tree.attrs['method']}.")
    except InputError as error:
        kept = _aside(path)
        logger.warning("%s It is kept as %s, and the fit is computed again.", error, kept.name)
        return None
    same = tree.attrs.get("request") == asked and tree.attrs.get("status") != "failed"
    return tree if same else None


def _aside(path: Path) -> Path:
    """Give a file a name that nothing has; return it."""
    names = (path.with_name(f"{path.name}.aside{i or ''}") for i in itertools.count())
    kept = next(name for name in names if not name.exists())
    return path.replace(kept)


def _failure(problem: Problem, name: str, reason: str) -> xr.DataTree:
    attrs = {
        "method": name,
        "kind": registry.BACKENDS[name].KIND,
        "status": "failed",
        "reason": reason,
        "fingerprint": problem.fingerprint,
        "form": problem.form,
    }
    return assemble(Result(posterior={}), model=None, problem=problem, attrs=attrs)
