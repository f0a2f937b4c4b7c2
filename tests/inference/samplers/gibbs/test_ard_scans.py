"""Scans of the weights: steps of faint weights and of others, scans without moves in the spike.

A scan starts at exact draws of the law of one weight, or of five, and ends at draws of it. The
steps themselves are in `test_ard_steps.py`.
"""

import math

import numpy as np
import pytest
from scipy import stats

from ardvark.inference.samplers.gibbs import ard_scans
from ardvark.inference.samplers.gibbs import ard_steps as steps
from ardvark.inference.samplers.gibbs.ard_linear import Sampler
from ardvark.models.parts.ard import WeightPrior
from tests.inference.samplers.gibbs.ard_problems import made
from tests.inference.samplers.gibbs.runs import with_counts
from tests.inference.samplers.gibbs.test_ard_steps import (
    PRIORS,
    cdf_of,
    drawn_from,
    grid,
    ks,
    pair_p,
)
from tests.support import ALARM, rng

every_law = pytest.mark.parametrize("law", PRIORS)
every_sign = pytest.mark.parametrize("positive", [True, False])


def is_faint(linear, precision, prior):
    scale = math.sqrt(prior.rate / prior.shape)
    return steps.faint(linear, precision, scale, prior.positive)


# --- one weight -----------------------------------------------------------------------------------


@every_law
@every_sign
def test_a_faint_likelihood_is_flat_over_the_spike_and_nowhere_high(law, positive):
    given, random = PRIORS[law], rng()
    prior = steps.Prior.of(given, positive=positive)
    found = 0
    for _ in range(400):
        precision = given.scale**-2.0 * 10.0 ** random.uniform(-6.0, 1.0)
        linear = random.choice([-1.0, 1.0]) * 10.0 ** random.uniform(-2.0, 1.0) * precision**0.5
        x = np.linspace(0.0 if positive else -1.0, 1.0, 201) * 5.0 * (1.0 + abs(linear) / precision)
        G = steps.log_tilt(x, linear, precision)
        near = steps.log_tilt(given.scale * np.array([-1.0, 1.0])[positive:], linear, precision)
        if is_faint(linear, precision, prior):
            found += 1
            assert G.max() <= 1.5
            assert (np.abs(near) <= 1.5).all()
        elif abs(linear) * given.scale < 1.0 and precision * given.scale**2 < 1.0:
            peak = linear / precision
            assert steps.log_tilt(peak, linear, precision) >= 1.5
            assert peak > 0.0 or not positive
    assert 20 < found < 380


# --- scans ----------------------------------------------------------------------------------------


@pytest.mark.statistical
@every_law
@every_sign
def test_draws_of_the_tail(law, positive):
    given, random = PRIORS[law], rng()
    prior = steps.Prior.of(given, positive=positive)
    t = stats.t(2.0 * given.shape, scale=given.scale)
    for at in (0.1, 1.0, 30.0):
        cut = at * given.scale
        x = np.array([ard_scans.draw_tail(random, prior, cut) for _ in range(2000)])
        assert (np.abs(x) > cut).all()
        assert ks(t.sf(np.abs(x)) / t.sf(cut), stats.uniform.cdf) > ALARM / 6
        assert (x > 0.0).all() if positive else 0.4 < (x > 0.0).mean() < 0.6


def crossed(random, x, linear, precision, prior, tail):
    """The ends of one `crossing_scan` from each x; each weight has a row of its own."""
    ends = np.array(x, dtype=float)
    for at in range(0, len(ends), 500):
        block = ends[at : at + 500]
        n = len(block)
        score, W = linear - precision * block, np.full(n, precision)
        group = steps.Group(np.eye(n), np.ones(n), W, prior, score, block)
        ard_scans.crossing_scan(random, group, tail)
        np.testing.assert_allclose(score, linear - precision * block, rtol=1e-8, atol=1e-8)
    return ends


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("positive", "linear", "precision"), [(True, 1.2, 0.5), (False, -1.6, 1.0)]
)
def test_a_crossing_leaves_the_law_of_a_weight(positive, linear, precision):
    """From draws to draws; none moves within the spike. The control proposes from it too often."""
    given, random, n = PRIORS["sparse"], rng(), 40_000
    prior = steps.Prior.of(given, positive=positive)
    full = precision + given.slab**-2.0
    assert is_faint(linear, full, prior)
    x = grid(given, linear, full, positive, 1501)
    t = stats.t(2.0 * given.shape, scale=given.scale)
    tail = ard_scans.Tail(float(t.isf(0.1)), 0.2)
    log_f = t.logpdf(x) + linear * x - 0.5 * full * x**2
    starts = drawn_from(random, x, log_f, n)
    ends = crossed(random, starts, linear, precision, prior, tail)
    assert ks(ends, cdf_of(x, log_f)) > ALARM
    faint = np.maximum(np.abs(starts), np.abs(ends)) < tail.cut
    np.testing.assert_array_equal(starts[faint], ends[faint])
    assert 0.01 < (starts != ends)[np.abs(starts) < tail.cut].mean() < tail.chance
    ends = crossed(random, starts, linear, precision, prior, tail._replace(chance=0.4))
    assert ks(ends, cdf_of(x, log_f)) < ALARM


