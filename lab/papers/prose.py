"""Sentences whose figures are computed from the stored folds.

A sentence is a line of a template. `{{verb words}}` in it stands for a figure; the verbs are the
functions in `VERBS`. A word that names a row is its label, or a role such as `@exact` (`sheets`).
A figure needs rows with all their folds. A sentence without its rows is left out, and a paragraph
without sentences too.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lab.papers.fold import FLOOR
from lab.papers.protocols import LEAVE_ONE_OUT, Group
from lab.papers.results import Result
from lab.papers.sheets import BY_PAPER, label_of
from lab.papers.tables import GROUPS, SELECTORS
from lab.papers.wording import kept, plus_minus, signed, stated

FIELD = re.compile(r"\{\{([a-z]+)((?: [^{} ]+)*)\}\}")
CLEAR = 2.0  # a difference counts as clear from so many of its +-
SAME = 1.5  # points: so far the mean over folds of a class's share is from its share
SAME_SUBJECTS = {"colon_discrete": "colon", "leukemia_discrete": "golub", "allaml": "golub"}
"""Data sets that are other forms of one set of patients."""
Array = np.ndarray
UNITS = {"accuracy": ("", 1), "f1": ("", 1), "f1_other": ("", 1), "log_score": ("", 2)}


class MissingRows(Exception):
    """No group has the rows that a figure needs."""


@dataclass(frozen=True)
class Scope:
    """Stored rows by name, and the tables that a page is about."""

    found: Mapping[str, Result]
    groups: tuple[Group, ...]

    def whole(self, group: Group, word: str) -> Result | None:
        """Return a row that has all its folds, most of which did not collapse."""
        r = self.found.get(f"{group.name}/{label_of(group, word)}")
        return r if r is not None and r.whole and not r.collapsed else None

    def each(self, *words: str) -> Iterator[tuple[Group, list[Result]]]:
        """Yield the groups that have all of these rows, and the rows."""
        some = False
        for group in self.groups:
            rows = [self.whole(group, word) for word in words]
            if all(r is not None for r in rows):
                some = True
                yield group, [r for r in rows if r is not None]
        if not some:
            raise MissingRows(", ".join(words))

    def one(self, data: str, word: str) -> Result:
        """Return the row of one data set of the page, or of any table by its full name."""
        for group in GROUPS if "/" in data else self.groups:
            r = self.found.get(f"{group.name}/{label_of(group, word)}")
            if data in (group.data, group.name) and r is not None and r.whole:
                return r
        raise MissingRows(f"{data}/{word}")

    def named(self, group: Group) -> str:
        """Return what a data set is called: with its paper where the page is about several."""
        papers = {g.paper for g in self.groups}
        return group.data if len(papers) == 1 else f"{group.data} ({BY_PAPER[group.paper].name})"


def column_of(group: Group, column: str) -> str:
    """Return a column; "measure" is the one that the paper prints."""
    return BY_PAPER[group.paper].measure if column == "measure" else column


def measured(r: Result, column: str) -> str:
    """Return a row's mean as text, with the converged folds of a model of the zoo."""
    if r.collapsed:
        return f"collapsed in {r.collapsed} of {len(r.lines)} folds"
    mean = r.mean(column)
    if mean is None:
        return ""
    if column in ("features", "samples"):
        return f"{kept(mean[0])}{' %' if r.group.percent else ''}"
    text = plus_minus(*mean, UNITS[column][1])
    counted = r.row.model and not r.row.select
    return f"{text} ({r.finished} of {len(r.lines)})" if counted else text


# --- verbs ----------------------------------------------------------------------------------------


def value(scope: Scope, data: str, word: str, column: str) -> str:
    """Return a row's mean on a data set."""
    r = scope.one(data, word)
    return measured(r, column_of(r.group, column))


