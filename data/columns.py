"""What the columns of a table contain: numbers, text, dates, an id, and what is missing in them."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

_BOOLEAN = {"True": 1.0, "False": 0.0}
_DATE = re.compile(
    r"\d{4}[-/]\d{1,2}[-/]\d{1,2}([T ].*)?"
    r"|\d{1,2}([./-])\d{1,2}\2(\d{2}|\d{4})( .*)?"
    r"|\d{1,2}[ -][A-Za-z]{3,9}[ -](\d{2}|\d{4})"
    r"|[A-Za-z]{3,9} \d{1,2},? \d{4}"
)
_ID = {"id", "ids", "nr", "no", "index", "row", "key", "sample", "patient", "subject"}


def tidied(frame: pd.DataFrame, na: Sequence[str] = ()) -> pd.DataFrame:
    """Return a table as float64 numbers and words, NaN where a value is missing.

    Numbers that are written as words become numbers, and so do True and False. Ordered categories
    keep their order, and dates stay as they are.

    Parameters
    ----------
    frame : DataFrame
        A table with distinct column names.
    na : sequence of str
        Words or numbers that stand for a missing value, in any case.
    """
    stored = [name for name, kind in frame.dtypes.items() if _is_number(kind)]
    array = frame[stored].to_numpy(np.float64, na_value=np.nan) if stored else None
    numbers_of = pd.DataFrame(array, index=frame.index, columns=pd.Index(stored, dtype=object))
    sizes = pd.to_numeric(pd.Series(list(na), dtype=object), errors="coerce").dropna().tolist()
    if sizes:
        numbers_of = numbers_of.mask(numbers_of.isin(sizes))
    rest = {name: _tidy(without(frame[name], na)) for name in frame.columns.difference(stored)}
    return pd.concat([numbers_of, pd.DataFrame(rest, frame.index)], axis=1)[list(frame.columns)]


def _is_number(kind: Any) -> bool:
    other = types.is_bool_dtype(kind) or types.is_complex_dtype(kind)
    return types.is_numeric_dtype(kind) and not other


def _tidy(values: pd.Series) -> pd.Series:
    found = numbers(values)
    if found.notna().equals(values.notna()):
        return found
    if types.is_datetime64_any_dtype(values) or types.is_timedelta64_dtype(values):
        return values
    ordered = isinstance(values.dtype, pd.CategoricalDtype) and values.dtype.ordered
    return values if ordered else texts(values)


def without(values: pd.Series, na: Sequence[str]) -> pd.Series:
    """Return values with the words of `na`, in any case, as missing values."""
    if not na:
        return values
    return values.mask(texts(values).str.casefold().isin([word.strip().casefold() for word in na]))


def numbers(values: pd.Series) -> pd.Series:
    """Return a column as float64; NaN where it is missing or not a number."""
    if types.is_bool_dtype(values) or _is_number(values.dtype):
        return pd.Series(values.to_numpy(np.float64, na_value=np.nan), index=values.index)
    if types.is_datetime64_any_dtype(values) or types.is_timedelta64_dtype(values):
        return pd.Series(np.nan, index=values.index)
    words = texts(values)
    if set(words.dropna().unique()) <= set(_BOOLEAN):
        return words.map(_BOOLEAN).astype(np.float64)
    return pd.to_numeric(words, errors="coerce").astype(np.float64)


def texts(values: pd.Series) -> pd.Series:
    """Return values as they are written, NaN where missing: whole numbers without a point."""

    def text(value: object) -> str:
        if isinstance(value, float) and value.is_integer():
            return str(int(value))
        return str(value).strip()

    found = [text(v) if there else np.nan
             for v, there in zip(values.tolist(), values.notna(), strict=True)]  # fmt: skip
    return pd.Series(found, index=values.index, dtype=object)


def levels(values: pd.Series) -> list[str]:
    """Return the distinct words of a column in their order: of its categories, or `in_order`."""
    words = texts(values).value_counts().index.tolist()
    if isinstance(values.dtype, pd.CategoricalDtype) and values.dtype.ordered:
        order = texts(pd.Series(values.dtype.categories)).tolist()
        return [word for word in order if word in words]
    return in_order(words)


def profile(features: pd.DataFrame) -> pd.DataFrame:
    """Return what each column of a tidied table contains, one row a column.

    The columns are

    - `kind`: numbers, text, dates, empty; mixed, which is numbers with words in less than half of
      the rows; or id, which is text that differs in each row.
    - `missing`, `infinite`: how many values are.
    - `words`: {word: count}, the most frequent first: levels of text, what is no number if mixed.
    - `constant`: whether there is one value only.
    - `numbered`: whether it looks like a running number or another id.
    """
    stored = features.select_dtypes("float64")
    array = stored.to_numpy()
    absent = np.isnan(array)
    low = np.where(absent, np.inf, array).min(axis=0, initial=np.inf)
    high = np.where(absent, -np.inf, array).max(axis=0, initial=-np.inf)
    seen = pd.DataFrame(
        {
            "kind": np.where(absent.all(axis=0), "empty", "numbers"),
            "missing": absent.sum(axis=0),
            "infinite": np.isinf(array).sum(axis=0),
            "words": [{} for _ in stored],
            "constant": low == high,
            "numbered": [
                _is_id_name(str(name)) and _is_id(array[:, k]) for k, name in enumerate(stored)
            ],
        },
        index=stored.columns,
    )
    rest = features.columns.difference(stored.columns)
    others = pd.DataFrame([_profile_of_words(features[name]) for name in rest], rest)
    return pd.concat([seen, others]).loc[features.columns] if len(rest) else seen


def _profile_of_words(values: pd.Series) -> dict[str, Any]:
    """Return the row of `profile` for a column that is not one of numbers."""
    present = values.dropna()
    found = numbers(present)
    odd = found.isna()
    kind = "mixed" if 2 * odd.sum() <= len(odd) else "text"
    counts = (texts(present)[odd] if kind == "mixed" else texts(present)).value_counts().to_dict()
    dates = kind == "text" and all(_DATE.fullmatch(str(word)) for word in counts)
    if not len(present):
        kind = "empty"
    elif dates or types.is_datetime64_any_dtype(values) or types.is_timedelta64_dtype(values):
        kind = "dates"
    elif kind == "text" and len(counts) == len(present) > 1:
        kind = "id"
    return {
        "kind": kind,
        "missing": len(values) - len(present),
        "infinite": int(np.isinf(found).sum()) if kind == "mixed" else 0,
        "words": counts,
        "constant": len(texts(present).unique()) == 1,
        "numbered": False,
    }


def _is_id_name(name: str) -> bool:
    """Whether a column is called an id or a number of the rows: id, patient_id, SampleNo."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).casefold()
    return re.split(r"[\W_]+", apart)[-1] in _ID


def _is_id(array: np.ndarray) -> bool:
    whole = np.isfinite(array).all() and (array == np.round(array)).all()
    return bool(whole and len(np.unique(array)) == len(array))


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
