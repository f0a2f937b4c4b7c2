"""PFCVM's own tests on printed tables and on ours: Friedman's test with (20), and kappa.

    python -m lab.papers.ranks

Nothing is fitted: ranks are of the means in rows.csv, kappa of the left-out samples of table 6, and
two tables of PFCVM's page are filled. The critical difference (20) is Bonferroni and Dunn's, that
of one method beside the others. Data sets of the same subjects are one: of RFVM's, allaml is left
out beside leukemia_discrete.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from lab import tables
from lab.findings import patients

HERE = Path(__file__).parents[1] / "paper_check"
LEVEL = 0.05
FAMILIES = {
    ("FS-SKLR, tables 2 and 3", "fsklr", "f1"): {
        "FS-SKLR": "fsklr-printed", "SKLR": "sklr", "FS-SKR": "fs_skr", "L1": "l1_logistic",
        "SVM": "rbf_svm",
    },
    ("RFVM, table 3", "rfvm", "accuracy"): {
        "RFVM": "rfvm_vb-elbo", "PFCVM": "pfcvm_lp", "XOLON": "xolon", "SRVM": "srvm",
        "L1-SVM": "l1_svm", "elastic net": "elastic_net",
    },
}  # fmt: skip
"""The rows that are ranked, the paper's own method first: by table, its start, and the measure."""
OF_KAPPA = ("pfcvm_lp", "pcvm", "rvm", "linear_svm", "l1_logistic", "exact")


class Ranks(NamedTuple):
    """Average ranks, 1 the best; the p of Friedman's test; the critical difference (20)."""

    ranks: pd.Series
    p: float
    critical: float

    def beyond(self, sign: int) -> list[str]:
        """Return what is behind the first method (1), or ahead of it (-1), by more than (20)."""
        apart = sign * (self.ranks - self.ranks.iloc[0])
        return list(apart.index[apart > self.critical])


def friedman(scores: pd.DataFrame) -> Ranks:
    """Return the ranks of the columns of scores (N data sets, methods); larger scores are better.

    Reference
    ---------
    Demsar (2006), Journal of Machine Learning Research 7, 1-30.
    """
    N, p = scores.shape
    ranks = scores.rank(axis=1, ascending=False).mean()
    q = stats.norm.isf(LEVEL / 2.0 / (p - 1))
    test = stats.friedmanchisquare(*scores.to_numpy().T)
    return Ranks(ranks, float(test.pvalue), float(q * np.sqrt(p * (p + 1) / (6.0 * N))))


def kappa(label: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Return Cohen's kappa of labels (N,) and the truth (N,), and half of its 95 % interval."""
    n, right = len(y), float((label == y).mean())
    chance = float(label.mean() * y.mean() + (1 - label.mean()) * (1 - y.mean()))
    half = 1.96 * np.sqrt(right * (1.0 - right) / n) / (1.0 - chance)
    return (right - chance) / (1.0 - chance), float(half)


def scores(start: str, measure: str, rows: dict[str, str], printed: bool) -> pd.DataFrame:
    """Return the figures (data sets, methods) of a paper's tables, where each method has one."""
    frame = pd.read_csv(HERE / "rows.csv", dtype={"step": str}).query("step.isna()")
    frame = frame[frame["table"].str.startswith(start) & (frame["data"] != "allaml")]
    column = f"printed_{measure}" if printed else measure
    wide = frame.pivot_table(column, "data", "row")
    found = wide[list(rows.values())].dropna()
    return found.set_axis(list(rows), axis=1)


def ranked() -> pd.DataFrame:
    """Return a line a paper, by its printed figures and by ours."""
    lines = []
    for (name, start, measure), rows in FAMILIES.items():
        for printed in (True, False):
            found = scores(start, measure, rows, printed)
            test = friedman(found)
            order = test.ranks.sort_values(kind="stable")
            lines.append({
                "table": name,
                "figures": "printed" if printed else "ours",
                "data sets": len(found),
                "average ranks": ", ".join(f"{m} {r:.2f}" for m, r in order.items()),
                "Friedman's p": f"{test.p:.2g}",
                "CD": f"{test.critical:.2f}",
                "beyond it: behind": ", ".join(test.beyond(1)) or "none",
                "beyond it: ahead": ", ".join(test.beyond(-1)) or "none",
            })  # fmt: skip
    return pd.DataFrame(lines)


def kappas() -> pd.DataFrame:
    """Return kappa in percent, and half of its interval, of rows of PFCVM's table 6."""
    lines = []
    frames = {
        p.data: (p, patients.of_panel(patients.stored(), p)["y"].to_numpy())
        for p in patients.PANELS
        if p.name == "PFCVM"
    }
    for label in OF_KAPPA:
        line = {"row": f"`{label}`"}
        for data, (panel, y) in frames.items():
            place = f"{panel.table}/{data}"
            folds = pd.read_csv(patients.FOLDS / f"{place.replace('/', '_')}.csv", low_memory=False)
            right = folds[folds["row"] == f"{place}/{label}"].sort_values("fold")["accuracy"]
            value, half = kappa(np.where(right.to_numpy() == 1.0, y, 1 - y), y)
            line[data] = f"{100 * value:.1f} ± {100 * half:.1f}"
        lines.append(line)
    return pd.DataFrame(lines)


def main() -> None:
    """Fill the tables of PFCVM's page."""
    page = Path(__file__).with_name("pfcvm.md")
    tables.fill(page, ranks=tables.markdown(ranked()), kappa=tables.markdown(kappas()))


if __name__ == "__main__":
    main()
