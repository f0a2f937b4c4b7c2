"""Rung 3: generic backends on targets whose answer is known, exact or wrong by a known amount."""

from types import SimpleNamespace

import arviz_stats
import numpy as np
import pymc as pm
import pytest
from scipy import stats

import ardvark as av
from ardvark.common.validate import InputError
from ardvark.inference.contract.backend import FitFailed
from ardvark.inference.generic import advi, laplace, nuts
from ardvark.inference.generic.curvature import columns
from tests.inference.batches import batch_mean, exactly, largest_t
from tests.inference.generic.targets import (
    Known,
    approximate,
    cliff,
    gamma,
    gaussian,
    known_gaussian,
)
from tests.support import rng, seed, z_limit

MEAN = np.array([1.0, -2.0, 0.5])
COVARIANCE = np.array([[1.0, 0.8, 0.3], [0.8, 2.0, 0.1], [0.3, 0.1, 0.5]])
SD = np.sqrt(np.diag(COVARIANCE))


@pytest.fixture(scope="module")
def correlated():
    """The Gaussian of these moments, which no test changes: compiled once."""
    return gaussian(MEAN, COVARIANCE)


def fit(model, method, **options):
    return av.fit(model, method, progressbar=False, **{"random_seed": seed(1), **options})


def assert_moments(draws, mean, variance):
    """Mean and variance of draws (chain, draw, K) are those given, by ten batches a chain."""
    moments = np.concatenate([draws, (draws - mean) ** 2], axis=-1)
    t, limit = largest_t(batch_mean(moments), exactly(np.append(mean, variance)))
    assert t < limit


# --- NUTS -----------------------------------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("sampler", "given"),
    [
        ("nutpie", {"tune": 500}),
        ("pymc", {"tune": 300, "max_treedepth": 2, "target_accept": 0.8, "cores": 1}),
    ],
)
def test_nuts_on_a_gaussian(sampler, given, correlated):
    tree = fit(correlated, "nuts", sampler=sampler, draws=1000, **given)
    size = arviz_stats.ess(tree["posterior"].to_dataset()[["x"]], method="bulk")["x"]
    assert (size >= 400).all()  # a batch is at least ten times the memory of the chain
    x = tree["posterior"]["x"].values
    assert_moments(x, MEAN, np.diag(COVARIANCE))
    found = tree["sample_stats"]
    names = {"diverging", "energy", "tree_depth", "n_steps", "step_size", "acceptance_rate", "lp"}
    assert set(found.data_vars) == names
    # lp is the log density of the unconstrained vector
    expected = stats.multivariate_normal.logpdf(x, MEAN, COVARIANCE)
    np.testing.assert_allclose(found["lp"], expected, atol=1e-8)
    if sampler == "nutpie":
        assert tree.attrs["target_accept"] == nuts.FIRST
        assert "diverged_at_first" not in tree.attrs
    else:  # a trajectory at this target has three steps and more
        assert found["tree_depth"].max() == 2


def test_max_treedepth_bounds_each_trajectory():
    """A ridge 1400 times as long as wide, which no diagonal metric sees: each limit is reached."""
    model = gaussian(np.zeros(2), np.array([[1.0, 1.0 - 1e-6], [1.0 - 1e-6, 1.0]]))
    for limit in (2, 4):
        tree = fit(model, "nuts", max_treedepth=limit, tune=20, draws=20, chains=2)
        assert tree["sample_stats"]["tree_depth"].max() == limit


@pytest.mark.statistical
def test_nuts_on_a_gamma():
    """With the Jacobian of its logarithm: without it, it is a Gamma of one less."""
    x = fit(gamma(), "nuts")["posterior"]["x"].values[..., None]
    assert_moments(x, 2.0, 1.0)


@pytest.mark.statistical
def test_divergences_are_answered_by_smaller_steps_and_said(caplog):
    model, given = cliff(), {"draws": 500}
    tree = fit(model, "nuts", tune=200, **given)
    assert tree.attrs["target_accept"] == nuts.SECOND
    count = tree.attrs["diverged_at_first"]
    assert f"{count} transitions diverged at target_accept 0.9" in caplog.text
    first = fit(model, "nuts", tune=200, target_accept=nuts.FIRST, **given)
    assert int(first["sample_stats"]["diverging"].sum()) == count
    assert "diverged_at_first" not in first.attrs
    assert first.attrs["status"] == "not_converged"
    assert "diverged" in first.attrs["reason"]
    again = fit(model, "nuts", tune=400, target_accept=nuts.SECOND, **given)
    np.testing.assert_array_equal(tree["posterior"]["x"], again["posterior"]["x"])


