"""What a selection says, in numbers and in words, beside what the prior says."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from .activity import QUANTILES
from .covariates import always_text, covariate_effects
from .datatree import group
from .selection import DIMS, PROBABILITY, WEIGHT, summary
from .selection_rules import RULES, rules

_NAMED = 8  # features named in a sentence
_GROUPS = 3  # groups named, and members of each
_MORE = 0.1
"""A group is named if one of it is active with a probability that is by so much above that of its
leading feature, and above the prior's."""
EFFECTS = ("p_active", "mcse", "prior", "effect", "effect_sd", "low", "high", "size")
"""The numbers of `effects`."""


def effects(tree: xr.DataTree, what: str = "feature") -> pd.DataFrame:
    """Return P(active) and the signed effect of each feature, sample or covariate of one fit.

    Parameters
    ----------
    tree : DataTree
        A fit, with its group `selection` (`ardvark.select`).
    what : {"feature", "sample", "covariate"}

    Returns
    -------
    pandas.DataFrame
        One row per feature or sample, in the order of the data; empty if the fit has no selection.
        Covariates, the columns that are always in the model, have their effect with its interval,
        and under a logistic link the odds ratio of one unit of the column with its own:
        odds_ratio (posterior median), odds_low, odds_high.
        The columns are those of `EFFECTS`: P(active), its Monte Carlo error, its value under the
        prior; mean and standard deviation of the signed effect and the ends of its 90 % interval;
        and the mean effect without its sign. What is not known is NaN. Then one column of bools
        for each rule by which the fit can select: "P > 0.5", "FDR 10 %" (the longest list with an
        expected share of false discoveries of at most one in ten) and "own", of its paper.
        ``attrs["unit"]`` is the unit of an effect, ``attrs["towards"]`` the class for which one
        above 0 speaks, and ``attrs["direction"]`` what the signed one of a feature is.

    Examples
    --------
    >>> import numpy as np
    >>> import ardvark as av
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> problem = av.problem("pfcvm", X, X[:, 0] - X[:, 1] > 0)
    >>> fit = av.fit(problem, "paper", random_seed=1, progressbar=False)
    >>> table = av.effects(fit)
    >>> np.sign(table["effect"]).loc[["x1", "x2"]].tolist()
    [1.0, -1.0]
    >>> table.index[table["P > 0.5"]].tolist()
    ['x1', 'x2']
    >>> table.attrs["unit"]
    'log odds'
    """
    found = group(tree, "selection")
    about: dict[Any, Any] = {
        n: str(found.attrs.get(n, "")) for n in ("unit", "towards", "direction")
    }
    if what == "covariate":
        table = covariate_effects(tree)
        table.attrs = about
        return table
    if f"p_active_{what}" not in found:
        return pd.DataFrame(columns=list(EFFECTS))
    p = found[f"p_active_{what}"]
    ends = found.get(f"effect_at_{what}")
    columns = {n: found[f"{n}_{what}"].values if f"{n}_{what}" in found else np.nan
               for n in EFFECTS if n not in ("low", "high")}  # fmt: skip
    for name, at in (("low", QUANTILES[0]), ("high", QUANTILES[-1])):
        columns[name] = np.nan if ends is None else ends.sel(quantile=at, method="nearest").values
    frame = pd.DataFrame(columns, index=pd.Index(p[DIMS[what]].values.astype(str), name=what))
    frame = frame[list(EFFECTS)].astype(float).assign(**rules(tree, what))
    frame.attrs = about
    return frame


