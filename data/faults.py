"""Look at a table: all that is wrong with it, in one report, and the settings that mend it."""

import dataclasses
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ardvark.common.validate import InputError

from .cleaning import Cleaning, Rows
from .columns import in_order, levels, listed, numbers, profile

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
_SHOWN = 12  # columns in a fault


class Fault(NamedTuple):
    """One thing that was found, what mends it, and whether a model can be fitted without."""

    heading: str
    text: str
    stops: bool
    remedy: dict[str, Any]


class TableError(InputError):
    """What is wrong with a table: a report of all of it, and the settings that mend it.

    Parameters
    ----------
    first : str
        The sentence that stands first.
    rows : Rows
        What was chosen of the table.
    faults : sequence of Fault
        All that was found.
    cleaning : Cleaning
        The settings so far.
    source : str
        The table, as it stands in the call.
    """

    def __init__(
        self, first: str, rows: Rows, faults: Sequence[Fault], cleaning: Cleaning, source: str
    ) -> None:
        self.first, self.shape, self.faults = first, rows.shape, faults
        self.columns = tuple(map(str, rows.features))
        self.mended = mended(faults, cleaning, rows.features)
        call = ""
        if self.mended is not None:
            given = {
                name: list(value) if isinstance(value, tuple) else value
                for name, value in self.mended.declared().items()
            }
            arguments = ", ".join(f"{name}={value!r}" for name, value in given.items())
            call = f"av.table({source}, {arguments})"
        super().__init__(self.report(call))

    def report(self, command: str) -> str:
        """Return the whole message, with the command or call that mends the table."""
        lines = _wrapped(self.first, 71)  # the command line begins with its name
        if self.faults:
            lines.append(f"All that was found in {self.shape[0]} rows and {self.shape[1]} columns:")
        for found in self.faults:
            lines += _wrapped(f"  {found.heading:<10} {found.text}", 80, " " * 13)
        if self.mended is None:
            return "\n".join([*lines, "No setting mends all of it."])
        return "\n".join([*lines, f"This mends all of it:\n\n    {command}\n"])