# --- ADVI -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["mean_field", "full_rank"])
def advi_fit(request, correlated):
    """A short fit of the Gaussian by one family, and the covariance that it has found."""
    tree = fit(correlated, "advi", family=request.param, max_iterations=400)
    assert tree.attrs["status"] == "not_converged"
    assert "still rising after 400 iterations (stage 1 of 4)" in tree.attrs["reason"]
    assert tree["fit"]["elbo"].sizes["block"] == 2
    factor = tree["fit"].get("factor")
    root = np.diag(tree["fit"]["sd"].values) if factor is None else factor.values
    return tree, root @ root.T


@pytest.mark.statistical
def test_draws_of_advi_are_those_of_its_gaussian(advi_fit):
    tree, covariance = advi_fit
    location = tree["fit"]["location"].values
    assert_moments(tree["posterior"]["x"].values, location, np.diag(covariance))


def test_densities_of_advi_are_those_of_its_gaussian(advi_fit):
    """`log_q` at every draw by SciPy, and the ELBO as the mean of log p - log q."""
    tree, covariance = advi_fit
    x = tree["posterior"]["x"].values
    log_q = stats.multivariate_normal.logpdf(x, tree["fit"]["location"].values, covariance)
    log_p = stats.multivariate_normal.logpdf(x, MEAN, COVARIANCE)
    found = tree["sample_stats"]
    np.testing.assert_allclose(found["log_q"], log_q, atol=1e-9)
    np.testing.assert_allclose(found["lp"], log_p, atol=1e-8)
    assert tree.attrs["elbo"] == pytest.approx((log_p - log_q).mean(), abs=1e-8)


def family(name, size=20, rank=3):
    """One family of ADVI, at parameters far from where it starts."""
    random, start = rng(5), np.zeros(size)
    q = {
        "mean_field": lambda: advi.LowRank(start, 0.5, 0, random),
        "low_rank": lambda: advi.LowRank(start, 0.5, rank, random),
        "full_rank": lambda: advi.FullRank(start, 0.5),
    }[name]()
    q.parameters = 0.3 * random.normal(size=len(q.parameters))
    return q, random


def dense(q):
    """Its location and covariance, from what the `fit` group stores."""
    found = q.details()
    root = found.get("factor", np.diag(found.get("own_sd", found["sd"])))
    loading = found.get("loading", np.zeros((len(root), 1)))
    return found["location"], root @ root.T + loading @ loading.T


def exact_noise(q):
    """Noise (S, P + rank) of covariance I exactly: an average over it is no estimate."""
    return np.sqrt(q.noise) * np.concatenate([np.eye(q.noise), -np.eye(q.noise)])


FAMILIES = pytest.mark.parametrize("name", ["mean_field", "low_rank", "full_rank"])


@FAMILIES
def test_a_family_is_a_gaussian(name):
    """Its density, entropy and sd by SciPy; unit vectors of noise are a root of its covariance."""
    q, random = family(name)
    location, covariance = dense(q)
    law = stats.multivariate_normal(location, covariance, allow_singular=True)
    e = random.normal(size=(7, q.noise))
    np.testing.assert_allclose(q.log_density(e), law.logpdf(q.sample(e)), rtol=1e-7)
    assert q.entropy() == pytest.approx(law.entropy(), rel=1e-7)
    np.testing.assert_allclose(q.details()["sd"], np.sqrt(np.diag(covariance)))
    root = q.sample(np.eye(q.noise)) - location
    np.testing.assert_allclose(root.T @ root, covariance, rtol=1e-10, atol=1e-12)


@FAMILIES
def test_a_family_starts_at_a_point_with_the_spread_given(name):
    start, random = np.array([0.3, -1.0, 2.0]), rng(6)
    rank = {"mean_field": 0, "low_rank": 2}.get(name)
    q = advi.FullRank(start, 0.2) if rank is None else advi.LowRank(start, 0.2, rank, random)
    found = q.details()
    np.testing.assert_array_equal(found["location"], start)
    np.testing.assert_allclose(found.get("own_sd", found["sd"]), 0.2)
    assert ("loading" in found) == (name == "low_rank")


