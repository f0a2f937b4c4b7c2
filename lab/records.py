"""What a benchmark measured, as a JSON file; the pages are made of these files and nothing else.

A record says what was measured (tables), against which goals, when, by which command, with which
versions, on what kind of machine. A script writes it by `lab.script.run`;
`python -m lab pages` makes the pages. `transcribed` marks a record whose figures were copied
from a page that was written by hand, before scripts wrote records. `code` has a hash of the code of
each file that was measured. A record is older than the code if such a hash is another one now
(`make check-records`); of a record without `code` nobody knows the version.
"""

import csv
import dataclasses
import datetime
import io
import json
import math
import os
import platform
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from lab import origin

HERE = Path(__file__).parent
RESULTS = HERE / "results"
PACKAGES = ("pymc", "pytensor", "nutpie", "arviz", "arviz-stats", "numpy", "scipy", "numba",
            "scikit-learn")  # fmt: skip
Cell = str | int | float | bool | None


@dataclass(frozen=True)
class Goal:
    """What was asked for, what was measured, and whether that is enough (None: not measured)."""

    goal: str
    measured: str
    met: bool | None

    def __post_init__(self) -> None:
        if self.met is not None:  # NumPy's truth values do not fit into JSON
            object.__setattr__(self, "met", bool(self.met))


def at_most(what: str, value: float, limit: float, unit: str = "") -> Goal:
    """Return the goal that a value is at most `limit`."""
    return Goal(f"{what}: at most {number(limit, unit)}", number(value, unit), value <= limit)


def at_least(what: str, value: float, limit: float, unit: str = "") -> Goal:
    """Return the goal that a value is at least `limit`."""
    return Goal(f"{what}: at least {number(limit, unit)}", number(value, unit), value >= limit)


def every(what: str, missed: list[str], count: int) -> Goal:
    """Return the goal that none of so many cases misses; those that do are named."""
    named = f"; missed: {'; '.join(missed)}" if missed else ""
    return Goal(what, f"{count - len(missed)} of {count}{named}", not missed)


def number(value: float, unit: str = "") -> str:
    """Return three digits and the unit; four where the first ones are 1.0, as an R-hat's."""
    digits = 4 if 1.0 <= abs(value) < 1.1 else 3
    text = f"{value:.{digits}g}" if abs(value) < 1000 else f"{value:.0f}"
    return f"{text} {unit}".strip()


@dataclass(frozen=True)
class Table:
    """Rows of numbers and words. `formats` says how a column's numbers are shown: {"s": ".1f"}."""

    title: str
    columns: list[str]
    rows: list[list[Cell]]
    formats: dict[str, str] = field(default_factory=dict)
    note: str = ""

    def __post_init__(self) -> None:
        wrong = [row for row in self.rows if len(row) != len(self.columns)]
        if wrong:
            raise ValueError(f"{self.title}: {len(self.columns)} columns, and a row {wrong[0]}")
        if not set(self.formats) <= set(self.columns):
            raise ValueError(f"{self.title}: formats of other columns: {self.formats}")


def table(
    title: str,
    rows: Iterable[Mapping[str, Any]],
    formats: Mapping[str, str] | None = None,
    note: str = "",
) -> Table:
    """Return a table of rows by column; formats of columns that it lacks are left out."""
    listed = [dict(row) for row in rows]
    columns = list(dict.fromkeys(name for row in listed for name in row))
    cells = [[plain(row.get(name)) for name in columns] for row in listed]
    used = {name: spec for name, spec in (formats or {}).items() if name in columns}
    return Table(title, columns, cells, used, note)


def plain(value: Any) -> Cell:
    """Return what JSON holds: a number that is none, or NaN, becomes None."""
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


@dataclass(frozen=True)
class Record:
    """One measurement.

    `notes` are paragraphs of Markdown; `conditions` says what else was running.
    """

    name: str
    title: str
    date: str
    command: str
    commit: str
    machine: dict[str, Cell]
    versions: dict[str, str]
    goals: list[Goal]
    measured: list[Table]
    notes: list[str] = field(default_factory=list)
    conditions: str = ""
    transcribed: bool = False
    quick: bool = False
    code: dict[str, str] = field(default_factory=dict)

    def changed(self) -> list[str]:
        """Return the files it measured that have changed since, or are gone."""
        return origin.changed(self.code)


