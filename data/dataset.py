"""The container of data: N samples, D features and two classes, immutable after construction.

A `Dataset` is checked when it is made. All code that uses it (models, inference, the command line)
may rely on finite values, two classes and distinct names. Selecting rows gives a new data set.
"""

from collections.abc import Sequence
from dataclasses import InitVar, dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from typing import Any, Self

import numpy as np
import pandas as pd

from ardvark.common.html import table
from ardvark.common.rounding import differ
from ardvark.common.validate import InputError, distinct, matrix, named, two_classes, whole

from .columns import listed
from .missing_codes import told

FEW = 20
"""Samples below which a data set is said to be small; a quarter of it, of one class."""
COMMON = 0.9
"""Share of the larger class above which a data set is said to be unbalanced."""


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Features, binary labels and their names, frozen.

    `Dataset.from_arrays` accepts any two labels and data frames, and fills in names. The
    constructor expects everything in its final form.

    Parameters
    ----------
    X : ndarray (N, D)
        Finite numbers; stored as read-only float64 in C order.
    y : ndarray (N,)
        0 or 1; stored as read-only int64.
    feature_names, sample_names : sequence of str
        D and N distinct names.
    class_names : tuple of str
        The names of y = 0 and of y = 1, in this order.
    name, citation : str
        Its name, and the reference to cite.
    transform : str
        The transform that was applied to the published values, "" for none.
    both : bool
        False also accepts a single class or a single row, as in a fold or test set that is only
        predicted. No model can be fitted to such a data set.
    groups : sequence of str, optional
        Which samples belong together (N,), such as those of a patient. Splits and folds keep them
        on one side.

    Raises
    ------
    InputError
        NaN or infinite values (with the first offending row and column by name), fewer than 2
        samples, no feature, unequal lengths, duplicate names, labels other than 0 and 1, one class.

    Notes
    -----
    Constant features are kept; `constant_features` names them, and `constant` (D,) marks them. Two
    data sets compare by identity; compare `fingerprint` for equal content.

    Examples
    --------
    >>> from ardvark.data import Dataset
    >>> X = [[1.0, 0.2], [2.0, 0.1], [3.0, 0.4], [4.0, 0.3]]
    >>> names, classes = ["ann", "ben", "cas", "dee"], ("ill", "well")
    >>> data = Dataset(X, [0, 0, 1, 1], ["age", "dose"], names, classes)
    >>> data
    Dataset('data', N=4, D=2, 'ill': 2, 'well': 2)
    >>> data.N, data.D, data.counts
    (4, 2, (2, 2))
    >>> data.remarks[0]
    'Only 4 samples: expect wide intervals and an unreliable accuracy.'
    """

    X: np.ndarray
    y: np.ndarray
    feature_names: Sequence[str]
    sample_names: Sequence[str]
    class_names: tuple[str, str]
    name: str = "data"
    citation: str = ""
    transform: str = ""
    both: InitVar[bool] = True
    groups: Sequence[str] | None = field(default=None, kw_only=True)

    def __post_init__(self, both: bool) -> None:
        features = tuple(map(str, self.feature_names))
        samples = tuple(map(str, self.sample_names))
        classes = tuple(map(str, self.class_names))
        groups = None if self.groups is None else tuple(map(str, self.groups))
        X = _named_matrix(self.X, features, samples, min_rows=2 if both else 1)
        for kind, names, size in (
            ("feature", features, X.shape[1]),
            ("sample", samples, X.shape[0]),
            ("class", classes, 2),
        ):
            if len(names) != size:
                raise InputError(
                    f"{kind}_names has {len(names)} name(s), expected {size}: "
                    f"X has shape {X.shape}."
                )
            distinct(kind, names)
        if groups is not None and len(groups) != len(X):
            raise InputError(f"groups has {len(groups)} entries, expected one a row: {len(X)}.")
        y, labels = two_classes(self.y, len(X), both=both)
        if not np.isin(np.asarray(self.y), (0, 1)).all():
            raise InputError(
                f"y must contain 0 and 1, got {labels[0]!r} and {labels[1]!r}. "
                "Dataset.from_arrays accepts any two labels."
            )
        y = np.asarray(self.y).astype(np.int64)  # two_classes would read a lone 0 as its class 1
        for name, value in (
            ("X", _locked(X)),
            ("y", _locked(y)),
            ("feature_names", features),
            ("sample_names", samples),
            ("class_names", classes),
            ("groups", groups),
        ):
            object.__setattr__(self, name, value)

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        y: Any,
        *,
        name: str = "data",
        feature_names: Sequence[str] | None = None,
        sample_names: Sequence[str] | None = None,
        class_names: tuple[str, str] | None = None,
        citation: str = "",
        transform: str = "",
        groups: Any = None,
    ) -> Self:
        """Make a data set from arrays or a data frame, with any two labels.

        Parameters
        ----------
        X : array-like (N, D) or DataFrame
            A frame's column labels become feature names, and its index becomes sample names.
            Otherwise features are x1, x2, ... (from 1, as in the papers) and samples are 0, 1, ...
        y : array-like (N,), Series, or str or int
            Two distinct labels: strings, numbers or booleans. The one that sorts last is y = 1. Or
            the name of a column of a frame X, which is then not a feature. A series must have the
            index of a frame X, because rows are never matched silently.
        name, citation, transform : str
            As in the class.
        groups : array-like (N,), or the name of a column of a frame X, optional
            Which rows belong together; such a column is not a feature.
        feature_names, sample_names : sequence of str, optional
            Used instead of the above.
        class_names : tuple of str, optional
            Names to show for (y = 0, y = 1) instead of the two labels.

        Raises
        ------
        InputError
            As in the class.

        Examples
        --------
        >>> import pandas as pd
        >>> from ardvark.data import Dataset
        >>> frame = pd.DataFrame({"age": [31, 45, 52], "diagnosis": ["well", "ill", "ill"]})
        >>> data = Dataset.from_arrays(frame, "diagnosis", name="patients")
        >>> data
        Dataset('patients', N=3, D=1, 'ill': 2, 'well': 1)
        >>> data.feature_names, data.y.tolist()
        (('age',), [1, 0, 0])
        """
        if is_name(y):
            X, y = _apart(X, y, "label column")
        if groups is not None and is_name(groups):
            X, groups = _apart(X, groups, "column")
        frame = X if isinstance(X, pd.DataFrame) else None
        if frame is not None and isinstance(y, pd.Series) and not frame.index.equals(y.index):
            raise InputError(
                "X and y have different indices, so their rows may not match. "
                "Pass y.reindex(X.index), or y.to_numpy() if the order is right."
            )
        array = matrix(X, min_rows=2)
        if feature_names is None:
            feature_names = (
                [f"x{k + 1}" for k in range(array.shape[1])]
                if frame is None
                else [str(label) for label in frame.columns]
            )
        if sample_names is None:
            sample_names = [str(i) for i in (range(len(array)) if frame is None else frame.index)]
        target, labels = two_classes(_plain_labels(y), len(array))
        return cls(
            array,
            target,
            feature_names,
            sample_names,
            (str(labels[0]), str(labels[1])) if class_names is None else class_names,
            name,
            citation,
            transform,
            groups=None if groups is None else list(np.asarray(groups).ravel()),
        )

    @property
    def N(self) -> int:
        """The number of samples."""
        return len(self.X)

    @property
    def D(self) -> int:
        """The number of features."""
        return self.X.shape[1]

    @property
    def counts(self) -> tuple[int, int]:
        """How many samples have y = 0 and y = 1."""
        ones = int(self.y.sum())
        return self.N - ones, ones

    @cached_property
    def constant(self) -> np.ndarray:
        """Which features (D,) take one value in all rows, but for the rounding of float64."""
        return ~differ(self.X.min(axis=0), self.X.max(axis=0))

    @property
    def constant_features(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(self.feature_names[k] for k in np.flatnonzero(self.constant).tolist())

    @property
    def prepared(self) -> tuple[str, ...]:
        """What was done to the data before any model saw them, in sentences."""
        if self.groups is None:
            return ()
        said = (
            f"{self.N} rows of {len(set(self.groups))} groups, which splits and folds keep together"
        )
        return (f"{said}; the likelihood takes all rows as independent.",)

    @cached_property
    def remarks(self) -> tuple[str, ...]:
        """What a reader of results should know: how they were prepared, and what is odd."""
        said = [*self.prepared, *self._of_codes()]
        if self.N < FEW:
            said.append(f"Only {self.N} samples: expect wide intervals and an unreliable accuracy.")
        small = int(np.argmin(self.counts))
        size, share = self.counts[small], 1.0 - self.counts[small] / self.N
        if size < FEW / 4 or share > COMMON:
            said.append(
                f"{size} of {self.N} samples are {self.class_names[small]!r}: always answering "
                f"{self.class_names[1 - small]!r} would be right for {100 * share:.1f} %."
            )
        distinct_rows = {row.tobytes(): label for row, label in zip(self.X, self.y, strict=True)}
        repeated = self.N - len(distinct_rows)
        if repeated:
            both = self.N - repeated < len(
                {(row.tobytes(), label) for row, label in zip(self.X, self.y.tolist(), strict=True)}
            )
            said.append(
                f"{repeated} of {self.N} rows repeat the features of another row"
                f"{', some with the other label' if both else ''}. Such rows are not independent "
                "evidence, and a split may put one of them on each side."
            )
        return tuple(said)

    def _of_codes(self) -> list[str]:
        """Return which numbers may stand for missing values."""
        found = told(self.feature_names, self.X)
        return [found] if found else []

    @cached_property
    def fingerprint(self) -> str:
        """Identity of the values: sha256 of X (float64, C order), then y (int8), in hexadecimal."""
        digest = sha256(np.ascontiguousarray(self.X, dtype=np.float64))
        digest.update(self.y.astype(np.int8))
        return digest.hexdigest()

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a pickled or copied data set: its arrays are read-only again."""
        self.__dict__.update(state)
        self.X.flags.writeable = self.y.flags.writeable = False

    def __repr__(self) -> str:
        zero, one = self.counts
        return (
            f"{type(self).__name__}({self.name!r}, N={self.N}, D={self.D}, "
            f"{self.class_names[0]!r}: {zero}, {self.class_names[1]!r}: {one})"
        )

    def _repr_html_(self) -> str:
        (zero, one), still = self.counts, self.constant_features
        rows = [
            ("samples", self.N),
            ("features", f"{self.D}: {listed(self.feature_names, 6)}"),
            ("y = 1", f"{self.class_names[1]} ({one})"),
            ("y = 0", f"{self.class_names[0]} ({zero})"),
            ("constant features", f"{len(still)}: {listed(still, 6)}".removesuffix(": ")),
            ("transform", self.transform or "none"),
            ("citation", self.citation or "none"),
        ]
        return table(f"Data set {self.name}", rows, notes=self.remarks)

    def take(self, rows: Any, *, both: bool = True) -> Self:
        """Return the data set of some rows, in the order given.

        Parameters
        ----------
        rows : array-like of int or bool
            Distinct row numbers (negative ones count from the end), or a mask of length N.
        both : bool
            False also accepts a single class or a single row, for a fold that is only predicted.

        Raises
        ------
        InputError
            No row, a row twice, a row out of range, a mask of another length, one class only.

        Examples
        --------
        >>> from ardvark.data import load
        >>> data = load("digits38")
        >>> data.take(range(40))
        Dataset('digits38', N=40, D=64, '3': 21, '8': 19)
        >>> data.take(data.X[:, 20] > 0.5).N
        234
        """
        index = np.asarray(rows)
        if index.ndim != 1 or index.size == 0:
            raise InputError(f"rows must be a non-empty list of rows, got shape {index.shape}.")
        if index.dtype == bool:
            if len(index) != self.N:
                raise InputError(f"the mask has {len(index)} entries, expected N = {self.N}.")
            index = np.flatnonzero(index)
        elif index.dtype.kind not in "iu":
            raise InputError(f"rows must be integers or a boolean mask, got {index.dtype} values.")
        outside = (index < -self.N) | (index >= self.N)
        if outside.any():
            raise InputError(
                f"row {int(index[outside][0])} is out of range: "
                f"{self.name!r} has N = {self.N} rows."
            )
        index = np.where(index < 0, index + self.N, index)
        if len(np.unique(index)) != len(index):
            raise InputError("rows must be distinct, because samples are identified by name.")
        X, y = self.X[index], self.y[index]
        X.flags.writeable = y.flags.writeable = False  # fresh copies: spares another one
        samples = [self.sample_names[i] for i in index]
        groups = None if self.groups is None else [self.groups[i] for i in index]
        return replace(self, X=X, y=y, sample_names=samples, groups=groups, both=both)

    def split(self, test: float = 0.3, random_seed: int = 0) -> tuple[Self, Self]:
        """Split into training and test samples, each class separately (stratified).

        Each class gives round(test * its size) rows to the test set, and at least one row to each
        side. Rows keep their order. The same seed gives the same split. Rows of a group stay
        together, and then the shares are as near as groups allow.

        Parameters
        ----------
        test : float
            The share of rows to test on, strictly between 0 and 1.
        random_seed : int
            Seed of the draw.

        Returns
        -------
        tuple of Dataset
            Training and test samples; each row is in exactly one of them.

        Raises
        ------
        InputError
            `test` is not a share, the seed is negative, or a class has one row only.

        Examples
        --------
        >>> from ardvark.data import load
        >>> train, test = load("digits38").split(test=0.3, random_seed=0)
        >>> train
        Dataset('digits38', N=250, D=64, '3': 128, '8': 122)
        >>> test
        Dataset('digits38', N=107, D=64, '3': 55, '8': 52)
        """
        share = isinstance(test, float | np.floating) and 0 < test < 1
        if not share:
            raise InputError(
                f"test must be a share strictly between 0 and 1, got {test!r}. "
                "For chosen rows use take(rows)."
            )
        rng = np.random.default_rng(whole("random_seed", random_seed))
        if self.groups is not None:
            from .groups import held_out  # scikit-learn takes a second to import

            return self.apart(held_out(self.y, self.groups, float(test), random_seed))
        held = np.zeros(self.N, dtype=bool)
        for label in (0, 1):
            rows = np.flatnonzero(self.y == label)
            if len(rows) < 2:
                raise InputError(
                    f"class {self.class_names[label]!r} has {len(rows)} sample(s), but a split "
                    "needs at least 2: one for training and one for testing. Use take(rows)."
                )
            size = min(max(round(test * len(rows)), 1), len(rows) - 1)
            held[rng.permutation(rows)[:size]] = True
        return self.apart(held)

    def apart(self, held: Any) -> tuple[Self, Self]:
        """Return training rows and held-out rows, where whatever is learned is learned outside.

        Parameters
        ----------
        held : array (N,) of bool
            Which rows are held out. They may be of one class.

        Raises
        ------
        InputError
            Only one class is left, or no row is held out.

        Examples
        --------
        >>> from ardvark.data import load
        >>> data = load("digits38")
        >>> train, held = data.apart(data.X[:, 20] > 0.5)
        >>> train.N, held.N
        (123, 234)
        """
        mask = np.asarray(held, dtype=bool)
        return self.take(~mask), self.take(mask, both=False)