@FAMILIES
def test_the_gradient_of_a_family_is_that_of_its_elbo(name):
    """By central differences of mean_s g_s . x_s + entropy, the noise and the slopes g held."""
    q, random = family(name)
    e = exact_noise(q)
    g, at = random.normal(size=(len(e), q.size)), q.parameters
    found = q.gradient(e, g)

    def elbo(parameters):
        q.parameters = parameters
        return (g * q.sample(e)).sum(1).mean() + q.entropy()

    steps = 1e-5 * np.eye(len(at))
    differences = np.array([elbo(at + step) - elbo(at - step) for step in steps]) / 2e-5
    np.testing.assert_allclose(found, differences, rtol=1e-6, atol=1e-7)


@FAMILIES
def test_no_slope_is_left_at_the_optimum_on_a_gaussian(name):
    """Full rank is exact; KL(q || p) of a mean field is least at variances 1 / Lambda_ii.

    Low rank is exact where the covariance is a diagonal and as many directions.
    """
    q, _ = family(name, size=6, rank=2)
    location, covariance = dense(q)
    A = np.linalg.inv(covariance)
    if name == "mean_field":  # another Gaussian, of which q has the best diagonal
        u = rng(7).normal(size=6)
        A = A + 2.0 * np.outer(u, u)
        q.parameters[6:] = -0.5 * np.log(np.diag(A))
        assert (np.diag(np.linalg.inv(A)) > 1.2 / np.diag(A)).any()
    e = exact_noise(q)
    slope = q.gradient(e, (location - q.sample(e)) @ A)
    np.testing.assert_allclose(slope, 0.0, atol=1e-9)
    q.parameters[7] += 0.01  # it is felt
    assert abs(q.gradient(e, (location - q.sample(e)) @ A)[7]) > 1e-3


@pytest.mark.statistical
def test_low_rank_is_exact_where_its_rank_suffices():
    """A mean field's variances 1 / Lambda_ii are 40 to 60 % of the true ones here, but for one.

    The largest of the relative errors was 0.006 to 0.021 over 12 seeds, with an sd of 0.005.
    """
    loading = np.array([[1.0, 0.8, 0.6, 0.0, -0.5, 0.0], [0.0, 0.5, -0.7, 1.0, 0.0, 0.3]]).T
    covariance = np.diag([0.3, 0.5, 0.4, 0.6, 0.2, 0.8]) + loading @ loading.T
    mean = np.array([1.0, -2.0, 0.0, 4.0, 3.0, 7.0])
    result = approximate(advi, known_gaussian(mean, covariance), draws=1, rank=2, samples=20)
    assert (result.status, result.reason) == ("finished", "")
    found = result.details
    np.testing.assert_allclose(found["location"], mean, atol=1e-6)
    sd = np.sqrt(np.diag(covariance))
    wrong = np.diag(found["own_sd"] ** 2) + found["loading"] @ found["loading"].T - covariance
    assert np.abs(wrong / np.outer(sd, sd)).max() < 0.08


@pytest.mark.statistical
def test_mean_field_on_a_gamma_misses_by_the_computed_amount():
    """The best normal on log x has variance 1 / a and mean log(a / r) - 1 / (2 a).

    Over 12 seeds the location has an sd of 0.0005, the sd a relative one of 0.007: five and a half
    of each.
    """

    def value_and_slope(u):
        e = 2.0 * np.exp(u)
        return float(4.0 * u[0] - e[0]), 4.0 - e

    found = approximate(advi, Known(value_and_slope, [0.0]), draws=1, samples=20).details
    assert found["location"].item() == pytest.approx(np.log(2.0) - 1.0 / 8.0, abs=0.003)
    assert found["sd"].item() == pytest.approx(0.5, rel=0.04)


def test_advi_that_walks_away_says_so():
    """Steps of 100 sd never come near: that the ELBO has stopped rising is no optimum."""
    target = known_gaussian(MEAN, COVARIANCE)
    result = approximate(advi, target, step_sizes=(100.0,), start_sd=0.5)
    assert result.status == "not_converged"
    assert result.reason.code == "fell"
    assert result.reason.numbers["end"] < result.reason.numbers["start"]
    assert "step_sizes" in str(result.reason)


