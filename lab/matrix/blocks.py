"""The matrix: what each approximation does to the posterior, under the same prior.

`run` fits every cell of the blocks that were chosen (`declared.py`), compares it with the block's
exact posterior, and keeps a row a cell in one CSV file, from which the page is made (`figures.py`).
Fits are kept while their block is not finished, so a run that is killed loses at most the fits in
progress. A block whose rows are there is not computed again unless a setting of it has changed.
"""

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from ardvark.common.pieces import Pieces, Processes, elsewhere
from ardvark.common.progress import Reporter
from ardvark.common.writer import one_writer
from ardvark.inference.comparison.table import compare
from ardvark.inference.fits.datatree import group, replacing
from ardvark.inference.methods import registry
from ardvark.inference.methods.adoption import adopt
from ardvark.inference.methods.reuse import Fits
from ardvark.inference.scoring.quantities import has_draws
from ardvark.inference.target.sampling import Sampling
from ardvark.models import Problem
from lab.matrix import mechanisms
from lab.matrix.declared import BLOCKS, EXACT, FLAT, Block, Cell, chosen
from lab.matrix.figure import FIGURE, draw
from lab.matrix.figures import stored
from lab.matrix.numbers import active_in_prior, between, numbers, unknown
from lab.matrix.rows import ROWS, Row, append, identity, of_block, read, tidy
from lab.origin import version

DRAWS = 500
"""A chain, of four."""
_IMPROPER = "flat hyperpriors make the posterior improper: there is nothing to sample"


@dataclass(frozen=True)
class Matrix(Pieces[str, list[Row]]):
    """Blocks by name, their rows kept in the file `ROWS` of a folder.

    Attributes
    ----------
    folder : Path
    keep_fits : bool
        Leave the fits of finished blocks in the folder `fits`.
    one_core : bool
        Whether each block is one of several that run at once.
    commit : str
        Written beside each row.
    """

    folder: Path
    keep_fits: bool = False
    one_core: bool = False
    commit: str = ""

    def start(self) -> Callable[[str], list[Row]]:
        """Return the function that computes a block."""
        return self._rows

    def failure(self, key: str, reason: str) -> list[Row]:
        """Return a row that says why there is no other."""
        return [_row(BLOCKS[key], BLOCKS[key].cells[0], status="failed", reason=reason)]

    def get(self, key: str) -> list[Row] | None:
        """Return the rows of a block, if they are there by the settings as they are now."""
        mine = of_block(read(self.folder / ROWS), BLOCKS[key])
        return [{str(k): v for k, v in row.items()} for row in mine.to_dict("records")] or None

    def put(self, key: str, result: list[Row]) -> None:
        """Add the rows to the file, unless the block failed, and delete its fits."""
        if result[0]["status"] == "failed":
            return
        marks = {"identity": identity(BLOCKS[key]), "commit": self.commit}
        append(self.folder / ROWS, [{**row, **marks} for row in result])
        if not self.keep_fits:
            shutil.rmtree(self._fits(BLOCKS[key]), ignore_errors=True)

    def note(self, key: str, result: list[Row]) -> str:
        """Return the block and, where it failed, why."""
        return key if result[0]["status"] != "failed" else f"{key}: {result[0]['reason']}"

    def _fits(self, block: Block) -> Path:
        return self.folder / "fits" / block.name.replace("/", "-")

    def _rows(self, key: str) -> list[Row]:
        block = BLOCKS[key]
        problem = block.problem()
        sizes = {"N": len(problem.y), "D": problem.X.shape[1]}
        if block.prior == FLAT:
            return [_row(block, block.cells[0], status="improper", reason=_IMPROPER, **sizes)]
        fits, absent = {}, {}
        for cell in block.cells:
            try:
                fits[cell.label] = self._fit(block, cell, problem)
            except ValueError as error:  # it does not apply, or its draws are outside the support
                absent[cell.label] = str(error)
        comparison = compare(fits, EXACT, problem)
        prior = active_in_prior(problem)
        rows = []
        for cell in block.cells:
            if cell.label in absent:
                rows.append(_row(block, cell, status="absent", reason=absent[cell.label], **sizes))
                continue
            tree, distances = fits[cell.label], comparison.distances
            if not has_draws(tree):
                found = unknown()
            else:
                own = distances[distances["method"] == cell.label]
                found = numbers(problem, tree, fits[EXACT], own) | {"active_prior": prior}
                found["p_between"] = between(tree, fits.get(cell.label.rpartition(", ")[0]))
            rows.append(
                _row(
                    block, cell, **sizes, **_told(tree), **found,
                    rhat_eta=comparison.table.loc[cell.label, "rhat_eta"],
                    verdict=comparison.verdict[cell.label].level,
                )
            )  # fmt: skip
        return rows

    def _fit(self, block: Block, cell: Cell, problem: Problem) -> xr.DataTree:
        """Return the fit of a cell, its draws as those of the block's problem."""
        plain = cell.hypers is None and not cell.form
        mine = problem if plain else cell.problem(block)
        sampling = Sampling(draws=DRAWS, seed=cell.seed, keep="shared")
        plan = registry.prepare(cell.method, mine, cell.options, sampling)
        if self.one_core:
            plan = plan.on_one_core()
        name = "_".join(cell.label.replace(",", "").replace("'", "").split())
        tree = Fits({name: plan}, self._fits(block)).run([name])[name]
        if cell.hypers is None or mine.fingerprint == problem.fingerprint or not has_draws(tree):
            return tree
        posterior = group(tree, "posterior")
        kept = {
            str(n): v.values
            for n, v in posterior.items()
            if n in problem.spec.shared or v.ndim == 2
        }
        other = adopt(problem, kept, kind=tree.attrs["kind"])
        told = ("method", "status", "reason", "seconds_run", "seconds_compile")
        other.attrs |= {name: tree.attrs[name] for name in told}
        return other


