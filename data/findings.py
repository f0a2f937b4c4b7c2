"""Look at a table: all that is wrong with it, in one report, and the settings that mend it."""

import dataclasses
import difflib
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ardvark.common.validate import InputError

from .cleaning import Cleaning, Rows, listed
from .columns import Column, as_matrix, in_order, look_at_all, numbers, plain, texts

MANY_LABELS = 10
"""Labels above which a column is not taken for one of labels."""
MANY_LEVELS = 20
"""Levels above which a text column is proposed to be dropped instead of encoded."""
MANY_WORDS = 5
"""Words above which a column of numbers and words is not read as numbers with missing values."""
CODES = (99.0, 999.0, 9999.0, 99999.0)
"""Numbers, and their negatives, that are often written where a value is missing."""
FEWEST = 5
"""Other values that a column needs before one of them is called far outside."""
LABELS = ("y", "label", "labels", "class", "target", "outcome", "diagnosis", "status", "group")
_INF = float("inf")
_WIDTH = 80


class Finding(NamedTuple):
    """One thing that was found, what mends it, and whether a model can be fitted without."""

    heading: str
    text: str
    stops: bool
    remedy: dict[str, Any]


@dataclass(frozen=True)
class Findings:
    """All that was found in a table.

    Examples
    --------
    >>> import pandas as pd
    >>> from ardvark.data.cleaning import Cleaning
    >>> from ardvark.data.findings import examine
    >>> frame = pd.DataFrame({"age": [31, None, 52], "site": ["A", "B", "A"], "y": list("uvu")})
    >>> cleaning = Cleaning(target="y")
    >>> found = examine(cleaning.chosen(frame), cleaning)
    >>> print(found.text())
      missing    1 in 1 column: age (1). Remedy: fill by the median. (drop_missing
                 would keep 2 of 3 rows.)
      text       1 column: site (A 2, B 1). Remedy: make each level a column of 0
                 and 1.
    >>> found.mended(cleaning).encode
    'onehot'
    """

    shape: tuple[int, int]
    found: tuple[Finding, ...]

    @property
    def stops(self) -> bool:
        """Whether something must be mended before a model can be fitted."""
        return any(f.stops for f in self.found)

    @property
    def unmendable(self) -> bool:
        """Whether something stops that no setting mends."""
        return any(f.stops and not f.remedy for f in self.found)

    def mended(self, cleaning: Cleaning) -> Cleaning:
        """Return the cleaning with the settings that mend what was found."""
        changes: dict[str, Any] = {}
        for finding in self.found:
            for name, value in finding.remedy.items():
                before = changes.get(name, getattr(cleaning, name))
                added = [v for v in value if v not in before] if name in ("drop", "na") else ()
                changes[name] = (*before, *added) if name in ("drop", "na") else value
        return dataclasses.replace(cleaning, **changes)

    def text(self) -> str:
        """Return the report, in 80 columns."""
        lines = []
        for heading, text, *_ in self.found:
            lines += textwrap.wrap(
                f"  {heading:<10} {text}",
                _WIDTH,
                subsequent_indent=" " * 13,
                break_long_words=False,
                break_on_hyphens=False,
            )
        return "\n".join(lines)


def examine(rows: Rows, cleaning: Cleaning) -> Findings:
    """Return all that was found in the rows and columns that a cleaning chose."""
    features = rows.features
    columns = look_at_all(features)
    # most columns of a wide table are numbers of which there is nothing to say
    parts = (
        _labels(rows, cleaning),
        _repeated(rows, features),
        *_odd(columns, features, cleaning),
        codes(features, cleaning),
        *_missing(columns, features, cleaning),
        *_text(columns, cleaning),
        *_dates(columns),
        *_ids(columns, cleaning),
        *_constant(columns),
    )
    return Findings(rows.shape, tuple(p for p in parts if p is not None))


# --- one function for each kind of finding --------------------------------------------------------


