"""Which features, or samples, each rule selects, with their P(active), and how stable that is.

    P > 0.5    P(active) above one half: the median model
    FDR 10 %   the longest list, in the order of P(active), whose mean of 1 - P(active) is at most
               0.1. That mean is its expected share of false discoveries (Mueller, Parmigiani & Rice
               2006). The list is empty if even its first entry would be too uncertain
    own        the rule of the method's paper, if it has one (`fit/selected_feature`)

A set is stable if other data of the same kind select it again. For sets s and t out of D features,
with r features in each and b in both, the measures are Jaccard b / (r_s + r_t - b), and Pearson's
correlation of their indicators, which is 0 for sets that share no more than chance (PFCVM_LP,
(16)-(19)).
"""

import os
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from ardvark.common.pieces import Processes
from ardvark.common.validate import InputError, logger, one_of
from ardvark.models import Problem

from ..fits.datatree import group
from ..fits.selection import PROBABILITY
from ..methods import registry
from ..target.sampling import Sampling
from .sharing import refits

RATE = 0.1
"""The expected share of false discoveries that the rule FDR allows."""
_OFTEN = 8  # features named in a sentence
RULES = ("P > 0.5", "FDR 10 %", "own")


def selected(tree: xr.DataTree, what: str = "feature") -> pd.DataFrame:
    """Return what each rule selects in one fit.

    Parameters
    ----------
    tree : DataTree
        A fit, with its group `selection` (`ardvark.select`).
    what : {"feature", "sample"}

    Returns
    -------
    pandas.DataFrame
        One row per feature or sample, in the order of P(active). The columns are p_active; prior,
        its value under the prior, if that is known; and a bool for each rule that the fit supports
        (`RULES`).

    Raises
    ------
    InputError
        The fit holds no P(active).

    Examples
    --------
    >>> import numpy as np
    >>> import ardvark as av
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> problem = av.problem("pfcvm", X, X[:, 0] + 2 * X[:, 1] > 0)
    >>> fit = av.fit(problem, "paper", random_seed=1, progressbar=False)
    >>> table = av.selected(fit)
    >>> table.index[table["P > 0.5"]].tolist()
    ['x2', 'x1']
    """
    one_of("what", what, ("feature", "sample"))
    found, own = group(tree, "selection"), group(tree, "fit")
    if f"p_active_{what}" not in found:
        raise InputError(f"this fit has no P(active) for any {what}: see ardvark.select.")
    values = found[f"p_active_{what}"]
    p = values.values
    frame = pd.DataFrame({"p_active": p}, index=values[values.dims[0]].values.astype(str))
    if f"prior_{what}" in found:
        frame["prior"] = found[f"prior_{what}"].values
    frame["P > 0.5"] = p > PROBABILITY
    frame["FDR 10 %"] = discoveries(p)
    if f"selected_{what}" in own:
        frame["own"] = own[f"selected_{what}"].values.ravel() != 0
    return frame.iloc[np.argsort(-p, kind="stable")]


def discoveries(p: np.ndarray, rate: float = RATE) -> np.ndarray:
    """Return which are in the longest list of an expected false discovery rate below `rate`."""
    order = np.argsort(-p, kind="stable")
    false = np.cumsum(1.0 - p[order]) / np.arange(1, len(p) + 1)  # grows along the list
    chosen = np.zeros(len(p), dtype=bool)
    chosen[order[false <= rate + 1e-12]] = True
    return chosen


