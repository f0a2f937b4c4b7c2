"""Scans of the weights: which ones are faint, and scans without moves in the spike.

A scan starts at exact draws of the law of one weight and ends at draws of it.
"""

import math

import numpy as np
import pytest
from scipy import stats

from ardvark.inference.samplers.gibbs import ard_scans
from ardvark.inference.samplers.gibbs import ard_steps as steps
from tests.inference.samplers.gibbs.test_ard_steps import (
    PRIORS,
    cdf_of,
    drawn_from,
    grid,
    ks,
)
from tests.support import ALARM, rng, z_limit

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
    """The ends of one scan of crossings from each x; each weight has a row of its own."""
    ends = np.array(x, dtype=float)
    for at in range(0, len(ends), 500):
        block = ends[at : at + 500]
        n = len(block)
        score, W = linear - precision * block, np.full(n, precision)
        group = steps.Group(np.eye(n), np.ones(n), W, prior, score, block)
        ard_scans.weight_scan(random, group, tail)
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
    moved = (starts != ends)[np.abs(starts) < tail.cut]  # at most all that are tried
    noise = (tail.chance * (1.0 - tail.chance) / len(moved)) ** 0.5
    assert 0.01 < moved.mean() < tail.chance + z_limit() * noise
    ends = crossed(random, starts, linear, precision, prior, tail._replace(chance=0.4))
    assert ks(ends, cdf_of(x, log_f)) < ALARM
