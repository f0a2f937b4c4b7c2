"""The pieces of the computation: a posterior, or a fold; each is stored as it ends.

A piece is known by its name and by a hash of its settings (`identity`): one whose settings have
changed is computed again. Rows carry the commit of the package that computed them.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import ardvark as av
from ardvark.common.pieces import Pieces
from ardvark.common.store import identity
from ardvark.data import Dataset
from ardvark.inference.checks.sensitivity import changes
from ardvark.inference.fits.activity import activity
from ardvark.inference.fits.diagnostics import inclusion
from ardvark.inference.fits.groups import CORRELATED, any_active, groups
from ardvark.inference.fits.mixing import RHAT_LIMIT
from ardvark.inference.fits.selection import weights_of
from ardvark.inference.references import references
from ardvark.models import Problem
from ardvark.models.parts.effects import VISIBLE
from lab import lines, problems
from lab.lines import append, read
from lab.papers.fold import ESTIMATE, find
from lab.papers.protocols import LEAVE_ONE_OUT, Group, by_sample, split
from lab.papers.protocols import Row as PaperRow
from lab.script import synthetic

from .declared import AS_IT_IS, TOY, TOY_SIZE, Fit, Folds, asked_of
from .prior import prior_of

SEED, ESS, FOLD_ESS, FOLD_DRAWS = 1, 1000.0, 400.0, 200
LISTED = 60  # genes of a fold that are stored, at most: those with the largest weights
Row = dict[str, Any]


# --- posteriors -----------------------------------------------------------------------------------


@lru_cache(maxsize=2)
def load(data: str, per_sample: bool) -> Dataset:
    """Return a data set; that of quick forms is made of random numbers."""
    if data == TOY.data:
        loaded = Dataset.from_arrays(*synthetic(*TOY_SIZE), name=data)
    else:
        loaded = av.load(data, fetch=False)
    return by_sample(loaded) if per_sample else loaded


def problem_of(fit: Fit) -> Problem:
    """Return the problem of a fit, with its prior changed."""
    problem = problems.problem(fit.model, load(fit.data, fit.by_sample))
    if fit.change == AS_IT_IS:
        return problem
    return problem.with_hypers(**changes(problem)[fit.change])


def posterior(fit: Fit, ess: float = ESS) -> tuple[Row, list[Row]]:
    """Return the row of a posterior, and those of the printed genes.

    A stored reference is read. It has P(active) of all its draws, but few of the draws themselves,
    from which P of a group is taken. Other posteriors are sampled.
    """
    problem = problem_of(fit)
    if references.find(problem) is not None:
        tree = references.stored(problem)
        ended = of_reference(tree)
    else:
        tree = av.fit(
            problem, "exact", random_seed=SEED, progressbar=False, keep="shared", ess=ess, cores=1
        )
        if tree.attrs["status"] == "failed":
            raise RuntimeError(tree.attrs["reason"])
        ended = of_run(tree)
    weights = weights_of(problem, tree["posterior"].to_dataset())
    active = activity(problem, weights, VISIBLE)["feature"].active
    found = tree["selection"].to_dataset()
    asked = asked_of(fit.data)
    row = of_prior(problem) | ended | of_all(problem, found, tree["posterior"]["eta"])
    return row, list(of_genes(problem, found, active, asked))


def of_prior(problem: Problem) -> Row:
    """Return the numbers of a prior; nothing where the model does not have one."""
    names = ("active_features", "active_samples", "slab", "gamma1", "gamma2")
    return {name: getattr(problem.hypers, name, "") for name in names}


def of_run(tree: xr.DataTree) -> Row:
    """Return how a run of `exact` ended."""
    details = tree["fit"]
    return {
        "status": tree.attrs["status"],
        "reason": " ".join(str(tree.attrs["reason"]).split()),
        "sampler": tree.attrs["sampler"],
        "iterations": int(tree.attrs["iterations"]),
        "rhat": f"{float(details['judged_rhat'].values[-1]):.4f}",
        "ess": f"{float(details['judged_ess_bulk'].values[-1]):.0f}",
        "seconds": f"{float(tree.attrs['seconds_run']):.0f}",
    }


def of_reference(tree: xr.DataTree) -> Row:
    """Return how the run of a stored reference ended, by the same rule."""
    attrs = tree.attrs
    good = float(attrs["rhat"]) < RHAT_LIMIT and float(attrs["ess_bulk"]) >= ESS
    return {
        "status": "finished" if good else "not_converged",
        "reason": "",
        "sampler": f"{attrs['method']}, stored reference",
        "iterations": int(attrs["draws"]),
        "rhat": f"{float(attrs['rhat']):.4f}",
        "ess": f"{float(attrs['ess_bulk']):.0f}",
        "seconds": f"{float(attrs['seconds_run']):.0f}",
    }


def of_all(problem: Problem, found: xr.Dataset, eta: xr.DataArray) -> Row:
    """Return how many genes are active, and which one leads."""
    p = found["p_active_feature"].values
    return {
        "chains": eta.sizes["chain"],
        "draws": eta.sizes["draw"],
        "active": f"{float(found['active_features'].mean()):.2f}",
        "prior_active": f"{float(found.attrs['prior_features']):.2f}",
        "leading": problem.data.feature_names[int(p.argmax())] if p.max() > 0.0 else "",
        "p_leading": f"{float(p.max()):.4f}",
        "threshold": VISIBLE,
        "correlation": CORRELATED,
    }


def of_genes(
    problem: Problem, found: xr.Dataset, active: np.ndarray, asked: Mapping[int, str]
) -> Iterator[Row]:
    """Yield a row for each gene asked for: P(active) alone, and with its correlated genes.

    Its group are the genes whose correlation with it is at least `CORRELATED`; a gene without such
    genes is a group of one.
    """
    p = found["p_active_feature"].values
    order = np.argsort(np.argsort(-p, kind="stable"), kind="stable")
    for number, name in asked.items():
        if problem.data.feature_names[number - 1] not in (name, f"gene_{number}"):
            column = problem.data.feature_names[number - 1]
            raise ValueError(f"column {number} is {column}, not {name}")
    alone = [np.array([number - 1]) for number in asked]
    together = [group_of(problem.X, int(k)) for (k,) in alone]
    prior, prior_group = np.split(prior_of(problem, [*alone, *together])[0], 2)
    for i, (number, name) in enumerate(asked.items()):
        k = number - 1
        any_of = any_active(active, together[i : i + 1])
        of_group = inclusion(xr.DataArray(any_of, dims=("chain", "draw", "k"))).isel(k=0)
        yield {
            "number": number,
            "gene": name,
            "p": f"{p[k]:.4f}",
            "mcse": _error(found["mcse_feature"].values[k]),
            "prior": f"{prior[i]:.5f}",
            "rank": int(order[k]) + 1,
            "effect": f"{found['effect_feature'].values[k]:.4f}",
            "members": len(together[i]),
            "p_group": f"{float(of_group['probability']):.4f}",
            "mcse_group": _error(of_group["mcse"].values),
            "prior_group": f"{prior_group[i]:.4f}",
        }


def group_of(X: np.ndarray, k: int) -> np.ndarray:
    """Return a feature and those whose correlation with it is at least `CORRELATED`."""
    alone = np.zeros(X.shape[1])
    alone[k] = 1.0
    return (groups(X, alone) or [np.array([k])])[0]


def _error(value: Any) -> str:
    """Return a Monte Carlo error; nothing where no draw ever changed."""
    return f"{float(value):.5f}" if np.isfinite(value) else ""


@dataclass(frozen=True)
class Posteriors(Pieces[Fit, tuple[Row, list[Row]]]):
    """Posteriors: rows of `fits.csv`, and of `posterior.csv` for their genes."""

    folder: Path
    commit: str
    ess: float = ESS

    def start(self) -> Callable[[Fit], tuple[Row, list[Row]]]:
        return lambda fit: posterior(fit, self.ess)

    def mark(self, fit: Fit) -> Row:
        """Return what tells the settings of a fit."""
        settings = [asdict(fit), SEED, self.ess]
        return {"fit": fit.name, "identity": identity(settings, 8, sort_keys=False)}

    def get(self, key: Fit) -> tuple[Row, list[Row]] | None:
        row = _last(self.folder / "fits.csv", self.mark(key))
        return row and (row, lines.get(self.folder / "posterior.csv", {"fit": key.name}))

    def put(self, key: Fit, result: tuple[Row, list[Row]]) -> None:
        row, genes = result
        if row["status"] == "failed":  # the next run tries again
            return
        mark = self.mark(key)
        append(self.folder / "posterior.csv", [{"fit": key.name} | x for x in genes])
        append(self.folder / "fits.csv", [mark | row | {"commit": self.commit}])

    def failure(self, key: Fit, reason: str) -> tuple[Row, list[Row]]:
        return {"status": "failed", "reason": reason}, []


def _last(path: Path, mark: Row) -> Row | None:
    """Return the last row of a piece, unless its settings have changed since."""
    name = {cell: value for cell, value in mark.items() if cell != "identity"}
    held = lines.get(path, name)
    return held[-1] if held and held[-1]["identity"] == mark["identity"] else None


# --- folds ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fold:
    """A fold of a row of the papers' tables."""

    row: str
    fold: int


