"""The figures that the texts of the papers' pages name, from the stored folds alone.

A page is written by hand, in `rfvm.md.j2` beside `rfvm.md`. What is in double braces there is an
entry of the dictionary that a function here returns: a number as it is written, or a table.
"""

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from ardvark.models.parts.effects import VISIBLE
from lab.papers import goals
from lab.papers.protocols import Group
from lab.papers.results import REFERENCE, Pair, Result, everything
from lab.papers.sheets import BY_PAPER, SHEETS, Sheet
from lab.papers.tables import GROUPS, SELECTORS
from lab.papers.wording import kept, plus_minus, signed, stated
from lab.records import lines

CLEAR = 2.0  # a difference counts as clear from so many of its +-
SAME_SUBJECTS = {"colon_discrete": "colon", "leukemia_discrete": "golub", "allaml": "golub"}
"""Data sets that are other forms of one set of patients."""
DIGITS = {"accuracy": 1, "f1": 1, "f1_other": 1, "log_score": 2}
OTHER_CLASS = ("fsklr-printed", "sklr", "fs_skr", "l1_logistic", "rbf_svm")
"""Rows whose F1 is also told with y = 0 as the positive class."""
Figures = dict[str, Any]


class Found:
    """The stored rows by their full names, and the numbers that pages take from them.

    A name is table/data/label ("rfvm-3-4/allaml/exact"), or with a step of the row's path
    ("rfvm-3-4/allaml/rfvm_vb@300"). Only rows with all their folds count.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.rows = everything(folder)

    def get(self, name: str) -> Result | None:
        """Return a row with all its folds; None if there is none."""
        label, _, step = name.partition("@")
        r = self.rows.get(label)
        if r is not None and step:
            r = r.at(step)
        return r if r is not None and r.whole else None

    def of(self, name: str) -> Result:
        """Return a row that a text names.

        Raises
        ------
        KeyError
            It has not been run in all folds.
        """
        r = self.get(name)
        if r is None:
            raise KeyError(name)
        return r

    def groups(self, sheet: Sheet) -> list[Group]:
        """Return the tables of a paper that have stored rows."""
        stored = {r.group.name for r in self.rows.values()}
        return [group for group in sheet.groups if group.name in stored]

    def pair(self, group: Group, labels: tuple[str, str], column: str) -> Pair | None:
        """Return the mean difference of two rows and its +-, unless one of them collapsed."""
        a, b = (self.get(f"{group.name}/{label}") for label in labels)
        if a is None or b is None or a.collapsed or b.collapsed:
            return None
        return a.beside(b, column)

    def pairs(self, labels: tuple[str, str], paper: str, column: str) -> dict[str, Pair]:
        """Return these differences on all data sets of a paper."""
        groups = self.groups(BY_PAPER[paper])
        found = {group.data: self.pair(group, labels, column) for group in groups}
        return {data: pair for data, pair in found.items() if pair is not None}

    def gaps(self, sheet: Sheet, label: str, column: str = "") -> dict[str, Pair]:
        """Return ours minus the printed figure with the +- of ours, on all data sets."""
        out = {}
        for group in self.groups(sheet):
            r = self.get(f"{group.name}/{label}")
            mean = r.mean(column or sheet.measure) if r is not None and not r.collapsed else None
            if r is not None and mean is not None and sheet.measure in r.row.printed:
                out[group.data] = (mean[0] - r.row.printed[sheet.measure], mean[1])
        return out

    def text(self, name: str, column: str) -> str:
        """Return a row's mean as it is written."""
        mean = self.of(name).mean(column)
        assert mean is not None
        return kept(mean[0]) if column in ("features", "samples") else _text(mean, column)

    def minus(self, first: str, second: str, column: str) -> str:
        """Return the difference of two rows by their full names, as it is written."""
        pair = self.of(first).beside(self.of(second), column)
        assert pair is not None
        return signed(*pair, digits=DIGITS[column])

    def wrong(self, name: str) -> str:
        """Return how many left-out samples are wrong, of how many, and in the paper."""
        r = self.of(name)
        (mean, _), N = r.mean("accuracy") or (0.0, 0.0), r.group.sizes[0]
        ours, theirs = (round(N * (1.0 - x / 100.0)) for x in (mean, r.row.printed["accuracy"]))
        return f"{ours} of {N} (the paper: {theirs})"

    def settled(self, paper: str, label: str) -> str:
        """Return how many of a row's fits converged, over all data sets."""
        groups = self.groups(BY_PAPER[paper])
        rows = [r for group in groups if (r := self.get(f"{group.name}/{label}")) is not None]
        return f"{sum(r.finished for r in rows)} of {sum(len(r.lines) for r in rows)}"


