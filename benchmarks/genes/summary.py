"""What the stored files say of a printed table: its rows, and a paragraph.

The posterior beside every table is PFCVM's under the sparse default prior, and under four changes
of it; where the paper's own model is another one, its posterior stands beside that. The data
"speak for" a gene, or for a group, if they raise the odds that it is active at least `FACTOR`
times, two Monte Carlo errors subtracted. PFCVM's prior uses the labels, so this ratio is not a
Bayes factor of the labels.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from .declared import AS_IT_IS, Fit, Folds, Gene, Table, genes
from .notebook import notebook
from .pieces import read

FACTOR = 3.0
SELECTED = 0.5
FIRST = 50  # ranks that are told of
SEEN = 0.01  # P(active) from which a relative change is told
MODELS = {"jcfo": "JCFO", "sparse_probit": "Sparse probit", "rfvm": "RFVM", "pfcvm": "PFCVM"}
LAPLACE = {"jcfo", "sparse_probit"}
_TEXT = {"fit", "gene", "row", "status", "reason", "weights", "identity", "commit", "sampler",
         "leading"}  # fmt: skip


@dataclass(frozen=True)
class Stored:
    """The rows of the three files, numbers as numbers; fits by name, genes by fit and name."""

    fits: dict[str, dict[str, Any]]
    genes: dict[tuple[str, str], dict[str, Any]]
    folds: pd.DataFrame

    @classmethod
    def of(cls, folder: Path) -> "Stored":
        """Return what a folder holds."""
        fits, genes, folds = (_frame(folder / f"{n}.csv") for n in ("fits", "posterior", "folds"))
        return cls(
            {x["fit"]: x for x in fits.to_dict("records")},
            {(x["fit"], x["gene"]): x for x in genes.to_dict("records")},
            folds,
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


def rows(stored: Stored, table: Table) -> list[dict[str, Any]]:
    """Return a row for each printed gene."""
    priors = done(stored, sparse(table))
    out = []
    for gene in genes()[table.name]:
        row: dict[str, Any] = {"gene": gene.gene, "is": gene.description, "printed": gene.printed}
        if priors:
            x = stored.gene(priors[0], gene)
            all_of = [stored.gene(fit, gene) for fit in priors]
            row |= {
                "P": x["p"], "error": x["mcse"], "prior": x["prior"],
                "range": _range([y["p"] for y in all_of]), "rank": int(x["rank"]),
                "group of": int(x["members"]), "P group": x["p_group"],
                "its error": x["mcse_group"], "its prior": x["prior_group"],
                "its range": _range([y["p_group"] for y in all_of]),
            }  # fmt: skip
        if (other := notebook(table.data)) is not None:
            row["P, samples as they are"] = other.p(gene)
        for fit in done(stored, beside(table)):
            y = stored.gene(fit, gene)
            row |= {f"P, {MODELS[fit.model]}": y["p"], f"prior, {MODELS[fit.model]}": y["prior"]}
        for folds in table.folds:
            if not len(stored.of_folds(folds)):
                continue
            row[f"folds, {folds.label}"] = frequency(stored, table, folds, gene)
            if folds.row.startswith("jcfo"):
                row["mean theta"] = mean_weight(stored, folds, gene)
        out.append(row)
    return out


def _range(values: Sequence[float]) -> str:
    return f"{min(values):.4f} to {max(values):.4f}" if len(values) > 1 else ""


# --- in short -------------------------------------------------------------------------------------


def short(stored: Stored, table: Table) -> dict[str, Any]:
    """Return how many rows of a printed table are selected, or raised alone or with their group."""
    printed, priors = genes()[table.name], done(stored, sparse(table))
    row: dict[str, Any] = {"rows": len(printed), "priors run": len(priors)}
    if not priors:
        return row
    found = [stored.gene(priors[0], g) for g in printed]

    def always(group: bool) -> int:
        return sum(all(spoken_for(stored, fit, g, group) for fit in priors) for g in printed)

    return row | {
        "selected": sum(x["p"] > SELECTED for x in found),
        "largest P": round(max(x["p"] for x in found), 3),
        "raised alone": sum(spoken_for(stored, priors[0], g) for g in printed),
        "raised alone, each prior": always(False),
        "raised with group": sum(spoken_for(stored, priors[0], g, group=True) for g in printed),
        "raised with group, each prior": always(True),
    }


def in_short(stored: Stored, tables: Sequence[Table]) -> str:
    """Return what holds for all tables whose default posterior has been sampled."""
    run = [table for table in tables if done(stored, sparse(table))]
    if not run:
        return ""
    rows = [short(stored, table) for table in run]
    total, alone, group, selected = (
        sum(row[name] for row in rows)
        for name in ("rows", "raised alone", "raised with group", "selected")
    )
    data, row = run[0].data, stored.fit(sparse(run[0])[0])
    return (
        f"Of {total} printed rows, {count(selected)} has a P(active) above 1/2 in the exact "
        f"posterior of PFCVM under the sparse default. The data raise the odds of {count(alone)} "
        f"of them alone, and of {count(group)} with their group. On {data} the prior expects "
        f"{row['prior_active']:.1f} active genes and the posterior has {row['active']:.1f}, spread "
        f"over many: its leading gene, {row['leading']}, has P(active) {row['p_leading']:.2f}."
    )


# --- the paragraph --------------------------------------------------------------------------------


def paragraph(stored: Stored, table: Table) -> str:
    """Return what is found for a table."""
    printed = genes()[table.name]
    said = []
    priors = done(stored, sparse(table))
    if priors:
        said += list(_alone(stored, priors, printed))
        said += list(_of_prior(stored, priors, printed))
        said += list(_together(stored, priors, printed))
    if (as_they_are := notebook(table.data)) is not None:
        said.append(as_they_are.text(printed))
    for fit in done(stored, beside(table)):
        said.append(_other(stored, fit, printed))
    for folds in table.folds:
        if len(stored.of_folds(folds)):
            said.append(_of_folds(stored, table, folds, printed))
    return " ".join(said)


def _alone(stored: Stored, priors: Sequence[Fit], printed: Sequence[Gene]) -> Iterable[str]:
    found = [(stored.gene(priors[0], g), g) for g in printed]
    most, leading = max(found, key=lambda pair: pair[0]["p"])
    above = sum(x["p"] > SELECTED for x, _ in found)
    yield (
        f"The exact posterior of PFCVM under the sparse default gives {count(above)} of the "
        f"{len(printed)} rows a P(active) above {SELECTED:g}; the largest is "
        f"{most['p']:.3f} ({leading.gene}, prior {most['prior']:.3f})."
    )
    ranks = sorted(x["rank"] for x, _ in found)
    first = sum(rank <= FIRST for rank in ranks)
    yield (
        f"By P(active) {count(first)} of the {len(printed)} rows are among the first {FIRST} genes "
        f"of the data; the best rank is {ranks[0]:.0f}, the middle one "
        f"{ranks[len(ranks) // 2]:.0f}."
    )
    names = [
        f"{g.gene} ({times(stored, priors[0], g):.1f})"
        for g in printed
        if spoken_for(stored, priors[0], g)
    ]
    if names:
        yield (
            f"The data raise the odds of being active at least {FACTOR:g} times for "
            f"{len(names)} of {len(printed)}: {listed(names)}."
        )
    else:
        yield f"For none of them do the data raise the odds of being active {FACTOR:g} times."


def _of_prior(stored: Stored, priors: Sequence[Fit], printed: Sequence[Gene]) -> Iterable[str]:
    if len(priors) < 2:
        return
    always = [g.gene for g in printed if all(spoken_for(stored, fit, g) for fit in priors)]
    ever = [g.gene for g in printed if any(spoken_for(stored, fit, g) for fit in priors)]
    yield (
        f"Under every one of the {len(priors)} priors they do so for {listed(always)}; under at "
        f"least one of them, for {len(ever)}."
    )
    most = max(printed, key=lambda g: times(stored, priors[0], g))
    factors = [times(stored, fit, most) for fit in priors]
    yield (
        f"The odds of {most.gene}, which they raise most, are raised {min(factors):.1f} to "
        f"{max(factors):.1f} times, by prior."
    )
    for name in ("active_features", "slab"):
        ratios = []
        for fit in priors[1:]:
            if fit.change.startswith(name):
                for g in printed:
                    old = stored.gene(priors[0], g)["p"]
                    ratios += [stored.gene(fit, g)["p"] / old] if old >= SEEN else []
        if ratios:
            yield (
                f"Halving or doubling {name} multiplies P(active) by {min(ratios):.2f} to "
                f"{max(ratios):.2f}, where it is at least {SEEN:g}."
            )


def _together(stored: Stored, priors: Sequence[Fit], printed: Sequence[Gene]) -> Iterable[str]:
    most = max(printed, key=lambda g: times(stored, priors[0], g, group=True))
    x, factor = stored.gene(priors[0], most), times(stored, priors[0], most, group=True)
    yield (
        f"With the genes that are correlated with it, {most.gene} is raised most: P(at least one "
        f"active) of its group of {x['members']:.0f} is {x['p_group']:.2f} (prior "
        f"{x['prior_group']:.2f}), which raises the odds {factor:.1f} times."
    )
    names = [g.gene for g in printed if spoken_for(stored, priors[0], g, group=True)]
    if names:
        yield (
            f"The data raise the odds of {len(names)} of {len(printed)} groups at least "
            f"{FACTOR:g} times: {listed(names)}."
        )
    if names and len(priors) > 1:
        always = [g for g in printed if all(spoken_for(stored, f, g, group=True) for f in priors)]
        yield (
            f"Of the groups, they do so under every one of the priors for "
            f"{listed([g.gene for g in always])}."
        )


def _other(stored: Stored, fit: Fit, printed: Sequence[Gene]) -> str:
    row, under = stored.fit(fit), "its sparse prior"
    if fit.model in LAPLACE:
        under = "its Laplace prior"
    if row["p_leading"] == 0.0:
        return (
            f"{MODELS[fit.model]} under {under} has no active gene in any draw, printed or not: "
            f"every effect is below {row['threshold']:g}."
        )
    found = [(stored.gene(fit, g), g) for g in printed]
    most, leading = max(found, key=lambda pair: pair[0]["p"])
    return (
        f"{MODELS[fit.model]} under {under} expects {row['prior_active']:.1f} active genes and "
        f"finds {row['active']:.1f}; P(active) of a printed gene is at most {most['p']:.3f} "
        f"({leading.gene}, prior {most['prior']:.3f})."
    )


def _of_folds(stored: Stored, table: Table, folds: Folds, printed: Sequence[Gene]) -> str:
    shares = {g.gene: frequency(stored, table, folds, g) for g in printed}
    number = len(stored.of_folds(folds))
    who, largest = f"The paper's algorithm ({folds.label})", "weight"
    if folds.exact:
        who, largest = "The exact posterior", "P(active)"
    where = f"Among its {table.top} genes of largest {largest}" if table.top else "Among those kept"
    ever = sum(share > 0.0 for share in shares.values())
    said = (
        f"{who} was computed in {number} of the {folds.total} folds. {where} are "
        f"{count(ever)} of the {len(printed)} rows in at least one fold"
    )
    if not ever:
        return f"{said}."
    often = [name for name, share in shares.items() if share >= SELECTED]
    most = max(shares, key=lambda name: shares[name])
    return (
        f"{said}, and {listed(often)} in at least half of them; the most frequent is {most}, in "
        f"{round(shares[most] * number)}."
    )


def count(number: int) -> str:
    """Return a number in a sentence."""
    return "none" if number == 0 else str(number)


def listed(names: Sequence[str]) -> str:
    """Return names in a sentence."""
    return ", ".join(names) if names else "none"
