"""The quality of predictions on held-out samples, beyond accuracy and log score.

With M samples, y in {0, 1}, p = P(y = 1), and the class c that a method predicts:

    Brier score   mean of (p - y)^2; 0 is perfect, 0.25 a coin
    AUC           P(score of a random y = 1 is above that of a random y = 0), ties count one half
    F1            2 TP / (2 TP + FP + FN) of class 1
    kappa         (agreement - chance) / (1 - chance), where chance is the agreement of independent
                  y and c with the same shares (Cohen 1960)
    wrong and sure   rows in the wrong class whose 90 % interval of P(y = 1) excludes 1/2
    ECE           expected calibration error: sum over ten bins of p, of equal width, of
                  |number of y = 1 - sum of p| / M (Naeini, Cooper & Hauskrecht 2015)

One function computes them for rows with multiplicities W, so that a bootstrap resample is a row of
counts. A standard error is the sd over `RESAMPLES` resamples. It is NaN if all resamples agree: if
all M rows are right, the bootstrap cannot estimate the error rate (which is below 3 / M, with 95 %
confidence).

The ECE of a perfectly calibrated p is above 0, because its bins contain few rows. Its noise floor
is the 95 % quantile of the ECE of labels drawn from p itself.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ardvark.data import Dataset

RESAMPLES = 500
BINS = 10
FEW, RARE = 10, 0.2
"""Data with fewer samples of a class are tiny; with a smaller share of one, unbalanced."""
_CHUNK = 5_000_000  # counts in memory at once


@dataclass(frozen=True)
class HeldOut:
    """Predictions of several methods on the same held-out samples.

    Attributes
    ----------
    y : array (M,)
        The true classes, 0 or 1.
    names : tuple of str
        Names of the samples.
    probability : dict of array (S, M)
        P(y = 1) in each draw, by method.
    """

    y: np.ndarray
    names: tuple[str, ...]
    probability: dict[str, np.ndarray]


def measures(
    y: np.ndarray,
    decided: np.ndarray,
    score: np.ndarray | None = None,
    p: np.ndarray | None = None,
    seed: int = 0,
) -> dict[str, float]:
    """Return the measures of this module, with their standard errors, by column name.

    Parameters
    ----------
    y, decided : array (M,)
        True and predicted classes, 0 or 1.
    score : array (M,), optional
        Larger for y = 1. Adds AUC. By default `p`.
    p : array (M,), optional
        P(y = 1). Adds log score, Brier score and ECE.
    seed : int
        Seed of the resamples.

    Returns
    -------
    dict
        accuracy, log_score, f1, kappa, auc, brier, ece, each NaN if it is 0 / 0. With the suffix
        `_se`, the standard errors of these except ece; ece_floor, the noise floor of the ECE.
    """
    y, decided = np.asarray(y), np.asarray(decided)
    score = p if score is None else score
    ones = np.ones((1, len(y)))
    found = {k: float(v[0]) for k, v in weighted(ones, y, decided, score, p).items()}
    generator = np.random.default_rng(seed)
    parts: dict[str, list[np.ndarray]] = {}
    step = max(1, _CHUNK // len(y))
    for at in range(0, RESAMPLES, step):
        size = min(step, RESAMPLES - at)
        counts = generator.multinomial(len(y), np.full(len(y), 1.0 / len(y)), size=size)
        for name, values in weighted(counts, y, decided, score, p).items():
            parts.setdefault(name, []).append(values)
    for name, pieces in parts.items():
        found[f"{name}_se"] = _spread(np.concatenate(pieces))
    if p is not None:
        found["log_score"] = float(log_scores(y, p).mean())
        del found["ece_se"]  # biased, because resamples are less calibrated than the sample
        drawn = generator.uniform(size=(RESAMPLES, len(y))) < p
        found["ece_floor"] = float(np.quantile([_ece(ones, d, p)[0] for d in drawn], 0.95))
    return found


def wrong_and_sure(y: np.ndarray, draws: np.ndarray) -> dict[str, float]:
    """Return how many rows are misclassified, and how many of these the posterior is sure of.

    Parameters
    ----------
    y : array (M,)
        True classes, 0 or 1.
    draws : array (..., M)
        P(y = 1) in each draw. A row is wrong if their mean is on the other side of 1/2, and sure if
        their central 90 % interval excludes 1/2 as well. A single state is sure of every row.

    Examples
    --------
    >>> import numpy as np
    >>> from ardvark.inference.scoring.held_out import wrong_and_sure
    >>> draws = np.array([[0.9, 0.9, 0.4], [0.8, 0.9, 0.9]])
    >>> wrong_and_sure(np.array([1, 0, 0]), draws)
    {'wrong': 2.0, 'wrong_sure': 1.0}
    """
    flat = draws.reshape(-1, draws.shape[-1])
    wrong = (flat.mean(axis=0) > 0.5) != (y == 1)
    low, high = np.quantile(flat, (0.05, 0.95), axis=0)
    sure = wrong & np.where(y == 1, high < 0.5, low > 0.5)
    return {"wrong": float(wrong.sum()), "wrong_sure": float(sure.sum())}


def frame(found: Mapping[str, Mapping[str, float]], measures: Iterable[str]) -> pd.DataFrame:
    """Return measures of several methods as a table.

    Parameters
    ----------
    found : dict of dict
        By method, what `measures` and `wrong_and_sure` return.
    measures : iterable of str
        Those that are listed, in their order.

    Returns
    -------
    pandas.DataFrame
        A row for each method and measure: fit, measure, value, se (its standard error) and floor
        (its noise floor), NaN where it has none.
    """
    rows = [
        (fit, name, given[name], given.get(f"{name}_se"), given.get(f"{name}_floor"))
        for fit, given in found.items()
        for name in measures
        if name in given
    ]
    table = pd.DataFrame(rows, columns=["fit", "measure", "value", "se", "floor"])
    return table.astype({"value": float, "se": float, "floor": float})


def log_scores(y: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Return the log probability (M,) of each true class; P may be exactly 0 in float64."""
    return np.log(np.maximum(np.where(y == 1, p, 1.0 - p), np.finfo(float).tiny))


