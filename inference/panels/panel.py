"""`panel`: which few features predict nearly as well as the full posterior, and how sure that is.

The full posterior is the best prediction at hand, but it needs all features. Projection predictive
selection (Piironen, Paasiniemi, Vehtari 2020, Electronic Journal of Statistics 14(1); McLatchie et
al. 2024, Statistical Science) looks for a submodel that predicts as the posterior does, and does
not fit the labels again. So it hardly overfits, although it chooses among many submodels:

1. Features are searched (`search.py`), on all rows and again in each fold with the fold's own refit
   of the posterior.
2. In each fold, submodels of every size predict the rows that were left out (`evaluation.py`).
3. The panel that is suggested is the smallest whose log score, plus one standard error of its
   difference, reaches the best one: that of the full posterior, or of the best size if that is
   better still. One standard error is projpred's rule, and says what the rows can tell apart; a
   fixed number of nats would ask more of many rows than of few. With many features and few rows,
   submodels often predict better than the posterior that they are projected from, because it
   averages over all that the other features could do. Measured by the posterior alone, one feature
   would then do, although five do clearly better.
4. Its members are the first features of the search on all rows. The coefficients are those of the
   full posterior's projection. They have no interval (`projection.py` says why): beside each stands
   the column's effect in the full posterior, with the interval that it has there.
5. Rows that the fit has not seen (`test`) are predicted by the panel itself, as by the fit.
"""

import json
import os
from collections.abc import Iterable, Sequence
from functools import partial

import joblib
import numpy as np
import pandas as pd
import xarray as xr

from ardvark.common.pieces import Processes, elsewhere
from ardvark.common.progress import Reporter
from ardvark.common.validate import InputError, logger, whole
from ardvark.data import Dataset
from ardvark.data.groups import EVENTS
from ardvark.models import Problem

from ..fits.datatree import check_same, group
from ..fits.selection import PROBABILITY
from ..methods import registry
from ..methods.refits import refits
from ..samplers.exact import method as exact
from ..samplers.exact.measured import between
from ..target.sampling import Sampling
from .evaluation import Predictions, Scores, kept, partition, scored
from .result import Panel, in_posterior
from .search import search

LARGEST = 20
"""Features of the largest panel, unless other sizes are asked for."""
_SHORT = 1.0  # seconds of a refit that nobody is told of beforehand
_DRAWS = 500  # that a refit by `exact` keeps of a chain, as those of `choose` do


