"""More verbs of sentences: ours beside the print, states along a path, the other class."""

from collections.abc import Callable, Iterator

from scipy import stats

from lab.papers import classes
from lab.papers.prose import MissingRows, Scope, from_to, measured
from lab.papers.protocols import Group
from lab.papers.results import Pair, Result
from lab.papers.wording import kept, plus_minus, signed

LEVEL = 0.05  # of Student's t, two-sided


def beside(scope: Scope, word: str, column: str) -> str:
    """Return the share kept beside the printed one, on all data sets."""
    said = []
    for _, (r,) in scope.each(word):
        if r.mean(column) is not None and column in r.row.printed:
            said.append(both(r, column))
    return joined(said)


def both(r: Result, column: str) -> str:
    """Return a mean, and what the paper prints."""
    return f"{measured(r, column)} on {r.group.data} (printed {r.row.printed[column]:g})"


def apart(scope: Scope, word: str, column: str) -> str:
    """Return the share kept beside the printed one where their ratio is largest."""
    said = []
    for _, (r,) in scope.each(word):
        mean = r.mean(column)
        if mean is not None and column in r.row.printed and mean[0] > 0.0:
            ratio = max(mean[0] / r.row.printed[column], r.row.printed[column] / mean[0])
            said.append((ratio, both(r, column)))
    if not said:
        raise MissingRows(column)
    return max(said)[1]


def larger(scope: Scope, word: str) -> str:
    """Return what the larger class's share of the rows is minus the printed accuracy."""
    return joined([
        f"{group.data} {signed(100.0 * group.sizes[2] - r.row.printed['accuracy'])}"
        for group, (r,) in scope.each(word)
    ])  # fmt: skip


def against(scope: Scope, first: str, second: str) -> str:
    """Return how many rows of the data two rows classify right, on all data sets."""
    return joined([
        f"{rows_right(a)} against {rows_right(b)} of {group.sizes[0]} on {group.data}"
        for group, (a, b) in scope.each(first, second)
    ])  # fmt: skip


def rows_right(r: Result) -> int:
    """Return the number of test rows that are classified right, over all folds."""
    return round(sum(float(x["accuracy"]) * int(x["n_test"]) for x in r.lines.values()))


# --- along a path ---------------------------------------------------------------------------------


def changes(
    scope: Scope, word: str, early: str, late: str, column: str
) -> Iterator[tuple[Group, Pair]]:
    """Yield by how much a row's state at one step is above that at another, both by its means."""
    for group, (r,) in scope.each(word):
        states = [r.at(step) for step in (early, late)]
        if all(state.whole for state in states):
            pair = states[0].beside(states[1], column)
            if pair is not None:
                yield group, pair


def moved(scope: Scope, word: str, early: str, late: str, column: str) -> str:
    """Return these differences, on all data sets."""
    found = changes(scope, word, early, late, column)
    digits = 2 if column == "log_score" else 1
    return joined([f"{group.data} {signed(*pair, digits=digits)}" for group, pair in found])


def beyond(scope: Scope, word: str, early: str, late: str, column: str) -> str:
    """Return on how many data sets a difference is beyond Student's t, from fold to fold."""
    clear = [
        abs(mean) > stats.t.ppf(1.0 - LEVEL / 2.0, group.folds - 1) * error
        for group, (mean, error) in changes(scope, word, early, late, column)
    ]
    if not clear:
        raise MissingRows(column)
    return f"{sum(clear)} of {len(clear)}"


def unrun(scope: Scope, word: str, early: str, late: str, missing: str) -> str:
    """Return a path's accuracy and features where another row has not been run.

    A data set is left out if its accuracy or its features are not the same at both steps.
    """
    said, features = [], []
    for group, (r,) in scope.each(word):
        states = [r.at(step) for step in (early, late)]
        if scope.whole(group, missing) or not all(state.whole for state in states):
            continue
        first, last = ([s.mean(x) for x in ("accuracy", "features")] for s in states)
        if first == last and first[0] is not None and first[1] is not None:
            gap = signed(first[0][0] - r.row.printed["accuracy"])
            said.append(f"{group.data} {plus_minus(*first[0])} ({gap})")
            features.append(f"{kept(first[1][0])} %")
    shown = " and ".join(dict.fromkeys(features))
    return f"{joined(said)}, with {shown} of the features"


# --- the other class ------------------------------------------------------------------------------


def otherrange(scope: Scope, word: str) -> str:
    """Return the smallest and the largest of our F1 of y = 0 minus the printed figures."""
    said = []
    for group, (r,) in scope.each(word):
        gap = classes.gap(r, classes.OTHER)
        if gap is not None:
            said.append((gap, f"{signed(gap)} on {group.data}"))
    return from_to(said)


def above(scope: Scope, data: str) -> str:
    """Return how many of a table's methods have a larger F1 of y = 1 than is printed for them."""
    gaps = [
        classes.gap(r, "f1")
        for group in scope.groups
        for label in classes.METHODS
        if group.data == data and (r := scope.whole(group, label)) is not None
    ]
    if not gaps:
        raise MissingRows(data)
    return f"{sum(gap is not None and gap > 0.0 for gap in gaps)} of {len(gaps)}"


# --- shares ---------------------------------------------------------------------------------------


def shares(scope: Scope, word: str) -> str:
    """Return the shares of the features and of the samples that a row keeps, on all data sets."""
    said = []
    for group, (r,) in scope.each(word):
        of = [f"{measured(r, x)} of the {x}" for x in ("features", "samples") if r.mean(x)]
        said.append(f"{' and '.join(of)} on {group.data}")
    return joined(said)


def joined(said: list[str]) -> str:
    """Return figures in a row."""
    if not said:
        raise MissingRows
    return ", ".join(said)


VERBS: dict[str, Callable[..., str]] = {
    f.__name__: f
    for f in (
        beside, apart, larger, against, moved, beyond, unrun, otherrange, above, shares,
    )
}  # fmt: skip
