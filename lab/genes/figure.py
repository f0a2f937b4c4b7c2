"""The picture of a printed table: a row a gene; P(active) alone, with its group, and the folds."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ardvark.inference.comparison.report import look

from .declared import Fit, Gene, Table, genes
from .stored_posteriors import stored_p_active
from .summary import MODELS, Stored, done, frequency, sparse, telling

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEAST = 2e-4  # P(active) at the left end of its axis
BLUE, GREY = "#0072B2", "0.45"
OTHERS = {"sparse_probit": ("s", "#009E73"), "rfvm": ("v", "#CC79A7")}
FOLDS = (("s", "#E69F00"), ("^", "#56B4E9"))
_ROW = 0.24  # inches


def draw(stored: Stored, table: Table) -> look.Picture:
    """Draw a printed table whose posteriors have been sampled.

    A dot is the sparse default, its bar the range over the five priors, a grey tick the prior's own
    value. A dot at the left border is at most the smallest value of the axis.
    """
    printed, priors = genes()[table.name], done(stored, sparse(table))
    with look.style():
        figure, axes = look.beside((1.35, 1.0, 1.0), 1.5 + _ROW * len(printed))
        figure.set_size_inches(look.WIDTH * 1.35, 1.75 + _ROW * len(printed))
        for axis in axes:
            _rows(axis, printed, labelled=axis is axes[0])
        _notebook(axes[0], table, printed)
        _alone(axes[0], stored, priors, telling(stored, table), printed)
        _group(axes[1], stored, priors, printed)
        _folds(axes[2], stored, table, printed)
        look.entitle(figure, f"{table.title} (printed: {table.printed})", "")
        handles, labels = [], []
        for axis in axes:
            for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
                if label not in labels:
                    handles.append(handle)
                    labels.append(label)
        figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8.5)
    return look.Picture(figure, alt(stored, table))


def alt(stored: Stored, table: Table) -> str:
    """Return the picture in words."""
    printed, priors = genes()[table.name], done(stored, sparse(table))
    found = [stored.gene(priors[0], g) for g in printed]
    alone, group = ([x[name] for x in found] for name in ("p", "p_group"))
    return (
        f"{table.title}: {len(printed)} rows; P(active) {min(alone):.4f} to {max(alone):.4f}, with "
        f"the group {min(group):.3f} to {max(group):.3f}."
    )


def _rows(axis: "Axes", printed: Sequence[Gene], labelled: bool) -> None:
    names = [f"{g.description}  {g.gene}  {_value(g.printed)}" for g in printed]
    axis.set_yticks(range(len(printed)), names if labelled else [""] * len(printed), fontsize=8.5)
    axis.set_ylim(len(printed) - 0.4, -0.6)
    axis.tick_params(axis="y", length=0, pad=6)
    axis.tick_params(axis="x", labelsize=8)
    axis.grid(axis="y", lw=0.4)


def _value(printed: float) -> str:
    return f"{printed:g}" if abs(printed) >= 5 else f"{printed:.2f}"


def _alone(
    axis: "Axes", stored: Stored, priors: Sequence[Fit], others: Sequence[Fit],
    printed: Sequence[Gene],
) -> None:  # fmt: skip
    axis.set_xscale("log")
    axis.set_xlim(LEAST, 1.0)
    axis.axvline(0.5, color="0.75", lw=0.8, zorder=0)
    axis.set_title("P(active)")
    for fit in others:
        mark, colour = OTHERS[fit.model]
        values = [max(stored.gene(fit, g)["p"], LEAST) for g in printed]
        axis.plot(
            values, range(len(printed)), mark, color=colour, mfc="none", ms=5, clip_on=False,
            label=f"{MODELS[fit.model]}, exact, samples as they are",
        )  # fmt: skip
    _dots(axis, stored, priors, printed, "", LEAST)


def _notebook(axis: "Axes", table: Table, printed: Sequence[Gene]) -> None:
    found = stored_p_active(table.data)
    known = [(found[g.gene], i) for i, g in enumerate(printed) if g.gene in found]
    axis.plot(
        [p for p, _ in known], [i for _, i in known], "o", color=BLUE, mfc="none", ms=5,
        label="PFCVM, exact, samples as they are",
    )  # fmt: skip


def _group(axis: "Axes", stored: Stored, priors: Sequence[Fit], printed: Sequence[Gene]) -> None:
    axis.set_xlim(0.0, 1.0)
    axis.set_title("P(any of its group active)")
    _dots(axis, stored, priors, printed, "_group", 0.0)
    axis.annotate(
        "genes", (1.0, 1.0), (3, 4), "axes fraction", "offset points", fontsize=7.5, color=GREY
    )
    for i, gene in enumerate(printed):
        members = int(stored.gene(priors[0], gene)["members"])
        axis.annotate(
            str(members), (1.0, i), (3, 0), textcoords="offset points", va="center",
            fontsize=7.5, color=GREY, annotation_clip=False,
        )  # fmt: skip


def _dots(
    axis: "Axes", stored: Stored, priors: Sequence[Fit], printed: Sequence[Gene], end: str,
    least: float,
) -> None:  # fmt: skip
    span = f"PFCVM, range over {len(priors)} priors"
    for i, gene in enumerate(printed):
        values = [max(stored.gene(fit, gene)[f"p{end}"], least) for fit in priors]
        prior = max(stored.gene(priors[0], gene)[f"prior{end}"], least)
        once = i == 0
        if len(values) > 1:
            axis.plot(
                [min(values), max(values)], [i, i], color=BLUE, lw=3.0, alpha=0.35,
                solid_capstyle="butt", label=span if once else "",
            )  # fmt: skip
        axis.plot(
            values[0], i, "o", color=BLUE, ms=5, clip_on=False,
            label="PFCVM, exact, samples standardised" if once else "",
        )  # fmt: skip
        axis.plot(
            prior,
            i,
            "|",
            color=GREY,
            ms=11,
            mew=1.8,
            label="PFCVM's prior, before the data" if once else "",
        )


def _folds(axis: "Axes", stored: Stored, table: Table, printed: Sequence[Gene]) -> None:
    axis.set_xlim(0.0, 1.0)
    axis.set_title("share of folds that select it")
    rows = range(len(printed))
    if table.printed.startswith("number of the"):
        folds = max(f.count for f in table.folds)
        axis.plot(
            [g.printed / folds for g in printed], rows, "x", color="black", ms=6, mew=1.6,
            clip_on=False, label="printed",
        )  # fmt: skip
    marks = iter(FOLDS)
    for folds in table.folds:
        shares = [frequency(stored, table, folds, g) for g in printed]
        if shares[0] != shares[0]:
            continue
        number = len(stored.of_folds(folds))
        who = "exact" if folds.exact else f"algorithm, {folds.label}"
        mark, colour = ("o", BLUE) if folds.exact else next(marks)
        axis.plot(
            shares, rows, mark, color=colour, mfc="none", ms=6, clip_on=False,
            label=f"{who}, {number} folds",
        )  # fmt: skip
