"""What `known_truth.py` found, in tables, goals and words; it measures nothing."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from scipy import stats

from benchmarks.known_truth_results import BINS, SET, Estimate, Results, Row
from benchmarks.records import Goal, Table, at_least, at_most, table
from benchmarks.script import Measured

EXACT = {
    "pfcvm, exact": ("pfcvm_lp, printed", "pfcvm_lp, zoo's prior"),
    "rfvm, exact": ("rfvm_vb, printed", "rfvm_vb, zoo's prior"),
    "horseshoe, exact": (),
}
"""The exact posteriors, and the algorithms of the same model."""


# --- tables ---------------------------------------------------------------------------------------


def _pm(estimate: Estimate, digits: int = 2) -> str:
    value, error = estimate
    if not np.isfinite(value):
        return ""
    return (
        f"{value:.{digits}f} ± {error:.{digits}f}" if np.isfinite(error) else f"{value:.{digits}f}"
    )


def tables(found: Results, rows: Sequence[Row]) -> list[Table]:
    """Return the tables of the page."""
    return [_power(found), _probability(found), _reliability(found), _score(found),
            _factors(found), _fits(found, rows)]  # fmt: skip


def _power(found: Results) -> Table:
    listed = [
        {
            "method": m,
            "power at FDP 10 %": _pm(found.mean(m, "power_10")),
            "power at FDP 20 %": _pm(found.mean(m, "power_20")),
            "active among the first k": _pm(found.mean(m, "top")),
            "power of its own list": _pm(found.mean(m, "own_power")),
            "false in its own list": _pm(found.false(m, "own")),
        }
        for m in found.methods
    ]
    note = (
        "FDP is the false discovery proportion, and k the number of active features. The own list "
        "is what the algorithm selects; for an exact posterior P(active) > 1/2, for L1 every "
        "coefficient that is not zero. With 3 active features a list of at most 20 % false "
        "features has none, so both powers are equal there. ± is the standard error over data sets."
    )
    return table("Active features that are found", listed, note=note)


def _probability(found: Results) -> Table:
    listed = [
        {
            "method": m,
            "active features expected": _pm(found.mean(m, "expected_active"), 1),
            "P > 1/2: power": _pm(found.mean(m, "half_power")),
            "P > 1/2: false": _pm(found.false(m, "half")),
            "P > 1/2: false, expected": found.expected(m, "half"),
            "FDR 10 %: false": _pm(found.false(m, "fdr")),
            "FDR 10 %: false, expected": found.expected(m, "fdr"),
        }
        for m in found.judged
    ]
    true = float(found.of(found.methods[0]).index.get_level_values("active").to_numpy().mean())
    note = (
        f"The data sets have {true:.1f} active features on average. A share of false features is "
        "that of all lists together."
    )
    formats = dict.fromkeys(("P > 1/2: false, expected", "FDR 10 %: false, expected"), ".2f")
    return table("What P(active) promises", listed, formats, note)


def _reliability(found: Results) -> Table:
    bins = {m: found.bins(m) for m in found.judged}
    listed = [
        {"P(active)": f"{b / BINS:.1f} to {(b + 1) / BINS:.1f}"}
        | {m: f"{_pm(bins[m][b][2:])} ({bins[m][b][0]})" if bins[m][b][0] else "" for m in bins}
        for b in range(BINS)
    ]
    note = "The share of features that are active, and how many features are in the bin."
    return table("Reliability of P(active)", listed, note=note)


def _score(found: Results) -> Table:
    predicting = found.predicting
    listed = [
        {
            "method": m,
            "log score below the best": _pm(found.mean(m, "lost"), 3),
            "accuracy": _pm(found.mean(m, "accuracy"), 3),
        }
        for m in predicting
    ]
    best = found.mean(found.methods[0], "best_log_score")[0]
    note = (
        f"Per fresh row, in nats. The best classifier possible has {best:.3f} and an accuracy of "
        f"0.900; P(y = 1) = 1/2 has {-np.log(2.0):.3f}."
    )
    return table("Prediction of fresh rows", listed, note=note)


def levels(found: Results) -> list[tuple[str, float]]:
    """Return each factor with each of its levels."""
    return [(f, v) for f in SET[:-1] for v in sorted(found.frame[f].unique())]


def _factors(found: Results) -> Table:
    listed = []
    for where in levels(found):
        row: Row = {"data sets with": f"{where[0]} = {where[1]:g}"}
        row |= {m: _pm(found.mean(m, "power_20", where)) for m in found.methods}
        listed.append(row)
    return table("Power at a false discovery proportion of 20 %, by factor", listed)


def _fits(found: Results, rows: Sequence[Row]) -> Table:
    frame, listed = pd.DataFrame(rows), []
    for m in found.methods:
        own = frame[frame["method"] == m]
        listed.append(
            {
                "method": m,
                "fits": len(own),
                "failed": int((own["status"] == "failed").sum()),
                "not converged": int((own["status"] == "not_converged").sum()),
                "largest R-hat": own["rhat"].max(),
                "CPU s, median": own["cpu_seconds"].median(),
            }
        )
    return table("The fits", listed, {"largest R-hat": ".3f", "CPU s, median": ".1f"})


# --- goals ----------------------------------------------------------------------------------------


def goals(found: Results, rows: Sequence[Row], planned: int) -> list[Goal]:
    """Return the goals, which were set before the first fit."""
    out = [at_least("data sets that every method has fitted", found.sets, planned)]
    exact = [r for r in rows if r["method"] in EXACT]
    converged = np.mean([r["status"] == "finished" for r in exact])
    out.append(at_least("share of exact fits that converged", float(converged), 0.95))
    for m, algorithms in EXACT.items():
        if m not in found.methods:
            continue
        false, error = found.false(m, "fdr")
        text = f"{m}: false features in its lists FDR 10 %, less two standard errors"
        out.append(at_most(text, false - 2.0 * error, 0.1))
        for other in algorithms:
            if other in found.methods:
                gain, error = found.more(other, m, "lost")
                text = f"{m}: log score above {other}, in standard errors"
                out.append(at_least(text, gain / error if error else float("nan"), 2.0))
    return out


# --- in words -------------------------------------------------------------------------------------

ALARM = 0.05
"""Probability with which a difference is called clear where there is none."""
MORE = {
    1: "clearly more active features than",
    -1: "clearly fewer than",
    0: "neither clearly more nor clearly fewer than",
}
HIGHER = {
    1: "clearly above that of",
    -1: "clearly below that of",
    0: "neither clearly above nor clearly below that of",
}


def clear(estimate: Estimate, sets: int) -> int:
    """Return the sign of an estimate from so many data sets, 0 if its interval contains 0.

    The interval is Student's at 1 - `ALARM`. Data sets that do not differ at all, or a single one,
    have no interval.
    """
    value, error = estimate
    if sets < 2 or not error > 0.0:
        return 0
    return int(np.sign(value)) if abs(value) > stats.t.isf(ALARM / 2.0, sets - 1) * error else 0


def verdict(found: Results, planned: int) -> str:
    """Return the paragraph of the page; each number and each comparison is computed from rows."""
    parts = [_extent(found, planned), _found(found)]
    for model in ("pfcvm", "rfvm"):
        parts += _beside(found, model)
    return " ".join([*parts, *_kept(found)])


def _extent(found: Results, planned: int) -> str:
    if found.sets == planned:
        return f"All {planned} data sets, in {found.cells} cells, were fitted by every method."
    level = {f: [v for name, v in levels(found) if name == f] for f in SET[:-1]}
    alone = [f"{f} = {v[0]:g}" for f, v in level.items() if len(v) == 1]
    where = f", all with {_listed(alone)}" if alone else ""
    return (
        f"**Unfinished: {found.sets} of {planned} data sets, in {found.cells} cells{where}, were "
        "fitted by every method. What follows is about these.**"
    )


def _listed(parts: Sequence[str]) -> str:
    return ", ".join(parts[:-1]) + f" and {parts[-1]}" if len(parts) > 1 else "".join(parts)


NAMES = {
    "pfcvm_lp, printed": "`pfcvm_lp` as printed",
    "pfcvm_lp, zoo's prior": "`pfcvm_lp` under the zoo's prior",
    "pfcvm, exact": "the exact posterior of PFCVM",
    "rfvm_vb, printed": "`rfvm_vb` as printed",
    "rfvm_vb, zoo's prior": "`rfvm_vb` under the zoo's prior",
    "rfvm, exact": "the exact posterior of RFVM",
    "horseshoe, exact": "the horseshoe",
}


def name_of(method: str) -> str:
    """Return what a sentence calls a method."""
    return NAMES.get(method, method)


def _found(found: Results) -> str:
    """Say what each method finds."""
    said = []
    for m in found.methods:
        value, error = found.mean(m, "power_20")
        said.append(f"{name_of(m)} {100.0 * value:.0f} ± {100.0 * error:.0f} %")
    return (
        "Read from the top until one feature in five is false, the rankings hold this share of the "
        f"active features: {_listed(said)}."
    )


def _beside(found: Results, model: str) -> list[str]:
    """Say what the exact posterior finds and predicts beside the algorithms and the yardsticks."""
    exact = f"{model}, exact"
    if exact not in found.methods:
        return []
    others = [m for m in (*EXACT[exact], "L1", "stability selection") if m in found.methods]
    power = {m: found.more(exact, m, "power_20") for m in others}
    score = {m: found.more(m, exact, "lost") for m in others if m in found.predicting}
    name = model.upper()
    return [
        f"Data set by data set, the exact posterior of {name} finds "
        + _differences(power, MORE, 100.0, found.sets)
        + ".",
        "Its log score on fresh rows is " + _differences(score, HIGHER, 1.0, found.sets) + ".",
    ]


def _differences(
    estimates: Mapping[str, Estimate], words: Mapping[int, str], scale: float, sets: int
) -> str:
    """Return differences from other methods in words, by their sign."""
    digits, unit = (0, " points") if scale > 1.0 else (2, "")
    groups = []
    for sign in words:
        said = [
            f"{name_of(m)} ({scale * value:+.{digits}f} ± {scale * error:.{digits}f}{unit})"
            for m, (value, error) in estimates.items()
            if clear((value, error), sets) == sign
        ]
        if said:
            groups.append(f"{words[sign]} {_listed(said)}")
    return "; ".join(groups)


KEPT = {
    1: "clearly more are false than was promised by",
    -1: "clearly fewer are false than was promised by",
    0: "neither clearly more nor clearly fewer are false than was promised by",
}


def _kept(found: Results) -> list[str]:
    """Say whether the features with P(active) > 1/2 are as often active as was promised."""
    said: dict[int, list[str]] = {sign: [] for sign in KEPT}
    for m in found.judged:
        (share, error), promised = found.false(m, "half"), found.expected(m, "half")
        if np.isfinite(share) and np.isfinite(promised):
            spread = f" ± {100.0 * error:.0f}" if error > 0.0 else ""
            said[clear((share - promised, error), found.sets)].append(
                f"{name_of(m)} ({100.0 * share:.0f}{spread} %, promised {100.0 * promised:.0f} %)"
            )
    groups = [f"{KEPT[sign]} {_listed(names)}" for sign, names in said.items() if names]
    return [f"Among the features with P(active) above 1/2, {'; '.join(groups)}."] if groups else []


# --- all ------------------------------------------------------------------------------------------


def measured(found: Results, rows: Sequence[Row], planned: int) -> Measured:
    """Return the goals, the tables and the sentences; `planned` is a number of data sets."""
    notes = [verdict(found, planned), f"![{CAPTION}](figures/known_truth.png)", MEANING]
    return Measured(goals(found, rows, planned), tables(found, rows), notes)


CAPTION = "What nine methods find, promise and predict where the truth is known"
MEANING = (
    "± is a standard error over data sets. A difference is called clear if its interval at "
    f"{100.0 * (1.0 - ALARM):.0f} %, from differences data set by data set, does not contain 0; "
    "no correction is made for the number of comparisons. Means are over data sets, so they hold "
    "for this choice of cells and no other. The sparse prior of PFCVM and RFVM expects ten active "
    "features in every cell, where 3 or 10 are. The docstring of the script states the truth, the "
    "methods and the measures; they were fixed before the first fit."
)
