"""The matrix: what each approximation does to the posterior, under the same prior.

    ARDVARK_DATA=... python -m lab.matrix.run [--only BLOCKS] [--processes N]

fits every cell of the blocks that are missing (`declared.py`), compares it with the block's exact
posterior, and adds a row a cell to matrix.csv; then the figure and the tables of MATRIX.md are
written. Fits are kept in the folder --fits while their block is not finished, so a run that is
killed loses at most the fits in progress. A block is computed again if a setting of it has changed.
"""

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from joblib import Parallel, delayed

import ardvark as av
from ardvark.inference import read as read_fit
from ardvark.inference import save
from ardvark.inference.fits.datatree import group
from ardvark.inference.fits.mixing import mixing_of
from ardvark.inference.fits.selection import select_at
from ardvark.inference.scoring.quantities import has_draws
from ardvark.models import Problem
from ardvark.models.parts.effects import VISIBLE
from lab.matrix import figure, pages, rows
from lab.matrix.declared import EXACT, FLAT, Block, Cell, chosen
from lab.matrix.numbers import active_in_prior, between, numbers
from lab.matrix.rows import Row
from lab.origin import version

DRAWS = 500
"""A chain, of four."""
HERE = Path(__file__).parent
IMPROPER = "flat hyperpriors make the posterior improper: there is nothing to sample"


def rows_of(block: Block, fits_in: Path, one_core: bool = False) -> list[Row]:
    """Fit the cells of a block, and return a row for each."""
    problem = block.problem()
    sizes = {"N": len(problem.y), "D": problem.X.shape[1]}
    if block.prior == FLAT:
        return [row(block, block.cells[0], status="improper", reason=IMPROPER, **sizes)]
    fits, absent = {}, {}
    for cell in block.cells:
        try:
            fits[cell.label] = fit(block, cell, problem, fits_in, one_core)
        except ValueError as error:  # it does not apply, or its draws are outside the support
            absent[cell.label] = str(error)
    # counts and probabilities of the rows are at the size for which the priors state theirs
    fits = {name: select_at(problem, tree, VISIBLE) for name, tree in fits.items()}
    comparison = av.compare(fits, EXACT, problem)
    prior, found = active_in_prior(problem), []
    for cell in block.cells:
        if cell.label in absent:
            found.append(row(block, cell, status="absent", reason=absent[cell.label], **sizes))
            continue
        tree, distances = fits[cell.label], comparison.distances
        told: Row = sizes | went(tree)
        if has_draws(tree):
            own = distances[distances["fit"] == cell.label]
            told |= numbers(problem, tree, fits[EXACT], own) | {"active_prior": prior}
            told["p_between"] = between(tree, fits.get(cell.label.rpartition(", ")[0]))
            if tree.attrs["kind"] == "mcmc":
                told["rhat_eta"] = mixing_of(tree).only("eta").rhat.value
        told["verdict"] = comparison.verdict[cell.label].level
        found.append(row(block, cell, **told))
    return found


def fit(
    block: Block, cell: Cell, problem: Problem, fits_in: Path, one_core: bool = False
) -> xr.DataTree:
    """Return the fit of a cell, made or stored, its draws as those of the block's problem."""
    plain = cell.hypers is None and not cell.form
    mine = problem if plain else cell.problem(block)
    name = "_".join(cell.label.replace(",", "").replace("'", "").split())
    file = fits_in / rows.identity(block) / f"{name}.nc"
    if file.exists():
        tree = read_fit(file)
    else:
        cores = {"cores": 1} if one_core and cell.method == "exact" else {}
        tree = av.fit(
            mine, cell.method, draws=DRAWS, random_seed=cell.seed, keep="shared",
            progressbar=False, **{**cell.options, **cores},
        )  # fmt: skip
        file.parent.mkdir(parents=True, exist_ok=True)
        save(tree, file)
    if cell.hypers is None or mine.fingerprint == problem.fingerprint or not has_draws(tree):
        return tree
    posterior = group(tree, "posterior")
    shared = (n for n, v in posterior.items() if n in problem.spec.shared or v.ndim == 2)
    kept = {str(n): posterior[n].values for n in shared}
    other = av.adopt(problem, kept, kind=tree.attrs["kind"])
    said = ("method", "status", "reason", "seconds_run", "seconds_compile")
    other.attrs |= {name: tree.attrs[name] for name in said}
    return other


def row(block: Block, cell: Cell, **given: Any) -> Row:
    """Return a row of the file: where it stands, and what is given."""
    place = {name: getattr(block, name) for name in ("model", "kernel", "data", "prior")}
    return {**place, "cell": cell.label, "method": cell.method, **given}


def went(tree: xr.DataTree) -> Row:
    """Return what a fit says of itself."""
    attrs, details = tree.attrs, group(tree, "fit")
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
        if column in details:
            found[name] = float(details[column].values[-1])
    return found


# --- the run --------------------------------------------------------------------------------------


def attempt(block: Block, fits_in: Path, one_core: bool) -> tuple[Block, list[Row], str]:
    """Return the rows of a block, or why there are none: one block must not lose the others."""
    try:
        return block, rows_of(block, fits_in, one_core), ""
    except Exception as error:
        return block, [], f"{type(error).__name__}: {error}"


def compute(blocks: Sequence[Block], file: Path, fits_in: Path, processes: int = 1) -> int:
    """Compute blocks, and add the rows of each as it ends; return how many have failed."""
    commit, failed = version(), 0
    ends = Parallel(processes, return_as="generator_unordered")(
        delayed(attempt)(block, fits_in, processes > 1) for block in blocks
    )
    for block, found, reason in ends:
        print(block.name, reason or f"{len(found)} cells", flush=True)
        failed += not found
        if found:
            marks = {"identity": rows.identity(block), "commit": commit}
            rows.add([{**x, **marks} for x in found], file)
            shutil.rmtree(fits_in / rows.identity(block), ignore_errors=True)
    return failed


def write() -> None:
    """Draw the figure, and fill the tables of MATRIX.md."""
    frame = rows.read()
    figure.draw(frame).figure.savefig(HERE / "matrix.png", dpi=130)
    pages.write(frame)


def main(words: Sequence[str] | None = None) -> int:
    """Compute what is missing, and write; return whether a block has failed."""
    parser = argparse.ArgumentParser(prog="lab.matrix.run", description=(__doc__ or "")[:75])
    parser.add_argument("--only", default="", help="blocks, parts or patterns, comma-separated")
    parser.add_argument("--processes", type=int, default=1, help="blocks at once")
    parser.add_argument("--fits", type=Path, default=Path("results", "matrix"))
    given = parser.parse_args(words)
    there = set(rows.read()["block"])
    asked = [b for b in chosen([x for x in given.only.split(",") if x]) if b.name not in there]
    failed = compute(asked, rows.FILE, given.fits, given.processes)
    write()
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
