"""Prior sensitivity: how a posterior changes when its sparse prior expects half, or twice, as much.

The expected number of active features (or of active samples, if features have no prior) and the
slab are halved and doubled, one at a time, with everything else as given. Each change is a refit.
The columns of the table are declared below. The first row is the problem as it is; it compares one
half of its chains with the other, which gives a noise floor.

"""

import os
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from ardvark.common.validate import InputError, logger
from ardvark.common.work import Processes
from ardvark.data import Dataset
from ardvark.models import ZOO, Problem
from ardvark.models.sparse import SparseHypers

from ..fits.datatree import check_same, group, pointwise
from ..fits.mixing import mixing_of
from ..fits.selection import lacking, select, summary
from ..methods import registry
from ..methods.prediction import predicted_draws, rows_of, warn_of_new_values
from ..scoring.columns import Column, described
from ..scoring.draws import Draws
from ..scoring.held_out import log_scores
from ..target.sampling import Sampling
from .sharing import refits

FACTORS = {0.5: "halved", 2.0: "doubled"}
BASELINE = "as it is"
LEADING = 10
_NUMBERS = ("active_features", "active_samples", "slab")

_ASKED = "The hyperparameters of the prior in this refit."
_FOUND = (
    "The mean number of active features per draw, with the 5 % and 95 % quantiles in brackets, and "
    "the mean number under the prior of the refit. For a model whose features have no prior, it is "
    "the number of active samples."
)
_P = (
    "The largest change of P(active), with its Monte Carlo error and the name of the feature or "
    f"sample. The last column is how many of the {LEADING} with the largest P(active) are still "
    f"among the leading {LEADING} (the leading half, if there are fewer than {2 * LEADING})."
)
_ETA = (
    "The largest change of the posterior mean of eta over the training rows, in posterior standard "
    "deviations of the first fit. Then the mean absolute change of P(y = 1) over the training "
    "rows, and over the held-out rows."
)
COLUMNS = (
    Column(
        "status", "status", None, "Status of the refit; `not possible` if no such prior exists."
    ),
    Column("active_features", "active_features", 1, _ASKED),
    Column("active_samples", "active_samples", 1, _ASKED),
    Column("slab", "slab", 2, _ASKED),
    Column("active", "active", 1, _FOUND, ("active_low", "active_high")),
    Column("prior", "active, prior", 1, _FOUND),
    Column("active_low", "", 0, _FOUND),
    Column("active_high", "", 0, _FOUND),
    Column("change_p", "change of P(active)", 2, _P),
    Column("mcse_p", "its MC error", 2, _P),
    Column("name_p", "of", None, _P),
    Column("leading", "leading again", 0, _P),
    Column("change_eta", "change of eta, sd", 2, _ETA),
    Column("change_train", "change of P(y = 1)", 3, _ETA),
    Column("change_test", "held out", 3, _ETA),
    Column("log_score", "log score", 3, "Mean log probability of the held-out labels."),
    Column("rhat_eta", "R-hat of eta", 3, "Should be below 1.01."),
    Column("reason", "", None, "Why the status is not `finished`."),
)
"""Every column. A change in the first row is that from one half of the chains to the other."""

__doc__ = f"{__doc__}{described(COLUMNS)}\n"


@dataclass(frozen=True, eq=False, repr=False)
class Sensitivity:
    """What `sensitivity` found.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per change, `BASELINE` first. The columns are explained by
        ``help("ardvark.inference.checks.sensitivity")``.
    p_active : pandas.DataFrame
        P(active) of each feature (of each sample, if features have no prior), with one column for
        each row of the table that has draws.
    what : {"feature", "sample"}
        Whether P(active) is that of features or of samples.
    """

    table: pd.DataFrame
    p_active: pd.DataFrame
    what: str

    def __repr__(self) -> str:
        return textwrap.fill(self.text(), 80)

    def text(self) -> str:
        """Return what the table says, in a sentence or two per hyperparameter."""
        floor, train = (float(self.table[c][BASELINE]) for c in ("change_p", "change_train"))
        before = _counted(self.table.T[BASELINE], BASELINE)
        changed = self.table.drop(index=BASELINE)
        names = dict.fromkeys(str(row).rpartition(" ")[0] for row in changed.index)
        sentences = [_sentence(name, changed, floor, before, self.what) for name in names]
        worst = changed["change_train"].dropna()
        if len(worst):
            sentences.append(
                f"P(y = 1) of the training rows changes by at most {worst.max():.3f} on average "
                f"({worst.idxmax()}{_floor(train, 3)})."
            )
        bad = self.table["status"] == "not_converged"
        if bad.any():
            rows = ", ".join(map(str, self.table.index[bad]))
            sentences.append(f"Do not trust these refits, which did not converge: {rows}.")
        bad = ~((self.table["status"] == "finished") | bad)
        for row, (status, reason) in self.table.loc[bad, ["status", "reason"]].iterrows():
            sentences.append(f"{str(row).capitalize()}: {status}: {str(reason).rstrip('.')}.")
        return " ".join(sentences)


