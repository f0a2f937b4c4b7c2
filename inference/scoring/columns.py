"""The columns of a comparison's table, each declared once: its name, heading, digits and meaning.

The table, what is printed of it, the page's legend and the documentation of the table follow from
`COLUMNS`. To add another column, declare it here and put its number into the row in
`comparison/rows.py`. A column that no row can fill is left out, and the table has what a reader
looks for first; every distance stands in
`Comparison.distances`, every measure of predictions with its error in `Comparison.scores`.
"""

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..target import words

_KIND = (
    "`mcmc` is exact up to Monte Carlo error. An `approximation` replaces the posterior by a "
    "simpler distribution q, and its draws come from q. A `search` or `point` is a single state "
    "without a spread. A `baseline` is a plain classifier."
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
    "Whether the Markov chains converged. R-hat should be below 1.01; given is the worst over "
    "everything stored. The effective sample sizes are the smallest over everything stored, and "
    "should be in the hundreds. Divergent transitions should be few. These columns are blank for "
    "an approximation, since independent draws always look perfect."
)
_SECONDS = "Time in seconds spent on compilation, and on the rest of the fit."
_VERDICT = (
    "Whether the fit can be used: `trust`, `converged` (chains of an exact sampler, judged alone), "
    "`with care` (for some purposes only), `do not use`, or `not judged` (there is no exact "
    "posterior to compare it with). The verdict on each fit says more."
)
_ACTIVE = (
    "How many features have an effect above the threshold, which is 0.5 unless another was asked "
    "for: the mean over draws, and the mean under the prior, by simulation. A number near to that "
    "of the prior says little about the data. The effect of a feature is the standard deviation "
    "over the training rows of what it adds to eta."
)
_DISTANCE = (
    "How far the fit is from the reference in what a reader looks at first. `= floor` marks a "
    "distance that is within Monte Carlo error: with this many draws, one in twenty reruns of the "
    "reference would score no better. The reference's own column compares one half of its chains "
    "with the other half. All distances, with what they mean, stand below the table."
)
_WORST = (
    "Of a model of one's own: how far the mean of its worst component is from the reference's, in "
    "the reference's posterior sds, and its worst sd as a factor of the reference's."
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
LEARNED = "Held-out samples"
"""The section of what held-out samples say."""


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
    section: str = ""
    """Under which heading it stands on the page."""

    def text(self, value: str | float | None) -> str:
        """Return a value as it is printed, "" where it is not known."""
        if value is None or isinstance(value, str):
            return value or ""
        return "" if np.isnan(value) else f"{value:.{self.digits}f}"


# by quantity and statistic, with the digits behind the point
_SHOWN = {
    ("probability", "difference"): 3,
    ("eta", "error"): 2,
    ("eta", "sd_ratio"): 2,
    ("eta", "coverage_90"): 2,
    ("ranking", "captured"): 2,
    ("selection", "p_active"): 2,
}
DISTANCES = {f"{statistic}_{quantity}": (quantity, statistic) for quantity, statistic in _SHOWN}
"""The quantity and statistic of the columns that are distances."""
WORST = {"worst_error": "error", "worst_sd_ratio": "sd_ratio_worst"}
"""The statistic of the columns of a model of one's own, whose quantities have no roles."""
SCORES: dict[str, Column] = {
    name: Column(name, heading, digits, _CALIBRATION if name == "ece" else _TEST, LEARNED)
    for name, heading, digits in (
        ("wrong", "wrong", 0),
        ("wrong_sure", "wrong and sure", 0),
        ("accuracy", "accuracy", 3),
        ("log_score", "log score", 3),
        ("auc", "AUC", 3),
        ("brier", "Brier score", 3),
        ("f1", "F1", 3),
        ("kappa", "kappa", 3),
        ("ece", "calibration error", 3),
    )
}
"""The measures of predictions, in the order of `Comparison.scores` and of print."""
_FIRST = ("wrong", "wrong_sure", "accuracy", "log_score", "auc")  # those in the table


def declared() -> Iterator[Column]:
    """Yield every column of the DataFrame, in its order."""
    about = "What it is"
    yield Column("verdict", "verdict", None, _VERDICT, about)
    yield Column("kind", "kind", None, _KIND, about)
    yield Column("status", "status", None, _STATUS, about)
    drawn = "Number of stored draws: chains times draws per chain."
    yield Column("draws", "draws", 0, drawn, about)
    run = "Markov chains, time, importance ratios"
    yield Column("rhat", "worst R-hat", 3, _CHAINS, run)
    yield Column("ess_bulk", "bulk ESS", 0, _CHAINS, run)
    yield Column("ess_tail", "tail ESS", 0, _CHAINS, run)
    yield Column("divergences", "diverg.", 0, _CHAINS, run)
    yield Column("seconds_compile", "compile, s", 1, _SECONDS, run)
    yield Column("seconds_run", "run, s", 1, _SECONDS, run)
    yield Column("khat", "k-hat", 2, _KHAT, run)
    for name, pair in DISTANCES.items():
        heading = words.HEADINGS[pair[1]].format(quantity=pair[0])
        yield Column(name, heading, _SHOWN[pair], _DISTANCE, "Distance from the reference")
    for name, heading in zip(WORST, ("worst mean off", "worst sd"), strict=True):
        yield Column(name, heading, 2, _WORST, "Distance from the reference")
    yield Column("active_features", "features with an effect", 1, _ACTIVE, "What matters")
    yield Column("prior_features", "features, prior", 1, _ACTIVE, "What matters")
    yield from (SCORES[name] for name in _FIRST)
    yield Column("reason", "", None, "Why the status is not `finished`.")


COLUMNS = tuple(declared())
"""Every column, in the order of the DataFrame."""
PRINTED = (*(c for c in COLUMNS if c.heading and c.section != LEARNED), *SCORES.values())
"""What is printed of a comparison: its table, and all measures of predictions."""


def whole(table: pd.DataFrame) -> pd.DataFrame:
    """Return a comparison's table with every column, blank where no row fills it."""
    return table.reindex(columns=[column.name for column in COLUMNS])


def groups() -> dict[str, list[Column]]:
    """Return what is printed, by its meaning, in the order of print."""
    found: dict[str, list[Column]] = {}
    for column in PRINTED:
        found.setdefault(column.meaning, []).append(column)
    return found


def described() -> str:
    """Return names and meanings of the columns as text, for a docstring."""
    together: dict[str, list[str]] = {}
    for column in COLUMNS:
        together.setdefault(column.meaning, []).append(column.name)
    entries = []
    for meaning, names in together.items():
        lines = [*textwrap.wrap(", ".join(names), 100), *textwrap.wrap(meaning, 96)]
        entries.append("\n".join([lines[0], *(f"    {line}" for line in lines[1:])]))
    return "\n".join(entries)


def table_text(
    table: pd.DataFrame, distances: pd.DataFrame | None = None, scores: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Return the table as short strings, transposed: one column a method, blank where unknown.

    A distance within its noise is printed as that, and a score with its standard error.
    """
    methods = {str(name): dict(row) for name, row in table.iterrows()}
    said = _within(distances) | _scored(scores)
    rows = {
        c.heading: [said.get((m, c.name), c.text(row.get(c.name))) for m, row in methods.items()]
        for c in PRINTED
    }
    shown = pd.DataFrame.from_dict(rows, orient="index", columns=table.index)
    return shown[(shown != "").any(axis=1)] if len(shown.columns) else shown


def _within(distances: pd.DataFrame | None) -> dict[tuple[str, str], str]:
    """Return by fit and column that the distance is within its noise, where it is."""
    if distances is None:
        return {}
    inside = distances[distances["deviation"] <= distances["floor"]]
    listed = zip(inside["fit"], inside["statistic"], inside["quantity"], strict=True)
    return {(fit, f"{statistic}_{quantity}"): FLOOR for fit, statistic, quantity in listed}


def _scored(scores: pd.DataFrame | None) -> dict[tuple[str, str], str]:
    """Return by fit and measure its value with its error, or that it is within its noise."""
    found = {}
    for row in [] if scores is None else scores.to_dict("records"):
        column = SCORES[row["measure"]]
        text = column.text(row["value"])
        if text and row["value"] <= row["floor"]:
            text = FLOOR
        elif text and not np.isnan(row["se"]):
            text += f" +- {row['se']:.{column.digits}f}"
        found[row["fit"], row["measure"]] = text
    return found


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
