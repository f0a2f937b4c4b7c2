"""The page of the matrix: five sentences, the figure, one table a model; all from `matrix.csv`."""

import inspect
import math
from collections.abc import Iterator, Sequence

import pandas as pd

from .declared import AGAIN, BLOCKS, CELLS, EXACT, FLAT, OWN, PRIORS
from .numbers import NAMES

OWN_SETTINGS = "paper's, own settings"
METHODS = ("paper's, this prior", "ADVI", "Laplace")
"""What approximates the block's own posterior; XOLON is another estimator."""
CLOSE = 0.02
"""Of P(y = 1): up to here the verdicts call it good (`scoring/statistics/prediction.py`)."""
_SAID = {METHODS[0]: "the paper's algorithm"}
PAGE, FIGURE = "MATRIX.md", "matrix.png"
_BLOCK = ["model", "kernel", "data", "prior"]


# --- what became of a posterior -------------------------------------------------------------------


def fate(row: pd.Series) -> str:
    """Return in a few words what a method made of the posterior.

    close       P(y = 1) within 0.02 on average, sd of eta 0.8 to 1.25 of the exact one
    P right     P(y = 1) within 0.02, but not the sd of eta
    a point     P(y = 1) off by more, and no sd: the method returns one state
    narrow      P(y = 1) off by more, and the sd of eta below half of the exact one
    wide        P(y = 1) off by more, and the sd above twice the exact one
    shifted     P(y = 1) off by more, with an sd between these
    at zero     beside any of these: fewer than a twentieth of the active features of the exact
                posterior, where that has one or more
    few active  beside any of these: fewer than half of them
    """
    off, ratio = row["p_off"], row["eta_sd_ratio"]
    if math.isnan(off):
        return ""
    if off <= CLOSE:
        word = "close" if 0.8 <= ratio <= 1.25 else "P right"
    elif math.isnan(ratio):
        word = "a point"
    else:
        word = "narrow" if ratio < 0.5 else "wide" if ratio > 2.0 else "shifted"
    share = row["active"] / row["active_exact"] if row["active_exact"] >= 1.0 else 1.0
    return word + (", at zero" if share < 0.05 else ", few active" if share < 0.5 else "")


# --- five sentences -------------------------------------------------------------------------------


def sentences(frame: pd.DataFrame) -> list[str]:
    """Return the findings, computed from the rows, on blocks whose exact fit has converged."""
    exact = frame[(frame["cell"] == EXACT) & (frame["prior"] != FLAT)]
    good = exact["status"] == "finished"
    held = frame.merge(exact[good][_BLOCK], on=_BLOCK)
    again = held[held["cell"] == AGAIN]["p_off"]
    out = [
        f"Of {len(exact)} posteriors `exact` converged on {int(good.sum())}; the others are marked "
        "and are in no sentence. Between two runs with different seeds P(y = 1) of the training "
        f"rows differs by {again.median():.2g} in the median, and by {again.max():.2g} at most: "
        "that is the Monte Carlo noise of P(y = 1) in the exact column."
    ]
    for prior in ("sparse", "dense"):
        parts = [
            said
            for model in ("pfcvm", "rfvm")
            if (said := _ranges(held[(held["prior"] == prior) & (held["model"] == model)], model))
        ]
        if parts:
            out.append(f"Under the {prior} prior P(y = 1) is off, for {'; '.join(parts)}.")
    parts = [
        said
        for model in ("jcfo", "sparse_probit", "fsklr", "sklr")
        if (said := _ranges(held[held["model"] == model], model))
    ]
    if parts:
        out.append(f"Under the priors of their papers it is off, for {'; '.join(parts)}.")
    pairs = pd.concat([_paired(held, name, f"{name}, more") for name in METHODS])
    if len(pairs):
        nearer = pairs["p_off_a"] - pairs["p_off_b"]
        same = int((nearer.abs() <= 0.005).sum())
        out.append(
            "A second setting (more starts or iterations, another update, for ADVI twenty "
            "directions of correlation) comes to the same P(y = 1) within 0.005 in "
            f"{same} of {len(pairs)} cells, and nearer by more than {CLOSE} in "
            f"{int((nearer > CLOSE).sum())}."
        )
    return out


