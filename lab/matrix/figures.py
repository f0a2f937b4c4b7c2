"""The figures that the text of the matrix's page names, from its rows alone.

The page is written by hand, in `MATRIX.md.j2`; what is in double braces there is an entry of the
dictionary that `figures` returns. Findings are counted on posteriors for which the exact fit has
converged.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ardvark.common.validate import InputError
from lab.matrix.declared import (
    AGAIN,
    BLOCKS,
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
from lab.matrix.rows import ROWS, read, whole
from lab.records import lines

METHODS = (PAPERS, "ADVI", "Laplace")
"""What approximates the block's own posterior."""
BLOCK = ["model", "kernel", "data", "prior"]
CLOSE, CLOSE_WORST = 0.02, 0.1
"""Of P(y = 1): on average, up to which the verdicts call it good
(`scoring/statistics/prediction.py`), and of the worst row."""
RIGHT_WIDTH = (0.8, 1.25)
"""Ratios of widths of eta that pass as right."""
FLATTER, STEEPER = 0.8, 1.25
"""Slopes of logit P(y = 1) on the exact one: differences between rows too small, or too large."""


def stored(folder: Path) -> pd.DataFrame:
    """Return the rows of the blocks that are finished in a folder.

    Raises
    ------
    InputError
        There are none.
    """
    frame = whole(read(folder / ROWS))
    if not len(frame):
        raise InputError(
            f"{folder / ROWS} has no finished block. Run `python -m lab reproduce matrix`."
        )
    return frame


def figures(frame: pd.DataFrame) -> dict[str, Any]:
    """Return every number and table of the page."""
    known = held(frame)
    fits = known[known["cell"].isin(METHODS) & known["p_off"].notna()]
    return {
        **_exact(frame, known),
        "fits": len(fits),
        "with_width": int(fits["eta_width"].notna().sum()),
        "close": int(fits["close"].sum()),
        "near": int(fits["near"].sum()),
        "near_and_wide": int((fits["near"] & fits["eta_width"].between(*RIGHT_WIDTH)).sum()),
        "distances": distances(known),
        "directions": directions(fits),
        "sparse": sparse(frame),
        "chances": chances(known),
        **_points(known),
        **_own_settings(known),
        **_cost(frame),
    }