def panel(
    problem: Problem,
    fit: xr.DataTree,
    sizes: int | Iterable[int] | None = None,
    *,
    test: Dataset | None = None,
    folds: int = 5,
    random_seed: int | None = None,
    folder: str | os.PathLike[str] | None = None,
    processes: Processes = None,
    progressbar: bool = True,
) -> Panel:
    """Find the few features whose logistic regression predicts nearly as the full posterior does.

    Columns that are always in the model (`problem(..., always=...)`) are in every submodel, and are
    not counted.

    Parameters
    ----------
    problem : Problem
        The problem that was fitted.
    fit : xarray.DataTree
        A fit of it by a method that can be run again: the reference that submodels are projected
        from. A panel of a poor approximation is a panel of that approximation.
    sizes : int or iterable of int, optional
        Sizes of the submodels that are evaluated: 0 to this number, or these. By default 0 to 20,
        or to the number of features.
    test : Dataset, optional
        Rows that the fit has not seen, in the original units. The full posterior and the panels of
        each size are scored on them too, beside the folds.
    folds : int
        The number of folds, each of which is a refit. Each has its share of both classes. A refit
        by `exact` asks for no more than predictions need, 400 effective draws.
    random_seed : int, optional
        Of the folds and of their refits. None: the seed of the fit.
    folder : path, optional
        Finished refits are kept there, and used again.
    processes : int, optional
        How many refits run at once, each in a process of its own. By default as
        `joblib.parallel_config` says: one, unless it was called.
    progressbar : bool
        Show the stages of each refit.

    Returns
    -------
    Panel

    Raises
    ------
    InputError
        The fit is of another problem, has no draws, or is not by a method of ardvark; the model
        gives no P(y = 1); a size or the number of folds is out of range; the test rows have other
        classes or lack a column; a refit failed.

    Examples
    --------
    >>> import numpy as np
    >>> import ardvark as av
    >>> X = np.random.default_rng(0).normal(size=(60, 6))
    >>> problem = av.problem("pfcvm", X, X[:, 0] - 2 * X[:, 3] > 0)
    >>> fit = av.fit(problem, "paper", random_seed=0, progressbar=False)
    >>> panel = av.panel(problem, fit, sizes=3, folds=3, progressbar=False)
    >>> panel.suggested, panel.names
    (2, ('x4', 'x1'))
    >>> float(panel.chosen.loc["x4", 1])  # all folds choose it first
    1.0
    >>> panel.coefficients["coefficient"].gt(0).to_dict()  # log odds per unit of the column
    {'intercept': ..., 'x4': False, 'x1': True}
    """
    check_same(problem, fit)
    if test is not None and test.class_names != problem.data.class_names:
        raise InputError(
            f"the test rows have the classes {test.class_names}, and the fit was made with "
            f"{problem.data.class_names}: their order decides what y = 1 is."
        )
    wanted = _sizes(sizes, problem.D)
    plan = _plan(problem, fit, random_seed, progressbar)
    folds = whole("folds", folds, 2)
    fold = partition(problem.y, folds, plan.sampling.seed, problem.data.groups)
    report = Reporter("panel", progressbar)
    _foretell(fit, plan, folds, processes)
    known = Predictions.of(problem, fit)
    path = _searched(known, wanted[-1], report, "search")
    left_out = None if test is None else scored(problem, fit, test, path, wanted, known)
    parts = {f"fold {k + 1}": problem.take(np.flatnonzero(fold != k)) for k in range(folds)}
    rows = {
        name: problem.data.take(np.flatnonzero(fold == k), both=False)
        for k, name in enumerate(parts)
    }
    paths, scores, troubles = {}, {}, []
    needed = {name: partial(kept, part, rows[name]) for name, part in parts.items()}
    for name, tree in refits("panel", parts, plan, folder, processes, needed):
        if tree.attrs["status"] == "failed":
            raise InputError(f"the refit without {name} failed: {tree.attrs['reason']}")
        if tree.attrs["status"] != "finished":
            troubles.append(name)
        own = Predictions.of(parts[name], tree)
        paths[name] = _searched(own, wanted[-1], report, f"search without {name}")
        scores[name] = scored(parts[name], tree, rows[name], paths[name], wanted, own)
    names = problem.feature_names
    table = tabulated([scores[name] for name in parts], wanted)
    if left_out is not None:
        table = _beside(table, left_out)
    table.insert(0, "feature", ["" if size == 0 else names[path[size - 1]] for size in wanted])
    return Panel(
        table=table,
        chosen=often([paths[name] for name in parts], wanted, names),
        suggested=suggested(table),
        size=suggested(table),
        selected_by_p_active=_median_model(fit),
        not_converged=tuple(name for name in parts if name in troubles),
        problem=problem,
        path=tuple(path),
        predictions=known,
        effects=in_posterior(problem, fit),
        scores={"folds": Scores.together([scores[name] for name in parts])}
        | ({} if left_out is None else {"left out": left_out}),
        few_events=tuple(n for n in parts if np.bincount(scores[n].y, minlength=2).min() < EVENTS),
    )


