"""`ardvark panel`: the few features that predict nearly as well as a fit of a finished study."""

from typing import Annotated, Any

import typer

from ardvark.common.interrupt import last_words

from .arguments import typed
from .studies import StudyFolder, fit_of, problem_of, settings_of


def panel(
    folder: StudyFolder,
    method: Annotated[
        str | None,
        typer.Option(help="The fit to project. Default: exact, or the study's reference."),
    ] = None,
    sizes: Annotated[
        int | None, typer.Option(help="Features of the largest panel. Default: 20 or all.", min=1)
    ] = None,
    size: Annotated[
        int | None, typer.Option(help="Take this size in place of the suggested one.", min=0)
    ] = None,
    folds: Annotated[int, typer.Option(help="Number of folds, each with a refit.")] = 5,
    seed: Annotated[
        int | None, typer.Option(help="Of folds and refits. Default: that of the fit.", min=0)
    ] = None,
    processes: Annotated[int, typer.Option(help="Refits run in parallel.")] = 1,
) -> None:
    """Find the few features that predict nearly as well as a fit of a study, and how sure that is.

    Finished refits are kept. Run an interrupted command again to compute only what is missing.
    """
    import ardvark as av
    from ardvark.inference.fits.datatree import write_files
    from ardvark.inference.panels.page import panel_page

    settings = settings_of(folder)
    problem, test = problem_of(settings)
    _, fit = fit_of(folder, problem, method, settings["command"])
    kept = folder / "panel"
    last_words(f"Stopped. Finished refits are in {kept}. Run the same command to continue.")
    found = av.panel(
        problem,
        fit,
        sizes,
        test=test,
        folds=folds,
        random_seed=seed,
        folder=kept,
        processes=processes,
    )
    if size is not None:
        found = found.at(size)
    typer.echo(found.text())
    tables: dict[str, Any] = {
        "panel-sizes.csv": found.table,
        "panel-folds.csv": found.chosen,
        "panel-performance.csv": found.performance,
    }
    if found.size is not None:
        tables["panel.csv"] = found  # with its notes
    write_files(folder, tables)
    write_files(folder, {"panel.png": found.plot(), "panel.html": panel_page(found, typed())})
    what = "Sizes" if found.size is None else f"Coefficients (size {found.size}), sizes"
    typer.echo(f"{what}, folds, figure, report, written anew: {folder}/panel*")
    if found.size is None:
        typer.echo("For coefficients, name a size by --size.")
