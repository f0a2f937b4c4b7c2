"""Which rows of a paper are set beside each other, fold by fold, and by how much they differ."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from lab.papers.results import REFERENCE, Pair, Result

FILE = "differences.csv"
CLEAR = 2.0  # a difference counts as clear from so many of its +-
SELECTORS = ("filter", "l1", "pfcvm", "jcfo", "rfvm")


@dataclass(frozen=True, kw_only=True)
class Paper:
    """The rows that its page is about.

    measure : the printed figure, "accuracy" or "f1". algorithm : the row of the paper's algorithm
    as near to the print as it runs. exact : that of the exact posterior under the default prior.
    same : an exact row, and that of the algorithm under the same prior. others : further pairs;
    "rfvm_vb@300" is the state of a path at step 300.
    """

    measure: str
    algorithm: str
    exact: str
    same: tuple[str, str]
    others: tuple[tuple[str, str], ...] = ()

    @property
    def pairs(self) -> dict[tuple[str, str], None]:
        """Return all pairs, each once."""
        of_print = [(self.exact, self.algorithm), (self.algorithm, REFERENCE)]
        every = [self.same, *self.others, *of_print, (self.exact, REFERENCE)]
        return dict.fromkeys(every)


PAPERS = {
    "PFCVM": Paper(
        measure="accuracy", algorithm="pfcvm_lp", exact="exact", same=("exact", "pfcvm_lp-model"),
        others=(
            ("exact-dense", "pfcvm_lp-dense"), ("exact-dense", "exact"), ("exact", "pcvm"),
            *((f"select-{x}-outside", f"select-{x}-inside") for x in SELECTORS),
        ),
    ),
    "JCFO": Paper(
        measure="accuracy", algorithm="jcfo-printed", exact="exact",
        same=("exact-chosen", "jcfo-one"),
        others=(
            ("sparse_probit-exact", "sparse_probit-filled"), ("jcfo-one", "jcfo-printed"),
            ("jcfo-one", REFERENCE), ("jcfo-open", "jcfo-one"), ("jcfo-open", REFERENCE),
        ),
    ),
    "RFVM": Paper(
        measure="accuracy", algorithm="rfvm_vb-elbo", exact="exact",
        same=("exact", "rfvm_vb-model"),
        others=(
            ("exact-dense", "rfvm_vb-dense"), ("exact-dense", "exact"),
            ("rfvm_vb@300", "rfvm_vb@20000"), ("rfvm_vb-truncated", "rfvm_vb"),
        ),
    ),
    "FSKLR": Paper(
        measure="f1", algorithm="fsklr-printed", exact="fsklr-exact",
        same=("fsklr-exact", "fsklr"),
        others=(
            ("fsklr-exact-printed", "fsklr-printed"), ("sklr-exact", "sklr"),
            ("fsklr-printed", "fsklr"), ("fsklr-printed", "fsklr-literal"),
            ("fsklr-printed", "rbf_svm"), ("fsklr-matched", "l1_logistic-matched"),
        ),
    ),
}  # fmt: skip
"""By paper, as in `Group.paper`."""


def write(out: Path, found: Mapping[str, Result]) -> None:
    """Write the differences of stored rows."""
    file = out / FILE
    differences(found).to_csv(file, index=False, float_format="%.5g", lineterminator="\n")


def differences(found: Mapping[str, Result]) -> pd.DataFrame:
    """Return first minus second of each pair on each data set, with its +-, by fold.

    Of the measure and of the log score, and whether every fold of both converged. Rows without all
    their folds, and those of which most fits collapsed, have none.
    """
    lines = []
    groups = {r.group.name: r.group for r in found.values()}
    for group in groups.values():
        paper = PAPERS[group.paper]
        for first, second in paper.pairs:
            a, b = (_whole(found, f"{group.name}/{label}") for label in (first, second))
            if a is None or b is None:
                continue
            line: dict[str, str | float] = {
                "paper": group.paper,
                "data": group.data,
                "first": first,
                "second": second,
            }
            for column, of in (("measure", paper.measure), ("log_score", "log_score")):
                pair: Pair | None = a.beside(b, of)
                if pair is not None:
                    line |= {column: pair[0], f"{column}_error": pair[1]}
            lines.append(line | {"converged": all(r.finished == len(r.lines) for r in (a, b))})
    return pd.DataFrame(lines)


def _whole(found: Mapping[str, Result], name: str) -> Result | None:
    """Return a row, or a step of its path, if it has all folds and most did not collapse."""
    label, _, step = name.partition("@")
    r = found.get(label)
    if r is not None and step:
        r = r.at(step)
    return r if r is not None and r.whole and not r.collapsed else None
