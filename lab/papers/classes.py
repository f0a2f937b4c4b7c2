"""FS-SKLR's F1 with either class as the positive one, which its paper does not name."""

from collections.abc import Iterator, Mapping

from lab.papers.results import Result
from lab.papers.sheets import BY_PAPER
from lab.papers.wording import head, row, signed

METHODS = ("fsklr-printed", "sklr", "fs_skr", "l1_logistic", "kernel_l1", "rbf_svm")
"""A row for each method that the paper's tables print."""
OTHER = "f1_other"  # the F1 of y = 0


def gap(r: Result, column: str) -> float | None:
    """Return our F1 minus the printed one."""
    mean = r.mean(column)
    return mean[0] - r.row.printed["f1"] if mean and "f1" in r.row.printed else None


def table(found: Mapping[str, Result]) -> Iterator[str]:
    """Yield ours minus the printed F1, by y = 1 and by y = 0."""
    groups = [g for g in BY_PAPER["FSKLR"].groups if f"{g.name}/{METHODS[0]}" in found]
    yield from head(["row", *(g.data for g in groups)])
    for label in METHODS:
        cells = [_both(found.get(f"{g.name}/{label}")) for g in groups]
        if any(cells):
            yield row([f"`{label}`", *cells])


def _both(r: Result | None) -> str:
    gaps = [gap(r, column) for column in ("f1", OTHER)] if r is not None and r.whole else []
    return ", ".join(signed(x) for x in gaps if x is not None)
