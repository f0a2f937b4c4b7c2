"""A comparison on a terminal: on one screen (`one_screen`), or all of it (`everything`).

The screen says how many rows there are, whether the model predicts, what the features do, and then
how far each fit is from the reference and why it may not be used. A fit has one line, and one more
line if something speaks against it.
"""

import math
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from ardvark.data import Dataset

from ..fits.covariates import ODDS, covariate_effects
from ..fits.datatree import is_bare
from ..fits.effects import effects, leading, legend, printed, towards
from ..fits.selection_text import counted, groups_instead
from ..scoring.columns import COLUMNS, WORST, lines, whole
from .verdicts.verdict import Verdict

WIDTH = 80
"""Columns of either form; only a name without a blank may be longer in the full one."""
LINES = 30
"""Lines of a screen."""
BELOW = 3
"""Lines of a screen that are left to the caller, who says where the report is."""
_FITS = (2, 7)  # with a line in the table, fewest and most
_BESIDE_FITS = 6  # other lines: heading, baselines, what it means, and how many more there are
_FEATURES = 4
_COVARIATES = 3
_NAME = 15  # characters of a name in the table
_WIDTHS = (15, 7, 12, 10, 8)  # of its numbers
_OWN_WIDTHS = (16, 11, 10)
_COLUMN = {column.name: column for column in COLUMNS}
_OFF, _SPREAD = "difference_probability", "sd_ratio_eta"
_BESIDE = ["majority", "L1 logistic"]
"""The baselines that a fit's log score is read against."""


def one_screen(
    title: str,
    rows: str,
    table: pd.DataFrame,
    verdicts: Mapping[str, Verdict],
    fits: Mapping[str, xr.DataTree],
    reference: str | None,
    remarks: Sequence[str],
) -> str:
    """Return what was found in at most `LINES - BELOW` lines of at most `WIDTH` columns.

    A name that finds no room ends in dots, and of a long sentence whole clauses are left out.
    `everything` has all of it.
    """
    first = reference or next(iter(fits))
    known, verdict = fits[first], verdicts[first]
    above = [_cut(title), *([_cut(rows)] if rows else []), *_predicts(first, verdict, remarks)]
    above += [*_leading(first, known), *_always(known), ""]
    # that there is no exact posterior is said last
    remedies = [] if verdict.longer else [f"try: {remedy}" for remedy in verdict.remedies[-1:]]
    below = [line for r in remedies for line in textwrap.wrap(r, WIDTH, break_on_hyphens=False)]
    room = LINES - BELOW - len(above) - len(below)
    if all(map(is_bare, fits.values())):
        above += _own_table(table, verdicts, reference, room - _BESIDE_FITS)
    else:
        above += _table(table, verdicts, reference, room - _BESIDE_FITS)
    room = LINES - BELOW - len(above) - len(below)
    return "\n".join([*above, *_whys(verdicts, room), *below])


def everything(
    title: str,
    rows: str,
    printed: pd.DataFrame,
    verdicts: Mapping[str, Verdict],
    remarks: Sequence[str],
    width: int = WIDTH,
) -> str:
    """Return every verdict with its reasons and remedies, the whole table, and the remarks."""
    told = [
        textwrap.fill(title, WIDTH),
        *textwrap.wrap(rows, WIDTH),
        *(verdict.text(name) for name, verdict in verdicts.items()),
        f"\nScorecard\n\n{lines(printed, width)}\n",
        *(textwrap.fill(words, WIDTH) for words in remarks),
    ]
    return "\n".join(told)


def counts(train: Dataset, left_out: np.ndarray | None) -> str:
    """Return how many rows there are of either class, and how many were left out."""
    name = train.class_names[1]
    text = f"{train.N} rows, {int(train.y.sum())} of them {name!r}; {train.D} features"
    if left_out is None:
        return f"{text}."
    return f"{text}; {len(left_out)} rows left out, {int(left_out.sum())} of them {name!r}."


