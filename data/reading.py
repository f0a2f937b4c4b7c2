"""Read a table from a file as it is there: each cell of a CSV file is a word. Errors name a remedy.

The separator of a CSV file is the one with which all rows have as many fields as the header. Rows
with another number of fields, a header that may be a row of numbers, and an Excel file with several
sheets are refused, with the option that says what is meant. Nothing is guessed.
"""

import bz2
import csv
import gzip
import io
import lzma
import zlib
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ardvark.common.validate import InputError, logger, named

from .columns import listed
from .numerals import number, words_of

SEPARATORS = (",", ";", "\t", "|")
EXCEL = (".xlsx", ".xls", ".ods")
PARQUET = (".parquet", ".pq")
PACKED = {b"\x1f\x8b": gzip.decompress, b"BZh": bz2.decompress, b"\xfd7zXZ": lzma.decompress}
"""How a file begins that is compressed, and what unpacks it."""
_SUFFIXES = (".gz", ".bz2", ".xz")
FILES = (".csv", ".tsv", ".txt", ".dat", *EXCEL, *PARQUET)
"""How the names of files end that are tables, beside the endings of compressed ones."""
MARKS = "#!%"
"""How lines of comments begin."""
_WORDS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " "}
_FEW = 200  # records by which a separator is found
_RISING = 3  # names that are rising numbers are positions, as of a spectrum


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How a table is to be read: arguments of `table` that are about the file.

    Parameters
    ----------
    sep : str, optional
        The character between the fields of a CSV file, or "tab".
    comment : str, optional
        How lines begin that are no rows: "#", "!".
    header : bool, optional
        Whether the first row has the names of the columns. False: they are x1, x2, ...
    sheet : str, optional
        The sheet of an Excel file.
    transpose : bool
        Whether the file has a row for each feature, and a column for each sample.
    labels : DataFrame or path, optional
        Another table, with labels and further columns of the samples.
    on : str, optional
        The column of `labels` that has the names of the samples.
    """

    sep: str | None = None
    comment: str | None = None
    header: bool | None = None
    sheet: str | None = None
    transpose: bool = False
    labels: Any = None
    on: str | None = None


class Sheet(pd.DataFrame):
    """A table as it is in a file, and the separator there."""

    _metadata = ("sep",)
    sep: str | None = None


def is_file(source: object) -> bool:
    """Whether a word that names a data set or a file names a file."""
    word = str(source).lower()
    return stem(word) != word or word.endswith(FILES) or "/" in word or "\\" in word


def stem(path: object) -> str:
    """Return the name of a file without what says that it is a table: study.2024 of a CSV file.

    Examples
    --------
    >>> from ardvark.data.reading import stem
    >>> stem("tables/study.2024.csv.gz")
    'study.2024'
    """
    name = Path(str(path)).name
    for endings in (_SUFFIXES, FILES):
        found = next((end for end in endings if name.lower().endswith(end) and name != end), "")
        name = name[: len(name) - len(found)]
    return name


def opened(source: pd.DataFrame | str | Path, how: Reading) -> pd.DataFrame:
    """Return a table as it is in a file or frame, a row for each sample, with the labels' table.

    Raises
    ------
    InputError
        The file cannot be read as a table, or its rows and those of the labels do not belong to
        each other.
    """
    if not isinstance(source, str | Path | pd.DataFrame):
        raise InputError(
            f"a table is a data frame or the path of a file, got {type(source).__name__}."
        )
    frame = source if isinstance(source, pd.DataFrame) else read(source, how)
    _check_names(frame)
    if how.transpose:
        frame = transposed(frame)
    return frame if how.labels is None else _with_labels(frame, how)


def _check_names(frame: pd.DataFrame) -> None:
    """Refuse columns that cannot be named by a word."""
    if isinstance(frame.columns, pd.MultiIndex):
        raise InputError(
            f"the table has {frame.columns.nlevels} levels of column names. Make one of them: "
            "frame.columns = ['_'.join(map(str, names)) for names in frame.columns]."
        )
    nameless = [k for k, name in enumerate(frame.columns) if name is None or name is pd.NaT
                or (isinstance(name, float) and np.isnan(name))]  # fmt: skip
    if nameless:
        raise InputError(f"column {nameless[0] + 1} of the table has no name. Name it, or drop it.")


def transposed(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table with rows and columns exchanged; its first column, or index, has the names."""
    if isinstance(frame.index, pd.RangeIndex) or "" in frame:
        names, rest = frame.iloc[:, 0], frame.iloc[:, 1:]
    else:
        names, rest = frame.index.to_series(), frame
    if names.isna().any() or (names.astype(str).str.strip() == "").any():
        raise InputError("a row has no name in the first column, so the table is not transposed.")
    found = pd.DataFrame(rest.to_numpy(dtype=object).T, columns=[str(n).strip() for n in names])
    found.insert(0, "", list(map(str, rest.columns)), allow_duplicates=True)
    found = found.infer_objects()
    return _sheet(found, getattr(frame, "sep", None))


