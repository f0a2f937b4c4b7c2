"""Prior sensitivity: how a posterior changes under other priors, each of them a refit.

By default the expected number of active features (or of active samples, if features have no prior)
and the slab of a sparse prior are halved and doubled, one at a time, with everything else as given.
The first row of the table is the problem as it is; it compares one half of the chains with the
other, which is the noise floor of the changes below it.
"""

import os
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from ardvark.common.pieces import Processes
from ardvark.common.validate import InputError
from ardvark.models import Problem

from ..fits.activity import THRESHOLD
from ..fits.datatree import check_same, group, pointwise
from ..fits.selection import select, summary
from ..methods import registry
from ..methods.refits import refits
from ..target.sampling import Sampling

BASELINE = "as it is"
FACTORS = {"halved": 0.5, "doubled": 2.0}
NUMBERS = ("active_features", "active_samples", "slab")


@dataclass(frozen=True, eq=False, repr=False)
class Sensitivity:
    """What `sensitivity` found.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per prior, `BASELINE` first, whose changes are those from one half of its chains to
        the other. `status` of the refit, "not possible" if no such prior exists, and `reason` of
        one that is not "finished"; the hyperparameters that differ among the rows; `active`, the
        mean number of features with an effect (samples, if features have no prior), with its 5 %
        and 95 % quantiles, `low` and `high`, and `prior`, that under the prior of the refit;
        `change_p`, the largest change of P(effect), of `name_p`; `change_train`, the mean absolute
        change of P(y = 1) over the training rows.
    p_active : pandas.DataFrame
        P(effect) of each feature or sample, one column for each row of the table that has draws.
    what : {"feature", "sample"}
        Which of both.
    """

    table: pd.DataFrame
    p_active: pd.DataFrame
    what: str

    def __repr__(self) -> str:
        return textwrap.fill(self.text(), 80)

    def text(self) -> str:
        """Return what the table says, in a few sentences."""
        known = self.table.loc[list(self.p_active)]
        changed, floor, said = known.drop(index=BASELINE), known.loc[BASELINE], []
        if len(changed):
            p, labels = (changed.sort_values(c).iloc[-1] for c in ("change_p", "change_train"))
            said.append(
                f"Under the other priors P(effect) of any {self.what} changes by at most "
                f"{p.change_p:.2f} ({p.name_p}, {p.name}; noise floor "
                f"{floor.change_p:.2f}), and P(y = 1) of the training rows by at most "
                f"{labels.change_train:.3f} on average ({labels.name}; noise floor "
                f"{floor.change_train:.3f})."
            )
        counts = [f"{row.active:.1f} {n} (prior {row.prior:.1f})" for n, row in known.iterrows()]
        said.append(f"The mean number of {self.what}s with an effect is {', '.join(counts)}.")
        for name, row in self.table[self.table["status"] != "finished"].iterrows():
            said.append(f"{str(name).capitalize()}: {row.status}: {str(row.reason).rstrip('.')}.")
        return " ".join(said)


def changes(problem: Problem) -> dict[str, dict[str, float]]:
    """Return the changed hyperparameters of each row, by the row's name; nothing is fitted.

    Raises
    ------
    InputError
        The model has no sparse prior, or this problem's is dense or given by shape and rate.
    """
    given = {name: vars(problem.hypers).get(name) for name in NUMBERS}
    numbers = {n: float(v) for n, v in given.items() if isinstance(v, Real)}
    found = {n: v for n, v in numbers.items() if np.isfinite(v)}
    if "active_features" in found:
        found.pop("active_samples", None)
    if not found:
        raise InputError(
            f"there is nothing to halve or double: the prior of {problem.spec.name!r} has no "
            f"number {', '.join(NUMBERS)} here. In Python, ask for other priors: priors={{...}}."
        )
    return {
        f"{name} {word}": {name: factor * value}
        for name, value in found.items()
        for word, factor in FACTORS.items()
    }


