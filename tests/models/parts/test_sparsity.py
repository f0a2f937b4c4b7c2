"""The rates that follow from the number of weights that are to be visible."""

import itertools

import numpy as np
import pytest
from scipy import special, stats

import ardvark as av
from ardvark.common.validate import InputError
from ardvark.models import pcvm
from ardvark.models.parts import ard
from ardvark.models.parts.effects import VISIBLE
from ardvark.models.parts.kernels import KERNELS, make_kernel
from ardvark.models.parts.kernels.rbf import column_sd
from ardvark.models.parts.sparsity import Law
from ardvark.models.pfcvm import Hypers
from tests.support import rng, z_limit

HALF_CAUCHY = ard.WeightPrior(0.5, 0.5 * 0.01**2, 1.0)  # scale 0.01, slab 1


# --- what a prior says about one weight, against closed forms -------------------------------------


def test_the_tail_of_a_half_cauchy_with_a_slab_is_owens_t():
    """P(x <= t) = 4 T(s / c, t / s) / erfc(s / (c sqrt 2)), scale s and slab c."""
    s, t = HALF_CAUCHY.scale, np.array([1e-4, 0.01, 0.1, 1.0, 2.0])
    exact = 1.0 - 4.0 * special.owens_t(s, t / s) / special.erfc(s / np.sqrt(2.0))
    np.testing.assert_allclose(Law(HALF_CAUCHY).tail(t), exact, rtol=1e-2)  # 600 points


def test_the_tail_of_a_dense_prior_is_that_of_student_t():
    prior, t = ard.WeightPrior(1.5, 0.6), np.array([0.01, 0.5, 3.0, 20.0])
    exact = 2.0 * stats.t.sf(t / prior.scale, 3.0)
    np.testing.assert_allclose(Law(prior).tail(t), exact, rtol=3e-3)


def test_the_mean_of_a_half_cauchy_with_a_slab_has_a_closed_form():
    h = 0.5 * HALF_CAUCHY.scale**2
    exact = HALF_CAUCHY.scale / np.pi * np.exp(h) * special.exp1(h) / special.erfcx(np.sqrt(h))
    assert Law(HALF_CAUCHY).mean(lambda x: x) == pytest.approx(exact, rel=1e-3)


def test_the_norm_of_normal_weights_is_that_of_chi():
    """At a large shape the precision is nearly fixed: weights are normal, of scale 1."""
    normal = ard.WeightPrior(1e5, 1e5)
    assert Law(normal).norm(7) == pytest.approx(stats.chi(7).mean(), rel=1e-3)
    assert Law(normal).norm(1) == pytest.approx(np.sqrt(2.0 / np.pi), rel=1e-3)


@pytest.mark.statistical
def test_the_norm_of_sparse_weights_is_that_of_draws():
    x = ard.draw(rng(0), HALF_CAUCHY, 50 * 4000)[1].reshape(4000, 50)
    norms = np.linalg.norm(x, axis=1)
    error = norms.std() / np.sqrt(len(norms))
    assert abs(norms.mean() - Law(HALF_CAUCHY).norm(50)) < z_limit() * error


@pytest.mark.statistical
@pytest.mark.parametrize(("scale", "D"), [(1e-3, 40), (0.1, 6), (1.0, 3), (1e-5, 2000)])
def test_the_spread_of_an_rbf_column_is_that_of_draws(scale, D):
    """Given theta by closed forms, which have a test of their own; theta is drawn."""
    prior, S = ard.WeightPrior(0.5, 0.5 * scale**2, 1.0), 1000
    theta = ard.draw(rng(1), prior, S * D)[1].reshape(S, D)
    A = np.prod((1 + 8 * theta) ** -0.5, axis=1)
    B = np.prod(((1 + 2 * theta) * (1 + 6 * theta)) ** -0.5, axis=1)
    spread = np.sqrt(np.maximum(A - B, 0.0))
    error = spread.std() / np.sqrt(S)
    assert abs(spread.mean() - column_sd(Law(prior), D)) < z_limit() * error


