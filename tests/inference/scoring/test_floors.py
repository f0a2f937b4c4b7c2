"""The noise floor is the score of a second run: its quantiles, and where they come from."""

import numpy as np
import pytest
from scipy import stats

from ardvark.inference.scoring import draws as of_draws
from ardvark.inference.scoring.distances import beside
from ardvark.inference.scoring.draws import (
    CONTINUOUS,
    MASK,
    RANKING,
    Draws,
    ReferenceDraws,
    effective,
)
from ardvark.inference.scoring.floors import LEVEL
from ardvark.inference.scoring.statistics import STATISTICS, sd_ratio, two_sample
from ardvark.inference.scoring.statistics.error import MEAN
from tests.support import ALARM, rng, seed, t_limit, z_limit


def scores(found, exact):
    """Return every distance of draws that applies, by statistic."""
    return {d.statistic: d for d in beside(found, exact)}


def autoregressive(generator, shape, r):
    """Return stationary chains (chain, draw, K) of mean 0, variance 1 and lag-1 correlation r."""
    x = generator.normal(size=shape)
    for t in range(1, shape[1]):
        x[:, t] = r * x[:, t - 1] + np.sqrt(1 - r * r) * x[:, t]
    return x


# --- what it is made of ---------------------------------------------------------------------------


