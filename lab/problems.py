"""The problems of the laboratory: those of `av.problem`, with the scale of the papers' priors.

JCFO and sparse probit learn the scale of their weights by default. Their papers have a fixed one,
so has every record here, and the papers' algorithms need it. Rows do not name it, and "default" on
a page is the fixed scale.
"""

from typing import Any

import ardvark as av

PAPERS = {model: {"scale": "fixed"} for model in ("jcfo", "sparse_probit")}


def problem(model: str, *data: Any, **hypers: Any) -> av.Problem:
    """Return the problem of a row: a scale is learned only where the row says so."""
    return av.problem(model, *data, **PAPERS.get(model, {}) | hypers)
