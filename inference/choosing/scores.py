"""What a choice found: scores on the folds, weights of the stack, and what they can tell apart.

The columns of the table, one row per candidate and one for the stack, the best first:

    log_score            mean log probability of the labels that were held out
    difference           log_score minus that of the best candidate
    difference_se        its standard error over rows; of a row that was held out R times, the mean
    brier, auc           Brier score; area under the ROC curve, the mean over repeats
    weight               in the stack of all rows
    weight_low, _high    the 5 % and 95 % quantiles of the weight by the Bayesian bootstrap
    error                Monte Carlo error of log_score
    seconds              of all its fits, without compilation
    unconverged          its fits that have not converged
    status               "finished", or the reason why it has no scores

The row of the stack has weights that have not seen the fold which they predict. The candidates in
it have seen the other folds only, as always.

Two warnings belong to any such table. The best of several candidates is best partly by luck, so its
lead is too large. And rows of different folds share most of their training rows, so standard errors
are too small (Bengio and Grandvalet 2004, JMLR 5).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from ardvark.data import Dataset

from ..scoring.held_out import weighted
from . import stacking
from .candidates import STACK, Given

DRAWS = 1000
"""Draws of the Bayesian bootstrap."""
ENDS = (0.05, 0.95)
"""The quantiles that an interval lies between."""


@dataclass(frozen=True, eq=False, repr=False)
class Scores:
    """Predictions of held-out rows by several candidates, and what follows from them.

    Attributes
    ----------
    about : dict
        The name of the data and its fingerprint, names of the classes, number of folds, seed, and
        the method with its sizes and options.
    asked : dict
        The candidates as they were asked for, by name.
    y : ndarray (N,)
        Labels, 0 or 1.
    folds : ndarray (N, R)
        The fold of each row in each of R partitions.
    log_p : dict of ndarray (N, R, 2)
        By candidate: the log probabilities of y = 0 and y = 1 for each row, by fits that have not
        seen it. Candidates of which a fit failed are not in it.
    errors : dict of ndarray (F,)
        By candidate: the Monte Carlo error of the sum of log probabilities in each fold, of all
        partitions.
    fits : dict of dict
        By candidate: `seconds`, `unconverged`, and `reason`, the reason of the first fit that
        failed, or else has not converged.
    data : Dataset, optional
        All rows, for `fit`.
    """

    about: Mapping[str, Any]
    asked: Mapping[str, Given]
    y: np.ndarray
    folds: np.ndarray
    log_p: Mapping[str, np.ndarray]
    errors: Mapping[str, np.ndarray]
    fits: Mapping[str, Mapping[str, Any]]
    data: Dataset | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The candidates that have scores, in the order in which they were given."""
        return tuple(self.log_p)

    @cached_property
    def labelled(self) -> np.ndarray:
        """Log probabilities (N, R, K) of the labels."""
        return np.stack([self._of_labels(x) for x in self.log_p.values()], axis=-1)

    def _of_labels(self, log_p: np.ndarray) -> np.ndarray:
        """Return log probabilities (N, R) of the labels, from those of both labels."""
        return np.where(self.y[:, None] == 1, log_p[..., 1], log_p[..., 0])

    @cached_property
    def weights(self) -> pd.Series:
        """The weights of the stack, by candidate."""
        return pd.Series(stacking.stack(stacking.terms(self.labelled)), index=list(self.names))

    @cached_property
    def bootstrap(self) -> pd.DataFrame:
        """Draws of the weights by the Bayesian bootstrap over rows: one column per candidate."""
        rng = np.random.default_rng(self.about["seed"])
        drawn = stacking.bootstrap(self.labelled, DRAWS, rng)
        return pd.DataFrame(drawn, columns=list(self.names))

    @cached_property
    def stack_log_p(self) -> np.ndarray:
        """Log probabilities (N, R, 2) by the stack, with weights that have not seen the fold."""
        weights = stacking.left_out(self.labelled, self.folds)
        both = [np.stack([x[..., label] for x in self.log_p.values()], -1) for label in (0, 1)]
        return np.stack([stacking.mixture(weights, log_p) for log_p in both], axis=-1)

    @cached_property
    def scores(self) -> pd.DataFrame:
        """Log score of each row (N,), the mean over repeats: a column per candidate, and `stack`.

        Its mean is the log score, and paired differences are those of its columns.
        """
        known = {**self.log_p, STACK: self.stack_log_p}
        return pd.DataFrame({name: self._of_labels(x).mean(axis=1) for name, x in known.items()})

    def difference(self, name: str, other: str) -> tuple[float, float]:
        """Return the log score of one minus that of another, and the standard error over rows."""
        each = self.scores[name] - self.scores[other]
        return float(each.mean()), float(each.std(ddof=1) / np.sqrt(len(each)))

    @cached_property
    def best(self) -> str:
        """The candidate with the best log score."""
        return str(self.scores[list(self.names)].mean().idxmax())

    @cached_property
    def table(self) -> pd.DataFrame:
        """A row per candidate and one for the stack: ``help("ardvark.inference.choosing.scores")``.

        Candidates without scores are the last rows.
        """
        low, high = self.bootstrap.quantile(ENDS[0]), self.bootstrap.quantile(ENDS[1])
        rows: dict[str, dict[str, Any]] = {}
        for name, log_p in {STACK: self.stack_log_p, **self.log_p}.items():
            lead, error = self.difference(name, self.best)
            rows[name] = {"log_score": float(self.scores[name].mean())}
            rows[name] |= {"difference": lead, "difference_se": error, **self._others(log_p)}
            if name != STACK:
                rows[name] |= {"weight": self.weights[name]}
                rows[name] |= {"weight_low": low[name], "weight_high": high[name]}
                rows[name] |= {"error": self._error(name)}
        for name, fit in self.fits.items():
            about = {k: fit[k] for k in ("seconds", "unconverged")}
            status = "finished" if name in rows else f"failed: {fit['reason']}"
            rows[name] = rows.get(name, {}) | about | {"status": status}
        rows[STACK] |= {"seconds": float(sum(f["seconds"] for f in self.fits.values()))}
        rows[STACK] |= {"status": "finished"}
        frame = pd.DataFrame.from_dict(rows, orient="index").rename_axis("candidate")
        return frame.sort_values("log_score", ascending=False, kind="stable")

    def _others(self, log_p: np.ndarray) -> dict[str, float]:
        p, ones = np.exp(log_p[..., 1]).T, np.ones((1, len(self.y)))
        found = [weighted(ones, self.y, (row > 0.5).astype(int), row, row) for row in p]
        return {k: float(np.mean([values[k][0] for values in found])) for k in ("brier", "auc")}

    def _error(self, name: str) -> float:
        """Return the Monte Carlo error of a log score: fits of different folds are independent."""
        return float(np.linalg.norm(self.errors[name]) / self.folds.size)
