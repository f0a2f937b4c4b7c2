"""One self-contained page of a comparison: the table, the pictures, and how to read them."""

import base64
import html
import io
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ardvark.models import SHARED
from ardvark.validate import InputError, logger

from ..diagnostics import khat_limit

if TYPE_CHECKING:
    from .table import Comparison

_HEADINGS = {
    "kind": "kind",
    "status": "status",
    "draws": "draws",
    "rhat": "worst R-hat",
    "rhat_eta": "R-hat of eta",
    "ess_bulk": "bulk ESS",
    "ess_tail": "tail ESS",
    "divergences": "diverg.",
    "mcse_bits": "MC error of bits",
    "spread_bits": "chain spread of bits",
    "unmoved_bits": "bits never moved",
    "seconds_compile": "compile, s",
    "seconds_run": "run, s",
    "khat": "k-hat",
    **{f"error_{q}": f"error of {q}" for q in SHARED},
    **{f"sd_ratio_{q}": f"sd ratio of {q}" for q in SHARED},
    "features": "features",
    "samples": "samples",
    "accuracy": "accuracy",
    "log_score": "log score",
}

_WHOLE = (
    "draws", "divergences", "unmoved_bits", "features", "samples", "ess_bulk", "ess_tail",
)  # fmt: skip

_LEGEND = """
<dl>
<dt>kind</dt>
<dd><b>mcmc</b> is exact up to Monte Carlo error; an <b>approximation</b> replaces the posterior by
a simpler q, and its draws are drawn from q; a <b>search</b> or <b>point</b> is one state without a
spread; a <b>baseline</b> is a plain classifier.</dd>
<dt>R-hat, ESS, divergences</dt>
<dd>Whether the Markov chains can be believed: R-hat of eta below 1.01, hundreds of effective draws,
few divergent transitions. Blank for an approximation: independent draws always look perfect.</dd>
<dt>bits</dt>
<dd>Of binary masks: the largest Monte Carlo error of an inclusion probability, the largest distance
between one chain's and that of all, and the bits that had one value in every draw (R-hat and ESS
leave those out).</dd>
<dt>k-hat</dt>
<dd>Tail index of the ratios p / q at q's own draws. Above {limit:.2f}, q misses mass of the
posterior; below, it may still be wrong.</dd>
<dt>error of Q</dt>
<dd>Largest distance of a posterior mean from the reference's, in posterior standard deviations.
The reference's own row compares its two halves of chains: a noise floor. Of a binary feature mask:
the largest difference of inclusion probabilities.</dd>
<dt>sd ratio of Q</dt>
<dd>Median posterior standard deviation over the reference's: below 1 the method is
overconfident.</dd>
<dt>features, samples</dt>
<dd>Selected: posterior mean weight above 0.01 of the largest (samples: 0.001 in absolute
value); under a binary mask, on in more than half of the draws.</dd>
<dt>accuracy, log score</dt>
<dd>On the held-out samples, of the posterior predictive probability. Log score is the mean log
probability of the true class: 0 is perfect, -0.69 a coin.</dd>
</dl>
"""

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
"""


def table_text(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table as short strings, transposed: one column a method, blank where unknown."""
    shown = pd.DataFrame(index=list(_HEADINGS.values()), columns=table.index, dtype=object)
    for column, heading in _HEADINGS.items():
        for method in table.index:
            shown.loc[heading, method] = _text(column, table.loc[method, column])
    return shown[(shown != "").any(axis=1)] if len(shown.columns) else shown


def _text(column: str, value: Any) -> str:
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return ""
    if isinstance(value, str):
        return value
    if column in _WHOLE:
        return f"{value:.0f}"
    if column.startswith(("rhat", "mcse", "spread", "accuracy", "log_score")):
        return f"{value:.3f}"
    if column.startswith("seconds"):
        return f"{value:.1f}"
    return f"{value:.2f}"


