"""`ardvark reproduce`: the tables that the zoo was built for."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from ardvark.common.interrupt import last_words

from .arguments import words


def reproduce(
    table: Annotated[
        Literal["matrix"], typer.Argument(help="matrix: every approximation beside the posterior.")
    ] = "matrix",
    list_: Annotated[
        bool, typer.Option("--list", help="List the blocks and what each has cost; run nothing.")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(help="Blocks, comma-separated: names, parts (colon) or rfvm/*/sparse."),
    ] = None,
    processes: Annotated[int, typer.Option(help="Blocks computed at once.")] = 1,
    keep_fits: Annotated[
        bool, typer.Option("--keep-fits", help="Keep the fits of finished blocks.")
    ] = False,
    summarise: Annotated[
        bool, typer.Option("--summarise", help="Only write the page and the figure again.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Output folder. Default: results/matrix.")
    ] = None,
) -> None:
    """Compute the table, or the part of it that is missing, and write its page and figure.

    Run the same command again to continue after an interrupt. The whole matrix takes about a day on
    two cores; `--only` names a part.
    """
    from ardvark.inference.reproduction.matrix import blocks as matrix

    folder = out or Path("results/matrix")
    if list_:
        _list(folder, words(only))
        return
    if not summarise:
        last_words(f"Stopped. Finished blocks are in {folder}. Run the same command to continue.")
        failed = matrix.run(folder, words(only), processes=processes, keep_fits=keep_fits)
        for name, reason in failed.items():
            typer.echo(f"{name} failed: {reason}", err=True)
    typer.echo(f"Page: {matrix.summarise(folder)}")
    if not summarise and failed:
        raise typer.Exit(1)


def _list(folder: Path, patterns: list[str]) -> None:
    """Print the blocks, and the seconds of those that are there."""
    from ardvark.inference.reproduction.matrix import blocks as matrix
    from ardvark.inference.reproduction.matrix.declared import chosen

    from .listing import print_table

    held = matrix.whole(matrix.read(folder / matrix.ROWS))
    cost = held.groupby("block")["seconds"].sum()
    rows = [
        (b.name, len(b.cells), f"{cost[b.name]:.0f} s" if b.name in cost.index else "to come")
        for b in chosen(patterns)
    ]
    print_table("Blocks of the matrix", ("block", "cells", "fitting"), rows)
    done = sum(row[2] != "to come" for row in rows)
    typer.echo(f"{done} of {len(rows)} are in {folder}, {cost.sum() / 3600:.1f} hours of fitting.")