def test_moments_of_an_rbf_column_are_those_of_normal_rows():
    """E K, E K(x, z)^2 and E K(x, z) K(x', z) of three features by the trapezoidal rule.

    `fixed_factors` has them with a row that is the centre itself among the N.
    """
    theta, N = np.array([0.03, 1.2, 0.4]), 17
    n = np.linspace(-9.0, 9.0, 361)  # exact to rounding
    w = stats.norm.pdf(n) * (n[1] - n[0])
    K = np.exp(-np.multiply.outer(theta, np.subtract.outer(n, n) ** 2))  # (D, x, z)
    mean, square, shared = (np.prod(v @ w) for v in (w @ K, w @ K**2, (w @ K) ** 2))
    found = make_kernel("rbf").fixed_factors(theta, N)
    exact = np.sqrt([square - shared + (1.0 - mean) ** 2 / N, square + 1.0 / N])
    np.testing.assert_allclose(found, exact, rtol=1e-12)


# --- the whole model: as many weights are visible as were asked for -------------------------------


def count(problem, draws, number):
    """Return the numbers of visible features and samples in each of some prior draws."""
    random, kernel, found = rng(number), problem.kernel, []
    for _ in range(draws):
        point = problem.simulate(random)
        theta, a = point["feature_weight"][None], point["sample_weight"][None]
        args = problem.X, problem.Z, theta, a
        feature = kernel.feature_effects(*args, VISIBLE)
        sample = kernel.sample_effects(*args)
        found.append(((feature > VISIBLE).sum(), (sample > VISIBLE).sum()))
    return np.array(found, dtype=float)


def normal_problem(name, N, D, **settings):
    X = rng(10).normal(size=(N, D))
    return av.problem(name, (X, np.arange(N) % 2), **settings)


def simulations():
    """Every kernel at three sizes of data; the dear ones, thousands of kernels, are slow."""
    for name, kernel in [*(("pfcvm", k) for k in KERNELS), ("rfvm", "linear")]:
        for size in [(30, 6, 300), (200, 40, 60), (72, 7129, 25)]:
            dear = size[1] == 7129 and kernel != "linear"
            yield pytest.param(name, kernel, *size, marks=[pytest.mark.slow] if dear else [])


@pytest.mark.statistical
@pytest.mark.parametrize(("name", "kernel", "N", "D", "draws"), list(simulations()))
def test_the_expected_numbers_are_those_asked_for(name, kernel, N, D, draws):
    """Within 20 %, and the Monte Carlo error of the simulation (5 to 10 %) times its limit.

    A rate 16 times too large makes four times as many visible, the control: 20 to 60 standard
    errors away.
    """
    problem = normal_problem(name, N, D, kernel=kernel)
    h = problem.hypers
    asked = np.array([h.active_features, h.active_samples])
    found = count(problem, draws, 0)
    error = found.std(axis=0) / np.sqrt(draws)
    assert (np.abs(found.mean(axis=0) - asked) < 0.2 * asked + z_limit() * error).all()


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("N", "D", "active", "draws"), [(72, 7129, 40.0, 25), (62, 2000, 40.0, 40), (200, 60, 40.0, 60)]
)
def test_many_features_are_met_beside_more_samples(N, D, active, draws):
    """Where the filled number of samples is too small for them, it is raised, and both are met.

    Given as a number, that of the samples stays, and no scale gives so many features.
    """
    few = normal_problem("rfvm", N, D).hypers.active_samples
    problem = normal_problem("rfvm", N, D, active_features=active)
    h = problem.hypers
    assert few < h.active_samples < N
    assert h.active_features == active
    found = count(problem, draws, 0)
    asked, error = np.array([active, h.active_samples]), found.std(axis=0) / np.sqrt(draws)
    assert (np.abs(found.mean(axis=0) - asked) < 0.2 * asked + z_limit() * error).all()
    with pytest.raises(InputError, match=f"no linear prior .* with active_samples = {few:g}"):
        normal_problem("rfvm", N, D, active_features=active, active_samples=few)


