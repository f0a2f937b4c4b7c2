"""Agreement of selections, by Python's sets and by NumPy."""

import itertools

import numpy as np
import pytest

from lab.papers.agreement import agreement, jackknife
from tests.support import rng


def test_agreement_is_that_of_pairs_of_sets():
    """Jaccard of Python's sets and NumPy's correlation; a pair with 0 / 0 is left out.

    The jackknife's error is ((R - 1) / R sum of squares)^1/2 of what is left without each set.
    """
    S = rng(1).random((6, 9)) < 0.4
    S[2] = False  # Pearson is 0 / 0 beside it, and Jaccard 0 beside all but the last
    S[5] = False
    sets = [set(np.flatnonzero(row)) for row in S]

    def by_pairs(rows):
        jaccard, pearson = [], []
        for a, b in itertools.combinations(rows, 2):
            if sets[a] | sets[b]:
                jaccard.append(len(sets[a] & sets[b]) / len(sets[a] | sets[b]))
            if sets[a] and sets[b]:
                pearson.append(np.corrcoef(S[a], S[b])[0, 1])
        return {"jaccard": np.mean(jaccard), "pearson": np.mean(pearson)}

    assert agreement(S) == pytest.approx(by_pairs(range(6)))
    for name in ("jaccard", "pearson"):
        left = [by_pairs([r for r in range(6) if r != i])[name] for i in range(6)]
        error = np.sqrt(5 / 6 * np.square(np.subtract(left, np.mean(left))).sum())
        assert jackknife(S, name) == pytest.approx(error)
    assert np.isnan(jackknife(S[:2], "jaccard"))
