"""The page of the matrix: five sentences, the figure, one table a model; all from `matrix.csv`."""

import inspect
import math
from collections.abc import Sequence

import pandas as pd

from .declared import AGAIN, BLOCKS, CELLS, EXACT, FLAT
from .numbers import NAMES

GENERIC = ("paper's, this prior", "ADVI", "Laplace")
PRINTED = "paper's, as printed"
CLOSE, FAR = 0.02, 0.15
"""Of P(y = 1): the limits of the verdicts (`scoring/statistics/prediction.py`)."""
PAGE, FIGURE = "MATRIX.md", "matrix.png"


# --- what became of a posterior -------------------------------------------------------------------


def fate(row: pd.Series) -> str:
    """Return in a word what a method made of the posterior.

    close       P(y = 1) within 0.02 on average, sds of eta within a quarter
    at zero     fewer than half as many active features as the exact posterior, where that has two
                or more, and P(y = 1) off
    a point     one state, without any sd
    narrow      sds of eta below half of the exact ones
    wide        above twice
    elsewhere   sds are right within a factor of two, but P(y = 1) is off by more than 0.02, or the
                means by more than one sd
    rough       none of these
    """
    off, ratio, error = row["p_off"], row["eta_sd_ratio"], row["eta_error"]
    if math.isnan(off):
        return ""
    if off <= CLOSE and 0.8 <= ratio <= 1.25:
        return "close"
    if row["active_exact"] >= 2.0 and row["active"] < 0.5 * row["active_exact"] and off > CLOSE:
        return "at zero"
    if math.isnan(ratio):
        return "a point"
    if ratio < 0.5 or ratio > 2.0:
        return "narrow" if ratio < 0.5 else "wide"
    return "elsewhere" if off > CLOSE or error > 1.0 else "rough"


# --- five sentences -------------------------------------------------------------------------------


def sentences(frame: pd.DataFrame) -> list[str]:
    """Return the findings, each computed from the rows: median over posteriors, and counts."""
    exact = frame[(frame["cell"] == EXACT) & (frame["prior"] != FLAT)]
    good = exact["status"] == "finished"
    held = _beside(frame, exact[good])
    again = held[held["cell"] == AGAIN]
    out = [
        f"Of {len(exact)} posteriors `exact` converged on {int(good.sum())}; a second run with "
        f"another seed has P(y = 1) off by {_middle(again['p_off'])} in the median and "
        f"{again['p_off'].max():.3f} at most, and that is the noise of every other number."
    ]
    for prior in ("sparse", "dense"):
        rows = held[held["prior"] == prior]
        if len(rows):
            said = [
                f"{name} {_middle(mine['p_off'])} (sd ratio {_middle(mine['eta_sd_ratio'])})"
                for name in GENERIC
                if (mine := rows[rows["cell"] == name])["p_off"].notna().any()
            ]
            mine = rows[rows["cell"].isin(GENERIC) & rows["p_off"].notna()]
            zero = sum(fate(row) == "at zero" for _, row in mine.iterrows())
            out.append(
                f"Under the {prior} prior of PFCVM and RFVM, P(y = 1) is off by, in the median: "
                f"{', '.join(said)}; in {zero} of {len(mine)} cells the approximation sits at zero."
            )
    pairs = _paired(held, "paper's, this prior", PRINTED)
    if len(pairs):
        worse = int((pairs["p_off_b"] > pairs["p_off_a"]).sum())
        out.append(
            f"As printed, the papers' algorithms are off by {_middle(pairs['p_off_b'])} in the "
            f"median, and by {_middle(pairs['p_off_a'])} under the prior that they are compared "
            f"with; the printed form is the farther one in {worse} of {len(pairs)} cells."
        )
    more = pd.concat([_paired(held, name, f"{name}, more") for name in GENERIC], ignore_index=True)
    if len(more):
        helped = int((more["p_off_a"] - more["p_off_b"] > CLOSE).sum())
        out.append(
            f"A second setting, with more starts, iterations or directions, brings P(y = 1) nearer "
            f"by more than {CLOSE} in {helped} of {len(more)} cells."
        )
    return out