def _cut(text: str, width: int = WIDTH) -> str:
    """Return a text on one line; what is cut off ends in dots."""
    return text if len(text) <= width else f"{text[: width - 3].rstrip(' ,;')}..."


# --- one line a fit -------------------------------------------------------------------------------


def _table(
    table: pd.DataFrame, verdicts: Mapping[str, Verdict], reference: str | None, room: int
) -> Iterator[str]:
    """Yield the heading, a line for each fit and baseline, and what the columns mean.

    `room` is how many lines the fits may take.
    """
    most = min(max(room, _FITS[0]), _FITS[1])
    table = whole(table)
    score = "log_score" if table["log_score"].notna().any() else "accuracy"
    named = score.replace("_", " ")
    yield _line("", "verdict", "P(y = 1) off by", "width", "wrong, sure", named, "seconds")
    fits = table[table["kind"] != "baseline"]
    for name, row in fits.iloc[:most].iterrows():
        said = f"[{verdicts[str(name)].level}]"
        yield _row(str(name), said, dict(row), score, name == reference)
    if len(fits) > most:
        yield f"and {_fits(len(fits) - most, 'more ')}"
    for name, row in table.loc[table.index.intersection(_BESIDE)].iterrows():
        yield _row(str(name), "plain", dict(row), score)
    meanings = [] if reference is None else ["off by: mean over rows; width: sd of eta, exact is 1"]
    if table["wrong"].notna().any():
        meanings.append("sure: 90 % excludes 1/2")
    if meanings:
        yield "; ".join(meanings)


def _own_table(
    table: pd.DataFrame,
    verdicts: Mapping[str, Verdict],
    reference: str | None,
    room: int,
) -> Iterator[str]:
    """Yield the same for fits of a model of one's own: what its worst component is off by."""
    most, table = min(max(room, _FITS[0]), _FITS[1]), whole(table)
    yield _line("", "verdict", "worst mean off", "worst sd", "seconds", widths=_OWN_WIDTHS)
    for name, row in table.iloc[:most].iterrows():
        off, sd = (float(row[column]) for column in WORST)
        known = name != reference and not math.isnan(off)
        yield _line(
            str(name),
            f"[{verdicts[str(name)].level}]",
            "reference" if name == reference else f"{off:.2g} sd" if known else "",
            f"x {sd:.2g}" if known and not math.isnan(sd) else "",
            _seconds(dict(row)),
            widths=_OWN_WIDTHS,
        )
    if len(table) > most:
        yield f"and {_fits(len(table) - most, 'more ')}"
    if table.loc[table.index != reference, "worst_error"].notna().any():
        yield "worst: of all components, in sds of the exact posterior, and as a factor"


def _row(
    name: str, verdict: str, row: Mapping[str, Any], score: str, reference: bool = False
) -> str:
    """Return the line of one fit or baseline."""
    return _line(
        name,
        verdict,
        "reference" if reference else _COLUMN[_OFF].text(row[_OFF]),
        "" if reference else _COLUMN[_SPREAD].text(row[_SPREAD]),
        "" if math.isnan(row["wrong"]) else _wrong(row),
        "" if math.isnan(row[score]) else f"{row[score]:.2f}",
        _seconds(row),
    )


def _seconds(row: Mapping[str, Any]) -> str:
    """Return the time of a fit, "" if it is not known."""
    spent = pd.Series([row["seconds_compile"], row["seconds_run"]], dtype=float)
    seconds = spent.sum(min_count=1)  # NaN if neither is known
    return "" if math.isnan(seconds) else f"{seconds:.1f}"


def _wrong(row: Mapping[str, Any]) -> str:
    """Return how many left-out rows are wrong, and of how many of these the fit is sure."""
    return f"{row['wrong']:.0f}, {row['wrong_sure']:.0f}"


