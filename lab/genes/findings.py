"""What is found for a printed table, in points of a sentence or two, at most five numbers each.

A point about a posterior says of which: its model, and whether each sample is standardised first,
as PFCVM's paper does.

The number of active genes
--------------------------
Let n be the number of active genes, v all weights and s the scale of the feature weights. The
posterior is p(v | y) = p(y | v) p(v | s) / p(y), so

    d E(n | y) / d log s = Cov(n, d log p(v | s) / d log s | y)

With y left out this is the same covariance under the prior. There it is positive: the feature
weights are independent, and the score of a half-Cauchy with a slab increases with the size of a
weight, as n does. Given y they are dependent, and it can be negative.
"""

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from . import often
from .declared import Fit, Folds, Gene, Table, genes
from .notebook import notebook
from .summary import (
    FACTOR,
    LAPLACE,
    MODELS,
    SELECTED,
    Stored,
    beside,
    done,
    draws,
    frequency,
    own,
    short,
    sparse,
    spoken_for,
    standardised,
    telling,
    times,
    vacuous,
)

FIRST = 50  # ranks that are told of
SEEN = 0.01  # P(active) from which a relative change is told
BY_SAMPLE = {True: "each sample standardised", False: "samples as they are"}
SAMPLES = {True: "standardised", False: "as they are"}


def findings(stored: Stored, table: Table) -> list[str]:
    """Return what is found for a table, point by point."""
    printed, said = genes()[table.name], []
    priors = done(stored, sparse(table))
    if priors:
        said += [*_alone(stored, priors, printed), *_of_prior(stored, priors, printed)]
        if own(table) == sparse(table):
            said += _expected(stored, priors, printed)
        said += _together(stored, priors, printed)
    if (as_they_are := notebook(table.data)) is not None:
        said += as_they_are.text(printed)
    said += [_other(stored, fit, printed) for fit in done(stored, beside(table))]
    for folds in table.folds:
        if len(stored.of_folds(folds)):
            said += [_of_folds(stored, table, folds, printed), *often.text(stored, table, folds)]
    return said


# --- PFCVM's posteriors ---------------------------------------------------------------------------


def _alone(stored: Stored, priors: Sequence[Fit], printed: Sequence[Gene]) -> Iterable[str]:
    found = [(stored.gene(priors[0], g), g) for g in printed]
    most, leading = max(found, key=lambda pair: pair[0]["p"])
    above = sum(x["p"] > SELECTED for x, _ in found)
    yield (
        "PFCVM's exact posterior under the sparse default, each sample standardised: P(active) is "
        f"above {SELECTED:g} for {count(above)} of the {len(printed)} rows. The largest is "
        f"{most['p']:.3f} ({leading.gene}, prior {most['prior']:.3f})."
    )
    yield from _ranks(draws(stored, priors[0]), [x for x, _ in found])
    names = [g.gene for g in printed if spoken_for(stored, priors[0], g)]
    yield (
        f"The data raise the odds of being active at least {FACTOR:g} times for "
        f"{count(len(names))} of the {len(printed)} rows{': ' if names else ''}{', '.join(names)}."
    )


