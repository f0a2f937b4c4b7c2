"""Read a user's CSV file for the command line. Every problem is reported with its remedy.

The separator is detected from the header (comma, semicolon, tab or bar). A decimal comma is
detected if the separator is not a comma. The first column is used as row names, not as a feature,
if it has no name, or if its name is in `ROW_NAMES` and its entries are all different. Whatever is
left out is reported.
"""

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from ardvark.common.validate import InputError, distinct, logger, named
from ardvark.data import Dataset

SEPARATORS = (",", ";", "\t", "|")
ROW_NAMES = ("", "id", "index", "unnamed: 0", "sample", "row")
_SHOWN = 5  # names in a message


def read_csv(
    path: str | Path,
    target: str,
    *,
    sep: str | None = None,
    drop: Sequence[str] = (),
    drop_missing: bool = False,
    classes: Sequence[str] = (),
    positive: str | None = None,
) -> Dataset:
    """Return the data set of a CSV file with a header.

    Parameters
    ----------
    path : path
        A UTF-8 file.
    target : str
        The column of the labels.
    sep : str, optional
        The character between fields, or "tab"; by default detected from the header.
    drop : sequence of str
        Columns not to use as features.
    drop_missing : bool
        Leave out rows with a missing value.
    classes : sequence of str
        The two labels whose rows are kept, (y = 0, y = 1).
    positive : str, optional
        The label of y = 1. All other labels are y = 0, even if there are several.

    Raises
    ------
    InputError
        The file cannot be read as a table, or the table does not consist of numbers and two labels.
    """
    frame = _frame(_text(Path(path)), _separator(sep), Path(path))
    columns = list(frame.columns)
    target = named("label column", target, columns)
    frame = _without_row_names(frame, target)
    gone = [named("column", name, columns) for name in drop]
    if target in gone:
        raise InputError(f"--drop {target} is not possible: it is the label column.")
    frame = frame.drop(columns=[name for name in gone if name in frame])
    labels = _texts(frame[target])
    if classes:
        kept = labels.isin([_known_label(target, word, labels) for word in classes])
        frame, labels = frame[kept], labels[kept]
    frame = _complete(frame, target, drop_missing)
    labels = labels.loc[frame.index]
    X = _numbers(frame.drop(columns=target))
    y, names = _two(frame[target], labels, classes, positive)
    return Dataset.from_arrays(X, y, name=Path(path).stem, class_names=names)


# --- the file -------------------------------------------------------------------------------------


def _text(path: Path) -> str:
    """Return the file's text; refuse a file that is not text."""
    if not path.exists():
        raise InputError(f"the file {path} does not exist.")
    if not path.is_file():
        raise InputError(f"{path} is a folder; expected a CSV file.")
    content = path.read_bytes()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise InputError(
            f"{path} is not UTF-8 text (byte 0x{content[error.start]:02x} in line {line}). "
            "Save it as UTF-8; spreadsheets call that 'CSV UTF-8'."
        ) from None
    if "\0" in text:
        raise InputError(
            f"{path} is not text, because it contains zero bytes. Save it as 'CSV UTF-8'."
        )
    if not text.strip():
        raise InputError(f"{path} is empty; expected a header and one row for each sample.")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _separator(given: str | None) -> str | None:
    words = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " "}
    sep = words.get(given or "", given)
    if sep is not None and (len(sep) != 1 or not sep.isascii() or sep in '"\n'):
        raise InputError(f'--sep must be one ASCII character, or the word "tab", got {given!r}.')
    return sep


def _frame(text: str, sep: str | None, path: Path) -> pd.DataFrame:
    """Return the table as read, with the names in the header."""
    text = text.lstrip("\n")
    if sep is None:
        unquoted = "".join(text.split("\n", 1)[0].split('"')[::2])
        sep = max(SEPARATORS, key=unquoted.count)  # of equal counts the first
    try:
        records = filter(None, csv.reader(io.StringIO(text), delimiter=sep, skipinitialspace=True))
        header = [name.strip() for name in next(records)]
        extra = max(0, len(next(records, [])) - len(header))
        settings: dict[str, Any] = {"sep": sep, "low_memory": False, "skipinitialspace": True}
        frame = pd.read_csv(io.StringIO(text), **settings)
        if sep != "," and not all(map(types.is_numeric_dtype, frame.dtypes)):
            other = pd.read_csv(io.StringIO(text), **settings, decimal=",")
            if _numeric(other) > _numeric(frame):
                logger.info("%s: commas are read as decimal points", path.name)
                frame = other
    except (csv.Error, ValueError, OverflowError, StopIteration) as error:
        reason = " ".join(str(error).split()).removeprefix("Error tokenizing data. C error: ")
        raise InputError(
            f"{path} could not be read as a table: {reason}. Look for a quote that is not closed, "
            "or a row whose number of fields differs from the header's, or name the separator "
            "(--sep)."
        ) from None
    nameless = [k for k, name in enumerate(header) if not name and k > 0]
    if nameless:
        raise InputError(
            f"{path}: column {nameless[0] + 1} of the header has no name. Name it, or delete it."
        )
    distinct("column", header)
    if len(header) != frame.shape[1] or extra > 1 or (extra and "" in header):
        raise InputError(
            f"{path}: rows have {frame.shape[1] + extra} fields, but the header has "
            f"{len(header)}. The numbers must be equal; check the separator (--sep)."
        )
    if frame.empty:
        raise InputError(f"{path} has a header but no rows.")
    if extra:  # a field more in each row than in the header, which pandas takes for row names
        if frame.iloc[:, -1].isna().all():
            raise InputError(
                f"{path}: each row ends with a separator, but the header does not. Delete these "
                "separators."
            )
        return _named_rows(frame.set_axis(header, axis=1).reset_index(names=""), "")
    return frame.set_axis(header, axis=1)


