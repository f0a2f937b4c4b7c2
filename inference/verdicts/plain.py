"""Does the model predict better than plain classifiers? A question apart from the computation.

On the same held-out samples, the log score of each sample's true class is compared with that of the
majority's share and of L1 logistic regression (`scoring/baselines.py`). The standard error is that
of the mean of the paired differences. Less than `BEYOND` of them is no difference. A model of the
link "identity" has no probabilities, so right and wrong classes are compared instead.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

BEYOND = 2.0
"""Standard errors beyond which a mean of paired differences is not noise."""


@dataclass(frozen=True)
class Predicted:
    """What a classifier says of the held-out samples.

    Attributes
    ----------
    right : array of bool (M,)
        Whether its class is the true one.
    log_p : array (M,), optional
        Log probability of the true class; None without probabilities.
    """

    right: np.ndarray
    log_p: np.ndarray | None = None

    @classmethod
    def of(cls, y: np.ndarray, decided: np.ndarray, p: np.ndarray | None) -> "Predicted":
        """Return it from true and predicted classes (M,), and P(y = 1) (M,) or None."""
        if p is None:
            return cls(decided == y)
        true = np.maximum(np.where(y == 1, p, 1.0 - p), np.finfo(float).tiny)
        return cls(decided == y, np.log(true))


def lines(fits: Mapping[str, Predicted], plain: Mapping[str, Predicted]) -> dict[str, str]:
    """Return by fit, in words, how its predictions compare with those of plain classifiers.

    Examples
    --------
    >>> import numpy as np
    >>> from ardvark.inference.verdicts.plain import Predicted, lines
    >>> y = np.array([0, 1] * 20)
    >>> coin = Predicted.of(y, np.zeros(40), np.full(40, 0.5))
    >>> sure = Predicted.of(y, y, np.where(y == 1, 0.9, 0.1))
    >>> print(lines({"fit": sure}, {"majority": coin})["fit"])
    predicts better than the majority (log score -0.11 against -0.69, difference 0.59 +- 0.00;
    accuracy 1.00 against 0.50).
    """
    return {name: _line(found, plain) for name, found in fits.items()}


def _line(found: Predicted, plain: Mapping[str, Predicted]) -> str:
    """Return the sentence on one fit."""
    told = [_beside(found, name, other) for name, other in plain.items()]
    return f"predicts {'; '.join(told)}."


def _beside(found: Predicted, name: str, other: Predicted) -> str:
    """Return how a fit's predictions compare with those of one plain classifier."""
    accuracy = f"accuracy {found.right.mean():.2f} against {other.right.mean():.2f}"
    if found.log_p is None or other.log_p is None:
        gap, score, rest = found.right.astype(float) - other.right, accuracy, ""
    else:
        gap, rest = found.log_p - other.log_p, f"; {accuracy}"
        score = f"log score {found.log_p.mean():.2f} against {other.log_p.mean():.2f}"
    error = float(gap.std(ddof=1) / np.sqrt(len(gap))) if len(gap) > 1 else np.inf
    mean = float(gap.mean())
    text = f"{score}, difference {mean:.2f} +- {error:.2f}{rest}"
    return f"{_compared(mean, error)} {'the ' * (name == 'majority')}{name} ({text})"


def _compared(gap: float, error: float) -> str:
    if abs(gap) <= BEYOND * error:
        return "no better than"
    return "better than" if gap > 0.0 else "worse than"