def _row(block: Block, cell: Cell, **given: Any) -> Row:
    head = {
        "model": block.model,
        "kernel": block.kernel,
        "data": block.data,
        "prior": block.prior,
        "cell": cell.label,
        "method": cell.method,
    }
    return {**head, **given}


def _told(tree: xr.DataTree) -> Row:
    """Return what a fit says of itself."""
    attrs, went = tree.attrs, group(tree, "fit")
    found: Row = {
        "sampler": attrs.get("sampler", ""),
        "status": attrs["status"],
        "reason": " ".join(str(attrs["reason"]).split()),
        "seconds": float(attrs.get("seconds_run", np.nan)),
    }
    stats = group(tree, "sample_stats")
    if "diverging" in stats:
        found["divergences"] = int(stats["diverging"].sum())
    for name, column in (("rhat", "judged_rhat"), ("ess", "judged_ess_bulk")):
        if column in went:
            found[name] = float(went[column].values[-1])
    return found


# --- the run --------------------------------------------------------------------------------------


def run(
    folder: str | os.PathLike[str],
    only: Sequence[str] = (),
    *,
    processes: Processes = None,
    keep_fits: bool = False,
    progressbar: bool = True,
) -> dict[str, str]:
    """Compute the blocks that are missing; return the reasons of those that failed, by name.

    Parameters
    ----------
    folder : path
        Where `matrix.csv` is kept, and the fits of unfinished blocks.
    only : sequence of str
        Names of blocks, patterns (`rfvm/*/sparse`) or parts (`colon`); all blocks without any.
    processes : int, optional
        Blocks computed at once, each on one core then; or a Dask cluster. Its workers keep the fits
        of unfinished blocks on their own disks.
    keep_fits : bool
        Keep the fits of finished blocks as well, tens of megabytes each.

    Raises
    ------
    InputError
        No block matches, the number of processes is not positive, or another process writes to
        the folder.
    """
    blocks = chosen(list(only))
    folder = Path(folder)
    work = Matrix(folder, keep_fits, elsewhere(processes), version())
    stage = Reporter("matrix", progressbar).stage("blocks", total=len(blocks))
    with one_writer(folder):
        found = work.run([b.name for b in blocks], processes, stage)
        tidy(folder / ROWS)
    return {n: rows[0]["reason"] for n, rows in found.items() if rows[0]["status"] == "failed"}


def summarise(folder: str | os.PathLike[str]) -> Path:
    """Draw the rows in a folder; return the figure.

    Raises
    ------
    InputError
        There are no rows.
    """
    folder = Path(folder)
    for name, picture in (
        (FIGURE, draw(stored(folder))), (mechanisms.PICTURE, mechanisms.draw())
    ):  # fmt: skip
        with replacing(folder / name) as part:
            picture.figure.savefig(part, format="png", dpi=130)
    return folder / FIGURE
