"""Read a table from a file: CSV as people have it, Excel, Parquet. Each error names its remedy.

The separator of a CSV file is detected from the header (comma, semicolon, tab or bar). A decimal
comma is detected if the separator is not a comma. A field more in each row than in the header, and
a first column without a name, are row names; their column is called "".
"""

import csv
import gzip
import io
import zlib
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.api import types

from ardvark.common.validate import InputError, logger

SEPARATORS = (",", ";", "\t", "|")
EXCEL = (".xlsx", ".xls", ".ods")
PARQUET = (".parquet", ".pq")
FILES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", *EXCEL, *PARQUET)
"""How the names of files end that are tables."""


def is_file(source: object) -> bool:
    """Whether a word that names a data set or a file names a file."""
    word = str(source)
    return word.lower().endswith(FILES) or "/" in word or "\\" in word


def read(path: str | Path, sep: str | None = None) -> pd.DataFrame:
    """Return a table as it is in a file.

    Parameters
    ----------
    path : path
        A CSV file in UTF-8, also compressed by gzip; the first sheet of an Excel file; or a Parquet
        file.
    sep : str, optional
        The character between the fields of a CSV file, or "tab"; by default it is detected.

    Raises
    ------
    InputError
        The file cannot be read as a table, or a package that reads it is not installed.
    """
    path, sep = Path(path), _separator(sep)
    if not path.exists():
        raise InputError(f"the file {path} does not exist.")
    if not path.is_file():
        raise InputError(f"{path} is a folder; expected a file with a table.")
    if path.suffix.lower() in (*EXCEL, *PARQUET):
        frame = _foreign(path)
    else:
        frame = _frame(_text(path), sep, path)
    if frame.empty:
        raise InputError(f"{path} has a header but no rows.")
    return frame


def _foreign(path: Path) -> pd.DataFrame:
    """Return the table of a file that pandas reads with the help of another package."""
    excel = path.suffix.lower() in EXCEL
    try:
        if not excel:
            return pd.read_parquet(path)
        frame = pd.read_excel(path)
    except ImportError as error:
        raise InputError(
            f"{path} cannot be read, because a package is missing: pip install 'ardvark[tables]', "
            f"or save the table as CSV. ({' '.join(str(error).split())})"
        ) from None
    except Exception as error:  # foreign bytes may fail in any way
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"
        kind = "an Excel" if excel else "a Parquet"
        raise InputError(f"{path} cannot be read as {kind} file ({reason}).") from None
    if len(frame.columns) and str(frame.columns[0]).startswith("Unnamed: "):
        frame = frame.rename(columns={frame.columns[0]: ""})
    return frame


def _text(path: Path) -> str:
    """Return the file's text; refuse a file that is not text."""
    content = path.read_bytes()
    if content[:2] == b"\x1f\x8b":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(f"{path} cannot be decompressed ({error}).") from None
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
        raise InputError(
            f'the separator (sep) must be one ASCII character, or the word "tab", got {given!r}.'
        )
    return sep


def _frame(text: str, sep: str | None, path: Path) -> pd.DataFrame:
    """Return the table of a CSV file, with the names in the header."""
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
            "(sep)."
        ) from None
    if len(header) != frame.shape[1] or extra > 1 or (extra and "" in header):
        raise InputError(
            f"{path}: rows have {frame.shape[1] + extra} fields, but the header has "
            f"{len(header)}. The numbers must be equal; check the separator (sep)."
        )
    if extra and frame.iloc[:, -1].isna().all() and len(frame):
        raise InputError(
            f"{path}: each row ends with a separator, but the header does not. Delete these "
            "separators."
        )
    frame = frame.set_axis(header, axis=1)
    if extra:  # a field more in each row than in the header, which pandas takes for row names
        frame = frame.reset_index(names="")
    return _all_named(frame, path)


def _all_named(frame: pd.DataFrame, path: Path) -> pd.DataFrame:
    """Return the table without empty columns that have no name; refuse other nameless columns."""
    nameless = [k for k, name in enumerate(frame.columns) if not name and k > 0]
    empty = [k for k in nameless if frame.iloc[:, k].isna().all() and len(frame)]
    for k in nameless:
        if k not in empty:
            raise InputError(
                f"{path}: column {k + 1} of the header has no name. Name it, or delete it."
            )
    if empty:
        logger.info("%s: %d empty column(s) without a name are left out", path.name, len(empty))
    return frame.iloc[:, [k for k in range(frame.shape[1]) if k not in empty]]


def _numeric(frame: pd.DataFrame) -> int:
    return sum(map(types.is_numeric_dtype, frame.dtypes))
