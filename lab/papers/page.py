"""PAPER_CHECK.md and a page for each paper, made from the stored folds alone."""

from collections.abc import Iterator
from pathlib import Path

from ardvark.models.parts.effects import VISIBLE
from lab.papers import (
    absent,
    classes,
    contrasts,
    curves,
    detail,
    goals,
    overview,
    prose,
    selection,
    stops,
    store,
)
from lab.papers.prose import Scope, fill
from lab.papers.protocols import Group
from lab.papers.results import Result, everything
from lab.papers.sheets import SHEETS, Sheet
from lab.papers.tables import FILTER, GROUPS, SELECTED
from lab.papers.wording import head, row

TEMPLATES = Path(__file__).with_name("pages")  # the prose
SUMMARY = "summary.md"
STOPS = "rfvm_stops.png"
FIGURES = "paper_check/figures"  # beside PAPER_CHECK.md
VERBS = prose.VERBS | contrasts.VERBS

ROLES = {
    "algorithm": "the paper's algorithm, as near to the print as it runs",
    "exact": "the exact posterior under the zoo's default prior",
    "same": "the paper's algorithm under that prior",
}

WORDS = (
    "- **exact**: draws from the posterior itself, by a sampler that runs until R-hat is at most "
    '1.01 and the effective sample size 1000; only then is a fold "converged". What that '
    "means for a paper's algorithm is on the paper's page.",
    "- **sparse prior**: the zoo's default. Weights are heavy-tailed and most are near 0, about "
    "ten features are expected to be active, and the **slab** cuts off effects far above 1.",
    "- **dense prior**: the effect is spread over nearly all features, and there is no slab.",
    "- **active**: a feature whose effect on the decision is above 0.1 (logits, or standard "
    "deviations of a probit). Exact rows count these; algorithms count weights that are not 0.",
    "- **collapsed**: the fit has pruned all features or all samples.",
)
"""A page's glossary."""


def write(page: Path, folder: Path) -> None:
    """Write PAPER_CHECK.md, the papers' pages and their figures; stored folds are put in order."""
    for group in GROUPS:
        store.tidy(group, folder)
        curves.draw(group, figure_of(group, page), folder)
    stops.draw(page.parent / FIGURES / STOPS, folder)
    for name, text in texts(folder).items():
        file = page if name == SUMMARY else page.parent / "papers" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)


def figure_of(group: Group, page: Path) -> Path:
    """Return the file of a group's figure."""
    return page.parent / FIGURES / file_name(group)


def file_name(group: Group) -> str:
    """Return the name of that file."""
    return f"{group.name.replace('/', '_')}.png"


def texts(folder: Path) -> dict[str, str]:
    """Return the documents by the name of their template."""
    found = everything(folder)
    pages = {sheet.file: paper(sheet, found, folder) for sheet in SHEETS}
    return {SUMMARY: summary(found, folder), **pages}


def summary(found: dict[str, Result], folder: Path) -> str:
    """Return PAPER_CHECK.md."""
    groups = tuple(g for sheet in SHEETS for g in overview.shown(sheet, found))
    parts = {
        "goals": goals.table(folder).splitlines(),
        "matrix": list(overview.summary(SHEETS, found)),
        "roles": list(roles()),
        "words": list(WORDS),
    }
    return filled(SUMMARY, Scope(found, groups), parts)


def roles() -> Iterator[str]:
    """Yield which rows stand for each role, by paper."""
    yield from head(["", *(sheet.name for sheet in SHEETS)], 1 + len(SHEETS))
    for role, meaning in ROLES.items():
        labels = (sheet.rows.get(role) for sheet in SHEETS)
        yield row([f"`@{role}`: {meaning}", *(f"`{x}`" if x else "" for x in labels)])


def paper(sheet: Sheet, found: dict[str, Result], folder: Path) -> str:
    """Return a paper's page."""
    tables = [line for g in sheet.groups for line in detail.table(g, found)]
    parts = {
        "matrix": list(overview.matrix(sheet, found)),
        "priors": list(overview.priors(sheet, found)),
        "selection": list(selection.table(found)),
        "stops": list(stops.table(found)),
        "classes": list(classes.table(found)),
        "picture": list(picture(folder)),
        "curves": list(paths(sheet, folder)),
        "tables": tables,
        "absent": list(absent.rows(sheet, found)),
        "words": list(WORDS),
    }
    return filled(sheet.file, Scope(found, tuple(sheet.groups)), parts)


def filled(name: str, scope: Scope, parts: dict[str, list[str]]) -> str:
    """Return a template with its figures and parts."""
    template = (TEMPLATES / name).read_text()
    for word, number in (("SELECTED", SELECTED), ("FILTER", FILTER), ("VISIBLE", VISIBLE)):
        template = template.replace(f"${word}$", str(number))
    return fill(template, scope, parts, VERBS)


def picture(folder: Path) -> Iterator[str]:
    """Yield the figure of RFVM's stops, and what is in it, where there is one."""
    if stops.drawn(folder):
        words = "Features kept and accuracy against the number of sweeps, by data set"
        yield f"![{words}](../{FIGURES}/{STOPS})"
        yield ""
        yield (
            "The states along the paths of `rfvm_vb` (printed updates) and `rfvm_vb-released` "
            "(those of the released code), by their means alone."
        )
        yield "The grey line is at 5000 sweeps, where the released code ends at the latest."


def paths(sheet: Sheet, folder: Path) -> Iterator[str]:
    """Yield the figures, each with what is in it."""
    for group in sheet.groups:
        inside = curves.contents(group, folder)
        if inside:
            words = f"Accuracy and log score along each path, {group.data}"
            yield f"![{words}](../{FIGURES}/{file_name(group)})"
            yield ""
            yield f"{group.data}: {', '.join(inside)}."
            yield ""
