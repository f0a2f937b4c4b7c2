"""What a row of a table is, and which rows of the data each of its folds trains and tests on."""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from ardvark.data import Dataset, load
from ardvark.data.builtin import BUILTIN, waveform
from ardvark.data.loading import locate
from ardvark.data.sources import SOURCES

# --- folds ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Protocol:
    """How rows are split. folds : their number, None for one a row of the data."""

    name: str
    folds: int | None

    def count(self, N: int) -> int:
        """Return the number of folds."""
        return self.folds or N


LEAVE_ONE_OUT = Protocol("leave one out", None)
FIVE_FOLD = Protocol("5-fold, stratified", 5)
# the paper has 100; an algorithm of it takes up to minutes a split here
RESAMPLED = Protocol("random splits, 200 a class to train on, the rest to test", 30)


def split(protocol: Protocol, data: Dataset, fold: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the training and the test rows of one fold; it depends on nothing else.

    Leave-one-out leaves rows out in a shuffled order, so that the first few folds are a fair
    sample of them.
    """
    if protocol is LEAVE_ONE_OUT:
        test = np.random.default_rng(0).permutation(data.N)[[fold]]
    elif protocol is RESAMPLED:
        rng = np.random.default_rng([0, fold])
        of_class = [rng.permutation(np.flatnonzero(data.y == label)) for label in (0, 1)]
        test = np.concatenate([rows[200:] for rows in of_class])
    else:
        assert protocol.folds is not None
        folds = stratified(data.y, protocol.folds, np.random.default_rng(0))
        test = np.flatnonzero(folds == fold)
    return np.setdiff1d(np.arange(data.N), test), np.sort(test)


def stratified(y: np.ndarray, folds: int, rng: np.random.Generator) -> np.ndarray:
    """Return a fold for each row (N,): shuffled within a class and dealt out in turn."""
    out, start = np.empty(len(y), dtype=int), 0
    for label in (0, 1):
        rows = rng.permutation(np.flatnonzero(y == label))
        out[rows] = (start + np.arange(len(rows))) % folds
        start += len(rows)
    return out


# --- rows -----------------------------------------------------------------------------------------

Reading = Literal[
    "as printed", "as released", "corrected", "ours", "exact", "baseline", "yardstick"
]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One method in one group.

    model : a model of the zoo, "" for a yardstick or another method of scikit-learn. grid :
    options to choose from, on inner splits of the training rows. share : the candidate of the grid
    is taken instead which keeps nearest to this share of what the method selects from
    (`fold.matched`). on_kernel : the features are columns of the linear kernel. reading : whose
    algorithm it is: the paper's as printed, or its authors' code; corrected, where a misprint or an
    omission is mended; ours, a variant or a setting of the zoo; the exact posterior; a baseline,
    which is the paper's own competitor; a yardstick, what a person would pick today. printed : what
    the paper prints, and printed_sd the standard deviations behind it. note : what the row is
    beside the paper. select : features are chosen first, "inside" each fold or "outside",
    once on all rows of the data; the method then chooses them, and one plain classifier takes over
    (`fold.classify_selected`). chosen_by : options of `jcfo_em`, whose filter and hold-out decide
    the features and the gammas of this row in each fold (`fold.choice_of_jcfo`). steps : where its
    path is looked at: iterations of a model of the zoo, C of L1 logistic regression.
    """

    label: str
    model: str
    method: str
    reading: Reading
    hypers: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    grid: tuple[dict[str, Any], ...] = ()
    share: float = 0.0
    on_kernel: bool = False
    printed: dict[str, float] = field(default_factory=dict)
    printed_sd: dict[str, float] = field(default_factory=dict)
    note: str = ""
    select: Literal["", "inside", "outside"] = ""
    chosen_by: dict[str, Any] = field(default_factory=dict)
    steps: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Group:
    """One table of a paper on one data set; all its rows are run on the same folds.

    by_sample : standardise each sample first. percent : features and samples kept are percentages.
    noise : the features from this column on carry nothing; selections are then compared.
    """

    paper: str
    table: str
    data: str
    protocol: Protocol
    rows: tuple[Row, ...]
    by_sample: bool = False
    percent: bool = False
    noise: int | None = None
    note: str = ""

    @property
    def name(self) -> str:
        """Return paper, table and data: "pfcvm-6/colon"."""
        return f"{self.paper.lower()}-{self.table}/{self.data}"

    @property
    def sizes(self) -> tuple[int, int, float]:
        """Return N, D and the larger class's part of the rows; no data is needed."""
        return sizes_of("waveform_uci" if self.data == "waveform" else self.data)

    @property
    def folds(self) -> int:
        """Return the number of folds of the protocol."""
        return self.protocol.count(self.sizes[0])

    def load(self) -> Dataset:
        """Return the data; waves are drawn where UCI's file is missing. Nothing is downloaded."""
        if self.data == "waveform":
            if locate("waveform_uci") is not None:
                return load("waveform_uci", fetch=False)
            return waveform(n_per_class=1672)
        data = load(self.data, fetch=False)
        return by_sample(data) if self.by_sample else data


@lru_cache
def sizes_of(name: str) -> tuple[int, int, float]:
    """Return the sizes of a data set by its name."""
    if name in BUILTIN:
        data = load(name)
        return data.N, data.D, max(data.counts) / data.N
    shape, counts = SOURCES[name].shape, SOURCES[name].counts
    assert shape is not None
    assert counts is not None
    return sum(counts), shape[1], max(counts) / sum(counts)


def by_sample(data: Dataset) -> Dataset:
    """Return the data with each sample's values at mean 0 and standard deviation 1."""
    X = data.X - data.X.mean(axis=1, keepdims=True)
    X /= X.std(axis=1, keepdims=True)
    return Dataset(
        X,
        data.y,
        data.feature_names,
        data.sample_names,
        data.class_names,
        data.name,
        data.citation,
        f"{data.transform}, by sample".lstrip(", "),
    )
