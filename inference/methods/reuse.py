"""Fits kept in files: finished fits are reused, and a failed fit records the reason.

A stored fit is reused if its request (problem, form, method, options, draws, chains, seed,
versions) is the same. A failed fit is tried again, and so is one that the clock ended. A run of
`exact` that was killed goes on from its checkpoint. If the file
cannot be read, or contains another problem or method, it is renamed and not overwritten.
"""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import xarray as xr

from ardvark.common.pieces import Pieces
from ardvark.common.validate import InputError, logger

from ..fits.datatree import assemble, check_same, read, save
from ..target.backend import Result
from . import run
from .registry import Plan


@dataclass(frozen=True, eq=False)
class Fits(Pieces[str, xr.DataTree]):
    """Fits of several problems, or by several methods, each in a file that has its key's name.

    A fit that fails, by whatever error, is one with the status "failed" and the reason.

    Attributes
    ----------
    plans : dict of Plan
        What is fitted, by key.
    folder : Path, optional
        None: nothing is read or written.
    kept_of : dict of callable
        By key, what is made of a fit that has draws, and kept in its place; by default all of it.
    """

    quiet: ClassVar[bool] = False
    plans: Mapping[str, Plan]
    folder: Path | None = None
    kept_of: Mapping[str, Callable[[xr.DataTree], xr.DataTree]] = field(default_factory=dict)

    def start(self) -> Callable[[str], xr.DataTree]:
        """Return the function that fits."""

        def fitted(key: str) -> xr.DataTree:
            tree = run.compute(self.plans[key], checkpoint=self._checkpoint(key))
            made = self.kept_of.get(key)
            return tree if made is None or tree.attrs["status"] == "failed" else made(tree)

        return fitted

    def failure(self, key: str, reason: str) -> xr.DataTree:
        """Return a fit without draws, which says why."""
        plan = self.plans[key]
        problem = plan.target.zoo_problem
        logger.error("%s failed: %s", key, reason)
        attrs = {
            "method": plan.name,
            "kind": plan.backend.KIND,
            "status": "failed",
            "reason": reason,
            "fingerprint": problem.fingerprint,
            "form": problem.form,
        }
        return assemble(Result(posterior={}), model=None, problem=problem, attrs=attrs)

    def get(self, key: str) -> xr.DataTree | None:
        """Return the fit of a file that holds what is asked for, and did not fail."""
        if self.folder is None:
            return None
        tree = _stored(self._path(key), self.plans[key])
        if tree is not None:
            logger.info("%s: reusing the stored fit", key)
        return tree

    def put(self, key: str, result: xr.DataTree) -> None:
        """Write the fit to its file."""
        if self.folder is not None:
            save(result, self._path(key))

    def note(self, key: str, result: xr.DataTree) -> str:
        """Return which fit has ended."""
        return key

    def kept(self, key: str) -> bool:
        """Return whether there is a file of this fit."""
        return self.folder is not None and self._path(key).exists()

    def _checkpoint(self, key: str) -> Path | None:
        """Return where a run is kept that is not at its end yet."""
        return None if self.folder is None else self.folder / f"{key}.checkpoint"

    def _path(self, key: str) -> Path:
        assert self.folder is not None
        return self.folder / f"{key}.nc"


def _stored(path: Path, plan: Plan) -> xr.DataTree | None:
    """Return the fit at a path if it is the one that is planned, and did not fail."""
    if not path.exists():
        return None
    try:
        tree = read(path)
        check_same(plan.target.zoo_problem, tree, empty=True)
        if tree.attrs["method"] != plan.name:
            raise InputError(f"{path} contains a fit by {tree.attrs['method']}.")
    except InputError as error:
        kept = _aside(path)
        logger.warning("%s It was renamed to %s, and the fit is computed again.", error, kept.name)
        return None
    attrs = tree.attrs
    same = attrs.get("request") == plan.request and attrs.get("status") != "failed"
    # a run that was killed and went on has other draws than one that was not, as exact
    good = attrs.get("reproducible", 1) or attrs.get("ended") == "converged"
    return tree if same and good else None


def _aside(path: Path) -> Path:
    """Give a file a name that nothing has; return it."""
    names = (path.with_name(f"{path.name}.aside{i or ''}") for i in itertools.count())
    kept = next(name for name in names if not name.exists())
    return path.replace(kept)
