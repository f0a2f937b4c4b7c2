"""The page of the matrix: five sentences, the figure, one table a model; all from `matrix.csv`."""

import inspect
import math
from collections.abc import Iterator, Sequence

import pandas as pd

from .declared import AGAIN, BLOCKS, CELLS, EXACT, FLAT, MORE, OTHER, OTHER_SAMPLER, OWN, PRIORS
from .numbers import NAMES

OWN_SETTINGS = "paper's, own settings"
METHODS = ("paper's, this prior", "ADVI", "Laplace")
"""What approximates the block's own posterior; XOLON is another estimator."""
CLOSE, CLOSE_WORST = 0.02, 0.1
"""Of P(y = 1): on average, up to which the verdicts call it good
(`scoring/statistics/prediction.py`), and of the worst row."""
_SAID = {METHODS[0]: "the paper's algorithm"}
PAGE, FIGURE = "MATRIX.md", "matrix.png"
_BLOCK = ["model", "kernel", "data", "prior"]


# --- what became of a posterior -------------------------------------------------------------------


def fate(row: pd.Series) -> str:
    """Return in a few words what a method made of the posterior.

    close       P(y = 1) within 0.02 on average and 0.1 in every row, width of eta 0.8 to 1.25 of
                the exact one
    P close     P(y = 1) within 0.02 on average, but not the rest
    a point     P(y = 1) off by more, and no width: the method returns one state
    narrow      P(y = 1) off by more, and the width of eta below half of the exact one
    wide        P(y = 1) off by more, and the width above twice the exact one
    shifted     P(y = 1) off by more, with a width between these
    at zero     beside any of these, where some feature is more likely active than not: fewer than
                a twentieth of the active features of the exact posterior
    few active  the same: fewer than half of them
    many active the same: more than twice as many
    """
    off, ratio = row["p_off"], row["eta_width"]
    if math.isnan(off):
        return ""
    if off <= CLOSE:
        right = 0.8 <= ratio <= 1.25 and row["p_worst"] <= CLOSE_WORST
        word = "close" if right else "P close"
    elif math.isnan(ratio):
        word = "a point"
    else:
        word = "narrow" if ratio < 0.5 else "wide" if ratio > 2.0 else "shifted"
    if not row["p_active_most"] > 0.5:
        return word
    share = row["active"] / row["active_exact"]
    beside = "at zero" if share < 0.05 else "few active" if share < 0.5 else ""
    return ", ".join(filter(None, [word, beside or ("many active" if share > 2.0 else "")]))


# --- five sentences -------------------------------------------------------------------------------


def sentences(frame: pd.DataFrame) -> list[str]:
    """Return the findings, computed from the rows, on blocks whose exact fit has converged."""
    exact = frame[(frame["cell"] == EXACT) & (frame["prior"] != FLAT)]
    good = exact["status"] == "finished"
    held = frame.merge(exact[good][_BLOCK], on=_BLOCK)
    again, other = (held[held["cell"] == label] for label in (AGAIN, OTHER_SAMPLER))
    said = (
        f"`exact` converged on {int(good.sum())} of {len(exact)} posteriors; the others are marked "
        "and are in no sentence. P(y = 1) of two runs with different seeds differs, averaged over "
        f"the training rows, by {again['p_off'].median():.4f} (the median posterior) to "
        f"{again['p_off'].max():.4f}, and in the worst single row by {again['p_worst'].max():.3f}"
    )
    if len(other):
        said += (
            f"; of the two exact samplers, on the {_count(len(other), 'posterior')} where both "
            f"ran, by at most {other['p_off'].max():.4f}, and {other['p_worst'].max():.3f}"
        )
    out = [f"{said}."]
    for prior in ("sparse", "dense"):
        parts = [
            told
            for model in ("pfcvm", "rfvm")
            if (told := _ranges(held[(held["prior"] == prior) & (held["model"] == model)], model))
        ]
        if parts:
            out.append(f"Under the {prior} prior P(y = 1) is off, for {'; for '.join(parts)}.")
    parts = [
        told
        for model in ("jcfo", "sparse_probit", "fsklr", "sklr")
        if (told := _ranges(held[held["model"] == model], model))
    ]
    if parts:
        out.append(f"Under the hierarchies of the papers it is off, for {'; for '.join(parts)}.")
    if told := _how(held):
        out.append(told)
    return out


def _ranges(rows: pd.DataFrame, model: str) -> str:
    """Return how far each method is off on the data sets of a model, from the least to the most."""
    said: list[str] = []
    for name in METHODS:
        mine = rows[(rows["cell"] == name) & rows["p_off"].notna()]
        if len(mine):
            share = mine["p_off"] / mine["p_off_base"]
            beside = " %" if said else " % of the distance of a constant"
            said.append(
                f"by {_from_to(mine['p_off'], '.2f')} with {_SAID.get(name, name)} "
                f"({_from_to(100.0 * share, '.0f')}{beside})"
            )
    count = len(rows[rows["cell"] == EXACT])
    return f"{model} ({_count(count, 'posterior')}), {', '.join(said)}" if said else ""


