"""`ardvark predict`: new rows, by a fit of a finished study."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ardvark.common.validate import InputError

from . import tables
from .studies import StudyFolder, fit_of, problem_of, settings_of

if TYPE_CHECKING:
    import pandas as pd
    from xarray import DataTree

    from ardvark.models import Problem

_PRINTED = 20  # rows; the file has all
_HEADINGS = {"low": "5 %", "high": "95 %", "label": "predicted"}


def predict(
    folder: StudyFolder,
    new: Annotated[Path, typer.Argument(help="A table of new rows; it needs no labels.")],
    method: Annotated[
        str | None,
        typer.Option(help="The fit to predict with. Default: exact, or the study's reference."),
    ] = None,
    panel: Annotated[
        bool,
        typer.Option("--panel", help="Predict by panel.csv of `ardvark panel`: few columns do."),
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="The CSV file. Default: predicted-NEW.csv in the folder.")
    ] = None,
    sep: tables.Sep = None,
    comment: tables.Comment = None,
    header: tables.Header = None,
    sheet: tables.SheetName = None,
    transpose: tables.Transpose = None,
    labels: tables.Labels = None,
    on: tables.On = None,
) -> None:
    """Predict new rows with a fit of a study, cleaned as its training rows were."""
    from ardvark.data.reading import stem
    from ardvark.inference.fits.datatree import write_files

    from .listing import NARROW, print_table

    given = {"comment": comment, "header": header, "sheet": sheet, "labels": labels, "on": on}
    given |= {"sep": sep, "transpose": transpose}
    reading = {name: value for name, value in given.items() if value is not None}
    settings = settings_of(folder)
    problem, _ = problem_of(settings)
    if panel:
        name = "the panel"
        rows = _rows(problem, new, reading, tuple(_coefficients(folder).index[1:]))
        found = _by_panel(problem, rows, _coefficients(folder))
    else:
        name, fit = fit_of(folder, problem, method, settings["command"])
        rows = _rows(problem, new, reading, None)
        found = _by_fit(problem, fit, rows)
    what = "score" if problem.spec.link == "identity" else f"P({problem.data.class_names[1]})"
    found = found.rename(columns={"mean": what})
    filled = rows.attrs.get("filled", [])
    if any(filled):
        found["filled"] = filled
    target = out or folder / f"predicted-{stem(new)}{'-by-panel' if panel else ''}.csv"
    write_files(target.parent, {target.name: found})
    top = found.drop(columns="filled", errors="ignore").head(_PRINTED).round(3)
    top = top.rename(columns=_HEADINGS).reset_index()
    print_table(f"Predictions by {name}", tuple(top.columns), top.to_numpy().tolist(), NARROW)
    if len(found) > _PRINTED:
        typer.echo(f"The first {_PRINTED} of {len(found)} rows; the file has all.")
    if any(filled):
        typer.echo(f"{sum(map(bool, filled))} rows had missing values: column `filled` says which.")
    typer.echo(f"Predictions: {target}")


def _rows(
    problem: "Problem", new: Path, reading: dict[str, Any], names: Sequence[str] | None
) -> "pd.DataFrame":
    """Return new rows as numbers, with the columns of the study, or those of the panel."""
    from ardvark.data import Table
    from ardvark.data.columns import tidied
    from ardvark.data.reading import Reading, opened

    if isinstance(problem.data, Table):  # made again of the training rows, as fingerprints show
        return problem.data.clean(new, names=names, **reading)
    rows = opened(new, Reading(**reading))
    rows = tidied(rows.set_index("") if "" in rows else rows)
    lacking = [name for name in names or () if name not in rows]
    if lacking:
        raise InputError(f"the new rows lack {', '.join(lacking[:6])}, which the panel needs.")
    return rows if names is None else rows[list(names)]


def _by_fit(problem: "Problem", tree: "DataTree", rows: "pd.DataFrame") -> "pd.DataFrame":
    import ardvark as av

    from .export import prediction

    return prediction(problem, av.predict(problem, tree, rows))


def _coefficients(folder: Path) -> "pd.Series":
    """Return the intercept of a study's panel and the coefficients of its columns."""
    import pandas as pd

    file = folder / "panel.csv"
    if not file.exists():
        raise InputError(
            f"{folder} has no panel.csv. Make it: ardvark panel {folder} (with --size, if no size "
            "is suggested)."
        )
    try:
        return pd.read_csv(file, index_col=0, keep_default_na=False)["coefficient"].astype(float)
    except (ValueError, KeyError) as error:
        raise InputError(
            f"{file} is not what `ardvark panel` wrote ({error}). Write it again."
        ) from None


def _by_panel(problem: "Problem", rows: "pd.DataFrame", b: "pd.Series") -> "pd.DataFrame":
    """Return P(y = 1) of rows by the panel's formula, and the class that is predicted."""
    import numpy as np
    import pandas as pd
    from scipy.special import expit

    mean = expit(b.iloc[0] + rows.to_numpy() @ b.iloc[1:].to_numpy())
    label = np.array(problem.data.class_names)[(mean > 0.5).astype(int)]
    return pd.DataFrame({"mean": mean, "label": label}, index=rows.index.rename("row"))
