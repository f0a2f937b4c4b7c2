"""The page of the matrix: findings, figure, one table a model; all of it from `matrix.csv`."""

import inspect
import math
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from ardvark.models import ZOO
from lab.matrix.declared import (
    AGAIN,
    BLOCKS,
    CELLS,
    EXACT,
    MORE,
    OTHER,
    OWN,
    OWN_SETTINGS,
    PRIORS,
    UPDATE,
)
from lab.matrix.findings import BLOCK, METHODS, chances, sentences
from lab.matrix.numbers import NAMES
from lab.matrix.words import fate

PAGE, FIGURE = "MATRIX.md", "matrix.png"

_ABOUT = """
What each approximation does to the posterior, under the same prior, on all rows of the data.
`python -m lab reproduce matrix` makes this page from `matrix.csv`, where every number stands.

`eta` is the decision value of a row, in logits (JCFO and sparse probit: in standard deviations of a
probit). P(y = 1) is averaged over draws, at the training rows, so nothing here is a prediction: how
the same models do on samples left out is in [the papers' tables](../PAPER_CHECK.md). A feature is
active in a draw if eta would change by more than 0.1 without it (standard deviation over the rows).
SKLR cannot switch features off; there, active says only how much eta depends on one. PFCVM's own
prior uses the labels (each sample weight has the sign of its row), so its "prior" and its training
P(y = 1) are not those of a model that has not seen them.

`exact` runs until every number has 1000 effective draws and an R-hat below 1.01. Whether a feature
is active is a yes or no; its R-hat has more noise and therefore a higher limit, so the worst R-hat
may be larger. That it is the posterior is checked elsewhere too: calibration by simulation and
joint tests ([Calibration](../CALIBRATION.md)), `exact` beside runs ten times longer
([Speed](../SPEED.md)), and both samplers on the same genes ([Priors](../PRIORS.md)).
"""
_FIGURE = """
A row is a model on a data set, a mark a prior. Left: the distance of P(y = 1) from the exact one,
divided by that of a constant (the share of y = 1). At 0 the P(y = 1) of every row is right; at 1 it
is as far off as that of a constant, because the features are not used, or used too much. Right: how
wide eta's 90 % interval is beside the exact one; the two grey lines are 0.8 and 1.25. Small ticks
are a second exact run. An open mark stands beside an exact fit that has not converged. A mark at
the border, with an arrow, lies beyond it. FS-SKLR and SKLR have no marks under ADVI and Laplace,
which need a gradient, and none for a width where an algorithm returns one state.
"""
_METHODS = """
- `exact`: four chains of NUTS or of a Gibbs sampler, whichever suits the problem, at most 1000
  draws kept of each.
- **paper's, this prior**: the algorithm of the model's paper, into which we put the block's prior.
  The papers of PFCVM and RFVM have flat priors instead, and those of JCFO and sparse probit tune
  what our rule fills. JCFO's and sparse probit's look for a mode, FS-SKLR's for one good state.
  They are held to the posterior mean of P(y = 1) all the same; what a single exact draw is off by
  is in the column `one draw`.
- **ADVI**: a Gaussian with independent components in the unconstrained coordinates of the model's
  default form, fitted by stochastic gradients; 2000 draws.
- **Laplace**: the Gaussian at the highest mode of four starts in the same coordinates; 2000 draws.
- **XOLON**: the RFVM paper's penalised fit. It has no prior, so one fit stands in three rows; its
  penalty is our reading of the text, which lacks the formula.

Each fit is one run with one seed. The masks of FS-SKLR and SKLR have no gradient, so ADVI and
Laplace do not apply. Nor does Laplace to sparse probit on 7129 genes: its matrix of curvatures
would be too large.
"""
_SAME_ROWS = """
The posteriors are not independent evidence: `colon_discrete` is `colon` in three levels; `allaml`
is `golub`, standardised, and `leukemia_discrete` has the same 72 patients; `digits38_noisy` is
`digits38` with noise. FS-SKLR and SKLR count each data set once for each prior.
"""
_CHANCES = """
"more" is more effort under another seed: for the papers' algorithms more starts or sweeps, for ADVI
twenty directions of correlation and more iterations, for Laplace four times as many starts. "other
update" is the same algorithm with another rule under another seed: EM for PFCVM, truncated normals
and more starts for RFVM, means instead of draws of the coefficients for FS-SKLR. "other form" is
the same method on the same posterior in other coordinates: with the precisions explicit instead of
integrated out or the other way round, and for RFVM with the latent noise integrated out. Counted
are the posteriors on which `exact` converged. The columns are the mean difference of P(y = 1) from
the first setting (its median and largest over posteriors), how often the second is nearer to the
exact one by more than 0.02, or farther, and how often one of the two says that it has not
converged, which is then in neither count.
"""
_TABLES = """
Each cell has the mean difference of P(y = 1) and that of the worst row, after the semicolon the
ratio of the widths of eta's 90 % intervals (median over rows), and words. A dagger marks a fit that
says of itself that it did not converge; JCFO's algorithm says so where it ends with all weights 0,
sparse probit's does not. Beside an exact fit that has not converged there are no words. The second
R-hat is the one nearest to its limit, or farthest beyond; where it is low and the fit has not
converged, effective draws are missing. Divergences of NUTS are transitions that its integrator
could not follow; on PFCVM's sonar P(y = 1) of both samplers agreed in spite of one or two, and
there is no such check of RFVM's on digits38. `active` has the exact posterior's mean number of
active features, in brackets the prior's and the largest P(active) of any feature. `noise` is the
distance of a second exact run, `one draw` that of a single exact draw, on average, and `constant`
that of the answer that ignores the features, the share of y = 1. Further settings are in
`matrix.csv`.
"""
_OWN = """
They aim at another posterior than the blocks', or at none that exists. These distances include the
change of prior, and are no errors of an approximation. A higher log probability of the training
labels is no merit: the model that overfits most has the highest.
"""


