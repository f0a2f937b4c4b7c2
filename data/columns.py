"""What the columns of a table contain: numbers, text, dates, an id, and what is missing in them."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from .numerals import (
    PLAIN,
    Marks,
    are_boolean,
    are_codes,
    decided,
    is_missing,
    kinds,
    number,
    plain_numbers,
    words_of,
)

_MONTH = (
    r"(jan(uary)?|feb(ruary)?|mar(ch)?|mrz|apr(il)?|may|mai|june?|july?|aug(ust)?|sept?(ember)?"
    r"|o[ck]t(ober)?|nov(ember)?|de[cz](ember)?)\.?"
)
_DATE = re.compile(
    r"\d{4}[-/]\d{1,2}[-/]\d{1,2}([T ].*)?"
    r"|\d{1,2}([./-])\d{1,2}\2(\d{2}|\d{4})( .*)?"
    r"|\d{1,2}[ -][A-Za-z]{3,9}[ -](\d{2}|\d{4})"
    r"|[A-Za-z]{3,9} \d{1,2},? \d{4}"
)
_SHORT_DATE = re.compile(rf"\d{{1,2}}[-. /]{_MONTH}|{_MONTH}[-. /]\d{{1,2}}", re.IGNORECASE)
_SERIAL = re.compile(r"\d(\.\d+)?E\+?\d+|[34]\d{4}", re.IGNORECASE)
_ID = {"nr", "no", "index", "row", "key"}
_PERSON = {
    "id", "ids", "sample", "patient", "patients", "subject", "subjects", "participant", "proband",
    "person", "donor", "animal", "mouse", "mrn", "pid", "patid", "patno", "subjid", "usubjid",
    "case", "record",
}  # fmt: skip
"""Last words of the names of columns that number the rows, or name a patient."""
_CODE = re.compile(r"[A-Za-z]{0,4}[-_ ]?\d+")
_EXACT = 2.0**53
"""Whole numbers above are not all stored exactly: ids rather than measurements."""
MANY_CODES = 8
"""Levels such as P01, P02, ... from which on a repeated one may be a patient."""


def tidied(
    frame: pd.DataFrame, na: Sequence[str] = (), marks: Mapping[str, Marks | None] | None = None
) -> pd.DataFrame:
    """Return a table as float64 numbers and words, NaN where a value is missing.

    Numbers that are written as words become numbers, and so do True and False. Ordered categories
    keep their order, and dates stay as they are.

    Parameters
    ----------
    frame : DataFrame
        A table with distinct column names.
    na : sequence of str
        Words or numbers that stand for a missing value, in any case.
    marks : dict, optional
        How the numbers of a column are written, by default as `written` finds; of a column that is
        not in it, plainly. A column with None is not read as numbers.
    """
    known = written(frame, na, sep=",") if marks is None else marks
    stored = [name for name, kind in frame.dtypes.items() if _is_number(kind)]
    array = frame[stored].to_numpy(np.float64, na_value=np.nan) if stored else np.empty((0, 0))
    floats: dict[Any, Any] = dict(zip(stored, array.T, strict=False))
    others = {name: frame[name] for name, kind in frame.dtypes.items() if _is_time(kind)}
    for name, cells in _cells(frame, na):
        found = _all_numbers(cells, known.get(str(name), PLAIN))
        if found is not None:
            floats[name] = found
        elif getattr(frame[name].dtype, "ordered", False):
            others[name] = frame[name].mask([cell is None for cell in cells])
        else:
            others[name] = _texts(cells, frame.index)
    array = np.array(list(floats.values()), dtype=np.float64).reshape(len(floats), len(frame)).T
    sizes = pd.to_numeric(pd.Series(list(na), dtype=object), errors="coerce").dropna().tolist()
    if sizes:
        array = np.where(np.isin(array, sizes), np.nan, array)
    block = pd.DataFrame(array, frame.index, pd.Index(list(floats), dtype=object))
    return pd.concat([block, pd.DataFrame(others, frame.index)], axis=1)[list(frame.columns)]


def written(
    frame: pd.DataFrame,
    na: Sequence[str] = (),
    text: Collection[str] = (),
    sep: str | None = None,
    decimal: str | None = None,
) -> dict[str, Marks | None]:
    """Return how the numbers in columns of words are written; None where that is a question.

    Parameters
    ----------
    frame, na
        As for `tidied`.
    text : collection of str
        Columns that are text, if they are not all numbers.
    sep, decimal : str, optional
        As for `numerals.decided`.
    """
    words, own = {}, {}
    codes = set()
    evidence = set[str]()
    for name, cells in _cells(frame, na):
        plain = decimal is None and plain_numbers(cells) is not None
        named = {str(cell) for cell in cells if isinstance(cell, str | bool | np.bool_)}
        if not plain:
            named = {word for word in named if not is_missing(word)}
        if decimal is None and are_codes(named):
            codes.add(str(name))
            continue
        found = kinds(named, plain or None)
        evidence |= found
        if not plain or found != {"point"}:  # nearly all columns are `PLAIN`
            words[str(name)], own[str(name)] = named, found
    marks = {n: decided(of, own[n], evidence, sep, decimal) for n, of in words.items()}
    for name in set(text) & set(marks):
        how = marks[name]
        if how is None or any(np.isnan(number(word, how)) for word in words[name]):
            marks[name] = Marks(text=True)
    return marks | dict.fromkeys(codes, Marks(text=True))


def _cells(frame: pd.DataFrame, na: Sequence[str]) -> Iterator[tuple[Any, list[Any]]]:
    """Yield the `words_of` columns that hold neither numbers nor times; words of `na` are None."""
    odd = [n for n, kind in frame.dtypes.items() if not (_is_number(kind) or _is_time(kind))]
    gone = {word.strip().casefold() for word in na}
    columns = frame[odd].to_numpy(dtype=object).T.tolist()  # at once: one by one takes seconds
    for name, column in zip(odd, columns, strict=True):
        cells = words_of(column)
        if gone:
            cells = [None if c is None or _text(c).casefold() in gone else c for c in cells]
        yield name, cells


def _may_be_number(word: str) -> bool:
    return any(np.isfinite(number(word, Marks(mark, True))) for mark in ".,")


@lru_cache(64)
def _is_number(kind: Any) -> bool:
    other = types.is_bool_dtype(kind) or types.is_complex_dtype(kind)
    return types.is_numeric_dtype(kind) and not other


@lru_cache(64)
def _is_time(kind: Any) -> bool:
    return types.is_datetime64_any_dtype(kind) or types.is_timedelta64_dtype(kind)


def _all_numbers(cells: Sequence[Any], marks: Marks | None) -> list[float] | None:
    """Return a column as numbers, if all of its words are, or stand for missing values."""
    if marks is None:
        return None
    found = _parsed(cells, marks)
    odd = [cell for cell, x in zip(cells, found, strict=True) if x != x and cell is not None]
    return found if all(map(is_missing, odd)) else None


def numbers(values: pd.Series, marks: Marks | None = None) -> pd.Series:
    """Return a column as float64; NaN where it is missing or not a number.

    If nothing is known of how numbers are written, it is a plain one, or True and False.
    """
    if types.is_bool_dtype(values) or _is_number(values.dtype):
        return pd.Series(values.to_numpy(np.float64, na_value=np.nan), index=values.index)
    if _is_time(values.dtype):
        return pd.Series(np.nan, index=values.index)
    cells = words_of(values)
    if marks is None:
        only = {str(cell) for cell in cells if cell is not None and not is_missing(cell)}
        marks = Marks(boolean=are_boolean(only))
    return pd.Series(_parsed(cells, marks), values.index, dtype=np.float64)


def _parsed(cells: Sequence[Any], marks: Marks) -> list[float]:
    plain = plain_numbers(cells) if marks._replace(grouped=False) == PLAIN else None
    return [_number(cell, marks) for cell in cells] if plain is None else plain


def _number(cell: Any, marks: Marks) -> float:
    if isinstance(cell, str):
        return number(cell, marks)
    if isinstance(cell, bool | np.bool_):
        return float(cell) if marks.boolean else np.nan
    return float(cell) if isinstance(cell, int | float | np.number) else np.nan


def texts(values: pd.Series) -> pd.Series:
    """Return values as they are written, NaN where missing: whole numbers without a point."""
    return _texts(words_of(values), values.index)


def _texts(cells: Sequence[Any], index: pd.Index) -> pd.Series:
    found = [np.nan if cell is None else _text(cell) for cell in cells]
    return pd.Series(found, index=index, dtype=object)


def _text(cell: Any) -> str:
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell).strip()


def levels(values: pd.Series) -> list[str]:
    """Return the distinct words of a column in their order: of its categories, or `in_order`."""
    words = texts(values).value_counts().index.tolist()
    if isinstance(values.dtype, pd.CategoricalDtype) and values.dtype.ordered:
        order = texts(pd.Series(values.dtype.categories)).tolist()
        return [word for word in order if word in words]
    return in_order(words)


def profile(
    features: pd.DataFrame, marks: Mapping[str, Marks | None] | None = None
) -> pd.DataFrame:
    """Return what each column of a tidied table contains, one row a column.

    `marks` are those of `written`. The columns are

    - `kind`: numbers, text, dates, empty; mixed, which is numbers with words in less than half of
      the rows; id, which is text that differs in each row; or unclear, if it is a question what the
      numbers are.
    - `missing`, `infinite`: how many values are.
    - `words`: {word: count}, the most frequent first: levels of text, what is no number if mixed.
    - `constant`: whether there is one value only.
    - `numbered`: whether it looks like a running number or another id.
    - `repeated`: whether it looks like the name of a patient or another group of rows.
    """
    stored = features.select_dtypes("float64")
    array = stored.to_numpy()
    absent = np.isnan(array)
    low = np.where(absent, np.inf, array).min(axis=0, initial=np.inf)
    high = np.where(absent, -np.inf, array).max(axis=0, initial=-np.inf)
    called = [k for k, name in enumerate(stored) if _last(name) in _ID | _PERSON]
    whole = [k for k in called if _is_whole(array[:, k])]
    named = {k for k in whole if _last(stored.columns[k]) in _PERSON}
    apart = {k for k in whole if len(np.unique(array[:, k])) == len(array)}
    apart |= set(np.flatnonzero(np.isfinite(high) & (high > _EXACT)).tolist())
    seen = pd.DataFrame(
        {
            "kind": np.where(absent.all(axis=0), "empty", "numbers"),
            "missing": absent.sum(axis=0),
            "infinite": np.isinf(array).sum(axis=0),
            "words": [{} for _ in stored],
            "constant": low == high,
            "numbered": [k in apart for k in range(stored.shape[1])],
            "repeated": [k in named - apart for k in range(stored.shape[1])],
        },
        index=stored.columns,
    )
    rest = features.columns.difference(stored.columns)
    known = {} if marks is None else marks
    rows = [_profile_of_words(features[name], known.get(str(name), PLAIN)) for name in rest]
    others = pd.DataFrame(rows, rest)
    return pd.concat([seen, others]).loc[features.columns] if len(rest) else seen


def _profile_of_words(values: pd.Series, marks: Marks | None) -> dict[str, Any]:
    """Return the row of `profile` for a column that is not one of numbers."""
    present = values.dropna()
    words = texts(present)
    found = numbers(present, marks or PLAIN)
    odd = found.isna() & ~words.map(is_missing)
    unclear = marks is None and 2 * sum(map(_may_be_number, words)) >= len(words)
    kind = "mixed" if 2 * odd.sum() <= len(odd) and not (marks and marks.text) else "text"
    kind = "unclear" if unclear else kind
    counts = (words[odd] if kind == "mixed" else words).value_counts().to_dict()
    dates = kind == "text" and all(_DATE.fullmatch(str(word)) for word in counts)
    if not len(present):
        kind = "empty"
    elif dates or _is_time(values.dtype):
        kind = "dates"
    elif kind == "text" and len(counts) == len(present) > 1:
        kind = "id"
    codes = len(counts) >= MANY_CODES and all(_CODE.fullmatch(str(word)) for word in counts)
    return {
        "kind": kind,
        "missing": len(values) - len(present),
        "infinite": int(np.isinf(found).sum()) if kind == "mixed" else 0,
        "words": counts,
        "constant": len(words.unique()) == 1,
        "numbered": False,
        "repeated": kind == "text" and len(counts) > 2 and (codes or _last(values.name) in _PERSON),
    }


def _last(name: object) -> str:
    """Return the last word of a column's name: id of patient_id, no of SampleNo."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", str(name)).casefold()
    return re.split(r"[\W_]+", apart)[-1]


def _is_whole(array: np.ndarray) -> bool:
    there = array[np.isfinite(array)]
    return bool(len(there) > 2 and len(np.unique(there)) > 2 and (there == np.round(there)).all())


def spoilt(names: Sequence[str]) -> list[str]:
    """Return names that a spreadsheet may have made of genes: dates (MARCH1, SEPT2) and numbers.

    A number is such a name where most others are words: a date as 44256, a clone as 2.31E+13.
    """
    words = 2 * sum(np.isfinite(number(name)) for name in names) < len(names)
    forms = [_DATE, _SHORT_DATE, *([_SERIAL] if words else [])]
    return [name for name in names if any(form.fullmatch(name) for form in forms)]


def alike(words: Iterable[object]) -> list[str]:
    """Return the words that another one is but for the case of its letters."""
    known = list(map(str, words))
    counts = Counter(word.casefold() for word in known)
    return [word for word in known if counts[word.casefold()] > 1]


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


def listed(names: Iterable[object], most: int = 5) -> str:
    """Return the first of some names, and how many more there are."""
    words = list(map(str, names))
    return ", ".join(words[:most]) + (f" and {len(words) - most} more" * (len(words) > most))
