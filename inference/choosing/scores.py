"""What a choice found: scores on the folds, and what they can tell apart.

The columns of the table, one row per candidate, the best first:

    log_score            mean log probability of the labels that were held out
    difference           log_score minus that of the best candidate
    difference_se        its standard error over rows; of a row that was held out R times, the mean
    brier, auc           Brier score; area under the ROC curve, the mean over repeats
    error                Monte Carlo error of log_score
    seconds              of all its fits, without compilation
    unconverged          its fits that have not converged
    status               "finished", or the reason why it has no scores

Two warnings belong to any such table. The best of several candidates is best partly by luck, so its
lead is too large. And rows of different folds share most of their training rows, so standard errors
are too small (Bengio and Grandvalet 2004, JMLR 5).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from sklearn.metrics import brier_score_loss, roc_auc_score

from .candidates import Given


@dataclass(frozen=True, eq=False, repr=False)
class Scores:
    """Predictions of held-out rows by several candidates, and what follows from them.

    Attributes
    ----------
    data : str
        The name of the data.
    asked : dict
        The candidates as they were asked for, by name.
    y : ndarray (N,)
        Labels, 0 or 1.
    folds : ndarray (N, R)
        The fold of each row in each of R partitions.
    log_p : dict of ndarray (N, R, 2)
        By candidate: the log probabilities of y = 0 and y = 1 for each row, by fits that have not
        seen it. Candidates of which a fit failed are not in it.
    fits : DataFrame
        A row for each fit: `candidate`, number of the `fold`, `status`, `reason`, `seconds`, and
        `error`, the Monte Carlo error of the sum of log probabilities in the fold.
    """

    data: str
    asked: Mapping[str, Given]
    y: np.ndarray
    folds: np.ndarray
    log_p: Mapping[str, np.ndarray]
    fits: pd.DataFrame

    @property
    def names(self) -> tuple[str, ...]:
        """The candidates that have scores, in the order in which they were given."""
        return tuple(self.log_p)

    @cached_property
    def scores(self) -> pd.DataFrame:
        """Log score of each row (N,), the mean over repeats: a column per candidate.

        Its mean is the log score, and paired differences are those of its columns.
        """
        ones = self.y[:, None] == 1
        of_labels = {k: np.where(ones, x[..., 1], x[..., 0]) for k, x in self.log_p.items()}
        return pd.DataFrame({name: x.mean(axis=1) for name, x in of_labels.items()})

    @cached_property
    def best(self) -> str:
        """The candidate with the best log score."""
        return str(self.scores.mean().idxmax())

    def difference(self, name: str, other: str) -> tuple[float, float]:
        """Return the log score of one minus that of another, and the standard error over rows."""
        each = self.scores[name] - self.scores[other]
        return float(each.mean()), float(each.std() / np.sqrt(len(each)))

    @cached_property
    def table(self) -> pd.DataFrame:
        """A row per candidate: ``help("ardvark.inference.choosing.scores")`` has the columns.

        Candidates without scores are the last rows.
        """
        leads = self.scores.sub(self.scores[self.best], axis=0)
        fits = self.fits.groupby("candidate", sort=False)
        failed = self.fits[self.fits["status"] == "failed"].groupby("candidate")["reason"].first()
        found = {
            "log_score": self.scores.mean(),
            "difference": leads.mean(),
            "difference_se": leads.sem(),
            "brier": self._mean(brier_score_loss),
            "auc": self._mean(roc_auc_score),
            # fits of different folds are independent
            "error": fits["error"].agg(np.linalg.norm) / self.folds.size,
            "seconds": fits["seconds"].sum(),
            "unconverged": fits["status"].agg(lambda x: (x == "not_converged").sum()),
            "status": ("failed: " + failed).reindex(list(self.asked)).fillna("finished"),
        }
        frame = pd.DataFrame(found, index=list(self.asked)).rename_axis("candidate")
        return frame.sort_values("log_score", ascending=False, kind="stable")

    def _mean(self, score: Callable[..., float]) -> pd.Series:
        """Return the mean over repeats of a score of scikit-learn, by candidate."""
        p = {name: np.exp(x[..., 1]).T for name, x in self.log_p.items()}  # (R, N)
        return pd.Series({k: np.mean([score(self.y, each) for each in x]) for k, x in p.items()})
