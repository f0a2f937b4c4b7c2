"""The columns of a comparison, each declared once: its name, heading, digits and meaning.

The table, what is printed of it, the page's legend and the documentation of the table follow from
`COLUMNS`. Those of the distances are the statistics' own (`statistics/`). To add another column,
declare it here and put its number into the row in `comparison/rows.py`.
"""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from ardvark.models import SHARED

from .statistics import STATISTICS

_KIND = (
    "`mcmc` is exact up to Monte Carlo error. So is a `reference`, which was computed earlier and "
    "stored. An `approximation` replaces the posterior by a simpler distribution q, and its draws "
    "come from q. A `search` or `point` is a single state without a spread. A `baseline` is a "
    "plain classifier."
)
_STATUS = (
    "`finished` reports convergence, not accuracy. `not_converged` means that there are draws, "
    "which must not be trusted. `failed` means that there are none. The reason for either is given."
)
_KHAT = (
    "For a method that states the density of its q: the tail index of the ratios p / q at q's own "
    "draws. Above min(0.7, 1 - 1 / log10 S), for S draws, q misses part of the posterior mass. "
    "Below that limit, q may still be wrong."
)
_CHAINS = (
    "Whether the Markov chains converged. R-hat should be below 1.01; given are the worst over "
    "everything stored, and the worst over eta. The effective sample sizes are the smallest over "
    "everything stored, and should be in the hundreds. Divergent transitions should be few. These "
    "columns are blank for an approximation, since independent draws always look perfect."
)
_BITS = (
    "For Markov chains over binary masks: the largest Monte Carlo error of an inclusion "
    "probability (by batch means), the largest difference between one chain's inclusion "
    "probability and that of all chains, and the number of bits that never changed. R-hat, ESS and "
    "the Monte Carlo error leave out the bits that never changed."
)
_SECONDS = "Time in seconds spent on compilation, and on the rest of the fit."
_VERDICT = (
    "Whether the fit can be used: `trust`, `converged` (chains of an exact sampler, judged alone), "
    "`with care` (for some purposes only), `do not use`, or `not judged` (there is no exact "
    "posterior to compare it with). The verdict on each fit says more."
)
_ACTIVE = (
    "The effect of a feature or sample is the standard deviation over the training rows of what it "
    "adds to eta. Given is the mean number of effects above a threshold, which is 0.5 unless "
    "another was asked for, with the 5 % and 95 % quantiles over draws in brackets; and the mean "
    "number under the prior, by simulation: a number near to that one says little about the data. "
    "Median P is the background: half of all have a probability of at least that to be above the "
    "threshold. n90 is how many of them carry 90 % of the sum of squared effects; the median over "
    "draws. With P > 1/2 is how many are above the threshold in more than half of the draws; those "
    "are selected. For a point or search, all of these describe its one state."
)
_OWN = (
    "How many features and samples the method itself selects, by the rule in its paper (groups "
    "`fit/selected_feature` and `fit/selected_sample`). For the baselines, these are the nonzero "
    "weights and the support vectors."
)
_TEST = (
    "How well the posterior predictive probability, averaged over draws, predicts the held-out "
    "samples. Log score is the mean log probability of the true class: 0 is perfect, -0.69 is a "
    "coin. Brier score is the mean square of P(y = 1) - y: 0 is perfect, 0.25 is a coin. AUC is "
    "how often a sample with y = 1 has a larger P than one with y = 0. F1 is that of class 1. "
    "Kappa is the agreement beyond chance; always answering the majority class scores 0. Standard "
    "errors follow the sign +- (bootstrap over samples). There is none if all samples are alike; M "
    "samples cannot show an error rate below 3 / M. Wrong are the samples in the wrong class. Sure "
    "are those of them whose 90 % interval of P(y = 1) excludes 1/2: a method that is sure of many "
    "is overconfident. A single state is sure of everything."
)
_CALIBRATION = (
    "Expected calibration error on the held-out samples: the mean absolute difference between "
    "P(y = 1) and the share of y = 1, over ten bins of P. `= floor` marks an error within its "
    "noise: one in twenty sets of labels drawn from P itself would score no better."
)