def _labels(rows: Rows, cleaning: Cleaning) -> Finding | None:
    counts = {str(word): int(n) for word, n in rows.labels.value_counts().items()}
    bare = [line for line in rows.left_out if line.endswith("without a label")]
    said = f" Rows left out: {bare[0]}." if bare else ""
    shown = listed([f"{word} ({n})" for word, n in counts.items()])
    enough = len(counts) == 2 or (cleaning.positive is not None and len(counts) > 1)
    if enough:
        return Finding("labels", f"{shown}.{said}", False, {}) if said else None
    text = f"{cleaning.target!r} must contain two labels, got {len(counts)}: {shown or 'none'}."
    if not 2 < len(counts) <= MANY_LABELS:
        return Finding("labels", f"{text}{said} Remedy: name another column (target).", True, {})
    both = in_order(list(counts)[:2])
    text += f"{said} Remedy: keep the rows of {both[0]!r} and {both[1]!r}; {both[1]!r} is y = 1."
    text += " (positive compares one label with the rest.)"
    return Finding("labels", text, True, {"classes": tuple(both)})


def _repeated(rows: Rows, features: pd.DataFrame) -> Finding | None:
    again = {new: name for new, name in rows.repeated.items() if new in features}
    if not again:
        return None
    shown = listed(f"{name!r} (again as {new!r})" for new, name in again.items())
    text = f"{_columns(len(again))} with the name of another: {shown}. Remedy: drop the second."
    return Finding("names", text, True, {"drop": tuple(again)})


def _odd(
    columns: Iterable[Column], features: pd.DataFrame, cleaning: Cleaning
) -> Iterable[Finding]:
    """Numbers with words among them, and infinite numbers."""
    mixed = [c for c in columns if c.kind == "mixed"]
    few = [c for c in mixed if len(c.counts) <= MANY_WORDS]
    if mixed:
        shown = listed(f"{c.name} ({_counts(c.counts)})" for c in mixed)
        text = f"{_columns(len(mixed))} of numbers with words among them: {shown}."
        many = [c for c in mixed if c not in few]
        steps = ["read these words as missing, or write numbers in their place"] * bool(few) + [
            f"drop {_names(many)}"
        ] * bool(many)
        text += f" Remedy: {'; '.join(steps)}."
        remedy: dict[str, Any] = {"na": tuple(dict.fromkeys(w for c in few for w in c.counts))}
        remedy["drop"] = tuple(c.name for c in many)
        if few and cleaning.impute is None and not cleaning.drop_missing:
            remedy["impute"] = "median"
        yield Finding("words", text, True, {k: v for k, v in remedy.items() if v})
    infinite = [c for c in columns if c.infinite]
    if infinite:
        shown = listed(f"{c.name} ({c.infinite})" for c in infinite)
        signs = {float(v) for c in infinite for v in numbers(features[c.name]) if abs(v) == _INF}
        words = tuple(str(v) for v in sorted(signs, reverse=True))
        text = f"{_columns(len(infinite))} with infinite values: {shown}."
        text += " Remedy: read them as missing."
        fill = cleaning.impute is None and not cleaning.drop_missing
        yield Finding(
            "infinite", text, True, {"na": words} | ({"impute": "median"} if fill else {})
        )


