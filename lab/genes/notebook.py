"""What the posteriors of notebook 10 say of the printed genes.

They are PFCVM's under the sparse default, on the same data, but with the samples as they are: the
paper standardises each sample first. Their files hold the `leading` genes with the largest
P(active), so of another gene it is only known that its P(active) is smaller.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

import pandas as pd

from .declared import HERE, Gene

FOLDER = HERE.parents[1] / "notebooks"
SAME = {"colon": "colon", "golub": "golub", "allaml": "golub"}


@dataclass(frozen=True)
class Notebook:
    """The leading genes by name."""

    genes: dict[str, dict[str, Any]]

    @property
    def least(self) -> float:
        """P(active) of the last gene in the file."""
        return min(x["p_active"] for x in self.genes.values())

    def p(self, gene: Gene) -> float | None:
        """Return P(active) of a gene, None if it is not among the leading ones."""
        return self.genes[gene.gene]["p_active"] if gene.gene in self.genes else None


@cache
def notebook(data: str) -> Notebook | None:
    """Return what the notebook's files hold of a data set, None if they do not have it."""
    if data not in SAME:
        return None
    path = FOLDER / f"genes_{SAME[data]}.csv"
    genes = pd.read_csv(path, comment="#", index_col=0)
    return Notebook(genes.to_dict("index"))