def beside(fits: Mapping[str, xr.DataTree], reference: str | None, most: int = 20) -> pd.DataFrame:
    """Return P(active) and the rules that select a feature, in words, one column per fit.

    P(active) under the prior has a column of its own, the first, where it is known. Rows are the
    features that any rule selects in any fit, up to a maximum number. The most probable ones under
    the reference (or the first fit) come first.
    """
    known = {n: t for n, t in fits.items() if "p_active_feature" in group(t, "selection")}
    frames = {n: selected(t) for n, t in known.items()}
    if not frames:
        return pd.DataFrame()
    first = frames.get(str(reference), next(iter(frames.values())))
    rules = {n: [r for r in RULES if r in f] for n, f in frames.items()}
    wanted = set[str]().union(*(f.index[f[rules[n]].any(axis=1)] for n, f in frames.items()))
    rows = [k for k in first.index if k in wanted][:most]
    words = {
        n: [", ".join([f"{f.p_active[k]:.2f}", *(r for r in rules[n] if f[r][k])]) for k in rows]
        for n, f in frames.items()
    }
    if "prior" in first:
        words = {"prior": [f"{p:.2f}" for p in first["prior"][rows]], **words}
    return pd.DataFrame(words, index=rows)


# --- stability ------------------------------------------------------------------------------------


def agreement(chosen: np.ndarray) -> dict[str, float]:
    """Return Jaccard and Pearson of selections (R, D), each the mean over pairs.

    PFCVM (16) of a pair gives PFCVM (17), and PFCVM (18) of a pair gives PFCVM (19).

    Pairs for which a measure is 0 / 0 (nothing, or everything, is selected) are left out of it.
    """
    S = chosen.astype(float)
    D, r, both = S.shape[1], S.sum(axis=1), S @ S.T
    pair = np.triu_indices(len(S), 1)
    with np.errstate(invalid="ignore"):
        jaccard = both / (r[:, None] + r - both)
        pearson = (D * both - np.outer(r, r)) / np.sqrt(np.outer(r * (D - r), r * (D - r)))
    out = {}
    for name, of_pairs in (("jaccard", jaccard[pair]), ("pearson", pearson[pair])):
        defined = of_pairs[np.isfinite(of_pairs)]
        out[name] = float(defined.mean()) if len(defined) else float("nan")
    return out


def jackknife(chosen: np.ndarray, name: str) -> float:
    """Return the standard error of an agreement, by leaving each selection out."""
    R = len(chosen)
    if R < 3:
        return float("nan")
    left = np.array([agreement(np.delete(chosen, i, axis=0))[name] for i in range(R)])
    return float(((R - 1) * left.var()) ** 0.5)


@dataclass(frozen=True)
class Stability:
    """How often selections are repeated on parts of the data.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per rule: sets (the number of resamples it was applied to), size (mean number of
        features), jaccard and pearson, with their jackknife errors, `_se`.
    frequency : pandas.DataFrame
        The share of resamples that select a feature: one row per feature, one column per rule.
    """

    table: pd.DataFrame
    frequency: pd.DataFrame

    def __repr__(self) -> str:
        return self.text()

    def text(self) -> str:
        """Return in words how well the sets of each rule agree, and what is selected most often."""
        return "\n".join(
            _told(rule, self.table.loc[rule], self.frequency) for rule in self.table.index
        )


def _told(rule: str, row: pd.Series, frequency: pd.DataFrame) -> str:
    """Return what is said of one rule, in lines of at most 80 characters."""
    often = frequency[rule].sort_values(ascending=False, kind="stable")
    names = [f"{name} ({100.0 * share:.0f} %)" for name, share in often[often > 0.0].items()]
    text = f"{rule} selects {row['size']:.1f} of {len(frequency)} features on average. "
    if np.isnan(row["jaccard"]):
        text += "No two sets can be compared. "
    else:
        error = "" if np.isnan(row["jaccard_se"]) else f", se {100.0 * row['jaccard_se']:.0f} %"
        text += (
            f"Over {row['sets']:.0f} resamples, two sets share "
            f"{100.0 * row['jaccard']:.0f} % of the features of both (Jaccard{error}). "
        )
    more = f" and {len(names) - _OFTEN} more" if len(names) > _OFTEN else ""
    listed = ", ".join(names[:_OFTEN]) + more if names else "none"
    return textwrap.fill(f"{text}Selected most often: {listed}.", 80)


