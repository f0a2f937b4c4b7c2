"""The report: one self-contained page with verdicts, figures, the table and how to read them.

What stands on the page is gathered here. Its words are in `page.html.jinja`, its elements in
`parts.html.jinja`, its style in `box.css` and `page.css`. `answer.html.jinja` is the page of a
choice or a panel.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import xarray as xr

from ardvark.models import Problem

from ...checks.sensitivity import BASELINE, Sensitivity
from ...fits import datatree
from ...fits.covariates import covariates_beside
from ...fits.diagnostics import khat_limit
from ...fits.effects import effects, leading, selected_beside, towards
from ...fits.effects import printed as in_words
from ...fits.selection_text import counted, selection_text, together
from ...scoring.columns import COLUMNS, FLOOR, PRINTED, groups, whole
from ...scoring.statistics import STATISTICS
from ...target.words import MEANINGS
from ..verdicts.saying import Level
from ..verdicts.verdict import Verdict
from .figures import FIGURES, Kind
from .methods import methods_text
from .style import Picture

if TYPE_CHECKING:
    from jinja2 import Template

_BADGES: dict[Level, str] = {
    "trust": "trust",
    "converged": "converged",
    "with care": "care",
    "do not use": "avoid",
    "not judged": "unknown",
}
"""The class of a level: its colour, beside its word."""
_BAD = ("failed", "not_converged", "not possible", "do not use")
PARTS: tuple[tuple[Kind, ...], ...] = (
    ("forest", "curve"),
    ("variables", "eta", "reliability"),
    ("samples",),
)
"""The figures of the features, of the approximations, and below them."""
LEADING = 12
"""Features in the first table."""
_NARROW = 4  # methods in a table of which three fit side by side on paper


@cache
def _template(name: str = "page") -> "Template":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup, escape

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "capital": _capital,
        "bold": lambda text: Markup(re.sub("`(.+?)`", r"<b>\1</b>", str(escape(text)))),
    }
    environment.globals |= {"badges": _BADGES, "narrow": _NARROW, "floor": repr(FLOOR)}
    return environment.get_template(f"{name}.html.jinja")


def _capital(text: str) -> str:
    """Return a sentence with a capital, unless it begins with the name of a variable."""
    return text if re.match(r"\S+: ", text) else f"{text[:1].upper()}{text[1:]}"


def page(
    table: pd.DataFrame,
    printed: pd.DataFrame,
    pictures: Mapping[Kind, Picture],
    fits: Mapping[str, xr.DataTree] | None = None,
    *,
    rows: str = "",
    verdicts: Mapping[str, Verdict] | None = None,
    distances: pd.DataFrame | None = None,
    reference: str | None = None,
    problem: Problem | None = None,
    sensitivity: Sensitivity | None = None,
    remarks: Sequence[str] = (),
    command: str = "",
    versions: str = "",
) -> str:
    """Return the page of a comparison; nothing in it refers to another file.

    Parameters
    ----------
    table, printed : pandas.DataFrame
        `Comparison.table`, and `Comparison.printed`.
    pictures : dict of Picture
        Shown above the table, by kind.
    fits : dict of DataTree, optional
        Adds what the features do, by the reference, and what each method selects.
    rows : str
        How many rows there are, in a sentence.
    verdicts : dict of Verdict, optional
        What each fit may be used for; the first section.
    distances : DataFrame, optional
        `Comparison.distances`: every distance with its noise floor, folded.
    reference : str, optional
        The row the errors are measured against.
    problem : Problem, optional
        Adds a title, the hyperparameters and the model's program.
    sensitivity : Sensitivity, optional
        Adds what changes with the prior.
    remarks : sequence of str
        Remarks on the data, shown first.
    command, versions : str
        How it was made.

    Returns
    -------
    str
        HTML.
    """
    table, title, of = whole(table), "Comparison of posteriors", ""
    if problem is not None:
        title = f"{problem.spec.title} on {problem.data.name}"
        of = f"{problem.spec.name} on {problem.data.name}: "  # the page is of one problem
    fits = {} if fits is None else dict(fits)
    first = str(reference or next(iter(fits), ""))
    known = effects(fits[first]) if first in fits else pd.DataFrame()
    sets, always = selected_beside(fits, reference), covariates_beside(fits)
    drawn = {k: _figure(k, p, FIGURES[k].reading, of) for k, p in pictures.items()}
    draws = table["draws"].dropna()
    largest = int(draws.max()) if len(draws) else 1000
    return _template().render(
        short=False,
        title=title,
        reference=reference,
        converged=reference is not None and table.loc[reference, "status"] == "finished",
        best=_closest(table, reference),
        remarks=remarks,
        verdicts=verdicts,
        rows=rows,
        first=first,
        alone=len(table[table["kind"] != "baseline"]) == 1,
        predicts=(verdicts or {}).get(first, Verdict({})).model,
        features=_grid(in_words(leading(known, LEADING)), None) if len(known) else None,
        unit="" if known.empty else f"{known.attrs['unit']}{towards(known)}",
        counted=f"{counted(fits[first])} {together(fits[first])}" if first in fits else "",
        threshold=known.attrs.get("threshold"),
        figures=[[drawn[k] for k in kinds if k in drawn] for kinds in PARTS],
        scorecard=_scorecard(printed, reference, table),
        reasons=[(m, reason) for m, reason in table["reason"].dropna().items() if reason],
        meanings=_meanings(printed),
        statistics=[(", ".join(names.split()), told) for names, told in MEANINGS.items()],
        khat={"draws": largest, "limit": khat_limit(largest)} if "k-hat" in printed.index else None,
        distances=None if distances is None or not len(distances) else _distances(distances),
        selection={m: words for m, tree in fits.items() if (words := selection_text(tree))},
        sets=_grid(sets, reference) if len(sets) else None,
        always=_grid(always, reference) if len(always) else None,
        methods=methods_text(problem, fits[first]) if problem and first in fits else "",
        sensitivity=sensitivity,
        moved=sensitivity and _moved(sensitivity.table),
        problem=problem,
        command=command,
        versions=versions,
    )


def short(
    title: str, verdicts: Mapping[str, Verdict], printed: pd.DataFrame, reference: str | None
) -> str:
    """Return a comparison for a notebook: the verdicts, with the table folded below them."""
    card = _scorecard(printed, reference)
    return _template().render(short=True, title=title, verdicts=verdicts, scorecard=card)


def answer(
    title: str,
    said: Sequence[str],
    picture: Picture,
    reading: str,
    tables: Mapping[str, tuple[pd.DataFrame, str]],
    command: str,
    *,
    subject: str = "",
) -> str:
    """Return the page of what one command found, such as a choice or a panel.

    Parameters
    ----------
    title : str
    said : sequence of str
        What was found, in sentences.
    picture : Picture
    reading : str
        How to read the picture.
    tables : dict
        By heading: cells in words, and how to read them.
    command : str
        How it was made.
    subject : str
        What the picture's title begins with, and the page need not say again.

    Returns
    -------
    str
        HTML; nothing in it refers to another file.
    """
    return _template("answer").render(
        title=title,
        said=said,
        figure=_figure("answer", picture, reading, subject),
        tables=[(heading, _grid(cells, None), note) for heading, (cells, note) in tables.items()],
        command=command,
        versions=datatree.as_json(datatree.versions()),
    )


def _figure(kind: str, picture: Picture, reading: str, of: str = "") -> dict[str, Any]:
    """Return a figure with what it shows, how to read it, and values under the pointer."""
    with picture.untitled() as title:
        places, png = picture.places(), picture.png()
    width, height = picture.figure.get_size_inches()
    return {
        "kind": kind,
        "finding": title.removeprefix(of),
        "alt": picture.alt,
        "png": png,
        "spots": places[::-1],  # the first lies on top
        "tall": 1000.0 * height / width,
        "reading": reading,
    }


def _closest(table: pd.DataFrame, reference: str | None) -> dict[str, Any] | None:
    """Return the fit whose decision values are the closest to the reference's, of usable ones."""
    errors = {str(m): float(e) for m, e in table["error_eta"].dropna().items()}
    floor = errors.pop(str(reference), None)
    avoid = set(table.index[table["verdict"] == "do not use"])
    errors = {method: e for method, e in errors.items() if method not in avoid}
    if reference is None or not errors:
        return None
    best = min(errors, key=lambda m: errors[m])
    return {"method": best, "error": errors[best], "floor": floor}