def pieces(folds: Folds) -> list[Fold]:
    """Return the folds of a row, one by one."""
    return [Fold(folds.row, fold) for fold in range(folds.count)]


def setting(name: str) -> tuple[Group, PaperRow]:
    """Return the group and the row of the papers' tables; those of quick forms have no paper."""
    if name != TOY.folds[0].row:
        return find(name)
    row = PaperRow(label="toy", model="pfcvm", method="pfcvm_lp", reading="ours")
    return Group(paper="", table="", data=TOY.data, protocol=LEAVE_ONE_OUT, rows=(row,)), row


def fold_weights(piece: Fold) -> Row:
    """Fit a fold's training rows; return its genes with their weights, the largest first.

    The weight of the exact posterior is P(active), that of an algorithm its own estimate of the
    feature weight.
    """
    group, row = setting(piece.row)
    data = load(group.data, group.by_sample)
    training = data.take(split(group.protocol, data, piece.fold)[0], both=False)
    exact = row.method == "exact"
    more: Row = {"ess": FOLD_ESS, "cores": 1} if exact else {"draws": FOLD_DRAWS, "chains": 1}
    tree = av.fit(
        problems.problem(row.model, training, **row.hypers), row.method, random_seed=0,
        progressbar=False, keep="shared", **row.options, **more,
    )  # fmt: skip
    if tree.attrs["status"] == "failed":
        raise RuntimeError(tree.attrs["reason"])
    if exact:
        weight = tree["selection"]["p_active_feature"].values
    else:
        details = tree["fit"]
        weight = details[ESTIMATE[row.method]].values * details["selected_feature"].values
    size = np.abs(weight)
    order = np.argsort(-size, kind="stable")[:LISTED]
    return {
        "status": tree.attrs["status"],
        "reason": " ".join(str(tree.attrs["reason"]).split())[:120],
        "seconds": f"{float(tree.attrs['seconds_run']):.2f}",
        "kept": int(np.count_nonzero(size)),
        "weights": " ".join(f"{k + 1}:{weight[k]:.4g}" for k in order if size[k] > 0.0),
    }


