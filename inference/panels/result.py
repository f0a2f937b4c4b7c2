"""What a search for a panel found: sizes, members, alternatives, coefficients, figure, files."""

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import xarray as xr

from ardvark.common.validate import InputError
from ardvark.data import Table
from ardvark.models import Problem

from ..fits.datatree import replacing
from ..fits.effects import effects
from ..fits.selection import direction
from .evaluation import Predictions, Scores, Submodel
from .performance import performance
from .projection import RIDGE
from .search import divergences
from .text import Words

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from sklearn.pipeline import Pipeline

NEAREST, RELATED, KEPT = 50, 0.3, 0.8
"""Alternatives are looked for among so many features, those with the largest absolute correlation
with the member; it must be this large; and this share of what the member adds must be kept."""
POSTERIOR = {"effect": "posterior_effect", "low": "posterior_low", "high": "posterior_high"}
"""Columns of `ardvark.effects`, and what they are called beside a panel's coefficients."""


@dataclass(frozen=True, eq=False, repr=False)
class Panel:
    """A few features that predict nearly as well as the full posterior.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per size: the `feature` that the search on all rows adds; `log_score`, the mean over
        all rows of the log probability of their label, each predicted without its fold;
        `difference` to the full posterior, with its standard error `se`; `to_best`, that to the
        better of the full posterior and the best size, and `to_best_se`; and `formula`, the log
        score of the one logistic regression of `coefficients` and `to_csv`, where `log_score`
        averages over the projected draws. ``attrs["full"]`` is the log score of the full posterior.
        Where `test` was given, `test_log_score` with its standard error `test_log_score_se`,
        `test_difference`, `test_se` and `test_formula` are the same of its rows, by the fit and the
        panels of all training rows; so are the attributes `test_full`, `test_full_se` and
        `test_rows`, their number.
    chosen : pandas.DataFrame
        The share of folds in which a feature is among the first k: one row per feature that is
        chosen in any, one column per size.
    suggested : int or None
        The smallest size whose log score is at most one standard error below the best: `to_best`
        plus `to_best_se` is at least 0. None if no size that was evaluated reaches it.
    size : int or None
        The size that `names`, `coefficients` and the rest are about: the suggested one, or that
        of `at`.
    selected_by_p_active : tuple of str or None
        The features with P(active) above one half, for comparison; None where it is unknown.
    not_converged : tuple of str
        The folds whose refit has not converged.
    problem : Problem
        The problem that was fitted.
    effects : pandas.DataFrame
        The effect of each column in the full posterior, of which `coefficients` has the panel's.
    scores : dict of Scores
        Log probabilities of labels in the "folds", and of the rows "left out", if any were.
    few_events : tuple of str
        The folds with fewer than three rows of a class.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import ardvark as av
    >>> X = np.random.default_rng(0).normal(size=(60, 6))
    >>> problem = av.problem("pfcvm", X, X[:, 0] - 2 * X[:, 3] > 0)
    >>> fit = av.fit(problem, "paper", random_seed=0, progressbar=False)
    >>> panel = av.panel(problem, fit, sizes=3, folds=3, progressbar=False)
    >>> panel.table["feature"].tolist()[:3]  # what the search adds
    ['', 'x4', 'x1']
    >>> panel.at(1).members["chosen"].to_dict()  # the share of folds
    {'x4': 1.0}
    >>> panel.to_csv("panel.csv")
    >>> np.loadtxt("panel.csv", delimiter=",", dtype=str, usecols=0).tolist()
    ['name', 'intercept', 'x4', 'x1']
    >>> new = pd.DataFrame({"x4": [-2.0, 2.0], "x1": 0.0})
    >>> panel.estimator().predict(new).tolist()
    ['True', 'False']
    >>> figure = panel.plot()
    >>> print(panel.text())
    Panel of pfcvm on data: 2 of 6 features predict as well as the full posterior...
    """

    table: pd.DataFrame
    chosen: pd.DataFrame
    suggested: int | None
    size: int | None
    selected_by_p_active: tuple[str, ...] | None
    not_converged: tuple[str, ...]
    problem: Problem
    path: tuple[int, ...] = field(repr=False)
    predictions: Predictions = field(repr=False)
    effects: pd.DataFrame = field(repr=False)
    scores: Mapping[str, Scores] = field(repr=False)
    few_events: tuple[str, ...] = ()

    def at(self, size: int) -> "Panel":
        """Return the panel of another size.

        Raises
        ------
        InputError
            The search did not go so far.
        """
        if not 0 <= size <= len(self.path):
            raise InputError(
                f"this panel was searched up to {len(self.path)} features, got {size}. Ask for "
                f"more with av.panel(problem, fit, sizes={size})."
            )
        return dataclasses.replace(self, size=size)

    @property
    def features(self) -> list[int]:
        """The numbers of the members, in the order of the search."""
        if self.size is None:
            raise InputError(
                f"no panel of up to {self.table.index[-1]} features predicts as well as the full "
                "posterior. Search for larger ones (sizes=...), or choose a size: panel.at(size)."
            )
        return list(self.path[: self.size])

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the members, in the order of the search."""
        known = self.problem.feature_names
        return tuple(known[j] for j in self.features)

    @cached_property
    def _submodel(self) -> Submodel:
        return self.predictions.submodel(self.features)

    @cached_property
    def coefficients(self) -> pd.DataFrame:
        """The logistic regression nearest to the full posterior, in the table's units.

        log(P / (1 - P)) = intercept + sum of coefficient times column. One row for the intercept,
        each column that is always in and each member: `coefficient`, and `per_sd`, the same for one
        standard deviation of the column. It is a rule that predicts, and has no interval: it also
        takes over what columns left out do, as far as they go with its own in these rows.

        What the column itself does, given all others, is told by the full posterior:
        `posterior_effect` per unit of the column, with its 90 % interval, `posterior_low` and
        `posterior_high`, in ``attrs["unit"]``. These are NaN for the intercept, and where the fit
        does not have them: the effect without a selection (`ardvark.select`), its interval also at
        a point.
        """
        formula = self._submodel.formula
        frame = pd.DataFrame(
            {"coefficient": self._in_units(formula), "per_sd": [np.nan, *formula[1:]]},
            index=pd.Index(["intercept", *self._columns], name="name"),
        )
        frame = frame.join(self.effects)
        frame.attrs = {"towards": self.problem.data.class_names[1]}
        frame.attrs |= {"unit": direction(self.problem)["unit"]}
        return frame

    @property
    def _columns(self) -> tuple[str, ...]:
        """The columns of the submodel: those always in, and the members."""
        return (*self.problem.always, *self.names)

    def _in_units(self, b: np.ndarray) -> np.ndarray:
        """Return coefficients (1 + a + k,), intercept first, of columns in the table's units."""
        problem, always = self.problem, self.problem.covariates
        center, scale = problem.center[self.features], problem.scale[self.features]
        if always is not None:
            center, scale = np.append(always.center, center), np.append(always.scale, scale)
        slopes = b[1:] / scale
        return np.append(b[0] - slopes @ center, slopes)

    @cached_property
    def alternatives(self) -> pd.DataFrame:
        """Which other features would do nearly as well as a member, with the others kept.

        One row per member and alternative: their `correlation`, and `kept`, the share of what the
        member adds that the alternative adds in its place: of the fall of the KL divergence from
        the full posterior. Listed are those that keep at least 80 %, among the 50 features with the
        largest correlation with the member, of at least 0.3.
        """
        rows = [row for member in self.features for row in self._in_place_of(member)]
        return pd.DataFrame(rows, columns=["member", "alternative", "correlation", "kept"])

    def _in_place_of(self, member: int) -> list[tuple[str, str, float, float]]:
        own, names = self.predictions, self.problem.feature_names
        r = _correlations(own.X, member)
        nearest = np.argsort(-np.abs(r), kind="stable")[: NEAREST + len(self.features)]
        near = [int(j) for j in nearest if j not in self.features and abs(r[j]) >= RELATED]
        if not near:
            return []
        others = [j for j in self.features if j != member]
        without = divergences(own.clusters, own.X, [others], own.always)[0]
        sets = [[*others, j] for j in [member, *near]]
        found = divergences(own.clusters, own.X, sets, own.always)
        kept = (without - found[1:]) / (without - found[0])
        good = [i for i in np.argsort(-kept, kind="stable") if kept[i] >= KEPT]
        return [(names[member], names[near[i]], float(r[near[i]]), float(kept[i])) for i in good]

    @property
    def performance(self) -> pd.DataFrame:
        """What a paper says of the panel, and of the full posterior beside it.

        One row for each of them and for the `folds`, in which every row is predicted without its
        fold, and the rows `left out` of the fit: `rows`, `events` (y = 1), and `auc`, `brier`,
        `log_score`, `intercept` and `slope` of the calibration, each with its standard error
        (``help("ardvark.inference.panels.performance")``). The panel predicts by its one formula.
        """
        known = list(self.table.index)
        found = {}
        for where, scores in self.scores.items():
            places: dict[str, int | None] = {"the full posterior": None}
            if self.size in known:
                places = {f"size {self.size}": known.index(self.size), **places}
            for who, at in places.items():
                found[who, where] = performance(scores.y, scores.probability(at))
        frame = pd.DataFrame.from_dict(found, orient="index")
        return frame.rename_axis(["prediction", "of"]).astype({"rows": int, "events": int})

    @property
    def members(self) -> pd.DataFrame:
        """The members with all that is known of them.

        One row each: the columns of `coefficients`; `chosen`, the share of folds whose panel of
        this size has it; and its `alternatives`.
        """
        frame = self.coefficients.loc[list(self.names)].copy()
        column = self.chosen[self.size] if self.size in self.chosen else pd.Series(dtype=float)
        frame["chosen"] = column.reindex(frame.index, fill_value=0.0)
        found = self.alternatives.groupby("member")["alternative"].agg(list)
        frame["alternatives"] = [", ".join(found.get(name, [])) for name in frame.index]
        return frame

    def estimator(self) -> "Pipeline":
        """Return the panel as a scikit-learn pipeline that predicts at once.

        It takes data frames in the table's units that have the columns of `coefficients`. If the
        data are an `ardvark.table`, it also takes rows as they stood in that table, with the
        panel's own columns only: it encodes and fills them as the training rows were. Its last step
        is a `LogisticRegression` with the coefficients of the panel; its classes are the names of
        the classes. `fit` would estimate these coefficients from labels, without what the posterior
        knows.
        """
        from .estimator import pipeline

        coefficients = self.coefficients["coefficient"].to_numpy()
        return pipeline(self._columns, coefficients, self.problem.data, RIDGE)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write `coefficients` to a CSV file, which a spreadsheet can apply.

        P(y = 1) = 1 / (1 + EXP(-(intercept + SUMPRODUCT(coefficients, values)))). The last column,
        `note`, says what the numbers of a column mean, and what stands for a missing one.
        """
        data = self.problem.data
        frame = self.coefficients
        about = f"log odds of {data.class_names[1]}; size {self.size}; {self._what}"
        about += f"; posterior_ in {frame.attrs['unit']}"
        notes = {"intercept": about} | (data.encoder.notes() if isinstance(data, Table) else {})
        with replacing(path) as part:
            frame.assign(note=[notes.get(str(name), "") for name in frame.index]).to_csv(part)

    def plot(self) -> "Figure":
        """Draw the log score of each size with the error of its difference to the posterior's."""
        from .plot import sizes

        return sizes(self.table, self.suggested, self._what)

    def text(self) -> str:
        """Return in words what was found, in at most 32 lines of 80 columns."""
        return self._words.text()

    @property
    def sentence(self) -> str:
        """What was found, without the tables."""
        return " ".join(self._words.sentences())

    @property
    def _what(self) -> str:
        return f"{self.problem.spec.name} on {self.problem.data.name}"

    @property
    def _words(self) -> Words:
        told = self.size is not None and bool(self._columns)
        return Words(
            self._what,
            self.problem.D,
            self.problem.always,
            self.table,
            self.size,
            self.suggested,
            self.members if told else None,
            self.coefficients if told else None,
            self.selected_by_p_active,
            self.not_converged,
            self.performance,
            self.few_events,
        )

    def __repr__(self) -> str:
        return self.text()


def in_posterior(problem: Problem, fit: xr.DataTree) -> pd.DataFrame:
    """Return the effect of each column in a fit, per unit of the column, with its 90 % interval."""
    always = problem.covariates
    scales = {"feature": problem.scale} | ({} if always is None else {"covariate": always.scale})
    names = {"feature": problem.feature_names, "covariate": problem.always}
    found = [
        effects(fit, what).reindex(names[what])[list(POSTERIOR)].div(scale, axis=0)
        for what, scale in scales.items()
    ]
    frame = pd.concat(found).astype(float).rename(columns=POSTERIOR)
    if fit.attrs["kind"] in ("point", "search"):
        frame[[POSTERIOR["low"], POSTERIOR["high"]]] = np.nan
    return frame


def _correlations(X: np.ndarray, j: int) -> np.ndarray:
    """Return the correlation (D,) of each column with one; 0 for a constant one."""
    centred = X - X.mean(0)
    norm = np.linalg.norm(centred, axis=0)
    return (centred.T @ centred[:, j]) / np.maximum(norm * norm[j], np.finfo(float).tiny)