def _text(mean: Pair, column: str) -> str:
    return plus_minus(*mean, DIGITS[column])


def ends(found: Mapping[str, Pair], digits: int = 1) -> str:
    """Return the smallest and the largest difference, and where they are."""
    low, high = (pick(found, key=lambda data: found[data][0]) for pick in (min, max))
    said = [f"{signed(found[data][0], digits=digits)} on {data}" for data in (low, high)]
    return " to ".join(said)


def clear(found: Iterable[Pair], sign: float) -> int:
    """Return how many differences have this sign and are beyond `CLEAR` of their +-."""
    return sum(sign * mean > CLEAR * error for mean, error in found)


# --- tables ---------------------------------------------------------------------------------------


def grid(head: list[str], body: list[list[str]], words: int = 2) -> str:
    """Return a table in Markdown; the columns after the first `words` stand to the right."""
    return lines([head, *body], [i >= words for i in range(len(head))])


def means(found: Found, sheet: Sheet, column: str) -> str:
    """Return a table of means: a row of the paper's tables a line, a data set a column."""
    groups = found.groups(sheet)
    body = []
    if column == "accuracy":
        body.append(["larger class", "", *(f"{100 * g.sizes[2]:.1f}" for g in groups)])
    leading = [next(r for r in g.rows if r.label == sheet.algorithm) for g in groups]
    if any(column in row.printed for row in leading):
        said = (stated(r.printed[column], r.printed_sd.get(column)) for r in leading)
        body.append(["printed", "", *said])
    for label, heading in _lines(groups, sheet, column).items():
        printed = label not in sheet.readings
        cells = [_cell(found.get(f"{g.name}/{label}"), column, printed) for g in groups]
        if any(cells):
            body.append([heading, f"`{label}`", *cells])
    return grid(["", "row", *(g.data for g in groups)], body)


def _lines(groups: list[Group], sheet: Sheet, column: str) -> dict[str, str]:
    """Return the headings of a table by label: what others do only beside the paper's measure."""
    others = {
        row.label: row.reading
        for group in groups
        for row in group.rows
        if row.reading in ("baseline", "yardstick") and not row.select and not row.share
    }
    if column != sheet.measure:
        others = {REFERENCE: "baseline"}
    return {**sheet.readings, **others}


def _cell(r: Result | None, column: str, printed: bool = False) -> str:
    """Return a mean; in parentheses converged fits where some did not; in brackets the print."""
    mean = r.mean(column) if r is not None else None
    if r is None or mean is None:
        return ""
    if r.collapsed:
        return "collapsed"
    text = kept(mean[0]) if column == "features" else _text(mean, column)
    if column != "features" and r.finished < len(r.lines):
        text += f" ({r.finished}/{len(r.lines)})"
    if printed and column in r.row.printed:
        text += f" [{r.row.printed[column]:g}]"
    return text