def _meanings(printed: pd.DataFrame) -> list[tuple[str, str]]:
    """Return (headings, meaning) of what is printed; columns read together share an entry."""
    told = {m: [c.heading for c in g if c.heading in printed.index] for m, g in groups().items()}
    return [("; ".join(headings), meaning) for meaning, headings in told.items() if headings]


# --- tables ---------------------------------------------------------------------------------------


def _distances(found: pd.DataFrame) -> dict[str, Any]:
    """Return every distance beside its noise floor, one column a method."""
    cells = found.assign(text=[_cell(row) for row in found.to_dict("records")])
    shown = cells.pivot_table(
        index=["quantity", "statistic"],
        columns="fit",
        values="text",
        aggfunc="first",
        sort=False,
    )
    quantities = found["quantity"].unique()
    order = [(q, s) for q in quantities for s in STATISTICS if (q, s) in shown.index]
    shown = shown.fillna("").loc[order].set_axis([" ".join(pair) for pair in order])
    return _grid(shown, None)


def _moved(table: pd.DataFrame) -> dict[str, Any]:
    """Return the table of prior sensitivity, one column a prior, blank where nothing is known."""
    shown = table.drop(columns="reason").map(
        lambda x: x if isinstance(x, str) else "" if pd.isna(x) else f"{x:.3g}"
    )
    return _grid(shown.T, BASELINE)