def stability(
    problem: Problem,
    method: str = "paper",
    *,
    resamples: int = 10,
    share: float = 0.5,
    draws: int = 1000,
    chains: int = 4,
    random_seed: int = 0,
    folder: str | os.PathLike[str] | None = None,
    processes: Processes = None,
    progressbar: bool = True,
    **options: Any,
) -> Stability:
    """Refit a problem on random parts of its samples, and report how well the selections agree.

    Each part has the same share of both classes. Hyperparameters stay as they are, so the sets
    differ only because of the data. Overlapping parts agree more than independent data would.

    Parameters
    ----------
    problem : Problem
    method : str
        A name in `BACKENDS`, or "paper".
    resamples : int
        How many parts, at least two.
    share : float
        Their size, as a share of the training samples.
    draws, chains, random_seed
        Of every fit; the seed also of the parts.
    folder : path, optional
        Finished fits are kept there, and used again.
    processes : int, optional
        How many fits run at once, each in a process of its own. By default as
        `joblib.parallel_config` says: one, unless it was called.
    progressbar : bool
        Show the stages of each fit.
    **options
        Of the method.

    Raises
    ------
    InputError
        There are fewer than two resamples, the share is out of range, the method does not apply, or
        fewer than two fits have P(active).
    TypeError
        An unknown option.

    Examples
    --------
    >>> import numpy as np
    >>> import ardvark as av
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> problem = av.problem("pfcvm", X, X[:, 1] > 0)
    >>> found = av.stability(problem, "pfcvm_em", resamples=4, progressbar=False)
    >>> found.frequency["P > 0.5"].to_dict()  # every half of the data selects x2, and only x2
    {'x1': 0.0, 'x2': 1.0, 'x3': 0.0, 'x4': 0.0}
    >>> found.table.loc["P > 0.5", ["sets", "size", "jaccard"]].to_dict()
    {'sets': 4.0, 'size': 1.0, 'jaccard': 1.0}
    >>> print(found.text())
    P > 0.5 selects 1.0 of 4 features on average. Over 4 resamples, two sets share 100 %
    of the features of both (Jaccard, se 0 %). Selected most often: x2 (100 %).
    ...
    """
    if resamples < 2:
        raise InputError(
            f"resamples must be at least 2, because pairs are compared, got {resamples}."
        )
    sampling = Sampling(draws=draws, chains=chains, seed=random_seed, progressbar=progressbar)
    plan = registry.prepare(method, problem, options, sampling)
    number = {sample: n for n, sample in enumerate(problem.data.sample_names)}
    parts = {}
    for i in range(resamples):
        left, _ = problem.data.split(1.0 - share, random_seed=sampling.seed + i)
        parts[f"part {i}"] = problem.take([number[sample] for sample in left.sample_names])
    tables = {}
    for key, tree in refits("stability", parts, plan, folder, processes):
        if "p_active_feature" in group(tree, "selection"):
            tables[key] = selected(tree).loc[list(problem.feature_names)]
        logger.info("stability: %s", key)
    sets = {r: [tables[k][r] for k in parts if k in tables and r in tables[k]] for r in RULES}
    chosen = {rule: np.array(found) for rule, found in sets.items() if len(found) > 1}
    if not chosen:
        raise InputError("there is nothing to compare: fewer than two fits have P(active).")
    rows = {rule: _row(S) for rule, S in chosen.items()}
    frequency = {rule: S.mean(axis=0) for rule, S in chosen.items()}
    return Stability(
        pd.DataFrame.from_dict(rows, orient="index"),
        pd.DataFrame(frequency, index=list(problem.feature_names)),
    )


def _row(chosen: np.ndarray) -> dict[str, float]:
    row = {"sets": len(chosen), "size": float(chosen.sum(axis=1).mean()), **agreement(chosen)}
    return row | {f"{name}_se": jackknife(chosen, name) for name in ("jaccard", "pearson")}