FLOOR = "= floor"
"""Printed for a distance that is within Monte Carlo error."""


@dataclass(frozen=True)
class Column:
    """One column of the comparison's table."""

    name: str
    """In the DataFrame."""
    heading: str
    """In print; "" for a column that is not printed as one."""
    digits: int | None
    """Behind the point, in print; None for text."""
    meaning: str
    """What it says, for a reader of the table. Columns that are read together share a meaning:
    they are printed side by side and explained once. `Words` in backquotes stand out."""

    interval: tuple[str, str] | None = None
    """The columns of the ends of its interval, printed behind it in brackets."""
    beyond: str = ""
    """Of a distance, the column of how far it is beyond its noise floor: 0 prints as that."""
    error: str = ""
    """The column of its standard error, printed behind it where it is known."""
    section: str = ""
    """Under which heading it stands on the page."""

    def text(self, value: str | float | None) -> str:
        """Return a value as it is printed, "" where it is not known."""
        if value is None or isinstance(value, str):
            return value or ""
        return "" if np.isnan(value) else f"{value:.{self.digits}f}"

    def printed(self, row: Mapping[str, Any]) -> str:
        """Return the column of a row as it is printed, with its interval unless that is a point."""
        text = self.text(row[self.name])
        if text and self.beyond and row.get(self.beyond) == 0.0:
            return FLOOR
        error = row.get(self.error, np.nan) if self.error else np.nan
        if text and not np.isnan(error):
            return f"{text} +- {error:.{self.digits}f}"
        if not text or self.interval is None:
            return text
        mean, low, high = (row[name] for name in (self.name, *self.interval))
        if abs(mean) >= 100.0 or low == mean == high:
            text = f"{mean:.0f}"
        return f"{text} ({low:.0f}-{high:.0f})" if low < high else text


def distances() -> Iterator[Column]:
    """Yield the columns of every statistic that has some, the shared quantities first."""
    quantities = dict.fromkeys([*SHARED, *(q for s in STATISTICS.values() for q in s.columns)])
    for quantity in quantities:
        for s in STATISTICS.values():
            if quantity in s.columns:
                name, digits = s.column(quantity), s.columns[quantity]
                yield from _distance(name, s.heading(quantity), digits, s.meaning)


def _distance(name: str, heading: str, digits: int, meaning: str) -> tuple[Column, Column]:
    """Return the column of a distance, and that of how far it is beyond its noise floor."""
    beyond = f"{name}_beyond"
    return Column(name, heading, digits, meaning, beyond=beyond), Column(beyond, "", 3, meaning)


def _held_out(name: str, heading: str) -> tuple[Column, Column]:
    """Return the column of a measure of predictions, and that of its standard error."""
    error = f"{name}_se"
    return Column(name, heading, 3, _TEST, error=error), Column(error, "", 3, _TEST)


def _section(name: str, *columns: Column) -> tuple[Column, ...]:
    """Return columns that stand under one heading on the page."""
    return tuple(replace(column, section=name) for column in columns)


