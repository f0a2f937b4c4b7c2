"""What one column of a table contains: numbers, text, dates, an id, and what is missing in it."""

import re
from collections.abc import Iterable
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from pandas.api import types

Kind = Literal["numbers", "text", "dates", "mixed", "id", "empty"]
"""mixed: numbers, and words in less than half of the rows. id: text that differs in each row."""

BOOLEAN = {"True": 1.0, "False": 0.0}
_DATE = re.compile(
    r"\d{4}[-/]\d{1,2}[-/]\d{1,2}([T ].*)?"
    r"|\d{1,2}([./-])\d{1,2}\2(\d{2}|\d{4})( .*)?"
    r"|\d{1,2}[ -][A-Za-z]{3,9}[ -](\d{2}|\d{4})"
    r"|[A-Za-z]{3,9} \d{1,2},? \d{4}"
)
_ID = {"id", "ids", "nr", "no", "index", "row", "key", "sample", "patient", "subject"}


class Column(NamedTuple):
    """One column: what it is, and how many of its values are missing or infinite.

    `counts` are the words in it, the most frequent first: the levels of text, or what is not a
    number in a mixed column. `numbered` says that it looks like a running number or another id.
    """

    name: str
    kind: Kind
    missing: int
    infinite: int
    counts: dict[str, int]
    constant: bool
    numbered: bool


def look_at_all(frame: pd.DataFrame) -> list[Column]:
    """Return what each column contains; columns stored as numbers are looked at together."""
    names = plain(frame)
    array = as_matrix(frame, names)
    absent = np.isnan(array)
    missing, infinite = absent.sum(axis=0), np.isinf(array).sum(axis=0)
    low = np.where(absent, np.inf, array).min(axis=0, initial=np.inf)
    high = np.where(absent, -np.inf, array).max(axis=0, initial=-np.inf)
    place = {name: k for k, name in enumerate(names)}
    found = []
    for column, values in frame.items():
        name = str(column)
        at = place.get(name)
        if at is None or missing[at] == len(frame):
            found.append(look(name, values))
            continue
        whole = not missing[at] and is_id_name(name) and _whole_and_distinct(array[:, at])
        counts = int(missing[at]), int(infinite[at])
        found.append(Column(name, "numbers", *counts, {}, bool(low[at] == high[at]), whole))
    return found


def plain(frame: pd.DataFrame) -> list[str]:
    """Return the names of the columns that are stored as numbers."""
    return [
        str(name)
        for name, kind in zip(frame.columns, frame.dtypes, strict=True)
        if types.is_numeric_dtype(kind) and not types.is_complex_dtype(kind)
    ]


def as_matrix(frame: pd.DataFrame, names: list[str]) -> np.ndarray:
    """Return columns that are stored as numbers as float64 (N, D), NaN where missing."""
    if not names:
        return np.empty((len(frame), 0))
    return frame[names].to_numpy(np.float64, na_value=np.nan)


def look(name: str, values: pd.Series) -> Column:
    """Return what a column contains."""
    absent = values.isna()
    missing, present = int(absent.sum()), values[~absent] if absent.any() else values
    if not len(present):
        return Column(name, "empty", missing, 0, {}, True, False)
    found = numbers(present)
    array = found.to_numpy()
    if not np.isnan(array).any():
        constant = bool(array.min() == array.max())
        numbered = not missing and is_id_name(name) and _whole_and_distinct(array)
        infinite = int(np.isinf(array).sum())
        return Column(name, "numbers", missing, infinite, {}, constant, numbered)
    if types.is_datetime64_any_dtype(present) or types.is_timedelta64_dtype(present):
        return Column(name, "dates", missing, 0, {}, False, False)
    odd = np.isnan(array)
    words = texts(present)
    kind: Kind = "mixed" if 2 * odd.sum() <= len(odd) else "text"
    counts = words[odd] if kind == "mixed" else words
    counted = {str(word): int(n) for word, n in counts.value_counts().items()}
    if kind == "text":
        if all(_DATE.fullmatch(word) for word in counted):
            kind = "dates"
        elif len(counted) == len(present) and len(present) > 1:
            kind = "id"
    infinite = int(np.isinf(array).sum()) if kind == "mixed" else 0
    return Column(
        name, kind, missing, infinite, counted, len(counted) == 1 == words.nunique(), False
    )


def is_id_name(name: str) -> bool:
    """Whether a column is called an id or a number of the rows: id, patient_id, SampleNo."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).casefold()
    return re.split(r"[\W_]+", apart)[-1] in _ID


def numbers(values: pd.Series) -> pd.Series:
    """Return a column as float64; NaN where it is missing or not a number."""
    if types.is_numeric_dtype(values) and not types.is_complex_dtype(values):
        array = values.to_numpy(np.float64, na_value=np.nan)
        return pd.Series(array, index=values.index)
    if types.is_datetime64_any_dtype(values) or types.is_timedelta64_dtype(values):
        return pd.Series(np.nan, index=values.index)
    words = texts(values)
    if words.isna().all() or set(words.dropna().unique()) <= set(BOOLEAN):
        return words.map(BOOLEAN).astype(np.float64)
    return pd.to_numeric(words, errors="coerce").astype(np.float64)


def texts(values: pd.Series) -> pd.Series:
    """Return values as they are written, None where missing: whole numbers without a point."""

    def text(value: object, absent: bool) -> str | None:
        if absent:
            return None
        if isinstance(value, float) and value.is_integer():
            return str(int(value))
        return str(value).strip()

    pairs = zip(values.tolist(), values.isna().tolist(), strict=True)
    return pd.Series([text(*pair) for pair in pairs], index=values.index, dtype=object)


def in_order(words: Iterable[str]) -> list[str]:
    """Return words sorted, numbers in them by value: 9 before 10, stage 2 before stage 10."""

    def key(word: str) -> tuple:
        try:
            value = float(word)
        except ValueError:
            value = np.nan
        if not np.isnan(value):
            return (0, value, ())
        parts = re.split(r"([0-9]+)", word)
        return (1, 0.0, tuple((int(p), "") if p.isdecimal() else (-1, p) for p in parts))

    return sorted(words, key=key)


def _whole_and_distinct(array: np.ndarray) -> bool:
    finite = np.isfinite(array).all()
    return bool(finite and (array == np.round(array)).all() and len(np.unique(array)) == len(array))
