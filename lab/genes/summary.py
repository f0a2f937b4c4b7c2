"""What the stored files say of the genes of a printed table, in numbers.

The posterior beside every table is PFCVM's under the sparse default prior, and under four changes
of it; where the paper's own model is another one, its posterior stands beside that. The data
"speak for" a gene, or for a group, if they raise the odds that it is active at least `FACTOR`
times, two Monte Carlo errors subtracted. PFCVM's prior uses the labels, so this ratio is not a
Bayes factor of the labels.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from lab.lines import read

from .declared import AS_IT_IS, Fit, Folds, Gene, Table

FACTOR = 3.0
SELECTED = 0.5
MODELS = {"jcfo": "JCFO", "sparse_probit": "Sparse probit", "rfvm": "RFVM", "pfcvm": "PFCVM"}
_TEXT = {"fit", "gene", "row", "status", "reason", "weights", "identity", "commit", "sampler",
         "leading"}  # fmt: skip


@dataclass(frozen=True)
class Stored:
    """The rows of the files, numbers as numbers; fits by name, genes by fit and name.

    names : names of unprinted genes, by data set and column number.
    """

    fits: dict[str, dict[str, Any]]
    genes: dict[tuple[str, str], dict[str, Any]]
    folds: pd.DataFrame
    names: dict[tuple[str, int], str] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: Path) -> "Stored":
        """Return what a folder holds."""
        fits, genes, folds = (_frame(folder / f"{n}.csv") for n in ("fits", "posterior", "folds"))
        return cls(
            {x["fit"]: x for x in fits.to_dict("records")},
            {(x["fit"], x["gene"]): x for x in genes.to_dict("records")},
            folds,
            {(x["data"], int(x["number"])): x["gene"] for x in read(folder / "names.csv")},
        )

    def has(self, fit: Fit) -> bool:
        """Whether a posterior has been sampled."""
        return fit.name in self.fits

    def fit(self, fit: Fit) -> dict[str, Any]:
        """Return the row of a posterior."""
        return self.fits[fit.name]

    def gene(self, fit: Fit, gene: Gene) -> dict[str, Any]:
        """Return what a posterior says of a gene."""
        return self.genes[fit.name, gene.gene]

    def of_folds(self, folds: Folds) -> pd.DataFrame:
        """Return the folds of a row that have been computed."""
        return self.folds[self.folds["row"] == folds.row] if len(self.folds) else self.folds


def _frame(path: Path) -> pd.DataFrame:
    frame = pd.DataFrame(read(path))
    for name in frame.columns:
        if name not in _TEXT:
            frame[name] = pd.to_numeric(frame[name])
    return frame


# --- a gene ---------------------------------------------------------------------------------------


def sparse(table: Table) -> tuple[Fit, ...]:
    """Return the posteriors whose prior is halved and doubled; the first is the default's."""
    return tuple(fit for fit in table.fits if fit.model == "pfcvm")


def beside(table: Table) -> tuple[Fit, ...]:
    """Return the default posteriors of the other models."""
    return tuple(f for f in table.fits if f.model != "pfcvm" and f.change == AS_IT_IS)


def vacuous(row: dict[str, Any]) -> bool:
    """Whether a posterior says nothing, because its prior already rules out active genes."""
    return bool(row["p_leading"] == 0.0 and row["prior_active"] == 0.0)


def telling(stored: Stored, table: Table) -> list[Fit]:
    """Return the sampled posteriors of other models that say something."""
    return [fit for fit in done(stored, beside(table)) if not vacuous(stored.fit(fit))]


def raised(p: float, error: float, prior: float) -> float:
    """Return how many times the odds were raised, two errors subtracted; 0 if never active."""
    if math.isnan(error):
        return 0.0
    low = max(p - 2.0 * error, 0.0)
    return low / (1.0 - low) / (prior / (1.0 - prior)) if prior > 0.0 else float("inf")


def times(stored: Stored, fit: Fit, gene: Gene, group: bool = False) -> float:
    """Return how many times the data raise the odds of a gene, or of its group."""
    x, end = stored.gene(fit, gene), "_group" if group else ""
    return raised(x[f"p{end}"], x[f"mcse{end}"], x[f"prior{end}"])


def spoken_for(stored: Stored, fit: Fit, gene: Gene, group: bool = False) -> bool:
    """Whether the data speak for a gene, or for its group."""
    return times(stored, fit, gene, group) >= FACTOR


def weights(text: Any) -> dict[int, float]:
    """Return the genes of a fold with their weights, by column number, the largest first."""
    pairs = (pair.split(":") for pair in str(text).split()) if isinstance(text, str) else ()
    return {int(number): float(weight) for number, weight in pairs}


def frequency(stored: Stored, table: Table, folds: Folds, gene: Gene) -> float:
    """Return the share of the folds that select a gene; NaN if none has been computed."""
    rows = [list(weights(x)) for x in stored.of_folds(folds).get("weights", ())]
    kept = [gene.number in (row[: table.top] if table.top else row) for row in rows]
    return sum(kept) / len(kept) if kept else float("nan")


def mean_weight(stored: Stored, folds: Folds, gene: Gene) -> float:
    """Return the mean weight of a gene over the folds, 0 where it was not kept."""
    rows = [weights(x) for x in stored.of_folds(folds).get("weights", ())]
    return sum(row.get(gene.number, 0.0) for row in rows) / len(rows) if rows else float("nan")


def done(stored: Stored, fits: Iterable[Fit]) -> list[Fit]:
    """Return the posteriors that have been sampled."""
    return [fit for fit in fits if stored.has(fit)]