@pytest.mark.statistical
def test_a_wrong_rate_is_seen():
    """Four times the scale: four times as many features are visible."""
    base = normal_problem("pfcvm", 30, 300).hypers
    given = {f"sample_{k}": v for k, v in base.sample_prior._asdict().items()}
    given |= {f"feature_{k}": v for k, v in base.feature_prior._asdict().items()}
    wrong = normal_problem("pfcvm", 30, 300, **given | {"feature_rate": 16.0 * base.feature_rate})
    found = count(wrong, 200, 1)[:, 0]
    error = found.std() / np.sqrt(len(found))
    assert found.mean() - base.active_features > 0.2 * base.active_features + z_limit() * error


@pytest.mark.statistical
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("name", ["pcvm", "rvm"])
def test_samples_of_a_fixed_kernel_are_as_many_as_asked_for(name, kernel):
    problem = normal_problem(name, 60, 20, kernel=kernel)
    found = count(problem, 200, 2)[:, 1]
    asked, error = problem.hypers.active_samples, found.std() / np.sqrt(len(found))
    assert abs(found.mean() - asked) < 0.2 * asked + z_limit() * error


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_a_feature_of_the_size_of_its_slab_adds_as_many_logits(degree):
    """At x = z = 1, where the kernel (1 + theta)^P has slope P: the polynomial's slab is 1 / P."""
    h = normal_problem("pfcvm", 30, 6, kernel="polynomial", degree=degree).hypers
    one, step = np.ones((1, 1)), 1e-6
    gram = make_kernel("polynomial", degree).gram
    ends = [gram(one, one, np.array([t])) for t in (0.0, step)]
    slope = float((ends[1] - ends[0]).item()) / step
    assert slope * h.feature_prior.slab == pytest.approx(h.slab, rel=1e-4)


# --- filling --------------------------------------------------------------------------------------

SIZES = (40, 40, 200)


def test_all_is_the_dense_prior_and_so_are_explicit_rates():
    dense = Hypers(active_features="all", active_samples="all").fill(*SIZES)
    assert (dense.feature_shape, dense.sample_shape) == (1.5, 1.5)
    assert dense.slab == dense.feature_slab == dense.sample_slab == np.inf
    given = Hypers(
        feature_shape=1.5, feature_rate=dense.feature_rate, sample_shape=1.5, sample_rate=1.5
    ).fill(*SIZES)
    assert given == dense


@pytest.mark.parametrize("kernel", KERNELS)
def test_dense_samples_of_a_fixed_kernel_are_those_beside_features(kernel):
    fixed = pcvm.Hypers(kernel=kernel, active_samples="all").fill_samples(40, 40, np.ones(9))
    both = Hypers(kernel=kernel, active_features="all", active_samples="all").fill(40, 40, 9)
    assert fixed.sample_prior == both.sample_prior


def test_a_slab_may_be_given_to_a_dense_prior():
    dense = Hypers(active_features="all", active_samples="all", slab=3.0).fill(*SIZES)
    assert (dense.feature_shape, dense.feature_slab, dense.sample_slab) == (1.5, 1.0, 3.0)


@pytest.mark.parametrize("slab", [0.001, 5000.0])
def test_a_slab_beside_two_dense_priors_may_have_any_size(slab):
    """Its limits belong to the search for a rate, which a dense prior does not need."""
    dense = Hypers(active_features="all", active_samples="all", slab=slab).fill(*SIZES)
    assert (dense.feature_slab, dense.sample_slab, dense.slab) == (1.0, slab, slab)


@pytest.mark.parametrize("sparse", ["features", "samples"])
def test_one_group_may_be_dense(sparse):
    other = {"features": "samples", "samples": "features"}[sparse]
    h = Hypers(**{f"active_{other}": "all"}).fill(*SIZES)
    assert getattr(h, f"{sparse[:-1]}_shape") == 0.5
    assert getattr(h, f"{other[:-1]}_shape") == 1.5
    assert getattr(h, f"{other[:-1]}_slab") == np.inf