def differences(found: Found, sheet: Sheet) -> str:
    """Return the paper's pairs of rows: differences of the measure; of the log score."""
    groups = found.groups(sheet)
    body = []
    for heading, labels in sheet.pairs.items():
        cells = []
        for group in groups:
            both = [found.pair(group, labels, x) for x in (sheet.measure, "log_score")]
            digits = (DIGITS[sheet.measure], DIGITS["log_score"])
            said = [signed(*x, digits=n) for x, n in zip(both, digits, strict=True) if x]
            cells.append("; ".join(said))
        if any(cells):
            body.append([heading, f"`{labels[0]}` - `{labels[1]}`", *cells])
    return grid(["", "rows", *(g.data for g in groups)], body)


def selection(found: Found) -> str:
    """Return what a plain classifier gains from genes chosen on all samples."""
    head = ["data", "genes by", "inside, %", "outside, %", "outside - inside",
            "log score, inside", "log score, outside"]  # fmt: skip
    body = []
    for data in ("colon", "golub"):
        for name in SELECTORS:
            inside, outside = (f"pfcvm-6/{data}/select-{name}-{x}" for x in ("inside", "outside"))
            body.append([
                data, name, found.text(inside, "accuracy"), found.text(outside, "accuracy"),
                found.minus(outside, inside, "accuracy"), found.text(inside, "log_score"),
                found.text(outside, "log_score"),
            ])  # fmt: skip
    return grid(head, body)


def chosen(found: Found) -> pd.DataFrame:
    """Return JCFO's active genes by its posterior and by its prior, at the gammas of each fold."""
    r = found.of("jcfo-1/colon/exact-chosen")
    told = pd.DataFrame([json.loads(line["chosen"]) for line in r.lines.values()], list(r.lines))
    told["posterior"] = pd.Series(r.by_fold("features"))
    N, D = r.group.sizes[0] - 1, r.row.chosen_by["prefilter"]
    of_pair = lru_cache(partial(expected_active, N=N, D=D))
    return told.assign(prior=list(map(of_pair, told["gamma1"], told["gamma2"])))


def expected_active(gamma1: float, gamma2: float, N: int, D: int) -> float:
    """Return how many of D standardised features JCFO's prior expects to be active, of N rows.

    The effect of a feature is theta |u|, with theta exponential of rate gamma2^1/2 and
    u = sum_j z_j beta_j, beta_j Laplace of rate gamma1^1/2. So P(active) = E exp(-rate 0.1 / |u|).
    The column z has normal scores; it hardly matters, because N terms are summed.
    """
    z = stats.norm.ppf((np.arange(N) + 0.5) / N)
    beta = np.random.default_rng(0).laplace(scale=gamma1**-0.5, size=(50_000, N))
    u = np.abs(beta @ (z / z.std()))
    return float(D * np.exp(-(gamma2**0.5) * VISIBLE / u).mean())


def by_gamma(told: pd.DataFrame) -> str:
    """Return these numbers by the gamma2 of the fold."""
    body = [
        [f"{gamma:g}", str(len(mine)), *(f"{mine[x].mean():.1f}" for x in ("prior", "posterior"))]
        for gamma, mine in told.groupby("gamma2")
    ]
    return grid(["gamma2", "folds", "prior", "posterior"], body, words=0)


def both_classes(found: Found) -> str:
    """Return FS-SKLR's F1 minus the printed one, by either class as the positive one."""
    sheet = BY_PAPER["FSKLR"]
    groups = found.groups(sheet)
    body = []
    for label in OTHER_CLASS:
        one, other = (found.gaps(sheet, label, column) for column in ("f1", "f1_other"))
        cells = [f"{signed(one[g.data][0])}, {signed(other[g.data][0])}" for g in groups]
        body.append([f"`{label}`", *cells])
    return grid(["row", *(g.data for g in groups)], body, words=1)


