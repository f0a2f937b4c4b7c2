"""Stacking weights: the optimum of their score, their bootstrap, and the score of rows left out."""

import itertools

import numpy as np
import pytest
from scipy import stats

from ardvark.inference.choosing import stacking
from tests.support import ALARM, rng, z_limit


def scores(number, T=40, K=3, spread=1.0):
    """Log probabilities (T, K) of labels."""
    return np.log(stats.logistic.cdf(spread * rng(number).normal(size=(T, K)) + 0.3))


def score(w, log_p, s=None):
    """F(w), from its definition."""
    mixed = [sum(wk * np.exp(x) for wk, x in zip(w, row, strict=True)) for row in log_p]
    return float(np.average(np.log(mixed), weights=s))


def gradient(w, log_p):
    p = np.exp(log_p)
    return np.array([np.mean(p[:, k] / (p @ w)) for k in range(len(w))])


@pytest.mark.parametrize("number", range(4))
def test_no_weights_of_a_grid_have_a_better_score(number):
    """Another objective, or a step that ends early, shows here."""
    log_p = scores(number, spread=[0.1, 0.7, 2.0, 4.0][number])
    steps = 60
    grid = [
        np.array([i, j, steps - i - j]) / steps
        for i, j in itertools.product(range(steps + 1), repeat=2)
        if i + j <= steps
    ]
    found = stacking.stack(log_p)
    values = [score(w, log_p) for w in grid]
    assert score(found, log_p) >= max(values) - stacking.GAP
    # the best of the grid is not far: its neighbours enclose the optimum of a concave function
    assert score(found, log_p) - max(values) < 0.01


@pytest.mark.parametrize("size", [(2, 1), (7, 2), (50, 8), (300, 12)])
@pytest.mark.parametrize("spread", [0.01, 1.0, 300.0])
def test_the_conditions_of_an_optimum_hold(size, spread):
    """g_k <= 1 with equality where w_k > 0, also where probabilities are 0 in float64."""
    log_p = spread * rng(size[0]).normal(size=size)
    log_p -= log_p.max(axis=1, keepdims=True)
    w = stacking.stack(log_p)
    g = gradient(w, log_p)
    assert (w >= 0.0).all()
    assert w.sum() == pytest.approx(1.0, abs=1e-12)
    assert g.max() <= 1.0 + 2 * stacking.GAP
    assert (w * (1.0 - g) <= 1e-6).all()
    assert stacking.gap(w, log_p) == pytest.approx(g.max() - 1.0, abs=1e-9)


def test_problems_that_are_solved_at_once_are_each_at_their_optimum():
    """One whose start is its optimum must not end the others: equal shares of symmetric rows."""
    log_p = np.vstack([np.log([[0.9, 0.2], [0.2, 0.9]]), scores(13, T=8, K=2, spread=2.0)])
    even = np.r_[0.5, 0.5, np.zeros(8)]
    s = np.vstack([even, stacking.shares(10, 6, rng(14))])
    found = stacking.stack(log_p, s)
    np.testing.assert_allclose(found[0], 0.5, atol=1e-6)
    for w, given in zip(found, s, strict=True):
        assert stacking.gap(w, log_p, given) <= 2 * stacking.GAP


def test_the_gap_bounds_what_is_lacking():
    log_p = scores(5)
    best = score(stacking.stack(log_p), log_p)
    for w in rng(6).dirichlet(np.ones(3), size=50):
        assert best - score(w, log_p) >= -stacking.GAP
        assert best - score(w, log_p) <= stacking.gap(w, log_p) + stacking.GAP


def test_two_equal_candidates_give_the_stack_of_one():
    """A solver that needs distinct candidates divides by 0 here."""
    log_p = scores(1, K=3)
    twice = log_p[:, [0, 1, 1, 2]]
    once, found = stacking.stack(log_p), stacking.stack(twice)
    assert found[1] == pytest.approx(found[2], abs=1e-6)
    np.testing.assert_allclose(
        stacking.mixture(found, twice), stacking.mixture(once, log_p), atol=1e-4
    )
    assert score(found, twice) == pytest.approx(score(once, log_p), abs=2 * stacking.GAP)