def row_labels(names: Sequence[str]) -> tuple[str, ...] | tuple[int, ...]:
    """Return the labels of rows: their names, or integers where these are numbers.

    Examples
    --------
    >>> from ardvark.data.dataset import row_labels
    >>> row_labels(["0", "1", "2"]), row_labels(["0", "01"])
    ((0, 1, 2), ('0', '01'))
    """
    digits = [int(name) if name.isdecimal() and name.isascii() else -1 for name in names]
    alike = all(str(k) == name for k, name in zip(digits, names, strict=True))
    return tuple(digits) if alike else tuple(names)


def _named_matrix(X: Any, features: tuple, samples: tuple, *, min_rows: int) -> np.ndarray:
    """Return X checked; an error about a value that is not finite uses the names."""
    if not isinstance(X, pd.DataFrame):
        array = np.asarray(X)
        fits = array.ndim == 2 and array.shape == (len(samples), len(features))
        # the validator names rows and columns of frames only; a frame is made only to complain
        if fits and array.dtype.kind == "f" and not np.isfinite(array).all():
            X = pd.DataFrame(array, index=list(samples), columns=list(features))
    return matrix(X, min_rows=min_rows)


def is_name(y: Any) -> bool:
    """Whether labels are given by the name of their column: a word, or a number as a name."""
    return isinstance(y, str) or (np.isscalar(y) and not isinstance(y, bool | float))


