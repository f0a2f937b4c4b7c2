"""The stack on all rows: a mixture of the posteriors of several candidates, which predicts."""

import os
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd

from ardvark.common.pieces import Processes
from ardvark.common.validate import InputError
from ardvark.data import Dataset

from ..checks.sharing import refits
from ..fits.datatree import replacing
from ..methods import registry
from ..methods.prediction import Rows, rows_of, warn_of_new_values
from ..target.sampling import Sampling
from .candidates import Given, Member, Zoo, candidates

THRESHOLD = 0.01
"""Weight up to which a candidate is left out of the stack of all rows."""
ENDS = (0.05, 0.95)
"""The quantiles that an interval lies between."""
_CHUNK = 2.0e7  # probabilities held at once


@dataclass(frozen=True, eq=False, repr=False)
class Stack:
    """A mixture of fitted candidates.

    Attributes
    ----------
    weights : dict of float
        By candidate; their sum is 1.
    members : dict of Member
        The fits.
    data : Dataset
        The rows they were fitted to.

    Examples
    --------
    >>> import ardvark as av
    >>> data = av.load("digits38").take(range(60))
    >>> choice = av.choose(data, candidates=["ridge", "l1", "share"], progressbar=False)
    >>> stack = choice.fit(progressbar=False)
    >>> stack.predict(data.X[:3])["probability"].round(1).tolist()
    [...]
    >>> stack.predict_proba(data.X[:3]).shape
    (3, 2)
    >>> stack.save("stack.pkl")
    >>> again = av.inference.Stack.load("stack.pkl")
    >>> (again.predict_proba(data.X) == stack.predict_proba(data.X)).all()
    np.True_
    """

    weights: Mapping[str, float]
    members: Mapping[str, Member]
    data: Dataset

    def __repr__(self) -> str:
        shares = ", ".join(f"{name} {weight:.2f}" for name, weight in self.weights.items())
        return f"Stack({shares} on {self.data.name!r})"

    @property
    def unconverged(self) -> dict[str, str]:
        """Why a fit must not be trusted, by candidate; usually empty."""
        return {n: m.reason for n, m in self.members.items() if m.status != "finished"}

    def predict_proba(self, X_new: Rows) -> np.ndarray:
        """Return the probabilities (M, 2) of y = 0 and y = 1; an example is that of the class.

        Parameters
        ----------
        X_new : array (M, D), data frame, or Dataset
            Inputs in the original units. A data frame's columns are matched by name. Rows of a
            table are cleaned first: ``data.clean(rows)``. What `ardvark.predict` warns of is
            warned of here too.
        """
        X, names = rows_of(self.data, X_new)
        warn_of_new_values(self.data, X, names)
        return self._mixture(X)

    def _mixture(self, X: np.ndarray) -> np.ndarray:
        parts = [w * np.exp(self.members[name].log_p(X)) for name, w in self.weights.items()]
        p = np.sum(parts, axis=0)
        return p / p.sum(axis=1, keepdims=True)

    def predict(self, X_new: Rows) -> pd.DataFrame:
        """Return P(y = 1) with its 90 % interval; an example is that of the class.

        The interval is of P(y = 1) under a draw of the mixture: of a candidate, by its weight, and
        of its posterior. A candidate without a posterior adds one value.

        Returns
        -------
        pandas.DataFrame
            One row per new row: `probability`, `low`, `high`, and `predicted`, the name of the more
            probable class.
        """
        X, names = rows_of(self.data, X_new)
        warn_of_new_values(self.data, X, names)
        p = self._mixture(X)[:, 1]
        classes = np.array(self.data.class_names)
        ends = self._ends(X)
        return pd.DataFrame(
            {
                "probability": p,
                "low": ends[0],
                "high": ends[1],
                "predicted": classes[(p > 0.5).astype(int)],
            },
            index=list(names),
        )

    def _ends(self, X: np.ndarray) -> np.ndarray:
        """Return the ends (2, M) of the intervals, some rows at a time."""
        few = sum(member.draws(X[:1]).size for member in self.members.values())
        step = max(1, int(_CHUNK / few))
        parts = [self._quantiles(X[at : at + step]) for at in range(0, len(X), step)]
        return np.concatenate(parts, axis=1)

    def _quantiles(self, X: np.ndarray) -> np.ndarray:
        drawn = [self.members[name].draws(X) for name in self.weights]
        shares = [
            np.full(len(p), w / len(p)) for p, w in zip(drawn, self.weights.values(), strict=True)
        ]
        return quantiles(np.concatenate(drawn), np.concatenate(shares), ENDS)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the stack to a file, as a pickle; an example is that of the class."""
        with replacing(path) as part:
            part.write_bytes(pickle.dumps(self))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote. A pickle can run code: read only files that you trust.

        Raises
        ------
        InputError
            It contains no stack.
        """
        try:
            found = pickle.loads(Path(path).read_bytes())
        except (pickle.UnpicklingError, EOFError, AttributeError, ImportError) as error:
            raise InputError(f"{path} contains no stack: {error}.") from None
        if not isinstance(found, cls):
            raise InputError(f"{path} contains no stack, but a {type(found).__name__}.")
        return found


def quantiles(values: np.ndarray, shares: np.ndarray, q: tuple[float, ...]) -> np.ndarray:
    """Return the quantiles (Q, M) of weighted values (S, M), whose shares (S,) sum to 1.

    Each is the least value up to which there is at least the share q.
    """
    order = np.argsort(values, axis=0, kind="stable")
    reached = np.cumsum(shares[order], axis=0)
    at = [(reached < level - 1e-12).sum(axis=0) for level in q]
    rows = np.minimum(np.stack(at), len(values) - 1)
    return np.take_along_axis(values, np.take_along_axis(order, rows, axis=0), axis=0)


def fit_stack(
    data: Dataset,
    asked: Mapping[str, Given],
    weights: Mapping[str, float],
    *,
    threshold: float,
    method: str,
    draws: int,
    chains: int,
    seed: int,
    folder: str | os.PathLike[str] | None,
    processes: Processes,
    progressbar: bool,
    options: Mapping[str, Any],
) -> Stack:
    """Fit the candidates whose weight is above a threshold to all rows: see `Choice.fit`."""
    kept = {name: weight for name, weight in weights.items() if weight > threshold}
    if not kept:
        raise InputError(f"threshold = {threshold:g}: no candidate has so much weight.")
    total = sum(kept.values())
    shares = {name: weight / total for name, weight in kept.items()}
    chosen = candidates({name: asked[name] for name in shares})
    members: dict[str, Member] = {}
    sampling = Sampling(
        draws=draws, chains=chains, seed=seed, keep="shared", progressbar=progressbar
    )
    zoo = {c.name: c for c in chosen if isinstance(c, Zoo)}
    problems = {name: candidate.problem(data) for name, candidate in zoo.items()}
    methods = {name: registry.resolve(method, p) for name, p in problems.items()}
    for by in dict.fromkeys(methods.values()):  # "paper" is another one for each model
        some = {name: problems[name] for name in problems if methods[name] == by}
        plan = registry.prepare(by, next(iter(some.values())), options, sampling)
        for name, tree in refits("stack", some, plan, folder, processes):
            members[name] = zoo[name].fitted(problems[name], tree)
    for candidate in chosen:
        if candidate.name not in zoo:
            members[candidate.name] = candidate.fit(data, seed, None, {})
    return Stack(shares, {name: members[name] for name in shares}, data)
