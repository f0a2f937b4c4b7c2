"""PAPER_CHECK.md, made from the stored folds alone."""

from collections.abc import Iterator
from pathlib import Path

from . import curves, goals, store, summary
from .protocols import Group
from .results import REFERENCE, Result, everything
from .summary import kept, plus_minus, signed
from .tables import FILTER, GROUPS, SELECTED, SELECTORS

TEMPLATE = Path(__file__).with_name("page.md")  # the prose; {{name}} stands for what is made here


def write(page: Path, folder: Path) -> None:
    """Write the document, and its figures beside the stored folds, which are put in order."""
    for group in GROUPS:
        store.tidy(group, folder)
        curves.draw(group, figure_of(group, page), folder)
    page.write_text(text(folder))


def figure_of(group: Group, page: Path) -> Path:
    """Return the file of a group's figure."""
    return page.parent / "paper_check" / "figures" / file_name(group)


def file_name(group: Group) -> str:
    """Return the name of that file."""
    return f"{group.name.replace('/', '_')}.png"


def text(folder: Path) -> str:
    """Return the document."""
    found = everything(folder)
    parts = {
        "goals": goals.table(folder),
        "summary": "\n".join(sentences(found)),
        "SELECTED": str(SELECTED),
        "FILTER": str(FILTER),
        "selection": "\n".join(selection(found)),
        "paths": "\n".join(paths(folder)),
        "tables": "\n".join(line for group in GROUPS for line in table(group, found)).rstrip(),
        "not run": "\n".join(not_run(found)),
    }
    out = TEMPLATE.read_text()
    for name, part in parts.items():
        out = out.replace("{{" + name + "}}", part)
    return out.rstrip() + "\n"


# --- sections -------------------------------------------------------------------------------------


def sentences(found: dict[str, Result]) -> Iterator[str]:
    """Return what the tables say, and on which of them there is more to say."""
    silent = set()
    for sentence in summary.SENTENCES:
        said = summary.say(sentence, found)
        if said is not None:
            yield f"- {said}"
        silent |= {n.rpartition("/")[0] for n in summary.rows_of(sentence) if n not in found}
    if silent:
        yield ""
        yield f"Not said, for want of rows (listed at the end): sentences on {listed(silent)}."


def paths(folder: Path) -> Iterator[str]:
    """Return the figures, each with what is in it."""
    for group in GROUPS:
        inside = curves.contents(group, folder)
        if inside:
            yield f"![{group.data}](paper_check/figures/{file_name(group)})"
            yield ""
            yield f"{', '.join(inside)}."
            yield ""


def selection(found: dict[str, Result]) -> Iterator[str]:
    """Return the table of inside and outside."""
    yield "| data | genes by | inside, % | outside, % | outside - inside | log score | folds |"
    yield "|---|---|---:|---:|---:|---:|---:|"
    for group in GROUPS:
        for name in SELECTORS:
            pair = [found.get(f"{group.name}/select-{name}-{x}") for x in ("inside", "outside")]
            inside, outside = pair
            if inside is None or outside is None:
                continue
            cells = [plus_minus(*(r.mean("accuracy") or (0.0, 0.0))) for r in pair if r]
            scores = [plus_minus(*(r.mean("log_score") or (0.0, 0.0)), 2) for r in pair if r]
            more = outside.beside(inside, "accuracy")
            folds = f"{len(inside.lines)}, {len(outside.lines)} of {group.folds}"
            yield (
                f"| {group.data} | {name} | {' | '.join(cells)} | "
                f"{signed(*more) if more else ''} | {' to '.join(scores)} | {folds} |"
            )


def table(group: Group, found: dict[str, Result]) -> Iterator[str]:
    """Return a group's heading, its rows as aligned text, and what to know of them."""
    rows = [r for r in found.values() if r.group is group and not r.row.select]
    if not rows:
        return
    N, D, larger = group.sizes
    yield f"### {group.paper} table {group.table}, {group.data}"
    yield ""
    notes = [f"{N} x {D}, larger class {100 * larger:.1f} %", group.protocol.name]
    notes += ["features and samples in percent"] if group.percent else []
    yield "; ".join([*notes, *filter(None, [group.note])]) + "."
    yield ""
    yield from ["```", *aligned([cells(r, found) for r in rows]), "```", ""]
    yield from (f"- `{r.row.label}`: {said}" for r in rows if (said := remarks(r)))
    yield ""