def _sentence(name: str, changed: pd.DataFrame, floor: float, before: str, what: str) -> str:
    rows = changed[[str(row).startswith(f"{name} ") for row in changed.index]]
    moves = rows["change_p"].dropna()
    if not len(moves):
        return f"No refit with another {name} succeeded."
    row = str(moves.idxmax())
    known = rows["active"].dropna().index
    counts = [_counted(rows.loc[r], str(r).rpartition(" ")[2]) for r in known]
    return (
        f"Halving or doubling {name} changes P(active) of any {what} by at most "
        f"{moves.max():.2f} ({rows['name_p'][row]}, {row.rpartition(' ')[2]}"
        f"{_floor(floor, 2)}). The mean number of active {what}s goes from "
        f"{before} to {' and '.join(counts)}."
    )


def _counted(row: pd.Series, how: str) -> str:
    """Return a mean number of active ones, with that of the refit's own prior if it is known."""
    prior = f"; prior {row['prior']:.1f}" if pd.notna(row.get("prior")) else ""
    return f"{row['active']:.1f} ({how}{prior})"


def _floor(value: float, digits: int) -> str:
    return "" if np.isnan(value) else f"; noise floor {value:.{digits}f}"


def changes(problem: Problem) -> dict[str, dict[str, float]]:
    """Return the changed hyperparameters of each row, by the row's name; nothing is fitted.

    Raises
    ------
    InputError
        The model has no sparse prior, or this problem's is dense or given by shape and rate.
    """
    having = [n for n, spec in ZOO.items() if issubclass(spec.Hypers, SparseHypers)]
    if not isinstance(problem.hypers, SparseHypers):
        raise InputError(
            f"prior sensitivity halves and doubles {', '.join(_NUMBERS)} of a sparse prior, of "
            f"which model {problem.spec.name!r} has none. {', '.join(having)} have."
        )
    finite = {n: v for n, v in problem.hypers.numbers().items() if np.isfinite(v)}
    if "active_features" in finite:
        finite.pop("active_samples", None)
    if not finite:
        raise InputError(
            "there is nothing to halve or double: the priors of this problem are dense, or given "
            'by shape and rate, and have no slab. Omit those (and "all") to get the sparse prior.'
        )
    return {
        f"{name} {word}": {name: value * factor}
        for name, value in finite.items()
        for factor, word in FACTORS.items()
    }