def selected_beside(
    fits: Mapping[str, xr.DataTree], reference: str | None, most: int = 20
) -> pd.DataFrame:
    """Return P(active) and the rules that select a feature, in words, one column per fit.

    P(active) under the prior has a column of its own, the first, where it is known. Rows are the
    features that any rule selects in any fit, up to a maximum number. The most probable ones under
    the reference (or the first fit) come first.
    """
    frames = {n: table for n, t in fits.items() if len(table := effects(t))}
    if not frames:
        return pd.DataFrame()
    first = frames.get(str(reference), next(iter(frames.values())))
    first = first.sort_values("p_active", ascending=False, kind="stable")
    known = {n: [r for r in RULES if r in f] for n, f in frames.items()}
    wanted = set[str]().union(*(f.index[f[known[n]].any(axis=1)] for n, f in frames.items()))
    rows = [k for k in first.index if k in wanted][:most]
    words = {
        n: [", ".join([f"{f.p_active[k]:.2f}", *(r for r in known[n] if f[r][k])]) for k in rows]
        for n, f in frames.items()
    }
    if first["prior"].notna().any():
        words = {"prior": [f"{p:.2f}" for p in first["prior"][rows]], **words}
    return pd.DataFrame(words, index=rows)


def group_table(tree: xr.DataTree) -> pd.DataFrame:
    """Return the groups of correlated features of one fit, the most probable first.

    Returns
    -------
    pandas.DataFrame
        One row per group, by its leading feature: `members`, the names in the order of P(active);
        p_active, the probability that at least one of them is active; mcse, its Monte Carlo error;
        and prior, its value under the prior. ``attrs["correlation"]`` is the absolute correlation
        from which on a feature belongs to the group of the leading one.
    """
    found = group(tree, "selection")
    columns = ("members", "p_active", "mcse", "prior")
    if "p_active_group" not in found:
        return pd.DataFrame(columns=list(columns))
    names = found["feature"].values.astype(str)
    order = np.argsort(-found["p_active_feature"].values, kind="stable")
    number = found["group_of_feature"].values
    leading = names[found["leading_feature"].values.astype(int)]
    members = []
    for i, leader in enumerate(leading):
        others = [n for n in names[order[number[order] == i]] if n != leader]
        members.append([leader, *others])
    frame = pd.DataFrame({"members": members}, index=pd.Index(leading, name="group"))
    for name in columns[1:]:
        frame[name] = found[f"{name}_group"].values if f"{name}_group" in found else np.nan
    frame = frame.sort_values("p_active", ascending=False, kind="stable")
    frame.attrs = {"correlation": float(found.attrs["correlation"])}
    return frame


# --- in words -------------------------------------------------------------------------------------


def selection_text(tree: xr.DataTree) -> str:
    """Return which features a fit says are active, in a few sentences; "" if it cannot say.

    Examples
    --------
    >>> import numpy as np
    >>> import ardvark as av
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> problem = av.problem("pfcvm", X, X[:, 0] + 2 * X[:, 1] > 0)
    >>> fit = av.fit(problem, "paper", random_seed=1, progressbar=False)
    >>> print(av.selection_text(fit))
    On average 2.0 of 4 features are active (90 % interval 2 to 2; the prior expects
    ...). Active with probability above 0.5 are x2 (1.00, ...), x1 (1.00, ...); 2
    features carry 90 % of the effect, and the active ones 100 %. Numbers with a sign
    are effects on eta towards 'True', in log odds per standard deviation of the
    feature, with 90 % intervals.
    """
    text = _of_features(tree)
    return f"{text}{always_text(tree)}" if text else ""


def _of_features(tree: xr.DataTree) -> str:
    """Return the same without covariates."""
    found = group(tree, "selection")
    numbers = summary(found, "feature")
    if not numbers:
        return ""
    D, table = found.sizes["feature"], effects(tree)
    # named by probability; equal ones keep the order of the data
    named = table.sort_values("p_active", ascending=False, kind="stable")
    named = named.iloc[: int(numbers["selected"])]
    carry = _carry(numbers)
    if tree.attrs.get("kind") in ("point", "search"):
        which = f": {_listed(_pointed(named))}; {carry}" if len(named) else ""
        text = f"At the returned point {len(named)} of {D} features are active{which}."
        return text + (_unit(table, "") if len(named) else "")
    prior = numbers["prior"]
    expected = "" if math.isnan(prior) else f"the prior expects {_number(prior)}"
    if numbers["active"] == 0.0:
        beside = f" ({expected})" if expected else ""
        return f"None of the {D} features is active in any draw{beside}."
    text = (
        f"On average {_number(numbers['active'])} of {D} features are active (90 % interval "
        f"{numbers['low']:.0f} to {numbers['high']:.0f}{'; ' if expected else ''}{expected}). "
    )
    if len(named):
        listed = _listed(_measured(named, own=not _alike(table)))
        text += f"Active with probability above {PROBABILITY:g}{_before(table)} are {listed}; "
        return f"{text}{carry}.{_unit(table)}{_together(tree)}"
    single = f"so these data single out no feature; {carry}."
    text += f"No feature is active with probability above {PROBABILITY:g}{_before(table)}, {single}"
    return f"{text}{_together(tree)}"