def _with_labels(frame: pd.DataFrame, how: Reading) -> pd.DataFrame:
    """Return the table beside that of its labels, matched by the names of the samples."""
    if how.on is None:
        raise InputError("labels needs on: the column of that table that has the samples' names.")
    other = opened(how.labels, Reading())
    on = named("column of the labels' table", how.on, map(str, other.columns))
    other = other.set_axis(list(map(str, other.columns)), axis=1)
    frame = frame.set_axis(list(map(str, frame.columns)), axis=1)
    if on in frame:
        names, frame = frame[on], frame.drop(columns=on)
    elif isinstance(frame.index, pd.RangeIndex):
        names, frame = frame.iloc[:, 0], frame.iloc[:, 1:]
    else:
        names = frame.index.to_series()
    keys = [str(name).strip() for name in names]
    known = [str(name).strip() for name in other.pop(on)]
    for what, own in (("the table", keys), ("the table of labels", known)):
        again = pd.Series(own, dtype=object)
        if again.duplicated().any():
            first = again[again.duplicated()].iloc[0]
            raise InputError(f"{what} has the sample {first!r} twice, so labels have no one row.")
    both = [name for name in keys if name in set(known)]
    if not both:
        raise InputError(
            f"no sample of the table ({listed(keys, 3)}) is in column {on!r} of the labels "
            f"({listed(known, 3)}). Name the column of equal names (on), or transpose the table."
        )
    if len(both) < len(keys) or len(both) < len(known):
        logger.warning(
            "%d of %d samples have labels, and %d rows of labels have no sample: the others are "
            "left out", len(both), len(keys), len(known) - len(both),
        )  # fmt: skip
    twice = [name for name in other if name in frame]
    if twice:
        raise InputError(f"both tables have a column {twice[0]!r}. Rename one of them.")
    left = frame.set_axis(keys, axis=0).loc[both]
    found = pd.concat([other.set_axis(known, axis=0).loc[both], left], axis=1)
    found = found.reset_index(drop=True)
    found.insert(0, "", both)
    return _sheet(found, getattr(frame, "sep", None))


def _sheet(frame: pd.DataFrame, sep: str | None) -> Sheet:
    found = Sheet(frame)
    found.sep = sep
    return found


def read(path: str | Path, how: Reading | None = None) -> Sheet:
    """Return a table as it is in a file.

    Parameters
    ----------
    path : path
        A CSV file in UTF-8, also compressed by gzip, bzip2 or xz; an Excel file; a Parquet file.
    how : Reading, optional
        What is known of it.

    Raises
    ------
    InputError
        The file cannot be read as a table, or a package that reads it is not installed.
    """
    path, how = Path(path), how or Reading()
    shown = str(path).encode("utf-8", "backslashreplace").decode()
    if shown != str(path):
        raise InputError(f"the name of the file {shown} is not UTF-8 text. Rename the file.")
    sep = None if how.sep is None else _WORDS.get(how.sep, how.sep)
    if sep is not None and (len(sep) != 1 or not sep.isascii() or sep in '"\n'):
        raise InputError(
            f'the separator (sep) must be one ASCII character, or the word "tab", got {sep!r}.'
        )
    if not path.exists():
        raise InputError(f"the file {path} does not exist.")
    if not path.is_file():
        raise InputError(f"{path} is a folder; expected a file with a table.")
    kind = path.suffix.lower()
    if kind in EXCEL:
        frame = _sheet(_excel(path, how), None)
    elif kind in PARQUET:
        frame = _sheet(_foreign(path, "a Parquet", lambda: pd.read_parquet(path)), None)
    else:
        lines = _lines(path, how)
        sep = sep or _separator(lines)
        frame = _sheet(_named(_records(lines, sep, path), how, path, sep), sep)
    if frame.empty:
        raise InputError(f"{path} has a header but no rows.")
    return frame