def _ranges(rows: pd.DataFrame, model: str) -> str:
    """Return how far each method is off on the data sets of a model, from the least to the most."""
    said = []
    for name in METHODS:
        off = rows[rows["cell"] == name]["p_off"].dropna()
        if len(off):
            said.append(f"by {_from_to(off)} with {_SAID.get(name, name)}")
    if not said:
        return ""
    exact = rows[rows["cell"] == EXACT]
    mine = rows[rows["cell"].isin(METHODS) & rows["p_off"].notna()]
    words = [fate(row) for _, row in mine.iterrows()]
    zero = sum("at zero" in word for word in words)
    few = sum("few active" in word for word in words)
    count = len(exact)
    base = _from_to(exact["p_off_base"])
    return (
        f"{model} ({count} posterior{'s' if count > 1 else ''}), {', '.join(said)} (a constant: by "
        f"{base}), with no active feature left in {zero} and fewer than half in {few} more of "
        f"{len(mine)} cells"
    )


def _from_to(values: pd.Series) -> str:
    low, high = f"{values.min():.2f}", f"{values.max():.2f}"
    return low if low == high else f"{low} to {high}"


def _paired(frame: pd.DataFrame, a: str, b: str) -> pd.DataFrame:
    first, second = (frame[frame["cell"] == cell] for cell in (a, b))
    both = first.merge(second, on=_BLOCK, suffixes=("_a", "_b"))
    return both[both["p_off_a"].notna() & both["p_off_b"].notna()]


# --- the page -------------------------------------------------------------------------------------

_ABOUT = """
What each approximation does to the posterior, under the same prior, on all rows of the data.
`ardvark reproduce matrix` makes this page from `matrix.csv`, where every number stands.

`eta` is the decision value of a row, in logits (JCFO and sparse probit: in standard deviations of a
probit). P(y = 1) is averaged over draws, at the training rows. A feature is active in a draw if eta
would change by more than 0.1 without it (standard deviation over the rows). `exact` runs until
everything that may be quoted has converged: R-hat below 1.01, 1000 effective draws; the P(active)
of a feature has a limit with its own noise, so the worst R-hat may be larger.
"""
_FIGURE = """
A row is a model on a data set, a strip a method, a mark a prior. Vertical lines are the limits up
to which the verdicts call P(y = 1) good and usable, and an sd good. A grey tick is what a second
exact run differs by. An open mark stands beside an exact fit that has not converged, an arrow at
the border for a value beyond it, a cross at the left border for a method without an sd. "own
settings" has another target, so its distance includes the change of prior.
"""


def page(frame: pd.DataFrame, why: str = "") -> str:
    """Return the whole page; `why` is the section of the examples (`mechanisms.told`)."""
    blocks = frame.drop_duplicates(_BLOCK)
    priors = [name for name in PRIORS if name in set(frame["prior"])]
    parts = [
        "# The matrix",
        *(" ".join(part.split()) for part in _ABOUT.strip().split("\n\n")),
        f"{len(blocks)} of {len(BLOCKS)} blocks are there; the same command computes the rest.",
        "\n".join(f"- {sentence}" for sentence in sentences(frame)),
        f"![P(y = 1) off by, and sd ratio, of each method on each posterior]({FIGURE})",
        " ".join(_FIGURE.split()),
        *([why] if why else []),
        "## The priors",
        "\n".join(f"- `{name}`: {PRIORS[name]}." for name in priors),
        "## How to read the tables",
        "Each cell has the mean difference of P(y = 1), the ratio of the sds of eta (median over "
        "rows), and words. A dagger marks a fit that says of itself that it did not converge. "
        "Beside an exact fit that has not converged there are no words. `constant` is the answer "
        "that ignores the features: the share of y = 1.",
        _words(),
        *(_table(frame, model) for model in CELLS if model in set(frame["model"])),
        *_own(frame),
        "## The numbers of `matrix.csv`",
        "\n".join(f"- `{name}`: {meaning}" for name, meaning in NAMES.items()),
        "## Cost",
        f"{len(blocks)} of {len(BLOCKS)} blocks, {len(frame)} cells, "
        f"{frame['seconds'].sum() / 3600.0:.1f} hours of fitting. Seconds were measured beside "
        "other work and are upper bounds.",
    ]
    return "\n\n".join(parts) + "\n"