ORDER = (
    "method", "reading", "folds", "ok", "accuracy", "printed", "to L1", "by draws", "F1",
    "printed F1", "log score", "log to L1", "features", "printed features", "samples",
    "printed samples", "jaccard", "printed jaccard", "pearson", "printed pearson", "noise > 0.2",
    "printed noise", "s", "version",
)  # fmt: skip


def cells(r: Result, found: dict[str, Result]) -> dict[str, str]:
    """Return a row of the table: text by column."""
    out = {"method": r.row.label, "reading": r.row.reading, "s": f"{total(r):.0f}"}
    out |= {"folds": f"{len(r.lines)}/{r.group.folds}", "ok": str(r.finished)}
    out["version"] = " ".join(dict.fromkeys(x["version"] for x in r.lines.values()))
    columns = {
        "accuracy": ("accuracy", 1), "by draws": ("accuracy_draws", 1), "F1": ("f1", 1),
        "log score": ("log_score", 2),
    }  # fmt: skip
    for column, (kind, digits) in columns.items():
        mean = r.mean(kind)
        if mean and (kind != "f1" or any("f1" in row.printed for row in r.group.rows)):
            out[column] = plus_minus(*mean, digits)
    l1 = found.get(f"{r.group.name}/{REFERENCE}")
    if l1 is not None and r is not l1:
        for column, kind, digits in (("to L1", "accuracy", 1), ("log to L1", "log_score", 2)):
            difference = r.beside(l1, kind)
            if difference:
                out[column] = signed(*difference, digits)
    for kind in ("features", "samples"):
        mean = r.mean(kind)
        if mean:
            error = f" +- {round(mean[1], 9):.2g}" if mean[1] == mean[1] else ""
            out[kind] = kept(mean[0]) + error
    printed = {"accuracy": "printed", "f1": "printed F1", "noise": "printed noise"}
    for kind, value in r.row.printed.items():
        sd = r.row.printed_sd.get(kind)
        told = f"{value:g}" if sd is None else f"{value:g} +- {sd:g}"
        out[printed.get(kind, f"printed {kind}")] = told
    if r.group.noise is not None:
        out |= {name: plus_minus(*pair, 3) for name, pair in r.stability().items()}
        if len(r.selections) > 1:
            often = r.selections[:, r.group.noise :].mean(axis=0) > 0.2
            out["noise > 0.2"] = str(int(often.sum()))
    return out


def total(r: Result) -> float:
    """Return the seconds of a row's folds together."""
    return sum(r.by_fold("seconds").values())


def aligned(rows: list[dict[str, str]]) -> Iterator[str]:
    """Return rows as aligned text, without the columns that none of them has."""
    columns = [c for c in ORDER if any(c in r for r in rows)]
    width = {c: max(len(c), *(len(r.get(c, "")) for r in rows)) for c in columns}
    for row in [{c: c for c in columns}, *rows]:
        text = [f"{row.get(c, ''):>{width[c]}}" for c in columns[2:]]
        first = [f"{row.get(c, ''):<{width[c]}}" for c in columns[:2]]
        yield "  ".join([*first, *text]).rstrip()


def remarks(r: Result) -> str:
    """Return what to know of a row: its note, and the commonest reason of folds that are not ok."""
    said = [r.row.note] if r.row.note else []
    if len(r.lines) < r.group.folds:
        said.append(f"{len(r.lines)} of {r.group.folds} folds")
    if r.failed:
        said.append(f"{r.failed} folds failed")
    reasons = [x["reason"] for x in r.lines.values() if x["status"] != "finished"]
    if reasons:
        common = max(sorted(set(reasons)), key=reasons.count)
        said.append(f"not ok {len(reasons)} of {len(r.lines)}, for example: {common}...")
    return "; ".join(said)


def not_run(found: dict[str, Result]) -> Iterator[str]:
    """Name the declared rows without folds, a line a table."""
    yield "Declared, and left out for the time they take (together a day; `--only` computes them):"
    yield ""
    for group in GROUPS:
        rows = [r.label for r in group.rows]
        left = [label for label in rows if f"{group.name}/{label}" not in found]
        if left:
            yield f"- `{group.name}`, {len(left)} of {len(rows)} rows: {listed(left)}."


def listed(names: list[str] | set[str]) -> str:
    """Return names in code quotes."""
    return ", ".join(f"`{name}`" for name in sorted(names))