def test_a_candidate_that_is_better_on_every_row_has_all_the_weight():
    log_p = scores(2, K=4)
    log_p[:, 2] = log_p.max(axis=1) + 0.05
    w = stacking.stack(log_p)
    assert w[2] > 1.0 - 1e-5


def apart(counts):
    """Candidates of which each knows the labels of rows of its own: log probability 0, or -800."""
    owner = np.repeat(range(len(counts)), counts)
    return np.where(owner[:, None] == np.arange(len(counts)), 0.0, -800.0)


def test_candidates_that_know_rows_of_their_own_get_the_shares_of_these():
    """F is then sum_k n_k log w_k, whose maximum is known."""
    log_p = apart([6, 3, 1])
    np.testing.assert_allclose(stacking.stack(log_p), [0.6, 0.3, 0.1], atol=1e-4)
    s = stacking.shares(10, 5, rng(3))
    found = stacking.stack(log_p, s)
    sums = np.column_stack([s[:, :6].sum(1), s[:, 6:9].sum(1), s[:, 9]])
    np.testing.assert_allclose(found, sums, atol=1e-4)


@pytest.mark.statistical
def test_the_bootstrap_has_dirichlet_weights():
    """Multinomial counts have the same mean, and another law: here they have 7 values."""
    drawn = stacking.bootstrap(apart([2, 4])[:, None, :], 4000, rng(4))
    assert stats.kstest(drawn[:, 0], stats.beta(2, 4).cdf).pvalue > ALARM
    s = stacking.shares(6, 4000, rng(5))
    np.testing.assert_allclose(s.sum(axis=1), 1.0)
    assert stats.kstest(s[:, 3], stats.beta(1, 5).cdf).pvalue > ALARM
    z = np.corrcoef(s[:, 0], s[:, 1])[0, 1] - (-1.0 / 5.0)
    assert abs(z) * np.sqrt(4000) < z_limit() * 2.0


def test_a_row_that_was_held_out_twice_counts_once():
    log_p = scores(7)
    once = stacking.bootstrap(log_p[:, None, :], 20, rng(8))
    twice = stacking.bootstrap(np.stack([log_p, log_p], axis=1), 20, rng(8))
    np.testing.assert_allclose(once, twice, atol=2e-3)
    terms = stacking.terms(np.stack([log_p, log_p], axis=1))
    np.testing.assert_allclose(stacking.stack(terms), stacking.stack(log_p), atol=2e-3)


def test_the_score_of_rows_left_out_is_that_of_a_loop():
    """A stack that had seen a row would score it better."""
    generator = rng(9)
    log_p = np.stack([scores(10), scores(11)], axis=1)  # (N, R, K)
    N, R = log_p.shape[:2]
    folds = np.stack([generator.permutation(np.arange(N) % 4) for _ in range(R)], axis=1)
    weights = stacking.left_out(log_p, folds)
    mixed = stacking.mixture(weights, log_p)
    for n, r in itertools.product(range(N), range(R)):
        seen = [log_p[m, q] for m in range(N) if folds[m, r] != folds[n, r] for q in range(R)]
        w = stacking.stack(np.array(seen))
        np.testing.assert_array_equal(weights[n, r], w)
        assert mixed[n, r] == pytest.approx(np.log(np.exp(log_p[n, r]) @ w), abs=1e-12)
    changed = log_p.copy()
    changed[0, 0] = [-9.0, -0.1, -9.0]
    moved = stacking.left_out(changed, folds)
    mates = folds[:, 0] == folds[0, 0]
    np.testing.assert_array_equal(moved[mates, 0], weights[mates, 0])
    assert (moved[~mates, 0] != weights[~mates, 0]).any()
