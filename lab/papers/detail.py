"""Every row of a table with all that is stored of it, as aligned text, and what to know of it."""

from collections.abc import Iterator

from lab.papers.protocols import Group
from lab.papers.results import REFERENCE, Result
from lab.papers.wording import kept, plus_minus, signed, stated


def table(group: Group, found: dict[str, Result]) -> Iterator[str]:
    """Return a group's heading, its rows as aligned text, and what to know of them."""
    rows = [r for r in found.values() if r.group is group and not r.row.select]
    if not rows:
        return
    N, D, larger = group.sizes
    yield f"### Table {group.table}, {group.data}"
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
    """Return a row of the table: text by column; means only of a row with all its folds."""
    out = {"method": r.row.label, "reading": r.row.reading, "s": f"{total(r):.0f}"}
    out |= {"folds": f"{len(r.lines)}/{r.group.folds}", "ok": str(r.finished)}
    out["version"] = " ".join(dict.fromkeys(x["version"] for x in r.lines.values()))
    columns = {
        "accuracy": ("accuracy", 1), "by draws": ("accuracy_draws", 1), "F1": ("f1", 1),
        "log score": ("log_score", 2),
    }  # fmt: skip
    for column, (kind, digits) in columns.items() if r.whole else ():
        mean = r.mean(kind)
        if mean and (kind != "f1" or any("f1" in row.printed for row in r.group.rows)):
            out[column] = plus_minus(*mean, digits)
    l1 = found.get(f"{r.group.name}/{REFERENCE}")
    if l1 is not None and r is not l1 and r.whole:
        for column, kind, digits in (("to L1", "accuracy", 1), ("log to L1", "log_score", 2)):
            difference = r.beside(l1, kind)
            if difference:
                out[column] = signed(*difference, digits)
    for kind in ("features", "samples") if r.whole else ():
        mean = r.mean(kind)
        if mean:
            error = f" +- {round(mean[1], 9):.2g}" if mean[1] == mean[1] else ""
            out[kind] = kept(mean[0]) + error
    printed = {"accuracy": "printed", "f1": "printed F1", "noise": "printed noise"}
    for kind, value in r.row.printed.items():
        sd = r.row.printed_sd.get(kind)
        out[printed.get(kind, f"printed {kind}")] = stated(value, sd)
    if r.group.noise is not None and r.whole:
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
        said.append(f"{len(r.lines)} of {r.group.folds} folds, so no means")
    if r.failed:
        said.append(f"{r.failed} folds failed")
    reasons = [x["reason"] for x in r.lines.values() if x["status"] != "finished"]
    if reasons:
        common = max(sorted(set(reasons)), key=reasons.count)
        said.append(f"not ok {len(reasons)} of {len(r.lines)}, for example: {common}...")
    return "; ".join(said)