def test_a_few_draws_far_away_do_not_hide_that_advi_fell():
    density = known_gaussian(MEAN, COVARIANCE)
    options, random = advi.Options(), np.random.default_rng(seed(5))
    far = -(10.0 ** np.linspace(2.0, 16.0, 200))  # their standard error is as large as their mean
    assert advi._fell(density, far, options, random).code == "fell"
    q = advi.LowRank(density.start, options.start_sd, 0, random)
    noise = random.standard_normal((200, density.size))
    same = density.logp(q.sample(noise)) - q.log_density(noise)
    assert not advi._fell(density, same + 1.0, options, random)


@pytest.mark.statistical
@pytest.mark.parametrize("sd", [0.01, 100.0])
def test_advi_that_is_exact_did_not_fall(sd):
    """q = p, so the ELBO is 0; at the start, of half the sd, 5 (log 2 - 3/8) = 1.6 lower.

    Without its log q the mean of either side is the entropy away, 16 lower or 30 higher.
    """
    target = known_gaussian(np.zeros(5), sd**2 * np.eye(5))
    result = approximate(advi, target, start_sd=sd / 2, step_sizes=(0.02, 0.002))
    assert (result.status, result.reason) == ("finished", "")
    assert result.attrs["elbo"] == pytest.approx(0.0, abs=0.1)


def test_when_an_elbo_has_settled():
    """The last window against the one before it, whatever was earlier; a fall is no rise."""
    wave, none = np.tile([0.0, 1.0], 5).tolist(), []
    assert not advi._settled([*np.arange(10.0)])
    assert advi._settled([*np.arange(10.0)[::-1]])
    assert advi._settled(wave)
    assert not advi._settled(wave[:9])
    assert not advi._settled(none)
    assert advi._settled([*np.arange(-50.0, 0.0), *wave])
    # windows of means 0 and m, variances 0.5 each: two standard errors are 2 (1 / 5)^(1/2) = 0.89
    spread = np.array([-1.0, 0.0, 0.0, 0.0, 1.0])
    assert advi._settled([*spread, *(spread + 0.88)])
    assert not advi._settled([*spread, *(spread + 0.91)])


def test_an_estimate_leaves_out_draws_of_infinite_density():
    """Beyond 0 there is none: what is left are the draws below, whose gradient is -1."""

    def value_and_slope(x):
        return (-x[0], -np.ones(1)) if x[0] < 0.0 else (-np.inf, np.full(1, np.nan))

    density, options = Known(value_and_slope, [0.0]), advi.Options()
    q = advi.LowRank(density.start, 1.0, 0, rng())
    value, gradient = advi._estimate(density, q, 6, np.random.default_rng(3))
    below = -np.abs(np.random.default_rng(3).standard_normal(3))  # of each antithetic pair, one
    assert value == pytest.approx(-below.mean() + q.entropy(), rel=1e-12)
    np.testing.assert_allclose(gradient, [-1.0, 1.0 - below.mean()], rtol=1e-12)
    q.parameters = np.array([1e3, 0.0])
    with pytest.raises(FitFailed, match="not finite at any draw of q"):
        advi._estimate(density, q, options.samples, rng())


def test_options_that_exclude_each_other_or_are_too_large(monkeypatch):
    with pytest.raises(InputError, match="rank adds directions of correlation to a mean field"):
        advi.Options(family="full_rank", rank=2)
    target, short = known_gaussian(MEAN, COVARIANCE), {"family": "full_rank", "max_iterations": 1}
    monkeypatch.setattr(advi, "LARGEST_FULL_RANK", 3)
    assert approximate(advi, target, **short).reason.code == "still rising"
    monkeypatch.setattr(advi, "LARGEST_FULL_RANK", 2)
    with pytest.raises(FitFailed, match=r"stores 3\^2 numbers.* limited to 2 .*'mean_field'"):
        approximate(advi, target, **short)


# --- Laplace --------------------------------------------------------------------------------------


