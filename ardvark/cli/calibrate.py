"""`ardvark calibrate`: whether a method is right, on data that the model itself draws."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ardvark.common.interrupt import last_words
from ardvark.common.validate import pairs

from .arguments import Scheduler, Workers, computing

if TYPE_CHECKING:
    from ardvark.models import Problem


def calibrate(
    model: Annotated[str, typer.Argument(help="Model: `ardvark models` lists them.")],
    data: Annotated[
        str, typer.Argument(help="Data set whose X is used, or the size NxD of normal inputs.")
    ] = "20x3",
    method: Annotated[
        str, typer.Option(help="Method (`ardvark methods`); 'paper' is the paper's own.")
    ] = "paper",
    test: Annotated[
        Literal["sbc", "joint"],
        typer.Option(help="sbc, or joint: one transition of nuts, mams or gibbs."),
    ] = "sbc",
    replicates: Annotated[int, typer.Option(help="Number of simulated data sets.")] = 100,
    draws: Annotated[int, typer.Option(help="Draws per chain (sbc).")] = 250,
    chains: Annotated[int, typer.Option(help="Number of chains (sbc).")] = 2,
    seed: Annotated[int, typer.Option(help="Random seed.", min=0)] = 0,
    processes: Annotated[int, typer.Option(help="Replicates run in parallel.")] = 1,
    scheduler: Scheduler = None,
    workers: Workers = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Set a hyperparameter: name=value.")
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option(help="Set an option of the method: name=value.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Output folder. Default: results/calibration.")
    ] = None,
) -> None:
    """Fit data sets simulated from the model, to see where a method is wrong and by how much.

    Finished replicates are kept. Run the same command again to continue, or to add replicates.
    """
    from ardvark.inference import calibrate as run
    from ardvark.inference.fits.datatree import write_files

    where = computing(processes, scheduler, workers)
    folder = out or Path("results/calibration")
    problem = _problem(model, data, pairs(set_, "--set"))
    last_words(f"Stopped. Finished replicates are in {folder}. Run the same command to continue.")
    found = run(
        problem,
        method,
        test=test,
        replicates=replicates,
        draws=draws,
        chains=chains,
        random_seed=seed,
        folder=folder,
        processes=where,
        **pairs(option, "--option"),
    )
    typer.echo(found.text())
    if not len(found.ranks):
        raise typer.Exit(1)
    write_files(folder, {f"{found.name}.csv": found.table})
    write_files(folder, {f"{found.name}.png": found.plot()})
    typer.echo(f"Table and figure: {folder / found.name}.csv, .png")


def _problem(model: str, data: str, hypers: dict[str, Any]) -> "Problem":
    """Return the problem on a data set, or on standard normal inputs of stated sizes."""
    import numpy as np

    import ardvark as av

    sizes = re.fullmatch(r"(\d+)x(\d+)", data)
    if not sizes:
        return av.problem(model, data, **hypers)
    N, D = map(int, sizes.groups())
    X = np.random.default_rng(0).normal(size=(N, D))
    return av.problem(model, (X, np.arange(N) % 2), **hypers)
