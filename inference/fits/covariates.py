"""What a fit says of the columns that are always in the model, as odds ratios with intervals."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import xarray as xr

from ardvark.models import ZOO

from .activity import QUANTILES
from .datatree import COVARIATES, group

OF_COVARIATES = ("effect", "effect_sd", "low", "high")
ODDS = ("odds_ratio", "odds_low", "odds_high")
"""What the odds are multiplied by for one more unit of the column, and the ends of its interval."""


def covariate_effects(tree: xr.DataTree) -> pd.DataFrame:
    """Return the effects of covariates, one row each; empty if the fit has none.

    `effect`, `effect_sd`, `low` and `high` are posterior mean, standard deviation and 90 % interval
    of the change of eta per standard deviation of the column. Under a logistic link `ODDS` are
    posterior median and 90 % interval of the odds ratio of one unit of the column: of a year of
    age, of one level against the others. All are NaN for a column that does not vary in the
    training rows, of which nothing is known.
    """
    posterior = group(tree, "posterior")
    if COVARIATES not in posterior:
        return pd.DataFrame(columns=list(OF_COVARIATES))
    drawn = posterior[COVARIATES].transpose("chain", "draw", ...)
    flat = drawn.values.reshape(-1, drawn.shape[-1])
    names = drawn["covariate"].values.astype(str)
    low, high = np.quantile(flat, (QUANTILES[0], QUANTILES[-1]), axis=0)
    columns = dict(zip(OF_COVARIATES, (flat.mean(0), flat.std(0), low, high), strict=True))
    spec = ZOO.get(str(tree.attrs.get("model")))
    constant = group(tree, "constant_data")
    unit = constant["covariate_scale"].values if "covariate_scale" in constant else None
    if unit is not None and spec is not None and spec.link.startswith("logistic"):
        known = (np.median(flat, axis=0), low, high)
        with np.errstate(over="ignore"):
            columns |= {n: np.exp(x / unit) for n, x in zip(ODDS, known, strict=True)}
    frame = pd.DataFrame(columns, index=pd.Index(names, name="covariate"))
    if unit is not None:
        frame.loc[np.isinf(unit)] = np.nan
    return frame


def always_text(tree: xr.DataTree) -> str:
    """Return in a sentence what is always in the model, and its effects; "" without any."""
    table = covariate_effects(tree)
    if not len(table):
        return ""
    words = ", ".join(f"{name} ({value})" for name, value in _in_words(table).items())
    what = (
        "odds ratios for one unit" if ODDS[0] in table else "effects on eta per standard deviation"
    )
    return f" Always in the model, with {what}: {words}."


def covariates_beside(fits: Mapping[str, xr.DataTree]) -> pd.DataFrame:
    """Return the odds ratio of each covariate in words, or else its effect: one column a fit."""
    found = {}
    for name, tree in fits.items():
        table = covariate_effects(tree)
        what = "odds ratio" if ODDS[0] in table else "effect per sd"
        found[name] = {f"{what} of {column}": text for column, text in _in_words(table).items()}
    return pd.DataFrame(found).fillna("")


def _in_words(table: pd.DataFrame) -> dict[str, str]:
    """Return the odds ratio or the effect of each covariate, with its interval."""
    odds = ODDS[0] in table
    rows = table[list(ODDS) if odds else ["effect", "low", "high"]]
    return {
        str(name): "does not vary"
        if np.isnan(value)
        else f"{value:{'' if odds else '+'}.2g} [{low:.2g}, {high:.2g}]"
        for name, value, low, high in rows.itertuples()
    }
