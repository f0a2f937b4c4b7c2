"""The report: one self-contained page with verdicts, figures, the table and how to read them."""

import html
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ardvark.models import Problem

from ..fits.diagnostics import khat_limit
from ..refits.sensitivity import BASELINE, Sensitivity
from ..refits.sensitivity import COLUMNS as OF_SENSITIVITY
from ..scoring.columns import FLOOR, Column, groups, table_text
from ..scoring.distances import rows as rows_of
from ..scoring.statistics import STATISTICS
from ..verdicts.verdict import Verdict
from ..verdicts.words import Level
from .figures import FIGURES, Kind
from .look import Picture
from .styles import PAGE, SHORT

_BADGE: dict[Level, str] = {
    "trust": "trust",
    "converged": "converged",
    "with care": "care",
    "do not use": "avoid",
    "not judged": "unknown",
}
"""The class of a level: its colour, beside its word."""
_NARROW = 4  # methods in a table of which three fit side by side on paper
_RULES = (
    "P(active), and which rules select the feature. P &gt; 0.5: the feature is active in more than "
    "half of the draws. FDR 10 %: it is on the longest list, in the order of P(active), of which "
    "at most one in ten is expected to be inactive. own: the rule in the method's paper. To see "
    "how stable a set is when the data change, use <code>ardvark.stability</code>."
)


def page(
    table: pd.DataFrame,
    pictures: Mapping[Kind, Picture],
    selection: Mapping[str, str] | None = None,
    *,
    verdicts: Mapping[str, Verdict] | None = None,
    distances: pd.DataFrame | None = None,
    reference: str | None = None,
    problem: Problem | None = None,
    sensitivity: Sensitivity | None = None,
    sets: pd.DataFrame | None = None,
    remarks: Sequence[str] = (),
    command: str = "",
    versions: str = "",
) -> str:
    """Return the page of a comparison; nothing in it refers to another file.

    Parameters
    ----------
    table : pandas.DataFrame
        `Comparison.table`.
    pictures : dict of Picture
        Shown above the table, by kind.
    selection : dict of str, optional
        Which features each method says are active, in words (`selection_text`).
    verdicts : dict of Verdict, optional
        What each fit may be used for; the first section.
    distances : DataFrame, optional
        `Comparison.distances`: every distance, folded, and the noise floors in the table.
    reference : str, optional
        The row the errors are measured against.
    problem : Problem, optional
        Adds a title, the hyperparameters and the model's program.
    sensitivity : Sensitivity, optional
        Adds what changes with the prior.
    sets : pandas.DataFrame, optional
        What each rule selects (`selected.beside`), folded.
    remarks : sequence of str
        Remarks on the data, shown first.
    command, versions : str
        How it was made.

    Returns
    -------
    str
        HTML.
    """
    title = "Comparison of posteriors"
    if problem is not None:
        title = f"{problem.spec.title} on {problem.data.name}"
    parts = [f"<h1>{html.escape(title)}</h1>", f"<p>{_summary(table, reference)}</p>"]
    parts += [f"<p><b>{html.escape(remark)}</b></p>" for remark in remarks]
    if verdicts:
        parts += ["<h2>What each fit may be used for</h2>", _verdicts(verdicts)]
    if pictures:
        parts.append("<h2>Figures</h2>")
        of = "" if problem is None else f"{problem.spec.name} on {problem.data.name}: "
        shown = "".join(_figure(kind, picture, of) for kind, picture in pictures.items())
        parts.append(f'<div class="figures">{shown}</div>')
    parts += ["<h2>Scorecard</h2>", _scorecard(table, reference, distances)]
    parts += [
        f"<p><b>{html.escape(str(method))}</b>: {html.escape(str(reason))}</p>"
        for method, reason in table["reason"].dropna().items()
        if reason
    ]
    parts.append(_folded("How to read the table", _legend() + _khat_limit(table)))
    if distances is not None and len(distances):
        parts.append(_distances(distances))
    if selection:
        entries = (
            f"<dt>{html.escape(m)}</dt><dd>{html.escape(words)}</dd>"
            for m, words in selection.items()
        )
        parts += ["<h2>Which features matter</h2>", f"<dl>{''.join(entries)}</dl>"]
    if sets is not None and len(sets):
        parts.append(_folded("What each rule selects", f"{_table(sets, reference)}<p>{_RULES}</p>"))
    if sensitivity is not None:
        parts += _sensitivity(sensitivity)
    if problem is not None:
        parts += ["<h2>The problem</h2>", f"<pre>{html.escape(problem.describe())}</pre>"]
        parts.append(_folded("The model", f"<pre>{html.escape(problem.spec.doc.strip())}</pre>"))
    made = f"<pre>{html.escape(command)}</pre>" if command else ""
    made += f"<p>Versions: {html.escape(versions)}</p>"
    parts.append(_folded("How this was made", made))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{html.escape(title)}</title><style>{SHORT}{PAGE}</style></head>"
        f'<body class="ardvark">{"".join(parts)}</body></html>'
    )