# --- files ----------------------------------------------------------------------------------------


def write(record: Record, folder: Path = RESULTS) -> Path:
    """Write a record to `folder`/NAME.json, one row of a table a line."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{record.name}.json"
    path.write_text(text_of(record))
    return path


def text_of(record: Record) -> str:
    """Return the text of a record's file."""
    rows: dict[str, str] = {}  # a short line for each row of a table, in place of a line for a cell
    held = dataclasses.asdict(record)
    for measured in held["measured"]:
        for i, row in enumerate(measured["rows"]):
            mark = f"<row {len(rows)}>"
            rows[json.dumps(mark)] = json.dumps(row, ensure_ascii=False, allow_nan=False)
            measured["rows"][i] = mark
    text = json.dumps(held, indent=1, ensure_ascii=False, allow_nan=False)
    for mark, row in rows.items():
        text = text.replace(mark, row)
    return text + "\n"


def read(path: Path) -> Record:
    """Return the record of a file.

    Raises
    ------
    ValueError
        The file is no record: a field is missing or unknown, or its name is not the file's.
    """
    held = json.loads(path.read_text())
    try:
        held["goals"] = [Goal(**goal) for goal in held["goals"]]
        held["measured"] = [Table(**given) for given in held["measured"]]
        record = Record(**held)
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path.name} is not a record: {error}") from error
    if record.name != path.stem:
        raise ValueError(f"{path.name} holds the record {record.name!r}")
    return record


def everything(folder: Path = RESULTS) -> dict[str, Record]:
    """Return every record of a folder, by name."""
    return {path.stem: read(path) for path in sorted(folder.glob("*.json"))}


# --- where it was measured ------------------------------------------------------------------------


def today() -> str:
    """Return today's date."""
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def machine() -> dict[str, Cell]:
    """Return the processor's name, the cores this process may use, and memory in GB."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    found: dict[str, Cell] = {"processor": _processor(), "cores": cores}
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        found["memory_gb"] = round(size / 1e9)
    return found


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that a result rests on."""
    return {"python": platform.python_version()} | {p: metadata.version(p) for p in PACKAGES}


# --- Markdown -------------------------------------------------------------------------------------

LONG, FEW = 12, 3
"""A table of more rows is a CSV file, and its page shows a few of them."""


def render(record: Record, worst: str = "", brief: bool = False) -> str:
    """Return a record as a section of a page; its goals stand at the head of the page.

    Of a long table the page shows the rows with the smallest values of the column `worst`, or with
    the largest ones if a minus stands before its name. A brief section says where the record is.
    """
    parts = [f"## {record.title}", _origin(record)]
    links = {
        held.title: f"[All {len(held.rows)} rows]({file})." for file, held in long_tables(record)
    }
    if brief:
        return "\n\n".join([*parts, *links.values()])
    for measured in record.measured:
        parts += [f"### {measured.title}"] if measured.title else []
        shown = extreme(measured, worst) if measured.title in links else measured
        parts += [markdown(shown)] if shown.rows else []
        parts += [links[measured.title]] if measured.title in links else []
        parts += [measured.note] if measured.note else []
    return "\n\n".join([*parts, *record.notes])


def long_tables(record: Record) -> list[tuple[str, Table]]:
    """Return the long tables of a record, each with its CSV file."""
    long = [measured for measured in record.measured if len(measured.rows) > LONG]
    several = len(long) > 1
    return [
        (f"tables/{record.name}{f'-{i}' if several else ''}.csv", measured)
        for i, measured in enumerate(long, 1)
    ]