def figures(comparison: "Comparison") -> dict[str, Any]:
    """Return the figures that can be drawn, by file name without ending."""
    drawn = {}
    for kind in ("forest", "eta"):
        try:
            drawn[kind] = comparison.plot(kind)
        except InputError as error:
            logger.info("no %s figure: %s", kind, error)
    return drawn


def write(comparison: "Comparison", path: str | os.PathLike[str], command: str = "") -> Path:
    """Write the page and return its path; nothing in it refers to another file."""
    problem = comparison.problem
    title = "Comparison of posteriors"
    if problem is not None:
        title = f"{problem.spec.title} on {problem.data.name}"
    parts = [f"<h1>{html.escape(title)}</h1>", f"<p>{_summary(comparison)}</p>"]
    parts.append(f'<div class="scroll">{_table(comparison)}</div>')
    parts += [f"<p><b>{html.escape(m)}</b>: {html.escape(r)}</p>" for m, r in _reasons(comparison)]
    for name, figure in figures(comparison).items():
        parts.append(f'<p><img alt="{name}" src="data:image/png;base64,{_png(figure)}"></p>')
    limit = khat_limit(_largest(comparison.table))
    parts += ["<h2>How to read the table</h2>", _LEGEND.format(limit=limit)]
    if problem is not None:
        parts += ["<h2>The problem</h2>", f"<pre>{html.escape(problem.describe())}</pre>"]
        parts += ["<h2>The model</h2>", f"<pre>{html.escape(problem.spec.doc.strip())}</pre>"]
    parts.append("<h2>How this was made</h2>")
    if command:
        parts.append(f"<pre>{html.escape(command)}</pre>")
    versions = next(iter(comparison.fits.values())).attrs.get("versions", "")
    parts.append(f"<p>Versions: {html.escape(str(versions))}</p>")
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}'
        f"</title><style>{_STYLE}</style></head><body>{''.join(parts)}</body></html>"
    )
    target = Path(path)
    target.write_text(page, encoding="utf-8")
    return target


def _largest(table: pd.DataFrame) -> int:
    draws = table["draws"].dropna()
    return int(draws.max()) if len(draws) else 1000


def _summary(comparison: "Comparison") -> str:
    """Return what the table says, in a sentence or two."""
    name, table = comparison.reference, comparison.table
    if name is None:
        return "No exact posterior among these fits, so no error is measured."
    state = "converged" if table.loc[name, "status"] == "ok" else "did not converge"
    text = f"Reference: <b>{html.escape(name)}</b>, which {state}."
    errors = {str(m): float(e) for m, e in table["error_eta"].dropna().items()}
    floor = errors.pop(name, None)
    if errors:
        best = min(errors, key=lambda m: errors[m])
        text += (
            f" Nearest to it in the decision values is <b>{html.escape(best)}</b>: largest "
            f"error {errors[best]:.2f} posterior standard deviations"
        )
        text += "." if floor is None else f" (noise floor {floor:.2f})."
    return text


def _reasons(comparison: "Comparison") -> list[tuple[str, str]]:
    found = comparison.table["reason"].dropna()
    return [(str(m), str(r)) for m, r in found.items() if r]


def _table(comparison: "Comparison") -> str:
    """Return the table with one column a method: all of it fits the width of a page."""
    shown = table_text(comparison.table)

    def css(method: Any, value: str = "") -> str:
        names = ["reference"] if method == comparison.reference else []
        names += ["bad"] if value in ("failed", "not_converged") else []
        return f' class="{" ".join(names)}"' if names else ""

    head = "".join(f"<th{css(m)}>{html.escape(str(m))}</th>" for m in shown.columns)
    rows = []
    for heading in shown.index:
        cells = "".join(
            f"<td{css(m, v)}>{html.escape(str(v))}</td>" for m, v in shown.loc[heading].items()
        )
        rows.append(f"<tr><th>{html.escape(str(heading))}</th>{cells}</tr>")
    return f"<table><thead><tr><th></th>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _png(figure: Any) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    return base64.b64encode(buffer.getvalue()).decode()
