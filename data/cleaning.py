"""Which rows and columns of a table are used, and how: what the arguments of `table` declare."""

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import pandas as pd

from ardvark.common.validate import InputError, named, one_of

from .columns import in_order, texts, tidied, without

Encode = Literal["onehot", "ordinal"]
Impute = Literal["median", "mean", "most-frequent"]


class Rows(NamedTuple):
    """A table after rows and columns were chosen, before anything is encoded or filled.

    `features` are tidied (`columns.tidied`). `repeated` is {new name: name} of the columns that
    have the name of another one.
    """

    features: pd.DataFrame
    labels: pd.Series
    shape: tuple[int, int]
    repeated: dict[str, str]
    left_out: tuple[str, ...]


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

    def __post_init__(self) -> None:
        if self.encode is not None:
            one_of("encode", self.encode, get_args(Encode))
        if self.impute is not None:
            one_of("impute", self.impute, get_args(Impute))
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

    def chosen(self, frame: pd.DataFrame) -> Rows:
        """Return the features and labels of a training table, without what is left out.

        Columns whose names repeat are renamed: the second `a` is `a.2`. Rows are named, words of
        `na` become missing, rows without a label or of other classes are left out, and so are rows
        with a missing value if `drop_missing` says so.

        Raises
        ------
        InputError
            A label that the table does not have, or row names that are missing or not distinct.
        """
        shape = frame.shape
        frame, repeated = distinct_names(frame)
        labels = without(texts(frame.pop(self.target)), self.na)
        kept = labels.notna()
        left_out = {"without a label": ~kept}
        if self.classes:
            both = [self.label(word, labels) for word in self.classes]
            left_out["of other classes"] = kept & ~labels.isin(both)
            kept &= labels.isin(both)
        features = self.features(frame[kept])
        labels = labels[kept].set_axis(features.index)
        if self.drop_missing:
            lacking = features.isna().any(axis=1)
            left_out["with a missing value"] = lacking
            features, labels = tidied(features[~lacking]), labels[~lacking]
        said = tuple(f"{int(rows.sum())} {why}" for why, rows in left_out.items() if rows.any())
        return Rows(features, labels, shape, repeated, said)

    def label(self, word: str, labels: pd.Series) -> str:
        """Return the label that a word means, or raise an error that lists the labels."""
        known = in_order(labels.dropna().unique().tolist())
        return named(f"label of {self.target!r}", word.strip(), known)

    def features(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return a table tidied, with names as its index, without columns that are no features."""
        name = self.row_names
        if name is not None and name in frame:
            values = texts(frame[name])
            wrong = values[values.duplicated() | values.isna()]
            if len(wrong):
                raise InputError(
                    f"column {name!r} cannot name the rows, because its entries must be there and "
                    f"differ: {wrong.iloc[0]!r} is missing or occurs twice. Choose another column."
                )
            index = values.tolist()
        else:
            index = list(map(str, frame.index if frame.index.is_unique else range(len(frame))))
        own = frame.columns[~frame.columns.isin([*self.drop, name])]
        return tidied(frame[own].set_axis(index, axis=0), self.na)


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