def codes(features: pd.DataFrame, cleaning: Cleaning) -> Finding | None:
    """Return the columns with numbers that may stand for missing values, None if there are none.

    Such a number is one of `CODES`, farther outside the other values of its column than these are
    wide. It may be a measurement: it stays as it is, and no remedy is applied.
    """
    names = plain(features)
    array = as_matrix(features, names)
    columns = dict(zip(names, array.T, strict=True))
    known = np.zeros(array.shape, dtype=bool)
    for size in CODES:
        known |= np.abs(array) == size
    suspects = [name for name, any_known in zip(names, known.any(axis=0), strict=True) if any_known]
    for name in features:  # numbers among words
        if str(name) not in columns:
            columns[str(name)] = numbers(features[name]).to_numpy()
            suspects.append(str(name))
    found = {name: _far_outside(columns[name]) for name in suspects}
    found = {name: counts for name, counts in found.items() if counts}
    if not found:
        return None
    shown = listed((f"{name} ({_counts(counts)})" for name, counts in found.items()), 12)
    words = in_order({word for counts in found.values() for word in counts})
    flags, call = f"--na={','.join(words)}", f"na={words!r}"
    if cleaning.impute is None and not cleaning.drop_missing:
        flags, call = f"{flags} --impute median", f'{call}, impute="median"'
    text = (
        f"{_columns(len(found))} with a number far outside the others that may stand for a "
        f"missing value: {shown}. It is used as a number. To read it as missing, in every column: "
        f"{flags} (in Python {call})."
    )
    return Finding("codes", text, False, {})


def _far_outside(values: np.ndarray) -> dict[str, int]:
    """Return the codes among the values that are far outside the others, and how many of each."""
    values = values[np.isfinite(values)]
    known = np.isin(np.abs(values), CODES)
    others = values[~known]
    if not known.any() or len(others) < FEWEST:
        return {}
    low, high = others.min(), others.max()
    width = (high - low) or max(abs(high), 1.0)
    far = values[known & ((values < low - width) | (values > high + width))]
    sizes, counts = np.unique(far, return_counts=True)
    return {f"{size:g}": int(n) for size, n in zip(sizes, counts, strict=True)}


def _missing(
    columns: Iterable[Column], features: pd.DataFrame, cleaning: Cleaning
) -> Iterable[Finding]:
    empty = [c for c in columns if c.kind == "empty"]
    if empty:
        text = f"{_columns(len(empty))} without any value: {_names(empty)}. Remedy: drop."
        yield Finding("empty", text, True, {"drop": tuple(c.name for c in empty)})
    kept = [c for c in columns if c.missing and c.kind in ("numbers", "text", "mixed")]
    if not kept or cleaning.impute is not None:
        return
    shown = listed((f"{c.name} ({c.missing})" for c in kept), 12)
    text = f"{sum(c.missing for c in kept)} in {_columns(len(kept))}: {shown}."
    remedy: dict[str, Any] = {}
    steps = []
    many = [c for c in kept if 2 * c.missing > len(features)]
    if many:
        steps.append(f"drop {_names(many)}, missing in more than half of the rows")
        remedy["drop"] = tuple(c.name for c in many)
    if len(many) < len(kept):
        words = any(c.kind == "text" for c in kept if c not in many)
        steps.append("fill by the median" + (", or by the most frequent word" if words else ""))
        remedy["impute"] = "median"
    text += f" Remedy: {'; '.join(steps)}."
    if "impute" in remedy:
        whole = int(
            features[[c.name for c in columns if c.kind != "empty"]].notna().all(axis=1).sum()
        )
        text += f" (drop_missing would keep {whole} of {len(features)} rows.)"
    yield Finding("missing", text, True, remedy)


def _text(columns: Iterable[Column], cleaning: Cleaning) -> Iterable[Finding]:
    text = [c for c in columns if c.kind == "text"]
    if not text or cleaning.encode is not None:
        return
    free = [c for c in text if len(c.counts) > MANY_LEVELS]
    said = (
        f"{_columns(len(text))}: {listed((f'{c.name} ({_counts(c.counts)})' for c in text), 12)}."
    )
    remedy: dict[str, Any] = {}
    steps = []
    if len(free) < len(text):
        steps.append("make each level a column of 0 and 1")
        remedy["encode"] = "onehot"
    if free:
        steps.append(f"drop {_names(free)}, which have more than {MANY_LEVELS} levels")
        remedy["drop"] = tuple(c.name for c in free)
    yield Finding("text", f"{said} Remedy: {'; '.join(steps)}.", True, remedy)