def printed(scope: Scope, data: str, word: str, column: str) -> str:
    """Return what the paper prints for it."""
    r = scope.one(data, word)
    column = column_of(r.group, column)
    return stated(r.row.printed[column], r.row.printed_sd.get(column))


def _with_printed(scope: Scope, word: str) -> Iterator[tuple[Group, tuple[float, float], float]]:
    """Yield the data sets with a printed figure, our mean and its +-, and that figure."""
    for group, (r,) in scope.each(word):
        column = column_of(group, "measure")
        mean = r.mean(column)
        if mean is not None and column in r.row.printed:
            yield group, mean, r.row.printed[column]


def gaps(scope: Scope, word: str) -> str:
    """Return ours minus the printed figure, on all data sets."""
    return ", ".join(
        f"{scope.named(group)} {signed(mean[0] - printed)}"
        for group, mean, printed in _with_printed(scope, word)
    )


def near(scope: Scope, word: str) -> str:
    """Return on how many data sets the printed figure is within two +- of ours."""
    within = [
        abs(mean[0] - printed) <= CLEAR * mean[1] for _, mean, printed in _with_printed(scope, word)
    ]
    return f"{sum(within)} of {len(within)}"


def minus(scope: Scope, first: str, second: str, column: str) -> str:
    """Return the paired differences of two rows, on all data sets."""
    said = []
    for group, (a, b) in scope.each(first, second):
        kind = column_of(group, column)
        pair = a.beside(b, kind)
        if pair is not None:
            said.append(f"{scope.named(group)} {signed(*pair, digits=UNITS[kind][1])}")
    if not said:
        raise MissingRows(column)
    return ", ".join(said)


def spread(scope: Scope, first: str, second: str, column: str) -> str:
    """Return the smallest and the largest of these differences, and where they are."""
    said = []
    for group, (a, b) in scope.each(first, second):
        kind = column_of(group, column)
        pair = a.beside(b, kind)
        if pair is not None:
            digits = UNITS[kind][1]
            said.append((pair[0], f"{signed(*pair, digits=digits)} on {scope.named(group)}"))
    return from_to(said)


def gaprange(scope: Scope, word: str) -> str:
    """Return the smallest and the largest of ours minus the printed figures."""
    return from_to(
        [
            (mean[0] - printed, f"{signed(mean[0] - printed)} on {scope.named(group)}")
            for group, mean, printed in _with_printed(scope, word)
        ]
    )


def between(scope: Scope, word: str, column: str) -> str:
    """Return the smallest and the largest mean, and where they are."""
    said, same = [], set()
    for group, (r,) in scope.each(word):
        kind = column_of(group, column)
        mean = r.mean(kind)
        if mean is not None:
            said.append((mean[0], f"{measured(r, kind)} on {scope.named(group)}"))
            same.add(measured(r, kind))
    if len(said) > 1 and len(same) == 1:
        return f"{same.pop()} on all {len(said)} data sets"
    return from_to(said)


def from_to(said: list[tuple[float, str]]) -> str:
    """Return the ends of figures that are written out; the only one by itself."""
    if not said:
        raise MissingRows
    (_, low), (_, high) = min(said), max(said)
    return low if len(said) == 1 else f"from {low} to {high}"


def converged(scope: Scope, word: str) -> str:
    """Return how many of a row's folds converged, over all data sets."""
    rows = [r for _, (r,) in scope.each(word)]
    return f"{sum(r.finished for r in rows)} of {sum(len(r.lines) for r in rows)}"


def settled(scope: Scope, data: str, word: str) -> str:
    """Return how many of a row's folds converged on a data set."""
    r = scope.one(data, word)
    return f"{r.finished} of {len(r.lines)}"


def majority(scope: Scope, word: str) -> str:
    """Return on how many data sets a row is about as accurate as answering the larger class."""
    rows = [(g, r.mean("accuracy")) for g, (r,) in scope.each(word)]
    same = [m is not None and abs(m[0] - 100.0 * g.sizes[2]) < SAME for g, m in rows]
    return f"{sum(same)} of {len(same)}"


