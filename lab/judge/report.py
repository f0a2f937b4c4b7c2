"""What the rows of a trial say: shares with their intervals, in tables and a figure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from lab import tables
from lab.judge.trial import APART, NEVER
from lab.rows import Row

LEVELS = ("trust", "with care", "do not use", "not judged")
FORMATS = {"share": ".4f", "95 % low": ".4f", "95 % high": ".4f"}
PAGE = Path(__file__).parent / "JUDGE.md"
CLASSES = ("below the limit", "1 to 2 times the limit", "2 times the limit and more")


@dataclass(frozen=True)
class Told:
    """One wrong fit: its problem, kind, draws, how large its defect is, and the level it got."""

    problem: str
    kind: str
    draws: int
    size: int
    severity: float
    level: str

    @property
    def group(self) -> str:
        """Its class of size."""
        return CLASSES[int(self.severity >= 1.0) + int(self.severity >= 2.0)]


def told(rows: list[Row]) -> list[Told]:
    """Return every wrong fit, with the severity that 4000 draws of its kind and size show.

    Of a stopped run, kinds of which those are missing are left out.
    """
    most = max(row["draws"] for row in rows if row["draws"] <= 4000)
    large = {(r["problem"], r["kind"]): r for r in rows if r["draws"] == most}
    found = []
    for row in rows:
        if (place := (row["problem"], row["kind"])) in large:
            found += [
                Told(
                    *place, row["draws"], size,
                    float(large[place][f"severity {size}"]), row[f"level {size}"],
                )
                for size in range(4)
            ]  # fmt: skip
    return found


def interval(hits: Mapping[str, int], totals: Mapping[str, int]) -> tuple[float, float, float]:
    """Return a share and its 95 % interval, clustered by problem.

    With hits, the share is a ratio of sums over problems with the usual variance of a ratio, and t
    quantiles. Without, the upper end is the exact binomial one of independent cases.
    """
    n, k = sum(totals.values()), sum(hits.values())
    share = k / n
    low, high = 0.0, 1.0 - 0.025 ** (1.0 / n)
    if k and len(totals) > 1:
        gaps = np.array([hits.get(p, 0) - share * t for p, t in totals.items()])
        m = len(totals)
        error = np.sqrt(m / (m - 1) * (gaps**2).sum()) / n
        error = max(error, np.sqrt(share * (1 - share) / n))
        reach = stats.t.ppf(0.975, m - 1) * error
        low, high = max(0.0, share - reach), min(1.0, share + reach)
    return share, low, high


def counted(cases: list[Any], hit: Callable[[Any], bool], problem: Callable[[Any], str]) -> Row:
    """Return how many of some cases are hits, with the interval of their share."""
    hits: dict[str, int] = {}
    totals: dict[str, int] = {}
    for one in cases:
        totals[problem(one)] = totals.get(problem(one), 0) + 1
        hits[problem(one)] = hits.get(problem(one), 0) + int(hit(one))
    if not cases:
        return {"cases": 0, "hits": 0}
    share, low, high = interval(hits, totals)
    return {
        "cases": len(cases), "hits": sum(hits.values()), "share": share,
        "95 % low": low, "95 % high": high,
    }  # fmt: skip


def alarm(row: Row) -> bool:
    """Whether the right fit of a row was condemned.

    From 400 draws on, a word "rough" or "bad" is an alarm unless it is of too few effective draws;
    with fewer draws "bad" is one, and with fewer than 50 everything but "not judged".
    """
    words, draws = str(row["right words"]).split(), int(row["draws"])
    if draws < 50:
        return row["right"] != "not judged"
    if row["right"] == "do not use" or "bad" in words:
        return True
    few = {"ess", "not many draws"} & set(str(row["right codes"]).split(", "))
    return draws >= 400 and "rough" in words and not few


# --- tables ---------------------------------------------------------------------------------------


def of_trial(rows: list[Row]) -> dict[str, pd.DataFrame]:
    """Return the tables of a trial by name: wrong posteriors trusted, right ones condemned."""
    cases = told(rows)
    wrong = [c for c in cases if c.draws >= 1000 and c.kind not in APART]
    by_size = [
        {"size of the defect": c}
        | counted([x for x in wrong if x.group == c], _trusted, lambda x: x.problem)
        for c in CLASSES
    ]
    kinds = dict.fromkeys(x.kind for x in cases)
    found = {
        "trusted": pd.DataFrame(by_size),
        "kinds": pd.DataFrame([of_kind(kind, cases, wrong) for kind in kinds]),
        "right": right(rows, "draws"),
        "condemned": condemned(rows),
    }
    return found | ({"alone": pd.DataFrame([alone(rows)])} if NEVER[0] in kinds else {})


def of_kind(kind: str, cases: list[Told], wrong: list[Told]) -> Row:
    """Return how many fits of a kind are trusted, of all, by the size of the defect.

    Draws of the kinds "apart" are right. "below": problems on which even the largest size of the
    kind is below the limit.
    """
    own = [x for x in wrong if x.kind == kind]
    apart = [x for x in cases if x.kind == kind and kind in APART]
    below = {x.problem for x in own if x.size == 3 and x.group == CLASSES[0]}
    shares = {c: _share([x for x in own if x.group == c]) for c in CLASSES}
    return {"kind": kind} | shares | {"apart": _share(apart), "below": len(below)}


def alone(rows: list[Row]) -> Row:
    """Return how often a defect that no diagnostic can see is trusted without a reference."""
    unseen = [row for row in rows if row["kind"] in NEVER and row.get("alone as nuts")]
    levels = [f"{row['alone as nuts']} {row['alone as adopted']}".split() for row in unseen]
    return {"fits": 4 * len(unseen), "trusted": sum("trust" in words for words in levels)}


def right(rows: list[Row], by: str) -> pd.DataFrame:
    """Return what was said of right posteriors, a row for each value of a column.

    The run of a row can have `missing`, what has not converged; then it counts as a run alone.
    """
    out = []
    for value in sorted({row[by] for row in rows}):
        own = [row for row in rows if row[by] == value]
        done = [row for row in own if not row.get("missing")]
        levels = {level: sum(row["right"] == level for row in done) for level in LEVELS}
        share = counted(done, alarm, lambda row: str(row["problem"]))
        out.append({by: value, "runs": len(own)} | levels | share)
    return pd.DataFrame(out)


def condemned(rows: list[Row]) -> pd.DataFrame:
    """Return the right posteriors that were condemned, and why."""
    columns = ["problem", "draws", "right reason"]
    found = pd.DataFrame([row for row in rows if alarm(row)], columns=columns)
    return found.rename(columns={"right reason": "reason"})


def publish(trial: str, found: dict[str, pd.DataFrame], command: str, folder: Path) -> None:
    """Store the tables of a trial in a folder, and put them into its page."""
    for name, frame in found.items():
        tables.write(folder / f"{trial}_{name}.csv", frame, command)
    tables.show(folder / PAGE.name, FORMATS)


def _trusted(case: Told) -> bool:
    return case.level == "trust"


def _share(cases: list[Told]) -> str:
    return f"{sum(map(_trusted, cases))} of {len(cases)}" if cases else ""


# --- the figure ----------------------------------------------------------------------------------


def draw(rows: list[Row], path: Path) -> None:
    """Draw, by kind, the share of fits that are not trusted against the nominal size."""
    from matplotlib.figure import Figure

    cases = told(rows)
    kinds = dict.fromkeys(c.kind for c in cases)
    figure = Figure(figsize=(10.0, 7.5), layout="constrained")
    axes = figure.subplots(3, 6, sharex=True, sharey=True).ravel()
    for axis, kind in zip(axes, kinds, strict=False):
        for draws, colour in ((200, "#999999"), (1000, "#0072b2"), (4000, "#d55e00")):
            own = [c for c in cases if c.kind == kind and c.draws == draws]
            if own:
                shares = [np.mean([not _trusted(c) for c in own if c.size == s]) for s in range(4)]
                axis.plot(range(4), shares, "o-", color=colour, ms=3, label=f"{draws} draws")
        axis.set_title(kind, fontsize=9)
        axis.set_ylim(-0.05, 1.05)
        axis.set_xticks(range(4), ["1/2", "1", "2", "4"])
    axes[0].legend(fontsize=7, loc="lower right")
    figure.supxlabel("size of the defect, in nominal limits")
    figure.supylabel("share of fits that are not called trust")
    figure.savefig(path, dpi=110)
