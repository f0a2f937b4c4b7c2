"""What a fit says of its features, in a few sentences, beside what the prior says."""

import math
from collections.abc import Mapping, Sequence

import pandas as pd
import xarray as xr

from .covariates import always_text
from .datatree import group
from .effects import effects, group_table, towards
from .selection import PROBABILITY, WEIGHT, summary

_NAMED = 8  # features named in a sentence
_GROUPS = 3  # groups named, and members of each
_MORE = 0.1
"""A group is named if one of it is active with a probability that is by so much above that of its
leading feature, and above the prior's."""
HIGH = 0.25
"""The lower quartile of P(active) from which on a list of the highest says little: all are high."""


def selection_text(tree: xr.DataTree) -> str:
    """Return which features a fit says have an effect, in a few sentences; "" if it cannot say.

    Examples
    --------
    >>> import numpy as np
    >>> import ardvark as av
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> problem = av.problem("pfcvm", X, X[:, 0] + 2 * X[:, 1] > 0)
    >>> fit = av.fit(problem, "paper", random_seed=1, progressbar=False)
    >>> print(av.inference.selection_text(fit))
    On average 2.0 of 4 features have an effect above 0.5 (90 % interval 2 to 2; the
    prior expects ...). More likely above it than not are x2 (+..., P 1.00, prior ...), x1
    (+...); 2 features carry 90 % of the squared effects, and those above it
    100 %. Numbers with a sign are effects on eta towards 'True', in log odds per standard
    deviation of the feature, with 90 % intervals.
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
    carry, t = _carry(numbers), f"{table.attrs['threshold']:g}"
    if tree.attrs.get("kind") in ("point", "search"):
        which = f": {_listed(_pointed(named))}; {carry}" if len(named) else ""
        text = (
            f"At the returned point {len(named)} of {D} features have an effect above {t}{which}."
        )
        return text + (_unit(table, "") if len(named) else "")
    text = counted(tree)
    if numbers["active"] == 0.0:
        return text
    text += " "
    if len(named):
        listed = _listed(_measured(named, own=not _alike(table)))
        text += f"More likely above it than not{_before(table)} are {listed}; "
        text = f"{text}{carry}.{_unit(table)}"
        return " ".join(filter(None, (text, together(tree))))
    single = f"so this fit singles out no feature; {carry}."
    text = f"{text}None is more likely above it than not{_before(table)}, {single}"
    return " ".join(filter(None, (text, together(tree))))


def counted(tree: xr.DataTree) -> str:
    """Return how many features have an effect above the threshold, beside what the prior says."""
    found = group(tree, "selection")
    numbers = summary(found, "feature")
    if not numbers or tree.attrs.get("kind") in ("point", "search"):
        return ""
    D, t, prior = found.sizes["feature"], f"{found.attrs['threshold']:g}", numbers["prior"]
    expected = "" if math.isnan(prior) else f"the prior expects {_number(prior)}"
    if numbers["active"] == 0.0:
        beside = f" ({expected})" if expected else ""
        return f"None of the {D} features has an effect above {t} in any draw{beside}."
    text = (
        f"On average {_number(numbers['active'])} of {D} features have an effect above {t} (90 % "
        f"interval {numbers['low']:.0f} to {numbers['high']:.0f}"
        f"{'; ' if expected else ''}{expected})."
    )
    if numbers["quarter"] <= HIGH:
        return text
    return (
        f"{text} Three in four have a probability of at least {numbers['quarter']:.2f} of that, so "
        "a list of the highest says little."
    )


def _number(value: float) -> str:
    return f"{value:.{1 if value < 100 else 0}f}"


def _carry(numbers: Mapping[str, float]) -> str:
    """Return how many features carry the effects, and the share of those above the threshold."""
    n90, share = int(numbers["n90"]), numbers["share"]
    verb = "1 feature carries" if n90 == 1 else f"{n90} features carry"
    text = f"{verb} 90 % of the squared effects"
    return text if math.isnan(share) else f"{text}, and those above it {100.0 * share:.0f} %"


def _before(table: pd.DataFrame) -> str:
    """Return P(active) under the prior, where it is the same for all features that vary."""
    return f" (prior {table['prior'].max():.2f})" if _alike(table) else ""


def _alike(table: pd.DataFrame) -> bool:
    prior = table["prior"]
    return bool(prior.max() == prior[prior > 0.0].min())


def _measured(named: pd.DataFrame, own: bool) -> list[str]:
    """Return each name with its signed effect and interval, P(active), and its `own` prior."""
    words = []
    for name, row in named.iterrows():
        said = []
        if not math.isnan(row["effect"]):
            said.append(f"{row['effect']:+.2g} [{row['low']:.2g}, {row['high']:.2g}]")
        said.append(f"P {row['p_active']:.2f}")
        if own and not math.isnan(row["prior"]):
            said.append(f"prior {row['prior']:.2f}")
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


def together(tree: xr.DataTree) -> str:
    """Return the groups of which the data say more than of their members, "" if there are none."""
    table, words = group_table(tree), []
    alone = effects(tree)["p_active"].reindex(table.index)
    known = alone.combine(table["prior"], max).fillna(alone) + _MORE
    says = (table["p_active"] > PROBABILITY) & (table["p_active"] > known)
    for _, row in table[says].iloc[:_GROUPS].iterrows():
        prior = "" if math.isnan(row["prior"]) else f", prior {row['prior']:.2f}"
        words.append(f"{_listed(row['members'], _GROUPS)} ({row['p_active']:.2f}{prior})")
    if not words:
        return ""
    return (
        "At least one of a group of correlated features (correlation of at least "
        f"{table.attrs['correlation']:g}) has such an effect: {'; '.join(words)}."
    )


def groups_instead(tree: xr.DataTree) -> str:
    """Return the groups where no feature alone is probable: then they are what there is to say."""
    return "" if (effects(tree)["p_active"] > PROBABILITY).any() else together(tree)


def _listed(words: Sequence[str], most: int = _NAMED) -> str:
    more = len(words) - most
    return ", ".join(words[:most]) + (f" and {more} more" if more > 0 else "")