def sensitivity(
    problem: Problem,
    method: str = "exact",
    *,
    draws: int = 1000,
    chains: int = 4,
    random_seed: int = 0,
    folder: str | os.PathLike[str] | None = None,
    processes: Processes = 1,
    baseline: xr.DataTree | None = None,
    test: Dataset | None = None,
    progressbar: bool = True,
    **options: Any,
) -> Sensitivity:
    """Refit a problem with its sparse prior halved and doubled, and report what changes.

    Parameters
    ----------
    problem : Problem
        Of a model with `active_features` or `active_samples` and `slab`.
    method : str
        A name in `BACKENDS`, or "paper".
    draws, chains, random_seed
        Of every fit.
    folder : path, optional
        Finished fits are kept there, one file each, and used again.
    processes : int or Dask
        Number of fits that run in parallel, each on one core; or a Dask cluster. Above 1 they run
        in new processes, so a script needs the usual ``if __name__ == "__main__":``.
    baseline : DataTree, optional
        A fit of `problem` by this method, if there is one already.
    test : Dataset, optional
        Held-out samples, in original units.
    progressbar : bool
        Show the stages of each fit.
    **options
        Of the method.

    Returns
    -------
    Sensitivity

    Raises
    ------
    InputError
        The model has no sparse prior, the method does not apply, `baseline` is of another problem,
        or the problem itself could not be fitted.
    TypeError
        An unknown option.

    Examples
    --------
    >>> import numpy as np
    >>> import ardvark as av
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> problem = av.problem("rfvm", X, X[:, 0] + X[:, 1] > 0, active_features=1, slab=1)
    >>> found = av.sensitivity(problem, "rfvm_vb", draws=50, progressbar=False)
    >>> found.table[["status", "active_features", "slab"]]
                               status  active_features  slab
    prior
    as it is                 finished              1.0   1.0
    active_features halved   finished              0.5   1.0
    active_features doubled  finished              2.0   1.0
    slab halved              finished              1.0   0.5
    slab doubled             finished              1.0   2.0
    >>> found.p_active.shape  # 4 features; the problem as it is, and 4 changes
    (4, 5)
    >>> print(found.text())
    Halving or doubling active_features changes P(active) of any feature by at most ...
    """
    rows = changes(problem)
    sampling = Sampling(draws=draws, chains=chains, seed=random_seed, progressbar=progressbar)
    plan = registry.prepare(method, problem, options, sampling)
    if baseline is not None:
        check_same(problem, baseline)
    variants, refused = _variants(problem, rows)
    fits: dict[str, xr.DataTree] = {} if baseline is None else {BASELINE: baseline}
    missing = {row: variant for row, variant in variants.items() if row not in fits}
    for row, tree in refits("sensitivity", missing, plan, folder, processes):
        fits[row] = tree
        logger.info("prior sensitivity, fit %d of %d: %s", len(fits), len(variants), row)
        if row == BASELINE and not group(tree, "posterior").data_vars:
            raise InputError(f"the problem itself could not be fitted: {tree.attrs['reason']}")
    return summarised(problem, variants, fits, refused, test)


def _variants(
    problem: Problem, rows: Mapping[str, Mapping[str, float]]
) -> tuple[dict[str, Problem], dict[str, str]]:
    """Return the problems to fit, and why the others cannot be."""
    variants = {BASELINE: problem}
    refused = {}
    for row, change in rows.items():
        try:
            variant = problem.with_hypers(**change)
        except InputError as error:
            refused[row] = str(error)
            continue
        if variant.fingerprint == problem.fingerprint:
            refused[row] = "it would change nothing, because shape, rate and slabs are given"
            continue
        variants[row] = variant
    return variants, refused


def summarised(
    problem: Problem,
    variants: Mapping[str, Problem],
    fits: Mapping[str, xr.DataTree],
    refused: Mapping[str, str] | None = None,
    test: Dataset | None = None,
) -> Sensitivity:
    """Return the tables of fits that are there.

    Parameters
    ----------
    problem : Problem
        As it is.
    variants : dict of Problem
        What was fitted in each row, `BASELINE` first.
    fits : dict of DataTree
        Their fits; one without draws is a row without numbers.
    refused : dict of str, optional
        Rows that could not be fitted, and why.
    test : Dataset, optional
        Held-out samples.
    """
    what = "feature" if problem.spec.learns_theta else "sample"
    if test is not None:
        warn_of_new_values(problem.data, *rows_of(problem.data, test, problem.always))
    base = _look(variants[BASELINE], fits[BASELINE], what, test)
    table: dict[str, dict[str, Any]] = {}
    p_active = {}
    for row, variant in variants.items():
        assert isinstance(variant.hypers, SparseHypers)  # as `changes` saw to it
        tree, table[row] = fits[row], dict(variant.hypers.numbers())
        table[row] |= {k: tree.attrs.get(k) for k in ("status", "reason")}
        if not group(tree, "posterior").data_vars:
            continue
        seen = base if row == BASELINE else _look(variant, tree, what, test)
        p_active[row] = seen.p
        table[row] |= seen.numbers
        pair = [base, seen]
        if row == BASELINE:
            pair = [_look(variant, half, what, test) for half in _halves(tree)]
        if len(pair) == 2:
            table[row] |= _moved(pair[0], pair[1], base.sd)
    for row, reason in (refused or {}).items():
        table[row] = {"status": "not possible", "reason": reason}
    order = [BASELINE, *(r for r in changes(problem) if r in table)]
    frame = pd.DataFrame.from_dict(
        {row: table[row] for row in order}, orient="index", columns=[c.name for c in COLUMNS]
    )
    frame.index.name = "prior"
    names = problem.coords["feature" if what == "feature" else "basis"]
    return Sensitivity(frame, pd.DataFrame(p_active, index=list(names)), what)


