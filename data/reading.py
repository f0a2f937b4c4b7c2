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

from ardvark.common.validate import InputError, logger

SEPARATORS = (",", ";", "\t", "|")
EXCEL = (".xlsx", ".xls", ".ods")
PARQUET = (".parquet", ".pq")
FILES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", *EXCEL, *PARQUET)
"""How the names of files end that are tables."""
_WORDS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " "}


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
    path = Path(path)
    if sep is not None:
        sep = _WORDS.get(sep, sep)
        if len(sep) != 1 or not sep.isascii() or sep in '"\n':
            raise InputError(
                f'the separator (sep) must be one ASCII character, or the word "tab", got {sep!r}.'
            )
    if not path.exists():
        raise InputError(f"the file {path} does not exist.")
    if not path.is_file():
        raise InputError(f"{path} is a folder; expected a file with a table.")
    foreign = path.suffix.lower() in (*EXCEL, *PARQUET)
    frame = _foreign(path) if foreign else _frame(_text(path), sep, path)
    if frame.empty:
        raise InputError(f"{path} has a header but no rows.")
    return frame


def _foreign(path: Path) -> pd.DataFrame:
    """Return the table of a file that pandas reads with the help of another package."""
    excel = path.suffix.lower() in EXCEL
    try:
        frame = pd.read_excel(path) if excel else pd.read_parquet(path)
    except ImportError as error:
        raise InputError(
            f"{path} cannot be read, because a package is missing: pip install 'ardvark[tables]', "
            f"or save the table as CSV. ({' '.join(str(error).split())})"
        ) from None
    except Exception as error:  # foreign bytes may fail in any way
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"
        kind = "an Excel" if excel else "a Parquet"
        raise InputError(f"{path} cannot be read as {kind} file ({reason}).") from None
    if excel and len(frame.columns) and str(frame.columns[0]).startswith("Unnamed: "):
        frame = frame.rename(columns={frame.columns[0]: ""})
    return frame


def _text(path: Path) -> str:
    """Return the file's text; refuse a file that is not text."""
    content = path.read_bytes()
    try:
        text = (gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content).decode(
            "utf-8-sig"
        )
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} cannot be decompressed ({error}).") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise InputError(
            f"{path} is not UTF-8 text (byte 0x{error.object[error.start]:02x} in line {line}). "
            "Save it as UTF-8; spreadsheets call that 'CSV UTF-8'."
        ) from None
    if "\0" in text:
        raise InputError(
            f"{path} is not text, because it contains zero bytes. Save it as 'CSV UTF-8'."
        )
    if not text.strip():
        raise InputError(f"{path} is empty; expected a header and one row for each sample.")
    return text.replace("\r\n", "\n").replace("\r", "\n").lstrip("\n")


def _frame(text: str, sep: str | None, path: Path) -> pd.DataFrame:
    """Return the table of a CSV file, with the names in the header."""
    if sep is None:
        unquoted = "".join(text.split("\n", 1)[0].split('"')[::2])
        sep = max(SEPARATORS, key=unquoted.count)  # of equal counts the first
    settings: dict[str, Any] = {"sep": sep, "skipinitialspace": True}
    try:
        records = filter(None, csv.reader(io.StringIO(text), delimiter=sep, skipinitialspace=True))
        header = [name.strip() for name in next(records)]
        # pandas takes what stands before the columns of the header for row names
        extra = max(0, len(next(records, [])) - len(header))
        frame = pd.read_csv(io.StringIO(text), low_memory=False, **settings)
        if sep != "," and _numeric(frame) < frame.shape[1]:
            other = pd.read_csv(io.StringIO(text), low_memory=False, decimal=",", **settings)
            if _numeric(other) > _numeric(frame):
                logger.info("%s: commas are read as decimal points", path.name)
                frame = other
    except (csv.Error, ValueError, OverflowError) as error:
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
    if extra and len(frame) and frame.iloc[:, -1].isna().all():
        raise InputError(
            f"{path}: each row ends with a separator, but the header does not. Delete these "
            "separators."
        )
    frame = frame.set_axis(header, axis=1)
    return _all_named(frame.reset_index(names="") if extra else frame, path)


def _all_named(frame: pd.DataFrame, path: Path) -> pd.DataFrame:
    """Return the table without empty columns that have no name; refuse other nameless columns."""
    nameless = [k for k, name in enumerate(frame.columns) if not name and k > 0]
    for k in nameless:
        if not len(frame) or frame.iloc[:, k].notna().any():
            raise InputError(
                f"{path}: column {k + 1} of the header has no name. Name it, or delete it."
            )
    if nameless:
        logger.info("%s: %d empty column(s) without a name are left out", path.name, len(nameless))
    return frame.iloc[:, [k for k in range(frame.shape[1]) if k not in nameless]]


def _numeric(frame: pd.DataFrame) -> int:
    return frame.select_dtypes(["number", "bool"]).shape[1]