def page(frame: pd.DataFrame, why: str = "") -> str:
    """Return the whole page; `why` is the section of the examples (`mechanisms.told`)."""
    blocks = frame.drop_duplicates(BLOCK)
    priors = [name for name in PRIORS if name in set(frame["prior"])]
    head = ["method", "setting", "posteriors", "differs by: median", "largest", "nearer", "farther",
            "not converged"]  # fmt: skip
    settings = chances(frame)
    parts = [
        "# The matrix",
        *_paragraphs(_ABOUT),
        f"{len(blocks)} of {len(BLOCKS)} blocks are computed; the same command computes the rest.",
        "\n".join(f"- {sentence}" for sentence in sentences(frame)),
        f"![P(y = 1) off by, and width of eta, of each method on each posterior]({FIGURE})",
        *_paragraphs(_FIGURE),
        *(["## Was it given a chance?", *_paragraphs(_CHANCES)] if settings else []),
        *([_grid(head, settings)] if settings else []),
        *([why] if why else []),
        "## The priors",
        "\n".join(f"- `{name}`: {PRIORS[name]}." for name in priors),
        "## The methods",
        _METHODS.strip(),
        "## The data",
        _sizes(blocks),
        *_paragraphs(_SAME_ROWS),
        "## How to read the tables",
        *_paragraphs(_TABLES),
        _words(),
        *(_table(frame, model) for model in CELLS if model in set(frame["model"])),
        *_own(frame),
        "## The numbers of `matrix.csv`",
        "\n".join(f"- `{name}`: {meaning}" for name, meaning in NAMES.items()),
        "## Cost",
        _cost(frame),
    ]
    return "\n\n".join(parts) + "\n"


def _paragraphs(text: str) -> list[str]:
    return [" ".join(part.split()) for part in text.strip().split("\n\n")]


def _grid(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *lines))


