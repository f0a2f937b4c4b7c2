"""Each distance on draws of two normal distributions, where its value is known."""

import numpy as np
import pytest
from scipy import stats

from ardvark.inference.scoring.draws import Draws, ReferenceDraws
from ardvark.inference.scoring.statistics import STATISTICS, ranking, two_sample
from tests.support import rng, z_limit

SIZES = (2, 20, 200)
N, M = 4000, 6000  # draws of the method, of the reference
MARGINAL = {name: s for name, s in STATISTICS.items() if s.of == "continuous"}
SHARES = {"coverage_50": 0.5, "coverage_90": 0.9}


def marginal(found, exact):
    """Return the components (K,) of every statistic of single components, by name."""
    return {n: s.compute(Draws(found), ReferenceDraws(exact)) for n, s in MARGINAL.items()}


def normal(generator, size, n, shift=0.0, scale=1.0):
    """Return independent draws (4, n / 4, size)."""
    return shift + scale * generator.normal(size=(4, n // 4, size))


# --- marginal distances ---------------------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("shift", "scale"), [(0.5, 1.0), (0.0, 0.5), (1.0, 2.0)])
def test_marginal_distances_of_two_normals(size, shift, scale):
    """Every component of every statistic, within limits that follow from its own law."""
    generator = rng(1)
    found = marginal(
        3.0 + 4.0 * normal(generator, size, N, shift, scale),
        3.0 + 4.0 * normal(generator, size, M),
    )
    z = z_limit(4 * size)
    error_sd = np.sqrt(scale**2 / N + 1 / M) + shift / np.sqrt(2 * M)
    assert np.abs(found["error"] - shift).max() < z * error_sd
    assert np.abs(np.log(found["sd_ratio"] / scale)).max() < 1.2 * z * np.sqrt(0.5 / N + 0.5 / M)

    for name, share in SHARES.items():
        q = stats.norm.isf(0.5 * (1.0 - share))
        ends = shift + scale * np.array([-q, q])
        known = np.diff(stats.norm.cdf(ends))[0]
        # of the share itself, and of the interval's two ends
        moved = stats.norm.pdf(ends).sum() * scale * np.sqrt(0.25 * (1 - share**2) / N)
        noise = np.sqrt(known * (1 - known) / M) + moved / stats.norm.pdf(q)
        assert np.abs(found[name] - known).max() < z * noise + 2.0 / N


@pytest.mark.parametrize("size", SIZES)
def test_coverage_is_the_share_of_the_posterior_in_the_fits_own_interval(size):
    """By the definition, component by component: draws (chain, draw, K) of any two laws."""
    found = rng(21).standard_t(3, size=(2, 301, size))
    exact = np.maximum(rng(22).normal(size=(3, 200, size)), 0.0)  # half of its draws are 0
    for name, share in SHARES.items():
        value = marginal(found, exact)[name]
        for k in range(size):
            own = sorted(found[..., k].ravel())
            low, high = (_quantile(own, p) for p in ((1 - share) / 2, (1 + share) / 2))
            inside = sum(low <= x <= high for x in exact[..., k].ravel())
            assert value[k] == pytest.approx(inside / 600, abs=1e-12)


def _quantile(own, p):
    """Return the quantile of sorted numbers, linear between the order statistics."""
    at = p * (len(own) - 1)
    below = int(at)
    return own[below] + (at - below) * (own[min(below + 1, len(own) - 1)] - own[below])


@pytest.mark.statistical
def test_an_overconfident_fit_has_a_small_coverage_and_a_wide_one_a_large():
    """A tenth of the sd, with the right mean: P(|Z| < 0.1645) = 0.131 of the posterior."""
    exact = normal(rng(23), 20, M)
    narrow, wide = (marginal(normal(rng(24), 20, N, scale=c), exact) for c in (0.1, 10.0))
    assert (narrow["coverage_50"] < 0.1).all()
    assert (narrow["coverage_90"] < 0.2).all()
    assert (wide["coverage_50"] > 0.99).all()
    assert (wide["coverage_90"] > 0.99).all()


def test_a_point_has_the_share_of_the_posterior_that_is_there():
    """A weight that a fit prunes in all draws, of which the posterior has 0 in one draw of four."""
    exact = np.where(np.arange(400) % 4 == 0, 0.0, 1.0 + np.arange(400)).reshape(4, 100, 1)
    for name in SHARES:
        assert marginal(np.zeros((2, 50, 1)), exact)[name] == 0.25
        assert marginal(np.full((2, 50, 1), 0.5), exact)[name] == 0.0


@pytest.mark.statistical
def test_of_shares_at_0_the_fit_has_to_be_right_about_the_rest():
    """Half of a weight's draws are 0, the others exponential: the closed interval holds 95 %.

    So a right fit scores 0.95, and its deviation is noise alone. With positive draws half as large
    the interval ends at log(10) / 2, below which lie all zeros and 1 - 10^(-1/2) of the others.
    """
    generator = rng(25)

    def draws(count, scale):
        on = generator.random((4, count // 4, 1)) < 0.5
        return np.where(on, scale * generator.exponential(size=(4, count // 4, 1)), 0.0)

    exact, worst = ReferenceDraws(draws(M, 1.0), independent=True), STATISTICS["coverage_90"]
    right, small = (worst.distance(Draws(draws(N, c), True), exact) for c in (1.0, 0.5))
    assert right.value == pytest.approx(0.95, abs=z_limit() * 0.22 * np.sqrt(1 / N + 1 / M) + 1 / N)
    assert right.deviation == pytest.approx(abs(right.value - 0.95 * (1 - 2 / N)), abs=1 / N)
    known = 0.5 * (1 - 10**-0.5) + 0.5
    noise = np.sqrt(known * (1 - known) / M) + 0.5 * 10**-0.5 * 0.5 * np.sqrt(9 / (0.5 * N))
    assert small.value == pytest.approx(known, abs=z_limit() * noise)
    assert small.deviation == pytest.approx(0.95 * (1 - 2 / N) - small.value, abs=1 / N)


@pytest.mark.statistical
def test_a_right_component_with_repeated_draws_does_not_hide_a_wrong_one():
    """Half of its draws are 0, so its interval has 95 %, as it should; the other's has 87 %.

    0.95 is farther from 0.9. Of 40 000 draws a share is known to 0.002.
    """
    generator, scale, count = rng(26), 0.92, 40_000

    def draws(scale):
        z = generator.normal(size=(4, count // 4, 2))
        return np.stack([np.maximum(z[..., 0], 0.0), scale * z[..., 1]], axis=-1)

    exact = ReferenceDraws(draws(1.0), independent=True, labels=("half", "narrow"))
    worst = STATISTICS["coverage_90"].distance(Draws(draws(scale), True), exact)
    assert worst.component == "narrow"
    known = 2 * stats.norm.cdf(scale * stats.norm.isf(0.05)) - 1
    assert worst.value == pytest.approx(known, abs=z_limit() * 0.0025)
    assert worst.deviation > worst.floor


def test_components_that_never_move():
    """Equal constants say nothing; another one is infinitely far; a spread, infinitely wide."""
    still, other, wide = np.zeros((1, 4, 1)), np.ones((1, 4, 1)), np.array([[[-1], [1], [2], [-2]]])
    found = marginal(np.concatenate([still, other, wide], -1), np.zeros((1, 4, 3)))
    np.testing.assert_array_equal(found["error"], [np.nan, np.inf, np.nan])
    assert MARGINAL["error"].reduce(found["error"]) == np.inf
    assert np.isnan(found["sd_ratio"][0])
    assert found["sd_ratio"][2] == np.inf
    for name in SHARES:  # all of the posterior is one point
        assert np.isnan(found[name]).all()
        assert np.isnan(MARGINAL[name].reduce(found[name]))


def test_a_single_draw_has_a_mean_and_nothing_else():
    exact = rng(6).normal(size=(2, 100, 3))
    found = marginal(np.full((1, 1, 3), 2.0), exact)
    mean, sd = exact.mean((0, 1)), exact.reshape(-1, 3).std(0, ddof=1)
    np.testing.assert_allclose(found["error"], (2.0 - mean) / sd)
    for name in ("sd_ratio", *SHARES):
        assert np.isnan(found[name]).all()
        assert np.isnan(MARGINAL[name].reduce(found[name]))


def test_one_number_of_many_components():
    x = np.array([0.5, np.nan, 4.0, 1.0])
    assert STATISTICS["error"].reduce(x) == STATISTICS["sd_ratio_worst"].reduce(x) == 4.0
    assert STATISTICS["sd_ratio"].reduce(x) == 1.0
    assert STATISTICS["coverage_50"].reduce(x) == pytest.approx(5.5 / 3)


def test_half_and_twice_the_sd_are_equally_far():
    assert STATISTICS["sd_ratio"].deviation(0.5) == pytest.approx(
        STATISTICS["sd_ratio"].deviation(2.0)
    )
    assert STATISTICS["sd_ratio"].deviation(0.0) == np.inf
    assert STATISTICS["coverage_90"].deviation(0.8) == pytest.approx(0.1)
    assert STATISTICS["two_sample"].deviation(0.45) == 0.0
    assert STATISTICS["spearman"].deviation(0.25) == 0.75


# --- ranks ----------------------------------------------------------------------------------------


def test_the_rank_correlation_is_scipys_with_ties():
    generator = rng(7)
    a, b = np.round(generator.normal(size=(2, 40)), 1)
    assert ranking.spearman(a, b) == pytest.approx(stats.spearmanr(a, b).statistic)
    assert ranking.spearman(-(b**3), b) == pytest.approx(-1.0)
    many = ranking.spearman(np.stack([a, b]), np.stack([b, b]))
    assert many[1] == pytest.approx(1.0)
    assert np.isnan(ranking.spearman(np.ones(4), b[:4]))


@pytest.mark.parametrize(("size", "k"), [(1, 1), (2, 1), (8, 4), (20, 10), (200, 10)])
def test_ten_components_lead_or_half_of_them(size, k):
    assert ranking.leading(size) == k


# --- the joint ------------------------------------------------------------------------------------


def coin_limit(n, comparisons=1):
    """How far the accuracy on 2 n draws lies from its expectation.

    The folds' classifiers share draws: twice the variance of as many coins.
    """
    return z_limit(comparisons) * np.sqrt(2.0) * 0.5 / np.sqrt(2 * n)


@pytest.mark.statistical
@pytest.mark.parametrize("size", SIZES)
def test_the_classifier_on_a_shift(size):
    """The best accuracy is Phi(d / 2), d the distance of the means in the components it sees.

    Below it by what p estimated coefficients cost a discriminant of 2 n training draws (Raudys):
    Phi(d^2 / 2 / sqrt(d^2 + 4 p / (2 n)) sqrt(1 - p / (2 n))).
    """
    n, generator = 1000, rng(8)
    seen = min(size, two_sample.COMPONENTS)
    d, p, train = 1.5, 3 * seen, 1600
    shift = d / np.sqrt(seen)
    found, exact = generator.normal(shift, 1.0, (n, size)), generator.normal(size=(n, size))
    value = two_sample.accuracy(found, exact)
    best = stats.norm.cdf(d / 2)
    least = stats.norm.cdf(0.5 * d**2 / np.sqrt(d**2 + 4 * p / train) * np.sqrt(1 - p / train))
    assert least - coin_limit(n, 3) < value < best + coin_limit(n, 3)


@pytest.mark.statistical
@pytest.mark.parametrize("size", SIZES)
def test_the_classifier_on_half_the_sd(size):
    """Sums of squares, chi-squared and a quarter of it, cut in the middle between their means."""
    n, generator = 1000, rng(9)
    seen = min(size, two_sample.COMPONENTS)
    found, exact = 0.5 * generator.normal(size=(n, size)), generator.normal(size=(n, size))
    cut = 0.5 * (seen + 0.25 * seen)
    known = 0.5 * (stats.chi2.sf(cut, seen) + stats.chi2.cdf(4 * cut, seen))
    value = two_sample.accuracy(found, exact)
    assert abs(value - known) < coin_limit(n, 3) + 0.02 * (3 * seen > 50)  # its coefficients


@pytest.mark.statistical
def test_the_classifier_sees_a_correlation_that_no_marginal_shows():
    """A mean field with the right marginals: accuracies of 0.72 to 0.75 over twelve seeds.

    The control beside is the right correlation.
    """
    n, generator = 1000, rng(10)

    def draws(r):
        z = generator.normal(size=(n, 2))
        return np.column_stack([z[:, 0], r * z[:, 0] + np.sqrt(1 - r * r) * z[:, 1]])

    exact = draws(0.9)
    assert two_sample.accuracy(draws(0.0), exact) > 0.5 + coin_limit(n)
    assert abs(two_sample.accuracy(draws(0.9), exact) - 0.5) < coin_limit(n)


@pytest.mark.statistical
def test_two_sets_of_one_law_are_a_coin_to_the_classifier():
    """Trained on the held-out fold too it would have 0.586: 120 coefficients fit 2000 draws.

    The mean of eight pairs is known to eight times as many coins.
    """
    n, pairs, generator = 1000, 8, rng(13)
    sets = generator.normal(size=(pairs, 2, n, two_sample.COMPONENTS))
    mean = np.mean([two_sample.accuracy(*pair) for pair in sets])
    assert abs(mean - 0.5) < coin_limit(n) / np.sqrt(pairs)


def test_what_neighbours_share_is_not_seen_in_the_fold_that_is_held_out():
    """Each fifth of the draws has a direction of its own, along which the sides are apart.

    Contiguous folds: the others know nothing of the direction that counts, so both sides look
    alike. Their squares, and those of any component, are the same.
    """
    n, folds = 500, two_sample.FOLDS
    piece = np.repeat(np.arange(folds), n // folds)
    found = 3.0 * (piece[:, None] == np.arange(folds))
    assert two_sample.accuracy(found, -found) == 0.5
    order = rng(14).permutation(n)
    assert two_sample.accuracy(found[order], -found[order]) == 1.0


def test_what_the_classifier_cannot_judge():
    assert np.isnan(two_sample.accuracy(np.zeros((500, 3)), np.zeros((500, 3))))
    few = two_sample.FEWEST - 1
    assert np.isnan(two_sample.accuracy(rng(1).normal(size=(few, 2)), np.zeros((few, 2))))
    # no overlap, from a constant
    assert two_sample.accuracy(np.zeros((500, 1)), np.ones((500, 1))) == 1.0


def test_thinning_is_even():
    np.testing.assert_array_equal(two_sample.thinned(np.arange(10), 5), [1, 3, 5, 7, 9])
    np.testing.assert_array_equal(two_sample.thinned(np.arange(3), 3), np.arange(3))


# --- a second run is nearer than a wrong posterior ------------------------------------------------
