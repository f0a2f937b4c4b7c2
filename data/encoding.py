"""How the columns of a table become numbers: learned on training rows, applied alike to others."""

from collections.abc import Iterable, Mapping
from typing import Any, Self, get_args

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from ardvark.common.validate import InputError, logger, one_of

from .cleaning import Encode, Impute
from .columns import in_order, levels, listed, numbers, texts
from .numerals import Marks

_NUMBERS: Any = ["number", "bool"]


class Encoder(TransformerMixin, BaseEstimator):
    """Text as numbers and missing values filled, by scikit-learn's encoders and imputers.

    A transformer of data frames. `ardvark.table` fits one, `Table.clean` applies it to new rows,
    and it may be a step of a pipeline before the estimator.

    Parameters
    ----------
    encode : {"onehot", "ordinal"}
        How text becomes numbers, as for `ardvark.table`.
    impute : {"median", "mean", "most-frequent"}, optional
        What a missing number is replaced by. A missing word is replaced by the most frequent one.
    reference : dict, optional
        By text column the level that has no column of its own ("onehot"), so that the others are
        compared with it. By default a column of two levels has its first, and others have none.

    Attributes
    ----------
    levels_ : dict of list
        The levels of each text column, in their order.

    Notes
    -----
    A level that no training row had tells the model nothing. Its row is treated as an average one
    in this column: each column made of it takes its mean over the training rows, so that it adds
    nothing to a linear eta. A warning names the level.

    Examples
    --------
    >>> import pandas as pd
    >>> from ardvark.data.encoding import Encoder
    >>> rows = pd.DataFrame({"age": [31, None, 52], "site": ["A", "B", "A"]})
    >>> encoder = Encoder("onehot", "median").fit(rows)
    >>> encoder.transform(rows).to_dict("list")
    {'age': [31.0, 41.5, 52.0], 'site=B': [0.0, 1.0, 0.0]}
    """

    def __init__(
        self,
        encode: Encode = "onehot",
        impute: Impute | None = None,
        reference: Mapping[str, str] | None = None,
    ) -> None:
        self.encode = encode
        self.impute = impute
        self.reference = reference

    def fit(self, X: pd.DataFrame, y: object = None) -> Self:
        """Learn levels and fill values from rows (N, D); no label is used.

        Raises
        ------
        InputError
            A column has no value in these rows, or an unknown way to encode or fill.
        """
        one_of("encode", self.encode, get_args(Encode))
        if self.impute is not None:
            one_of("impute", self.impute, get_args(Impute))
        empty = X.columns[X.isna().all()]
        if len(empty):
            raise InputError(
                f"column {empty[0]!r} has no value in the {len(X)} rows to learn from. "
                "Drop it, or split with another seed."
            )
        self.feature_names_in_ = np.asarray(X.columns, dtype=object)
        stored = list(map(str, X.select_dtypes(_NUMBERS)))
        self.levels_ = {
            str(name): levels(values) for name, values in X.drop(columns=stored).items()
        }
        shown = {name: self._shown(name) for name in self.levels_}
        # by place: to look up 20 000 columns by name takes seconds
        steps: list[Any] = [
            (f"{k}", self._of_words(name), [len(stored) + k])
            for k, (name, columns) in enumerate(shown.items())
            if columns
        ]
        if stored:
            rule = str(self.impute).replace("-", "_")
            fill = SimpleImputer(strategy=rule) if self.impute else "passthrough"
            steps.insert(0, ("numbers", fill, slice(len(stored))))
        self.transformer_ = ColumnTransformer(steps).fit(self._typed(X))
        made = {name: [name] for name in stored} | shown
        origin = [name for name in made for _ in made[name]]
        self._order = np.argsort(X.columns.get_indexer(pd.Index(origin)), kind="stable")
        names = np.array([n for names in made.values() for n in names], dtype=object)
        self._names = names[self._order]
        return self

    def transform(self, X: pd.DataFrame) -> pd.DataFrame:
        """Return rows (M, D) as numbers, in the columns that were learned.

        Raises
        ------
        InputError
            A missing value that nothing says how to fill, or text in a column of numbers.
        """
        missing = X.isna().sum()
        lacking = missing[missing > 0]
        if self.impute is None and len(lacking):
            counts = [f"{name} ({n})" for name, n in lacking.items()]
            raise InputError(
                f"{len(lacking)} column(s) have missing values: {listed(counts)}. Fill them, or "
                "leave out these rows (drop_missing), or fill them by a rule (impute)."
            )
        array = self.transformer_.transform(self._typed(X)).astype(np.float64)
        return pd.DataFrame(array[:, self._order], X.index, self._names)

    def some(self, X: pd.DataFrame) -> pd.DataFrame:
        """Return what `transform` makes of rows (M, d) that have some of the columns only."""
        rest = {
            name: self.levels_.get(name, [0.0])[0]  # any value: columns are encoded one by one
            for name in self.feature_names_in_
            if name not in X
        }
        became = self.columns()
        made = [column for name in X for column in became.get(str(name), [str(name)])]
        return self.transform(pd.concat([X, pd.DataFrame(rest, X.index)], axis=1))[made]

    def sources(self, names: Iterable[str]) -> set[str]:
        """Return the columns of rows of which some columns of `transform` are made."""
        of = {made: name for name, some in self.columns().items() for made in some}
        return {of.get(name, name) for name in names}

    def notes(self) -> dict[str, str]:
        """Return for each column that `transform` makes what its numbers mean, and what fills it.

        Without commas, for a CSV file.
        """
        found: dict[str, list[str]] = {str(name): [] for name in self._names}
        for name, made in self.columns().items():
            known = self.levels_[name]
            for column in made:
                level = column.removeprefix(f"{name}=")
                others = [word for word in known if word != level]
                other = others[0] if len(others) == 1 else "another"
                found[column] = [f"1 if {level}", f"0 if {other}"]
                if self.encode == "ordinal":
                    found[column] = [f"{i} if {word}" for i, word in enumerate(known)]
        if self.impute is not None:
            empty = pd.DataFrame(np.nan, [0], pd.Index(self.feature_names_in_))
            for title, value in self.transform(empty).iloc[0].items():
                found[str(title)].append(f"{value:.6g} if missing")
        return {name: "; ".join(said) for name, said in found.items()}

    def get_feature_names_out(self, input_features: object = None) -> np.ndarray:
        """Return the names of the columns that `transform` makes."""
        return self._names

    def columns(self) -> dict[str, list[str]]:
        """Return for each text column the names of the columns that it became."""
        return {name: self._shown(name) for name in self.levels_}

    def became(self) -> list[str]:
        """Return for each text column, in words, which columns it became."""
        lines = []
        for name, known in self.levels_.items():
            said = ", ".join(self._shown(name))
            if self.encode == "ordinal":
                said = ", ".join(f"{level} = {i}" for i, level in enumerate(known))
            elif not said:
                said = f"left out, because every row has {known[0]}"
            elif self._against(name) is not None:
                said += f" (0 is {self._against(name)})"
            lines.append(f"{name}: {said}")
        return lines

    def _shown(self, name: str) -> list[str]:
        """Return the columns that a text column becomes: its levels but for the reference."""
        if self.encode == "ordinal":
            return [name]
        against = self._against(name)
        return [f"{name}={level}" for level in self.levels_[name] if level != against]

    def _against(self, name: str) -> str | None:
        """Return the level without a column: the reference, or the first of two."""
        known = self.levels_[name]
        asked = (self.reference or {}).get(name)
        if asked in known:
            return asked
        return known[0] if asked is not None or len(known) < 3 else None

    def _of_words(self, name: str) -> Any:
        """Return the steps from words to numbers.

        Each level is coded by its place, and one that is not known by -1. A missing one becomes the
        most frequent one, of equal counts the first. The last step makes an unknown one average.
        """
        known = self.levels_[name]
        unknown: dict[str, Any] = {"handle_unknown": "use_encoded_value", "unknown_value": -1}
        places = OrdinalEncoder(categories=[[*known, np.nan]], **unknown)
        steps = [places, SimpleImputer(strategy="most_frequent")] if self.impute else [places]
        if self.encode == "ordinal":
            return make_pipeline(*steps, SimpleImputer(missing_values=-1, strategy="mean"))
        against = self._against(name)
        out = None if against is None else known.index(against)
        return make_pipeline(*steps, _Levels(len(known), out), SimpleImputer(strategy="mean"))

    def _typed(self, X: pd.DataFrame) -> pd.DataFrame:
        """Return the rows with float64 in the columns of numbers, and then the text columns."""
        rows = X[list(self.feature_names_in_)]
        words = {name: texts(rows[name]) for name in self.levels_}
        others = rows.drop(columns=list(words))
        odd = others.select_dtypes(exclude=_NUMBERS)
        others = others.assign(**{str(name): _numbers(values) for name, values in odd.items()})
        for name, values in words.items():
            unseen = values[values.notna() & ~values.isin(self.levels_[name])]
            if len(unseen):
                logger.warning(
                    "column %r has levels that no training row has (%s), in %d row(s), the first "
                    "%r: these rows are treated as average ones in this column",
                    name, listed(in_order(unseen.unique())), len(unseen), str(unseen.index[0]),
                )  # fmt: skip
        return others.astype(np.float64).assign(**words)


class _Levels(OneHotEncoder):
    """A column of 0 and 1 for each of some levels but for `out`; NaN where it is -1."""

    def __init__(self, size: int, out: int | None) -> None:
        self.size, self.out = size, out
        drop = None if out is None else [out]
        super().__init__(categories=[range(size)], drop=drop, sparse_output=False)

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Return the columns of the levels (M, 1) of rows."""
        return np.where(X < 0, np.nan, super().transform(np.maximum(X, 0)))


def _numbers(values: pd.Series) -> pd.Series:
    """Return a column as numbers, or say which row has none."""
    found = numbers(values, Marks())
    wrong = found.isna() & values.notna()
    if wrong.any():
        raise InputError(
            f"column {values.name!r} must contain numbers, but row {str(wrong.idxmax())!r} has "
            f"{values[wrong].iloc[0]!r}."
        )
    return found