def _foreign(path: Path, kind: str, call: Any) -> Any:
    """Return what pandas reads with the help of another package."""
    try:
        return call()
    except ImportError as error:
        raise InputError(
            f"{path} cannot be read, because a package is missing: pip install 'ardvark[tables]', "
            f"or save the table as CSV. ({' '.join(str(error).split())})"
        ) from None
    except Exception as error:  # foreign bytes may fail in any way
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"
        raise InputError(f"{path} cannot be read as {kind} file ({reason}).") from None


def _excel(path: Path, how: Reading) -> pd.DataFrame:
    """Return the one sheet that has cells, or the one that was asked for."""
    plain: dict[str, Any] = {
        "sheet_name": None,
        "header": None,
        "dtype": object,
        "na_filter": False,
    }
    sheets = _foreign(path, "an Excel", lambda: pd.read_excel(path, **plain))
    sheets = {str(name): frame.replace("", None) for name, frame in sheets.items()}
    full = {name: frame for name, frame in sheets.items() if frame.notna().any(axis=None)}
    if not full:
        raise InputError(f"{path} is empty; expected a header and one row for each sample.")
    if how.sheet is not None:
        name = named("sheet", how.sheet, full)
    elif len(full) > 1:
        raise InputError(
            f"{path} has {len(full)} sheets: {listed(full, 12)}. Say which one has the table: "
            f"sheet={next(reversed(full))!r} (--sheet)."
        )
    else:
        name = next(iter(full))
    if path.suffix.lower() == ".xlsx" and full[name].isna().any(axis=None):
        _refuse_formulas(path, name)
    frame = full[name].dropna(axis=0, how="all")
    header = [_in_header(cell) for cell in frame.iloc[0]]
    rows = [header, *frame.iloc[1:].to_numpy(dtype=object).tolist()]
    return _named(rows, how, path, None).infer_objects()


def _refuse_formulas(path: Path, sheet: str) -> None:
    """Raise an error if a cell has a formula and no value, as where a program wrote the file."""
    from openpyxl import load_workbook

    with ExitStack() as open_books:
        books = [load_workbook(path, read_only=True, data_only=only) for only in (False, True)]
        for book in books:
            open_books.callback(book.close)
        formulas, values = (book[sheet].iter_rows() for book in books)
        for asked, found in zip(formulas, values, strict=True):
            for cell, value in zip(asked, found, strict=True):
                if cell.data_type == "f" and value.value is None:
                    raise InputError(
                        f"{path}: cell {cell.coordinate} has a formula, and its value is not in "
                        "the file. Open it in a spreadsheet program and save it there."
                    )


def _in_header(cell: Any) -> str:
    if pd.isna(cell):
        return ""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


def _lines(path: Path, how: Reading) -> str:
    """Return the file's text without comments; refuse a file that is not text."""
    content = path.read_bytes()
    try:
        unpack = next((do for mark, do in PACKED.items() if content.startswith(mark)), bytes)
        text = unpack(content).decode("utf-8-sig")
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
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
    text = text.replace("\r\n", "\n").replace("\r", "\n").lstrip("\n")
    if how.comment:
        kept = [line for line in text.split("\n") if not line.startswith(how.comment)]
        text = "\n".join(kept).lstrip("\n")
    elif text[:1] in tuple(MARKS) and not how.header:
        _refuse_comments(text, path)
    if not text.strip():
        raise InputError(f"{path} is empty; expected a header and one row for each sample.")
    return text


def _refuse_comments(text: str, path: Path) -> None:
    """Raise an error if lines of comments stand before the header, unless the first one is it."""
    mark, lines = text[0], text.rstrip("\n").split("\n")
    rows = [line for line in lines if not line.startswith(mark)]
    sep = _separator("\n".join(rows))
    alone = len(rows) == len(lines) - 1 and not lines[0][1:2].isspace()
    if not (alone and lines[0].count(sep) == rows[-1].count(sep)):
        raise InputError(
            f"{path} begins with a line that starts with {mark!r}. If such lines are comments, and "
            f"no rows of the table, say so: comment={mark!r} (--comment '{mark}'). If the first "
            "one is the header: header=True (--header)."
        )


def _parsed(text: str, sep: str) -> Any:
    return csv.reader(io.StringIO(text), delimiter=sep, skipinitialspace=sep != " ", strict=True)


def _separator(text: str) -> str:
    """Return the separator by which most rows have as many fields as the header, and that is many.

    Of equal ones it is the first, a comma.
    """

    def fits(sep: str) -> tuple[float, int]:
        try:
            sizes = [len(record) for record in islice(_parsed(text, sep), _FEW) if record]
        except csv.Error:
            return (0.0, 0)
        if not sizes or sizes[0] < 2:
            return (0.0, 0)
        alike = [size in (sizes[0], sizes[0] + 1) for size in sizes[1:]]
        return (float(np.mean(alike)) if alike else 0.5, sizes[0])

    return max(SEPARATORS, key=fits)