def sets(scope: Scope, *words: str) -> str:
    """Return the data sets that have all of these rows."""
    return ", ".join(scope.named(group) for group, _ in scope.each(*words))


def fewer(scope: Scope, data: str, word: str, number: str) -> str:
    """Return in how many folds a row keeps fewer features than this."""
    counts = scope.one(data, word).by_fold("features").values()
    return f"{sum(x < float(number) for x in counts)} of {len(counts)}"


def right(scope: Scope, data: str, word: str, other: str, number: str) -> str:
    """Return how many rows are classified right, among folds where `other` keeps so many."""
    kept = scope.one(data, other).by_fold("features")
    right = scope.one(data, word).by_fold("accuracy")
    among = [right[fold] for fold, x in kept.items() if x == float(number)]
    return f"{sum(among):.0f} of {len(among)}"


def errors(scope: Scope, word: str) -> str:
    """Return how many left-out rows are wrong, beside what the paper prints."""
    said = []
    for group, (mean, _), printed in _with_printed(scope, word):
        if group.protocol is LEAVE_ONE_OUT:
            N = group.sizes[0]
            ours, theirs = (round(N * (1.0 - x / 100.0)) for x in (mean, printed))
            name, end = scope.named(group).removesuffix(")"), f"the paper: {theirs})"
            said.append(f"{ours} of {N} on {name}{'; ' if '(' in name else ' ('}{end}")
    return joined(said)


def joined(said: Sequence[str]) -> str:
    """Return what is said of several data sets."""
    if not said:
        raise MissingRows
    return ", ".join(said)


def _by_fold(scope: Scope, first: str, second: str, column: str) -> Iterator[tuple[Group, Array]]:
    """Yield the differences (folds,) of two rows on each data set."""
    for group, (a, b) in scope.each(first, second):
        x, y = (r.by_fold(column_of(group, column)) for r in (a, b))
        if x and y:
            yield group, np.array([x[k] - y[k] for k in sorted(x.keys() & y.keys())])


def wins(scope: Scope, first: str, second: str, column: str) -> str:
    """Return in how many folds the first row is higher."""
    found = _by_fold(scope, first, second, column)
    return joined([f"{scope.named(g)} {np.sum(d > 0.0)} of {len(d)}" for g, d in found])


def median(scope: Scope, first: str, second: str, column: str) -> str:
    """Return the median difference over folds of a column that has its own unit."""
    found = _by_fold(scope, first, second, column)
    return joined([f"{scope.named(g)} {signed(float(np.median(d)), digits=2)}" for g, d in found])


def clearly(scope: Scope, direction: str, first: str, second: str, column: str) -> str:
    """Return on how many data sets the first row is clearly "higher" or "lower", and on which."""
    found: list[Group] = []
    of, sign = 0, {"higher": 1.0, "lower": -1.0}[direction]
    for group, (a, b) in scope.each(first, second):
        pair = a.beside(b, column_of(group, column))
        if pair is not None:
            of += 1
            found += [group] if sign * pair[0] > CLEAR * pair[1] else []
    if not of:
        raise MissingRows(column)
    where = [
        f"{sheet.name} on {', '.join(g.data for g in found if g.paper == sheet.paper)}"
        for sheet in BY_PAPER.values()
        if any(g.paper == sheet.paper for g in found)
    ]
    return f"{len(found)} of {of}" + (f" ({'; '.join(where)})" if where else "")


def constant(scope: Scope, word: str, *others: str) -> str:
    """Return where a row is about as accurate as answering the larger class, of these with all."""
    found = [(g, rows[0].mean("accuracy")) for g, rows in scope.each(word, *others)]
    same = [scope.named(g) for g, m in found if m and abs(m[0] - 100.0 * g.sizes[2]) < SAME]
    return joined(same)