def _sizes(blocks: pd.DataFrame) -> str:
    """Return rows x features of every data set."""
    sizes = blocks.drop_duplicates("data")
    told = [f"{row['data']} {row['N']} x {row['D']}" for _, row in sizes.iterrows()]
    return f"Rows x features: {', '.join(told)}."


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
    beside = (EXACT, AGAIN, OWN_SETTINGS)
    labels = [
        c.label
        for c in CELLS[model]
        if c.label not in beside and not c.label.endswith((MORE, UPDATE, OTHER))
    ]
    head = ["data", "prior", "exact", "R-hat: eta, worst", "active (prior; largest P)", "noise",
            "one draw", "constant", *labels]  # fmt: skip
    lines = []
    for key, block in mine.groupby(["kernel", "data", "prior"], sort=False):
        kernel, data, prior = map(str, key)
        cells = {row["cell"]: row for _, row in block.iterrows()}
        exact = cells[EXACT]
        name = f"{data} ({kernel})" if kernel else data
        if exact["status"] == "improper":
            lines.append([name, prior, "improper", *[""] * (len(head) - 3)])
            continue
        again, converged = cells[AGAIN], exact["status"] == "finished"
        told = f"{exact['sampler']}, {exact['seconds']:.0f} s"
        if exact["divergences"] > 0:
            found = int(exact["divergences"])
            told += f", {found} divergence{'' if found == 1 else 's'}"
        known = [
            name, prior, told if converged else f"{told}, **not converged**",
            f"{exact['rhat_eta']:.3f}, {exact['rhat']:.3f}",
            f"{exact['active']:.1f} ({again['active_prior']:.1f}; {exact['p_active_most']:.2f})",
            f"{again['p_off']:.3f}{'' if again['status'] == 'finished' else '†'}",
            f"{exact['p_draw']:.3f}", f"{exact['p_off_base']:.3f}",
        ]  # fmt: skip
        lines.append(known + [_cell(cells[label], converged) for label in labels])
    spec = ZOO[model]
    return f"## {model}\n\n{spec.title}: {spec.citation}.\n\n{_grid(head, lines)}"


def _cell(row: pd.Series, converged: bool) -> str:
    if row["status"] == "absent":
        return "does not apply"
    if math.isnan(row["p_off"]):
        return str(row["status"])
    width = row["eta_width"]
    ratio = "" if math.isnan(width) else "; > 100" if width > 100.0 else f"; {width:.2g}"
    mark = "" if row["status"] == "finished" else "†"
    told = f"{row['p_off']:.3f}, {row['p_worst']:.2f}{ratio}{mark}"
    return f"{told} {fate(row) if converged else ''}".rstrip()


def _own(frame: pd.DataFrame) -> Iterator[str]:
    """Yield the section on the papers' algorithms at their own settings."""
    rows = frame[(frame["cell"] == OWN_SETTINGS) & frame["p_off"].notna()]
    if not len(rows):
        return
    yield "## The papers' algorithms at their own settings"
    yield from _paragraphs(_OWN)
    yield "\n".join(f"- {model}: {OWN[model]}." for model in CELLS if model in set(rows["model"]))
    head = ["model", "data", "active", "mean log probability of the training labels",
            "P(y = 1) differs by, worst row; width of eta"]  # fmt: skip
    lines = []
    for key, mine in rows.groupby(["model", "kernel", "data"], sort=False):
        model, kernel, data = map(str, key)
        # the block's kernel may follow its prior, and then so does the fit
        for _, fit in mine.groupby(["active", "log_score"], sort=False):
            first = fit.iloc[0]
            beside = [f"{row['prior']}: {_cell(row, converged=False)}" for _, row in fit.iterrows()]
            exact = [f"{row['log_score_exact']:.2f} ({row['prior']})" for _, row in fit.iterrows()]
            scores = f"{first['log_score']:.2f}; exact {', '.join(exact)}"
            lines.append(
                [model, f"{data} ({kernel})" if kernel else data, f"{first['active']:.1f}",
                 f"{scores}; constant {first['log_score_base']:.2f}", "; ".join(beside)]
            )  # fmt: skip
    yield _grid(head, lines)


def _cost(frame: pd.DataFrame) -> str:
    """Return what the fits cost, and each method beside `exact`."""
    fits = frame[frame["seconds"].notna()]
    exact = fits[fits["cell"] == EXACT].set_index(BLOCK)["seconds"]
    said = []
    for name in METHODS:
        mine = fits[fits["cell"] == name].set_index(BLOCK)["seconds"]
        if len(share := (mine / exact).dropna()):
            said.append(f"{name} {share.median():.2g}")
    again = fits[fits["cell"] == AGAIN].set_index(BLOCK)["seconds"] / exact
    apart = float(np.exp(np.abs(np.log(again))).max())
    beside = f" In shares of the seconds of `exact`, the median: {', '.join(said)}." if said else ""
    return (
        f"{len(frame.drop_duplicates(BLOCK))} of {len(BLOCKS)} blocks, {len(fits)} fits, "
        f"{fits['seconds'].sum() / 3600.0:.1f} hours of fitting, one or two cores a fit.{beside} "
        "Seconds were measured beside other work and are upper bounds; two seeds of `exact` differ "
        f"by up to a factor of {apart:.1f}. Each row has the commit at which its numbers "
        "were computed; a fit that was kept from an earlier one is not repeated if the same is "
        "asked of it."
    )