def overview(found: Found) -> str:
    """Return a line for each paper and data set: printed, algorithm, exact, L1."""
    body = []
    for sheet in SHEETS:
        for group in found.groups(sheet):
            labels = (sheet.algorithm, sheet.exact, REFERENCE)
            cells = [_cell(found.get(f"{group.name}/{x}"), sheet.measure) for x in labels]
            asked = (sheet.same, (sheet.exact, REFERENCE))
            pairs = [found.pair(group, labels, "log_score") for labels in asked]
            print_of = next(r for r in group.rows if r.label == sheet.algorithm)
            body.append([
                sheet.name, group.data, f"{print_of.printed[sheet.measure]:g}", *cells,
                *(signed(*pair, digits=2) if pair else "" for pair in pairs),
            ])  # fmt: skip
    head = ["paper", "data", "printed", "algorithm", "exact", "L1", "log score: exact - algorithm",
            "exact - L1"]  # fmt: skip
    return grid(head, body)


def tables(found: Found, paper: str) -> Figures:
    """Return the tables that every paper's page has."""
    sheet = BY_PAPER[paper]
    return {
        "measure": means(found, sheet, sheet.measure),
        "log_scores": means(found, sheet, "log_score"),
        "features": means(found, sheet, "features"),
        "differences": differences(found, sheet),
    }


# --- pages ----------------------------------------------------------------------------------------


def pfcvm(found: Found) -> Figures:
    """Return the figures of PFCVM's page."""
    colon, golub = "pfcvm-6/colon", "pfcvm-6/golub"
    out = tables(found, "PFCVM") | {"selection": selection(found)}
    for group in (colon, golub):
        data = group.split("/")[1]
        change = found.of(f"{group}/pfcvm_lp-change")
        out |= {
            f"wrong_{data}": found.wrong(f"{group}/pfcvm_lp"),
            f"genes_{data}": found.text(f"{group}/pfcvm_lp", "features"),
            f"genes_floor_{data}": found.text(f"{group}/pfcvm_lp-floor", "features"),
            f"exact_{data}": found.minus(f"{group}/exact", f"{group}/pfcvm_lp", "log_score"),
            f"change_{data}": f"{change.finished} of {len(change.lines)}",
        }
    return out | {
        "same_colon": found.minus(f"{colon}/exact", f"{colon}/pfcvm_lp-model", "log_score"),
        "same_golub": found.minus(f"{golub}/exact", f"{golub}/pfcvm_lp-model", "log_score"),
        "genes_50_30": found.text(f"{colon}/pfcvm_lp-50/30", "features"),
        "jcfo_outside": found.minus(
            f"{colon}/select-jcfo-outside", f"{colon}/select-jcfo-inside", "accuracy"
        ),
    }


def jcfo(found: Found) -> Figures:
    """Return the figures of JCFO's page."""
    colon, golub = "jcfo-1/colon", "jcfo-1/golub"
    none, told = found.of(f"{colon}/jcfo-filled").by_fold("features"), chosen(found)
    return tables(found, "JCFO") | {
        "wrong_colon": found.wrong(f"{colon}/jcfo-printed"),
        "wrong_golub": found.wrong(f"{golub}/jcfo-printed"),
        "wrong_one_colon": found.wrong(f"{colon}/jcfo-one"),
        "chosen": found.minus(f"{colon}/exact-chosen", f"{colon}/jcfo-one", "accuracy"),
        "chosen_score": found.minus(f"{colon}/exact-chosen", f"{colon}/jcfo-one", "log_score"),
        "filled_colon": found.minus(f"{colon}/exact", f"{colon}/jcfo-printed", "accuracy"),
        "filled_golub": found.minus(f"{golub}/exact", f"{golub}/jcfo-printed", "accuracy"),
        "genes_colon": found.text(f"{colon}/jcfo-printed", "features"),
        "genes_golub": found.text(f"{golub}/jcfo-printed", "features"),
        "active_chosen": found.text(f"{colon}/exact-chosen", "features"),
        "prior_chosen": kept(told["prior"].mean()),
        "at_the_end": f"{(told['gamma2'] == told['gamma2'].min()).sum()} of {len(told)}",
        "by_gamma": by_gamma(told),
        "genes_one": found.text(f"{colon}/jcfo-one", "features"),
        "exact_accuracy": found.text(f"{colon}/exact-chosen", "accuracy"),
        "l1_accuracy": found.text(f"{colon}/{REFERENCE}", "accuracy"),
        "empty": f"{sum(x == 0.0 for x in none.values())} of {len(none)}",
    }


