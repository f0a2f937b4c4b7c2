"""The tables of PAPER_CHECK.md and of the papers' pages, from the stored folds."""

import json
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean, median

import pandas as pd

from lab import tables
from lab.papers.compared import PAPERS, Paper, differences
from lab.papers.results import REFERENCE, Result
from lab.papers.rows import table

LAB = Path(__file__).parents[1]
FIVE = "jcfo-1-five"
"""JCFO's rows on golub by five folds, where its table leaves one out: they have a table apart."""
DIGITS = {"accuracy": 1, "f1": 1, "log_score": 2}
Lines = dict[tuple[str, ...], dict[str, str]]
"""The cells of a table by the names of its line, and by data set."""


def write(found: Mapping[str, Result]) -> None:
    """Fill the tables of the pages that are written by hand."""
    for page, given in texts(found).items():
        tables.fill(LAB / page, **given)


def texts(found: Mapping[str, Result]) -> dict[str, dict[str, str]]:
    """Return the tables of each page, relative to `lab/`, by their names."""
    stored, apart = table(found), differences(found)
    rows = stored[(stored["step"] == "") & (stored["folds"] == stored["of"])]
    pages, overall = {}, []
    for name, paper in PAPERS.items():
        mine = rows[rows["table"].str.startswith(f"{name.lower()}-") & ~rows["table"].isin([FIVE])]
        beside = apart[apart["paper"] == name]
        own = mine[~mine["reading"].isin(["baseline", "yardstick"]) | (mine["row"] == REFERENCE)]
        own = own[~own["row"].str.startswith("select-")]
        given = {
            "measure": means(mine, paper.measure),
            "log_score": means(own, "log_score"),
            "features": means(own, "features"),
            "differences": pairs(beside, paper),
        }
        if paper.measure == "f1":
            given["classes"] = classes(mine)
        if name == "JCFO":
            given["open"] = tables.markdown(opened(found))
            given["five"] = tables.markdown(five(rows[rows["table"] == FIVE]))
        pages[f"papers/{name.lower()}.md"] = given
        overall.append(overview(name, paper, mine, beside))
    return pages | {"PAPER_CHECK.md": {"overview": tables.markdown(pd.concat(overall))}}


def means(rows: pd.DataFrame, column: str) -> str:
    """Return a table of means: a row of the paper's tables a line, a data set a column."""
    lines: Lines = {}
    for _, row in rows[rows[column].notna()].iterrows():
        key = (f"`{row['row']}`", row["reading"])
        lines.setdefault(key, {})[row["data"]] = cell(row, column)
    return wide(lines, "row", "reading")


def cell(row: pd.Series, column: str) -> str:
    """Return a mean; in parentheses converged fits where some did not; in brackets the print."""
    if row["collapsed"]:
        return "collapsed"
    printed = row.get(f"printed_{column}")
    said = "" if pd.isna(printed) else f" [{printed:g}]"
    if column == "features":
        return kept(row[column]) + said
    if row["converged"] < row["folds"]:
        said = f" ({row['converged']:.0f}/{row['folds']:.0f}){said}"
    return plus_minus(row[column], row[f"{column}_error"], DIGITS[column]) + said


def pairs(apart: pd.DataFrame, paper: Paper) -> str:
    """Return a table of differences: of the measure; of the log score."""
    lines: Lines = {(f"`{first}` - `{second}`",): {} for first, second in paper.pairs}
    for _, x in apart.iterrows():
        said = [
            signed(x[name], x[f"{name}_error"], digits)
            for name, digits in (("measure", DIGITS[paper.measure]), ("log_score", 2))
            if not pd.isna(x[name])
        ]
        lines[(f"`{x['first']}` - `{x['second']}`",)][x["data"]] = "; ".join(said)
    return wide({key: cells for key, cells in lines.items() if cells}, "rows")


def classes(rows: pd.DataFrame) -> str:
    """Return F1 minus the printed one, by y = 1 and by y = 0 as the positive class."""
    lines: Lines = {}
    for _, row in rows[rows["printed_f1"].notna()].iterrows():
        one, other = (row[name] - row["printed_f1"] for name in ("f1", "f1_other"))
        lines.setdefault((f"`{row['row']}`",), {})[row["data"]] = f"{one:+.1f}, {other:+.1f}"
    return wide(lines, "row")


