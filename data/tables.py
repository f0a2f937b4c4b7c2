"""A person's own table, from a file or a data frame, as a data set for a model."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
from pandas.api import types

from ardvark.common.validate import InputError, logger, named, nearest

from .cleaned import Table, encoder_of
from .cleaning import Cleaning, Encode, Impute, Rows, distinct_names
from .columns import in_order, levels, listed, numbers, profile, texts, tidied
from .faults import MANY_LABELS, TableError, examine
from .reading import Reading, Sheet, opened, stem

if TYPE_CHECKING:
    from .encoding import Encoder

ROW_NAMES = ("", "id", "index", "unnamed: 0", "sample", "row")
"""A first column of such a name, in any case, holds row names if its entries all differ."""
LABELS = ("y", "label", "labels", "class", "target", "outcome", "diagnosis", "status", "group")


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
        if found.heading not in ("labels", "constant"):
            logger.warning("%s", found.text)
    usual = "data" if isinstance(source, pd.DataFrame) else stem(source)
    return _table(rows, cleaning, name or usual, dataclasses.replace(reading, labels=None))


def label_columns(frame: pd.DataFrame) -> dict[str, list[str]]:
    """Return the columns with two to ten different values, the most likely labels first."""
    found = {}
    for name, values in frame.items():
        # most columns of a wide table have many values: the first ones show it
        if len(set(map(str, values.dropna().tolist()[: 10 * MANY_LABELS]))) <= MANY_LABELS:
            words = levels(values)
            if 2 <= len(words) <= MANY_LABELS and len(words) < values.notna().sum():
                found[str(name)] = words
    last = {name: -at for at, name in enumerate(found)}

    def rank(name: str) -> tuple[bool, bool, int]:  # by its name, then of few labels, then the last
        return name.casefold() not in LABELS, len(found[name]) > 3, last[name]

    return {name: found[name] for name in sorted(found, key=rank)}


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
    encoder = encoder_of(cleaning, rows.features)
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
