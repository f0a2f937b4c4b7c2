"""Means over folds, what stands behind a +-, paired differences, and how stable a selection is.

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


def stability(selected: np.ndarray) -> dict[str, float]:
    """Return Jaccard (16) and Pearson (18) of selections (R, D), the mean over pairs, (17), (19).

    Pairs for which one is 0 / 0 (nothing, or everything selected) are left out of it.
    """
    S = selected.astype(float)
    D, r, both = S.shape[1], S.sum(axis=1), S @ S.T
    pair = np.triu_indices(len(S), 1)
    with np.errstate(invalid="ignore"):
        jaccard = both / (r[:, None] + r - both)
        pearson = (D * both - np.outer(r, r)) / np.sqrt(np.outer(r * (D - r), r * (D - r)))
    out = {}
    for name, of_pairs in (("jaccard", jaccard[pair]), ("pearson", pearson[pair])):
        defined = of_pairs[np.isfinite(of_pairs)]
        out[name] = float(defined.mean()) if len(defined) else float("nan")
    return out


def jackknife(selected: np.ndarray, name: str) -> float:
    """Return the error of a stability, by leaving each split out."""
    R = len(selected)
    if R < 3:
        return float("nan")
    left = np.array([stability(np.delete(selected, i, axis=0))[name] for i in range(R)])
    return float(((R - 1) * left.var()) ** 0.5)
