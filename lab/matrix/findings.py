"""What the matrix found: sentences and the table of further settings, computed from its rows."""

import pandas as pd

from lab.matrix.declared import (
    AGAIN,
    DIFFUSE,
    EXACT,
    FLAT,
    LIMIT,
    MORE,
    OTHER,
    OTHER_SAMPLER,
    OWN_SETTINGS,
    PAPERS,
    UPDATE,
)
from lab.matrix.words import CLOSE, CLOSE_WORST, RIGHT_WIDTH, drops, fate

METHODS = (PAPERS, "ADVI", "Laplace")
"""What approximates the block's own posterior; XOLON is another estimator."""
_SAID = {PAPERS: "the paper's algorithm"}
BLOCK = ["model", "kernel", "data", "prior"]
FLATTER, STEEPER = 0.8, 1.25
"""Slopes of logit P(y = 1) on the exact one: differences between rows too small, or too large."""


def sentences(frame: pd.DataFrame) -> list[str]:
    """Return the findings, on posteriors for which the exact fit has converged."""
    exact = frame[(frame["cell"] == EXACT) & (frame["prior"] != FLAT)]
    held = frame.merge(exact[exact["status"] == "finished"][BLOCK], on=BLOCK)
    fits = held[held["cell"].isin(METHODS) & held["p_off"].notna()]
    out = [_floor(exact, held)]
    if len(fits):
        out.append(_overview(fits))
    for prior in ("sparse", "dense"):
        if told := _each(held[held["prior"] == prior], ("pfcvm", "rfvm")):
            out.append(f"Under the {prior} prior P(y = 1) is off, for {told}.")
    if told := _each(held, ("jcfo", "sparse_probit", "fsklr", "sklr")):
        out.append(f"Under the hierarchies of the papers it is off, for {told}.")
    found = (_points(held), _others(held), _forms(held), _directions(fits), _features(fits))
    return [*out, *filter(None, found)]


def _floor(exact: pd.DataFrame, held: pd.DataFrame) -> str:
    """Return how many exact fits have converged, and how far two of them are apart."""
    good = exact["status"] == "finished"
    said = f"`exact` converged on {int(good.sum())} of {len(exact)} posteriors"
    if len(left := exact[~good]):
        stopped = int((left["prior"] == DIFFUSE).sum())
        said += (
            "; the sentences leave the others out, and the tables mark them "
            f"({stopped} of {len(left)} are under `{DIFFUSE}`, where we stop it after {LIMIT} "
            "iterations)"
        )
    again, other = (held[held["cell"] == label] for label in (AGAIN, OTHER_SAMPLER))
    said += (
        ". P(y = 1) of two runs with different seeds differs, averaged over the training rows, by "
        f"{again['p_off'].median():.4f} on the median posterior and by at most "
        f"{again['p_off'].max():.4f}, and in the worst single row by {again['p_worst'].max():.3f}"
    )
    if unfinished := int((again["status"] != "finished").sum()):
        said += f" ({unfinished} of the second runs had not converged)"
    if len(other):
        said += (
            f"; of the two exact samplers, on the {_count(len(other), 'posterior')} where both "
            f"ran, by at most {other['p_off'].max():.4f}, and {other['p_worst'].max():.3f}"
        )
    return f"{said}."


def _overview(fits: pd.DataFrame) -> str:
    """Return how many fits are close, and how many near."""
    words = [fate(row).split(",")[0] for _, row in fits.iterrows()]
    close, near = words.count("close"), words.count("near")
    low, high = RIGHT_WIDTH
    wide = int(fits["eta_width"].notna().sum())
    return (
        f"Of {len(fits)} fits of the papers' algorithms, ADVI and Laplace, {wide} have a width of "
        f"eta; {close or 'none'} of these {'are' if close > 1 else 'is'} close (P(y = 1) within "
        f"{CLOSE} on average and {CLOSE_WORST} in every row, width of eta {low} to {high} of the "
        f"exact one). Of all, {close + near} {'is' if close + near == 1 else 'are'} within {CLOSE} "
        "in P(y = 1) on average."
    )


def _each(held: pd.DataFrame, models: tuple[str, ...]) -> str:
    told = (_ranges(held[held["model"] == model], model) for model in models)
    return "; for ".join(filter(None, told))


