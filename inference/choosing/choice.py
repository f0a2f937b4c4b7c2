"""What a choice found, in words and as a figure."""

from dataclasses import dataclass

from ..comparison.report.style import Picture
from . import words
from .plots import picture
from .scores import Scores


@dataclass(frozen=True, eq=False, repr=False)
class Choice(Scores):
    """What `choose` found.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per candidate, the best first. The columns are explained by
        ``help("ardvark.inference.choosing.scores")``.
    best : str
        The candidate with the best log score.
    scores : pandas.DataFrame
        Log score of each row: one column per candidate.
    log_p : dict of ndarray (N, R, 2)
        By candidate: the log probabilities of y = 0 and y = 1 for each row, in each of R
        partitions.

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
    >>> lead, error = choice.difference(choice.best, "share")
    >>> lead > 2 * error  # it is better than a guess
    True
    >>> choice.plot()
    Log score of ...
    """

    @property
    def sentence(self) -> str:
        """What is known, and what the folds cannot tell apart."""
        return " ".join(words.sentences(self))

    def __repr__(self) -> str:
        return self.text()

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
        return words.text(self)

    def plot(self) -> Picture:
        """Draw the differences to the best candidate, with two standard errors each way.

        Examples
        --------
        >>> import ardvark as av
        >>> data = av.load("digits38").take(range(40))
        >>> av.choose(data, candidates=["ridge", "share"], progressbar=False).plot()
        Log score of ...
        """
        return picture(self)
