"""What the steps of the horseshoe are made of, beside its definition or dense linear algebra."""

import itertools

import numpy as np
import pytest
from scipy import stats

from ardvark.inference.samplers.gibbs import horseshoe_steps as steps
from ardvark.inference.samplers.gibbs.ard_steps import Pairs, partner_chance
from ardvark.inference.samplers.gibbs.horseshoe_steps import Scales
from ardvark.inference.samplers.gibbs.partners import correlated
from tests.support import ALARM, rng, z_limit

CASES = {  # linear, precision, scales: faint, a clear slab, both modes, beyond the slab, a flat one
    "faint": (0.8, 2.0, Scales(0.05, 4.0)),
    "slab": (30.0, 9.0, Scales(0.01, 4.0)),
    "both": (9.5, 9.0, Scales(0.003, 4.0)),
    "bound": (60.0, 9.0, Scales(0.5, 1.0)),
    "wide": (3.0, 1.0, Scales(5.0, 2.0)),
}
each_case = pytest.mark.parametrize("case", CASES)


def v_of(local, scales):
    """The variance of a weight, from the definition of the prior."""
    return 1.0 / ((scales.tau * local) ** -2.0 + 1.0 / scales.c2)


def local_density(case):
    """Return the grid of ln lambda, and the probability of each point, from the definition."""
    linear, precision, scales = CASES[case]
    at = np.linspace(-14.0, 16.0, 6001)
    v = v_of(np.exp(at), scales)
    log_p = stats.halfcauchy.logpdf(np.exp(at)) + at
    log_p += -0.5 * np.log1p(v * precision) + 0.5 * linear**2 * v / (1.0 + v * precision)
    p = np.exp(log_p - log_p.max())
    return at, p / p.sum()


def bins(case):
    """Return cuts of ln lambda and the probabilities of the parts between, each above 2 %."""
    at, p = local_density(case)
    cumulated = np.cumsum(p)
    places = np.unique(np.searchsorted(cumulated, np.linspace(0.05, 0.95, 13)))
    cuts = at[places]
    return cuts, np.diff(np.concatenate([[0.0], cumulated[places], [1.0]]))


def moved(case, step, n=40_000):
    """Return the share of each part after one step from exact draws of lambda."""
    at, p = local_density(case)
    random, (linear, precision, scales) = rng(), CASES[case]
    start = np.exp(random.choice(at, size=n, p=p))
    end = [step(random, linear, precision, scales, x) for x in start]
    return start, np.array(end)


def z_of(case, end):
    """Return the largest z of the shares of the parts of `bins`."""
    cuts, want = bins(case)
    found = np.bincount(np.searchsorted(cuts, np.log(end)), minlength=len(want)) / len(end)
    return np.abs((found - want) / np.sqrt(want * (1.0 - want) / len(end))).max(), len(want)


@pytest.mark.statistical
@each_case
def test_a_step_of_a_local_scale_leaves_its_conditional(case):
    start, end = moved(case, steps.draw_local)
    z, parts = z_of(case, end)
    assert z < z_limit(parts)
    assert (start != end).mean() > 0.25  # it moves


def test_a_proposal_is_a_mixture_of_two_half_cauchys():
    share, peak = 0.3, 50.0
    x = np.exp(np.linspace(-8.0, 12.0, 50))
    q = share * stats.halfcauchy.pdf(x) + (1.0 - share) * stats.halfcauchy.pdf(x, scale=peak)
    found = [steps.log_excess(a, share, peak) for a in x]
    np.testing.assert_allclose(found, np.log(q / stats.halfcauchy.pdf(x)), rtol=1e-9, atol=1e-12)


@pytest.mark.statistical
def test_a_half_cauchy_draw():
    random = rng()
    x = np.array([steps.draw_half_cauchy(random, 3.0) for _ in range(20_000)])
    assert stats.kstest(x, stats.halfcauchy(scale=3.0).cdf).pvalue > ALARM


# --- pairs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("v", [(0.3, 2.0), (1e-9, 4.0)], ids=str)
@pytest.mark.parametrize("cross", [0.0, 1.7, -2.9])
def test_two_weights_are_integrated_out(v, cross):
    """Beside dense algebra: m = det(I + V P)^-1/2 exp(L' (P + V^-1)^-1 L / 2)."""
    L, P = np.array([2.0, -1.2]), np.array([[3.0, cross], [cross, 4.0]])
    precision = P + np.diag(1.0 / np.array(v))
    want = 0.5 * L @ np.linalg.solve(precision, L)
    want -= 0.5 * np.linalg.slogdet(np.eye(2) + np.diag(v) @ P)[1]
    assert steps.log_pair_integral(*v, tuple(L), (3.0, 4.0), cross) == pytest.approx(want)


# --- what the scans keep --------------------------------------------------------------------------


def test_a_row_of_partners_says_both_chances():
    """Two chances taken from two rows would differ where one side's degree is used for both."""
    columns = rng(6).normal(size=(8, 12))
    star = Pairs(0.5, np.array([[1, 2], [0, -1], [0, -1], [-1, -1]]), np.array([2, 1, 1, 0]))
    for pairs in (star, Pairs(0.5, *correlated(columns, 2))):
        D = len(pairs.degree)
        for i, j in itertools.permutations(range(D), 2):
            expected = partner_chance(j, i, D, pairs), partner_chance(i, j, D, pairs)
            assert steps.partner_chances(i, j, D, pairs) == expected
