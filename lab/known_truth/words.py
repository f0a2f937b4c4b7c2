"""What `known_truth.py` found, in words; each number and each comparison is computed from rows."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from ardvark.inference.exact.method import Options
from lab.known_truth.report import (
    ALARM,
    EXACT,
    OTHERS,
    Comparisons,
    compare,
    goals,
    levels,
    signed,
    tables,
)
from lab.known_truth.results import ESS, LIMIT, SET, Estimate, Results, Row
from lab.script import Measured

NAMES = {
    "pfcvm_lp, printed updates": "`pfcvm_lp` (printed updates, our thresholds)",
    "pfcvm_lp, zoo's prior": "`pfcvm_lp` under the zoo's prior",
    "pfcvm, exact": "the exact posterior of PFCVM",
    "rfvm_vb, printed updates": "`rfvm_vb` (printed updates, our stop)",
    "rfvm_vb, zoo's prior": "`rfvm_vb` under the zoo's prior",
    "rfvm, exact": "the exact posterior of RFVM",
    "horseshoe, exact": "the horseshoe",
}


def name_of(method: str) -> str:
    """Return what a sentence calls a method."""
    return NAMES.get(method, method)


def _listed(parts: Sequence[str]) -> str:
    return ", ".join(parts[:-1]) + f" and {parts[-1]}" if len(parts) > 1 else "".join(parts)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _percent(estimate: Estimate) -> str:
    error = f" ± {100.0 * estimate.error:.1f}" if estimate.error > 0.0 else ""
    return f"{100.0 * estimate.value:.1f}{error} %"


# --- the verdict ----------------------------------------------------------------------------------


def verdict(found: Results, compared: Comparisons, planned: int) -> str:
    """Return the paragraph that opens the page."""
    first = best(found)
    parts = [f"**{_extent(found, planned)} {_best(found)}**"]
    for m in sorted(EXACT, key=lambda m: m != first):  # what finds most comes first
        parts.append(_compared(compared, m, numbers=m == first))
    return " ".join(part for part in [*parts, _kept(found, compared)] if part)


def _extent(found: Results, planned: int) -> str:
    if found.sets == planned:
        return f"All {planned} data sets, in {found.cells} cells, were fitted by every method."
    level = {f: [v for name, v in levels(found) if name == f] for f in SET[:-1]}
    alone = [f"{f} = {v[0]:g}" for f, v in level.items() if len(v) == 1]
    where = f", all with {_listed(alone)}" if alone else ""
    return (
        f"Unfinished: {found.sets} of {planned} data sets, in {found.cells} cells{where}, were "
        "fitted by every method; what follows is about these."
    )


def best(found: Results, name: str = "power_20") -> str:
    """Return the method with the largest mean of a measure."""
    among = found.methods if name == "power_20" else found.predicting
    return max(among, key=lambda m: found.mean(m, name).value)


def _best(found: Results) -> str:
    """Say which method finds most, and which predicts best."""
    m = best(found)
    rest = [x for x in found.methods if x != m]
    second = max(rest, key=lambda x: found.mean(x, "power_20").value)
    before = f", before {name_of(second)} ({_percent(found.mean(second, 'power_20'))})"
    said = (
        f"{_capital(name_of(m))} finds most: {_percent(found.mean(m, 'power_20'))} of the active "
        f"features (power) are in the longest lists from the top with at most 20 % false{before}."
    )
    score, right = best(found, "log_score"), best(found, "accuracy")
    lost = found.mean(score, "lost")
    who = {True: "It also has", False: f"{_capital(name_of(score))} has"}[score == m]
    also = " and" if right == score else f"; {name_of(right)} has"
    error = f" ± {lost.error:.3f}" if lost.error > 0.0 else ""
    return (
        f"{said} {who} the best log score ({lost.value:.3f}{error} below the best possible)"
        f"{also} the best accuracy ({_percent(found.mean(right, 'accuracy'))})."
    )


MEASURES = {"power_20": "power", "log_score": "log score", "accuracy": "accuracy"}
UNITS = {"power_20": " points", "log_score": "", "accuracy": " points"}
SIGNS = {1: "clearly above", -1: "clearly below", 0: "not clearly apart from"}


def _points(estimate: Estimate, name: str) -> str:
    return f"{signed(estimate, name)}{UNITS[name]}"


def _compared(compared: Comparisons, m: str, numbers: bool) -> str:
    """Say how a method compares with others: those of the same signs are named together.

    With `numbers`, each other method stands alone, with its differences.
    """
    patterns: dict[tuple[int | str | None, ...], list[str]] = {}
    for other in OTHERS[m]:
        signs = tuple(compared.sign.get((m, other, name)) for name in MEASURES)
        if set(signs) != {None}:
            patterns.setdefault((*signs, *([other] if numbers else [])), []).append(other)
    said = []
    for pattern, others in patterns.items():
        groups: list[str] = []
        for sign, how in SIGNS.items():
            names = [
                word + (f" ({_points(compared.more[m, others[0], name], name)})" if numbers else "")
                for (name, word), own in zip(MEASURES.items(), pattern, strict=False)
                if own == sign
            ]
            if names:
                who = "it" if groups else _listed([name_of(other) for other in others])
                who = "them" if groups and len(others) > 1 else who
                groups.append(f"{how} {who} in {_listed(names)}")
        said.append(", ".join(groups))
    return f"{_capital(name_of(m))} is {'; '.join(said)}." if said else ""


KEPT = {
    1: "clearly more are false than was promised by",
    -1: "clearly fewer are false than was promised by",
    0: "not clearly more or fewer are false than was promised by",
}


def _kept(found: Results, compared: Comparisons) -> str:
    """Say whether the features with P(active) > 1/2 are as often active as was promised."""
    said: dict[int, list[str]] = {sign: [] for sign in KEPT}
    for m, excess in compared.excess.items():
        if np.isfinite(excess.value):
            promised = 100.0 * found.expected(m, "half")
            share = _percent(found.false(m, "half"))
            said[compared.sign[m]].append(f"{name_of(m)} ({share}, promised {promised:.1f} %)")
    groups = [f"{KEPT[sign]} {_listed(names)}" for sign, names in said.items() if names]
    if not groups:
        return ""
    return (
        "Under these priors, which are not the truth, among the features with P(active) above 1/2 "
        f"{'; '.join(groups)}."
    )


# --- what is behind it ----------------------------------------------------------------------------

DESIGN = (
    "**Design.** Rows are normal in blocks of five features (variance 1, correlation 0, 0.5 or 0.9 "
    "within a block); N = 50 or 100, D = 30 or 200, 3 or 10 active features: 24 cells of 5 data "
    "sets. Weights are 0 but for the active ones, which have random places, random signs and sizes "
    "uniform between 1/2 and 3/2, scaled so that the best classifier is right in 90 % of rows; the "
    "smallest here is {smallest:.2f}, a gap that no prior of the zoo has. P(active) is the "
    "probability that a feature moves the decision value by more than 0.1 logits a standard "
    "deviation; the sparse prior of PFCVM and RFVM expects ten such features in every cell. "
    "Stability selection, set for at most one false feature, takes the first 3 of the L1 path at "
    "D = 30 and 10 at D = 200, also where 10 are active."
)
ERRORS = (
    "**Errors.** Means are over cells of equal weight; ± is a standard error from the data sets "
    "within a cell, so it holds for these cells and no other. A difference is called clear by "
    "Student's t and Holm's procedure over all {tested} comparisons of this page: where nothing "
    "differs, one or more of them is called clear with a probability of at most {alarm:.0f} %. "
    "Design, methods and measures were fixed before the first reported fit; equal weights, these "
    "standard errors, Holm's procedure and the plus in the goals on false features came after the "
    "first report of these rows, from a review of it."
)
EXTENT = (
    "**Convergence.** `exact` ends when all that may be quoted has {ess:.0f} effective draws and "
    "an R-hat below 1.01, twice in a row, or after {limit} iterations a chain: {ended} of {fits} "
    "exact fits ended there, with a median R-hat of {median:.3f} and a largest one of "
    "{largest:.3f}, and are in all means. With {ess:.0f} effective draws an R-hat below 1.01 is "
    "seldom seen even if the chains agree, so one just above it does not say that they differ. The "
    'pages of the papers ask for {more:.0f} and allow {longer} iterations, so "exact" is less '
    "exact here. {turned}"
)
ORIGIN = (
    "Rows carry the commit of the code that made them: {commits}. A branch was rebased before it "
    "was published, so 590f9be and 8527945 are not in its history; some of their rows were made "
    "again by later code, the same to the last digit. The horseshoe's were not the same, and all "
    "of them were made anew."
)


def _turned(found: Results, compared: Comparisons) -> str:
    """Say which clear differences have another sign where only converged fits count."""
    turned = []
    for (m, other, name), estimate in compared.more.items():
        kept = found.converged(x for x in (m, other) if x in EXACT)
        only = found.more(m, other, name, kept).value
        if compared.sign[m, other, name] and only * estimate.value < 0.0:
            turned.append(f"{m} - {other} ({MEASURES[name]})")
    if not turned:
        return "On the data sets with converged fits alone no clear difference changes its sign."
    return f"With converged fits alone these clear differences change sign: {_listed(turned)}."


def behind(found: Results, compared: Comparisons, rows: Sequence[Row]) -> list[str]:
    """Return the paragraphs on design, errors, convergence and origin."""
    smallest = min(r["smallest_effect"] for r in rows if r["status"] != "failed")
    exact = [r for r in rows if r["method"] in EXACT]
    ended = [r["rhat"] for r in exact if r["status"] == "not_converged"]
    asked = Options()
    commits: Mapping[str, int] = Counter(str(r["commit"]) for r in rows)
    named = _listed([f"{commit} ({count})" for commit, count in commits.items()])
    errors = ERRORS.format(tested=compared.tested, alarm=100.0 * ALARM)
    paragraphs = [
        DESIGN.format(smallest=smallest), f"{errors} {ORIGIN.format(commits=named)}",
    ]  # fmt: skip
    if ended:
        paragraphs.append(
            EXTENT.format(
                ess=ESS, limit=LIMIT, ended=len(ended), fits=len(exact),
                median=float(np.median(ended)), largest=max(ended), more=asked.ess,
                longer=asked.limit, turned=_turned(found, compared),
            )
        )  # fmt: skip
    return paragraphs


def measured(found: Results, rows: Sequence[Row], planned: int) -> Measured:
    """Return the goals, the tables and the sentences; `planned` is a number of data sets."""
    compared = compare(found)
    notes = [
        verdict(found, compared, planned),
        f"![{CAPTION}](figures/known_truth.png)",
        *behind(found, compared, rows),
    ]
    return Measured(goals(found, rows, planned), tables(found, compared, rows), notes)


CAPTION = "What nine methods find, promise and predict where the truth is known"