def _line(name: str, verdict: str, *numbers: str, widths: tuple[int, ...] = _WIDTHS) -> str:
    """Return the cells of the table as a line."""
    cells = (f"{number:>{width}}" for number, width in zip(numbers, widths, strict=True))
    return f"{_cut(name, _NAME):<{_NAME}} {verdict:<12}{''.join(cells)}".rstrip()


# --- in words -------------------------------------------------------------------------------------


def sentence_of(text: str, most: int = 2) -> list[str]:
    """Return a sentence on at most so many lines; what finds no room is left out by whole clauses.

    A clause that alone needs more lines gets them: no sentence ends in the middle.
    """
    clauses = text.split("; ")
    for count in range(len(clauses), 0, -1):
        rest = "" if count == len(clauses) else "; and more."
        lines = textwrap.wrap(
            "; ".join(clauses[:count]) + rest, WIDTH, subsequent_indent="  ", break_on_hyphens=False
        )
        if len(lines) <= most:
            break
    return lines


def _whys(verdicts: Mapping[str, Verdict], room: int) -> list[str]:
    """Return a line or two for each fit that something speaks against, `room` lines at most."""
    said = [
        sentence_of(f"{name}: {verdict.headline}")
        for name, verdict in verdicts.items()
        if verdict.level != "converged"
    ]
    shown = len(said)
    while shown and sum(map(len, said[:shown])) + (shown < len(said)) > room:
        shown -= 1
    more = len(said) - shown
    lines = [line for told in said[:shown] for line in told]
    told = f"reasons against {_fits(more, 'more ' if shown else '')}: in the full text"
    return [*lines, told] if more else lines


def _fits(count: int, word: str) -> str:
    return f"{count} {word}fit{'s' if count > 1 else ''}"


def _predicts(first: str, verdict: Verdict, remarks: Sequence[str]) -> list[str]:
    """Return how the model predicts, and a remark on the data, a line or two each."""
    model = re.sub(r" \(.*?\)", "", verdict.model)  # without the numbers
    told = sentence_of(f"{first} {model}") if model else []
    for remark in remarks[:1]:
        told += sentence_of(remark)
    return told


def _always(tree: xr.DataTree) -> list[str]:
    """Return the effects of the columns that are always in the model, the largest per sd first."""
    table = covariate_effects(tree)
    if table.empty:
        return []
    odds = ODDS[0] in table
    what = "odds ratios for one unit" if odds else "effects per sd"
    told = [f"always in, with {what}{towards(effects(tree))}:"]
    table = table.sort_values("effect", key=np.abs, ascending=False, kind="stable")
    for name, row in table.iloc[:_COVARIATES].iterrows():
        value, low, high = row[list(ODDS) if odds else ["effect", "low", "high"]]
        said = f"{value:.3g} ({low:.3g} to {high:.3g})" if value == value else "does not vary"
        told.append(_cut(f"  {_cut(str(name), 20):<20} {said}"))
    more = len(table) - _COVARIATES
    return ["", *told, *([f"  and {more} more"] if more > 0 else [])]


def _leading(first: str, tree: xr.DataTree) -> list[str]:
    """Return the features that most probably have an effect, and what is said of all of them."""
    table = effects(tree)
    if table.empty:
        return []
    known = table["effect"].notna().any()
    title = f"{first}: mean effects per sd{towards(table)}, in {table.attrs['unit']}"
    shown = printed(leading(table, _FEATURES))
    room = WIDTH - 2 - len(shown.to_string(index=False).partition("\n")[0])
    shown.index = pd.Index([_cut(str(name), room) for name in shown.index])
    lines = shown.to_string(index_names=False).split("\n")
    return [_cut(title if known else f"{first}: the leading features"), *map(_cut, lines),
            _cut(legend(table.attrs["threshold"])), *sentence_of(counted(tree), 3),
            *sentence_of(groups_instead(tree), 3)]  # fmt: skip
