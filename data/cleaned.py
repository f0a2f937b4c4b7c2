"""A data set that was made from a person's own table: it cleans new rows as it was cleaned."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from pandas.api import types

from ardvark.common.validate import InputError, logger

from .cleaning import Cleaning, distinct_names
from .columns import listed, numbers
from .dataset import Dataset
from .missing_codes import in_table
from .numerals import PLAIN, Marks
from .reading import Reading, opened

if TYPE_CHECKING:
    from .encoding import Encoder


@dataclass(frozen=True, eq=False, repr=False)
class Table(Dataset):
    """A data set made from a table: it knows how its rows were cleaned, and cleans new rows alike.

    `table` makes it. `split` and `apart` learn fill values and levels on the training rows only.
    `take` keeps what was learned; no label is used in learning.

    Parameters
    ----------
    cleaning : Cleaning
        What was left out, and how the rest is encoded and filled.
    encoder : Encoder
        What was learned for that: a transformer of scikit-learn.
    whole : DataFrame
        The features of all rows of the table, before they were encoded and filled.
    left_out : tuple of str
        How many rows were left out, and why.
    marks : dict
        How the numbers of columns of words are written (`columns.written`).
    reading : Reading
        How the file was read.

    Examples
    --------
    >>> import pandas as pd
    >>> import ardvark as av
    >>> frame = pd.DataFrame({"age": [31, 45, 52, 40], "sex": list("fmfm"), "y": list("uvvu")})
    >>> data = av.table(frame, "y", encode="onehot")
    >>> data.feature_names
    ('age', 'sex=m')
    >>> data.clean(pd.DataFrame({"age": [60], "sex": ["m"]})).to_dict("list")
    {'age': [60.0], 'sex=m': [1.0]}
    >>> data.against({"sex": "m"}).feature_names
    ('age', 'sex=f')
    >>> train, test = data.split(0.5, random_seed=0)
    >>> train.N, test.take([0], both=False).N
    (2, 1)
    >>> train, test = data.apart([True, False, False, False])
    >>> test.sample_names
    ('0',)
    """

    cleaning: Cleaning = field(kw_only=True)
    encoder: "Encoder" = field(kw_only=True)
    whole: pd.DataFrame = field(kw_only=True)
    left_out: tuple[str, ...] = field(default=(), kw_only=True)
    marks: Mapping[str, Marks | None] = field(default_factory=dict, kw_only=True)
    reading: Reading = field(default=Reading(), kw_only=True)

    @property
    def raw(self) -> pd.DataFrame:
        """The features of the rows, before they were encoded and filled."""
        return self.whole.loc[list(self.sample_names)]

    def clean(
        self,
        rows: "pd.DataFrame | str | Path",
        sep: str | None = None,
        *,
        names: Sequence[str] | None = None,
        **reading: Any,
    ) -> pd.DataFrame:
        """Return new rows as the numbers that a fit of this data predicts from.

        Each row is read by itself, as the training rows were: what is in the others does not
        matter. Names of rows may repeat, as visits of a patient do.

        Parameters
        ----------
        rows : DataFrame or path
            New rows, with the columns of the table; labels and other columns are not needed.
        sep : str, optional
            As for `table`.
        names : sequence of str, optional
            The columns to return, if not all are needed. Then the others may be missing.
        **reading
            `comment`, `header`, `sheet`, `transpose`, `labels`, `on`, as for `table`. Those that
            are left out are as for the training table, but for `sheet` and `labels`.

        Returns
        -------
        DataFrame (M, D)
            One column for each feature, one row for each new row, indexed by row name.
            ``attrs["filled"]`` has for each row the columns in which a missing value was filled.

        Raises
        ------
        InputError
            A column is missing, a value is missing and nothing says how to fill it, or a column of
            numbers has text.
        """
        usual = dataclasses.replace(self.reading, sep=sep, sheet=None, on=None)
        if isinstance(rows, pd.DataFrame):
            usual = dataclasses.replace(usual, transpose=False)
        how = dataclasses.replace(usual, **reading)
        frame, _ = distinct_names(opened(rows, how))
        cleaning, samples = self.cleaning, self.reading.on
        if cleaning.row_names not in frame and samples in frame:  # the labels' file named the rows
            cleaning = dataclasses.replace(cleaning, row_names=samples)
        frame = cleaning.features(frame, self.marks)
        columns = list(self.encoder.feature_names_in_)
        if names is not None:
            columns = [name for name in columns if name in self.encoder.sources(names)]
        lacking = [name for name in columns if name not in frame]
        if lacking:
            what = "" if names is None else " that are needed"
            turn = (
                "They were transposed, as the training table was; if a row of them is a sample, "
                "ask for that not to be done (transpose=False, --no-transpose)"
                if how.transpose
                else "If they have a row for each feature, transpose them (transpose=True, "
                "--transpose)"
            )
            raise InputError(
                f"the new rows lack {len(lacking)} of {len(columns)} columns{what}: "
                f"{listed(lacking)}. They need every column that the training table had, but for "
                f"the labels and the columns that were left out. {turn}."
            )
        extra = frame.columns.difference([*self.encoder.feature_names_in_, self.cleaning.target])
        if len(extra):
            logger.info("columns that no training row has are not used: %s", listed(extra))
        frame = self._as_numbers(frame[columns])
        if self.cleaning.drop_missing:
            whole = frame.notna().all(axis=1)
            if not whole.all():
                logger.info("%d new rows with a missing value are left out", (~whole).sum())
            frame = frame[whole]
        if frame.empty:
            raise InputError("there are no new rows to predict.")
        filled = _filled(frame) if self.cleaning.impute else [""] * len(frame)
        if any(filled):
            missing = frame.isna().sum()
            counts = (f"{name} ({n})" for name, n in missing[missing > 0].items())
            logger.warning(
                "%d missing values of new rows were filled by the %s of the training rows: %s",
                missing.sum(), self.cleaning.impute, listed(counts, 12),
            )  # fmt: skip
        some = self.encoder.transform if names is None else self.encoder.some
        found = some(frame) if names is None else some(frame)[list(names)]
        found.attrs["filled"] = filled
        return found

    def _as_numbers(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return rows with numbers where the training rows have them, or say which has none."""
        found = frame.copy()
        for name in frame.columns.difference(list(self.encoder.levels_)):
            if not types.is_float_dtype(frame[name]):
                marks = self.marks.get(str(name)) or PLAIN
                found[name] = numbers(frame[name], marks)
                wrong = (found[name].isna() & frame[name].notna()).to_numpy()
                if wrong.any():
                    first = frame[name][wrong]
                    raise InputError(
                        f"column {name!r} must contain numbers, written as in the training table, "
                        f"but row {str(first.index[0])!r} has {first.iloc[0]!r}."
                    )
        return found

    def apart(self, held: Any) -> "tuple[Table, Table]":
        """Return training and held-out rows; levels and fill values are of the training rows.

        Parameters, errors and the rows of each part are those of `Dataset.apart`.
        """
        train, other = super().apart(held)
        encoder = encoder_of(self.cleaning, train.raw)
        return _encoded(train, encoder), _encoded(other, encoder)

    @property
    def prepared(self) -> tuple[str, ...]:
        """What was left out, encoded and filled, and the groups, in sentences."""
        said = [f"Rows left out: {', '.join(self.left_out)}."] if self.left_out else []
        dropped = [name for name in self.cleaning.drop if name]
        if dropped:
            said.append(f"Columns left out: {listed(dropped, 12)}.")
        became = self.encoder.became()
        if became:
            said.append(f"Text became numbers ({self.cleaning.encode}): {'; '.join(became)}.")
        missing = self.raw.isna().sum()
        missing = missing[missing > 0]
        if len(missing):
            shown = listed((f"{name} ({n})" for name, n in missing.items()), 12)
            rule = f"the {self.cleaning.impute} of the training rows"
            if any(name in self.encoder.levels_ for name in missing.index):
                rule += ", a word by the most frequent one"
            said.append(f"{missing.sum()} missing values were filled by {rule}: {shown}.")
        return (*said, *super().prepared)

    def _of_codes(self) -> list[str]:
        """Return which numbers may stand for missing values, before these were filled."""
        found = in_table(self.raw, self.cleaning)
        return [found] if found else []

    def against(self, references: Mapping[str, str | None]) -> "Table":
        """Return the table in which levels of text are compared with a reference.

        Parameters
        ----------
        references : dict
            The reference level by column; None is the first one.
        """
        levels = self.encoder.levels_
        words = {name: levels[name][0] for name in references} | self.cleaning.references
        words |= {name: level for name, level in references.items() if level is not None}
        reference = tuple(f"{name}={level}" for name, level in words.items())
        cleaning = dataclasses.replace(self.cleaning, reference=reference)
        same = dataclasses.replace(self, cleaning=cleaning)
        return _encoded(same, encoder_of(cleaning, self.raw))


def _filled(frame: pd.DataFrame) -> list[str]:
    """Return for each row the columns without a value, in words."""
    missing = frame.isna().to_numpy()
    names = frame.columns.to_numpy(dtype=object)
    return ["; ".join(map(str, names[row])) for row in missing]


def encoder_of(cleaning: Cleaning, features: pd.DataFrame) -> "Encoder":
    """Return what is learned on rows."""
    from .encoding import Encoder  # scikit-learn is imported where a table is read

    how = cleaning.encode or "onehot", cleaning.impute, cleaning.references
    return Encoder(*how).fit(features)


def _encoded(part: Table, encoder: "Encoder") -> Table:
    """Return a part of a table, cleaned by what was learned on another."""
    rows = encoder.transform(part.raw)
    return dataclasses.replace(
        part, X=rows.to_numpy(), feature_names=tuple(rows.columns), encoder=encoder, both=False
    )
