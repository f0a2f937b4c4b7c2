"""`ardvark predict`: new rows, by a fit of a finished study."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ardvark.common.validate import InputError, named

from . import tables
from .studies import StudyFolder, problem_of, settings_of

if TYPE_CHECKING:
    from xarray import DataTree

_PRINTED = 20  # rows; the file has all


def predict(
    folder: StudyFolder,
    new: Annotated[Path, typer.Argument(help="A table of new rows; it needs no labels.")],
    method: Annotated[
        str | None,
        typer.Option(help="The fit to predict with. Default: exact, or the study's reference."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The CSV file. Default: predicted-NEW.csv in the folder.")
    ] = None,
    sep: tables.Sep = None,
) -> None:
    """Predict new rows with a fit of a study, cleaned as its training rows were."""
    import ardvark as av
    from ardvark.data import Table
    from ardvark.data.reading import read
    from ardvark.inference.comparison import study
    from ardvark.inference.comparison.entry import reference_of
    from ardvark.inference.fits.datatree import write_files

    from .export import prediction
    from .listing import NARROW, print_table

    settings = settings_of(folder)
    rows = read(new, sep)
    problem, _ = problem_of(settings)
    fits = study.load_fits(folder, problem)
    name = chosen(fits, method, reference_of(fits))
    if isinstance(problem.data, Table):  # made again of the training rows, as fingerprints show
        rows = problem.data.clean(rows)
    elif "" in rows:
        rows = rows.set_index("")
    found = prediction(problem, av.predict(problem, fits[name], rows))
    what = "score" if problem.spec.link == "identity" else f"P({problem.data.class_names[1]})"
    found = found.rename(columns={"mean": what})
    target = out or folder / f"predicted-{new.name.partition('.')[0]}.csv"
    write_files(target.parent, {target.name: found})
    top = found.head(_PRINTED).round(3).reset_index().to_numpy().tolist()
    columns = ("row", what, "5 %", "95 %", "predicted")
    print_table(f"Predictions by {name}", columns, top, NARROW)
    if len(found) > _PRINTED:
        typer.echo(f"The first {_PRINTED} of {len(found)} rows; the file has all.")
    typer.echo(f"Predictions: {target}")


def chosen(fits: "Mapping[str, DataTree]", method: str | None, reference: str | None) -> str:
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