@pytest.mark.statistical
def test_laplace_is_exact_on_a_gaussian(correlated):
    tree = fit(correlated, "laplace")
    assert tree.attrs["status"] == "finished", tree.attrs["reason"]
    np.testing.assert_allclose(tree["fit"]["location"], MEAN, atol=1e-6)
    np.testing.assert_allclose(tree["fit"]["sd"], SD, rtol=1e-6)
    x = tree["posterior"]["x"].values
    assert_moments(x, MEAN, np.diag(COVARIANCE))
    # the correlation r of S draws has sd (1 - r^2) / sqrt(S)
    r = 0.8 / np.sqrt(2.0)
    sd = (1 - r**2) / np.sqrt(4000)
    assert abs(np.corrcoef(x.reshape(-1, 3).T)[0, 1] - r) < z_limit() * sd
    # log q and lp are densities of the same vector, here equal
    difference = tree["sample_stats"]["lp"] - tree["sample_stats"]["log_q"]
    np.testing.assert_allclose(difference, 0.0, atol=1e-6)


@pytest.mark.parametrize("shape", [2.0, 6.0])
def test_laplace_on_a_gamma_misses_by_the_computed_amount(shape):
    """On u = log x the density is a u - r e^u: mode log(a / r), curvature a.

    So E_q[x] = (a / r) exp(1 / (2 a)) where the truth is a / r. Without the Jacobian the mode would
    be log((a - 1) / r) and the curvature a - 1.
    """
    tree = fit(gamma(shape, 2.0), "laplace")
    assert tree["fit"]["location"].item() == pytest.approx(np.log(shape / 2.0), abs=1e-7)
    assert tree["fit"]["sd"].item() == pytest.approx(shape**-0.5, rel=1e-7)
    u = np.log(tree["posterior"]["x"].values)
    log_q = stats.norm.logpdf(u, tree["fit"]["location"].item(), tree["fit"]["sd"].item())
    np.testing.assert_allclose(tree["sample_stats"]["log_q"], log_q, atol=1e-9)
    lp = stats.gamma.logpdf(np.exp(u), shape, scale=0.5) + u
    # PyTensor's gammaln of a small integer is a 32-bit number
    np.testing.assert_allclose(tree["sample_stats"]["lp"], lp, atol=1e-6)


@pytest.mark.statistical
def test_laplace_takes_the_best_of_several_modes():
    """One mode in ten parts at -4, where the first start leads, nine at 4.

    One of 39 other starts leads there with probability 1 - 1e-10.
    """
    at, weight = np.array([-4.0, 4.0]), np.array([0.1, 0.9])

    def value_and_slope(x):
        parts = weight * np.exp(-0.5 * (x[0] - at) ** 2) + 1e-300
        return np.log(parts.sum()), np.array([parts @ (at - x[0]) / parts.sum()])

    found = approximate(laplace, Known(value_and_slope, [-1.0]), starts=40, jitter=8.0).details
    values = found["log_density"]
    assert values[0] == pytest.approx(np.log(0.1), abs=1e-6)
    assert values.max() == pytest.approx(np.log(0.9), abs=1e-6)
    assert found["location"].item() == pytest.approx(4.0, abs=1e-6)
    for jumps in ([6.0, -6.0], [-6.0, 6.0]):  # the best start is the second, or the last
        given = iter(jumps)
        random = SimpleNamespace(standard_normal=lambda _, given=given: next(given))
        options = laplace.Options(starts=3, jitter=1.0)
        density = Known(value_and_slope, [-1.0])
        mode, _ = laplace.best_mode(density, options, random, lambda *_: None)
        assert mode.item() == pytest.approx(4.0, abs=1e-6)


def saddle(at):
    """The first variable has its mode at `at`, and the second a minimum where its slope is 0."""

    def value_and_slope(x):
        value = -0.5 * (x[0] - at) ** 2 - (x[1] ** 2 - 1.0) ** 2
        return value, np.array([at - x[0], -4.0 * x[1] * (x[1] ** 2 - 1.0)])

    return Known(value_and_slope, [0.0, 0.0])


def ridge():
    """Its density is the same along x + y = 0."""
    return Known(lambda x: (-0.5 * x.sum() ** 2, -np.full(2, x.sum())), [0.4, 0.9])


def endless():
    """The logarithm of a positive variable of density exp(-x) / x^2: it runs to 0."""
    return Known(lambda u: (float(-np.exp(u[0]) - u[0]), -np.exp(u) - 1.0), [0.0])