def _ranks(of: int, found: Sequence[dict[str, Any]]) -> Iterable[str]:
    ordered = sorted(found, key=lambda x: x["rank"])
    ranks = [x["rank"] for x in ordered]
    first = sum(rank <= FIRST for rank in ranks)
    yield (
        f"By P(active) {count(first)} of the {len(ranks)} rows are among the first {FIRST} genes "
        f"of the data; the median rank is {statistics.median(ranks):g}."
    )
    middle = ordered[(len(ordered) - 1) // 2]
    near = [x["rank"] for x in ordered if abs(x["p"] - middle["p"]) <= 2.0 * _error(x, middle)]
    yield (
        f"Ranks are rough: P is a share of {of} draws, {round(ordered[-1]['p'] * of)} of them for "
        f"the row of rank {ranks[-1]}. Rows of rank {near[0]} to {near[-1]} are within two Monte "
        "Carlo errors of the row in the middle."
    )


def _error(x: dict[str, Any], y: dict[str, Any]) -> float:
    """Return the Monte Carlo error of a difference; one that is unknown counts as 0."""
    return math.hypot(*(0.0 if math.isnan(z["mcse"]) else z["mcse"] for z in (x, y)))


def _of_prior(stored: Stored, priors: Sequence[Fit], printed: Sequence[Gene]) -> Iterable[str]:
    if len(priors) < 2:
        return
    always = [g.gene for g in printed if all(spoken_for(stored, fit, g) for fit in priors)]
    ever = [g.gene for g in printed if any(spoken_for(stored, fit, g) for fit in priors)]
    most = max(printed, key=lambda g: times(stored, priors[0], g))
    factors = [times(stored, fit, most) for fit in priors]
    yield (
        f"Under every one of the {len(priors)} priors they do so for {listed(always)}; under at "
        f"least one of them, for {count(len(ever))}. The odds of {most.gene}, which they raise "
        f"most, are raised {min(factors):.1f} to {max(factors):.1f} times, by prior."
    )
    spans: list[str] = []
    for name in ("active_features", "slab"):
        ratios = []
        for fit in priors[1:]:
            if fit.change.startswith(name):
                for g in printed:
                    old = stored.gene(priors[0], g)["p"]
                    ratios += [stored.gene(fit, g)["p"] / old] if old >= SEEN else []
        if ratios:
            what = "" if spans else " multiplies P(active)"
            spans.append(f"{name}{what} by {min(ratios):.2f} to {max(ratios):.2f}")
    if spans:
        yield f"Halving or doubling {', '.join(spans)}, where it is at least {SEEN:g}."


def _expected(stored: Stored, priors: Sequence[Fit], printed: Sequence[Gene]) -> Iterable[str]:
    """Say how the number of active genes depends on the number asked for: see the module."""
    asked = sorted(
        (fit for fit in priors if "slab" not in fit.change),
        key=lambda fit: stored.fit(fit)["active_features"],
    )
    if len(asked) < 3:
        return
    numbers = [f"{stored.fit(fit)['active']:g}" for fit in asked]
    leading = max(printed, key=lambda g: stored.gene(priors[0], g)["p"])
    low, high = (stored.gene(fit, leading) for fit in asked[:2])
    said = (
        f"`active_features` halved, as it is and doubled: {numbers[0]}, {numbers[1]} and "
        f"{numbers[2]} genes are expected to be active a posteriori. This need not rise. A larger "
        "`active_features` widens the prior of the feature weights and narrows that of the sample "
        "weights. The derivative of the expected number by the log of the first scale is its "
        "posterior covariance with the score of that scale. Under the prior the covariance is "
        "positive; the labels can turn its sign, because genes that explain the same labels "
        "compete."
    )
    if low["p"] > high["p"] and low["prior"] < high["prior"]:
        said += (
            f" Likewise P(active) of {leading.gene} is {low['p']:.3f} where `active_features` is "
            f"halved, against {high['p']:.3f}: its prior is lower, and so are those of its rivals."
        )
    yield said


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


# --- other posteriors, and folds ------------------------------------------------------------------


def _other(stored: Stored, fit: Fit, printed: Sequence[Gene]) -> str:
    row, under = stored.fit(fit), "its sparse prior"
    if fit.model in LAPLACE:
        under = "its Laplace prior"
    who = f"{MODELS[fit.model]} under {under}, {BY_SAMPLE[fit.by_sample]},"
    if vacuous(row):
        rate = math.sqrt(row["gamma2"] if fit.model == "jcfo" else row["gamma1"])
        return (
            f"{who} says nothing of the genes and has no column: at the rate of {rate:g} that is "
            f"filled in for a gene's weight, the prior already expects {row['prior_active']:.1f} "
            "active genes. The paper chooses the rate by hold-out."
        )
    found = [(stored.gene(fit, g), g) for g in printed]
    most, leading = max(found, key=lambda pair: pair[0]["p"])
    return (
        f"{who} expects {row['prior_active']:.1f} active genes and finds {row['active']:.1f}; "
        f"P(active) of a printed gene is at most {most['p']:.3f} ({leading.gene}, prior "
        f"{most['prior']:.3f})."
    )


def _of_folds(stored: Stored, table: Table, folds: Folds, printed: Sequence[Gene]) -> str:
    shares = {g.gene: frequency(stored, table, folds, g) for g in printed}
    number = len(stored.of_folds(folds))
    who, largest = f"The paper's algorithm ({folds.label})", "weight"
    if folds.exact:
        who, largest = "The exact posterior of the folds", "P(active)"
    ever = sum(share > 0.0 for share in shares.values())
    said = (
        f"{who}, {BY_SAMPLE[standardised(folds)]}, selects {count(ever)} of the {len(printed)} "
        f"rows in at least one of {number} folds"
    )
    if ever:
        often_ = [name for name, share in shares.items() if share >= SELECTED]
        most = max(shares, key=lambda name: shares[name])
        said += (
            f", and {listed(often_)} in at least half of them; most often {most}, in "
            f"{round(shares[most] * number)}"
        )
    chosen = f"the {table.top} of largest {largest}" if table.top else "those kept"
    return f"{said}. Selected: {chosen}."


# --- in short -------------------------------------------------------------------------------------


def in_short(stored: Stored, tables: Sequence[Table]) -> list[str]:
    """Return what holds for all tables whose default posterior has been sampled."""
    run = [table for table in tables if done(stored, sparse(table))]
    if not run:
        return []
    default = {table.name: done(stored, sparse(table))[0] for table in run}
    distinct = {(default[t.name].data, g.number): (t, g) for t in run for g in genes()[t.name]}

    def raised(group: bool) -> list[str]:
        return [
            g.gene for t, g in distinct.values() if spoken_for(stored, default[t.name], g, group)
        ]

    above = sum(stored.gene(default[t.name], g)["p"] > SELECTED for t, g in distinct.values())
    total, alone = sum(short(stored, table)["rows"] for table in run), raised(False)
    said = [
        f"The {total} rows are {len(distinct)} genes. P(active) is above 1/2 for {count(above)}. "
        f"The data raise the odds of {count(len(alone))} alone{_named(alone)}, and of "
        f"{count(len(raised(True)))} with their group.",
        f"The factor {FACTOR:g}, the two errors and the effect of {_threshold(stored, run)} from "
        "which a gene is active are conventions. Nothing is corrected for the number of genes and "
        "priors that were looked at.",
    ]
    row = stored.fit(default[run[0].name])
    said.append(
        f"On {run[0].data} the prior expects {row['prior_active']:.1f} active genes and the "
        f"posterior has {row['active']:.1f}, spread over many: its leading gene, "
        f"{row['leading']}, has P(active) {row['p_leading']:.2f}."
    )
    others = [
        (fit, g, stored.gene(fit, g)["p"])
        for table in run for fit in telling(stored, table) for g in genes()[table.name]
    ]  # fmt: skip
    if others:
        fit, gene, p = max(others, key=lambda found: found[2])
        said.append(
            f"Posteriors of other models are in the sections. The largest P(active) there is "
            f"{p:.3f}, of {gene.gene} under {MODELS[fit.model]}, {BY_SAMPLE[fit.by_sample]}."
        )
    return said


def _named(names: Sequence[str]) -> str:
    return f" ({', '.join(names)})" if names else ""


def _threshold(stored: Stored, run: Sequence[Table]) -> str:
    return f"{stored.fit(done(stored, sparse(run[0]))[0])['threshold']:g}"


def count(number: int) -> str:
    """Return a number in a sentence."""
    return "none" if number == 0 else str(number)


def listed(names: Sequence[str]) -> str:
    """Return names in a sentence."""
    return ", ".join(names) if names else "none"
