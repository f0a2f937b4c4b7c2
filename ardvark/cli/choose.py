"""`ardvark choose`: which candidate is for a table, and whether any beats logistic regression."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ardvark.common.interrupt import last_words
from ardvark.common.validate import InputError, pairs

from . import tables
from .arguments import typed, words
from .studies import check_folder, dataset_of

if TYPE_CHECKING:
    from ardvark.data import Dataset


_ABOUT = "choice.json"
"""What the results in a folder are of."""


def _check_data(folder: Path, rows: "Dataset") -> None:
    """Refuse a folder that has the results of other data."""
    file = folder / _ABOUT
    if not file.exists():
        return
    try:
        known = json.loads(file.read_text())["fingerprint"]
    except (ValueError, KeyError, TypeError):  # damaged
        known = ""
    if known != rows.fingerprint:
        raise InputError(
            f"{folder} has the results of other data. Name another folder (--out), or delete it."
        )


@tables.takes_table
def choose(
    data: Annotated[str, typer.Argument(help="A CSV file, or a data set (`ardvark data`).")],
    candidates: Annotated[
        str | None,
        typer.Option(
            help="Models, as rfvm or pfcvm:kernel=rbf, and l1, elastic_net, ridge, share, "
            "comma-separated. Default: rfvm, jcfo, fsklr, horseshoe and these four; with --always "
            "also covariates, these columns alone."
        ),
    ] = None,
    folds: Annotated[int, typer.Option(help="Number of folds.")] = 5,
    repeats: Annotated[int, typer.Option(help="Partitions into so many folds.")] = 1,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the results. Default: results/choose-DATA.")
    ] = None,
    *,
    table: dict[str, Any],
    always: tables.Always = None,
    option: Annotated[
        list[str] | None, typer.Option(help="Set an option of exact: ess=value, limit=value.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Random seed.", min=0)] = 0,
    processes: Annotated[int, typer.Option(help="Fits run in parallel.", min=1)] = 1,
) -> None:
    """Compare models and plain classifiers on the same folds of a table.

    Plain classifiers take the columns of --always as features like any other.

    Finished fits are kept. Run an interrupted command again to compute only what is missing.
    """
    from ardvark.inference import choose as run
    from ardvark.inference.choosing.page import page
    from ardvark.inference.fits.datatree import write_files

    rows = dataset_of(data, table, ["choose", data], words(always))
    folder = out or Path("results") / f"choose-{rows.name}"
    check_folder(folder)
    _check_data(folder, rows)
    last_words(f"Stopped. Finished fits are in {folder}. Run the same command to continue.")
    settings: dict[str, Any] = pairs(option, "--option")
    found = run(
        rows,
        candidates=None if candidates is None else words([candidates]),
        always=words(always),
        folds=folds,
        repeats=repeats,
        random_seed=seed,
        folder=folder,
        processes=processes,
        **settings,
    )
    picture, report = found.plot().figure, page(found, typed())
    about = {"data": rows.name, "fingerprint": rows.fingerprint, "command": typed()}
    files = {"choice.csv": found.table, "choice.png": picture, "choice.html": report}
    write_files(folder, files | {_ABOUT: json.dumps(about, indent=1)})
    typer.echo(found.text())
    typer.echo(f"Report: {folder / 'choice.html'}, table and figure beside it")