def _wrapped(text: str, width: int, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def mended(faults: Iterable[Fault], cleaning: Cleaning, features: pd.DataFrame) -> Cleaning | None:
    """Return the cleaning with the settings that mend what was found; None if none do."""
    changes: dict[str, Any] = {}
    for found in faults:
        if found.stops and not found.remedy:
            return None
        for name, value in found.remedy.items():
            if name in ("drop", "na"):
                value = tuple(dict.fromkeys((*changes.get(name, getattr(cleaning, name)), *value)))
            changes[name] = value
    gone = {*changes.get("drop", ()), changes.get("row_names")}
    return None if gone.issuperset(features) else dataclasses.replace(cleaning, **changes)


def examine(rows: Rows, cleaning: Cleaning) -> list[Fault]:
    """Return all that was found in the rows and columns that a cleaning chose.

    Examples
    --------
    >>> import pandas as pd
    >>> from ardvark.data.cleaning import Cleaning
    >>> from ardvark.data.faults import examine
    >>> frame = pd.DataFrame({"age": [31, None, 52], "site": ["A", "B", "A"], "y": list("uvu")})
    >>> cleaning = Cleaning(target="y")
    >>> for found in examine(cleaning.chosen(frame), cleaning):
    ...     print(found.heading, found.remedy)
    missing {'impute': 'median'}
    text {'encode': 'onehot'}
    """
    seen = profile(rows.features)
    parts = (
        _labels,
        _repeated,
        _words,
        _infinite,
        _codes,
        _missing,
        _text,
        _dates,
        _ids,
        _constant,
        _equal,
    )
    return [found for part in parts for found in part(rows, seen, cleaning)]


# --- one function for each kind of fault --------------------------------------------------------


def _found(
    heading: str,
    said: str,
    steps: dict[str, dict[str, Any]],
    drop: Iterable[str] = (),
    why: str = "",
    *,
    stops: bool = True,
) -> Fault:
    """Return a fault with its remedy: {what is done, in words: settings}, and columns to drop."""
    names = tuple(drop)
    if names:
        named = f" {listed(names, _SHOWN)}" if steps else ""
        steps = steps | {f"drop{named}{why}": {"drop": names}}
    remedy = {name: value for settings in steps.values() for name, value in settings.items()}
    return Fault(heading, f"{said}. Remedy: {'; '.join(steps)}.", stops, remedy)


def _told(columns: pd.Series, what: str = "") -> str:
    """Return how many columns there are, what they are, and the value of each."""
    shown = (
        f"{name} ({_counts(value) if isinstance(value, dict) else value})"
        for name, value in columns.items()
    )
    return f"{_columns(columns)}{what}: {listed(shown, _SHOWN)}"


def _columns(names: Any) -> str:
    return f"{len(names)} column{'s' * (len(names) != 1)}"


def _counts(words: dict[str, int]) -> str:
    return listed(f"{word[:20]} {n}" for word, n in words.items())


def _filled(cleaning: Cleaning) -> dict[str, str]:
    """Return the setting that fills what becomes missing, unless there is one."""
    return {} if cleaning.fills else {"impute": "median"}


def _labels(rows: Rows, seen: pd.DataFrame, cleaning: Cleaning) -> Iterator[Fault]:
    counts = rows.labels.value_counts().to_dict()
    bare = [line for line in rows.left_out if line.endswith("without a label")]
    said = f" Rows left out: {bare[0]}." if bare else ""
    shown = listed([f"{word} ({n})" for word, n in counts.items()]) or "none"
    if len(counts) == 2 or (cleaning.positive is not None and len(counts) > 1):
        if said:
            yield Fault("labels", f"{shown}.{said}", False, {})
        return
    text = f"{cleaning.target!r} must contain two labels, got {len(counts)}: {shown}.{said} Remedy:"
    if not 2 < len(counts) <= MANY_LABELS:
        yield Fault("labels", f"{text} name another column (target).", True, {})
        return
    zero, one = in_order(map(str, list(counts)[:2]))
    text += f" keep the rows of {zero!r} and {one!r}; {one!r} is y = 1."
    text += " (positive compares one label with the rest.)"
    yield Fault("labels", text, True, {"classes": (zero, one)})


def _repeated(rows: Rows, seen: pd.DataFrame, cleaning: Cleaning) -> Iterator[Fault]:
    again = {new: name for new, name in rows.repeated.items() if new in seen.index}
    if again:
        shown = listed(f"{name!r} (again as {new!r})" for new, name in again.items())
        said = f"{_columns(again)} with the name of another: {shown}"
        yield _found("names", said, {}, again)


def _words(rows: Rows, seen: pd.DataFrame, cleaning: Cleaning) -> Iterator[Fault]:
    mixed = seen[seen["kind"] == "mixed"]
    if not len(mixed):
        return
    many = mixed["words"].map(len) > MANY_WORDS
    few = mixed["words"][~many]
    said = _told(mixed["words"], " of numbers with words among them")
    mend = "read these words as missing, or write numbers in their place"
    remedy = {"na": tuple(dict.fromkeys(w for words in few for w in words))} | _filled(cleaning)
    yield _found("words", said, {mend: remedy} if len(few) else {}, mixed.index[many])


def _infinite(rows: Rows, seen: pd.DataFrame, cleaning: Cleaning) -> Iterator[Fault]:
    infinite = seen[seen["infinite"] > 0]
    if not len(infinite):
        return
    values = rows.features[list(infinite.index)].apply(numbers).to_numpy()
    signs = sorted({float(v) for v in values[np.isinf(values)]}, reverse=True)
    said = _told(infinite["infinite"], " with infinite values")
    remedy = {"na": tuple(map(str, signs))} | _filled(cleaning)
    yield _found("infinite", said, {"read them as missing": remedy})


def _codes(rows: Rows, seen: pd.DataFrame, cleaning: Cleaning) -> Iterator[Fault]:
    text = codes(rows.features, cleaning)
    if text:
        yield Fault("codes", text, False, {})


def codes(features: pd.DataFrame, cleaning: Cleaning) -> str:
    """Return which columns have numbers that may stand for missing values, in words.

    Such a number is one of `CODES`, farther outside the other values of its column than these are
    wide. It may be a measurement: it stays as it is, and no remedy is applied.
    """
    stored = features.select_dtypes("number")
    suspects = list(stored.columns[stored.abs().isin(CODES).any()])
    suspects += list(features.columns.difference(stored.columns))  # numbers among words
    found = {name: _far_outside(numbers(features[name]).to_numpy()) for name in suspects}
    told = pd.Series({name: counts for name, counts in found.items() if counts}, dtype=object)
    if not len(told):
        return ""
    words = in_order({word for counts in told for word in counts})
    flags, call = f"--na={','.join(words)}", f"na={words!r}"
    if not cleaning.fills:
        flags, call = f"{flags} --impute median", f'{call}, impute="median"'
    what = " with a number far outside the others that may stand for a missing value"
    return (
        f"{_told(told, what)}. It is used as a number. To read it as missing, in every column: "
        f"{flags} (in Python {call})."
    )


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


def _missing(rows: Rows, seen: pd.DataFrame, cleaning: Cleaning) -> Iterator[Fault]:
    empty = seen.index[seen["kind"] == "empty"]
    if len(empty):
        said = f"{_columns(empty)} without any value: {listed(empty, _SHOWN)}"
        yield _found("empty", said, {}, empty)
    lacking = seen[(seen["missing"] > 0) & seen["kind"].isin(["numbers", "text", "mixed"])]
    if not len(lacking) or cleaning.impute is not None:
        return
    many = 2 * lacking["missing"] > len(rows.features)
    by_word = " or by the most frequent word" * bool((lacking["kind"][~many] == "text").any())
    fill = {"fill by the median" + "," * bool(by_word) + by_word: {"impute": "median"}}
    found = _found(
        "missing", f"{lacking['missing'].sum()} in {_told(lacking['missing'])}",
        {} if many.all() else fill,
        lacking.index[many], " (missing in more than half of the rows)",
    )  # fmt: skip
    if not many.all():
        whole = rows.features.drop(columns=empty).notna().all(axis=1).sum()
        said = f" (drop_missing would keep {whole} of {len(rows.features)} rows.)"
        found = found._replace(text=found.text + said)
    yield found


def _text(rows: Rows, seen: pd.DataFrame, cleaning: Cleaning) -> Iterator[Fault]:
    text = seen["words"][seen["kind"] == "text"]
    if not len(text) or cleaning.encode is not None:
        return
    free = text.map(len) > MANY_LEVELS
    mend = {"make each level a column of 0 and 1": {"encode": "onehot"}}
    why = f" (more than {MANY_LEVELS} levels)"
    yield _found("text", _told(text), {} if free.all() else mend, text.index[free], why)


def _dates(rows: Rows, seen: pd.DataFrame, cleaning: Cleaning) -> Iterator[Fault]:
    dates = seen.index[seen["kind"] == "dates"]
    if len(dates):
        said = f"{_columns(dates)}: {listed(dates, _SHOWN)}"
        why = " (or replace each date by a number, such as days since the first)"
        yield _found("dates", said, {}, dates, why)


def _ids(rows: Rows, seen: pd.DataFrame, cleaning: Cleaning) -> Iterator[Fault]:
    """Columns that tell rows apart: the first whole one names them, the others are dropped."""
    ids = seen[(seen["kind"] == "id") | seen["numbered"]]
    if not len(ids):
        return
    whole = list(ids.index[ids["missing"] == 0])
    naming = whole[:1] if cleaning.row_names is None else []
    said = f"{_columns(ids)} with another entry in every row: {listed(ids.index, _SHOWN)}"
    steps = {f"name the rows by {name!r}": {"row_names": name} for name in naming}
    stops = bool((ids["kind"] == "id").any())
    yield _found("id", said, steps, ids.index.difference(naming, sort=False), stops=stops)


def _constant(rows: Rows, seen: pd.DataFrame, cleaning: Cleaning) -> Iterator[Fault]:
    constant = seen.index[seen["constant"] & (seen["kind"] != "empty")]
    if len(constant):
        said = f"{_columns(constant)} with one value only: {listed(constant, _SHOWN)}"
        yield _found("constant", said, {}, constant, stops=False)


def _equal(rows: Rows, seen: pd.DataFrame, cleaning: Cleaning) -> Iterator[Fault]:
    """Columns that are copies: a sparse prior shares one effect among them."""
    columns = seen.index[(seen["kind"] == "numbers") & ~seen["constant"]]
    first, copies = dict[bytes, str](), dict[str, str]()
    for name in map(str, columns):
        values = numbers(rows.features[name]).to_numpy(dtype=float)
        known = first.setdefault(values.tobytes(), name)
        if known != name:
            copies[name] = known
    if copies:
        said = _told(pd.Series(copies), " with the same values as another")
        yield Fault("equal", f"{said}. Copies share one effect (drop).", False, {})


# --- the label column -----------------------------------------------------------------------------


def label_columns(frame: pd.DataFrame) -> dict[str, list[str]]:
    """Return the columns with two to ten different values, the most likely labels first."""
    found = {}
    for name, values in frame.items():
        # most columns of a wide table have many values: the first ones show it
        if len(set(map(str, values.dropna().tolist()[: 10 * MANY_LABELS]))) <= MANY_LABELS:
            words = levels(values)
            if 2 <= len(words) <= MANY_LABELS and len(words) < values.notna().sum():
                found[str(name)] = words
    last = {name: -at for at, name in enumerate(found)}

    def rank(name: str) -> tuple[bool, bool, int]:  # by its name, then of few labels, then the last
        return name.casefold() not in LABELS, len(found[name]) > 3, last[name]

    return {name: found[name] for name in sorted(found, key=rank)}
