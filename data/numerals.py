"""Numbers that are written as words: decimal marks, thousands, percents, other minus signs.

"5.994" is 5.994 or 5994. Which of them is decided by the other words of a column, and of the file,
once, on the training table (`Marks`). Then every word is read by itself. What may be either is a
question to the person.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

MISSING = frozenset(
    ["na", "n/a", "n.a.", "#n/a", "<na>", "nan", "-nan", "null", "none", "nil", "#null!",
     "#div/0!", "#value!", "#ref!", "#num!", "#name?", "nat"]
)  # fmt: skip
"""Words, in small letters, that stand for a missing value where a number is expected. Elsewhere
they may be levels: no smoker, sodium."""
_BOOLEAN = {"true": 1.0, "false": 0.0}
_MINUS = str.maketrans(dict.fromkeys("\u2212\u2012\u2013\ufe63\uff0d", "-"))
_GAPS = " \u00a0\u2007\u2009\u202f'\u2019"
_GROUPS = re.compile(rf"(\d{{1,3}})((?:[{_GAPS}]\d{{3}})+)(?!\d)")
_SIGN = r"[+-]?\s?"
_FORMS = {
    "whole": r"\d+|inf(inity)?",
    "point": r"\d{1,3}(,\d{3}){2,}(\.\d*)?|\d{1,3}(,\d{3})+\.\d*",
    "comma": r"\d{1,3}(\.\d{3}){2,}(,\d*)?|\d{1,3}(\.\d{3})+,\d*",
    "point or thousands": r"[1-9]\d{0,2}\.\d{3}",
    "comma or thousands": r"[1-9]\d{0,2},\d{3}",
    "decimal point": r"(\d+\.?\d*|\.\d+)(e[+-]?\d+)?",
    "decimal comma": r"(\d+,?\d*|,\d+)(e[+-]?\d+)?",
}
_CODE = re.compile(r"0\d+|\d{16,}|\d+E\d+", re.I)
_KINDS = {name: re.compile(_SIGN + f"({form})", re.I) for name, form in _FORMS.items()}
_READ = {
    mark: re.compile(
        rf"{_SIGN}((\d{{1,3}}([{other}]\d{{3}})+|\d+)?([{mark}]\d*)?(e[+-]?\d+)?|inf(inity)?)",
        re.I,
    )
    for mark, other in ((".", ","), (",", "."))
}


class Marks(NamedTuple):
    """How the numbers of a column are written.

    `decimal` is the decimal mark. `grouped` says whether the other one may group thousands.
    `percent` says whether each number ends with %, and `boolean` whether all are True or False.
    With `text` nothing is a number.
    """

    decimal: str = "."
    grouped: bool = False
    percent: bool = False
    boolean: bool = False
    text: bool = False


PLAIN = Marks()
"""A plain number: a decimal point, and nothing that groups thousands."""


def words_of(values: Iterable[Any]) -> list[Any]:
    """Return cells without blanks at their ends: words, numbers as they are, None where missing."""
    cells = values.tolist() if isinstance(values, pd.Series) else values
    return [(c.strip() or None) if isinstance(c, str) else _cell(c) for c in cells]


def _cell(value: Any) -> Any:
    return None if value is None or value is pd.NaT or value is pd.NA or value != value else value


def plain(word: str) -> str:
    """Return a word with a plain minus sign, and without gaps between its thousands."""
    word = word.strip().translate(_MINUS)
    return _GROUPS.sub(lambda m: m[1] + re.sub(rf"[{_GAPS}]", "", m[2]), word)


def number(word: str, marks: Marks = PLAIN) -> float:
    """Return the number that a word is, or NaN.

    Examples
    --------
    >>> from ardvark.data.numerals import Marks, number
    >>> number("\u22120.5"), number("1,234"), number("1.234,5", Marks(",", grouped=True))
    (-0.5, nan, 1234.5)
    """
    if marks.text:
        return np.nan
    if marks.boolean:
        return _BOOLEAN.get(word.strip().casefold(), np.nan)
    word = plain(word)
    if marks.percent != word.endswith("%"):
        return np.nan
    word = word.rstrip("% ").replace(" ", "", 1) if word[:1] in "+-" else word.rstrip("% ")
    other = "," if marks.decimal == "." else "."
    if not word or (other in word and not marks.grouped):
        return np.nan
    if not _READ[marks.decimal].fullmatch(word) or not any(map(str.isalnum, word)):
        return np.nan
    try:
        return float(word.replace(other, "").replace(marks.decimal, "."))
    except ValueError:  # a mark without a digit
        return np.nan


def plain_numbers(cells: Sequence[Any]) -> list[float] | None:
    """Return the numbers that `words_of` cells are if all are plain ones, or missing; else None.

    This is the way of nearly all columns, a hundred times as fast as `number`.
    """
    types = set(map(type, cells))
    if any(issubclass(kind, bool | np.bool_ | complex) for kind in types):
        return None
    try:
        found = [np.nan if cell is None else float(cell) for cell in cells]
    except (TypeError, ValueError):
        there = [None if is_missing(cell) else cell for cell in cells]
        return None if there == cells else plain_numbers(there)
    odd = str in types and any("_" in cell for cell in cells if isinstance(cell, str))
    return None if odd else found


def kinds(words: Collection[str], plain: bool | None = None) -> set[str]:
    """Return how words are written: names in `_FORMS` ("decimal point" is "point"), or "word".

    Of `plain` numbers it may be "point" alone, if one has a point that is decimal.
    """
    if plain is None:
        plain = plain_numbers(list(words)) is not None
    if not plain:
        return {_kind(word) for word in words}
    pointed = [word for word in words if "." in word]
    if any(_kind(word) == "point" for word in pointed):  # most often the first
        return {"point"}
    found = {"point or thousands"} if pointed else set()
    return found | ({"whole"} if len(words) > len(pointed) else set())


def _kind(word: str) -> str:
    word = plain(word).rstrip("% ")
    found = next((name for name, form in _KINDS.items() if form.fullmatch(word)), "word")
    return found.removeprefix("decimal ")


def is_missing(word: object) -> bool:
    """Whether a word stands for a missing value where a number is expected."""
    return isinstance(word, str) and word.casefold() in MISSING


def are_codes(words: Collection[str]) -> bool:
    """Whether whole numbers are codes by how they are written, such as 007, 8E2, or 20 digits."""
    found = [_CODE.fullmatch(word) for word in words]
    return any(found) and all(code or w.isdecimal() for w, code in zip(words, found, strict=True))


def are_boolean(words: Collection[str]) -> bool:
    """Whether all of some words are True or False, in any case."""
    return bool(words) and {word.casefold() for word in words} <= set(_BOOLEAN)


def decided(
    words: Collection[str],
    own: Collection[str],
    evidence: Collection[str],
    sep: str | None,
    decimal: str | None,
) -> Marks | None:
    """Return how the numbers among the words of a column are written; None if that is a question.

    Parameters
    ----------
    words : collection of str
        The distinct words of the column, without those for missing values.
    own, evidence : collection of str
        The `kinds` of these words, and those of all columns of the file.
    sep : str, optional
        The separator of the file. Where it is a comma, a decimal mark is a point.
    decimal : str, optional
        What the person says.
    """
    percent = bool(words) and all(word.endswith("%") for word in words)
    if decimal is not None and not are_boolean(words):
        return Marks(decimal, True, percent)
    if are_boolean(words):
        return Marks(boolean=True)
    both = any("." in word and "," in word for word in words)
    for mark, other, sign in (("point", "comma", "."), ("comma", "point", ",")):
        gap = f"{other} or thousands" in own
        if mark in own:
            return None if other in own or gap > both else Marks(sign, both or gap, percent)
        if f"{mark} or thousands" in own and other not in own:
            if gap or other in evidence:
                return None
            short = any(word.lstrip("+-").isdecimal() for word in map(plain, words))
            sure = mark in evidence or (mark == "point" and sep == "," and not short)
            return Marks(sign, False, percent) if sure else None
    comma = "comma" in evidence and "point" not in evidence
    return Marks("," if comma else ".", False, percent)