@dataclass(frozen=True)
class AllFolds(Pieces[Fold, Row]):
    """Folds: rows of `folds.csv`."""

    folder: Path
    commit: str

    def start(self) -> Callable[[Fold], Row]:
        return fold_weights

    def mark(self, fold: Fold) -> Row:
        """Return what tells the settings of a fold."""
        group, row = setting(fold.row)
        settings = [row.model, row.method, row.hypers, row.options, group.data, group.by_sample]
        own = FOLD_ESS if row.method == "exact" else FOLD_DRAWS
        return {
            "row": fold.row,
            "fold": fold.fold,
            "identity": identity([settings, group.protocol.name, own, LISTED], 8, sort_keys=False),
        }

    def get(self, key: Fold) -> Row | None:
        return _last(self.folder / "folds.csv", self.mark(key))

    def put(self, key: Fold, result: Row) -> None:
        if result["status"] != "failed":
            path = self.folder / "folds.csv"
            append(path, [self.mark(key) | result | {"commit": self.commit}])

    def failure(self, key: Fold, reason: str) -> Row:
        return {"status": "failed", "reason": reason}


def tidy(folder: Path) -> None:
    """Remove what a new run has replaced: of equal names, the last row counts."""
    for name, columns in (("fits", ("fit",)), ("posterior", ("fit", "gene")),
                          ("folds", ("row", "fold"))):  # fmt: skip
        path = folder / f"{name}.csv"
        rows = {tuple(x[c] for c in columns): x for x in read(path)}
        if len(rows) < len(read(path)):
            lines.write(path, rows.values())