def declared() -> tuple[Column, ...]:
    """Return every column, in the order of the DataFrame."""
    return (
        *_section(
            "What it is",
            Column("verdict", "verdict", None, _VERDICT),
            Column("kind", "kind", None, _KIND),
            Column("status", "status", None, _STATUS),
            Column("draws", "draws", 0, "Number of stored draws: chains times draws per chain."),
        ),
        *_section(
            "Markov chains, time, importance ratios",
            Column("rhat", "worst R-hat", 3, _CHAINS),
            Column("rhat_eta", "R-hat of eta", 3, _CHAINS),
            Column("ess_bulk", "bulk ESS", 0, _CHAINS),
            Column("ess_tail", "tail ESS", 0, _CHAINS),
            Column("divergences", "diverg.", 0, _CHAINS),
            Column("mcse_bits", "MC error of bits", 3, _BITS),
            Column("spread_bits", "chain spread of bits", 3, _BITS),
            Column("unmoved_bits", "bits never moved", 0, _BITS),
            Column("seconds_compile", "compile, s", 1, _SECONDS),
            Column("seconds_run", "run, s", 1, _SECONDS),
            Column("khat", "k-hat", 2, _KHAT),
        ),
        *_section("Distance from the reference (in brackets: noise)", *distances()),
        *_section(
            "What matters",
            *(
                column
                for what in ("features", "samples")
                for column in (
                    Column(
                        f"active_{what}", f"{what} with an effect", 1, _ACTIVE,
                        (f"active_{what}_low", f"active_{what}_high"),
                    ),
                    Column(f"prior_{what}", f"{what}, prior", 1, _ACTIVE),
                    Column(f"active_{what}_low", "", 0, _ACTIVE),
                    Column(f"active_{what}_high", "", 0, _ACTIVE),
                    Column(f"background_{what}", f"median P of {what}", 2, _ACTIVE),
                    Column(f"n90_{what}", f"n90 of {what}", 0, _ACTIVE),
                    Column(f"selected_{what}", f"{what} with P > 1/2", 0, _ACTIVE),
                )
            ),
            Column("own_features", "own features", 0, _OWN),
            Column("own_samples", "own samples", 0, _OWN),
        ),
        *_section(
            "Held-out samples",
            Column("wrong", "wrong", 0, _TEST),
            Column("wrong_sure", "wrong and sure", 0, _TEST),
            *_held_out("accuracy", "accuracy"),
            *_held_out("log_score", "log score"),
            *_held_out("brier", "Brier score"),
            *_held_out("auc", "AUC"),
            *_held_out("f1", "F1"),
            *_held_out("kappa", "kappa"),
            *_distance("ece", "calibration error", 3, _CALIBRATION),
        ),
        Column("reason", "", None, "Why the status is not `finished`."),
    )  # fmt: skip


COLUMNS = declared()
"""Every column, in the order of the DataFrame."""


def groups() -> dict[str, list[Column]]:
    """Return the columns of each meaning, in the order of print."""
    found: dict[str, list[Column]] = {}
    for column in COLUMNS:
        found.setdefault(column.meaning, []).append(column)
    return found


def described() -> str:
    """Return names and meanings as text, for a docstring."""
    entries = []
    for meaning, together in groups().items():
        names = ", ".join(c.name for c in together)
        lines = [*textwrap.wrap(names, 100), *textwrap.wrap(meaning, 96)]
        entries.append("\n".join([lines[0], *(f"    {line}" for line in lines[1:])]))
    return "\n".join(entries)


def table_text(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table as short strings, transposed: one column a method, blank where unknown."""
    printed = [c for together in groups().values() for c in together if c.heading]
    methods = [dict(row) for _, row in table.iterrows()]
    rows = {c.heading: [c.printed(method) for method in methods] for c in printed}
    shown = pd.DataFrame.from_dict(rows, orient="index", columns=table.index)
    return shown[(shown != "").any(axis=1)] if len(shown.columns) else shown


def lines(shown: pd.DataFrame, width: int = 80) -> str:
    """Return a table of strings as text that is at most `width` wide, in blocks of methods.

    A method that alone exceeds the width gets its own block.
    """
    cells = shown.astype(str).to_numpy()  # (rows, methods)
    heads, names = [str(heading) for heading in shown.index], [str(m) for m in shown.columns]
    first = max(map(len, heads), default=0)
    sizes = [max(map(len, [names[j], *cells[:, j]])) + 2 for j in range(len(names))]
    blocks: list[list[int]] = [[]]
    for j, size in enumerate(sizes):
        if blocks[-1] and first + sum(sizes[i] for i in blocks[-1]) + size > width:
            blocks.append([])
        blocks[-1].append(j)

    def line(head: str, values: Sequence[str], block: list[int]) -> str:
        return (head.ljust(first) + "".join(values[j].rjust(sizes[j]) for j in block)).rstrip()

    parts = []
    for block in blocks:
        rows = [line("", names, block)]
        known = [i for i in range(len(heads)) if any(cells[i, j] for j in block)]
        parts.append("\n".join(rows + [line(heads[i], cells[i], block) for i in known]))
    return "\n\n".join(parts)