def _ranges(rows: pd.DataFrame, model: str) -> str:
    """Return how far each method is off on the data sets of a model, from the least to the most."""
    count = len(rows[rows["cell"] == EXACT])
    said: list[str] = []
    for name in METHODS:
        mine = rows[(rows["cell"] == name) & rows["p_off"].notna()]
        if not len(mine):
            continue
        told = [] if len(mine) == count else [f"{len(mine)} of them"]
        if len(mine) > 1:
            told.append(f"median {mine['p_off'].median():.2f}")
        share = 100.0 * mine["p_off"] / mine["p_off_base"]
        beside = "" if said else " of a constant's distance"
        told.append(f"{_from_to(share, '.0f')} %{beside}")
        said.append(
            f"by {_from_to(mine['p_off'], '.2f')} with {_SAID.get(name, name)} ({', '.join(told)})"
        )
    return f"{model} ({_count(count, 'posterior')}), {', '.join(said)}" if said else ""


def _points(held: pd.DataFrame) -> str:
    """Return what a single state can tell at best, and which searches ended at the origin."""
    mine = held[held["cell"] == PAPERS]
    modes = mine[mine["model"].isin(["jcfo", "sparse_probit"])]
    said = []
    if len(modes):
        empty = int(((modes["active"] == 0.0) & (modes["slope"].abs() < 1e-6)).sum())
        said.append(
            f"On {empty} of {len(modes)} posteriors of JCFO and sparse probit the papers' search "
            "for a mode ended with all weights 0, at gammas that our rule fills: P(y = 1) is then "
            "1/2 in every row"
        )
    states = mine[mine["model"].isin(["fsklr", "sklr"])]
    if len(states):
        fewer = int((states["p_off"] < states["p_draw"]).sum())
        said.append(
            "A single draw of the exact posterior of FS-SKLR or SKLR is off by "
            f"{_from_to(states['p_draw'], '.2f')}; the one state of the paper's algorithm is off "
            f"by less than that on {fewer} of {len(states)} posteriors"
        )
    return f"{'. '.join(said)}." if said else ""


def _others(held: pd.DataFrame) -> str:
    """Return what comes nearer under the sparse prior without aiming at its posterior."""
    sparse = held[held["prior"] == "sparse"]
    p, active = (
        sparse.pivot_table(index=["model", "kernel", "data"], columns="cell", values=value)
        for value in ("p_off", "active")
    )
    if not {PAPERS, OWN_SETTINGS, EXACT} <= {*p.columns, *active.columns}:
        return ""
    own = p.dropna(subset=[PAPERS, OWN_SETTINGS])
    nearer = int((own[OWN_SETTINGS] < own[PAPERS]).sum())
    said = (
        "Under the sparse prior the papers' algorithms of PFCVM and RFVM are less far off on "
        f"{nearer} of {len(own)} posteriors at their own settings, which aim at another posterior, "
        "or at none"
    )
    kept = active.groupby("model")
    told = [
        f"{model}: {mine[OWN_SETTINGS].median():.0f} active features in the median, the exact "
        f"posterior {mine[EXACT].median():.0f}"
        for model, mine in kept
    ]
    said += (
        f" ({'; '.join(told)}). The exact posterior follows the training labels there, so a fit "
        "that follows them too is less far off, whichever features it uses"
    )
    if "XOLON" in p:
        mine = p.dropna(subset=["XOLON"])
        best = int((mine["XOLON"] < mine[list(METHODS)].min(axis=1)).sum())
        said += (
            ". XOLON, a penalised fit that has no prior, is less far off than all three methods on "
            f"{best} of {len(mine)} of RFVM's posteriors"
        )
    return f"{said}."


def _forms(held: pd.DataFrame) -> str:
    """Return where the form of the model changes a method the most."""
    found = []
    for name in METHODS[1:]:
        first, other = (held[held["cell"] == label] for label in (name, name + OTHER))
        pairs = first.merge(other, on=BLOCK, suffixes=("", "_other"))
        pairs = pairs.dropna(subset=["p_off", "p_off_other"])
        for (model, prior), mine in pairs.groupby(["model", "prior"], sort=False):
            moved = float((mine["p_off"] - mine["p_off_other"]).abs().median())
            found.append((moved, name, model, prior, mine))
    if not found:
        return ""
    _, name, model, prior, mine = max(found, key=lambda x: x[0])
    return (
        "In other coordinates the same method on the same posterior can give another answer. In "
        f"the median over data sets the change is largest for {name} on {model} under the {prior} "
        f"prior: off by {_from_to(mine['p_off'], '.2f')} in the default form, by "
        f"{_from_to(mine['p_off_other'], '.2f')} in the other."
    )