def comma_separated(columns: list[str], rows: Iterable[Iterable[Cell]]) -> str:
    """Return rows as the text of a CSV file, all digits of each number."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([columns, *rows])
    return text.getvalue()


def extreme(given: Table, column: str) -> Table:
    """Return a table of the few rows with the smallest (with a minus: largest) values of a column.

    It has no rows if there is no such column.
    """
    name = column.removeprefix("-")
    if name not in given.columns:
        return dataclasses.replace(given, rows=[])
    i = given.columns.index(name)
    rows = [row for row in given.rows if isinstance(row[i], int | float)]
    rows.sort(key=lambda row: float(str(row[i])), reverse=column != name)
    return dataclasses.replace(given, rows=rows[:FEW])


def _origin(record: Record) -> str:
    """Return when and how a record was measured; its file has the machine and the versions."""
    said = [record.date or "Date unknown", f"`{record.command}`" if record.command else "by hand"]
    said += [record.conditions] if record.conditions else []
    said += [f"commit {record.commit}" if record.commit else "commit unknown"]
    copied = " Copied from a page written by hand." if record.transcribed else ""
    file = f"[record](results/{record.name}.json)"
    return f"{', '.join(said)}{since(record)}; {file}.{copied}"


def markdown(given: Table) -> str:
    """Return a table in Markdown, columns of numbers to the right."""
    shown = [
        [cell(value, given.formats.get(name, "")) for name, value in pair]
        for pair in (zip(given.columns, row, strict=True) for row in given.rows)
    ]
    right = [all(_numeric(row[i]) for row in given.rows) for i in range(len(given.columns))]
    return lines([given.columns, *shown], right)


def lines(rows: list[list[str]], right: list[bool]) -> str:
    """Return rows of text, the head first, as a table in Markdown."""
    rule = ["---:" if r else "---" for r in right]
    escaped = [[text.replace("|", "\\|") for text in row] for row in rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in (escaped[0], rule, *escaped[1:]))


def cell(value: Cell, spec: str = "") -> str:
    """Return a cell's text: a number in its column's format, nothing for None.

    A number without a format has its own digits, four of them where they are many.
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and not spec and len(str(value)) > 8:
        spec = ".4g"
    return value if isinstance(value, str) else format(value, spec)


def found(given: Table, row: str, column: str) -> str:
    """Return a cell as a page shows it, by its column and what stands first in its row."""
    i = given.columns.index(column)
    (value,) = (held[i] for held in given.rows if held[0] == row)
    return cell(value, given.formats.get(column, ""))


def _numeric(value: Cell) -> bool:
    if isinstance(value, str):
        return not value or value.strip("*<>~")[:1].isdigit()
    return not isinstance(value, bool)


def goals_table(records: Iterable[Record]) -> str:
    """Return the table at the head of a page: of what, goal, measured, met?"""
    rows = [["of", "goal", "measured", "met?"]]
    for record in records:
        link = f"[{record.title}](#{anchor(record.title)})"
        for goal in record.goals:
            rows.append([link, goal.goal, goal.measured, met(goal, record)])
            link = ""  # the rows below are of the same
    return lines(rows, [False] * 4)


def met(goal: Goal, record: Record) -> str:
    """Return the last column: yes, **no**, or "not measured", and of which version."""
    if goal.met is None:
        return "not measured"
    return ("yes" if goal.met else "**no**") + version(record)


# --- of which version -----------------------------------------------------------------------------

OLD, UNKNOWN = " (older version)", " (version unknown)"
OLDER = re.compile(r" \(older version[^)]*\)")
"""What a page says of changed code. A page has it right when it is made; a change of the code does
not make the page wrong, for it still says what the record says: tests compare pages without it."""


def version(record: Record) -> str:
    """Return of which version a figure is, in brackets; nothing if it is of this one."""
    if not record.code:
        return UNKNOWN
    return OLD if record.changed() else ""


def since(record: Record) -> str:
    """Return how much has changed since a record, in brackets; nothing if nothing has."""
    if not record.code:
        return UNKNOWN
    changed = len(record.changed())
    return f" (older version; files changed since: {changed})" if changed else ""


def unmarked(page: str) -> str:
    """Return a page without what it says of changed code."""
    return OLDER.sub("", page)


def anchor(title: str) -> str:
    """Return the anchor that a Markdown heading gets."""
    kept = "".join(c for c in title.lower() if c.isalnum() or c in " -_")
    return kept.replace(" ", "-")
