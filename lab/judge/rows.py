"""What the rows of a trial say: shares with their intervals, goals, tables and a figure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from lab.judge.trial import APART, CASES, NEVER, Trial
from lab.records import Goal, Table, table
from lab.script import Measured, Row

LEVELS = ("trust", "with care", "do not use", "not judged")
KINDS = (
    'Draws of the kinds "apart" are right. "below": problems on which even the largest size of the '
    "kind is below the limit."
)
SHARES = {"share": ".4f", "95 % low": ".4f", "95 % high": ".4f"}
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


def report(rows: list[Row], trial: Trial, quick: bool) -> Measured:
    """Return the goals, the tables and the figure."""
    cases = told(rows)
    judged = [c for c in cases if c.draws >= 1000 and c.kind not in APART]
    gross = [x for x in judged if x.group == CLASSES[2]]
    trusted = [
        {"problem": x.problem, "kind": x.kind, "draws": x.draws} for x in gross if _trusted(x)
    ]
    alone = [r for r in rows if r["kind"] in NEVER and r.get("alone as nuts")]
    ever = sum("trust" in f"{r['alone as nuts']} {r['alone as adopted']}".split() for r in alone)
    goals = [
        Goal(
            "2 times the limit and more, 1000 draws and more: no trust in 300 cases",
            f"{len(trusted)} of {len(gross)}",
            not trusted and len(gross) >= 300,
        ),
        few_alarms([r for r in rows if r["draws"] >= 400] or rows, "of 400 draws and more", 300),
        Goal(
            "without a reference, a lost mode, another prior or row: never trust",
            f"{ever} of {4 * len(alone)}",
            ever == 0 if alone else None,
        ),
    ]
    by_class = [
        {"size of the defect": c}
        | counted([x for x in judged if x.group == c], _trusted, lambda x: x.problem)
        for c in CLASSES
    ]
    tables = [
        table("Wrong posteriors called trust", by_class, SHARES),
        table("The same by kind: trusted of all", by_kind(cases, judged, trial), note=KINDS),
        *([table("Trusted at 2 times the limit and more", trusted)] if trusted else []),
        right_table("draws", rows),
        *condemned(rows),
    ]
    kept = {(x.problem, x.kind) for x in cases}
    seeds = ", ".join(sorted({str(row["seed"]) for row in rows}))
    notes = [
        f"Seed {seeds}.",
        trial.note,
        f"Of {len(CASES) * len(trial.catalogue)} pairs of problem and kind, {len(kept)} were run.",
        "Each share of wrong fits is of those called trust, each share of right ones of those "
        "condemned. Intervals are clustered by problem.",
    ]
    if not quick:
        draw(cases, trial)
        notes.append(f"![How often a defect is seen](figures/{trial.figure.name})")
    return Measured(goals, tables, notes)


def by_kind(cases: list[Told], judged: list[Told], trial: Trial) -> list[Row]:
    """Return a row for each kind: trusted of all, by the size of the defect."""
    out = []
    for kind in trial.catalogue:
        own = [x for x in judged if x.kind == kind]
        apart = [x for x in cases if x.kind == kind and kind in APART]
        below = {x.problem for x in own if x.size == 3 and x.group == CLASSES[0]}
        if any(x.kind == kind for x in cases):
            out.append(
                {"kind": kind}
                | {c: _share([x for x in own if x.group == c]) for c in CLASSES}
                | {"apart": _share(apart), "below": len(below)}
            )
    return out


def right_table(by: str, rows: list[Row]) -> Table:
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
    return table("Right posteriors", out, SHARES)


def condemned(rows: list[Row]) -> list[Table]:
    """Return the table of the right posteriors that were condemned, if there is one."""
    found = [
        {"problem": row["problem"], "draws": row["draws"], "reason": row["right reason"]}
        for row in rows
        if alarm(row)
    ]
    return [table("Right posteriors condemned", found)] if found else []


def few_alarms(rows: list[Row], which: str, least: int) -> Goal:
    """Return the goal on right posteriors, of which there are to be so many."""
    alarms = sum(map(alarm, rows))
    return Goal(
        f"right posteriors {which} condemned: at most 1 %" + (f" of {least}" if least > 1 else ""),
        f"{alarms} of {len(rows)}",
        len(rows) >= least and alarms <= 0.01 * len(rows),
    )


def _trusted(case: Told) -> bool:
    return case.level == "trust"


def _share(cases: list[Told]) -> str:
    return f"{sum(map(_trusted, cases))} of {len(cases)}" if cases else ""


def draw(cases: list[Told], trial: Trial) -> None:
    """Draw, by kind, the share of fits that are not trusted against the nominal size."""
    from matplotlib.figure import Figure

    kinds = [k for k in trial.catalogue if any(c.kind == k for c in cases)]
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
    trial.figure.parent.mkdir(exist_ok=True)
    figure.savefig(trial.figure, dpi=110)
