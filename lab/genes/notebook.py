"""What the posteriors of notebook 10 say of the printed genes.

They are PFCVM's under the sparse default, on the same data, but with the samples as they are: the
paper standardises each sample first. Their files hold the `leading` genes with the largest
P(active), so of another gene it is only known that its P(active) is smaller.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import pandas as pd

from .declared import HERE, Gene

FOLDER = HERE.parents[1] / "notebooks"
SAME = {"colon": "colon", "golub": "golub", "allaml": "golub"}


@dataclass(frozen=True)
class Notebook:
    """The leading genes by name, and their groups."""

    genes: dict[str, dict[str, Any]]
    groups: dict[int, dict[str, Any]]

    @property
    def least(self) -> float:
        """P(active) of the last gene in the file."""
        return min(x["p_active"] for x in self.genes.values())

    def p(self, gene: Gene) -> float | None:
        """Return P(active) of a gene, None if it is not among the leading ones."""
        return self.genes[gene.gene]["p_active"] if gene.gene in self.genes else None

    def text(self, printed: Sequence[Gene]) -> list[str]:
        """Return what is found for the printed genes."""
        known = [g for g in printed if g.gene in self.genes]
        first = self.groups[0]
        inside = sum(self.genes[g.gene]["group"] == 0 for g in known)
        return [
            "PFCVM's exact posterior, samples as they are (that of `notebooks/10_genes.ipynb`): of "
            f"the {len(printed)} rows {len(known)} are among the {len(self.genes)} genes of "
            f"largest P(active). That of the others is below {self.least:.3f}.",
            f"The group that {first['leading']} leads there has {first['genes']} genes, {inside} "
            f"of them among these rows; that at least one is active has P {first['p_any']:.2f} "
            f"(prior {first['prior']:.2f}).",
        ]


@cache
def notebook(data: str) -> Notebook | None:
    """Return what the notebook's files hold of a data set, None if they do not have it."""
    if data not in SAME:
        return None
    genes, groups = (
        pd.read_csv(FOLDER / f"genes_{SAME[data]}{end}.csv", comment="#", index_col=0)
        for end in ("", "_groups")
    )
    return Notebook(genes.to_dict("index"), groups.to_dict("index"))