@pytest.mark.parametrize("given", [{}, {"active_features": "all"}, {"feature_rate": 0.1}])
def test_what_was_found_may_be_asked_for(given):
    """Shapes, rates and slabs given by hand are the same posterior."""
    found = Hypers(**given).fill(*SIZES).posterior_fields()
    again = Hypers(**found).fill(*SIZES)
    assert again.posterior_fields() == found
    assert (again.active_features, again.active_samples) == ("all", "all")


def test_the_posterior_does_not_know_what_its_rates_were_found_from():
    h = Hypers().fill(*SIZES)
    fields = h.posterior_fields()
    assert not {"slab", "active_features", "active_samples"} & set(fields)
    assert fields["feature_slab"] == h.feature_slab
    assert "feature_slab" not in Hypers(active_features="all").fill(*SIZES).posterior_fields()


def tiny_and_fat():
    """Smallest, narrow and fat data; the other pairs take seconds, with the same rules."""
    for N, D in itertools.product([2, 3, 8], [1, 2, 3, 7129]):
        default = (N, D) in {(2, 1), (3, 2), (2, 3), (8, 7129)}
        yield pytest.param(N, D, marks=[] if default else [pytest.mark.slow])


@pytest.mark.parametrize(("N", "D"), list(tiny_and_fat()))
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_size_of_data_has_a_default(kernel, N, D):
    h = Hypers(kernel=kernel).fill(N, N, D)
    assert 0.0 < h.active_features < D
    assert 0.0 < h.active_samples < N
    assert np.isfinite([h.feature_rate, h.sample_rate]).all()


def test_a_slab_silences_the_warning_of_heavy_tails(caplog):
    normal_problem("pfcvm", 10, 4, feature_shape=0.5, slab=2.0)
    normal_problem("pfcvm", 10, 4)
    assert not caplog.records
    normal_problem("pfcvm", 10, 4, feature_shape=0.5, feature_slab=np.inf)
    assert "feature_shape = 0.5" in caplog.text


@pytest.mark.parametrize(("kernel", "degree"), [("linear", 1), ("polynomial", 2), ("rbf", 1)])
def test_a_fixed_kernel_has_the_spread_of_normal_data(kernel, degree):
    X = np.random.default_rng(1).normal(size=(300, 12))
    X = (X - X.mean(0)) / X.std(0)
    function = make_kernel(kernel, degree)
    for theta in (np.linspace(0.01, 0.08, 12), np.linspace(0.002, 0.001, 12)):
        K = function.gram(X, X, theta)
        spread, size = np.sqrt(np.mean((K - K.mean(axis=0)) ** 2)), np.sqrt(np.mean(K**2))
        assert (spread, size) == pytest.approx(function.fixed_factors(theta, 300), rel=0.1)


@pytest.mark.parametrize(("kernel", "N", "D"), [
    ("rbf", 200, 1), ("rbf", 2000, 10), ("rbf", 200, 7129), ("polynomial", 200, 1),
    ("polynomial", 2000, 2),
])  # fmt: skip
def test_the_default_of_a_curved_kernel_is_sparse_in_both(kernel, N, D):
    """A spike below the slab: no scale with which every sample weight is about its slab."""
    h = Hypers(kernel=kernel).fill(N, N, D)
    assert h.sample_prior.scale < h.sample_prior.slab
    assert h.feature_prior.scale < 0.1 * h.feature_prior.slab
    assert h.active_samples <= 5.0 * h.active_features


def test_samples_follow_the_features_unless_they_are_asked_for():
    h = Hypers(kernel="rbf", active_samples=2.5).fill(200, 150, 30)
    assert (h.active_features, h.active_samples) == (3.0, 2.5)
    more = Hypers(kernel="rbf", active_samples=7.5).fill(200, 150, 30)
    assert more.sample_rate > h.sample_rate
    few = Hypers(kernel="rbf", active_features=2.0).fill(200, 150, 30)
    assert (few.active_features, few.active_samples) == (2.0, 6.0)
    fewer = Hypers(kernel="rbf", active_features=1.0).fill(200, 150, 30)
    assert (fewer.active_features, fewer.active_samples) == (1.0, 1.0)  # 3 would not be sparse
