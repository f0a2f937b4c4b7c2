"""The options that say how a person's own table is read and cleaned, declared once."""

import csv
import io
import shlex
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import typer

from .arguments import words

PANEL = "A table of your own"


def _option(*names: str, **settings: Any) -> Any:
    return typer.Option(*names, rich_help_panel=PANEL, **settings)


Target = Annotated[str | None, _option(help="The column of the labels.")]
Sep = Annotated[
    str | None, _option(help="Character between fields, or 'tab'. Default: from the header.")
]
Drop = Annotated[list[str] | None, _option(help="Columns not to use as features: A,B,...")]
DropMissing = Annotated[bool, _option("--drop-missing", help="Leave out rows with missing values.")]
Classes = Annotated[
    str | None, _option(help="Keep only the rows of two labels, y = 0 and y = 1: A,B.")
]
Positive = Annotated[str | None, _option(help="The label of y = 1. All other labels become y = 0.")]
Encode = Annotated[
    Literal["onehot", "ordinal"] | None,
    _option(help="Turn text into columns of 0 and 1, or into 0, 1, 2, ... in its order."),
]
Impute = Annotated[
    Literal["median", "mean", "most-frequent"] | None,
    _option(help="Fill missing numbers by this of the training rows; words by the most frequent."),
]
RowNames = Annotated[str | None, _option(help="The column that names the rows.")]
Na = Annotated[
    list[str] | None, _option(help="More words or numbers that stand for a missing value: ?,-999.")
]

Always = Annotated[
    list[str] | None,
    _option(help="Columns that are always in the model, and never selected: age,sex,..."),
]

LISTS = ("drop", "classes", "na")
"""Arguments of `ardvark.table` that are lists of words."""
ARGUMENTS = (
    *("target", "sep", "drop", "drop_missing", "classes", "positive", "encode", "impute"),
    *("row_names", "na"),
)
"""Arguments of `ardvark.table` that are options of a command."""


def flag(argument: str) -> str:
    """Return the option of an argument of `ardvark.table`."""
    return f"--{argument.replace('_', '-')}"


def declared(**given: Any) -> dict[str, Any]:
    """Return what was asked for, by the names of the arguments of `ardvark.table`."""
    for name in LISTS:
        value = given[name]
        given[name] = words([value] if isinstance(value, str) else value)
    return {name: value for name, value in given.items() if value}


def flags(settings: Mapping[str, Any]) -> list[str]:
    """Return arguments of `ardvark.table` as the words of a command line."""
    found: list[str] = []
    for name in ARGUMENTS:
        value = settings.get(name)
        word = _joined(value) if name in LISTS and value else str(value)
        if value is True:
            found.append(flag(name))
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
        Arguments of `ardvark.table`. The separator of the command as typed stays.
    """
    taken = {flag(name) for name in ARGUMENTS if name != "sep"}
    kept, skip = [], False
    for word in argv:
        option, equals, _ = word.partition("=")
        if skip or option in taken:
            skip = not skip and not equals and option != flag("drop_missing")
            continue
        kept.append(word)
    return shlex.join(["ardvark", *kept, *flags(settings)])


def _joined(values: Sequence[str]) -> str:
    """Return a comma-separated list, in which a value with a comma is quoted."""
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow(values)
    return out.getvalue()