def _how(held: pd.DataFrame) -> str:
    """Return in which direction the methods err: towards 1/2, too narrow, without features."""
    mine = held[held["cell"].isin(METHODS) & held["p_off"].notna()]
    if not len(mine):
        return ""
    towards = int((mine["slope"] < 0.8).sum())
    said = (
        f"Of these {len(mine)} fits {towards} pull P(y = 1) towards one half or a constant (slope "
        "of its logit on the exact one below 0.8)"
    )
    widths = []
    for name in METHODS:
        ratio = mine[mine["cell"] == name]["eta_width"].dropna()
        if len(ratio):
            narrow, wide = int((ratio < 0.8).sum()), int((ratio > 1.25).sum())
            widths.append(
                f"with {_SAID.get(name, name)} {narrow} too narrow and {wide} too wide of "
                f"{len(ratio)}"
            )
    said += f". Of eta's 90 % intervals are {', '.join(widths)}" if widths else ""
    sure = mine[mine["p_active_most"] > 0.5]
    if len(sure):
        words = [fate(row) for _, row in sure.iterrows()]
        zero, few = (sum(word in w for w in words) for word in ("at zero", "few active"))
        said += (
            f". Where some feature is more likely active than not ({_count(len(sure), 'fit')}), "
            f"{zero} keep less than a twentieth of the active features and {few} more less than "
            "half"
        )
    return f"{said}."


def chances(frame: pd.DataFrame) -> list[str]:
    """Return a line a method: what more effort, another seed and another form change."""
    out = []
    for name in METHODS:
        for ending in (MORE, OTHER):
            rows = frame[frame["cell"] == name + ending]
            pairs = rows.merge(frame[frame["cell"] == name], on=_BLOCK, suffixes=("", "_first"))
            pairs = pairs[pairs["p_between"].notna() & (pairs["prior"] != FLAT)]
            if not len(pairs):
                continue
            nearer = pairs["p_off_first"] - pairs["p_off"]
            out.append(
                _line(
                    [
                        name,
                        ending.removeprefix(", "),
                        str(len(pairs)),
                        f"{pairs['p_between'].median():.3f}",
                        f"{pairs['p_between'].max():.3f}",
                        str(int((nearer > CLOSE).sum())),
                        str(int((nearer < -CLOSE).sum())),
                    ]
                )
            )
    return out


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _from_to(values: pd.Series, digits: str) -> str:
    low, high = f"{values.min():{digits}}", f"{values.max():{digits}}"
    return low if low == high else f"{low} to {high}"


# --- the page -------------------------------------------------------------------------------------

_ABOUT = """
What each approximation does to the posterior, under the same prior, on all rows of the data.
`ardvark reproduce matrix` makes this page from `matrix.csv`, where every number stands.

`eta` is the decision value of a row, in logits (JCFO and sparse probit: in standard deviations of a
probit). P(y = 1) is averaged over draws, at the training rows, so nothing here is a prediction.
A feature is active in a draw if eta would change by more than 0.1 without it (standard deviation
over the rows). The papers' algorithms for JCFO, sparse probit and XOLON look for a mode, and
FS-SKLR's for one good state: they are held to the posterior mean of P(y = 1) all the same. PFCVM's
own prior uses the labels (each sample weight has the sign of its row), so its "prior" and its
training P(y = 1) are not those of a model that has not seen them.

`exact` runs until everything that may be quoted has 1000 effective draws and an R-hat below 1.01.
P(active) of a feature has a limit with its own noise, so the worst R-hat may be larger. That it is
the posterior rests on more than these runs: calibration by simulation and joint tests
([Calibration](../CALIBRATION.md)), `exact` beside runs ten times longer ([Speed](../SPEED.md)), and
both samplers on the same genes ([Priors](../PRIORS.md)).
"""
_FIGURE = """
A row is a model on a data set, a mark a prior. Left: the distance of P(y = 1) from the exact one,
divided by that of a constant (the share of y = 1): at 0 it is the exact posterior, from 1 on the
features are of no use. Right: how wide eta's 90 % interval is beside the exact one, between the
limits 0.8 and 1.25. Small ticks are a second exact run. An open mark stands beside an exact fit
that has not converged. A mark at the border, with an arrow, lies beyond it.
"""
_CHANCES = """
"more" is more effort under another seed: for the papers' algorithms more starts or sweeps, or
another update, for ADVI twenty directions of correlation, for Laplace four times as many starts.
"other form" is the same method on the same posterior in other coordinates: with the precisions
explicit instead of integrated out or the other way round, and for RFVM with the latent noise
integrated out. Every posterior counts here, whether `exact` converged or not. The columns are the
mean difference of P(y = 1) from the first setting (its median and largest over posteriors), and
how often the second is nearer to the exact one by more than 0.02, or farther.
"""


