"""Clean a table: what to leave out, how text becomes numbers, how missing values are filled.

A `Cleaning` is declared by options, learned on the training rows, stored with a study as JSON, and
applied alike to training rows, held-out rows and new rows.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Self, get_args

import numpy as np
import pandas as pd
from pandas.api import types

from ardvark.common.validate import InputError, logger, named, one_of

from .columns import as_matrix, in_order, look, numbers, plain, texts

Encode = Literal["onehot", "ordinal"]
Impute = Literal["median", "mean", "most-frequent"]
_SHOWN = 5  # names in a message


class Rows(NamedTuple):
    """A table after rows and columns were chosen, before anything is encoded or filled."""

    features: pd.DataFrame
    labels: pd.Series
    shape: tuple[int, int]
    repeated: dict[str, str]
    left_out: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Cleaning:
    """How the rows of a table become numbers. Each step is off unless it is asked for.

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
    columns : tuple of str
        Learned: the features before encoding.
    fills : dict
        Learned: what a missing value of each column is replaced by.
    levels : dict of dict
        Learned: the levels of each text column, with their share of the training rows.

    Raises
    ------
    InputError
        A word that `encode` or `impute` does not have, or classes that are not two labels.

    Examples
    --------
    >>> import pandas as pd
    >>> from ardvark.data.cleaning import Cleaning
    >>> rows = pd.DataFrame({"age": [31, None, 52], "site": ["A", "B", "A"]})
    >>> cleaning = Cleaning(target="status", encode="onehot", impute="median").learn(rows)
    >>> cleaning.apply(rows).to_dict("list")
    {'age': [31.0, 41.5, 52.0], 'site=B': [0.0, 1.0, 0.0]}
    >>> Cleaning.from_json(cleaning.to_json()) == cleaning
    True
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
    columns: tuple[str, ...] = ()
    fills: Mapping[str, float | str] = field(default_factory=dict)
    levels: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.encode is not None:
            one_of("encode", self.encode, get_args(Encode))
        if self.impute is not None:
            one_of("impute", self.impute, get_args(Impute))
        if self.classes and (len(self.classes) != 2 or len({c.strip() for c in self.classes}) != 2):
            raise InputError(f"classes takes two labels, A,B, got {','.join(self.classes)!r}.")
        if self.target in self.drop:
            raise InputError(f"column {self.target!r} cannot be dropped: it is the label column.")

    def to_json(self) -> dict[str, Any]:
        """Return the cleaning as what JSON can hold."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Return the cleaning that `to_json` gave."""
        fields: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in stored.items()
        }
        return cls(**fields)

    def declared(self) -> dict[str, Any]:
        """Return what was asked for, by the names of the arguments of `table`."""
        learned = ("columns", "fills", "levels")
        names = [f.name for f in dataclasses.fields(self) if f.name not in learned]
        return {name: getattr(self, name) for name in names if getattr(self, name)}

    # --- which rows and columns ---

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
        frame = self._missing(frame)
        labels = texts(frame.pop(self.target))
        said = []
        keep = labels.notna()
        if not keep.all():
            said.append(f"{int((~keep).sum())} without a label")
        if self.classes:
            kept = [self.label(word, labels) for word in self.classes]
            others = keep & ~labels.isin(kept)
            keep &= ~others
            if others.any():
                said.append(f"{int(others.sum())} of other classes")
        if self.drop_missing:
            own = [name for name in frame if name not in (*self.drop, self.row_names)]
            lacking = keep & frame[own].isna().any(axis=1)
            keep &= ~lacking
            if lacking.any():
                said.append(f"{int(lacking.sum())} with a missing value")
        features = self._named_rows(frame[keep])
        labels = labels[keep].set_axis(features.index)
        return Rows(features, labels, shape, repeated, tuple(said))

    def label(self, word: str, labels: pd.Series) -> str:
        """Return the label that a word means, or raise an error that lists the labels."""
        known = in_order(labels.dropna().unique().tolist())
        return named(f"label of {self.target!r}", word.strip(), known)

    def new(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the features of new rows, as numbers, in the columns that the model has.

        Raises
        ------
        InputError
            A column is missing, a value is missing and nothing says how to fill it, or a column of
            numbers has text.
        """
        frame, _ = distinct_names(frame)
        frame = self._missing(self._named_rows(frame))
        lacking = [name for name in self.columns if name not in frame]
        if lacking:
            raise InputError(
                f"the new rows lack {len(lacking)} of {len(self.columns)} columns: "
                f"{listed(lacking)}. They need every column that the training table had, but for "
                "the labels and the columns that were left out."
            )
        known = {*self.columns, *self.drop, self.target, self.row_names}
        extra = [str(name) for name in frame if name not in known]
        if extra:
            logger.info("columns that no training row has are not used: %s", listed(extra))
        frame = frame[list(self.columns)]
        if self.drop_missing:
            whole = frame.notna().all(axis=1)
            if not whole.all():
                logger.info("%d new rows with a missing value are left out", int((~whole).sum()))
            frame = frame[whole]
        if frame.empty:
            raise InputError("there are no new rows to predict.")
        return self.apply(frame)

    def _named_rows(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the table with names as its index, and without columns that are not features."""
        name = self.row_names
        columns = [str(c) for c in frame.columns]
        if name is not None and name in frame:
            values = frame[name]
            if values.isna().any() or not texts(values).is_unique:
                twice = values[values.duplicated() | values.isna()].iloc[0]
                raise InputError(
                    f"column {name!r} cannot name the rows, because its entries must be there and "
                    f"differ: {twice!r} is missing or occurs twice. Choose another column."
                )
            frame = frame.set_axis(texts(values), axis=0)
        else:
            index = frame.index if frame.index.is_unique else range(len(frame))
            frame = frame.set_axis([str(label) for label in index], axis=0)
        gone = [c for c in columns if c in self.drop or c == name]
        return frame.drop(columns=gone)

    def _missing(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the table with the words of `na` as missing values."""
        if not self.na:
            return frame
        wanted = {word.strip().casefold() for word in self.na}
        sizes = [float(word) for word in wanted if _is_number(word)]

        def cleaned(values: pd.Series) -> pd.Series:
            if types.is_bool_dtype(values):
                return values
            if types.is_numeric_dtype(values):
                return values.mask(numbers(values).isin(sizes))
            return values.mask(texts(values).str.casefold().isin(wanted))

        return frame.apply(cleaned)

    # --- numbers ---

    def learn(self, features: pd.DataFrame) -> Self:
        """Return the cleaning with levels and fill values learned on these rows.

        A cleaning that has been learned keeps which of its columns are text.

        Raises
        ------
        InputError
            A column has no value in these rows.
        """
        fills: dict[str, float | str] = {}
        levels: dict[str, dict[str, float]] = {}
        empty = [str(name) for name, there in features.notna().any().items() if not there]
        if empty:
            raise InputError(
                f"column {empty[0]!r} has no value in the {len(features)} rows to learn from. "
                "Drop it, or split with another seed."
            )
        stored = [name for name in plain(features) if name not in self.levels]
        if self.impute is not None:
            typical = _typical(as_matrix(features, stored), self.impute)
            fills |= dict(zip(stored, typical.tolist(), strict=True))
        rest = features.drop(columns=stored)
        for name, values in rest.items():
            column = str(name)
            is_text = column in self.levels if self.columns else look(column, values).kind == "text"
            if is_text:
                levels[column], frequent = _levels(values, fill=self.impute is not None)
                if self.impute is not None:
                    fills[column] = frequent
            elif self.impute is not None:
                fills[column] = float(_typical(numbers(values).to_numpy()[:, None], self.impute)[0])
        names = tuple(map(str, features.columns))
        return dataclasses.replace(self, columns=names, fills=fills, levels=levels)

    def apply(self, features: pd.DataFrame) -> pd.DataFrame:
        """Return rows as numbers, as learned: missing values filled, text encoded.

        A level that no training row had tells the model nothing. Its row is treated as an average
        one in this column: each column made of it takes its mean over the training rows, so that it
        adds nothing to a linear eta. A warning names the level.

        Raises
        ------
        InputError
            A missing value that nothing says how to fill, or text in a column of numbers.
        """
        own = set(self.columns) - set(self.levels)
        missing = {str(name): int(n) for name, n in features.isna().sum().items()}
        lacking = [name for name, n in missing.items() if n and name not in self.fills]
        if lacking:
            counts = [f"{name} ({missing[name]})" for name in lacking]
            raise InputError(
                f"{len(lacking)} column(s) have missing values: {listed(counts)}. Fill them, or "
                "leave out these rows (drop_missing), or fill them by a rule (impute)."
            )
        parts: dict[str, np.ndarray] = {}
        stored = [name for name in plain(features) if name in own]
        array = as_matrix(features, stored)
        fills = np.array([self.fills.get(name, np.nan) for name in stored], dtype=np.float64)
        array = np.where(np.isnan(array), fills, array)
        if tuple(stored) == self.columns:
            return pd.DataFrame(array, index=features.index, columns=stored)
        place = {name: k for k, name in enumerate(stored)}
        for name in self.columns:
            if name in place:
                parts[name] = array[:, place[name]]
                continue
            values = features[name]
            if name in self.levels:
                words = texts(values)
                words = words.fillna(self.fills[name]) if name in self.fills else words
                parts |= self._encoded(name, words)
                continue
            found = numbers(values)
            wrong = found.isna() & values.notna()
            if wrong.any():
                raise InputError(
                    f"column {name!r} must contain numbers, but row {str(wrong.idxmax())!r} has "
                    f"{values[wrong].iloc[0]!r}."
                )
            parts[name] = (
                found.fillna(self.fills[name]) if name in self.fills else found
            ).to_numpy()
        return pd.DataFrame(parts, index=features.index, dtype=np.float64)

    def _encoded(self, name: str, words: pd.Series) -> dict[str, np.ndarray]:
        """Return the columns that a text column becomes."""
        shares = self.levels[name]
        unseen = ~words.isin(list(shares)).to_numpy()
        if unseen.any():
            logger.warning(
                "column %r has levels that no training row has (%s), in %d row(s), the first %r: "
                "these rows are treated as average ones in this column",
                name, listed(in_order(words[unseen].unique())), int(unseen.sum()),
                str(words.index[int(unseen.argmax())]),
            )  # fmt: skip
        if self.encode == "ordinal":
            place = {level: float(i) for i, level in enumerate(shares)}
            mean = sum(place[level] * share for level, share in shares.items())
            return {name: np.where(unseen, mean, words.map(place).astype(np.float64))}
        return {
            column: np.where(unseen, shares[level], words == level)
            for column, level in self.onehot(name).items()
        }

    def onehot(self, name: str) -> dict[str, str]:
        """Return {column: level} of a text column: all levels, or the second of two."""
        shown = list(self.levels[name])
        return {f"{name}={level}": level for level in (shown if len(shown) > 2 else shown[1:])}

    def became(self) -> list[str]:
        """Return for each text column, in words, which columns it became."""
        lines = []
        for name, shares in self.levels.items():
            levels = list(shares)
            if self.encode == "ordinal":
                order = ", ".join(f"{level} = {i}" for i, level in enumerate(levels))
                lines.append(f"{name}: {order}")
            elif len(levels) > 2:
                lines.append(f"{name}: {', '.join(self.onehot(name))}")
            elif len(levels) == 2:
                lines.append(f"{name}: {name}={levels[1]} (0 is {levels[0]})")
            else:
                lines.append(f"{name}: left out, because every row has {levels[0]}")
        return lines


def listed(names: Any, most: int = _SHOWN) -> str:
    """Return the first of some names, and how many more there are."""
    words = list(map(str, names))
    return ", ".join(words[:most]) + (f" and {len(words) - most} more" * (len(words) > most))


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


def _levels(values: pd.Series, *, fill: bool) -> tuple[dict[str, float], str]:
    """Return the levels of a text column with their shares, and the most frequent one."""
    words = texts(values)
    counts = {str(word): int(n) for word, n in words.value_counts().items()}
    known = in_order(counts)
    if isinstance(values.dtype, pd.CategoricalDtype) and values.dtype.ordered:
        known = texts(pd.Series(values.dtype.categories)).tolist()
    levels = [word for word in known if word in counts]
    frequent = max(levels, key=lambda word: counts[word])  # of equal counts the first
    if fill:
        counts[frequent] += int(words.isna().sum())
    total = sum(counts.values())
    return {word: counts[word] / total for word in levels}, frequent


def _typical(array: np.ndarray, rule: Impute) -> np.ndarray:
    """Return for each column of (N, D) what a missing number is replaced by."""
    if rule == "most-frequent":
        return np.array([float(pd.Series(column).mode().iloc[0]) for column in array.T])
    return (np.nanmedian if rule == "median" else np.nanmean)(array, axis=0)


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