def short(
    title: str, verdicts: Mapping[str, Verdict], table: pd.DataFrame, reference: str | None
) -> str:
    """Return a comparison for a notebook: the verdicts, with the table folded below them."""
    shown = _folded("Table", _scorecard(table, reference))
    return (
        f'<style>{SHORT}</style><div class="ardvark"><p><b>{html.escape(title)}</b></p>'
        f"{_verdicts(verdicts)}{shown}</div>"
    )


def _folded(title: str, content: str) -> str:
    return f"<details><summary>{html.escape(title)}</summary>{content}</details>"


def _figure(kind: Kind, picture: Picture, of: str) -> str:
    """Return a figure with what it shows, how to read it, and values under the pointer."""
    with picture.untitled() as title:
        places, png = picture.places(), picture.png()
        finding = title.removeprefix(of)  # the page is of one problem
        heading = html.escape(finding[:1].upper() + finding[1:])
    width, height = picture.figure.get_size_inches()
    tall = 1000.0 * height / width
    spots = [
        f'<circle cx="{1000 * x:.0f}" cy="{tall * y:.0f}" r="8"><title>{html.escape(text)}</title>'
        "</circle>"
        for x, y, text in reversed(places)  # the first lies on top
    ]
    over = f'<svg viewBox="0 0 1000 {tall:.0f}" aria-hidden="true">{"".join(spots)}</svg>'
    return (
        f'<figure id="{kind}"><h3>{heading}</h3><div class="scroll"><div class="picture">'
        f'<img alt="{html.escape(picture.alt)}" src="data:image/png;base64,{png}">'
        f"{over if spots else ''}</div></div>"
        f"<figcaption>{html.escape(FIGURES[kind].reading)}</figcaption></figure>"
    )


def _verdicts(verdicts: Mapping[str, Verdict]) -> str:
    """Return each fit's verdict: its level as a word and a colour, a sentence, reasons folded."""
    parts = []
    for name, verdict in verdicts.items():
        badge = f'<span class="badge {_BADGE[verdict.level]}">{verdict.level}</span>'
        sentence = html.escape(verdict.beside_level)
        text = f"<b>{html.escape(name)}</b> {badge} {sentence[:1].upper()}{sentence[1:]}"
        words = "; ".join(f"{purpose}: {word}" for purpose, word in verdict.words.items())
        if verdict.model:
            text += f'<br><span class="model">Model: {html.escape(verdict.model)}</span>'
        lines = [*verdict.reasons, *(f"Remedy: {remedy}" for remedy in verdict.remedies)]
        items = "".join(f"<li>{html.escape(line)}</li>" for line in [words, *lines])
        parts.append(
            f'<div class="verdict">{text}<details><summary>Why</summary><ul>{items}</ul>'
            "</details></div>"
        )
    return f'<div class="verdicts">{"".join(parts)}</div>'


def _distances(found: pd.DataFrame) -> str:
    """Return every distance beside its noise floor, one column a method, folded."""
    cells = found.assign(text=[_cell(row) for row in found.to_dict("records")])
    shown = cells.pivot_table(
        index=["quantity", "statistic"],
        columns="method",
        values="text",
        aggfunc="first",
        sort=False,
    )
    quantities = found["quantity"].unique()
    order = [(q, s) for q in quantities for s in STATISTICS if (q, s) in shown.index]
    shown = shown.fillna("").loc[order].set_axis([" ".join(pair) for pair in order])
    css = "long" if len(shown.columns) <= _NARROW else "long wide"
    return _folded(
        "Every distance from the reference, with its noise floor",
        f'<div class="{css}">{_table(shown, None)}</div><p>In brackets is the noise floor: 19 of '
        "20 reruns of the reference, with as many draws as the method, would be no farther from a "
        "perfect score (for a ratio, on the log scale). A distance within its noise floor is "
        f"marked {FLOOR!r}.</p>",
    )


def _cell(row: Mapping[Any, Any]) -> str:
    if pd.isna(row["value"]):
        return ""
    value = f"{row['value']:.3g}"
    if pd.isna(row["floor"]):
        return value
    return f"{value} {FLOOR}" if row["inside"] else f"{value} ({row['floor']:.2g})"


def _sensitivity(found: Sensitivity) -> list[str]:
    """Return the section on the prior: words, table, legend, power scaling."""
    shown = _table(table_text(found.table, OF_SENSITIVITY), BASELINE)
    parts = [
        "<h2>Prior sensitivity</h2>",
        f"<p>{html.escape(found.text())}</p>",
        shown,
        "<p>Each column is a refit with one hyperparameter halved or doubled, compared with the "
        "first column. Changes in the first column are those between the two halves of its chains, "
        "and serve as a noise floor.</p>",
        _legend(OF_SENSITIVITY),
    ]
    if found.power_text():
        power = found.power.drop(columns="diagnosis").T.map(lambda x: f"{x:.2f}")
        parts += [
            f"<p>{html.escape(found.power_text())}</p>",
            _table(power, None),
            "<p>How far the posterior of each quantity moves when the power of the prior or of the "
            "likelihood is doubled (cumulative Jensen-Shannon distance), and k-hat of the "
            "importance weights. Doubling the power of a sparse prior is a far larger step than "
            "doubling the number of active weights. Use it to see which part of the prior "
            "matters.</p>",
        ]
    return parts