def _beside(frame: pd.DataFrame, exact: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the blocks of these exact fits."""
    keys = ["model", "kernel", "data", "prior"]
    return frame.merge(exact[keys], on=keys)


def _paired(frame: pd.DataFrame, a: str, b: str) -> pd.DataFrame:
    keys = ["model", "kernel", "data", "prior"]
    first, second = (frame[frame["cell"] == cell] for cell in (a, b))
    both = first.merge(second, on=keys, suffixes=("_a", "_b"))
    return both[both["p_off_a"].notna() & both["p_off_b"].notna()]


def _middle(values: pd.Series) -> str:
    return f"{values.median():.2g}" if values.notna().any() else "not known"


# --- tables ---------------------------------------------------------------------------------------


def page(frame: pd.DataFrame, why: str = "") -> str:
    """Return the whole page; `why` is the section of the examples (`mechanisms.told`)."""
    blocks = frame.drop_duplicates(["model", "kernel", "data", "prior"])
    hours = frame["seconds"].sum() / 3600.0
    parts = [
        "# The matrix",
        "What each approximation does to the posterior, under the same prior, on all rows of the "
        "data. Made by `ardvark reproduce matrix` from `matrix.csv`, where every number stands.",
        "\n".join(f"- {sentence}" for sentence in sentences(frame)),
        f"![{FIGURE}]({FIGURE})",
        "A row is a model on a data set, a strip a method, a mark a prior. Lines are the limits of "
        "the verdicts; a grey bar is what a second exact run differs by; an open mark stands "
        "beside an exact fit that has not converged.",
        *([why] if why else []),
        "## How to read the tables",
        "Each cell has the mean difference of P(y = 1), the ratio of the sds of eta, and a word:",
        _words(),
        *(_table(frame, model) for model in CELLS if model in set(frame["model"])),
        "## The numbers of `matrix.csv`",
        "\n".join(f"- `{name}`: {meaning}" for name, meaning in NAMES.items()),
        "## Cost",
        f"{len(blocks)} of {len(BLOCKS)} blocks, {len(frame)} cells, {hours:.1f} hours of fitting. "
        "Seconds were measured beside other work and are upper bounds.",
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
    labels = [c.label for c in CELLS[model] if c.label not in (EXACT, AGAIN)]
    head = ["data", "prior", "exact", "active: exact (prior)", "floor", *labels]
    lines = [_line(head), _line(["---"] * len(head))]
    for key, block in mine.groupby(["kernel", "data", "prior"], sort=False):
        kernel, data, prior = map(str, key)
        cells = {row["cell"]: row for _, row in block.iterrows()}
        exact = cells[EXACT]
        name = f"{data} ({kernel})" if kernel else data
        if exact["status"] == "improper":
            lines.append(_line([name, prior, "improper", *[""] * (len(head) - 3)]))
            continue
        again = cells[AGAIN]
        counted = f"{exact['active']:.1f} ({again['active_prior']:.1f})"
        told = f"{exact['sampler']}, {exact['seconds']:.0f} s"
        if exact["status"] != "finished":
            told += f", **R-hat {exact['rhat']:.2f}**"
        lines.append(
            _line([name, prior, told, counted, f"{again['p_off']:.3f}"]
                  + [_cell(cells[label]) for label in labels])
        )  # fmt: skip
    return f"## {model}\n\n" + "\n".join(lines)


def _cell(row: pd.Series) -> str:
    if row["status"] == "absent":
        return "does not apply"
    if math.isnan(row["p_off"]):
        return f"{row['status']}"
    ratio = "" if math.isnan(row["eta_sd_ratio"]) else f", {row['eta_sd_ratio']:.2g}"
    return f"{row['p_off']:.3f}{ratio} {fate(row)}"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
