"""The tables of MATRIX.md, from the rows alone.

Findings are counted on posteriors for which the exact fit has converged.
"""

from pathlib import Path

import pandas as pd

from lab import tables
from lab.matrix.declared import AGAIN, EXACT, MORE, OTHER, PAPERS, UPDATE

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


def texts(frame: pd.DataFrame) -> dict[str, str]:
    """Return the tables of the page by their names."""
    known = held(frame)
    fits = known[known["cell"].isin(METHODS) & known["p_off"].notna()]
    found = {"distances": distances(known), "directions": directions(fits),
             "sparse": sparse(frame), "settings": settings(known)}  # fmt: skip
    return {name: tables.markdown(table) for name, table in found.items()}


def write(frame: pd.DataFrame) -> None:
    """Fill the tables of the page that is written by hand."""
    tables.fill(Path(__file__).with_name("MATRIX.md"), **texts(frame))


def span(values: pd.Series) -> str:
    """Return the median, and the ends."""
    if not len(values):
        return ""
    low, high = f"{values.min():.2f}", f"{values.max():.2f}"
    return f"{values.median():.2f} ({low if low == high else f'{low} to {high}'})"


def distances(known: pd.DataFrame) -> pd.DataFrame:
    """Return how far P(y = 1) is off, by model, prior and method: the median, and the ends."""
    lines = []
    for (model, prior), mine in known.groupby(["model", "prior"], sort=False):
        exact = mine[mine["cell"] == EXACT]
        line = {"model": model, "prior": prior, "posteriors": len(exact)}
        line["constant"] = f"{exact['p_off_base'].median():.2f}"
        line["one draw"] = f"{exact['p_draw'].median():.2f}"
        cells = {name: mine[mine["cell"] == name]["p_off"].dropna() for name in METHODS}
        lines.append(line | {name: span(values) for name, values in cells.items()})
    return pd.DataFrame(lines)


def directions(fits: pd.DataFrame) -> pd.DataFrame:
    """Return how each method errs: rows too alike or apart, widths, numbers of active features."""
    lines = []
    for name in METHODS:
        mine = fits[fits["cell"] == name]
        width = mine["eta_width"].dropna()
        lost = mine[mine["droppable"]]
        share = lost["active"] / lost["active_exact"]
        lines.append({
            "method": name,
            "fits": len(mine),
            "rows too alike": int((mine["slope"] < FLATTER).sum()),
            "too far apart": int((mine["slope"] > STEEPER).sum()),
            "widths": len(width),
            "too narrow": int((width < RIGHT_WIDTH[0]).sum()),
            "too wide": int((width > RIGHT_WIDTH[1]).sum()),
            "active: fits": len(lost),
            "below 1/20": int((share < 0.05).sum()),
            "below 1/2": int(((share >= 0.05) & (share < 0.5)).sum()),
            "above twice": int((share > 2.0).sum()),
        })  # fmt: skip
    return pd.DataFrame(lines)


def sparse(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the posteriors under the sparse prior, one by one."""
    lines = []
    mine = frame[frame["prior"] == "sparse"]
    for (model, kernel, data), block in mine.groupby(["model", "kernel", "data"], sort=False):
        cells = {str(row["cell"]): row for _, row in block.iterrows()}
        exact, again = cells[EXACT], cells[AGAIN]
        line = {"model": model, "data": f"{data} ({kernel})" if kernel else data}
        line["active (prior)"] = f"{exact['active']:.1f} ({again['active_prior']:.1f})"
        line["constant"] = f"{exact['p_off_base']:.2f}"
        for name in METHODS:
            x = cells[name]
            line[name] = f"{x['p_off']:.2f}; {x['eta_width']:.2g}; {x['active']:.1f}"
        lines.append(line)
    return pd.DataFrame(lines)


def settings(known: pd.DataFrame) -> pd.DataFrame:
    """Return what a further setting of each algorithm changes."""
    lines = []
    for name in METHODS:
        first = known[known["cell"] == name]
        for method in first["method"].drop_duplicates():
            for ending in (MORE, UPDATE, OTHER):
                rows = known[(known["cell"] == name + ending) & (known["method"] == method)]
                pairs = rows.merge(first, on=BLOCK, suffixes=("", "_first"))
                pairs = pairs[pairs["p_between"].notna()]
                if len(pairs):
                    named = {"method": f"`{method}`", "setting": ending.removeprefix(", ")}
                    lines.append({**named, **changed(pairs)})
    return pd.DataFrame(lines)


def changed(pairs: pd.DataFrame) -> dict[str, int | str]:
    """Return how many pairs of settings there are, how they differ, and which one is nearer."""
    settled = (pairs["status"] == "finished") & (pairs["status_first"] == "finished")
    nearer = (pairs["p_off_first"] - pairs["p_off"])[settled]
    return {
        "posteriors": len(pairs),
        "differs by: median": f"{pairs['p_between'].median():.3f}",
        "largest": f"{pairs['p_between'].max():.3f}",
        "nearer": int((nearer > CLOSE).sum()),
        "farther": int((nearer < -CLOSE).sum()),
        "not converged": int((~settled).sum()),
    }