def _spread(values: np.ndarray) -> float:
    """Return the sd over the resamples that have a value; NaN if all agree."""
    known = values[np.isfinite(values)]
    if len(known) < 2 or np.ptp(known) <= 1e-12:
        return float("nan")
    return float(known.std(ddof=1))


def weighted(
    W: np.ndarray,
    y: np.ndarray,
    decided: np.ndarray,
    score: np.ndarray | None = None,
    p: np.ndarray | None = None,
) -> dict[str, np.ndarray]:
    """Return each measure (R,) for samples with multiplicities W (R, M); NaN if it is 0 / 0."""
    M = W.sum(axis=1)
    both, of_y, of_c = W @ (y * decided), W @ y, W @ decided
    agreed = W @ (y == decided).astype(float)
    chance = (of_y * of_c + (M - of_y) * (M - of_c)) / M
    with np.errstate(invalid="ignore", divide="ignore"):
        out = {
            "accuracy": agreed / M,
            "f1": 2.0 * both / (of_y + of_c),
            "kappa": (agreed - chance) / (M - chance),
        }
    if score is not None:
        out["auc"] = _auc(W, y, score)
    if p is not None:
        out["log_score"] = W @ log_scores(y, p) / M
        out["brier"] = W @ np.square(p - y) / M
        out["ece"] = _ece(W, y, p)
    return out


def _auc(W: np.ndarray, y: np.ndarray, score: np.ndarray) -> np.ndarray:
    order = np.argsort(score, kind="stable")
    _, first = np.unique(score[order], return_index=True)  # where each tie begins
    ones = np.add.reduceat((W * y)[:, order], first, axis=1)  # (R, ties)
    zeros = np.add.reduceat((W * (1 - y))[:, order], first, axis=1)
    below = np.cumsum(zeros, axis=1) - zeros
    with np.errstate(invalid="ignore"):
        return (ones * (below + 0.5 * zeros)).sum(1) / (ones.sum(1) * zeros.sum(1))


def _ece(W: np.ndarray, y: np.ndarray, p: np.ndarray) -> np.ndarray:
    bins = np.searchsorted(np.linspace(0.0, 1.0, BINS + 1)[1:-1], p)
    excess = (W * (y - p)) @ (bins[:, None] == np.arange(BINS))  # (R, bins)
    return np.abs(excess).sum(axis=1) / W.sum(axis=1)


# --- in words -------------------------------------------------------------------------------------


def remarks(train: Dataset, test: Dataset | None = None) -> list[str]:
    """Return remarks that follow from the numbers of samples alone; none for ordinary data.

    Unbalanced: a class with less than a fifth of the training samples. Tiny: fewer than ten
    samples of a class, in training or held out.
    """
    out = []
    counts = np.bincount(train.y, minlength=2)
    few = int(counts.argmin())
    label, often = train.class_names[few], train.class_names[1 - few]
    of = f"{counts[few]} of {train.N} training samples"
    if counts[few] < FEW:
        out.append(
            f"Tiny data: {of} are {label!r}. What is learned about that class depends strongly on "
            "the prior: check prior sensitivity (--sensitivity) before you report it."
        )
    if counts[few] < RARE * train.N:
        out.append(
            f"Unbalanced data: {of} are {label!r}. Always answering {often!r} would be right for "
            f"{_percent(counts[1 - few] / train.N)} of them. Compare the accuracy with that of the "
            "baseline 'majority', and look at AUC, F1 and kappa."
        )
    if test is not None:
        held = np.bincount(test.y, minlength=2)
        if held.min() < FEW:
            out.append(
                f"Few held-out samples: {held[0]} are {test.class_names[0]!r} and {held[1]} "
                f"{test.class_names[1]!r}. One more correct sample changes the accuracy by "
                f"{1.0 / test.N:.3f}, and standard errors from so few samples are rough."
            )
    return out


def _percent(share: float) -> str:
    return f"{100.0 * share:.0f} %"
