"""Look at a table: all that is wrong with it, in one report, and what mends it.

A remedy loses nothing that was measured: text becomes numbers, missing values are filled, a column
without any value is left out, and a column of words that all differ names the rows. What needs a
person is a question with its answers, and no command gives one by itself.
"""

import dataclasses
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ardvark.common.validate import InputError

from .cleaning import Cleaning, Rows
from .columns import alike, in_order, listed, numbers, profile, spoilt
from .missing_codes import in_table
from .numerals import Marks, are_codes, is_missing, number

MANY_LABELS = 10
"""Labels above which a column is not taken for one of labels."""
FEW = 20
"""Rows below which nothing is said of what may have come about by chance."""
MANY_LEVELS = 20
"""Levels above which it is a question what a text column is."""
MANY_WORDS = 5
"""Words above which a column of numbers and words is not read as numbers with missing values."""
NOTHING = {"?", "-", "--", ".", "*", "missing", "unknown", "unk", "nd", "n.d.", "not done", "x"}
"""Words that stand for nothing in a column of numbers, beside `numerals.MISSING`."""
_SHOWN = 12  # columns in a fault
_MEASURED = re.compile(r"[<>~≈=]*\s*[+-]?\d.*[^\d\w-].*|[<>~≈=]+\s*[+-]?\d.*|[+-]?\d+\s+\S+")

Settings = dict[str, Any]
Render = Callable[[Settings], str]
"""Writes settings as they are typed: in Python, or on a command line."""


class Fault(NamedTuple):
    """One thing that was found, whether it stops a fit, its remedy, and the answers to a question.

    `answers` are pairs of settings and what they mean.
    """

    heading: str
    text: str
    stops: bool
    remedy: Mapping[str, Any] = MappingProxyType({})
    answers: Sequence[tuple[Settings, str]] = ()


class TableError(InputError):
    """What is wrong with a table: a report of all of it, and the settings that mend it.

    Parameters
    ----------
    first : str
        The sentence that stands first.
    rows : Rows
        What was chosen of the table.
    faults : sequence of Fault
        All that was found.
    cleaning : Cleaning
        The settings so far.
    source : str
        The table, as it stands in the call.
    extra : dict
        Arguments of the call that are about the file.
    """

    def __init__(
        self,
        first: str,
        rows: Rows,
        faults: Sequence[Fault],
        cleaning: Cleaning,
        source: str,
        extra: Settings | None = None,
    ) -> None:
        self.first, self.shape, self.faults = first, rows.shape, faults
        self.columns = tuple(map(str, rows.features))
        self.mended = mended(faults, cleaning, rows.features)
        self.questions = [found for found in faults if found.answers and found.stops]
        call = ""
        if self.mended is not None:
            given = self.mended.declared() | (extra or {})
            call = f"av.table({source}, {_python(given)})"
        super().__init__(self.report(call))

    def report(self, command: str, render: Render | None = None) -> str:
        """Return the whole message, with the command or call that mends the table.

        `render` writes settings as they are typed; by default in Python.
        """
        write = render or _python
        lines = _wrapped(self.first, 71)  # the command line begins with its name
        if self.faults:
            lines.append(f"All that was found in {self.shape[0]} rows and {self.shape[1]} columns:")
        for found in self.faults:
            text = found.text
            if found.answers:
                text += " Choose: " + "; ".join(f"{write(s)} {why}" for s, why in found.answers)
                text += "."
            lines += _wrapped(f"  {found.heading:<10} {text}", 80, " " * 13)
        if self.mended is None:
            return "\n".join([*lines, "No setting mends all of it."])
        end = "This mends all of it:"
        if self.questions:
            rest = "This mends the rest. " if any(f.remedy for f in self.faults) else ""
            asked = ", ".join(dict.fromkeys(found.heading for found in self.questions))
            end = f"{rest}Add your choice for {asked}:"
        return "\n".join([*lines, f"{end}\n\n    {command}\n"])


def _python(settings: Settings) -> str:
    plain = {k: list(v) if isinstance(v, tuple) else v for k, v in settings.items()}
    return ", ".join(f"{name}={value!r}" for name, value in plain.items())


