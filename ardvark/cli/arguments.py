"""What the words of a command line mean: lists, and name=value pairs."""

import csv
import shlex
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from ardvark.common.validate import InputError

if TYPE_CHECKING:
    from ardvark.common.work import Processes

Scheduler = Annotated[
    str | None,
    typer.Option(help="Address of a Dask scheduler whose workers compute: tcp://HOST:8786."),
]
Workers = Annotated[
    int | None, typer.Option(help="Compute on this many Dask workers, started on this machine.")
]


def computing(processes: int, scheduler: str | None, workers: int | None) -> "Processes":
    """Return how pieces of work are computed: in local processes, or on a Dask cluster."""
    if scheduler is None and workers is None:
        return processes
    if processes != 1:
        raise InputError("--processes are local ones: omit it with --scheduler or --workers.")
    from ardvark.common.cluster import Dask

    return Dask(scheduler, workers)


def typed() -> str:
    """Return the command as it was typed."""
    return shlex.join(["ardvark", *sys.argv[1:]])


def words(given: list[str] | None) -> list[str]:
    """Return the words of comma-separated lists; a word that has a comma is in double quotes."""
    try:
        rows = csv.reader(given or (), skipinitialspace=True)
        return [word.strip() for row in rows for word in row if word.strip()]
    except csv.Error as error:
        raise InputError(f"{', '.join(given or ())!r} is not a list A,B,...: {error}.") from None
