"""Tables of the laboratory: CSV files, and their place in a page that is written by hand.

A script computes a table and stores it with `write`; its first line is a comment with the date,
the commit, the versions and the command. `fill` puts tables between the markers of a page, and
`show` does so with the tables that lie beside it, `wrong.csv` for one:

    <!-- table: wrong -->
    <!-- end -->
"""

import datetime
import io
import re
import sys
from importlib import metadata
from pathlib import Path

import pandas as pd

from lab import origin

PACKAGES = ("pymc", "pytensor", "nutpie", "arviz", "numpy", "scipy", "numba", "scikit-learn")


def origin_line(command: str) -> str:
    """Return what is said of a table: the date, the commit, the command and the versions."""
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in PACKAGES)
    python = ".".join(map(str, sys.version_info[:3]))
    today = datetime.date.today().isoformat()
    return f"{today}, commit {origin.version()}, {command}; python {python}, {versions}"


def write(path: Path, frame: pd.DataFrame, command: str) -> None:
    """Store a table, with a first line that says which command made it."""
    path.write_text(f"# {origin_line(command)}\n{frame.to_csv(index=False)}")


def read(path: Path) -> pd.DataFrame:
    """Return a table of `write`."""
    text = path.read_text()
    return pd.read_csv(io.StringIO(text.partition("\n")[2] if text.startswith("# ") else text))


def said(path: Path) -> str:
    """Return the first line of a table of `write`: date, commit, command and versions."""
    return path.read_text().partition("\n")[0].removeprefix("# ")


def markdown(frame: pd.DataFrame, formats: dict[str, str] | None = None) -> str:
    """Return a table in Markdown: numbers to the right, in three digits or as `formats` says."""
    formats = formats or {}

    def cell(value: object, column: str) -> str:
        if value is None or value is pd.NA or value != value:  # NaN
            return ""
        if isinstance(value, float):
            usual = ".3g" if abs(value) < 1000.0 else ".0f"
            return format(value, formats.get(column, usual))
        return str(value)

    def line(cells: list[str]) -> str:
        return f"| {' | '.join(text.replace('|', '\\|') for text in cells)} |"

    right = [pd.api.types.is_numeric_dtype(frame[c].dtype) for c in frame.columns]
    rows = [
        [cell(v, c) for v, c in zip(row, frame.columns, strict=True)]
        for row in frame.itertuples(index=False, name=None)
    ]
    rule = line(["---:" if r else "---" for r in right])
    return "\n".join([line(list(frame.columns)), rule, *map(line, rows)])


def fill(page: Path, **tables: str) -> None:
    """Put each text between the markers of its name, and leave the rest of the page as it is.

    Raises
    ------
    ValueError
        The page has no markers of a name, or has them twice.
    """
    text = page.read_text()
    for name, table in tables.items():
        place = re.compile(rf"(<!-- table: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        shown = table.replace("\\", r"\\")  # a backslash of the table is no mark of a group
        text, count = place.subn(rf"\1\n{shown}\n\n\2", text)
        if count != 1:
            raise ValueError(f"{page.name} has {count} places for the table {name}, not one")
    page.write_text(text)


def show(page: Path, formats: dict[str, str] | None = None) -> None:
    """Put each CSV table that lies beside a page into it, where the page has a place for it."""
    text = page.read_text()
    for path in sorted(page.parent.glob("*.csv")):
        if f"<!-- table: {path.stem} -->" in text:
            fill(page, **{path.stem: markdown(read(path), formats)})