def held(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the posteriors for which exact has converged, and how near each fit is.

    share : the distance of P(y = 1) from the exact one, divided by that of a constant. near : it is
    at most `CLOSE` on average. close : near, no row is off by more than `CLOSE_WORST`, and the
    width of eta is right. droppable : the exact posterior has an active feature on average, and the
    model can drop it.
    """
    exact = frame[(frame["cell"] == EXACT) & (frame["status"] == "finished")]
    known = frame.merge(exact[BLOCK], on=BLOCK)
    near = known["p_off"] <= CLOSE
    right = known["eta_width"].between(*RIGHT_WIDTH) & (known["p_worst"] <= CLOSE_WORST)
    return known.assign(
        share=known["p_off"] / known["p_off_base"],
        near=near,
        close=near & right,
        droppable=(known["model"] != "sklr") & (known["active_exact"] >= 1.0),
    )


def _exact(frame: pd.DataFrame, known: pd.DataFrame) -> dict[str, Any]:
    """Return how many exact fits have converged, and how far two of them are apart."""
    exact = frame[(frame["cell"] == EXACT) & (frame["prior"] != FLAT)]
    left = exact[exact["status"] != "finished"]
    again, other = (known[known["cell"] == label] for label in (AGAIN, OTHER_SAMPLER))
    return {
        "blocks": len(frame.drop_duplicates(BLOCK)),
        "declared": len(BLOCKS),
        "posteriors": len(exact),
        "converged": len(exact) - len(left),
        "left": len(left),
        "left_diffuse": int((left["prior"] == DIFFUSE).sum()),
        "limit": LIMIT,
        "noise": f"{again['p_off'].median():.4f}",
        "noise_most": f"{again['p_off'].max():.4f}",
        "noise_worst": f"{again['p_worst'].max():.3f}",
        "both_samplers": len(other),
        "samplers_apart": f"{other['p_off'].max():.4f}",
        "samplers_worst": f"{other['p_worst'].max():.3f}",
    }


def distances(known: pd.DataFrame) -> str:
    """Return how far P(y = 1) is off, by model, prior and method: the median, and the ends."""
    body = []
    for (model, prior), mine in known.groupby(["model", "prior"], sort=False):
        exact = mine[mine["cell"] == EXACT]
        cells = [_span(mine[mine["cell"] == name]["p_off"].dropna()) for name in METHODS]
        draw = exact["p_draw"].median()
        constant = exact["p_off_base"].median()
        body.append(
            [str(model), str(prior), str(len(exact)), f"{constant:.2f}", f"{draw:.2f}", *cells]
        )
    head = ["model", "prior", "posteriors", "constant", "one draw", "paper's", *METHODS[1:]]
    return lines([head, *body], [False, False, *[True] * (len(head) - 2)])


def _span(values: pd.Series) -> str:
    if not len(values):
        return ""
    return f"{values.median():.2f} ({_ends(values)})"


def _ends(values: pd.Series, digits: int = 2) -> str:
    low, high = f"{values.min():.{digits}f}", f"{values.max():.{digits}f}"
    return low if low == high else f"{low} to {high}"


def directions(fits: pd.DataFrame) -> str:
    """Return how each method errs: rows too alike or apart, widths, numbers of active features."""
    body = []
    for name in METHODS:
        mine = fits[fits["cell"] == name]
        width = mine["eta_width"].dropna()
        lost = mine[mine["droppable"]]
        share = lost["active"] / lost["active_exact"]
        counts = (
            len(mine),
            (mine["slope"] < FLATTER).sum(),
            (mine["slope"] > STEEPER).sum(),
            len(width),
            (width < RIGHT_WIDTH[0]).sum(),
            (width > RIGHT_WIDTH[1]).sum(),
            len(lost),
            (share < 0.05).sum(),
            ((share >= 0.05) & (share < 0.5)).sum(),
            (share > 2.0).sum(),
        )
        body.append([name.split(",")[0], *(str(int(count)) for count in counts)])
    head = ["method", "fits", "rows too alike", "too far apart", "widths", "too narrow", "too wide",
            "active: fits", "below 1/20", "below 1/2", "above twice"]  # fmt: skip
    return lines([head, *body], [False, *[True] * (len(head) - 1)])


def sparse(frame: pd.DataFrame) -> str:
    """Return the posteriors under the sparse prior, one by one."""
    body = []
    for (model, kernel, data), mine in frame[frame["prior"] == "sparse"].groupby(
        ["model", "kernel", "data"], sort=False
    ):
        cells = {str(row["cell"]): row for _, row in mine.iterrows()}
        exact, again = cells[EXACT], cells[AGAIN]
        body.append([
            str(model), f"{data} ({kernel})" if kernel else str(data),
            f"{exact['active']:.1f} ({again['active_prior']:.1f})", f"{exact['p_off_base']:.2f}",
            *(_cell(cells[name]) for name in METHODS),
        ])  # fmt: skip
    head = ["model", "data", "active (prior)", "constant", "paper's", *METHODS[1:]]
    return lines([head, *body], [False, False, *[True] * (len(head) - 2)])


def _cell(row: pd.Series) -> str:
    """Return P(y = 1) off by, width of eta beside the exact one, mean number of active features."""
    return f"{row['p_off']:.2f}; {row['eta_width']:.2g}; {row['active']:.1f}"


def chances(known: pd.DataFrame) -> str:
    """Return what a further setting of each algorithm changes."""
    body = []
    for name in METHODS:
        first = known[known["cell"] == name]
        for method in first["method"].drop_duplicates():
            for ending in (MORE, UPDATE, OTHER):
                rows = known[(known["cell"] == name + ending) & (known["method"] == method)]
                pairs = rows.merge(first, on=BLOCK, suffixes=("", "_first"))
                pairs = pairs[pairs["p_between"].notna()]
                if len(pairs):
                    body.append([f"`{method}`", ending.removeprefix(", "), *_changed(pairs)])
    head = ["method", "setting", "posteriors", "differs by: median", "largest", "nearer", "farther",
            "not converged"]  # fmt: skip
    return lines([head, *body], [False, False, *[True] * 6])


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


def _points(known: pd.DataFrame) -> dict[str, Any]:
    """Return what a single state can tell at best, and which searches ended at the origin."""
    mine = known[known["cell"] == PAPERS]
    modes = mine[mine["model"].isin(["jcfo", "sparse_probit"])]
    empty = (modes["active"] == 0.0) & (modes["slope"].abs() < 1e-6)
    states = mine[mine["model"].isin(["fsklr", "sklr"])]
    return {
        "modes": len(modes),
        "empty_modes": int(empty.sum()),
        "states": len(states),
        "better_than_a_draw": int((states["p_off"] < states["p_draw"]).sum()),
        "a_draw": _ends(states["p_draw"]),
    }


def _own_settings(known: pd.DataFrame) -> dict[str, Any]:
    """Return what is nearer under the sparse prior without aiming at its posterior."""
    mine = known[known["prior"] == "sparse"]
    p, active = (
        mine.pivot_table(index=["model", "kernel", "data"], columns="cell", values=value)
        for value in ("p_off", "active")
    )
    own = p.dropna(subset=[PAPERS, OWN_SETTINGS])
    median = active.groupby("model").median().round().to_dict()
    return {
        "own": len(own),
        "own_nearer": int((own[OWN_SETTINGS] < own[PAPERS]).sum()),
        **{
            f"active_{name}_{model}": f"{median[cell][model]:.0f}"
            for model in ("pfcvm", "rfvm")
            for name, cell in (("exact", EXACT), ("own", OWN_SETTINGS))
        },
    }


def _cost(frame: pd.DataFrame) -> dict[str, Any]:
    """Return what the fits cost, and each method beside `exact`."""
    fits = frame[frame["seconds"].notna()]
    seconds = fits.pivot_table(index=BLOCK, columns="cell", values="seconds")
    shares = seconds[list(METHODS)].div(seconds[EXACT], axis=0).median()
    apart = np.exp(np.abs(np.log(seconds[AGAIN] / seconds[EXACT])).max())
    return {
        "all_fits": len(fits),
        "hours": f"{fits['seconds'].sum() / 3600.0:.1f}",
        "seeds_apart": f"{apart:.1f}",
        "cost_paper": f"{shares[PAPERS]:.2g}",
        "cost_advi": f"{shares['ADVI']:.2g}",
        "cost_laplace": f"{shares['Laplace']:.2g}",
    }
