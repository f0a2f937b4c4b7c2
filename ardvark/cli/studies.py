"""What the settings of a study mean: its folder, its data, its problem."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ardvark.common.validate import InputError, named, pairs

from . import tables
from .arguments import words

if TYPE_CHECKING:
    from xarray import DataTree

    from ardvark.data import Dataset
    from ardvark.models import Problem

_KEYS = {"model", "data", "table", "test_size", "split_seed", "hypers", "command", "fingerprint"}
"""Settings that every study has."""

StudyFolder = Annotated[Path, typer.Argument(help="A folder that `ardvark compare` wrote.")]


def asked_of(
    model: str,
    data: str,
    table: Mapping[str, Any],
    always: list[str] | None,
    test_size: float,
    split_seed: int,
    set_: list[str] | None,
) -> dict[str, Any]:
    """Return the settings of a study that say which problem it is."""
    settings: dict[str, Any] = {
        "model": model,
        "data": data,
        "table": dict(table),
        "test_size": test_size,
        "split_seed": split_seed,
        "hypers": pairs(set_, "--set"),
    }
    return settings | ({"always": words(always)} if always else {})


def check_folder(folder: Path) -> None:
    """Refuse a folder that could not be written to, before anything is computed or written."""
    for place in (folder, *folder.parents):
        if place.exists() and not place.is_dir():
            raise InputError(f"{place} is a file, so results cannot be written to {folder}.")
    if (folder / "study.json").exists():
        settings_of(folder)


def settings_of(folder: Path) -> dict[str, Any]:
    """Return what a study was asked for."""
    from ardvark.inference.comparison import study

    file = folder / study.SETTINGS
    try:
        settings = study.read_settings(folder)
        lacking = _KEYS - set(settings)
    except InputError:
        raise
    except (ValueError, TypeError) as error:
        reason = f"{type(error).__name__}: {error}"
    else:
        if not lacking:
            return settings
        reason = f"{', '.join(sorted(lacking))} missing"
    raise InputError(
        f"{file} cannot be read ({reason}). Delete it and run the same `ardvark compare` again; "
        "finished fits will be reused."
    )


def problem_of(settings: Mapping[str, Any]) -> "tuple[Problem, Dataset | None]":
    """Return the problem and the test set that the settings describe."""
    import ardvark as av
    from ardvark.models.arguments import model_named

    model, data = settings["model"], settings["data"]
    model_named(av.ZOO, model, data)  # before a large table is read
    always = settings.get("always", ())
    source = dataset_of(data, settings["table"], ["compare", model, data], always)
    test = None
    size = settings.get("test_size", 0.0)
    if not 0.0 <= size < 1.0:
        raise InputError(
            f"--test-size is the share of rows to test on, from 0 (none) to below 1, got {size:g}."
        )
    if size:
        source, test = source.split(size, random_seed=settings["split_seed"])
    return av.problem(settings["model"], source, always=always, **settings["hypers"]), test


def dataset_of(
    source: str, given: Mapping[str, Any], command: list[str], always: Sequence[str] = ()
) -> "Dataset":
    """Return a data set by its name, or a table from a file.

    The error for a table that must be cleaned prints the command that does: the one that was typed,
    if it is this `command` or asks about it. A column of `always` that is not in the table is said
    first, for the command would end at it.
    """
    import ardvark as av
    from ardvark.data.faults import TableError
    from ardvark.data.reading import is_file

    if not given.get("target") and not is_file(source):
        if given:
            asked = ", ".join(map(tables.flag, given))
            raise InputError(
                f"{asked} applies to a file with a table, and {source!r} is a data set."
            )
        return av.load(source)
    try:
        return av.table(source, **given)
    except TableError as error:
        # `methods --for` takes the options of `compare`
        typed = sys.argv[1:] if sys.argv[1:2] in (command[:1], ["methods"]) else command
        for name in (n for n in always if "=" not in n):  # sex=male is there once it is encoded
            named("column", name, error.columns)
        wanted = error.mended.declared() if error.mended else {}
        command_line = tables.mended_command(typed, wanted)
        raise InputError(error.report(command_line, tables.answer)) from None


def fit_of(
    folder: Path, problem: "Problem", method: str | None, command: str
) -> "tuple[str, DataTree]":
    """Return the fit of a study to predict with or to project, and its name; say what it lacks.

    `command` is the one that made the study.
    """
    from ardvark.inference.comparison import study
    from ardvark.inference.comparison.entry import reference_of

    fits = study.load_fits(folder, problem)
    name = _chosen(fits, method, reference_of(fits))
    if fits[name].attrs["status"] == "not_converged":
        typer.echo(f"The fit by {name} has not converged: take its numbers as rough.", err=True)
    if not (folder / study.REPORT).exists():
        typer.echo(f"The study was stopped before its report. To go on: {command}", err=True)
    return name, fits[name]


def _chosen(fits: "Mapping[str, DataTree]", method: str | None, reference: str | None) -> str:
    """Return the name of the fit to predict with, or to project."""
    usable = [name for name, tree in fits.items() if tree.attrs["status"] != "failed"]
    if method is not None:
        return named("fit", method, usable, "These are the fits of this study.")
    default = [name for name in ("exact", reference) if name in usable]
    if default or len(usable) == 1:
        return str((default or usable)[0])
    if not usable:
        raise InputError("every method of this study failed, so none can predict.")
    raise InputError(
        f"this study has no exact posterior. Name the fit to predict with: --method "
        f"{' or --method '.join(usable)}."
    )