def wide(lines: Lines, *index: str) -> str:
    """Return a table with the cells of each line in a column for each data set."""
    data = dict.fromkeys(name for cells in lines.values() for name in cells)
    body = [[*key, *(cells.get(name, "") for name in data)] for key, cells in lines.items()]
    return tables.markdown(pd.DataFrame(body, columns=[*index, *data]))


def overview(name: str, paper: Paper, rows: pd.DataFrame, apart: pd.DataFrame) -> pd.DataFrame:
    """Return a line for each data set: printed, algorithm, exact, L1, and their differences."""
    by_row = {(r["data"], r["row"]): r for _, r in rows.iterrows()}
    by_pair = {(x["data"], x["first"], x["second"]): x for _, x in apart.iterrows()}
    lines = []
    for data in rows["data"].unique():
        line = {"paper": "FS-SKLR" if name == "FSKLR" else name, "data": data}
        labels = {"algorithm": paper.algorithm, "exact": paper.exact, "L1": REFERENCE}
        for what, label in labels.items():
            row = by_row.get((data, label))
            line[what] = "" if row is None else cell(row, paper.measure)
        beside = {"exact - algorithm": paper.same, "exact - L1": (paper.exact, REFERENCE)}
        for what, pair in beside.items():
            x = by_pair.get((data, *pair))
            line[what] = "" if x is None else signed(x["log_score"], x["log_score_error"], 2)
        lines.append(line)
    return pd.DataFrame(lines)


def five(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that were run on five folds of golub."""
    lines = []
    for _, row in rows.iterrows():
        shown = {name: cell(row, name) for name in ("accuracy", "log_score", "features")}
        lines.append({"row": f"`{row['row']}`", "reading": row["reading"], **shown})
    return pd.DataFrame(lines).rename(columns={"log_score": "log score"})


def opened(found: Mapping[str, Result]) -> pd.DataFrame:
    """Return a line for each data set with JCFO's open grid: gammas, and how many genes are active.

    Of a gamma the median over folds, and the range; under a linear kernel the slopes depend on the
    product alone. The last three columns are means over the folds whose posterior has converged.
    """
    lines = []
    for place, end in (("jcfo-1/colon", ""), (f"{FIVE}/golub", "-five")):
        names = [f"{place}/{row}-open{end}" for row in ("jcfo", "exact")]
        if not set(names) <= set(found):
            continue
        fit, every = (found[name].lines for name in names)
        exact = {k: x for k, x in every.items() if x["status"] == "finished"}
        chosen = [json.loads(x["chosen"]) for x in fit.values()]
        line: dict[str, str | float] = {"data": place.split("/")[1], "folds": len(chosen)}
        for c in chosen:
            c["gamma1 gamma2"] = c["gamma1"] * c["gamma2"]
        for name in ("gamma1", "gamma2", "gamma1 gamma2"):
            values = [c[name] for c in chosen]
            line[name] = f"{median(values):.2g} ({min(values):.2g} to {max(values):.2g})"
        inside = sum(c["gamma1_inside"] and c["gamma2_inside"] for c in chosen)
        line |= {
            "both inside": f"{inside} of {len(chosen)}",
            "posteriors": f"{len(exact)} of {len(every)}",
        }
        counts_of = {
            "prior": [json.loads(x["chosen"])["prior"] for x in exact.values()],
            "posterior": [float(x["features"]) for x in exact.values()],
            "kept": [float(fit[k]["features"]) for k in exact],
        }
        lines.append(line | {name: fmean(values) for name, values in counts_of.items()})
    return pd.DataFrame(lines)


# --- numbers --------------------------------------------------------------------------------------


def plus_minus(value: float, error: float, digits: int) -> str:
    """Return a figure with its error, where there is one."""
    text = f"{round(value, digits) + 0.0:.{digits}f}"  # no -0.0
    return text if pd.isna(error) else f"{text} +- {error:.{digits}f}"


def signed(value: float, error: float, digits: int) -> str:
    """Return a difference with its sign and its error; one without either is 0 in each fold."""
    if value == 0.0 and error == 0.0:
        return "0 in each fold"
    text = plus_minus(value, error, digits)
    return text if text.startswith("-") else f"+{text}"


def kept(value: float) -> str:
    """Return a number kept: three digits."""
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"