def _words() -> str:
    """Return the words of `fate` and what they mean, as a list."""
    said: list[str] = []
    for line in inspect.cleandoc(fate.__doc__ or "").splitlines()[2:]:
        word, meaning = line[:12].strip(), line[12:].strip()
        if word:
            said.append(f"- **{word}**: {meaning}")
        else:
            said[-1] += f" {meaning}"
    return "\n".join(said)


def _table(frame: pd.DataFrame, model: str) -> str:
    mine = frame[frame["model"] == model]
    apart = (EXACT, AGAIN, OWN_SETTINGS)
    labels = [c.label for c in CELLS[model] if c.label not in apart]
    head = ["data", "prior", "exact", "R-hat: eta, worst", "active: exact (prior)", "noise",
            "constant", *labels]  # fmt: skip
    lines = [_line(head), _line(["---"] * len(head))]
    for key, block in mine.groupby(["kernel", "data", "prior"], sort=False):
        kernel, data, prior = map(str, key)
        cells = {row["cell"]: row for _, row in block.iterrows()}
        exact = cells[EXACT]
        name = f"{data} ({kernel})" if kernel else data
        if exact["status"] == "improper":
            lines.append(_line([name, prior, "improper", *[""] * (len(head) - 3)]))
            continue
        again, converged = cells[AGAIN], exact["status"] == "finished"
        told = f"{exact['sampler']}, {exact['seconds']:.0f} s"
        known = [
            name, prior, told if converged else f"{told}, **not converged**",
            f"{exact['rhat_eta']:.3f}, {exact['rhat']:.3f}",
            f"{exact['active']:.1f} ({again['active_prior']:.1f})", f"{again['p_off']:.3f}",
            f"{exact['p_off_base']:.3f}",
        ]  # fmt: skip
        lines.append(_line(known + [_cell(cells[label], converged) for label in labels]))
    return f"## {model}\n\n" + "\n".join(lines)


def _cell(row: pd.Series, converged: bool) -> str:
    if row["status"] == "absent":
        return "does not apply"
    if math.isnan(row["p_off"]):
        return str(row["status"])
    ratio = "" if math.isnan(row["eta_sd_ratio"]) else f", {row['eta_sd_ratio']:.2g}"
    mark = "" if row["status"] == "finished" else "†"
    return f"{row['p_off']:.3f}{ratio}{mark} {fate(row) if converged else ''}".rstrip()


def _own(frame: pd.DataFrame) -> Iterator[str]:
    """Yield the section on the papers' algorithms at their own settings."""
    rows = frame[(frame["cell"] == OWN_SETTINGS) & frame["p_off"].notna()]
    if not len(rows):
        return
    yield "## The papers' algorithms at their own settings"
    yield (
        "They aim at another posterior than the blocks', or at none that exists. These distances "
        "include the change of prior, and are no errors of an approximation."
    )
    yield "\n".join(f"- {model}: {OWN[model]}." for model in CELLS if model in set(rows["model"]))
    head = ["model", "data", "active", "log score", "P(y = 1) differs by, and sd ratio"]
    lines = [_line(head), _line(["---"] * len(head))]
    for key, mine in rows.groupby(["model", "kernel", "data"], sort=False):
        model, kernel, data = map(str, key)
        first = mine.iloc[0]
        beside = [f"{row['prior']}: {_cell(row, converged=False)}" for _, row in mine.iterrows()]
        lines.append(
            _line([model, f"{data} ({kernel})" if kernel else data, f"{first['active']:.1f}",
                   f"{first['log_score']:.2f}", "; ".join(beside)])
        )  # fmt: skip
    yield "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
