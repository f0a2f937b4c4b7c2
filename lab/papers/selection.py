"""Genes chosen inside and outside the folds: what the stored rows say, and of which fits."""

from collections.abc import Iterator, Mapping

from lab.papers.results import Result
from lab.papers.tables import GROUPS, SELECTORS
from lab.papers.wording import head, plus_minus, row, signed

FLAT = ("rfvm",)
"""Selectors whose stored rows rank what is flat. Under the sparse default RFVM's mean field has no
visible feature: on colon its ten largest means equal the median of all 2000 to six digits, and the
ten genes are ranks 1 to 9 and 11 of |cov(x, y)|. Such a list is a filter's; the table says so."""
SAME_FIT = {"pfcvm": "pfcvm_lp-50/30"}
"""Rows of the same group whose fits are the selector's own, so that they say how it ended."""


def table(found: Mapping[str, Result]) -> Iterator[str]:
    """Yield the table of inside and outside."""
    heads = ["data", "genes by", "inside, %", "outside, %", "outside - inside"]
    more = ["log score, inside", "log score, outside", "genes, inside", "selecting fits converged"]
    yield from head([*heads, *more], 2)
    for group in GROUPS:
        for name in SELECTORS:
            inside, outside = (found.get(f"{group.name}/select-{name}-{x}") for x in WHERE)
            if inside is None or outside is None:
                continue
            pair = outside.beside(inside, "accuracy")
            yield row([
                group.data, f"`select-{name}`",
                *(plus_minus(*(r.mean("accuracy") or NONE)) for r in (inside, outside)),
                signed(*pair) if pair else "",
                *(plus_minus(*(r.mean("log_score") or NONE), 2) for r in (inside, outside)),
                genes(inside), status(name, group.name, found),
            ])  # fmt: skip


WHERE = ("inside", "outside")
NONE = (float("nan"), float("nan"))


def genes(r: Result) -> str:
    """Return how many genes were chosen in a fold, and how often fewer than the largest number."""
    counts = list(r.by_fold("features").values())
    most, few = max(counts), sum(x < max(counts) for x in counts)
    return f"{most:.0f}" + (f", fewer in {few} of {len(counts)}" if few else "")


def status(name: str, group: str, found: Mapping[str, Result]) -> str:
    """Return how many of the fits that selected have converged, where stored rows tell."""
    if name in FLAT:
        return "flat: no selection of its own"
    if not SELECTORS[name]["model"]:
        return "no fit" if name == "filter" else "all"
    fits = found.get(f"{group}/{SAME_FIT.get(name, '')}")
    return f"{fits.finished} of {len(fits.lines)}" if fits else "not stored"