def test_blocks_lie_in_one_chain_and_are_equal():
    draws = rng(1).normal(size=(4, 1003, 2))
    exact = ReferenceDraws(draws)
    chains = [(b.start // 1003, (b.stop - 1) // 1003) for b in exact.blocks]
    assert all(first == last for first, last in chains)
    assert len({b.stop - b.start for b in exact.blocks}) == 1
    assert len(exact.blocks) == of_draws.MOST_BLOCKS
    assert all(a.stop <= b.start for a, b in zip(exact.blocks, exact.blocks[1:], strict=False))


@pytest.mark.parametrize("value", [0.1, 0.05590169943749474, 1e-12, -3.3e7])
def test_a_constant_is_the_same_constant_in_any_number_of_draws(value):
    """Sums of it are rounded, by more draws differently: that is no spread and no distance."""
    other, exact = rng(1).normal(size=(4, 2000, 2)), rng(2).normal(size=(4, 3000, 2))
    other[..., 1] = exact[..., 1] = value
    assert np.ptp([x[..., 1].ravel().mean() for x in (other, exact)]) <= 1e-9 * abs(value)
    found, reference = Draws(other, independent=True), ReferenceDraws(exact)
    assert (found.mean[1], found.sd[1]) == (reference.mean[1], reference.sd[1]) == (value, 0.0)
    alone = scores(Draws(other[..., :1], independent=True), ReferenceDraws(exact[..., :1]))
    beside = scores(found, reference)
    assert beside["error"].value == pytest.approx(alone["error"].value)
    assert beside["sd_ratio"].value == pytest.approx(alone["sd_ratio"].value)


def test_chains_that_disagree_are_blocks_as_they_are():
    """One chain elsewhere: few effective draws, so its disagreement is a part of the floor."""
    draws = rng(2).normal(size=(4, 500, 2))
    agreeing = scores(Draws(draws, independent=True), ReferenceDraws(draws.copy()))
    draws[0] += 5.0
    exact = ReferenceDraws(draws)
    assert [b.stop - b.start for b in exact.blocks] == [500] * 4
    found = scores(Draws(draws, independent=False), exact)
    assert found["error"].floor > 5 * agreeing["error"].floor


def test_four_blocks_are_enough_for_the_classifier():
    """One component in which a chain is elsewhere makes each chain a block, two in a half."""
    draws = rng(2).normal(size=(4, 500, 8))
    draws[0, :, 0] += 5.0
    exact = ReferenceDraws(draws)
    assert len(exact.blocks) == 4
    assert np.isfinite(scores(Draws(draws, independent=False), exact)["two_sample"].floor)


@pytest.mark.statistical
@pytest.mark.parametrize("independent", [True, False])
def test_the_floor_of_one_mean_is_its_known_quantile(independent):
    """Of M and E draws: |N(0, 1 / M + 1 / E)|, of which 1.96 sd is the 95 % quantile.

    For chains E is S (1 - r) / (1 + r), r the lag-1 correlation. The blocks know a variance to
    (2 / B)^(1/2), 400 repeats a quantile to 0.05 (their density there is 0.117 a sd); a block
    mean of 20 effective draws has 1 / 40 less variance than E says, Student's t some more.
    """
    r, S = (0.0, 4000) if independent else (0.5, 12_000)
    exact = ReferenceDraws(autoregressive(rng(3), (4, S // 4, 1), r), independent=independent)
    M, E = 500, S * (1 - r) / (1 + r)
    found = rng(4).normal(size=(2, M // 2, 1))
    known = stats.norm.isf((1 - LEVEL) / 2) * np.sqrt(1 / M + 1 / E)
    floor = scores(Draws(found, independent=True), exact)["error"].floor
    B = len(exact.blocks)
    at = np.sqrt(LEVEL * (1 - LEVEL) / of_draws.REPEATS) / 0.117 / 1.96
    room = z_limit(2) * np.hypot(np.sqrt(0.5 / B), at) + 0.05
    assert abs(np.log(floor / known)) < room


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["sd_ratio", "sd_ratio_worst"])
def test_the_floor_of_one_sd_is_its_known_quantile(name):
    """The log sd of n normal draws has variance 1 / (2 n): of M and E, |N(0, 1 / 2M + 1 / 2E)|.

    The blocks' variance V, known to (2 / B)^(1/2), enters as (V + S / M)^(1/2), S draws of the
    reference; 400 repeats know a quantile as above, and Student's t has some more.
    """
    E, M = 4000, 500
    exact = ReferenceDraws(rng(14).normal(size=(4, E // 4, 1)), independent=True)
    found = Draws(rng(15).normal(size=(4, M // 4, 1)), independent=True)
    statistic = STATISTICS[name]
    known = stats.norm.isf((1 - LEVEL) / 2) * np.sqrt(0.5 / M + 0.5 / E)
    at = np.sqrt(LEVEL * (1 - LEVEL) / of_draws.REPEATS) / 0.117 / 1.96
    share = 1.0 / (1.0 + E / M)  # of the blocks' variance in that of the difference
    room = z_limit(2) * np.hypot(share * np.sqrt(0.5 / len(exact.blocks)), at) + 0.05
    assert abs(np.log(statistic.distance(found, exact).floor / known)) < room


def test_the_floor_follows_the_methods_number_of_draws():
    """A quarter of E, by the rule r = (1 + E / M)^(1/2) / 2; a point has no noise of its own."""
    draws = rng(5).normal(size=(4, 1000, 3))
    exact = ReferenceDraws(draws, independent=True)
    many = scores(Draws(draws, independent=True), exact)
    few = scores(Draws(draws[:, :250], independent=True), exact)
    point = scores(Draws(draws[:1, :1], independent=True), exact)
    own = MEAN.known(exact)[1]
    ratio = np.sqrt((1 + own / 1000) / (1 + own / 4000))
    assert few["error"].floor == pytest.approx(ratio * many["error"].floor)
    assert point["error"].floor == pytest.approx(many["error"].floor / np.sqrt(1 + own / 4000))
    assert np.isnan(point["sd_ratio_worst"].value)
    assert np.isnan(point["two_sample"].value)
    assert not point["sd_ratio_worst"].inside


def test_the_noise_of_the_worst_component_is_that_of_each_in_the_same_halves():
    """Three components of one law: in each repeat the one that is farthest counts."""
    draws = rng(16).normal(size=(4, 250, 3))
    each = [sd_ratio.halves(ReferenceDraws(draws[..., [k]], independent=True)) for k in range(3)]
    assert len({*np.argmax(each, axis=0)}) == 3
    np.testing.assert_allclose(
        sd_ratio.halves(ReferenceDraws(draws, independent=True)), np.max(each, axis=0)
    )


@pytest.mark.statistical
def test_the_floor_asks_whether_the_methods_draws_are_independent():
    """Independent draws count by the reference's E of the mean itself, a chain's by their ESS.

    Components of lag-1 correlations 0, 0, 0.9. E pools their variances: the mean of a chain has
    (1 + r) / (1 - r) = 1, 1, 19 times the variance of independent draws, so E = 3 S / 21. The ESS
    is the median's, S. Of M = S / 10 draws the floor is (1 + E / M)^(1/2) or (1 + S / M)^(1/2)
    times that of many: 1.56 or 3.32. Blocks know E to (2 / B)^(1/2), and lack 5 % of the
    correlation.
    """
    generator, S = rng(10), 40_000
    parts = [autoregressive(generator, (4, S // 4, 1), r) for r in (0.0, 0.0, 0.9)]
    exact = ReferenceDraws(np.concatenate(parts, axis=-1))
    found, M = generator.normal(size=(4, 100, 3)), S / 10

    def ratio(independent):
        sizes = (Draws(found, independent, known=(m, m)) for m in (M, 1e12))
        few, many = (scores(draws, exact)["error"].floor for draws in sizes)
        return few / many

    room = z_limit() * np.sqrt(2.0 / len(exact.blocks)) + 0.05
    share = (10 / 7) / (1 + 10 / 7) / 2  # d log floor / d log E
    assert abs(np.log(ratio(True) / np.sqrt(1 + 10 / 7))) < share * room
    assert ratio(False) == pytest.approx(np.sqrt(1 + exact.effective[0] / M))
    assert exact.effective[0] > 0.7 * S  # ten times the sd of an ESS of so many draws


@pytest.mark.statistical
def test_the_floor_of_a_rank_correlation_of_noise_is_its_known_quantile():
    """All means are equal, so the order is noise, and a second run has another random order.

    The deviation of a second run is 1 - r of two random orders. Halves of one set of draws vary
    less than that: by the factor 2^(1/2), 0.27 from median to quantile instead of 0.38. The law of
    r is known from 20 000 orders, the floor of 30 references from the spread among them.
    """
    K, runs, generator = 20, 30, rng(11)
    orders = generator.permuted(np.tile(np.arange(K), (20_000, 1)), axis=1)
    r = 1.0 - 6.0 * np.square(orders - np.arange(K)).sum(axis=1) / (K * (K * K - 1))
    known = np.quantile(1.0 - r, LEVEL) - np.median(1.0 - r)
    widths = []
    for run in range(runs):
        draws = generator.normal(size=(2, 4, 500, K))
        exact = ReferenceDraws(draws[0], independent=True, kinds=RANKING, seed=run)
        score = scores(Draws(draws[1], independent=True), exact)["spearman"]
        widths.append(score.floor - score.typical)
    room = t_limit(runs - 1) * np.std(widths, ddof=1) / np.sqrt(runs) + 0.02
    assert abs(np.mean(widths) - known) < room


@pytest.mark.statistical
@pytest.mark.parametrize("r", [0.0, 0.5])
@pytest.mark.parametrize("name", ["coverage_50", "coverage_90"])
def test_a_right_fit_has_the_coverage_that_is_expected_of_it(name, r):
    """An interval whose ends are quantiles of M draws covers (M - 1) / (M + 1) of its share.

    Intervals of 100 draws, in 2000 components: 0.49 and 0.88 instead of 0.5 and 0.9. For chains of
    lag-1 correlation 1/2, M is the effective number of draws for the share: by simulation the
    shortfall is 1.8 and 1.5 % of it, 2 / M 1.3 and 1.4 %, of 200 draws.
    """
    K, draws = 2000, 200 if r else 100
    exact = ReferenceDraws(autoregressive(rng(12), (4, 500, K), r), independent=r == 0.0)
    found = Draws(autoregressive(rng(13), (4, draws // 4, K), r), independent=r == 0.0)
    statistic = STATISTICS[name]
    within, expected = statistic.compute(found, exact), statistic.expected(found, exact)
    if r == 0.0:
        np.testing.assert_allclose(expected, statistic.perfect * 99 / 101, rtol=1e-12)
    room = z_limit(4) * within.std() / np.sqrt(K) + 0.004 * (r > 0.0)
    assert abs(within.mean() - expected.mean()) < room


@pytest.mark.statistical
@pytest.mark.parametrize(("M", "E"), [(20, 4000), (50, 4000), (100, 1000), (400, 1000)])
def test_the_floor_of_the_worst_share_is_its_known_quantile(M, E):
    """The mass between two of M draws is a Beta, of which E draws count a binomial share.

    The lowest of 30 such shares is farther off than the highest. The law of the largest deviation
    is simulated without any draws of a posterior. Floors of 10 references stray by 3 % each, and
    Student's t makes them up to 5 % too high. Without the skewness they are 33 % too low for 20
    draws and 21 % for 50.
    """
    K, share, runs, generator = 30, 0.9, 10, rng(17)
    gaps = share * (M - 1)
    mass = generator.beta(gaps, M + 1 - gaps, size=(20_000, K))
    off = generator.binomial(E, mass) / E - share * (M - 1) / (M + 1)
    known, logs = np.quantile(np.abs(off).max(axis=1), LEVEL), []
    for run in range(runs):
        exact = ReferenceDraws(generator.normal(size=(4, E // 4, K)), independent=True, seed=run)
        found = Draws(generator.normal(size=(2, M // 2, K)), independent=True)
        logs.append(np.log(STATISTICS["coverage_90"].distance(found, exact).floor / known))
    assert abs(np.mean(logs)) < z_limit(4) * 0.03 / np.sqrt(runs) + 0.06


def test_the_classifier_gets_half_of_the_reference_at_most(monkeypatch):
    sizes = []
    right = two_sample.accuracy

    def accuracy(found, exact):
        sizes.append((len(found), len(exact)))
        return right(found, exact)

    monkeypatch.setattr(two_sample, "accuracy", accuracy)
    draws = rng(6).normal(size=(4, 250, 2))
    exact = ReferenceDraws(draws, independent=True)
    scores(Draws(draws, independent=True), exact)
    assert sizes == [(500, 500)] * (1 + two_sample.CLASSIFIED)
    scores(Draws(draws[:, :200], independent=True), exact)  # 800 draws: the same floor again
    assert len(sizes) == 2 + two_sample.CLASSIFIED
    scores(Draws(draws[:, :50], independent=True), exact)
    assert sizes[-1] == (200, 200)


def test_a_reference_without_two_parts_has_no_floor():
    draws = autoregressive(rng(7), (1, 300, 2), 0.99)
    score = scores(Draws(draws, independent=False), ReferenceDraws(draws))["error"]
    assert np.isnan(score.floor)
    assert not score.inside


def test_the_worst_bit_of_a_mask_counts():
    """One of four inclusion probabilities is off by a quarter, the others by nothing.

    It is not in sds, and spreads are not looked at.
    """
    exact = np.tile([[[0.0]], [[1.0]], [[0.0]], [[1.0]]], (1, 100, 4))
    found = exact.copy()
    found[1, :, 2] = 0.0
    score = scores(Draws(found, True), ReferenceDraws(exact, True, kinds=MASK))
    assert set(score) == {"inclusion", "two_sample"}
    assert score["inclusion"].value == pytest.approx(0.25)


def test_effective_draws():
    draws = rng(8).normal(size=(4, 250, 60))
    assert effective(draws, independent=True) == (1000.0, 1000.0)
    assert effective(draws[:1, :1], independent=False) == (np.inf, np.inf)
    assert effective(np.zeros((4, 250, 2)), independent=False) == (4.0, 4.0)
    middle, least = effective(draws, independent=False)
    assert least <= middle <= 1000.0
    stuck = autoregressive(rng(9), (4, 250, 3), 0.98)
    assert effective(stuck, independent=False)[0] < 100.0
    draws[..., -1] = stuck[..., 0]  # 25 components are looked at, the last one too
    assert effective(draws, independent=False)[1] < 100.0


# --- how often it covers a second run -------------------------------------------------------------

# of the reference's chains, their lag-1 correlation, the method's chains, theirs
SETTINGS = {
    "independent, few": ((4, 250, 5), 0.0, (4, 250, 5), 0.0),
    "chains, a second chain": ((4, 1000, 8), 0.6, (4, 1000, 8), 0.6),
    "chains, fewer independent": ((4, 1000, 8), 0.5, (4, 100, 8), 0.0),
}


def covered(runs, shape, r, method, again):
    """Return, by statistic, in how many second runs it is inside the floor, and below the median.

    Each with a reference of its own. Components have means of their own, so that they have ranks.
    """
    inside, below = {}, {}
    for run in range(runs):
        generator = np.random.default_rng([seed(1), run])
        mean = generator.normal(size=shape[2])
        kinds = CONTINUOUS | RANKING  # of the order of the means as they are
        exact = ReferenceDraws(mean + autoregressive(generator, shape, r), kinds=kinds, seed=run)
        found = mean + autoregressive(generator, method, again)
        second = scores(Draws(found, again == 0.0), exact)
        for name, score in second.items():
            inside[name] = inside.get(name, 0) + score.inside
            below[name] = below.get(name, 0) + (score.deviation <= score.typical)
    return inside, below


def check_coverage(runs, settings):
    """By the binomial law, with 0.92 for the floor: its quantile is estimated, from few blocks.

    The median is as near to its half as 0.42 to 0.58. Ranks and the classifier are whole numbers,
    and who leads is nearly always the same: their median covers more than half. Those and the floor
    of means of halves may be high.
    """
    inside, below = covered(runs, *settings)
    alarm = ALARM / (3 * len(inside) * len(SETTINGS))
    least = stats.binom.ppf(alarm, runs, LEVEL - 0.03)
    for name, count in inside.items():
        assert count >= least, name
        if name not in ("spearman", "captured", "two_sample"):
            assert stats.binom.ppf(alarm, runs, 0.42) <= below[name], name
            assert below[name] <= stats.binom.isf(alarm, runs, 0.58), name


@pytest.mark.statistical
@pytest.mark.parametrize("name", SETTINGS)
def test_floors_cover_a_second_run(name):
    check_coverage(20, SETTINGS[name])


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("name", SETTINGS)
def test_floors_cover_200_second_runs(name):
    check_coverage(200, SETTINGS[name])


@pytest.mark.statistical
def test_a_wrong_posterior_is_outside():
    """Half the sd, a shift of a quarter, permuted components: each by the column that looks there.

    1000 effective draws a side: the shift is 5.6 standard errors of a mean, and of 20 of those the
    largest is above the floor of about 3 unless all fall short, which has probability below 1e-20.
    """
    generator = rng(10)
    mean = np.arange(20.0) / 2
    exact = ReferenceDraws(mean + generator.normal(size=(4, 250, 20)), independent=True)
    narrow = scores(
        Draws(mean + 0.5 * generator.normal(size=(4, 250, 20)), independent=True), exact
    )
    for name in ("sd_ratio", "sd_ratio_worst", "coverage_50", "coverage_90", "two_sample"):
        assert not narrow[name].inside
        assert narrow[name].deviation > 2 * narrow[name].floor
    shifted = mean + 0.25 + generator.normal(size=(4, 250, 20))
    assert not scores(Draws(shifted, independent=True), exact)["error"].inside
    order = generator.permutation(20)
    permuted = exact.draws[..., order]
    ranks = scores(Draws(permuted, True), ReferenceDraws(exact.draws, True, kinds=RANKING))
    assert set(ranks) == {"spearman", "captured"}
    assert not any(score.inside for score in ranks.values())