def _legend(columns: Sequence[Column] | None = None) -> str:
    """Return the meanings of the printed columns; those read together share an entry."""
    entries = []
    for meaning, together in groups(columns).items():
        headings = "; ".join(c.heading for c in together if c.heading)
        if headings:
            text = re.sub("`(.+?)`", r"<b>\1</b>", html.escape(meaning))
            entries.append(f"<dt>{html.escape(headings)}</dt><dd>{text}</dd>")
    return f"<dl>{''.join(entries)}</dl>"


def _khat_limit(table: pd.DataFrame) -> str:
    draws = table["draws"].dropna()
    largest = int(draws.max()) if len(draws) else 1000
    return f"<p>With {largest} draws the limit of k-hat is {khat_limit(largest):.2f}.</p>"


def _summary(table: pd.DataFrame, reference: str | None) -> str:
    """Return what the table says, in a sentence or two."""
    if reference is None:
        return "None of these fits is an exact posterior, so no error can be measured."
    state = "converged" if table.loc[reference, "status"] == "finished" else "did not converge"
    text = f"Reference: <b>{html.escape(reference)}</b>, which {state}."
    errors = {str(m): float(e) for m, e in table["error_eta"].dropna().items()}
    floor = errors.pop(reference, None)
    avoid = set(table.index[table["verdict"] == "do not use"]) if "verdict" in table else set()
    errors = {method: e for method, e in errors.items() if method not in avoid}
    if errors:
        best = min(errors, key=lambda m: errors[m])
        text += (
            f" The closest to it in the decision values is <b>{html.escape(best)}</b>, whose "
            f"largest error is {errors[best]:.2f} posterior standard deviations"
        )
        text += "." if floor is None else f" (noise floor {floor:.2f})."
    return text


def _scorecard(
    table: pd.DataFrame, reference: str | None, distances: pd.DataFrame | None = None
) -> str:
    """Return the table in groups, each distance with its noise floor, numbers under the pointer."""
    shown = table_text(table)
    columns = {c.heading: c for together in groups().values() for c in together if c.heading}
    sections = [columns[heading].section if heading in columns else "" for heading in shown.index]
    floors = {}
    for d in [] if distances is None else rows_of(distances):
        statistic = STATISTICS[d.statistic]
        if noise := statistic.floor_text(d.floor):
            floors[d.method, statistic.column(d.quantity)] = f"({noise})"
    return _table(
        shown,
        reference,
        sections,
        lambda heading, method: _told(columns.get(heading), table, method),
        lambda heading, method: floors.get((method, getattr(columns.get(heading), "name", "")), ""),
    )


def _told(column: Column | None, table: pd.DataFrame, method: str) -> str:
    """Return the number in a cell with more digits than are printed, "" if it is a word."""
    value = None if column is None else table[column.name].get(method)
    number = isinstance(value, (int, float, np.number)) and not np.isnan(value)
    return f"{value:.6g}" if number else ""


def _table(
    shown: pd.DataFrame,
    reference: str | None,
    sections: Sequence[str] = (),
    told: Callable[[str, str], str] = lambda heading, method: "",
    beside: Callable[[str, str], str] = lambda heading, method: "",
) -> str:
    """Return a table of strings with one column per method, which scrolls if it does not fit.

    `sections` names the group of each row. `told` and `beside` take a row and a column; they return
    the text shown when the pointer is over the cell, and the small print in the cell.
    """

    def css(method: str, value: str = "") -> str:
        names = ["reference"] if method == reference else []
        bad = ("failed", "not_converged", "not possible", "do not use")
        names += ["bad"] if value in bad else []
        return f' class="{" ".join(names)}"' if names else ""

    def cell(heading: str, method: str, value: str) -> str:
        number, small = told(heading, method) or value, beside(heading, method)
        title = ""
        if value:
            words = f"{method}, {heading}: {number}" + (f", noise {small}" if small else "")
            title = f' title="{html.escape(words)}"'
        print_small = f" <small>{html.escape(small)}</small>" if small and value != FLOOR else ""
        return f"<td{css(method, value)}{title}>{html.escape(value)}{print_small}</td>"

    head = "".join(
        f'<th scope="col"{css(str(m))}>{html.escape(str(m))}</th>' for m in shown.columns
    )
    rows, before = [], ""
    for i, (heading, values) in enumerate(shown.iterrows()):
        if sections and sections[i] != before:
            before = sections[i]
            across = len(shown.columns)
            rows.append(
                f'</tbody><tbody><tr><th scope="rowgroup" colspan="{across + 1}">'
                f"{html.escape(before)}</th></tr>"
            )
        cells = "".join(cell(str(heading), str(m), v) for m, v in values.items())
        rows.append(f'<tr><th scope="row">{html.escape(str(heading))}</th>{cells}</tr>')
    body = f"<tbody>{''.join(rows)}</tbody>".replace("<tbody></tbody>", "")
    return (
        f'<div class="scroll" tabindex="0"><table><thead><tr><td></td>{head}</tr></thead>{body}'
        "</table></div>"
    )
