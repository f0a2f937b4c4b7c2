"""A person's own table, from a file or a data frame, as a data set for a model."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from pandas.api import types

from ardvark.common.validate import InputError, logger, named, nearest

from .cleaning import Cleaning, Encode, Impute, Rows, distinct_names
from .columns import in_order, listed, numbers, profile, texts, tidied
from .dataset import Dataset
from .faults import TableError, codes, examine, label_columns
from .numerals import Marks
from .reading import Reading, Sheet, opened, stem

if TYPE_CHECKING:
    from .encoding import Encoder

ROW_NAMES = ("", "id", "index", "unnamed: 0", "sample", "row")
"""A first column of such a name, in any case, holds row names if its entries all differ."""


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
        frame = opened(rows, dataclasses.replace(usual, **reading))
        frame = self.cleaning.features(distinct_names(frame)[0], self.marks)
        columns = list(self.encoder.feature_names_in_)
        if names is not None:
            columns = [name for name in columns if name in self.encoder.sources(names)]
        lacking = [name for name in columns if name not in frame]
        if lacking:
            what = "" if names is None else " that are needed"
            raise InputError(
                f"the new rows lack {len(lacking)} of {len(columns)} columns{what}: "
                f"{listed(lacking)}. They need every column that the training table had, but for "
                "the labels and the columns that were left out. If the file has a row for each "
                "feature, transpose it."
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
                marks = self.marks.get(str(name)) or Marks()
                found[name] = numbers(frame[name], marks)
                wrong = found[name].isna() & frame[name].notna()
                if wrong.any():
                    raise InputError(
                        f"column {name!r} must contain numbers, written as in the training table, "
                        f"but row {str(frame.index[wrong.to_numpy().argmax()])!r} has "
                        f"{frame[name][wrong.to_numpy()].iloc[0]!r}."
                    )
        return found

    def apart(self, held: Any) -> "tuple[Table, Table]":
        """Return training and held-out rows; levels and fill values are of the training rows.

        Parameters, errors and the rows of each part are those of `Dataset.apart`.
        """
        train, other = super().apart(held)
        encoder = _encoder(self.cleaning, train.raw)
        return _encoded(train, encoder), _encoded(other, encoder)

    @cached_property
    def remarks(self) -> tuple[str, ...]:
        """What a reader of results should know: how the table was cleaned, then as any data."""
        said = [f"Rows left out: {', '.join(self.left_out)}."] if self.left_out else []
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
        return (*said, *super().remarks)

    def _of_codes(self) -> list[str]:
        """Return which numbers may stand for missing values, before these were filled."""
        found = codes(self.raw, self.cleaning)
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
        return _encoded(dataclasses.replace(self, cleaning=cleaning), _encoder(cleaning, self.raw))


def _filled(frame: pd.DataFrame) -> list[str]:
    """Return for each row the columns without a value, in words."""
    missing = frame.isna().to_numpy()
    names = frame.columns.to_numpy(dtype=object)
    return ["; ".join(map(str, names[row])) for row in missing]


def _encoder(cleaning: Cleaning, features: pd.DataFrame) -> "Encoder":
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


def table(
    source: pd.DataFrame | str | Path,
    target: str | int | None = None,
    *,
    positive: str | None = None,
    classes: Sequence[str] = (),
    drop: Sequence[str] = (),
    drop_missing: bool = False,
    encode: Encode | None = None,
    impute: Impute | None = None,
    row_names: str | None = None,
    na: Sequence[str] = (),
    measured: Sequence[str] = (),
    groups: str | None = None,
    reference: Sequence[str] | Mapping[str, str] = (),
    decimal: str | None = None,
    sep: str | None = None,
    comment: str | None = None,
    header: bool | None = None,
    sheet: str | None = None,
    transpose: bool = False,
    labels: pd.DataFrame | str | Path | None = None,
    on: str | None = None,
    name: str | None = None,
) -> Table:
    """Return the data set of a table: a data frame, or a CSV, Excel or Parquet file.

    Nothing is left out, encoded or filled unless it is asked for, but for rows without a label. A
    table that cannot be used as it is raises one error. It reports all that was found, and the call
    that mends it.

    Parameters
    ----------
    source : DataFrame or path
        A row for each sample. A file is CSV in UTF-8 (also .csv.gz), .xlsx or .parquet. The index
        of a frame names its rows, and so does a first column that has no name, or is called id,
        index, sample or row, if its entries all differ.
    target : str or int
        The column of the labels. If it is left out, the error names the columns that may hold them.
    positive : str, optional
        The label of y = 1. All other labels are y = 0, even if there are several. By default y = 1
        is the label that sorts last.
    classes : sequence of str
        The two labels whose rows are kept, (y = 0, y = 1).
    drop : sequence of str
        Columns that are not features. One that differs in each row still names the rows.
    drop_missing : bool
        Leave out rows with a missing value.
    encode : {"onehot", "ordinal"}, optional
        How text becomes numbers. "onehot": a column of 0 and 1 for each level, `site=A`, and one
        column for two levels. "ordinal": 0, 1, 2, ... in the order of an ordered categorical, or of
        the alphabet.
    impute : {"median", "mean", "most-frequent"}, optional
        What a missing number is replaced by; a missing word, by the most frequent one.
    row_names : str, optional
        The column of row names.
    na : sequence of str
        Further words or numbers that stand for a missing value: "?", "-999".
    measured : sequence of str
        What is a measurement although it looks like something else: columns that look like ids,
        repeated patients or dates; and words that look like missing values, such as "None".
    groups : str, optional
        The column that says which rows belong together, such as those of a patient. It is not a
        feature. Splits and folds keep the rows of a group on one side.
    reference : sequence of str, or dict
        The level that others of a text column are compared with: ["batch=plate1"].
    decimal : {".", ","}, optional
        The decimal mark of numbers that are written as words; the other one groups thousands. By
        default it is that of the table, and a question where it is not clear.
    sep : str, optional
        The character between the fields of a CSV file, or "tab"; by default it is detected.
    comment : str, optional
        How lines begin that are no rows of the table: "#", "!".
    header : bool, optional
        False: the file has no names of columns, which are then x1, x2, ... True: it has.
    sheet : str, optional
        The sheet of an Excel file that has several.
    transpose : bool
        The file has a row for each feature, such as a gene, and a column for each sample.
    labels : DataFrame or path, optional
        Another table with the labels, and with further columns, of the samples.
    on : str, optional
        Its column that has the names of the samples.
    name : str, optional
        The name of the data set; by default that of the file.

    Returns
    -------
    Table
        A `Dataset`. Its `split` learns levels and fill values on the training rows only, and its
        `clean` prepares new rows in the same way.

    Raises
    ------
    InputError
        The file cannot be read, a column or label does not exist, or the table must be cleaned.

    Examples
    --------
    >>> import pandas as pd
    >>> import ardvark as av
    >>> frame = pd.DataFrame(
    ...     {
    ...         "patient": ["p1", "p2", "p3", "p4", "p5"],
    ...         "age": [31, None, 52, 40, 45],
    ...         "sex": ["f", "m", "f", "m", "f"],
    ...         "status": ["ill", "well", "well", "ill", "unsure"],
    ...     }
    ... )
    >>> av.table(frame, target="status")
    Traceback (most recent call last):
        ...
    ardvark.data.faults.TableError: the table cannot be used as it is.
    All that was found in 5 rows and 4 columns:
      labels     'status' must contain two labels, got 3: ill (2), well (2), unsure
                 (1). Compare one with the rest, or fit one against the rest for
                 each: scikit-learn's OneVsRestClassifier(SparseBayesClassifier()).
                 Choose: positive='ill' (against the rest); positive='unsure'
                 (against the rest); positive='well' (against the rest).
      missing    1 in 1 column: age (1). Remedy: fill by the median. (drop_missing
                 would keep 4 of 5 rows.)
      id         1 column with another entry in every row: patient. Remedy: it names
                 the rows.
      text       1 column: sex (f 3, m 2). Remedy: make each level a column of 0 and
                 1.
    This mends the rest. Add your choice for labels:
    <BLANKLINE>
        av.table(frame, target='status', encode='onehot', impute='median', ...)
    >>> data = av.table(
    ...     frame,
    ...     target="status",
    ...     classes=["ill", "well"],
    ...     encode="onehot",
    ...     impute="median",
    ...     row_names="patient",
    ... )
    >>> data
    Table('data', N=4, D=2, 'ill': 2, 'well': 2)
    >>> data.sample_names, data.X.tolist()
    (('p1', 'p2', 'p3', 'p4'), [[31.0, 0.0], [40.0, 1.0], [52.0, 0.0], [40.0, 1.0]])
    >>> av.problem("rfvm", data).X.shape
    (4, 2)
    """
    reading = Reading(
        sep=sep, comment=comment, header=header, sheet=sheet,
        transpose=transpose, labels=labels, on=on,
    )  # fmt: skip
    read = opened(source, reading)
    frame = pd.DataFrame(read).copy()  # one block of numbers: far faster than one a column
    what = "the table" if isinstance(source, pd.DataFrame) else str(source)
    column, wrong = _label_column(frame, None if target is None else str(target), what)
    names = [str(c) for c in distinct_names(frame)[0].columns]
    cleaning = Cleaning(
        target=column,
        positive=positive,
        classes=_words("classes", classes),
        drop=tuple(named("column", c, names) for c in _words("drop", drop)),
        drop_missing=drop_missing,
        encode=encode,
        impute=impute,
        row_names=None if row_names is None else named("column", row_names, names),
        na=_words("na", na),
        measured=_words("measured", measured),
        groups=None if groups is None else named("column", groups, names),
        decimal=decimal,
        reference=_references(reference),
    )
    cleaning = _row_names(cleaning, frame)
    rows = cleaning.chosen(frame, read.sep if isinstance(read, Sheet) else None)
    faults = examine(rows, cleaning)
    if wrong or any(found.stops for found in faults):
        call = "frame" if isinstance(source, pd.DataFrame) else repr(str(source))
        first = wrong or f"{what} cannot be used as it is."
        extra = {k: v for k, v in vars(reading).items() if v is not None and v is not False}
        raise TableError(first, rows, faults, cleaning, call, extra)
    if rows.left_out:
        logger.info("rows left out: %s", ", ".join(rows.left_out))
    for found in faults:
        if found.heading in ("codes", "equal"):
            logger.warning("%s", found.text)
    usual = "data" if isinstance(source, pd.DataFrame) else stem(source)
    return _table(rows, cleaning, name or usual, dataclasses.replace(reading, labels=None))


# --- the steps ------------------------------------------------------------------------------------


def _label_column(frame: pd.DataFrame, target: str | None, what: str) -> tuple[str, str]:
    """Return the column of labels, and what is wrong with its name: nothing, or a sentence.

    If the name is wrong, the column is a guess, for the report on the rest of the table.
    """
    names = list(dict.fromkeys(map(str, frame.columns)))
    if target is not None and target.casefold() in map(str.casefold, names):
        return named("label column", target, names), ""
    likely = label_columns(frame)
    first = f"{what}: name the column of labels (target)."
    if target is not None:
        near = nearest(target, list(likely)) or nearest(target, names, 0.7 if likely else 0.5)
        guess = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
        first = f"unknown label column {target!r}.{guess}"
    if not likely or _in_rows(frame):
        more = f" Known: {listed(names, 12)}."
        if len(names) == 1:
            more += " Only one column was found: name the separator (sep)."
        more += (
            " If rows are genes and columns are samples, read it transposed: transpose=True "
            "(--transpose). If labels are in another file: labels='clinical.tsv', on='sample' "
            "(--labels clinical.tsv --on sample)."
        )
        raise InputError(first + more)
    shown = listed((f"{c} ({listed(words)})" for c, words in likely.items()), 6)
    return next(iter(likely)), f"{first} Columns that may hold labels: {shown}."


def _in_rows(frame: pd.DataFrame) -> bool:
    """Whether the table has features in its rows: a column of names, and numbers in all others."""
    seen = profile(tidied(distinct_names(frame.head(200))[0]))
    names = seen["kind"] == "id"
    return bool(len(seen) > 2 and names.iloc[0] and (seen["kind"].iloc[1:] == "numbers").all())


def _row_names(cleaning: Cleaning, frame: pd.DataFrame) -> Cleaning:
    """Return the cleaning with the column that names the rows, if there is one."""
    if cleaning.row_names is not None:
        return cleaning
    frame, _ = distinct_names(frame)
    first = str(frame.columns[0])
    plain = frame.index.name is None and types.is_integer_dtype(frame.index)
    if first != cleaning.target and first.casefold() in ROW_NAMES and plain:
        values = frame[first]
        names = texts(values)
        apart = not names.isna().any() and names.is_unique
        measured = (numbers(values) % 1.0 > 0.0).any()
        what = f"column {first!r}" if first else "the first column, which has no name,"
        if apart and (first == "" or not measured):
            logger.info("%s is used as row names, not as a feature", what)
            return dataclasses.replace(cleaning, row_names=first)
        if first == "":
            logger.warning(
                "%s is left out, because its entries are not all different. If rows of a patient "
                "repeat, give the column a name, and that name as groups", what,
            )  # fmt: skip
            return dataclasses.replace(cleaning, drop=(*cleaning.drop, ""))
    for name in cleaning.drop if plain else ():
        seen = profile(tidied(frame[[name]])).iloc[0]
        if (seen["kind"] == "id" or seen["numbered"]) and not seen["missing"]:
            logger.info("column %r is dropped as a feature, and names the rows", name)
            return dataclasses.replace(cleaning, row_names=name)
    return cleaning


def _references(given: Sequence[str] | Mapping[str, str]) -> tuple[str, ...]:
    if isinstance(given, Mapping):
        return tuple(f"{column}={level}" for column, level in given.items())
    return _words("reference", given)


def _check_references(cleaning: Cleaning, encoder: "Encoder") -> None:
    """Refuse a reference that is no level of a text column."""
    for column, level in cleaning.references.items():
        known = encoder.levels_[named("text column", column, encoder.levels_)]
        named(f"level of {column!r}", level, known)


def _table(rows: Rows, cleaning: Cleaning, name: str, reading: Reading) -> Table:
    """Return the data set of chosen rows."""
    encoder = _encoder(cleaning, rows.features)
    _check_references(cleaning, encoder)
    found = encoder.transform(rows.features)
    one, classes = _classes(cleaning, rows.labels)
    return Table(
        found.to_numpy(),
        (rows.labels == one).to_numpy().astype(int),
        tuple(found.columns),
        tuple(rows.features.index),
        classes,
        name,
        cleaning=cleaning,
        encoder=encoder,
        whole=rows.features,
        left_out=rows.left_out,
        marks=rows.marks,
        reading=reading,
        groups=rows.groups,
    )


def _classes(cleaning: Cleaning, labels: pd.Series) -> tuple[str, tuple[str, str]]:
    """Return the label of y = 1, and the names of the two classes."""
    known = in_order(labels.unique().tolist())
    if cleaning.classes:
        known = [cleaning.label(word, labels) for word in cleaning.classes]
    if cleaning.positive is None:
        return known[1], (known[0], known[1])
    one = cleaning.label(cleaning.positive, labels)
    rest = [word for word in known if word != one]
    if len(rest) > 1:
        logger.info("y = 0 stands for every label but %r: %s", one, listed(rest))
    return one, (rest[0] if len(rest) == 1 else f"not {one}", one)


def _words(name: str, given: Sequence[str]) -> tuple[str, ...]:
    """Return a list of words; a single word is a list of one."""
    if isinstance(given, str):
        return (given,)
    try:
        return tuple(map(str, given))
    except TypeError:
        raise InputError(f"{name} must be a list of words, got {given!r}.") from None
