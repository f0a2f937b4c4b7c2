"""Means over folds, what stands behind a +-, and paired differences.

An error of a mean over folds is sqrt(variance / folds); for left-out rows, whose values are 0 or 1,
that is sqrt(p (1 - p) / N). It is a standard error only where folds are independent. Random splits
are, given the data (`RESAMPLED`). Folds of one cross-validation are not: they share training rows,
and no unbiased estimate of the variance of their mean exists (Bengio and Grandvalet 2004, Journal
of Machine Learning Research 5, 1089-1105). There it says how much folds differ, and no more.
"""

from collections.abc import Iterable, Mapping

import numpy as np

Folds = Mapping[int, float]  # a figure by fold


def mean_error(values: Iterable[float], leave_one_out: bool = False) -> tuple[float, float]:
    """Return the mean over folds and its error; NaN for a single fold that is no count."""
    x = np.array(list(values), dtype=float)
    mean = float(x.mean())
    if leave_one_out:
        return mean, float((mean * (1.0 - mean) / len(x)) ** 0.5)
    return mean, float(x.std(ddof=1) / len(x) ** 0.5) if len(x) > 1 else float("nan")


def paired(found: Folds, reference: Folds) -> tuple[float, float, int]:
    """Return the mean difference on the folds of both, its error, and their number."""
    both = sorted(set(found) & set(reference))
    if not both:
        return float("nan"), float("nan"), 0
    return *mean_error(found[fold] - reference[fold] for fold in both), len(both)


def f1_other(f1: float, accuracy: float, n: int) -> float:
    """Return the F1 of the other class, of n rows with this F1 and this accuracy.

    Of e rows that are wrong, F1 = 2 TP / (2 TP + e), and the rest of the right ones are TN.
    """
    wrong = round(n * (1.0 - accuracy))
    if not wrong:
        return 1.0
    TP = round(f1 * wrong / (2.0 * (1.0 - f1)))
    TN = n - wrong - TP
    return 2.0 * TN / (2.0 * TN + wrong)