def _records(text: str, sep: str, path: Path) -> list[list[Any]]:
    """Return the header and the rows of a CSV file, all with equally many fields."""
    try:
        records = [r for r in _parsed(text, sep) if any(field.strip() for field in r)]
    except csv.Error as error:
        raise InputError(
            f"{path} could not be read as a table: {error}. Look for a quote that is not closed, "
            "or name the separator (sep)."
        ) from None
    header, rows = records[0], records[1:]
    sizes = {len(row) for row in rows} or {len(header)}
    ends = f"{path}: each row ends with a separator, but the header does not. Delete these "
    if sizes == {len(header) + 1} and header[0].strip():
        if not any(row[-1].strip() for row in rows):
            raise InputError(f"{ends}separators.")
        if _name_rows([row[0] for row in rows]):
            return [["", *header], *rows]
        raise InputError(
            f"{path}: each row has {len(header) + 1} fields, and the header has {len(header)}. A "
            "decimal comma without quotes makes two fields of a number: use another separator. "
            "If the first field is the name of the row, give it a name in the header."
        )
    wrong = next((k for k, row in enumerate(rows) if len(row) != len(header)), None)
    if wrong is not None:
        raise InputError(
            f"{path}: rows have {len(rows[wrong])} fields, but the header has {len(header)}; the "
            f"first such row is number {wrong + 1} after the header. The numbers must be equal. "
            "Look for a comma within a number or a word without quotes, a quote that is not "
            "closed, or lines before the header (comment), or name the separator (sep)."
        )
    return records


def _name_rows(fields: Sequence[str]) -> bool:
    """Whether fields before the columns of the header are names: words, or a running number."""
    names = [field.strip() for field in fields]
    if len(set(names)) < len(names):
        return False
    running = [[str(k + first) for k in range(len(names))] for first in (0, 1)]
    return names in running or not any(np.isfinite(number(name)) for name in names)


def _named(records: list[list[Any]], how: Reading, path: Path, sep: str | None) -> pd.DataFrame:
    """Return records as a frame; refuse a header that may be a row, and columns without a name."""
    header, rows = [str(name).strip() for name in records[0]], records[1:]
    again = next((k for k, row in enumerate(rows) if [str(c).strip() for c in row] == header), None)
    if again is not None:
        raise InputError(
            f"{path}: row {again + 1} after the header repeats the header, as where two files are "
            "put one after the other. Delete it."
        )
    if how.header is False:
        header, rows = [f"x{k + 1}" for k in range(len(header))], records
    elif how.header is None and _is_row(header, rows):
        raise InputError(
            f"the first row of {path} may be a header or a row of the table: {listed(header)}. Say "
            "which: header=False (--no-header) if it has values, and columns are then x1, x2, ...; "
            "header=True (--header) if it has names."
        )
    frame = pd.DataFrame(rows, columns=header, dtype=object)
    nameless = [k for k, name in enumerate(header) if not name and k > 0]
    for k in nameless:
        if not rows or any(words_of(frame.iloc[:, k])):
            raise InputError(
                f"{path}: column {k + 1} of the header has no name. Name it, or delete it."
            )
    if nameless:
        logger.info("%s: %d empty column(s) without a name are left out", path.name, len(nameless))
    return frame.iloc[:, [k for k in range(len(header)) if k not in nameless]]


def _is_row(header: list[str], rows: list[list[Any]]) -> bool:
    """Whether a header may be a row: it has numbers as the rows do, or words of their columns."""
    names = [number(name) for name in header]
    numbers = [value for value in names if np.isfinite(value)]
    if 2 * len(numbers) > len(header) or (numbers and 2 * len(numbers) == len(header)):
        rising = all(a < b for a, b in pairwise(numbers))
        if not rising or len(numbers) < _RISING:
            return numbers != [float(k) for k in range(len(numbers))]
        running = set(np.diff(numbers)) == {1.0}
        inside = [
            min(column) <= value <= max(column)
            for k, value in enumerate(names)
            if np.isfinite(value)
            and (column := [v for row in rows if np.isfinite(v := number(str(row[k])))])
        ]
        return not running and 2 * sum(inside) > len(inside)
    own = [{str(row[k]).strip() for row in rows} for k in range(len(header))]
    return (
        bool(rows)
        and all(name in own[k] for k, name in enumerate(header) if not np.isfinite(names[k]))
        and any(header)
    )
