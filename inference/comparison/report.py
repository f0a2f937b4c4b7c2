"""One self-contained page of a comparison: the table, the pictures, and how to read them."""

import base64
import html
import io
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from ardvark.models import Problem

from ..backend import finished
from ..diagnostics import khat_limit
from .columns import FLOOR, Column, groups, table_text
from .sensitivity import BASELINE, Sensitivity
from .sensitivity import COLUMNS as OF_SENSITIVITY
from .verdict import PURPOSES, Level, Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 1100px; margin: 2em auto; padding: 0 1em;
       color: #222; }
h1 { font-size: 1.6em; } h2 { margin-top: 2em; font-size: 1.2em; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.85em; }
th, td { padding: 0.35em 0.7em; border-bottom: 1px solid #ddd; text-align: right; }
thead th { white-space: nowrap; }
th:first-child { text-align: left; font-weight: 400; }
.reference { background: #f3f3f3; }
td.bad { color: #b00020; font-weight: 600; }
img { max-width: 100%; } pre { background: #f6f6f6; padding: 1em; overflow-x: auto; }
dt { font-weight: 600; margin-top: 0.5em; } dd { margin-left: 1.5em; }
.verdict { margin: 0.6em 0; } .verdict ul { margin: 0.2em 0 0.2em 1em; }
.badge { color: #fff; padding: 0.1em 0.5em; border-radius: 0.3em; font-weight: 600; }
.trust { background: #1b6e3a; } .care { background: #8a5a00; } .avoid { background: #b00020; }
.unknown { background: #555; }
"""

_BADGE: dict[Level, str] = {
    "trust": "trust",
    "with care": "care",
    "do not use": "avoid",
    "not judged": "unknown",
}
"""The class of a level: its colour, beside its word."""


def page(
    table: pd.DataFrame,
    figures: "Mapping[str, Figure]",
    selection: Mapping[str, str] | None = None,
    *,
    verdicts: Mapping[str, Verdict] | None = None,
    distances: pd.DataFrame | None = None,
    reference: str | None = None,
    problem: Problem | None = None,
    sensitivity: Sensitivity | None = None,
    command: str = "",
    versions: str = "",
) -> str:
    """Return the page of a comparison; nothing in it refers to another file.

    Parameters
    ----------
    table : pandas.DataFrame
        `Comparison.table`.
    figures : dict of matplotlib Figure
        Shown below it, by name.
    selection : dict of str, optional
        Which features each method says are active, in words (`selection_text`).
    verdicts : dict of Verdict, optional
        What each fit may be used for: the first section.
    distances : pandas.DataFrame, optional
        `Comparison.distances`, folded.
    reference : str, optional
        The row the errors are measured against.
    problem : Problem, optional
        Adds a title, the hyperparameters and the model's program.
    sensitivity : Sensitivity, optional
        Adds what moves with the prior.
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
    parts = [f"<h1>{html.escape(title)}</h1>"]
    if verdicts:
        parts += ["<h2>What each fit may be used for</h2>", _verdicts(verdicts)]
    parts.append(f"<p>{_summary(table, reference)}</p>")
    parts.append(f'<div class="scroll">{_table(table_text(table), reference)}</div>')
    parts += [
        f"<p><b>{html.escape(str(method))}</b>: {html.escape(str(reason))}</p>"
        for method, reason in table["reason"].dropna().items()
        if reason
    ]
    if selection:
        entries = (
            f"<dt>{html.escape(m)}</dt><dd>{html.escape(words)}</dd>"
            for m, words in selection.items()
        )
        parts += ["<h2>Which features matter</h2>", f"<dl>{''.join(entries)}</dl>"]
    for name, figure in figures.items():
        parts.append(f'<p><img alt="{name}" src="data:image/png;base64,{_png(figure)}"></p>')
    if distances is not None and len(distances):
        parts.append(_distances(distances))
    if sensitivity is not None:
        parts += _sensitivity(sensitivity)
    parts += ["<h2>How to read the table</h2>", _legend(), _khat_limit(table)]
    if problem is not None:
        parts += ["<h2>The problem</h2>", f"<pre>{html.escape(problem.describe())}</pre>"]
        parts += ["<h2>The model</h2>", f"<pre>{html.escape(problem.spec.doc.strip())}</pre>"]
    parts.append("<h2>How this was made</h2>")
    if command:
        parts.append(f"<pre>{html.escape(command)}</pre>")
    parts.append(f"<p>Versions: {html.escape(versions)}</p>")
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}'
        f"</title><style>{_STYLE}</style></head><body>{''.join(parts)}</body></html>"
    )


def short(
    title: str, verdicts: Mapping[str, Verdict], table: pd.DataFrame, reference: str | None
) -> str:
    """Return a comparison as a notebook shows it: verdicts, and the table folded below."""
    shown = _table(table_text(table), reference)
    return (
        f"<style>{_STYLE}</style><p><b>{html.escape(title)}</b></p>{_verdicts(verdicts)}"
        f"<details><summary>Table</summary>{shown}</details>"
    )


def _verdicts(verdicts: Mapping[str, Verdict]) -> str:
    """Return each fit's verdict: its level as a word and a colour, a sentence, reasons folded."""
    parts = []
    for name, verdict in verdicts.items():
        badge = f'<span class="badge {_BADGE[verdict.level]}">{verdict.level}</span>'
        sentence = html.escape(verdict.beside_level)
        text = f"<b>{html.escape(name)}</b> {badge} {sentence[:1].upper()}{sentence[1:]}"
        words = "; ".join(f"{p}: {verdict.words[p]}" for p in PURPOSES)
        lines = [*verdict.reasons, *(f"Remedy: {remedy}" for remedy in verdict.remedies)]
        items = "".join(f"<li>{html.escape(line)}</li>" for line in [words, *lines])
        parts.append(
            f'<div class="verdict">{text}<details><summary>Why</summary><ul>{items}</ul>'
            "</details></div>"
        )
    return "".join(parts)


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
    shown = shown.fillna("").set_axis([" ".join(pair) for pair in shown.index])
    return (
        "<details><summary>Every distance from the reference, with its noise floor</summary>"
        f'<div class="scroll">{_table(shown, None)}</div><p>In brackets: how far a second run of '
        "the reference, with as many draws as the method, would be from a perfect score at most, "
        f"in 19 of 20 runs (of a ratio, its logarithm). Inside that the cell says "
        f"{FLOOR!r}.</p></details>"
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
        f'<div class="scroll">{shown}</div>',
        "<p>Each column is a refit with one hyperparameter halved or doubled, compared with the "
        "first; changes in the first are those between halves of its chains: a noise floor.</p>",
        _legend(OF_SENSITIVITY),
    ]
    if found.power_text():
        power = found.power.drop(columns="diagnosis").T.map(lambda x: f"{x:.2f}")
        parts += [
            f"<p>{html.escape(found.power_text())}</p>",
            f'<div class="scroll">{_table(power, None)}</div>',
            "<p>Distance between the posteriors of a quantity per doubling of the power of prior "
            "or likelihood (cumulative Jensen-Shannon), and k-hat of the importance weights. A "
            "doubled power of a sparse prior is a far larger step than a doubled number of active "
            "weights: read it for which part of the prior counts.</p>",
        ]
    return parts


def _legend(columns: Sequence[Column] | None = None) -> str:
    """Return what the printed columns mean, those that are read together in one entry."""
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
        return "No exact posterior among these fits, so no error is measured."
    state = "converged" if finished(str(table.loc[reference, "status"])) else "did not converge"
    text = f"Reference: <b>{html.escape(reference)}</b>, which {state}."
    errors = {str(m): float(e) for m, e in table["error_eta"].dropna().items()}
    floor = errors.pop(reference, None)
    if errors:
        best = min(errors, key=lambda m: errors[m])
        text += (
            f" Nearest to it in the decision values is <b>{html.escape(best)}</b>: largest "
            f"error {errors[best]:.2f} posterior standard deviations"
        )
        text += "." if floor is None else f" (noise floor {floor:.2f})."
    return text


def _table(shown: pd.DataFrame, reference: str | None) -> str:
    """Return a table of strings with one column a method: all of it fits the width of a page."""

    def css(method: str, value: str = "") -> str:
        names = ["reference"] if method == reference else []
        bad = ("failed", "not_converged", "not possible", "do not use")
        names += ["bad"] if value in bad else []
        return f' class="{" ".join(names)}"' if names else ""

    head = "".join(f"<th{css(str(m))}>{html.escape(str(m))}</th>" for m in shown.columns)
    rows = []
    for heading, values in shown.iterrows():
        cells = "".join(f"<td{css(str(m), v)}>{html.escape(v)}</td>" for m, v in values.items())
        rows.append(f"<tr><th>{html.escape(str(heading))}</th>{cells}</tr>")
    return f"<table><thead><tr><th></th>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _png(figure: "Figure") -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    return base64.b64encode(buffer.getvalue()).decode()
