"""What a choice found: scores on the folds, what they can tell apart, and that in words.

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

import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from sklearn.metrics import brier_score_loss, roc_auc_score

from ardvark.data.groups import EVENTS

from ..comparison.report.style import Picture
from ..scoring.penalised import PENALISED
from .candidates import SHARE, Given
from .plots import CLEAR, picture

NOTABLE = 0.5
"""Monte Carlo errors above this share of the standard error of a difference are told."""
_NAME = 16  # characters of a name in the table


@dataclass(frozen=True, eq=False, repr=False)
class Choice:
    """What `choose` found: predictions of held-out rows, and what follows from them.

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
        By candidate: the log probabilities of y = 0 and y = 1 for each row, in each of R
        partitions, by fits that have not seen it. Candidates of which a fit failed are not in it.
    fits : DataFrame
        A row for each fit: `candidate`, number of the `fold`, `status`, `reason`, `seconds`, and
        `error`, the Monte Carlo error of the sum of log probabilities in the fold.
    table : pandas.DataFrame
        One row per candidate, the best first. The columns are explained by
        ``help("ardvark.inference.choosing.choice")``.
    best : str
        The candidate with the best log score.
    scores : pandas.DataFrame
        Log score of each row: one column per candidate.

    Examples
    --------
    >>> import numpy as np
    >>> import ardvark as av
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> y = X[:, 0] + X[:, 1] > 0
    >>> choice = av.choose(X, y, candidates=["l1", "ridge", "share"], progressbar=False)
    >>> choice.table.index[-1]
    'share'
    >>> print(choice.sentence)
    Best on the rows held out: ...
    >>> choice.sentences()[0] == choice.sentence[: len(choice.sentences()[0])]
    True
    >>> choice.cells().index[-1]
    'share'
    >>> lead, error = choice.difference(choice.best, "share")
    >>> lead > 2 * error  # it is better than a guess
    True
    >>> choice.plot()
    Log score of ...
    """

    data: str
    asked: Mapping[str, Given]
    y: np.ndarray
    folds: np.ndarray
    log_p: Mapping[str, np.ndarray]
    fits: pd.DataFrame

    # --- scores -----------------------------------------------------------------------------------

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
        return self._first(self.log_p)

    def difference(self, name: str, other: str) -> tuple[float, float]:
        """Return the log score of one minus that of another, and the standard error over rows."""
        each = self.scores[name] - self.scores[other]
        return float(each.mean()), float(each.std() / np.sqrt(len(each)))

    @cached_property
    def table(self) -> pd.DataFrame:
        """A row per candidate: ``help("ardvark.inference.choosing.choice")`` has the columns.

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

    def _first(self, names: Iterable[str]) -> str:
        return str(self.scores[list(names)].mean().idxmax())

    def _leads(self, name: str, other: str) -> bool:
        """Whether one is ahead of another by more than `CLEAR` standard errors."""
        lead, error = self.difference(name, other)
        return lead > CLEAR * error and lead > 0.0

    # --- words ------------------------------------------------------------------------------------

    @property
    def sentence(self) -> str:
        """What is known, and what the folds cannot tell apart."""
        return " ".join(self.sentences())

    def sentences(self) -> list[str]:
        """Return the sentences one by one."""
        return [self._of_the_best(), *self._of_plain(), *self._of_a_guess(), *self._doubts()]

    @property
    def heading(self) -> str:
        """What was compared."""
        rows, repeats = self.folds.shape
        times = "once" if repeats == 1 else f"{repeats} times"
        folds = f"{self.folds.max() + 1} folds"
        count = f"{len(self.asked)} candidate{'s' if len(self.asked) > 1 else ''}"
        return f"{count}, {rows} rows, each held out {times} in {folds}"

    def cells(self) -> pd.DataFrame:
        """Return the table in words."""
        table = self.table
        leads = zip(table["difference"], table["difference_se"], strict=True)
        shown = {
            "log score": table["log_score"].map("{:.3f}".format),
            "to the best": [f"{d:+.3f} +- {e:.3f}" if d or e else "the best" for d, e in leads],
            "Brier": table["brier"].map("{:.3f}".format),
            "AUC": table["auc"].map("{:.2f}".format),
            "seconds": table["seconds"].map("{:.0f}".format),
        }
        frame = pd.DataFrame(shown, index=table.index.rename(None))
        frame.loc[table["log_score"].isna(), :] = ["failed", "", "", "", ""]
        return frame

    def text(self) -> str:
        """Return the table and the sentence, in lines of at most 80 characters.

        Examples
        --------
        >>> import ardvark as av
        >>> data = av.load("digits38").take(range(40))
        >>> choice = av.choose(data, candidates=["ridge", "share"], progressbar=False)
        >>> print(choice.text())
        digits38: 2 candidates, 40 rows, each held out once in 5 folds
              log score      to the best Brier  AUC seconds
        ridge    -0.0...        the best ...
        ...
        """
        shown = self.cells()
        shown.index = shown.index.map(lambda name: name[:_NAME])
        wrapper = textwrap.TextWrapper(80, break_long_words=False, break_on_hyphens=False)
        said = map(wrapper.fill, self.sentences())
        return "\n".join([f"{self.data}: {self.heading}", shown.to_string(), "", *said])

    def __repr__(self) -> str:
        return self.text()

    def plot(self) -> Picture:
        """Draw the differences to the best candidate, with two standard errors each way.

        Examples
        --------
        >>> import ardvark as av
        >>> data = av.load("digits38").take(range(40))
        >>> av.choose(data, candidates=["ridge", "share"], progressbar=False).plot()
        Log score of ...
        """
        return picture(self.table, self.data, self._of_the_best())

    def _of_the_best(self) -> str:
        best = self.best
        others = [name for name in self.table.index if name != best and name in self.log_p]
        worse = [name for name in others if self._leads(best, name)]
        alike = [name for name in others if name not in worse]
        if not others:
            return f"{best} is the only candidate that has a log score."
        if not alike:
            end = f"All others are worse by more than {CLEAR:g} standard errors."
        else:
            end = f"These {len(self.y)} rows cannot tell it apart from {_listed(alike)}"
            end += f"; worse: {_listed(worse)}." if worse else "."
        return f"Best on the rows held out: {best}. {end}"

    def _of_plain(self) -> list[str]:
        """Return whether a model of the zoo is ahead of plain logistic regression."""
        plain = [name for name in self.log_p if self.asked[name] in tuple(PENALISED)]
        zoo = [name for name in self.log_p if isinstance(self.asked[name], Mapping)]
        if not plain or not zoo:
            return []
        one, other = self._first(zoo), self._first(plain)
        lead, error = self.difference(one, other)
        which = f"{other}, the best of it" if len(plain) > 1 else other
        those, size = f"penalised logistic regression ({which})", f"{abs(lead):.3f} +- {error:.3f}"
        if self._leads(one, other):
            return [f"{one} predicts better than {those}, by {size} in log score."]
        if self._leads(other, one):
            return [
                f"No model of the zoo predicts as well as {those}: {one} is behind it by {size}."
            ]
        side = "ahead" if lead > 0.0 else "behind"
        text = f"No model of the zoo clearly beats {those}: {one} is {side} by {size}"
        return [f"{text}, which may be luck."]

    def _of_a_guess(self) -> list[str]:
        """Return a warning if nothing is better than the share of the classes."""
        share = next((name for name in self.log_p if self.asked[name] == SHARE), None)
        if share is None or self._leads(self.best, share):
            return []
        if share == self.best:
            return [f"Nothing predicts better than {SHARE}: no feature helps."]
        return [f"Even {self.best} does not clearly predict better than {share}, a guess."]

    def _doubts(self) -> list[str]:
        """Return what is lacking: events in a fold, fits that failed or ended early, and noise."""
        table, found = self.table, [*self._few_events()]
        failed = table.loc[table["log_score"].isna(), "status"]
        if len(failed):
            more = f", and {len(failed) - 1} more" if len(failed) > 1 else ""
            reason = failed.iloc[0].removeprefix("failed: ")
            found.append(f"Without scores: {failed.index[0]} ({reason}){more}.")
        early = table[(table["unconverged"] > 0) & table["log_score"].notna()]
        if len(early):
            total, most = len(self.fits) // len(table), str(early["error"].idxmax())
            counts = _listed([f"{n} {k} of {total}" for n, k in early["unconverged"].items()])
            found.append(
                f"Fits that ended before they had converged: {counts}. Their Monte Carlo error "
                f"moves a log score by about {early['error'][most]:.3f} ({most})."
            )
        noisy = [name for name in self.log_p if self._is_noisy(name)]
        if noisy:
            found.append(
                f"The Monte Carlo error of {_listed(noisy)} is not small against the differences. "
                "Raise ess and limit."
            )
        return found

    def _few_events(self) -> list[str]:
        """Return a warning if a fold holds out fewer than `EVENTS` rows of a class."""
        counts = np.array([
            [np.bincount(self.y[column == k], minlength=2).min() for k in range(column.max() + 1)]
            for column in self.folds.T
        ])  # fmt: skip
        few = int((counts < EVENTS).sum())
        if not few:
            return []
        return [
            f"{few} of {counts.size} folds hold out fewer than {EVENTS} rows of a class (the "
            f"fewest {counts.min()}): their scores say little. Take fewer folds, or repeats."
        ]

    def _is_noisy(self, name: str) -> bool:
        """Whether the noise of a candidate's draws may decide whether it is the best."""
        others = self.log_p if name == self.best else [self.best]
        errors = [self.difference(name, other)[1] for other in others if other != name]
        return bool(self.table["error"][name] > max(NOTABLE * min(errors, default=np.inf), 1e-12))


def _listed(names: list[str], most: int = 8) -> str:
    """Return names as a list in words."""
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
