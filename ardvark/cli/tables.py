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

FLAGS = {
    "target": "--target",
    "sep": "--sep",
    "drop": "--drop",
    "drop_missing": "--drop-missing",
    "classes": "--classes",
    "positive": "--positive",
    "encode": "--encode",
    "impute": "--impute",
    "row_names": "--row-names",
    "na": "--na",
}
"""The option of each argument of `ardvark.table`."""


def declared(
    target: str | None,
    sep: str | None,
    drop: list[str] | None,
    drop_missing: bool,
    classes: str | None,
    positive: str | None,
    encode: str | None,
    impute: str | None,
    row_names: str | None,
    na: list[str] | None,
) -> dict[str, Any]:
    """Return what was asked for, by the names of the arguments of `ardvark.table`."""
    given = {
        "target": target,
        "sep": sep,
        "drop": words(drop),
        "drop_missing": drop_missing,
        "classes": words([classes] if classes else None),
        "positive": positive,
        "encode": encode,
        "impute": impute,
        "row_names": row_names,
        "na": words(na),
    }
    return {name: value for name, value in given.items() if value}


def flags(settings: Mapping[str, Any]) -> list[str]:
    """Return arguments of `ardvark.table` as the words of a command line."""
    found: list[str] = []
    for name, flag in FLAGS.items():
        value = settings.get(name)
        if not value:
            continue
        word = "" if value is True else value if isinstance(value, str) else _joined(value)
        if word.startswith("-"):  # it would read as an option
            found.append(f"{flag}={word}")
        else:
            found += [flag, word] if word else [flag]
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
    taken = {flag for name, flag in FLAGS.items() if name != "sep"}
    kept, skip = [], False
    for word in argv:
        flag, equals, _ = word.partition("=")
        if skip or flag in taken:
            skip = not skip and not equals and flag != FLAGS["drop_missing"]
            continue
        kept.append(word)
    return shlex.join(["ardvark", *kept, *flags(settings)])


def _joined(values: Sequence[str]) -> str:
    """Return a comma-separated list, in which a value with a comma is quoted."""
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow(values)
    return out.getvalue()