def sensitivity(
    problem: Problem,
    method: str = "exact",
    *,
    priors: Mapping[str, Mapping[str, Any]] | None = None,
    draws: int = 1000,
    chains: int = 4,
    random_seed: int = 0,
    folder: str | os.PathLike[str] | None = None,
    processes: Processes = None,
    baseline: xr.DataTree | None = None,
    progressbar: bool = True,
    **options: Any,
) -> Sensitivity:
    """Refit a problem under other priors, and report what changes.

    Parameters
    ----------
    problem : Problem
    method : str
        A name in `BACKENDS`, or "paper".
    priors : dict of dict, optional
        By the name of a row, the hyperparameters that are changed. By default the expected number
        of active features (or samples) and the slab of a sparse prior are halved and doubled.
    draws, chains, random_seed
        Of every fit.
    folder : path, optional
        Finished fits are kept there, one file each, and used again.
    processes : int, optional
        How many fits run at once, each in a process of its own. By default as
        `joblib.parallel_config` says: one, unless it was called.
    baseline : DataTree, optional
        A fit of `problem` by this method, if there is one already. Effects above the threshold of
        its selection are counted.
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
        There is no other prior to try, the method does not apply, `baseline` is of another problem,
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
    refit
    as it is                 finished              1.0   1.0
    active_features halved   finished              0.5   1.0
    active_features doubled  finished              2.0   1.0
    slab halved              finished              1.0   0.5
    slab doubled             finished              1.0   2.0
    >>> found.p_active.shape  # 4 features; the problem as it is, and 4 changes
    (4, 5)
    >>> print(found.text())
    Under the other priors P(effect) of any feature changes by at most ...
    """
    sampling = Sampling(draws=draws, chains=chains, seed=random_seed, progressbar=progressbar)
    plan = registry.prepare(method, problem, options, sampling)
    if baseline is not None:
        check_same(problem, baseline)
    asked = changes(problem) if priors is None else priors
    problems, refused = {BASELINE: problem}, {}
    for name, change in asked.items():
        try:
            other = problem.with_hypers(**change)
        except InputError as error:
            refused[name] = {"status": "not possible", "reason": str(error)}
        else:
            if other.fingerprint != problem.fingerprint:  # with both slabs given, it is the same
                problems[name] = other
    fits = {} if baseline is None else {BASELINE: baseline}
    missing = {name: other for name, other in problems.items() if name not in fits}
    for name, tree in refits("sensitivity", missing, plan, folder, processes):
        fits[name] = tree
        if name == BASELINE and not group(tree, "posterior").data_vars:
            raise InputError(f"the problem itself could not be fitted: {tree.attrs['reason']}")
    names = dict.fromkeys(name for change in asked.values() for name in change)
    rows: dict[str, dict[str, Any]] = {}
    for name in (BASELINE, *asked):
        if name in refused:
            rows[name] = refused[name]
        elif name in fits:
            rows[name] = {n: fits[name].attrs[n] for n in ("status", "reason")}
            rows[name] |= {n: vars(problems[name].hypers)[n] for n in names}
    return _compared(problems, fits, rows)


def _compared(
    problems: Mapping[str, Problem],
    fits: Mapping[str, xr.DataTree],
    rows: dict[str, dict[str, Any]],
) -> Sensitivity:
    """Return what changes from fit to fit; a row without draws has no numbers."""
    what = "feature" if problems[BASELINE].spec.learns_theta else "sample"
    threshold = group(fits[BASELINE], "selection").attrs.get("threshold", THRESHOLD)
    base, p_active = _look(problems[BASELINE], fits[BASELINE], what, threshold), {}
    for name, row in rows.items():
        tree = fits.get(name)
        if tree is None or not group(tree, "posterior").data_vars:
            continue
        seen = _look(problems[name], tree, what, threshold)
        p_active[name] = seen.p
        row |= {n: seen.active[n] for n in ("active", "low", "high", "prior")}
        pair = [base, seen]
        if name == BASELINE:
            pair = [_look(problems[name], half, what, threshold) for half in _halves(tree)]
        if pair:
            change = (pair[1].p - pair[0].p).abs()
            row |= {"change_p": change.max(), "name_p": change.idxmax()}
            row["change_train"] = np.abs(pair[1].labels - pair[0].labels).mean()
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("refit")
    return Sensitivity(table, pd.DataFrame(p_active), what)


class _Seen(NamedTuple):
    """What is compared of a fit."""

    p: pd.Series  # P(active), by name
    labels: np.ndarray  # P(true class) of the training rows (N,)
    active: Mapping[str, float]  # how many of them are


def _look(problem: Problem, tree: xr.DataTree, what: str, threshold: float) -> _Seen:
    found = group(tree, "selection")
    if found.attrs.get("threshold") != threshold:
        found = select(problem, tree, threshold)
    names = problem.coords["feature" if what == "feature" else "basis"]
    p = pd.Series(found[f"p_active_{what}"].values, index=list(names))
    return _Seen(p, np.exp(pointwise(tree)["y"].values).mean((0, 1)), summary(found, what))


def _halves(tree: xr.DataTree) -> list[xr.DataTree]:
    """Return the two halves of a fit's chains, or of its one chain; none for a single draw."""
    dim = "chain" if tree["posterior"].sizes["chain"] > 1 else "draw"
    middle = tree["posterior"].sizes[dim] // 2
    bare = tree.drop_nodes("selection", errors="ignore")  # that is of all draws
    parts = (slice(0, middle), slice(middle, None)) if middle else ()
    return [bare.isel({dim: part}) for part in parts]