GIVEN, K = WeightPrior(0.5, 0.02, 1.5), 5


def likelihood():
    """Five rows, two of them alike, and what they should add up to: one law, whatever the seeds."""
    rows = np.random.default_rng(7).standard_normal((K, 4))
    rows[1] = rows[0] + 0.3 * rows[1]
    return rows, rows[0] * 2.0, np.full(4, 2.0)


def scan_ends(scan, random, n):
    """Starts at draws of the posterior, ends after a scan, other draws, and how many weights moved.

    It also returns the share of weights that are faint at the starts.
    """
    rows, target, W = likelihood()
    prior = steps.Prior.of(GIVEN, positive=True)
    x = np.abs(GIVEN.scale * random.standard_t(1.0, (100 * n, K)))
    log_l = -((target - x @ rows) ** 2).sum(-1) - 0.5 * (x**2).sum(-1) / GIVEN.slab**2
    x = x[np.log(random.random(len(x))) < log_l]  # exact draws: the likelihood is at most 1
    x = x[: 2 * n]
    ends, others = x[: len(x) // 2].copy(), x[len(x) // 2 :]
    squares, faint = (rows**2) @ W, []
    for end in ends:
        score = W * (target - end @ rows)
        faint += [
            is_faint(v, p, prior)
            for v, p in zip(rows @ score + squares * end, squares + GIVEN.slab**-2.0, strict=True)
        ]
        scan(random, steps.Group(rows, np.ones(K), W, prior, score, end))
        np.testing.assert_allclose(score, W * (target - end @ rows), atol=1e-8)
    return ends, others, (ends != x[: len(ends)]).mean(), np.mean(faint)


TAIL = ard_scans.Tail(float(stats.t.isf(0.1, 1.0, scale=GIVEN.scale)), 0.2)


def crossing(random, group):
    for _ in range(6):
        ard_scans.crossing_scan(random, group, TAIL)


def repeated(random, group):
    pairs = steps.Pairs(0.3, np.array([[1], [0], [-1], [-1], [-1]]), np.array([1, 1, 0, 0, 0]))
    ard_scans.scans(random, 1, 3, 4, group, TAIL, pairs)


def by_its_own_size(random, group):
    """Wrong: a weight is passed over if it is itself small."""
    for _ in range(6):
        for k in np.flatnonzero(group.x > 0.05):
            one = {name: getattr(group, name)[k : k + 1] for name in ("rows", "slope", "x")}
            steps.weight_scan(random, group._replace(**one))


@pytest.mark.statistical
@pytest.mark.parametrize("scan", [crossing, repeated])
def test_scans_leave_the_law_of_their_weights(scan):
    ends, others, moved, faint = scan_ends(scan, rng(), 4000)
    assert len(ends) > 2000
    assert moved > 0.1
    assert 0.3 < faint < 0.9
    assert pair_p(ends, others) > ALARM


@pytest.mark.statistical
def test_what_is_passed_over_must_not_depend_on_the_weight():
    """Negative control."""
    ends, others, _, _ = scan_ends(by_its_own_size, rng(), 4000)
    assert pair_p(ends, others) < ALARM


# --- M, and the decision values, within a sweep ---------------------------------------------------


@pytest.mark.parametrize("B", [3, None])
def test_products_follow_the_features_that_moved(B):
    sampler, random = Sampler(made(D=12, B=B)), rng()
    state = sampler.start(random, 0)
    before = state.theta.copy()
    Mt = sampler.products(state)
    np.testing.assert_allclose(Mt, sampler.Zt.T @ (before[:, None] * sampler.Xt), rtol=1e-10)
    for moved in ([], [4], [0, 7], range(12)):
        state.theta = before.copy()
        state.theta[list(moved)] *= 1.7
        found = sampler.renewed(Mt, before, state)
        np.testing.assert_allclose(found, sampler.products(state), rtol=1e-10, atol=1e-12)


class StaleProducts(Sampler):
    """M of the first round in all rounds."""

    def renewed(self, Mt, before, state):
        return Mt


def test_decision_values_are_those_of_the_state_after_every_round():
    """And with an M that is no longer that of the state, they are not."""
    for kind in (Sampler, StaleProducts):
        problem = made("rfvm-explicit", N=20, D=30, B=None)
        sampler, random = with_counts(kind, rounds=5)(problem), rng()
        state = sampler.start(random, 0)
        worst = 0.0
        for _ in range(5):
            sampler.sweep(state, random)
            eta = problem.decision(sampler.point(state))
            worst = max(worst, np.abs(state.eta - eta).max() / np.abs(eta).max())
        assert (worst < 1e-9) == (kind is Sampler)
