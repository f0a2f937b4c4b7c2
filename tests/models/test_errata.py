"""Misprints of the papers about their models that a number shows; `tests/test_errata.py` has more.

ERRATA.md lists all of them, with the tests.
"""

import re

import numpy as np
import pytest
from scipy import integrate, special, stats

import ardvark as av
from ardvark.models.parts.masks import log_mask_prior
from tests.support import rng


@pytest.mark.parametrize("v", [0.3, 4.0, 60.0])
def test_kappa_shrinks_and_is_no_variance(v):
    """PFCVM, section 3.3: E sigmoid(m + v^1/2 e) is about sigmoid(kappa m), kappa(v) in (0, 1)."""
    kappa = (1.0 + np.pi * v / 8.0) ** -0.5
    for m in (-3.0, 0.5, 2.0):
        exact = integrate.quad(
            lambda e, m=m: special.expit(m + v**0.5 * e) * stats.norm.pdf(e), -12, 12, limit=200
        )[0]
        assert special.expit(kappa * m) == pytest.approx(exact, abs=0.0177)
    # a variance would grow with v, and would be phi' Sigma phi itself
    assert (1.0 + np.pi * (v + 1.0) / 8.0) ** -0.5 < kappa < 1.0
    assert kappa != pytest.approx(v, rel=0.1)


def test_accession_numbers_start_with_letters():
    """PFCVM, Table 4: GenBank has a letter and 5 digits, or 2 letters and 6 digits."""
    form = r"[A-Z]\d{5}|[A-Z]{2}\d{6}"
    assert re.fullmatch(form, "H08393")
    assert not re.fullmatch(form, "0H8393")


def test_a_label_given_the_output_is_a_distribution_and_not_the_reverse():
    """FS-SKLR (9), (10): p(t | y) sums to 1 over t; as a density of y it has no integral."""
    y = np.linspace(-30.0, 30.0, 6001)
    p = np.array([special.expit(-y), special.expit(y)])  # t = 0, 1
    np.testing.assert_allclose(p.sum(axis=0), 1.0, rtol=1e-12)
    inner = np.abs(y) <= 15.0
    half, whole = np.trapezoid(p[1][inner], y[inner]), np.trapezoid(p[1], y)
    assert whole == pytest.approx(2.0 * half, rel=1e-3)  # grows like the range


def test_xi_is_a_precision():
    """FS-SKLR, after (15): (11) has the covariance I / xi, and xi is called a variance."""
    random, xi = rng(0), 4.0
    X, y = random.standard_normal((10, 3)), np.arange(10) % 2
    problem = av.problem("fsklr", (X, y), xi=xi)
    point = problem.simulate(rng(1)) | {"z": np.zeros(10, dtype=np.int64)}
    far = point | {"alpha": np.full(10, 0.7)}  # no sample is on: the prior of alpha alone
    near = point | {"alpha": np.zeros(10)}
    gap = float(problem.log_joint(far) - problem.log_joint(near))
    assert gap == pytest.approx(-0.5 * xi * 10 * 0.7**2, rel=1e-10)
    assert gap != pytest.approx(-0.5 / xi * 10 * 0.7**2, rel=0.5)


def test_the_number_of_ones_is_nearly_poisson_with_a_probability_for_each_bit_alone():
    """FS-SKLR, after (22): with (12) to (15) it is Binomial(D, a / (a + D)), so nearly Poisson(a).

    (21), (22) have one probability Beta(a, 1) for all bits: at a = 1 all counts are equal.
    """
    D, a = 7129, 20.0
    S = np.arange(400)
    gap = stats.binom.pmf(S, D, a / (a + D)) - stats.poisson.pmf(S, a)
    assert 0.5 * np.abs(gap).sum() == pytest.approx(0.005, abs=1e-4)
    assert stats.poisson.sf(399, a) < 1e-300
    D, S = 8, np.arange(9)

    def law(a):
        def of(s):
            return integrate.quad(
                lambda p: stats.binom.pmf(s, D, p) * stats.beta.pdf(p, a, 1.0), 0, 1
            )[0]

        return np.array([of(s) for s in S])

    np.testing.assert_allclose(law(1.0), 1.0 / 9.0, rtol=1e-7)
    for a in (1.0, 2.0):
        # (21): a C(D, S) Gamma(S + a) Gamma(D - S + 1) / Gamma(D + a + 1)
        log_p = (
            special.gammaln(S + a) + special.gammaln(D - S + 1) - special.gammaln(D + a + 1)
            + np.log(special.comb(D, S))
        )  # fmt: skip
        np.testing.assert_allclose(law(a), a * np.exp(log_p), rtol=1e-6)
        assert not np.allclose(law(a), stats.poisson.pmf(S, a), atol=0.05)


@pytest.mark.parametrize("a", [0.5, 1.0, 2.0, 20.0])
def test_the_printed_prior_of_a_mask_favours_ones_for_every_a_above_1(a):
    """FS-SKLR (21), (22) as the score of a mask: a bit's odds with S others on, (S + a)/(S + 1)."""
    n = 166
    S = np.arange(n)
    masks = np.tri(n + 1, n, -1, dtype=int)  # with 0 to n bits on

    def printed(S):
        """ln of C(n, S) Gamma(S + a) Gamma(n - S + 1), up to a constant."""
        return np.log(special.binom(n, S)) + special.gammaln(S + a) + special.gammaln(n - S + 1)

    np.testing.assert_allclose(np.diff(printed(np.arange(n + 1))), np.log((S + a) / (S + 1)),
                               atol=1e-10)  # fmt: skip
    ours = log_mask_prior(masks, a, "printed")
    np.testing.assert_allclose(np.diff(ours), np.log((S + a) / (S + 1)), atol=1e-10)
    assert (np.sign(np.diff(ours).round(12)) == np.sign(a - 1.0)).all()
    if a == 20.0:
        assert printed(166) - printed(20) == pytest.approx(33.9, abs=0.05)


def test_the_released_priors_are_the_point_0():
    """RFVM's code: Gamma(1e-12, rate 1e-14), of mean 100, is below the least double number.

    The same of tau's Gamma(1e-14, 1e-14). Both are proper, and no likelihood of labels exceeds 1:
    the evidence is finite and the posterior exists. But no draw shows it.
    """
    least = np.log(np.finfo(float).tiny)
    for shape, rate in ((1e-12, 1e-14), (1e-14, 1e-14)):
        # P(x < e^l) = (rate e^l)^shape / Gamma(1 + shape) for so small a shape
        log_below = shape * (np.log(rate) + least) - special.gammaln(1.0 + shape)
        assert -1e-9 < log_below < 0.0
        assert special.gammainc(shape, 1e6) == pytest.approx(1.0, abs=1e-12)  # rate x = 1e6: proper
        # the density of ln x is flat over all doubles: no scale is told from another
        logs = np.array([least, 0.0])
        log_density = shape * logs - rate * np.exp(logs)
        assert np.ptp(log_density) < 1e-9
    assert (rng(0).gamma(1e-12, 1e14, size=1000) == 0.0).all()