def _numeric(frame: pd.DataFrame) -> int:
    return sum(map(types.is_numeric_dtype, frame.dtypes))


def _without_row_names(frame: pd.DataFrame, target: str) -> pd.DataFrame:
    """Return the table with its first column as row names, if it contains row names."""
    first = str(frame.columns[0])
    values = frame.iloc[:, 0]
    told_apart = values.is_unique and not values.isna().any()
    counted = not types.is_float_dtype(values)
    if first == target or first.casefold() not in ROW_NAMES:
        return frame
    if first == "" or (told_apart and counted):
        return _named_rows(frame, first)
    return frame


def _named_rows(frame: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return the table without a column, whose entries name the rows if they are distinct."""
    values = frame[column]
    what = f"column {column!r}" if column else "the first column, which has no name,"
    if values.is_unique and not values.isna().any():
        logger.info("%s is used as row names, not as a feature (rename it to use it as one)", what)
        return frame.drop(columns=column).set_axis(values.astype(str), axis=0)
    logger.info("%s is left out, because its entries are not all different", what)
    return frame.drop(columns=column)


# --- the table ------------------------------------------------------------------------------------


def _complete(frame: pd.DataFrame, target: str, drop_missing: bool) -> pd.DataFrame:
    """Return the table without missing values: refuse them, or leave out their rows."""
    missing = frame.isna()
    rows = missing.any(axis=1)
    if not rows.any():
        return frame
    if drop_missing:
        logger.info(
            "%d of %d rows are left out, because they have a missing value", rows.sum(), len(frame)
        )
        return frame[~rows]
    where = missing.columns[missing.any()].drop(target, errors="ignore")
    or_drop = f", --drop COLUMN leaves out a column ({_listed(where)})" if len(where) else ""
    raise InputError(
        f"{int(rows.sum())} of {len(frame)} rows have a missing value, the first in row "
        f"{str(rows.idxmax())!r}, column {missing[rows].iloc[0].idxmax()!r}. "
        f"--drop-missing leaves out those rows{or_drop}."
    )


def _numbers(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the features as numbers; name those that are not numbers."""
    out = {}
    texts = {}
    for name, values in frame.items():
        found = values if types.is_numeric_dtype(values) else pd.to_numeric(values, errors="coerce")
        if found.isna().any():
            at = int(found.isna().argmax())
            texts[str(name)] = f"{values.iloc[at]!r} in row {str(values.index[at])!r}"
        out[str(name)] = found.astype(np.float64)
    if texts:
        first = next(iter(texts))
        raise InputError(
            f"features must be numbers, but {len(texts)} column(s) contain text: {_listed(texts)}. "
            f"The first, {first!r}, has {texts[first]}. --drop {','.join(list(texts)[:_SHOWN])} "
            "leaves them out. To use a category with k values, replace it by k columns of 0 and 1."
        )
    return pd.DataFrame(out, index=frame.index)


def _texts(values: pd.Series) -> pd.Series:
    """Return labels as they are written: whole numbers without a decimal point."""

    def text(value: Any) -> str:
        whole = isinstance(value, float) and value.is_integer()
        return str(int(value) if whole else value)

    return pd.Series([text(v) for v in values.tolist()], index=values.index, dtype=object)


def _known_label(target: str, word: str, labels: pd.Series) -> str:
    """Return the label that a word refers to; refuse a label that no row has."""
    return named(f"label of {target!r}", word.strip(), labels.unique().tolist())


def _two(
    values: pd.Series, labels: pd.Series, classes: Sequence[str], positive: str | None
) -> tuple[np.ndarray, tuple[str, str]]:
    """Return y (N,) of 0 and 1, and the names of the two classes."""
    target = str(values.name)
    if classes:
        if len(classes) != 2 or len({c.strip() for c in classes}) != 2:
            raise InputError(f"--classes takes two labels, A,B, got {','.join(classes)!r}.")
        zero, one = (_known_label(target, word, labels) for word in classes)
    else:
        order = sorted(values.unique().tolist(), key=lambda v: (isinstance(v, str), v))
        if len(order) != 2 and (positive is None or len(order) < 2):
            shown = _listed([str(text) for text in _texts(pd.Series(order))])
            raise InputError(
                f"column {target!r} must contain two labels, got {len(order)}: {shown}. --classes "
                "A,B keeps the rows of two labels, --positive A compares one label with the rest, "
                "and --target names another column."
            )
        zero, one = _texts(pd.Series([order[0], order[-1]])).tolist()
    if positive is None:
        return (labels == one).to_numpy().astype(int), (zero, one)
    wanted = _known_label(target, positive, labels)
    rest = [text for text in labels.unique() if text != wanted]
    if len(rest) > 1:
        logger.info(
            "y = 0 stands for every label of %r except %r: %s", target, wanted, _listed(rest)
        )
    name = rest[0] if len(rest) == 1 else f"not {wanted}"
    return (labels == wanted).to_numpy().astype(int), (name, wanted)


def _listed(names: Any) -> str:
    words = list(map(str, names))
    return ", ".join(words[:_SHOWN]) + (f" and {len(words) - _SHOWN} more" * (len(words) > _SHOWN))