def _foretell(fit: xr.DataTree, plan: registry.Plan, folds: int, processes: Processes) -> None:
    """Say how long the refits may take: as long as the fit, or the share of its draws they need."""
    took = float(fit.attrs.get("seconds_run", 0.0))
    if took < _SHORT:
        return
    if elsewhere(processes):  # where its chains run one after the other
        took *= min(plan.sampling.chains, joblib.cpu_count())
    low = took
    if plan.name == exact.NAME:
        low *= plan.options.ess / json.loads(fit.attrs["options"])["ess"]
    rounds = -(-folds // joblib.effective_n_jobs(processes))
    logger.info(
        "panel: %d refits, each %s, together %s",
        folds, between(low, took), between(rounds * low, rounds * took)
    )  # fmt: skip


def _searched(known: Predictions, size: int, report: Reporter, name: str) -> list[int]:
    """Return the first features of a search, and show how many it has."""
    with report.stage(name, size) as update:
        return search(known.clusters, known.X, size, known.always, update)


def tabulated(scores: Sequence[Scores], sizes: Sequence[int]) -> pd.DataFrame:
    """Return what is known of each size from the rows of all folds: means over rows.

    The error of a mean is the standard deviation over rows, divided by the square root of their
    number; of a difference, that of the rows' own differences. It is NaN for one row.
    """
    of = Scores.together(scores)
    full, draws, formula = of.full, of.draws, of.formula
    top = int(draws.mean(0).argmax())
    best = full if full.mean() >= draws[:, top].mean() else draws[:, top]
    columns = {"log_score": draws.mean(0)}
    for names, other in ((("difference", "se"), full), (("to_best", "to_best_se"), best)):
        apart = draws - other[:, None]
        columns |= dict(zip(names, (apart.mean(0), _error(apart)), strict=True))
    table = pd.DataFrame(columns | {"formula": formula.mean(0)}, index=pd.Index(sizes, name="size"))
    table.attrs = {"full": float(full.mean()), "rows": len(full)}
    return table


def _error(values: np.ndarray) -> np.ndarray:
    """Return the standard error of the mean of each column (M, k); NaN with one row."""
    M, k = values.shape
    return values.std(0, ddof=1) / np.sqrt(M) if M > 1 else np.full(k, np.nan)


def _beside(folds: pd.DataFrame, test: Scores) -> pd.DataFrame:
    """Return the table of the folds, with what scores of test rows say in columns `test_...`."""
    own = tabulated([test], list(folds.index)).drop(columns=["to_best", "to_best_se"])
    own.insert(1, "log_score_se", _error(test.draws))
    about = own.attrs | {"full_se": float(_error(test.full[:, None])[0])}
    table = pd.concat([folds, own.add_prefix("test_")], axis=1)
    table.attrs = folds.attrs | {f"test_{name}": value for name, value in about.items()}
    return table


def often(
    paths: Sequence[Sequence[int]], sizes: Sequence[int], names: Sequence[str]
) -> pd.DataFrame:
    """Return how often each feature is among the first k of the searches in the folds.

    A share of the folds, a row for each feature that is chosen in any, a column for each size.
    """
    count = np.zeros((len(names), len(sizes)))
    for path in paths:
        for at, size in enumerate(sizes):
            count[list(path[:size]), at] += 1.0
    index = pd.Index(names, name="feature")
    frame = pd.DataFrame(count / len(paths), index, pd.Index(sizes, name="size"))
    frame = frame[count.any(axis=1)]
    return frame.iloc[np.argsort(-frame.to_numpy().sum(axis=1), kind="stable")]


def suggested(table: pd.DataFrame) -> int | None:
    """Return the smallest size at most one standard error below the best; None if there is none.

    The best is the full posterior, or the size with the largest log score if that is better still.
    """
    good = table.index[table["to_best"] + table["to_best_se"] >= 0.0]
    return int(good[0]) if len(good) else None


def _median_model(fit: xr.DataTree) -> tuple[str, ...] | None:
    """Return the features with P(active) above one half; None where it is not known."""
    found = group(fit, "selection")
    if "p_active_feature" not in found:
        return None
    p = found["p_active_feature"]
    order = np.argsort(-p.values, kind="stable")
    return tuple(str(p["feature"].values[k]) for k in order if p.values[k] > PROBABILITY)


def _sizes(asked: int | Iterable[int] | None, D: int) -> list[int]:
    """Return the sizes to evaluate, in order."""
    if asked is None:
        return list(range(min(LARGEST, D) + 1))
    if isinstance(asked, int | np.integer):
        return list(range(whole("sizes", asked, 1, D) + 1))
    found = sorted({whole("sizes", size, 0, D) for size in asked})
    if not found:
        raise InputError("sizes is empty: name a largest size, or some sizes.")
    return found


def _plan(problem: Problem, fit: xr.DataTree, seed: int | None, progressbar: bool) -> registry.Plan:
    """Return how the folds are refitted: as the fit was made, but `exact` for predictions only."""
    attrs = fit.attrs
    if problem.spec.link == "identity":
        raise InputError(
            f"{problem.spec.name} gives scores, and a panel is projected from P(y = 1). Use "
            "another model."
        )
    if attrs["method"] not in registry.BACKENDS:
        raise InputError(
            f"a panel refits its folds, and {attrs['method']!r} is no method of ardvark. Use a fit "
            "by av.fit."
        )
    if not group(fit, "posterior").data_vars:
        raise InputError(f"this fit has no draws: {attrs.get('reason', attrs['status'])}")
    draws, options = int(attrs["draws"]), json.loads(attrs["options"])
    if attrs["method"] == exact.NAME:
        options["ess"] = min(options["ess"], exact.IN_A_FOLD["ess"])
        draws = min(draws, _DRAWS)
    sampling = Sampling(
        draws=draws,
        chains=int(attrs["chains"]),
        seed=int(attrs["seed"]) if seed is None else seed,
        keep="shared",
        progressbar=progressbar,
    )
    return registry.prepare(attrs["method"], problem, options, sampling)