@dataclass(frozen=True, eq=False)
class _Seen:
    """What is compared of a fit."""

    names: tuple[str, ...]
    p: np.ndarray  # P(active) (k,), with its Monte Carlo error
    mcse: np.ndarray
    mean: np.ndarray  # of eta (N,), and its sd
    sd: np.ndarray
    train: np.ndarray  # P(true class) (N,)
    held_out: np.ndarray | None  # P(y = 1) (M,)
    numbers: dict[str, float]


def _look(problem: Problem, tree: xr.DataTree, what: str, test: Dataset | None) -> _Seen:
    missing = lacking(problem, tree)
    if missing:
        raise InputError(f"P(active) is computed from the weights, and a fit lacks {missing}.")
    posterior = group(tree, "posterior")
    found = group(tree, "selection")
    if not found.data_vars:
        found = select(problem, tree)
    count = summary(found, what)
    numbers = {"active": count["active"], "active_low": count["low"], "active_high": count["high"]}
    numbers["prior"] = count["prior"]
    if tree.attrs["kind"] == "mcmc" and posterior.sizes["draw"] >= 4:
        numbers["rhat_eta"] = mixing_of(tree).only("eta").rhat.value
    eta = Draws(posterior["eta"].values)
    p_test = None
    if test is not None:
        p_test = predicted_draws(problem, tree, test).mean(axis=(0, 1))
        numbers["log_score"] = float(log_scores(test.y, p_test).mean())
    return _Seen(
        names=problem.coords["feature" if what == "feature" else "basis"],
        p=found[f"p_active_{what}"].values,
        mcse=np.nan_to_num(found[f"mcse_{what}"].values),  # NaN where it never changed
        mean=eta.mean,
        sd=eta.sd,
        train=np.exp(pointwise(tree)["y"].values).mean((0, 1)),
        held_out=p_test,
        numbers=numbers,
    )


def _halves(tree: xr.DataTree) -> list[xr.DataTree]:
    """Return the two halves of a fit's chains, or of its one chain; none for a single draw."""
    dim = "chain" if tree["posterior"].sizes["chain"] > 1 else "draw"
    size = tree["posterior"].sizes[dim]
    halves: list[xr.DataTree] = []
    if size < 2:
        return halves
    for part in (slice(0, size // 2), slice(size // 2, None)):
        groups = {"/posterior": group(tree, "posterior"), "/log_likelihood": pointwise(tree)}
        half = xr.DataTree.from_dict({n: g.isel({dim: part}) for n, g in groups.items()})
        half.attrs = tree.attrs
        halves.append(half)
    return halves


def _moved(a: _Seen, b: _Seen, sd: np.ndarray) -> dict[str, Any]:
    """Return how far b is from a, eta in units of `sd` (N,)."""
    change = np.abs(b.p - a.p)
    k = int(np.argmax(change))
    leading = min(LEADING, max(1, len(a.p) // 2))
    # equal ones keep the order of the data
    first, second = (set(np.argsort(-s.p, kind="stable")[:leading]) for s in (a, b))
    with np.errstate(divide="ignore", invalid="ignore"):
        eta = np.abs(b.mean - a.mean) / sd
    row: dict[str, Any] = {
        "change_p": float(change[k]),
        "mcse_p": float(np.hypot(a.mcse[k], b.mcse[k])),
        "name_p": a.names[k],
        "leading": len(first & second),
        "change_eta": float(np.max(eta)),
        "change_train": float(np.abs(b.train - a.train).mean()),
    }
    if a.held_out is not None and b.held_out is not None:
        row["change_test"] = float(np.abs(b.held_out - a.held_out).mean())
    return row