def _dates(columns: Iterable[Column]) -> Iterable[Finding]:
    dates = [c for c in columns if c.kind == "dates"]
    if dates:
        text = (
            f"{_columns(len(dates))}: {_names(dates)}. Remedy: drop. To use a date, replace "
            "it by a number, such as days since the first."
        )
        yield Finding("dates", text, True, {"drop": tuple(c.name for c in dates)})


def _ids(columns: Iterable[Column], cleaning: Cleaning) -> Iterable[Finding]:
    """Columns that tell rows apart: the first whole one names them, the others are dropped."""
    ids = [c for c in columns if c.kind == "id" or c.numbered]
    if not ids:
        return
    naming = [c for c in ids if not c.missing and cleaning.row_names is None][:1]
    others = [c for c in ids if c not in naming]
    said = f"{_columns(len(ids))} with another entry in every row: {_names(ids)}."
    remedy: dict[str, Any] = {}
    steps = []
    if naming:
        steps.append(f"name the rows by {naming[0].name!r}")
        remedy["row_names"] = naming[0].name
    if others:
        steps.append(f"drop {_names(others)}")
        remedy["drop"] = tuple(c.name for c in others)
    said += f" Remedy: {'; '.join(steps)}."
    yield Finding("id", said, any(c.kind == "id" for c in ids), remedy)


def _constant(columns: Iterable[Column]) -> Iterable[Finding]:
    constant = [c for c in columns if c.constant and c.kind != "empty"]
    if constant:
        text = f"{_columns(len(constant))} with one value only: {_names(constant)}. Remedy: drop."
        yield Finding("constant", text, False, {"drop": tuple(c.name for c in constant)})


def _columns(size: int) -> str:
    return f"{size} column{'s' * (size != 1)}"


def _names(columns: Iterable[Column]) -> str:
    return listed((c.name for c in columns), 12)


def _counts(counts: Mapping[str, int]) -> str:
    return listed(f"{word[:20]} {n}" for word, n in counts.items())


# --- columns by name ------------------------------------------------------------------------------


def column_named(kind: str, got: str, names: Sequence[str], first: Sequence[str] = ()) -> str:
    """Return the column that a word means, in any case, or raise an error with the nearest names.

    `first` are the names that are proposed before the others.
    """
    if got in names:
        return got
    same = [name for name in names if name.casefold() == str(got).strip().casefold()]
    if len(same) == 1:
        return same[0]
    # a name of another kind of column must be closer to be proposed
    near = _near(got, first, 0.5) or _near(got, names, 0.7 if first else 0.5)
    guess = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
    listing = "" if near or first else f" Known: {listed(names, 12)}."
    raise InputError(f"unknown {kind} {got!r}.{guess}{listing}")


def _near(got: str, names: Sequence[str], cutoff: float) -> list[str]:
    lower = {name.casefold(): name for name in names}
    found = difflib.get_close_matches(str(got).casefold(), lower, n=3, cutoff=cutoff)
    return [lower[word] for word in found]


def label_columns(frame: pd.DataFrame) -> dict[str, list[str]]:
    """Return the columns with two to ten different values, the most likely labels first."""
    found = {}
    for at, name in enumerate(map(str, frame.columns)):
        values = frame.iloc[:, at].dropna()
        # most columns of a wide table have many values: the first ones show it
        if 2 <= len(set(map(str, values.tolist()[: 10 * MANY_LABELS]))) <= MANY_LABELS:
            levels = in_order(texts(values).unique().tolist())
            if len(levels) <= MANY_LABELS and len(levels) < len(values):
                found[name] = (at, levels)

    def rank(name: str) -> tuple[bool, bool, int]:  # by its name, then of few labels, then the last
        at, levels = found[name]
        return name.casefold() not in LABELS, len(levels) > 3, -at

    return {name: found[name][1] for name in sorted(found, key=rank)}
