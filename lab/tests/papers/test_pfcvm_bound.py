"""Section 5 of the PFCVM paper: KL of truncated normals, and the bound of Theorem 1."""

import math

import numpy as np
import pytest
from scipy import integrate, special, stats

from ardvark.common.validate import InputError
from lab.papers.pfcvm_bound import kl_truncated, rademacher_bound, ramp_loss, vote
from tests.support import rng


def kl_by_quadrature(m, p, p0):
    """Integral of q ln(q / prior) over x >= 0, both densities written out."""
    log_Z = special.log_ndtr(m * math.sqrt(p))

    def log_q(x):
        return 0.5 * math.log(p / (2.0 * math.pi)) - 0.5 * p * (x - m) ** 2 - log_Z

    def integrand(x):
        log_prior = math.log(2.0) + 0.5 * math.log(p0 / (2.0 * math.pi)) - 0.5 * p0 * x * x
        return math.exp(log_q(x)) * (log_q(x) - log_prior)

    # q is a normal around m, or for m far below 0 nearly exponential with rate p abs(m)
    width = min(1.0 / math.sqrt(p), 1.0 / (p * abs(m))) if m < 0.0 else 1.0 / math.sqrt(p)
    low, high = max(0.0, m - 12.0 * width), max(0.0, m) + 45.0 * width
    return integrate.quad(
        integrand, low, high, points=[max(0.0, m)], epsabs=0.0, epsrel=1e-12, limit=500
    )[0]


def kl_with_the_root_lost(m, p, p0):
    """The paper's formula as printed: its last term has erfc(-m p / 2) for erfc(-m sqrt(p/2))."""
    Z0 = special.ndtr(m * math.sqrt(p))
    h = math.exp(-0.5 * p * m * m) / math.sqrt(2.0 * math.pi) / Z0
    start = 0.5 * (p0 / p - 1.0 + math.log(p / p0) + p0 * m * m)
    return start + 0.5 * m * h * (p + p0) / math.sqrt(p) - math.log(special.erfc(-m * p / 2.0))


@pytest.mark.parametrize("p", [0.2, 3.0, 400.0])
@pytest.mark.parametrize("p0", [0.5, 1.0, 50.0])
@pytest.mark.parametrize("t", [-60.0, -8.0, -3.01, -2.99, -0.7, 0.0, 0.4, 5.0, 30.0])
def test_kl_is_the_integral(t, p, p0):
    m = t / math.sqrt(p)
    np.testing.assert_allclose(
        kl_truncated(m, p, p0), kl_by_quadrature(m, p, p0), rtol=1e-9, atol=1e-11
    )


def test_the_printed_formula_is_wrong():
    m, p, p0 = -0.4, 3.0, 1.0
    right, printed = float(kl_truncated(m, p, p0)), kl_with_the_root_lost(m, p, p0)
    assert round(right, 4) == 0.4190
    assert round(printed, 4) == 0.6284
    assert abs(kl_by_quadrature(m, p, p0) - right) < 1e-10


def test_kl_is_zero_only_at_the_prior():
    assert abs(float(kl_truncated(0.0, 2.5, 2.5))) < 1e-15
    random = rng(0)
    m, p, p0 = (
        random.normal(0.0, 3.0, 500),
        random.gamma(1.0, 2.0, 500),
        random.gamma(1.0, 2.0, 500),
    )
    assert (kl_truncated(m, p, p0) > 0.0).all()


def test_kl_far_below_zero_is_that_of_an_exponential():
    """For t -> -inf, q is exponential with rate r = p abs(m): KL -> ln(r sqrt(pi / (2 p0))) - 1."""
    for m in (-1e4, -1e6, -1e9):
        p, p0 = 2.0, 3.0
        rate = p * abs(m)
        limit = math.log(rate) - 1.0 - 0.5 * math.log(2.0 * p0 / math.pi) + p0 / rate**2
        # corrections of q are of order 1 / t^2
        np.testing.assert_allclose(kl_truncated(m, p, p0), limit, rtol=1e-14, atol=2.0 / (p * m**2))


def test_kl_is_continuous_where_the_formula_changes():
    t = -3.0 + np.array([-1e-9, 1e-9])
    low, high = kl_truncated(t, 1.0, 0.7)
    assert abs(high - low) < 1e-8
    assert kl_truncated(np.zeros((2, 1)), np.ones(3), 1.0).shape == (2, 3)


