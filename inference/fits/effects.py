"""What a fit says of each feature, as a table: its effect first, then its probabilities."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from .activity import QUANTILES, THRESHOLD
from .covariates import ODDS, covariate_effects
from .datatree import group
from .selection import DIMS, WEIGHT
from .selection_rules import RULES, rules

EFFECTS = (
    "effect", "low", "high", "effect_sd", "p_direction", "p_active", "mcse", "prior",
    "bayes_factor", "bayes_factor_error", "size",
)  # fmt: skip
"""The numbers of `effects`, to which the odds ratios are added where eta is in log odds."""
_STORED = {"effect": "effect", "effect_sd": "effect_sd", "p_direction": "direction",
           "p_active": "p_active", "mcse": "mcse", "prior": "prior", "size": "size"}  # fmt: skip


def effects(tree: xr.DataTree, what: str = "feature") -> pd.DataFrame:
    """Return the effect of each feature, sample or covariate of one fit, and its probabilities.

    Parameters
    ----------
    tree : DataTree
        A fit, with its group `selection` (`ardvark.select`).
    what : {"feature", "sample", "covariate"}

    Returns
    -------
    pandas.DataFrame
        One row per feature or sample, in the order of the data; empty if the fit has no selection.
        What is not known is NaN.

        effect, low, high, effect_sd
            Posterior mean of the signed effect, the ends of its 90 % interval, and its standard
            deviation: of a feature per standard deviation of it.
        odds_ratio, odds_low, odds_high
            What the odds are multiplied by for one more standard deviation: posterior median and
            90 % interval; only where eta is in log odds and linear in the features. Those of
            covariates are for one unit of the column.
        p_direction
            The probability of the more probable sign.
        p_active, mcse, prior
            ``P(|effect| > t)`` with its Monte Carlo error, and its value under the prior. t is
            ``attrs["threshold"]``, 0.5 unless `ardvark.select` was asked for another.
        bayes_factor, bayes_factor_error
            The posterior odds of an effect above t over its prior odds, and the Monte Carlo error
            of the logarithm of that. At 1 the data have said nothing. It is infinite, or 0, where
            the effect is above t in every draw, or in none.
        size
            The mean effect without its sign.
        "P > 1/2", "FDR 10 %", "own"
            Whether each rule by which the fit can select chooses it: P(active) above one half; the
            longest list with an expected share of false discoveries of at most one in ten; and the
            rule of the method's own paper.

        Covariates, the columns that are always in the model, have the effect with its interval and
        the odds ratio. ``attrs["unit"]`` is the unit of an effect, ``attrs["towards"]`` the class
        for which one above 0 speaks, and ``attrs["direction"]`` what the signed one of a feature
        is.

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
    >>> table.index[table["P > 1/2"]].tolist()
    ['x1', 'x2']
    >>> table.attrs["unit"], table.attrs["threshold"]
    ('log odds', 0.5)
    """
    found = group(tree, "selection")
    about: dict[Any, Any] = {
        n: str(found.attrs.get(n, "")) for n in ("unit", "towards", "direction")
    }
    about["threshold"] = float(found.attrs.get("threshold", THRESHOLD))
    if what == "covariate":
        table = covariate_effects(tree)
        table.attrs = about
        return table
    if f"p_active_{what}" not in found:
        return pd.DataFrame(columns=list(EFFECTS))
    columns = {n: _values(found, f"{stored}_{what}") for n, stored in _STORED.items()}
    ends = found.get(f"effect_at_{what}")
    at = {"low": QUANTILES[0], "median": 0.5, "high": QUANTILES[-1]}
    inner = {n: np.nan if ends is None else ends.sel(quantile=q, method="nearest").values
             for n, q in at.items()}  # fmt: skip
    columns |= {n: np.asarray(inner[n]) for n in ("low", "high")}
    columns |= _bayes_factor(columns, _values(found, f"prior_mcse_{what}"))
    names = found[f"p_active_{what}"][DIMS[what]].values.astype(str)
    frame = pd.DataFrame(columns, index=pd.Index(names, name=what))
    frame = frame[list(EFFECTS)].astype(float)
    if about["unit"].startswith("log odds") and about["direction"] == WEIGHT:
        place = list(frame).index("p_direction")
        with np.errstate(over="ignore"):
            for name, end in zip(ODDS, ("median", "low", "high"), strict=True):
                frame.insert(place, name, np.exp(inner[end]))
                place += 1
    frame = frame.assign(**rules(tree, what))
    frame.attrs = about
    return frame


def _values(found: xr.Dataset, name: str) -> np.ndarray:
    return found[name].values if name in found else np.asarray(np.nan)


def _bayes_factor(
    columns: Mapping[str, np.ndarray], prior_error: np.ndarray
) -> dict[str, np.ndarray]:
    """Return posterior odds over prior odds of P(active), and the Monte Carlo error of its log."""
    p, prior = np.asarray(columns["p_active"]), np.asarray(columns["prior"], dtype=float)
    known = np.where((prior > 0.0) & (prior < 1.0), prior, np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = p / (1.0 - p) * (1.0 - known) / known
        error = np.hypot(columns["mcse"] / (p * (1.0 - p)), prior_error / (known * (1.0 - known)))
    return {"bayes_factor": factor, "bayes_factor_error": error}


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


# --- in print -------------------------------------------------------------------------------------

_SURE = 100.0
"""A Bayes factor above it, or below its inverse, is printed as that: draws do not say more."""


def legend(threshold: float) -> str:
    """Return what the columns of `printed` are that a reader may take for something else."""
    return f"P(> {threshold:g}): of a larger |effect|, no p-value; Bayes f.: its odds / prior odds"


def towards(table: pd.DataFrame) -> str:
    """Return the class for which an effect above 0 speaks, in words."""
    return f" towards {table.attrs['towards']!r}" if table.attrs["towards"] else ""


def leading(table: pd.DataFrame, most: int) -> pd.DataFrame:
    """Return the rows with the highest P(active); equal ones keep the order of the data."""
    return table.sort_values("p_active", ascending=False, kind="stable").iloc[:most]


def printed(table: pd.DataFrame) -> pd.DataFrame:
    """Return rows of `effects` as short strings; a column without any number is left out.

    The odds ratio stands with its interval; where there is none, the effect does.
    """
    odds = ODDS[0] in table and bool(table["effect"].notna().any())
    chosen = list(ODDS) if odds else ["effect", "low", "high"]
    ends = [_with_interval(*row) for row in table[chosen].itertuples(index=False)]
    columns = {
        "effect": table["effect"].map("{:+.2f}".format),
        "odds ratio (90 %)" if odds else "90 % interval": ends if odds else _only_ends(table),
        "direction": table["p_direction"].map("{:.2f}".format),
        f"P(> {table.attrs['threshold']:g})": table["p_active"].map("{:.2f}".format),
        "prior": table["prior"].map("{:.2f}".format),
        "Bayes f.": table["bayes_factor"].map(factor),
    }
    shown = pd.DataFrame(columns, index=table.index).replace("nan", "").replace("+nan", "")
    return shown.loc[:, (shown != "").any()]


def factor(value: float) -> str:
    """Return a Bayes factor in print."""
    if np.isnan(value):
        return ""
    if value > _SURE:
        return f"> {_SURE:g}"
    return f"< {1.0 / _SURE:g}" if value < 1.0 / _SURE else f"{value:.2g}"


def _with_interval(value: float, low: float, high: float) -> str:
    if np.isnan(value):
        return ""
    return _short(value) + ("" if low == high else f" ({_short(low)} to {_short(high)})")


def _only_ends(table: pd.DataFrame) -> list[str]:
    return ["" if np.isnan(low) or low == high else f"{low:+.2g} to {high:+.2g}"
            for low, high in table[["low", "high"]].to_numpy()]  # fmt: skip


def _short(value: float) -> str:
    """Return a number so that an odds ratio of 1.03 is not taken for 1."""
    if value < 10.0:
        return f"{value:.2f}"
    return f"{value:.0f}" if value < 1e5 else f"{value:.0e}"