def _directions(fits: pd.DataFrame) -> str:
    """Return how the methods err: rows too much alike or apart, intervals too narrow or wide."""
    if not len(fits):
        return ""
    slope = fits["slope"]
    flat = int((slope < FLATTER).sum())
    said = (
        f"In {flat} of these {len(fits)} fits the differences of P(y = 1) between rows are too "
        f"small (slope of its logit on the exact one below {FLATTER}; a constant in "
        f"{int((slope.abs() < 1e-6).sum())} of them), in "
        f"{int((slope > STEEPER).sum())} they are too large (slope above {STEEPER})"
    )
    low, high = RIGHT_WIDTH
    widths = []
    for name in METHODS:
        ratio = fits[fits["cell"] == name]["eta_width"].dropna()
        if len(ratio):
            narrow, wide = int((ratio < low).sum()), int((ratio > high).sum())
            widths.append(f"{narrow} and {wide} of {len(ratio)} with {_SAID.get(name, name)}")
    if widths:
        said += (
            f". The 90 % intervals of eta are too narrow (below {low} of the exact width) and too "
            f"wide (above {high}) in {', '.join(widths)}"
        )
    return f"{said}."


def _features(fits: pd.DataFrame) -> str:
    """Return how many fits lose the active features."""
    sure = fits[[drops(row) for _, row in fits.iterrows()]]
    if not len(sure):
        return ""
    words = [fate(row) for _, row in sure.iterrows()]
    zero, few, many = (
        sum(word in w for w in words) for word in ("at zero", "few active", "many active")
    )
    lost = sure[[("at zero" in w) or ("few active" in w) for w in words]]
    vague = int((lost["p_active_most"] < 0.5).sum())
    return (
        "Where the exact posterior has at least one active feature on average, and the model can "
        f"drop features ({_count(len(sure), 'fit')}), the mean number of active features is below "
        f"a twentieth of the exact one in {zero}, below a half in {few} more, and above twice in "
        f"{many}. This compares numbers, not which features they are: in {vague} of the "
        f"{len(lost)} with too few, the exact posterior has no feature that is more likely active "
        "than not."
    )


def chances(frame: pd.DataFrame) -> list[list[str]]:
    """Return a row for each algorithm and further setting: what the setting changes."""
    exact = frame[(frame["cell"] == EXACT) & (frame["status"] == "finished")]
    held = frame.merge(exact[BLOCK], on=BLOCK)
    out = []
    for name in METHODS:
        first = held[held["cell"] == name]
        for method in dict.fromkeys(first["method"]):
            for ending in (MORE, UPDATE, OTHER):
                rows = held[(held["cell"] == name + ending) & (held["method"] == method)]
                pairs = rows.merge(first, on=BLOCK, suffixes=("", "_first"))
                pairs = pairs[pairs["p_between"].notna()]
                if len(pairs):
                    out.append([f"`{method}`", ending.removeprefix(", "), *_changed(pairs)])
    return out


def _changed(pairs: pd.DataFrame) -> list[str]:
    """Return how many pairs of settings there are, how they differ, and which one is nearer."""
    settled = (pairs["status"] == "finished") & (pairs["status_first"] == "finished")
    nearer = (pairs["p_off_first"] - pairs["p_off"])[settled]
    counts = ((nearer > CLOSE).sum(), (nearer < -CLOSE).sum(), (~settled).sum())
    between = pairs["p_between"]
    return [
        str(len(pairs)),
        f"{between.median():.3f}",
        f"{between.max():.3f}",
        *(str(int(count)) for count in counts),
    ]


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _from_to(values: pd.Series, digits: str) -> str:
    low, high = f"{values.min():{digits}}", f"{values.max():{digits}}"
    return low if low == high else f"{low} to {high}"