@pytest.mark.parametrize("bad", [(np.nan, 1.0, 1.0), (0.0, 0.0, 1.0), (0.0, 1.0, -1.0)])
def test_kl_refuses_what_is_no_normal(bad):
    with pytest.raises(InputError, match="finite modes, and precisions"):
        kl_truncated(*bad)


def test_the_worked_example_of_theorem_1():
    bound = rademacher_bound(0.05, 5.0, 200, c=0.5, r=2.0, g=1.0, delta=0.05)
    assert round(bound, 2) == 1.44
    capacity = 2.0 / 0.5 * math.sqrt(2.0 * 10.0 / 200)
    confidence = math.sqrt((math.log(math.log2(20.0)) + 0.5 * math.log(20.0)) / 200)
    np.testing.assert_allclose(bound, 0.05 + capacity + confidence, rtol=1e-14)


def test_the_bound_tightens_with_data_and_loosens_with_kl():
    values = [rademacher_bound(0.1, 5.0, N, c=0.5) for N in (100, 1_000, 100_000, 10**9)]
    assert (np.diff(values) < 0.0).all()
    assert abs(values[-1] - 0.1) < 1e-3
    by_kl = [rademacher_bound(0.1, kl, 500, c=0.5) for kl in (0.0, 1.0, 2.0, 50.0)]
    assert by_kl[0] == by_kl[1] < by_kl[2] < by_kl[3]  # below g the KL no longer counts
    assert rademacher_bound(0.1, 5.0, 500, c=0.5, delta=0.01) > by_kl[2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"r": 1.0}, "r must be above 1"),
        ({"r": 0.5}, "r must be above 1"),
        ({"g": 0.0}, "g must be finite and above 0"),
        ({"c": 0.0}, "c must be finite and above 0"),
        ({"delta": 1.0}, "delta must be between 0 and 1"),
        ({"N": 0}, "N must be at least 1"),
        ({"kl": -1.0}, "kl must be finite and at least 0"),
        ({"loss": 1.5}, r"loss must be in \[0, 1\]"),
    ],
)
def test_the_bound_refuses_what_the_theorem_does_not_cover(change, message):
    with pytest.raises(InputError, match=message):
        rademacher_bound(**({"loss": 0.1, "kl": 5.0, "N": 200, "c": 0.5} | change))


def test_vote_and_ramp_loss():
    eta = np.array([[[1.0, -2.0, 3.0], [0.5, -1.0, -3.0]], [[9.0, -1.0, 1.0], [1.0, 2.0, -1.0]]])
    np.testing.assert_allclose(vote(eta), [1.0, -0.5, 0.0])
    np.testing.assert_allclose(vote(eta.reshape(4, 3)), vote(eta))
    margin = np.linspace(-1.0, 1.0, 9)
    loss = ramp_loss(margin, 0.5)
    assert (loss >= (margin <= 0.0)).all()  # above the 0-1 loss
    np.testing.assert_allclose(ramp_loss([-1.0, 0.0, 0.25, 0.5, 1.0], 0.5), [1, 1, 0.5, 0, 0])


# --- misprints ------------------------------------------------------------------------------------


def test_the_0_1_loss_has_its_sign_reversed():
    """l_c is above the loss of a margin at or below 0; not above the one printed, of >= 0."""
    margin = np.linspace(-1.0, 1.0, 21)
    assert (ramp_loss(margin, 0.5) >= (margin <= 0.0)).all()
    assert (ramp_loss(margin, 0.5) < (margin >= 0.0)).any()


def test_a_ratio_of_logs_is_no_kl():
    """Section 5.1's integrand q ln q / ln p in place of q ln(q / p)."""
    m, p, p0 = 0.6, 3.0, 1.0
    x = np.linspace(0.0, 8.0, 400_001)
    log_q = stats.norm.logpdf(x, m, p**-0.5) - special.log_ndtr(m * math.sqrt(p))
    log_p = math.log(2.0) + stats.norm.logpdf(x, 0.0, p0**-0.5)
    right = np.trapezoid(np.exp(log_q) * (log_q - log_p), x)
    assert right == pytest.approx(float(kl_truncated(m, p, p0)), abs=1e-8)
    assert abs(np.trapezoid(np.exp(log_q) * log_q / log_p, x) - right) > 0.1