@pytest.mark.parametrize(
    ("density", "reason"),
    [
        (saddle(20.0), "the curvature at the mode is not positive definite (smallest eigenvalue"),
        (saddle(40.0), "the mode ran to a boundary: x[0] = 40"),
        (saddle(-40.0), "the mode ran to a boundary: x[0] = -40"),
        (ridge(), "the curvature at the mode is not positive definite (smallest eigenvalue"),
        (endless(), "the mode ran to a boundary: x[0] = -"),
    ],
)
def test_a_mode_where_no_gaussian_fits_is_one_point_and_its_reason(density, reason):
    """A boundary is the reason where the curvature is indefinite too."""
    result = approximate(laplace, density, starts=1)
    assert result.status == "not_converged"
    assert result.reason.startswith(reason)
    assert "sd" not in result.details
    assert result.posterior["x"].shape == (1, 1, density.size)  # the one point that it found
    lp = density.logp(result.posterior["x"][0])
    np.testing.assert_array_equal(result.sample_stats["lp"], lp[None])


def test_an_optimiser_that_stops_short_is_said():
    """On -x^4 / 4 a Newton step leaves 2/3 of x, and its decrement is x^4 / 6."""
    density = Known(lambda x: (float(-0.25 * x[0] ** 4), -(x**3)), [27.0])
    result = approximate(laplace, density, starts=1, max_iterations=1, jitter=1e-9)
    before = 1.5 * result.details["location"].item()
    assert before > 1.0
    assert str(result.reason) == (
        f"the optimiser stopped short of a mode (Newton decrement {before**4 / 6.0:.3g})"
    )


def test_a_density_that_is_nowhere_finite_is_a_failure():
    with pytest.raises(FitFailed, match="no starting point led to a finite density"):
        approximate(laplace, Known(lambda x: (np.nan, x), [1.0, 2.0]))


def test_too_many_parameters_are_refused_with_the_reason():
    with pm.Model() as model:
        pm.Normal("x", shape=laplace.LARGEST + 1)
    with pytest.raises(InputError, match="5001 x 5001 curvature matrix is too large"):
        fit(model, "laplace")


def test_columns_of_the_curvature_are_minus_second_derivatives():
    """Of -(sum_i c_i x_i^2)^2 - sum x_i^4, by hand."""
    c, point = np.array([0.5, -1.0, 2.0, 0.3]), np.array([0.3, 15.0, -0.2, 0.9])

    def value_and_slope(x):
        q = c @ x**2
        return -(q**2) - (x**4).sum(), -4.0 * q * c * x - 4.0 * x**3

    q = c @ point**2
    H = 8.0 * np.outer(c * point, c * point) + np.diag(4.0 * q * c + 12.0 * point**2)
    found = columns(Known(value_and_slope, point), point, np.array([3, 0, 1]))
    np.testing.assert_allclose(found, H[:, [3, 0, 1]], atol=1e-7 * np.abs(H).max())


# --- all of them ----------------------------------------------------------------------------------


def test_equal_seeds_give_equal_draws_on_any_number_of_cores(correlated):
    for method, first, second in (
        ("nuts", {"cores": 1, "tune": 100}, {"cores": 2, "tune": 100}),
        ("mams", {"cores": 1, "tune": 100}, {"cores": 4, "tune": 100}),
        ("advi", {"max_iterations": 200}, {"max_iterations": 200}),
        ("laplace", {}, {}),
    ):
        a, b = (fit(correlated, method, draws=50, chains=4, **o) for o in (first, second))
        np.testing.assert_array_equal(a["posterior"]["x"], b["posterior"]["x"])
        # negative control: a seed that is ignored would pass the line above
        c = fit(correlated, method, draws=50, chains=4, random_seed=seed(2), **first)
        assert not np.array_equal(a["posterior"]["x"], c["posterior"]["x"])
        assert a.attrs["seed"] == seed(1)


def test_no_seed_draws_one_and_records_it(correlated):
    a = fit(correlated, "laplace", draws=10, random_seed=None)
    b = fit(correlated, "laplace", draws=10, random_seed=a.attrs["seed"])
    np.testing.assert_array_equal(a["posterior"]["x"], b["posterior"]["x"])


@pytest.mark.parametrize("method", ["nuts", "mams", "advi", "laplace"])
def test_discrete_variables_are_refused(method):
    with pm.Model() as model:
        pm.Bernoulli("bit", 0.5)
        pm.Normal("x")
    with pytest.raises(InputError, match="bit are discrete"):
        fit(model, method)
