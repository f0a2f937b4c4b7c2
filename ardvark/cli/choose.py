"""`ardvark choose`: which candidate is for a table, and whether any beats logistic regression."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ardvark.common.interrupt import last_words

from . import tables
from .arguments import pairs, typed, words
from .studies import check_folder, dataset_of


@tables.takes_table
def choose(
    data: Annotated[str, typer.Argument(help="A CSV file, or a data set (`ardvark data`).")],
    candidates: Annotated[
        str | None,
        typer.Option(
            help="Models, as rfvm or pfcvm:kernel=rbf, and l1, elastic_net, ridge, share, "
            "comma-separated. Default: rfvm, jcfo, fsklr, horseshoe and these four."
        ),
    ] = None,
    folds: Annotated[int, typer.Option(help="Number of folds.")] = 5,
    repeats: Annotated[int, typer.Option(help="Partitions into so many folds.")] = 1,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the results. Default: results/choose-DATA.")
    ] = None,
    stack: Annotated[
        bool, typer.Option("--stack", help="Also fit the stack to all rows: stack.pkl.")
    ] = False,
    *,
    table: dict[str, Any],
    always: tables.Always = None,
    option: Annotated[
        list[str] | None, typer.Option(help="Set an option of exact: ess=value, limit=value.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Random seed.", min=0)] = 0,
    processes: Annotated[int, typer.Option(help="Fits run in parallel.")] = 1,
) -> None:
    """Compare models and plain classifiers on the same folds of a table, and weigh them.

    Plain classifiers take the columns of --always as features like any other.

    Finished fits are kept. Run an interrupted command again to compute only what is missing.
    """
    from ardvark.inference import choose as run
    from ardvark.inference.choosing.page import page
    from ardvark.inference.fits.datatree import write_files

    rows = dataset_of(data, table, ["choose", data], words(always))
    folder = out or Path("results") / f"choose-{rows.name}"
    check_folder(folder)
    last_words(f"Stopped. Finished fits are in {folder}. Run the same command to continue.")
    settings: dict[str, Any] = pairs(option, "--option")
    found = run(
        rows,
        candidates=None if candidates is None else words([candidates]),
        always=words(always),
        folds=folds,
        repeats=repeats,
        random_seed=seed,
        out=folder,
        processes=processes,
        **settings,
    )
    found.save(folder / "choice.json")
    write_files(folder, {"choice.csv": found.table})
    write_files(folder, {"choice.png": found.plot().figure, "choice.html": page(found, typed())})
    typer.echo(found.text())
    typer.echo(f"Report: {folder / 'choice.html'}, table and figure beside it")
    if stack:
        made = found.fit(folder=folder / "stack", processes=processes)
        made.save(folder / "stack.pkl")
        typer.echo(f"Stack: {folder / 'stack.pkl'}")