def _cell(row: Mapping[Any, Any]) -> str:
    if pd.isna(row["value"]):
        return ""
    value = f"{row['value']:.3g}"
    if pd.isna(row["floor"]):
        return value
    return (
        f"{value} {FLOOR}" if row["deviation"] <= row["floor"] else f"{value} ({row['floor']:.2g})"
    )


def _scorecard(
    printed: pd.DataFrame, reference: str | None, table: pd.DataFrame | None = None
) -> dict[str, Any]:
    """Return the table by the sections of its columns, with more digits under the pointer."""
    numbers: dict[tuple[str, str], str] = {}
    for column in COLUMNS:
        if table is not None and column.digits is not None:
            known = table[column.name].dropna().items()
            numbers |= {(column.heading, str(m)): f"{value:.6g}" for m, value in known}
    return _grid(printed, reference, {c.heading: c.section for c in PRINTED}, numbers)


def _grid(
    shown: pd.DataFrame,
    reference: str | None,
    sections: Mapping[str, str] | None = None,
    numbers: Mapping[tuple[str, str], str] | None = None,
) -> dict[str, Any]:
    """Return a table of strings, one column a method, as the template takes it.

    `sections` names the groups of rows, by heading. `numbers` are shown under the pointer, by
    heading and method, where they differ from what is printed.
    """
    marked = {str(m): "reference" if m == reference else "" for m in shown.columns}

    def cell(heading: str, method: str, value: str) -> dict[str, str]:
        css = f"{marked[method]} {'bad' if value in _BAD else ''}".strip()
        number = (numbers or {}).get((heading, method), value)
        title = f"{method}, {heading}: {number}" if value else ""
        return {"text": value, "css": css, "title": title}

    grouped: list[tuple[str, list[Any]]] = []
    for heading, values in ((str(h), row) for h, row in shown.iterrows()):
        section = (sections or {}).get(heading, "")
        if not grouped or section != grouped[-1][0]:
            grouped.append((section, []))
        cells = [cell(heading, str(m), value) for m, value in values.items()]
        grouped[-1][1].append((heading, cells))
    columns = [{"name": name, "css": css} for name, css in marked.items()]
    return {"columns": columns, "sections": grouped}
