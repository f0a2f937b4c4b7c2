"""What a choice found, in words, as a figure and in a file; and the stack of all rows."""

import json
import os
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from ardvark.common.pieces import Processes
from ardvark.common.validate import InputError
from ardvark.data import Dataset

from ..comparison.report.look import Picture
from ..fits.datatree import replacing
from . import words
from .plots import picture
from .scores import Scores
from .stack import THRESHOLD, Stack, fit_stack

FORMAT = 1
"""Of the file that `Choice.save` writes."""


@dataclass(frozen=True, eq=False, repr=False)
class Choice(Scores):
    """What `choose` found.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per candidate and one for the stack, the best first. The columns are explained by
        ``help("ardvark.inference.choosing.scores")``.
    best : str
        The candidate with the best log score.
    weights : pandas.Series
        The weights of the stack.
    bootstrap : pandas.DataFrame
        Draws of the weights by the Bayesian bootstrap over rows.
    scores : pandas.DataFrame
        Log score of each row: one column per candidate, and `stack`.

    Examples
    --------
    >>> import numpy as np
    >>> import ardvark as av
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> y = X[:, 0] + X[:, 1] > 0
    >>> choice = av.choose(X, y, candidates=["l1", "ridge", "share"], progressbar=False)
    >>> choice.table.index[-1]
    'share'
    >>> choice.weights["share"].round(3)
    np.float64(0.0)
    >>> print(choice.sentence)
    Best on the rows held out: ...
    >>> choice.plot()
    Log score of ...
    >>> choice.save("choice.json")
    >>> again = av.inference.Choice.load("choice.json")
    >>> again.table.equals(choice.table)
    True
    >>> stack = choice.fit(progressbar=False)
    >>> stack.predict_proba([[2.0, 2.0, 0.0]]).round(1)[0, 1]
    np.float64(1.0)
    """

    # --- in words ---------------------------------------------------------------------------------

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
                  log score to the best      weight (90 %)       Brier  AUC   sec
        ridge    -0.0... the best         1.00 (...
        ...
        """
        lines = [words.heading(self), *words.rows(self), ""]
        return "\n".join([*lines, *map(_filled, words.sentences(self))])

    def plot(self) -> Picture:
        """Draw the differences to the best candidate, and the weights with their intervals.

        Examples
        --------
        >>> import ardvark as av
        >>> data = av.load("digits38").take(range(40))
        >>> av.choose(data, candidates=["ridge", "share"], progressbar=False).plot()
        Log score of ...
        """
        return picture(self)

    # --- all rows ---------------------------------------------------------------------------------

    def fit(
        self,
        data: Dataset | None = None,
        *,
        threshold: float = THRESHOLD,
        random_seed: int | None = None,
        folder: str | os.PathLike[str] | None = None,
        processes: Processes = None,
        progressbar: bool = True,
        **options: Any,
    ) -> Stack:
        """Fit the candidates that have weight to all rows, and return their mixture.

        Parameters
        ----------
        data : Dataset, optional
            The rows, where this choice was loaded from a file.
        threshold : float
            Candidates with at most this weight are left out; the others share their weight.
        random_seed : int, optional
            By default that of the choice.
        folder : path, optional
            Finished fits are kept there, one file each, and used again.
        processes, progressbar
            As for `ardvark.choose`.
        **options
            Of the method. By default `exact` has its own, which ask for more than in a fold.

        Raises
        ------
        InputError
            There are no rows, or others than those that were chosen for.
        FitFailed
            A candidate could not be fitted.

        Examples
        --------
        >>> import ardvark as av
        >>> data = av.load("digits38").take(range(40))
        >>> choice = av.choose(data, candidates=["ridge", "l1", "share"], progressbar=False)
        >>> stack = choice.fit(progressbar=False)
        >>> stack.predict(data.X[:2]).columns.tolist()
        ['probability', 'low', 'high', 'predicted']
        """
        rows = self.data if data is None else data
        if rows is None:
            raise InputError("this choice was loaded without its rows: fit(data) with the same.")
        if rows.fingerprint != self.about["fingerprint"]:
            raise InputError(
                f"{rows.name} has other rows than the table that was chosen for "
                f"({self.about['data']}). Run ardvark.choose on it."
            )
        seed = self.about["seed"] if random_seed is None else random_seed
        return fit_stack(
            rows,
            {name: self.asked[name] for name in self.names},
            {name: float(self.weights[name]) for name in self.names},
            threshold=threshold,
            method=self.about["method"],
            draws=self.about["draws"],
            chains=self.about["chains"],
            seed=seed,
            folder=folder,
            processes=processes,
            progressbar=progressbar,
            options=options,
        )

    # --- disk -------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all but the rows of the table to a JSON file; an example is that of the class."""
        arrays = {"y": self.y, "folds": self.folds}
        content = {
            "format": FORMAT,
            "about": dict(self.about),
            "asked": {k: v if isinstance(v, str) else dict(v) for k, v in self.asked.items()},
            "fits": {k: dict(v) for k, v in self.fits.items()},
            **{name: array.tolist() for name, array in arrays.items()},
            "log_p": {name: x.tolist() for name, x in self.log_p.items()},
            "errors": {name: x.tolist() for name, x in self.errors.items()},
        }
        with replacing(path) as part:
            part.write_text(json.dumps(content), encoding="utf-8")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote; an example is that of the class.

        Raises
        ------
        InputError
            It is no such file, or one of another version.
        """
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
            if content.pop("format") != FORMAT:
                raise ValueError("another format")
            for name in ("y", "folds"):
                content[name] = np.array(content[name])
            for name in ("log_p", "errors"):
                content[name] = {k: np.array(v) for k, v in content[name].items()}
            return cls(**content)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(f"{path} contains no choice: {error}.") from None


def _filled(sentence: str) -> str:
    return textwrap.fill(sentence, 80, break_long_words=False, break_on_hyphens=False)