def _number(value: float) -> str:
    return f"{value:.{1 if value < 100 else 0}f}"


def _carry(numbers: Mapping[str, float]) -> str:
    """Return how many features carry the effect, and the share of the active ones."""
    n90, share = int(numbers["n90"]), numbers["share"]
    verb = "1 feature carries" if n90 == 1 else f"{n90} features carry"
    text = f"{verb} 90 % of the effect"
    return text if math.isnan(share) else f"{text}, and the active ones {100.0 * share:.0f} %"


def _before(table: pd.DataFrame) -> str:
    """Return P(active) under the prior, where it is the same for all features that vary."""
    return f" (prior {table['prior'].max():.2f})" if _alike(table) else ""


def _alike(table: pd.DataFrame) -> bool:
    prior = table["prior"]
    return bool(prior.max() == prior[prior > 0.0].min())


def _measured(named: pd.DataFrame, own: bool) -> list[str]:
    """Return each name with P(active), its `own` prior, and the signed effect with its interval."""
    words = []
    for name, row in named.iterrows():
        said = [f"{row['p_active']:.2f}"]
        if own and not math.isnan(row["prior"]):
            said.append(f"prior {row['prior']:.2f}")
        if not math.isnan(row["effect"]):
            said.append(f"{row['effect']:+.2g} [{row['low']:.2g}, {row['high']:.2g}]")
        words.append(f"{name} ({', '.join(said)})")
    return words


def _pointed(named: pd.DataFrame) -> list[str]:
    """Return each name with its signed effect, which has no interval at a point."""
    known = named["effect"].notna().all()
    return [f"{n} ({e:+.2g})" if known else str(n) for n, e in named["effect"].items()]


def _unit(table: pd.DataFrame, intervals: str = ", with 90 % intervals") -> str:
    """Return what the signed effects are, "" if there are none."""
    if table["effect"].isna().all():
        return ""
    what = "" if table.attrs["direction"] == WEIGHT else f" ({table.attrs['direction']})"
    return (
        f" Numbers with a sign are effects on eta{what}{towards(table)}, in {table.attrs['unit']} "
        f"per standard deviation of the feature{intervals}."
    )


def towards(table: pd.DataFrame) -> str:
    """Return the class for which an effect above 0 speaks, in words."""
    return f" towards {table.attrs['towards']!r}" if table.attrs["towards"] else ""


def _together(tree: xr.DataTree) -> str:
    """Return the groups of which the data say more than of their members, "" if there are none."""
    table, words = group_table(tree), []
    alone = effects(tree)["p_active"].reindex(table.index)
    known = np.fmax(alone, table["prior"].to_numpy()) + _MORE
    says = (table["p_active"] > PROBABILITY) & (table["p_active"] > known)
    for _, row in table[says].iloc[:_GROUPS].iterrows():
        prior = "" if math.isnan(row["prior"]) else f", prior {row['prior']:.2f}"
        words.append(f"{_listed(row['members'], _GROUPS)} ({row['p_active']:.2f}{prior})")
    if not words:
        return ""
    return (
        " At least one of a group of correlated features (correlation of at least "
        f"{table.attrs['correlation']:g}) is active: {'; '.join(words)}."
    )


def _listed(words: Sequence[str], most: int = _NAMED) -> str:
    more = len(words) - most
    return ", ".join(words[:most]) + (f" and {more} more" if more > 0 else "")
