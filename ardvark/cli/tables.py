"""The options that say how a person's own table is read and cleaned, declared once."""

import csv
import functools
import inspect
import io
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from .arguments import words

PANEL = "A table of your own"


def _option(*names: str, **settings: Any) -> Any:
    return typer.Option(*names, rich_help_panel=PANEL, **settings)


Sep = Annotated[
    str | None, _option(help="Character between fields, or 'tab'. Default: from the header.")
]
Always = Annotated[
    list[str] | None,
    _option(help="Columns that are always in the model, and never selected: age,sex,..."),
]

LISTS = ("drop", "classes", "na", "measured", "reference")
"""Arguments of `ardvark.table` that are lists of words."""
READING = ("sep", "comment", "header", "sheet", "transpose", "labels", "on")
"""Arguments of `ardvark.table` that are about the file: `predict` has them too."""
Comment = Annotated[str | None, _option(help="How lines begin that are no rows: '#', '!'.")]
Header = Annotated[
    bool | None,
    _option("--header/--no-header", help="Whether the first row names the columns."),
]
SheetName = Annotated[str | None, _option("--sheet", help="The sheet of an Excel file.")]
Transpose = Annotated[
    bool | None,
    _option("--transpose/--no-transpose", help="A row for each gene, a column for each sample."),
]
Labels = Annotated[
    Path | None, _option(help="Another table, with labels and more columns of the samples.")
]
On = Annotated[str | None, _option(help="The column of --labels that names the samples.")]


def declared(
    target: Annotated[str | None, _option(help="The column of the labels.")] = None,
    sep: Sep = None,
    drop: Annotated[
        list[str] | None, _option(help="Columns not to use as features: A,B,...")
    ] = None,
    drop_missing: Annotated[
        bool, _option("--drop-missing", help="Leave out rows with missing values.")
    ] = False,
    classes: Annotated[
        str | None, _option(help="Keep only the rows of two labels, y = 0 and y = 1: A,B.")
    ] = None,
    positive: Annotated[
        str | None, _option(help="The label of y = 1. All other labels become y = 0.")
    ] = None,
    encode: Annotated[
        Literal["onehot", "ordinal"] | None,
        _option(help="Turn text into columns of 0 and 1, or into 0, 1, 2, ... in its order."),
    ] = None,
    impute: Annotated[
        Literal["median", "mean", "most-frequent"] | None,
        _option(
            help="Fill missing numbers by this of the training rows; words by the most frequent."
        ),
    ] = None,
    row_names: Annotated[str | None, _option(help="The column that names the rows.")] = None,
    na: Annotated[
        list[str] | None,
        _option(help="More words or numbers that stand for a missing value: ?,-999."),
    ] = None,
    measured: Annotated[
        list[str] | None,
        _option(help="Columns and words that are measured, though they look like ids or missing."),
    ] = None,
    groups: Annotated[
        str | None, _option(help="The column of the patient: a patient's rows stay together.")
    ] = None,
    reference: Annotated[
        list[str] | None, _option(help="Levels that others are compared with: batch=plate1,...")
    ] = None,
    decimal: Annotated[
        Literal[".", ","] | None, _option(help="The decimal mark; the other groups thousands.")
    ] = None,
    comment: Comment = None,
    header: Header = None,
    sheet: SheetName = None,
    transpose: Transpose = None,
    labels: Labels = None,
    on: On = None,
) -> dict[str, Any]:
    """Return what was asked for, by the names of the arguments of `ardvark.table`."""
    given: dict[str, Any] = dict(locals())
    for name in LISTS:
        value = given[name]
        given[name] = words([value] if isinstance(value, str) else value)
    return asked(given)


def asked(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was asked for, as it is stored: paths as words, in full."""
    found = {k: v for k, v in given.items() if v or (k == "header" and v is False)}
    if labels := found.get("labels"):
        found["labels"] = str(Path(labels).resolve())
    return found


_OPTIONS = {
    name: option.replace(kind=option.KEYWORD_ONLY)
    for name, option in inspect.signature(declared).parameters.items()
}
ARGUMENTS = tuple(_OPTIONS)
"""Arguments of `ardvark.table` that are options of a command."""


def takes_table(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that has the options of `declared` in the place of its argument `table`."""
    own = inspect.signature(command)

    @functools.wraps(command)
    def taking(**given: Any) -> None:
        command(table=declared(**{name: given.pop(name) for name in ARGUMENTS}), **given)

    parameters = [
        option
        for name, parameter in own.parameters.items()
        for option in (_OPTIONS.values() if name == "table" else [parameter])
    ]
    # Typer reads both; the type of a function does not declare the first
    taking.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    taking.__annotations__ = {p.name: p.annotation for p in parameters}
    return taking


def flag(argument: str) -> str:
    """Return the option of an argument of `ardvark.table`."""
    return f"--{argument.replace('_', '-')}"


def flags(settings: Mapping[str, Any]) -> list[str]:
    """Return arguments of `ardvark.table` as the words of a command line."""
    found: list[str] = []
    for name in ARGUMENTS:
        value = settings.get(name)
        word = _joined(value) if name in LISTS and value else str(value)
        if value is True:
            found.append(flag(name))
        elif value is False:
            found.append(f"--no-{name}")
        elif value:  # what begins with a hyphen would read as an option
            found += [f"{flag(name)}={word}"] if word.startswith("-") else [flag(name), word]
    return found


def mended_command(argv: Sequence[str], settings: Mapping[str, Any]) -> str:
    """Return a command, quoted for a shell, with these settings of its table and no others.

    Parameters
    ----------
    argv : sequence of str
        The command as it was typed, without the program's name.
    settings : dict
        Arguments of `ardvark.table`. What the command as typed says about the file stays.
    """
    taken = {flag(name) for name in ARGUMENTS if name not in READING}
    kept, skip = [], False
    for word in argv:
        option, equals, _ = word.partition("=")
        if skip or option in taken:
            skip = not skip and not equals and option != flag("drop_missing")
            continue
        kept.append(word)
    return shlex.join(["ardvark", *kept, *flags(settings)])


def answer(settings: Mapping[str, Any]) -> str:
    """Return settings as they are typed, quoted for a shell."""
    return shlex.join(flags(settings))


def _joined(values: Sequence[str]) -> str:
    """Return a comma-separated list, in which a value with a comma is quoted."""
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow(values)
    return out.getvalue()
