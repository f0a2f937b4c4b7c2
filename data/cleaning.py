"""Which rows and columns of a table are used, and how: what the arguments of `table` declare."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import pandas as pd

from ardvark.common.validate import InputError, named, one_of

from .columns import in_order, numbers, texts, tidied, written
from .numerals import Marks

Encode = Literal["onehot", "ordinal"]
Impute = Literal["median", "mean", "most-frequent"]


class Rows(NamedTuple):
    """A table after rows and columns were chosen, before anything is encoded or filled.

    `features` are tidied (`columns.tidied`). `repeated` is {new name: name} of the columns that
    have the name of another one. `marks` says how numbers are written (`columns.written`), and
    `groups` which rows belong together, if that is known.
    """

    features: pd.DataFrame
    labels: pd.Series
    shape: tuple[int, int]
    repeated: dict[str, str]
    left_out: tuple[str, ...]
    marks: dict[str, Marks | None]
    groups: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class Cleaning:
    """How the rows of a table are used. Each step is off unless it is asked for.

    Parameters
    ----------
    target : str
        The column of the labels.
    positive : str, optional
        The label of y = 1; all others are y = 0.
    classes : tuple of str
        The two labels whose rows are kept, (y = 0, y = 1).
    drop : tuple of str
        Columns that are not features.
    drop_missing : bool
        Leave out rows with a missing value.
    encode : {"onehot", "ordinal"}, optional
        How text becomes numbers. "onehot": a column of 0 and 1 for each level, and one column for
        two levels. "ordinal": 0, 1, 2, ... in the order of the levels, which is alphabetical unless
        the column is an ordered categorical.
    impute : {"median", "mean", "most-frequent"}, optional
        What a missing number is replaced by. A missing word is replaced by the most frequent one.
    row_names : str, optional
        The column of row names.
    na : tuple of str
        Further words or numbers that stand for a missing value.
    measured : tuple of str
        What is a measurement although it looks like something else: columns of text, numbers or
        dates that look like names of rows, patients or genes; and words that look like missing
        values, such as None.
    groups : str, optional
        The column that says which rows belong together, such as those of a patient.
    decimal : {".", ","}, optional
        The decimal mark of numbers that are written as words. The other one groups thousands.
    reference : tuple of str
        Levels that the others of a text column are compared with: "batch=plate1".

    Raises
    ------
    InputError
        A word that `encode` or `impute` does not have, or classes that are not two labels.
    """

    target: str
    positive: str | None = None
    classes: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    drop_missing: bool = False
    encode: Encode | None = None
    impute: Impute | None = None
    row_names: str | None = None
    na: tuple[str, ...] = ()
    measured: tuple[str, ...] = ()
    groups: str | None = None
    decimal: str | None = None
    reference: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.encode is not None:
            one_of("encode", self.encode, get_args(Encode))
        if self.impute is not None:
            one_of("impute", self.impute, get_args(Impute))
        if self.decimal is not None:
            one_of("decimal", self.decimal, (".", ","))
        wrong = [word for word in self.reference if not all(word.partition("=")[::2])]
        if wrong:
            raise InputError(f"reference takes column=level, got {wrong[0]!r}.")
        if self.classes and (len(self.classes) != 2 or len({c.strip() for c in self.classes}) != 2):
            raise InputError(f"classes takes two labels, A,B, got {','.join(self.classes)!r}.")
        if self.target in self.drop:
            raise InputError(f"column {self.target!r} cannot be dropped: it is the label column.")

    def declared(self) -> dict[str, Any]:
        """Return what was asked for, by the names of the arguments of `table`."""
        return {name: value for name, value in dataclasses.asdict(self).items() if value}

    @property
    def fills(self) -> bool:
        """Whether missing values need no more settings."""
        return self.impute is not None or self.drop_missing

    @property
    def references(self) -> dict[str, str]:
        """The level by text column that the others are compared with."""
        return {c: level for c, _, level in (word.partition("=") for word in self.reference)}

    def chosen(self, frame: pd.DataFrame, sep: str | None = None) -> Rows:
        """Return the features and labels of a training table, without what is left out.

        Columns whose names repeat are renamed: the second `a` is `a.2`. Rows are named, words of
        `na` become missing, rows without a label or of other classes are left out, and so are rows
        with a missing value if `drop_missing` says so. `sep` is the separator of the file.

        Raises
        ------
        InputError
            A label that the table does not have, a row without a group, or row names that are
            missing or not distinct.
        """
        shape = frame.shape
        frame, repeated = distinct_names(frame)
        labels = _labels(frame[self.target])
        labels = labels.mask(labels.str.casefold().isin([w.strip().casefold() for w in self.na]))
        kept = labels.notna()
        left_out = {"without a label": ~kept}
        if self.classes:
            both = [self.label(word, labels) for word in self.classes]
            left_out["of other classes"] = kept & ~labels.isin(both)
            kept &= labels.isin(both)
        frame = frame[kept]
        if self.row_names is not None and self.row_names in frame:
            _check_names(texts(frame[self.row_names]), self.row_names)
        groups = self._groups(frame)
        own = self._own(frame)
        marks = written(own, self.na, self.measured, sep, self.decimal)
        features = tidied(own, self.na, marks)
        labels = labels[kept].set_axis(features.index)
        if self.drop_missing:
            whole = features.notna().all(axis=1)
            left_out["with a missing value"] = ~whole
            features, labels = tidied(features[whole], (), marks), labels[whole]
            groups = None if groups is None else groups[whole.to_numpy()]
        said = tuple(f"{int(rows.sum())} {why}" for why, rows in left_out.items() if rows.any())
        found = None if groups is None else tuple(groups)
        return Rows(features, labels, shape, repeated, said, marks, found)

    def _groups(self, frame: pd.DataFrame) -> pd.Series | None:
        """Return the group of each row (N,)."""
        if self.groups is None:
            return None
        groups = texts(frame[self.groups])
        if groups.isna().any():
            raise InputError(
                f"column {self.groups!r} says which rows belong together, and is empty in "
                f"{int(groups.isna().sum())} rows. Fill it, or leave these rows out."
            )
        return groups

    def label(self, word: str, labels: pd.Series) -> str:
        """Return the label that a word means, or raise an error that lists the labels."""
        known = in_order(labels.dropna().unique().tolist())
        return named(f"label of {self.target!r}", word.strip(), known)

    def features(self, frame: pd.DataFrame, marks: Mapping[str, Marks | None]) -> pd.DataFrame:
        """Return a table tidied, with names as its index, without columns that are no features.

        Numbers are written as `marks` say, so that each row is read by itself.
        """
        return tidied(self._own(frame), self.na, marks)

    def _own(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the columns that may be features, indexed by the names of rows."""
        name = self.row_names
        if name is not None and name in frame:
            found = texts(frame[name])
            index = [str(k) if pd.isna(word) else word for k, word in enumerate(found)]
        else:
            index = list(map(str, frame.index if frame.index.is_unique else range(len(frame))))
        others = [*self.drop, name, self.groups, self.target]
        return frame[frame.columns[~frame.columns.isin(others)]].set_axis(index, axis=0)


def _labels(values: pd.Series) -> pd.Series:
    """Return labels as words; if all are numbers, 1.0 and 1 are the same."""
    words = texts(values)
    found = numbers(words.dropna(), Marks())
    if found.isna().any():
        return words
    return words.mask(words.notna(), texts(found.reindex(words.index)))


def _check_names(names: pd.Series, column: str) -> None:
    """Refuse names of training rows that are missing or not distinct."""
    wrong = names[names.duplicated() | names.isna()]
    if len(wrong):
        raise InputError(
            f"column {column!r} cannot name the rows, because its entries must be there and "
            f"differ: {wrong.iloc[0]!r} is missing or occurs twice. Choose another column. If it "
            f"repeats a patient, keep the rows of one together: groups={column!r} (--groups)."
        )


def distinct_names(frame: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return the table with distinct column names, and {new name: name} of what was renamed."""
    names: dict[str, None] = {}
    renamed: dict[str, str] = {}
    taken = {str(c) for c in frame.columns}
    for name in map(str, frame.columns):
        new, k = name, 2
        while new in names or (new != name and new in taken):
            new, k = f"{name}.{k}", k + 1
        names[new] = None
        if new != name:
            renamed[new] = name
    return frame.set_axis(list(names), axis=1), renamed