def _apart(frame: Any, name: Any, kind: str) -> tuple[pd.DataFrame, pd.Series]:
    """Return a frame without a column, and that column."""
    if not isinstance(frame, pd.DataFrame):
        raise InputError(
            f"{name!r} names a column of a data frame, and X is {type(frame).__name__}. "
            "Pass the values themselves, one for each row."
        )
    columns = [str(c) for c in frame.columns]
    at = columns.index(named(kind, str(name), columns))
    distinct("column", columns)
    rest = [k for k in range(len(columns)) if k != at]
    return frame.iloc[:, rest], frame.iloc[:, at]


def _plain_labels(y: Any) -> Any:
    """Return labels of one type, so that they sort; the validator reports odd labels."""
    try:
        labels = np.asarray(y, object if isinstance(y, list | tuple) else None)  # NaN is no text
        if labels.dtype != object or pd.isna(labels).any():
            return labels
        return np.array(labels.tolist())
    except ValueError:  # lists of different lengths
        return y


def _locked(array: np.ndarray) -> np.ndarray:
    """Return the array read-only; copy it first if someone else could still write to it."""
    owner = array if array.base is None else array.base
    if array.flags.writeable or getattr(getattr(owner, "flags", None), "writeable", True):
        array = array.copy()
    array.flags.writeable = False
    return array
