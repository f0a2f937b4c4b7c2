"""The goals of PAPER_CHECK.md, judged from the stored folds."""

from collections.abc import Iterable
from pathlib import Path

from lab.papers.results import Result, everything
from lab.papers.tables import GROUPS
from lab.records import Goal, lines

NEAR = 2.0  # a printed figure counts as repeated within so many +- of ours
FIGURES = ("accuracy", "f1")


def goals(folder: Path) -> list[Goal]:
    """Return whether the printed figures come out, by paper, and whether every row was run."""
    found = everything(folder)
    out = []
    for paper in dict.fromkeys(group.paper for group in GROUPS):
        of_paper = [r for r in found.values() if r.group.paper == paper and r.whole]
        for readings, what in ((("as printed",), "as printed"), (("baseline",), "its baselines")):
            near = [x for r in of_paper if r.row.reading in readings for x in repeated(r)]
            if near:
                text = f"{paper}, {what}: printed accuracy or F1 within {NEAR:g} +- of ours"
                out.append(Goal(text, f"{sum(near)} of {len(near)} figures", all(near)))
    whole = [r.whole for r in found.values()]
    declared = sum(len(group.rows) for group in GROUPS)
    text = "every declared row has all its folds"
    out.append(Goal(text, f"{sum(whole)} of {declared} rows", sum(whole) == declared))
    return out


def repeated(r: Result) -> Iterable[bool]:
    """Yield, for each printed accuracy or F1 of a row, whether ours is near it."""
    for figure in FIGURES:
        ours, printed = r.mean(figure), r.row.printed.get(figure)
        if ours is not None and printed is not None:
            yield not r.collapsed and abs(ours[0] - printed) <= NEAR * ours[1]


def table(folder: Path) -> str:
    """Return the goals as a table."""
    rows = [[x.goal, x.measured, "yes" if x.met else "**no**"] for x in goals(folder)]
    return lines([["goal", "measured", "met?"], *rows], [False] * 3)
