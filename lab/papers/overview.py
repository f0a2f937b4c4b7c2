"""The tables of a paper's page: its matrix, and its priors apart from its algorithm."""

from collections.abc import Iterator, Mapping

from lab.papers.prose import UNITS
from lab.papers.protocols import Group, Row
from lab.papers.results import REFERENCE, Result
from lab.papers.sheets import Sheet, label_of, yardstick
from lab.papers.wording import head, kept, plus_minus, row, signed, stated

Found = Mapping[str, Result]
NAMES = {"accuracy": "accuracy, %", "f1": "F1, %", "log_score": "log score", "features": "features"}


def shown(sheet: Sheet, found: Found) -> list[Group]:
    """Return the paper's tables that have stored rows beside a printed figure."""
    stored = {r.group.name for r in found.values()}
    has = (any(sheet.measure in r.printed for r in g.rows) for g in sheet.groups)
    return [g for g, printed in zip(sheet.groups, has, strict=True) if printed and g.name in stored]


def count(r: Result) -> str:
    """Return converged folds of stored ones, and of how many where some are missing."""
    text = f"{r.finished}/{len(r.lines)}"
    return text if r.whole else f"{text} of {r.group.folds}"


def cell(r: Result | None, column: str) -> str:
    """Return a row's mean, with the converged folds of a model of the zoo."""
    mean = r and r.mean(column)
    if r is None or not mean:
        return ""
    if not r.whole:  # the first folds are no estimate of all
        return f"({count(r)} folds)"
    if r.collapsed:
        return f"collapsed {r.collapsed}/{len(r.lines)}"
    if column == "features":
        return f"{kept(mean[0])}{' %' if r.group.percent else ''}"
    text = plus_minus(*mean, UNITS[column][1])
    return f"{text} ({count(r)})" if r.row.model else text


def printed(row: Row | None, column: str) -> str:
    """Return what the paper prints."""
    if row is None or column not in row.printed:
        return ""
    return stated(row.printed[column], row.printed_sd.get(column))


def declared(group: Group, label: str) -> Row | None:
    """Return a group's row."""
    return next((r for r in group.rows if r.label == label), None)


def matrix(sheet: Sheet, found: Found) -> Iterator[str]:
    """Yield the matrix: data sets side by side, readings one below the other."""
    groups = shown(sheet, found)
    yield from head(["", "row", *(g.data for g in groups)], 2)
    sizes = (g.sizes for g in groups)
    yield row(["N x D, larger class", "", *(f"{N} x {D}, {100 * p:.1f} %" for N, D, p in sizes)])
    for column in (sheet.measure, "log_score", "features"):
        body = list(_block(sheet, found, groups, column))
        if body:
            yield row([f"**{NAMES[column]}**", "", *("" for _ in groups)])
            yield from body
    for column in (sheet.measure, "log_score"):
        body = list(_differences(sheet, found, groups, column))
        if body:
            yield row([f"**difference, {NAMES[column]}**", "", *("" for _ in groups)])
            yield from body


def _block(sheet: Sheet, found: Found, groups: list[Group], column: str) -> Iterator[str]:
    lead = [declared(g, sheet.rows["algorithm"]) for g in groups]
    if any(printed(r, column) for r in lead):
        yield row(["printed", "", *(printed(r, column) for r in lead)])
    labels = {r.label: r.reading for g in groups for r in g.rows if yardstick(r.reading)}
    others = {x: reading for x, reading in labels.items() if not _aside(x)}
    for label, heading in [*sheet.readings.items(), *others.items()]:
        rows = [declared(g, label) for g in groups]
        cells = [cell(found.get(f"{g.name}/{label}"), column) for g in groups]
        if not any(cells):
            continue
        for i, (mine, first) in enumerate(zip(rows, lead, strict=True)):
            said = printed(mine, column)
            if cells[i] and said and said != printed(first, column):
                cells[i] += f" [{said}]"
        active = column == "features" and any(r and r.reading == "exact" for r in rows)
        yield row([f"{heading}: active" if active else heading, f"`{label}`", *cells])


def _aside(label: str) -> bool:
    """Say whether a row has a table of its own."""
    return label.startswith("select-") or label.endswith("-matched")


def _differences(sheet: Sheet, found: Found, groups: list[Group], column: str) -> Iterator[str]:
    for first, second in sheet.pairs:
        cells, names = [], ("", "")
        for group in groups:
            labels = (label_of(group, first), label_of(group, second))
            a, b = (found.get(f"{group.name}/{label}") for label in labels)
            pair = a.beside(b, column) if a and b and a.whole and b.whole else None
            cells.append(signed(*pair, digits=UNITS[column][1]) if pair else "")
            names = labels
        if any(cells):
            yield row(["", f"`{names[0]}` - `{names[1]}`", *cells])


# --- priors apart from inference ------------------------------------------------------------------


def priors(sheet: Sheet, found: Found) -> Iterator[str]:
    """Yield, for each model of the paper, a table of inference by prior."""
    for title, columns in sheet.priors.items():
        yield from head([title, "", *(heading for heading, _, _ in columns)], 2)
        for i, inference in ((1, "the algorithm"), (2, "exact")):
            yield row(["row", inference, *(_quoted(column[i]) for column in columns)])
        for group in shown(sheet, found):
            for i, inference in ((1, "the algorithm"), (2, "exact")):
                cells = [
                    _both(found.get(f"{group.name}/{column[i]}"), sheet.measure)
                    for column in columns
                ]
                if any(cells):
                    yield row([group.data, inference, *cells])
        yield ""


def _quoted(label: str) -> str:
    return label if label.startswith("(") else f"`{label}`"


def _both(r: Result | None, measure: str) -> str:
    """Return the measure and the log score."""
    if r is None or r.collapsed or not r.whole:
        return cell(r, measure)
    mean, score = r.mean(measure), r.mean("log_score")
    if mean is None:
        return ""
    features = r.mean("features")
    told = f"{count(r)}; no feature" if features and features[0] == 0.0 else count(r)
    text = plus_minus(*mean)
    return f"{text}, {plus_minus(*score, 2)} ({told})" if score else f"{text} ({told})"


# --- the summary's matrix -------------------------------------------------------------------------


def summary(sheets: tuple[Sheet, ...], found: Found) -> Iterator[str]:
    """Yield a line for each paper and data set."""
    heads = ["paper", "data", "printed", "the paper's algorithm", "exact", "L1 logistic"]
    yield from head([*heads, "exact - algorithm", "log score, exact - algorithm"], 2)
    for sheet in sheets:
        for group in shown(sheet, found):
            name, measure = group.name, sheet.measure
            labels = [label_of(group, x) for x in ("@algorithm", "@exact")]
            algorithm, exact = (found.get(f"{name}/{label}") for label in labels)
            pairs = [
                exact.beside(algorithm, x)
                if exact and algorithm and exact.whole and algorithm.whole
                else None
                for x in (measure, "log_score")
            ]
            yield row([
                f"{sheet.name}, {'F1' if measure == 'f1' else measure}", group.data,
                printed(declared(group, labels[0]), measure),
                cell(algorithm, measure), cell(exact, measure),
                cell(found.get(f"{name}/{REFERENCE}"), measure),
                *(
                    signed(*pair, digits=digits) if pair else ""
                    for pair, digits in zip(pairs, (1, 2), strict=True)
                ),
            ])  # fmt: skip