def rfvm(found: Found) -> Figures:
    """Return the figures of RFVM's page."""
    gaps = {
        label: ends(found.gaps(BY_PAPER["RFVM"], label))
        for label in ("rfvm_vb-elbo", "rfvm_vb-example", "rfvm_vb")
    }
    settled = {label: found.settled("RFVM", label) for label in gaps}
    exact = found.pairs(("exact", "rfvm_vb-elbo"), "RFVM", "log_score")
    return tables(found, "RFVM") | {
        "gap_elbo": gaps["rfvm_vb-elbo"],
        "gap_example": gaps["rfvm_vb-example"],
        "gap_long": gaps["rfvm_vb"],
        "settled_elbo": settled["rfvm_vb-elbo"],
        "settled_example": settled["rfvm_vb-example"],
        "settled_long": settled["rfvm_vb"],
        "exact_score": ends(exact, digits=2),
    }


def fsklr(found: Found) -> Figures:
    """Return the figures of FS-SKLR's page."""
    sheet = BY_PAPER["FSKLR"]
    return tables(found, "FSKLR") | {
        "classes": both_classes(found),
        "gap": ends(found.gaps(sheet, sheet.algorithm)),
        "gap_other": ends(found.gaps(sheet, sheet.algorithm, "f1_other")),
        "exact": ends(found.pairs(sheet.same, "FSKLR", "f1")),
        "l1": ends(found.pairs((sheet.algorithm, REFERENCE), "FSKLR", "f1")),
        "svm": ends(found.pairs((sheet.algorithm, "rbf_svm"), "FSKLR", "f1")),
    }


def summary(found: Found) -> Figures:
    """Return the figures of PAPER_CHECK.md, which is about all papers."""
    of_print = [
        (SAME_SUBJECTS.get(data, data), abs(gap) <= CLEAR * error)
        for sheet in SHEETS
        for data, (gap, error) in found.gaps(sheet, sheet.algorithm).items()
    ]
    out: Figures = {
        "overview": overview(found),
        "goals": goals.table(found.folder),
        "rows": sum(r.whole for r in found.rows.values()),
        "declared": sum(len(group.rows) for group in GROUPS),
        "near": sum(near for _, near in of_print),
        "pairs": len(of_print),
        "subjects": len({name for name, _ in of_print}),
    }
    for name in ("algorithm_l1", "exact_l1", "exact_same"):
        for kind in ("measure", "log_score"):
            pairs = [pair for each in of_roles(found, name, kind) for pair in each]
            out |= {
                f"{name}_{kind}_higher": clear(pairs, 1.0),
                f"{name}_{kind}_lower": clear(pairs, -1.0),
                f"{name}_of": len(pairs),
            }
    return out


def of_roles(found: Found, name: str, kind: str) -> Iterable[Iterable[Pair]]:
    """Yield, paper by paper, the differences to L1 or of two rows under the same prior."""
    for sheet in SHEETS:
        asked = {
            "algorithm_l1": (sheet.algorithm, REFERENCE),
            "exact_l1": (sheet.exact, REFERENCE),
            "exact_same": sheet.same,
        }
        column = sheet.measure if kind == "measure" else kind
        yield found.pairs(asked[name], sheet.paper, column).values()


PAGES = {
    "PAPER_CHECK.md": summary,
    "papers/pfcvm.md": pfcvm,
    "papers/jcfo.md": jcfo,
    "papers/rfvm.md": rfvm,
    "papers/fsklr.md": fsklr,
}
"""By page, relative to `lab/`: what returns its figures."""


def figures(folder: Path) -> dict[str, Figures]:
    """Return the figures of every page."""
    found = Found(folder)
    return {page: of_page(found) for page, of_page in PAGES.items()}