def page(frame: pd.DataFrame, why: str = "") -> str:
    """Return the whole page; `why` is the section of the examples (`mechanisms.told`)."""
    blocks = frame.drop_duplicates(_BLOCK)
    priors = [name for name in PRIORS if name in set(frame["prior"])]
    head = ["method", "setting", "posteriors", "differs by: median", "largest", "nearer", "farther"]
    settings = chances(frame)
    parts = [
        "# The matrix",
        *(" ".join(part.split()) for part in _ABOUT.strip().split("\n\n")),
        f"{len(blocks)} of {len(BLOCKS)} blocks are there; the same command computes the rest.",
        "\n".join(f"- {sentence}" for sentence in sentences(frame)),
        f"![P(y = 1) off by, and width of eta, of each method on each posterior]({FIGURE})",
        " ".join(_FIGURE.split()),
        *(["## Was it given a chance?", " ".join(_CHANCES.split())] if settings else []),
        *(["\n".join([_line(head), _line(["---"] * len(head)), *settings])] if settings else []),
        *([why] if why else []),
        "## The priors",
        "\n".join(f"- `{name}`: {PRIORS[name]}." for name in priors),
        "## How to read the tables",
        "Each cell has the mean difference of P(y = 1) and that of the worst row, after the "
        "semicolon the ratio of the widths of eta's 90 % intervals (median over rows), and words. "
        "A dagger marks a fit that says of itself that it did not converge. Beside an exact fit "
        "that has not converged there are no words. `constant` is the distance of the answer that "
        "ignores the features, the share of y = 1; `noise` that of a second exact run. `active` "
        "has the exact posterior's mean number of active features, in brackets the prior's and the "
        "largest P(active) of any feature. Settings with more effort and in other forms are in "
        "`matrix.csv`.",
        _words(),
        *(_table(frame, model) for model in CELLS if model in set(frame["model"])),
        *_own(frame),
        "## The numbers of `matrix.csv`",
        "\n".join(f"- `{name}`: {meaning}" for name, meaning in NAMES.items()),
        "## Cost",
        f"{len(blocks)} of {len(BLOCKS)} blocks, {len(frame)} cells, "
        f"{frame['seconds'].sum() / 3600.0:.1f} hours of fitting, one core a fit. Seconds were "
        "measured beside other work and are upper bounds. Each row has the commit that made it.",
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
    labels = [
        c.label
        for c in CELLS[model]
        if c.label not in (EXACT, AGAIN, OWN_SETTINGS) and not c.label.endswith((MORE, OTHER))
    ]
    head = ["data", "prior", "exact", "R-hat: eta, worst", "active (prior; largest P)", "noise",
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
        if exact["divergences"] > 0:
            told += f", {_count(int(exact['divergences']), 'divergence')}"
        known = [
            name, prior, told if converged else f"{told}, **not converged**",
            f"{exact['rhat_eta']:.3f}, {exact['rhat']:.3f}",
            f"{exact['active']:.1f} ({again['active_prior']:.1f}; {exact['p_active_most']:.2f})",
            f"{again['p_off']:.3f}", f"{exact['p_off_base']:.3f}",
        ]  # fmt: skip
        lines.append(_line(known + [_cell(cells[label], converged) for label in labels]))
    return f"## {model}\n\n" + "\n".join(lines)


def _cell(row: pd.Series, converged: bool) -> str:
    if row["status"] == "absent":
        return "does not apply"
    if math.isnan(row["p_off"]):
        return str(row["status"])
    ratio = "" if math.isnan(row["eta_width"]) else f"; {row['eta_width']:.2g}"
    mark = "" if row["status"] == "finished" else "†"
    told = f"{row['p_off']:.3f}, {row['p_worst']:.2f}{ratio}{mark}"
    return f"{told} {fate(row) if converged else ''}".rstrip()


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
    head = ["model", "data", "active", "mean log probability of the training labels",
            "P(y = 1) differs by, worst row; width of eta"]  # fmt: skip
    lines = [_line(head), _line(["---"] * len(head))]
    for key, mine in rows.groupby(["model", "kernel", "data"], sort=False):
        model, kernel, data = map(str, key)
        first = mine.iloc[0]
        beside = [f"{row['prior']}: {_cell(row, converged=False)}" for _, row in mine.iterrows()]
        fit = [f"{row['log_score_exact']:.2f} ({row['prior']})" for _, row in mine.iterrows()]
        fits = f"{first['log_score']:.2f}; exact {', '.join(fit)}"
        lines.append(
            _line([model, f"{data} ({kernel})" if kernel else data, f"{first['active']:.1f}",
                   f"{fits}; constant {first['log_score_base']:.2f}", "; ".join(beside)])
        )  # fmt: skip
    yield "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