def subjects(scope: Scope, word: str) -> str:
    """Return how many sets of subjects the data sets have that a row's printed figures are of."""
    names = {group.data for group, _, _ in _with_printed(scope, word)}
    return str(len({SAME_SUBJECTS.get(name, name) for name in names}))


def unsettled(scope: Scope, word: str) -> str:
    """Return where a row is near its printed figure, but most of its fits did not converge."""
    found = [(g, mean, printed) for g, mean, printed in _with_printed(scope, word)]
    close = [g for g, mean, printed in found if abs(mean[0] - printed) <= CLEAR * mean[1]]
    rows = [(g, scope.whole(g, word)) for g in close]
    return joined([scope.named(g) for g, r in rows if r and 2 * r.finished < len(r.lines)])


def effects(scope: Scope, data: str) -> str:
    """Return the range over selectors of outside minus inside, in points of accuracy."""
    said = []
    for name in SELECTORS:
        inside, outside = (scope.one(data, f"select-{name}-{x}") for x in ("inside", "outside"))
        pair = outside.beside(inside, "accuracy")
        if pair is not None:
            said.append((pair[0], f"{signed(*pair)} (`select-{name}`)"))
    return from_to(said)


def across(scope: Scope, data: str, word: str, column: str) -> str:
    """Return the range of a row minus the algorithm's settings as printed, most fits converged."""
    said, mine = [], scope.one(data, word)
    for row in mine.group.rows:
        r = scope.whole(mine.group, row.label)
        if r and row.reading == "as printed" and 2 * r.finished > len(r.lines):
            pair = mine.beside(r, column)
            if pair is not None:
                text = signed(*pair, digits=UNITS[column][1])
                said.append((pair[0], f"{text} (`{row.label}`)"))
    return from_to(said)


def clipped(scope: Scope, data: str, word: str) -> str:
    """Return how many log scores are at their bound, and what they add to the mean."""
    scores = np.array(list(scope.one(data, word).by_fold("log_score").values()))
    at = scores < np.log(FLOOR) + 1e-3
    if not at.any():
        raise MissingRows(word)
    return f"{at.sum()} of {len(at)} make {scores[at].sum() / len(at):.2f} of the mean"


def declared(scope: Scope) -> str:
    """Return how many of all declared rows have all their folds."""
    whole = sum(r.whole for r in scope.found.values())
    return f"{whole} of {sum(len(group.rows) for group in GROUPS)}"


VERBS: dict[str, Callable[..., str]] = {
    f.__name__: f
    for f in (
        value,
        printed,
        gaps,
        spread,
        gaprange,
        between,
        near,
        minus,
        converged,
        settled,
        majority,
        sets,
        fewer,
        right,
        errors,
        wins,
        median,
        clearly,
        constant,
        subjects,
        unsettled,
        effects,
        across,
        clipped,
        declared,
    )
}


# --- templates ------------------------------------------------------------------------------------


def sentence(line: str, scope: Scope, verbs: Mapping[str, Callable[..., str]] = VERBS) -> str:
    """Return a sentence with its figures.

    Raises
    ------
    MissingRows
        A figure has no rows.
    """
    return FIELD.sub(lambda field: verbs[field[1]](scope, *field[2].split()), line)


def fill(
    template: str,
    scope: Scope,
    parts: Mapping[str, Sequence[str]],
    verbs: Mapping[str, Callable[..., str]] = VERBS,
) -> str:
    """Return a template with its sentences and its parts, which stand on lines `{{{name}}}`.

    A bold word on a line of its own is left out where no sentence follows it.
    """
    out: list[str] = []
    for line in template.splitlines():
        if line.startswith("{{{"):
            out += parts[line.strip("{}")]
            continue
        try:
            out.append(sentence(line, scope, verbs))
        except MissingRows:
            continue
    text = re.sub(r"^\*\*[^*\n]+\*\*\n(?=\*\*|\n)", "", "\n".join(out), flags=re.M)
    return re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n"