def _wrapped(text: str, width: int, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def mended(faults: Iterable[Fault], cleaning: Cleaning, features: pd.DataFrame) -> Cleaning | None:
    """Return the cleaning with what mends all that is no question; None if something cannot be."""
    changes: dict[str, Any] = {}
    for found in faults:
        if found.stops and not found.remedy and not found.answers:
            return None
        for name, value in found.remedy.items():
            if isinstance(value, tuple):
                value = tuple(dict.fromkeys((*changes.get(name, getattr(cleaning, name)), *value)))
            changes[name] = value
    gone = {*changes.get("drop", ()), changes.get("row_names")}
    return None if gone.issuperset(features) else dataclasses.replace(cleaning, **changes)


def examine(rows: Rows, cleaning: Cleaning) -> list[Fault]:
    """Return all that was found in the rows and columns that a cleaning chose.

    Examples
    --------
    >>> import pandas as pd
    >>> from ardvark.data.cleaning import Cleaning
    >>> from ardvark.data.faults import examine
    >>> frame = pd.DataFrame({"age": [31, None, 52], "site": ["A", "B", "A"], "y": list("uvu")})
    >>> cleaning = Cleaning(target="y")
    >>> for found in examine(cleaning.chosen(frame), cleaning):
    ...     print(found.heading, found.remedy)
    missing {'impute': 'median'}
    text {'encode': 'onehot'}
    """
    seen = profile(rows.features, rows.marks)
    parts = (
        _labels,
        _repeated,
        _names,
        _unclear,
        _words,
        _infinite,
        _codes,
        _missing,
        _levels,
        _alike,
        _dates,
        _ids,
        _groups,
        _text,
        _constant,
        _equal,
        _order,
        _outcome,
    )
    return [found for part in parts for found in part(rows, seen, cleaning)]


# --- one function for each kind of fault --------------------------------------------------------


def _told(columns: pd.Series, what: str = "") -> str:
    """Return how many columns there are, what they are, and the value of each."""
    shown = (
        f"{name} ({_counts(value) if isinstance(value, dict) else value})"
        for name, value in columns.items()
    )
    return f"{_columns(columns)}{what}: {listed(shown, _SHOWN)}"


def _columns(names: Any) -> str:
    return f"{len(names)} column{'s' * (len(names) != 1)}"


def _counts(words: dict[str, int]) -> str:
    return listed(f"{word[:20]} {n}" for word, n in words.items())


def _filled(cleaning: Cleaning) -> Settings:
    """Return the setting that fills what becomes missing, unless there is one."""
    return {} if cleaning.fills else {"impute": "median"}


def _drop(names: Iterable[object]) -> tuple[Settings, str]:
    return {"drop": list(map(str, names))}, "(not a feature)"


def _labels(rows: Rows, seen: pd.DataFrame, cleaning: Cleaning) -> Iterator[Fault]:
    counts = rows.labels.value_counts().to_dict()
    bare = [line for line in rows.left_out if line.endswith("without a label")]
    said = f" Rows left out: {bare[0]}." if bare else ""
    shown = listed([f"{word} ({n})" for word, n in counts.items()]) or "none"
    if bare and 2 * int(bare[0].split()[0]) > rows.shape[0]:
        many = (
            "More than half of the rows have no label. A spreadsheet's merged cells are one value"
        )
        yield Fault("unlabelled", f"{many}, and empty below: fill the column.", False)
    same = alike(counts)
    if same and len(counts) == 2:
        yield Fault("labels", f"{shown}: they differ in case only. Write them alike.", True)
        return
    if len(counts) == 2 or (cleaning.positive is not None and len(counts) > 1):
        if said:
            yield Fault("labels", f"{shown}.{said}", False)
        return
    text = f"{cleaning.target!r} must contain two labels, got {len(counts)}: {shown}.{said}"
    if same:
        text += f" {listed(same)} differ in case only: write them alike."
    if not 2 < len(counts) <= MANY_LABELS:
        yield Fault("labels", f"{text} Name another column (target).", True)
        return
    text += (
        " Compare one with the rest, or fit one against the rest for each: scikit-learn's "
        "OneVsRestClassifier(SparseBayesClassifier())."
    )
    answers: list[tuple[Settings, str]] = [
        ({"na": [word]}, "(not known)") for word in counts if is_missing(word)
    ]
    rest = [str(word) for word in counts if not is_missing(word)]
    answers += [({"positive": word}, "(against the rest)") for word in in_order(rest)[:3]]
    yield Fault("labels", text, True, {}, answers)


def _repeated(rows: Rows, seen: pd.DataFrame, cleaning: Cleaning) -> Iterator[Fault]:
    again = {new: name for new, name in rows.repeated.items() if new in seen.index}
    again = {new: name for new, name in again.items() if new not in cleaning.measured}
    if again:
        shown = listed(f"{name!r} (again as {new!r})" for new, name in again.items())
        said = f"{_columns(again)} with the name of another: {shown}."
        stay = ({"measured": list(again)}, "(another measurement)")
        yield Fault("names", said, True, {}, [stay, _drop(again)])


def _names(rows: Rows, seen: pd.DataFrame, cleaning: Cleaning) -> Iterator[Fault]:
    """Names that are dates or numbers: spreadsheets make them of genes."""
    odd = [n for n in spoilt(list(map(str, seen.index))) if n not in cleaning.measured]
    if odd:
        said = (
            f"{_columns(odd)} with a date or a number for a name: {listed(odd, _SHOWN)}. "
            "Spreadsheets make them of genes (MARCH1, SEPT2): write the genes' names into the file."
        )
        answers = [({"measured": odd}, "(these are the names)"), _drop(odd)]
        yield Fault("names", said, True, {}, answers)


def _unclear(rows: Rows, seen: pd.DataFrame, cleaning: Cleaning) -> Iterator[Fault]:
    """Numbers with a mark that is decimal or groups thousands."""
    columns = seen.index[seen["kind"] == "unclear"]
    if not len(columns):
        return
    examples = {}
    for name in columns:
        words = [str(word) for word in seen["words"][name]]
        word = next((w for w in words if _either(w)), words[0])
        point, comma = (f"{number(word, Marks(m, True)):.10g}" for m in ".,")
        examples[name] = f"{word} is {point} or {comma}"
    said = _told(pd.Series(examples), " of numbers with a mark for decimals or for thousands")
    answers = [
        ({"decimal": "."}, "(a point is decimal, a comma groups thousands)"),
        ({"decimal": ","}, "(the reverse)"),
    ]
    yield Fault("numbers", f"{said}.", True, {}, answers)


def _either(word: str) -> bool:
    found = [number(word, Marks(mark, True)) for mark in ".,"]
    return bool(np.isfinite(found).all() and found[0] != found[1])


def _words(rows: Rows, seen: pd.DataFrame, cleaning: Cleaning) -> Iterator[Fault]:
    mixed = seen["words"][seen["kind"] == "mixed"]
    plain = mixed[[all(w.casefold() in NOTHING for w in words) for words in mixed]]
    what = " of numbers with words among them"
    if len(plain):
        words = tuple(dict.fromkeys(w for words in plain for w in words))
        said = f"{_told(plain, what)}. Remedy: read these words as missing."
        yield Fault("words", said, True, {"na": words} | _filled(cleaning))
    odd = mixed.drop(plain.index)
    if not len(odd):
        return
    among = list(dict.fromkeys(w for words in odd for w in words))
    answers: list[tuple[Settings, str]] = [({"measured": list(odd.index)}, "(it is text)")]
    answers.append(_drop(odd.index))
    if len(among) <= MANY_WORDS:
        answers.insert(0, ({"na": among} | _filled(cleaning), "(they are missing values)"))
    said = f"{_told(odd, what)}. Write numbers in their place."
    yield Fault("words", said, True, {}, answers)


def _infinite(rows: Rows, seen: pd.DataFrame, cleaning: Cleaning) -> Iterator[Fault]:
    infinite = seen[seen["infinite"] > 0]
    if not len(infinite):
        return
    values = rows.features[list(infinite.index)].apply(numbers).to_numpy()
    signs = sorted({float(v) for v in values[np.isinf(values)]}, reverse=True)
    said = f"{_told(infinite['infinite'], ' with infinite values')}."
    missing = ({"na": list(map(str, signs))} | _filled(cleaning), "(missing)")
    yield Fault("infinite", said, True, {}, [missing, _drop(infinite.index)])


def _codes(rows: Rows, seen: pd.DataFrame, cleaning: Cleaning) -> Iterator[Fault]:
    text = in_table(rows.features, cleaning)
    if text:
        yield Fault("codes", text, False)


def _missing(rows: Rows, seen: pd.DataFrame, cleaning: Cleaning) -> Iterator[Fault]:
    empty = seen.index[seen["kind"] == "empty"]
    if len(empty):
        said = f"{_columns(empty)} without any value: {listed(empty, _SHOWN)}. Remedy: drop."
        yield Fault("empty", said, True, {"drop": tuple(map(str, empty))})
    kinds = ["numbers", "text", "mixed", "unclear"]
    lacking = seen[(seen["missing"] > 0) & seen["kind"].isin(kinds)]
    if not len(lacking) or cleaning.impute is not None:
        return
    fill = "by the median" + ", words by the most frequent" * bool(
        (lacking["kind"] == "text").any()
    )
    said = f"{lacking['missing'].sum()} in {_told(lacking['missing'])}. Remedy: fill {fill}."
    many = lacking.index[2 * lacking["missing"] > len(rows.features)]
    if len(many):
        said += f" More than half is missing in {listed(many, _SHOWN)}: you may drop that."
    whole = rows.features.drop(columns=empty).notna().all(axis=1).sum()
    said += f" (drop_missing would keep {whole} of {len(rows.features)} rows.)"
    yield Fault("missing", said, True, {"impute": "median"})


def _levels(rows: Rows, seen: pd.DataFrame, cleaning: Cleaning) -> Iterator[Fault]:
    """Words such as None among the levels of text."""
    found: dict[str, dict[str, int]] = {}
    kept = {word.casefold() for word in cleaning.measured}
    for name, words in seen["words"][seen["kind"].isin(["text", "id"])].items():
        odd = {w: n for w, n in words.items() if is_missing(w) and w.casefold() not in kept}
        if odd:
            found[str(name)] = odd
    if not found:
        return
    words = list(dict.fromkeys(word for odd in found.values() for word in odd))
    said = _told(pd.Series(found), f" of text in which {listed(map(repr, words))} may be a level")
    answers = [
        ({"measured": words}, "(a level)"),
        ({"na": words} | _filled(cleaning), "(missing)"),
    ]
    yield Fault("levels", f"{said}.", True, {}, answers)


def _alike(rows: Rows, seen: pd.DataFrame, cleaning: Cleaning) -> Iterator[Fault]:
    """Levels that are one word in small and in capital letters."""
    text = seen["words"][(seen["kind"] == "text") & ~seen.index.isin(cleaning.measured)]
    same = {str(name): {word: words[word] for word in alike(words)} for name, words in text.items()}
    found = {name: words for name, words in same.items() if words}
    if found:
        said = _told(pd.Series(found), " with levels that differ in case only")
        differ = ({"measured": list(found)}, "(they do differ)")
        yield Fault("levels", f"{said}. Write them alike.", True, {}, [differ])


def _text(rows: Rows, seen: pd.DataFrame, cleaning: Cleaning) -> Iterator[Fault]:
    text = seen["words"][(seen["kind"] == "text") & ~_asked_about(seen, cleaning)]
    ids = [name for name in seen.index[seen["kind"] == "id"] if name in cleaning.measured]
    if (len(text) or len(ids)) and cleaning.encode is None:
        shown = _told(text) if len(text) else _columns(ids)
        said = f"{shown}. Remedy: make each level a column of 0 and 1."
        if any(are_codes(words) for words in text):
            said += " Codes such as 007 or 8E2 are text; decimal='.' (--decimal .) reads numbers."
        yield Fault("text", said, True, {"encode": "onehot"})


def _asked_about(seen: pd.DataFrame, cleaning: Cleaning) -> pd.Series:
    """Return which columns may be names of patients, or free text."""
    many = (seen["kind"] == "text") & (seen["words"].map(len) > MANY_LEVELS)
    return (many | seen["repeated"].astype(bool)) & ~seen.index.isin(cleaning.measured)


def _dates(rows: Rows, seen: pd.DataFrame, cleaning: Cleaning) -> Iterator[Fault]:
    dates = seen.index[seen["kind"] == "dates"]
    if len(dates):
        said = (
            f"{_columns(dates)}: {listed(dates, _SHOWN)}. Write a number for each date, such as "
            "days since the first."
        )
        yield Fault("dates", said, True, {}, [_drop(dates)])


def _ids(rows: Rows, seen: pd.DataFrame, cleaning: Cleaning) -> Iterator[Fault]:
    """Columns that tell rows apart: words may name them, and numbers are a question."""
    ids = seen[((seen["kind"] == "id") | seen["numbered"]) & ~seen.index.isin(cleaning.measured)]
    words = [name for name in ids.index[ids["kind"] == "id"] if ids["missing"][name] == 0]
    names = [str(n) for n in words if not _measured(seen["words"][n])][:1]
    if names and cleaning.row_names is None:
        said = f"1 column with another entry in every row: {names[0]}. Remedy: it names the rows."
        yield Fault("id", said, True, {"row_names": names[0]})
        ids = ids.drop(names)
    if len(ids):
        said = f"{_columns(ids)} with another entry in every row: {listed(ids.index, _SHOWN)}."
        rest = list(map(str, ids.index))
        answers: list[tuple[Settings, str]] = [({"measured": rest}, "(a measurement)"), _drop(rest)]
        if cleaning.row_names is None and not names:
            answers.insert(0, ({"row_names": rest[0]}, "(names of rows)"))
        yield Fault("id", said, True, {}, answers)


def _measured(words: dict[str, int]) -> bool:
    """Whether words are numbers with a unit or another sign rather than names."""
    return 2 * sum(bool(_MEASURED.fullmatch(word)) for word in words) >= len(words)


def _groups(rows: Rows, seen: pd.DataFrame, cleaning: Cleaning) -> Iterator[Fault]:
    """Columns that repeat a patient, or free text."""
    for name in seen.index[_asked_about(seen, cleaning)]:
        values = rows.features[name].dropna()
        count = values.nunique()
        said = f"{name} has {count} different entries, repeated in {len(values)} rows."
        answers: list[tuple[Settings, str]] = [_drop([name])]
        encode = {} if cleaning.encode or seen["kind"][name] == "numbers" else {"encode": "onehot"}
        what = "(a measurement)" if seen["kind"][name] == "numbers" else "(levels)"
        answers.append(({"measured": [str(name)]} | encode, what))
        if cleaning.groups is None and not seen["missing"][name]:
            said += " If it is the same patient, a split must not part them."
            answers.insert(0, ({"groups": str(name)}, "(its rows stay together)"))
        yield Fault("groups", said, True, {}, answers)


def _constant(rows: Rows, seen: pd.DataFrame, cleaning: Cleaning) -> Iterator[Fault]:
    constant = seen.index[seen["constant"] & (seen["kind"] != "empty")]
    if len(constant):
        said = f"{_columns(constant)} with one value only: {listed(constant, _SHOWN)}."
        yield Fault("constant", f"{said} They contribute nothing.", False)


def _equal(rows: Rows, seen: pd.DataFrame, cleaning: Cleaning) -> Iterator[Fault]:
    """Columns that are copies: a sparse prior shares one effect among them."""
    columns = seen.index[(seen["kind"] == "numbers") & ~seen["constant"]]
    array = np.ascontiguousarray(rows.features[columns].to_numpy(dtype=float).T)
    first, copies = dict[bytes, str](), dict[str, str]()
    for name, values in zip(map(str, columns), array, strict=True):
        known = first.setdefault(values.tobytes(), name)
        if known != name:
            copies[name] = known
    if copies:
        said = _told(pd.Series(copies), " with the same values as another")
        yield Fault("equal", f"{said}. Copies share one effect (drop).", False)


def _order(rows: Rows, seen: pd.DataFrame, cleaning: Cleaning) -> Iterator[Fault]:
    """Columns that number the rows: where these are sorted by outcome, they predict it."""
    array = rows.features[seen.index[seen["kind"] == "numbers"]]
    rising = array.columns[(array.diff().iloc[1:] == 1.0).all() & (len(array) >= FEW)]
    running = [str(n) for n in rising if n not in cleaning.measured and not seen["numbered"][n]]
    if running:
        said = f"{_columns(running)} that may number the rows: {listed(running, _SHOWN)}."
        yield Fault("order", f"{said} If that is no measurement, leave it out (drop).", False)


def _outcome(rows: Rows, seen: pd.DataFrame, cleaning: Cleaning) -> Iterator[Fault]:
    """Columns that say what the labels say, by their levels or by where values are missing."""
    sizes = rows.labels.value_counts()
    if len(sizes) < 2 or sizes.min() < FEW / 4:
        return
    floats = rows.features.select_dtypes("float64")
    absent = rows.features.isna().groupby(rows.labels).mean()
    by = floats.groupby(rows.labels)
    same = (by.min() == by.max()).all() & ~seen["constant"].astype(bool)[floats.columns]
    told = dict.fromkeys(map(str, floats.columns[same]), "its values")
    for name in seen.index[seen["kind"].isin(["text", "dates"])]:
        pairs = set(zip(rows.features[name].astype(str), rows.labels, strict=True))
        if len(pairs) == len({word for word, _ in pairs}) <= MANY_LABELS:
            told[str(name)] = "its words"
    some = absent.isin([0.0, 1.0]).all() & (absent.min() < absent.max())
    told |= dict.fromkeys(map(str, absent.columns[some]), "where it is missing")
    if told:
        said = _told(pd.Series(told), " from which the labels follow in every row")
        yield Fault("outcome", f"{said}. If they are known only afterwards: drop.", False)
