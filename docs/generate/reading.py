"""How to read a report: its columns and verdicts, each from its one declaration."""

from collections.abc import Iterator

from ardvark.inference.comparison.verdicts.purposes import PURPOSES
from ardvark.inference.scoring.columns import COLUMNS, groups
from ardvark.inference.scoring.limits import LIMITS
from ardvark.inference.scoring.statistics import STATISTICS
from ardvark.inference.target import words
from lab import tables
from lab.judge.report import PAGE

from .text import table

RATES = {
    "trusted": ("Wrong posteriors called trust", "called trust"),
    "right": ("Right posteriors", "condemned"),
}
"""Tables of the judge's trial: their titles, and what a hit is in each."""


def pages() -> Iterator[tuple[str, str]]:
    """Yield the parts that the pages on reading include."""
    yield "parts/columns.md", columns() + "\n" + statistics()
    yield "parts/purposes.md", purposes()
    yield "parts/judge.md", error_rates()


def columns() -> str:
    """Return every row of the scorecard by its section: headings, names, meaning."""
    parts, before = [], None
    for meaning, together in groups().items():
        section = together[0].section
        if section != before:
            parts.append(f"## {section}")
        before = section
        parts.append(f"### {', '.join(c.heading for c in together)}")
        parts.append(meaning)
        parts.append("Named " + ", ".join(f"`{c.name}`" for c in together) + ".")
    parts += [f"`{c.name}`, below the table: {c.meaning}" for c in COLUMNS if not c.heading]
    return "\n\n".join(parts) + "\n"


def statistics() -> str:
    """Return what each distance says."""
    parts = ["## Every distance"]
    for names, meaning in words.MEANINGS.items():
        parts += [f"### {', '.join(names.split())}", meaning]
    return "\n\n".join(parts) + "\n"


def purposes() -> str:
    """Return what a verdict speaks of, and the limits that decide each word."""
    parts = []
    for purpose in PURPOSES.values():
        rows = [
            (
                f"`{limit.statistic}`",
                ", ".join(f"`{q}`" for q in limit.quantities),
                STATISTICS[limit.statistic].floor_text(limit.good),
                STATISTICS[limit.statistic].floor_text(limit.rough),
                limit.why,
            )
            for limit in LIMITS
            if limit.purpose == purpose.name
        ]
        head = ("statistic", "of", "good up to", "rough up to", "why")
        parts += [f"### {purpose.name}", f"{purpose.meaning}.", table(head, rows)]
    return "\n\n".join(parts) + "\n"


def error_rates() -> str:
    """Return how often a verdict was wrong, from the tables of the judge's trial."""
    parts, digits = [], dict.fromkeys(("share", "95 % low", "95 % high"), ".3f")
    for name, (title, counted) in RATES.items():
        path = PAGE.parent / f"judge_{name}.csv"
        found = tables.read(path).rename(columns={"hits": counted})
        parts += [f"**{title}**", tables.markdown(found, digits)]
    date = tables.said(path).partition(",")[0]
    return "\n\n".join([*parts, f"Measured on {date}."]) + "\n"
