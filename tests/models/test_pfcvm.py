"""PFCVM and the two models it contains: PCVM (theta fixed) and RVM (theta fixed, real weights).

What every model must do is in test_contract.py. Here: the special cases agree, wrong variants are
told apart, and a gradient takes little memory.
"""

import tracemalloc
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from scipy import stats

from ardvark.models import ZOO, pfcvm
from ardvark.models.parts import ard
from ardvark.models.parts.kernels import KERNELS, make_kernel
from tests.models.forms import Compiled, make, prior_points

FAMILY = {name: ZOO[name] for name in ("pfcvm", "pcvm", "rvm")}
every_kernel = pytest.mark.parametrize("kernel", KERNELS)


# --- special cases --------------------------------------------------------------------------------


def of_samples(problem):
    """Return the prior of the sample weights, as hyperparameters."""
    return {f"sample_{what}": x for what, x in problem.hypers.sample_prior._asdict().items()}


@every_kernel
@pytest.mark.parametrize("parametrization", get_args(ard.Form))
def test_theta_fixed_is_pcvm(kernel, parametrization):
    """p(y, w, theta, b) = p(theta) * PCVM's p(y, w, b) with theta as its feature_scale."""
    whole = make("pfcvm", kernel=kernel, parametrization=parametrization)
    for point in prior_points(whole, 3):
        form = {"kernel": kernel, "parametrization": parametrization}
        part = make("pcvm", **form, **of_samples(whole), feature_scale=point["feature_weight"])
        prior = pfcvm.THETA.logp(point, whole.hypers)
        np.testing.assert_allclose(part.decision(point), point["eta"], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(
            whole.log_joint(point), part.log_joint(point) + prior, rtol=1e-12
        )


@pytest.mark.parametrize("parametrization", get_args(ard.Form))
def test_pcvm_is_rvm_where_all_labels_are_positive(parametrization):
    """With s = 1, PCVM is the RVM folded to w >= 0: density 2^B times as high."""
    given = {"kernel": "rbf", "parametrization": parametrization}
    positive = make("pcvm", basis_labels=np.ones(9), **given)
    real = make("rvm", **given)
    for point in prior_points(positive, 3):
        np.testing.assert_array_equal(point["sample_weight"], point["w"])
        np.testing.assert_allclose(real.decision(point), point["eta"], rtol=1e-12, atol=1e-10)
        expected = real.log_joint(point) + 9 * np.log(2.0)
        np.testing.assert_allclose(positive.log_joint(point), expected, rtol=1e-12)


def test_weights_below_zero_have_no_density():
    problem = make("pfcvm")
    point = prior_points(problem, 1)[0]
    for name in ("w", "feature_weight"):
        wrong = {**point, name: point[name] * np.array([-1.0] + [1.0] * (len(point[name]) - 1))}
        assert problem.log_joint(wrong) == -np.inf


# --- wrong variants are caught --------------------------------------------------------------------


def variance_for_precision(problem, point):
    """The density in which alpha is read as a variance."""
    alpha = point["alpha"]
    right = stats.norm.logpdf(point["w"], 0.0, alpha**-0.5).sum()
    return problem.log_density(point) - right + stats.norm.logpdf(point["w"], 0.0, alpha**0.5).sum()


def labels_left_out(problem, point):
    """The density in which s_j is dropped from the basis."""
    return replace(problem, basis_labels=np.ones(len(problem.Z))).log_density(point)


def scale_for_rate(problem, point):
    """The density in which the Gamma's second argument is a scale."""
    beta, prior = point["beta"], problem.hypers.feature_prior
    right = stats.gamma.logpdf(beta, prior.shape, scale=1.0 / prior.rate).sum()
    wrong = stats.gamma.logpdf(beta, prior.shape, scale=prior.rate).sum()
    return problem.log_density(point) - right + wrong


def test_wrong_densities_are_told_apart():
    problem = make("pfcvm", kernel="rbf", parametrization="hierarchical")
    points = prior_points(problem, 10)
    compiled = Compiled(problem)
    reference = np.array([compiled.density({**p, "y": problem.y}) for p in points])

    def spread(density):
        return np.ptp([density(problem, p) for p in points] - reference)

    assert spread(lambda problem, point: problem.log_density(point)) < 1e-8
    for wrong in (variance_for_precision, labels_left_out, scale_for_rate):
        assert spread(wrong) > 0.1, wrong.__name__


# --- memory ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [pytest.param("polynomial", marks=pytest.mark.slow), "rbf"])
def test_a_gradient_holds_no_array_of_pairs_by_features(kernel):
    N, D = 60, 300
    problem = make("pfcvm", N=N, D=D, kernel=kernel)
    gradient = problem.model.compile_dlogp(mode="FAST_COMPILE")
    start = problem.model.initial_point()
    gradient(start)
    tracemalloc.start()
    try:
        assert np.isfinite(gradient(start)).all()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 8 * N * D < peak < 0.5 * 8 * N * N * D


# --- hyperparameters ------------------------------------------------------------------------------


def test_polynomial_fills_a_feature_shape_above_its_degree():
    for degree in (1, 2, 3):
        dense = {"degree": degree, "active_features": "all"}
        assert make("pfcvm", kernel="polynomial", **dense).hypers.feature_shape > degree
    assert make("pfcvm", kernel="linear", **dense).hypers.feature_shape == 1.5


def test_the_degree_is_part_of_the_posterior_of_the_polynomial_kernel_only():
    for name in FAMILY:
        assert make(name, degree=2).fingerprint == make(name, degree=3).fingerprint
        two, three = (make(name, kernel="polynomial", degree=P) for P in (2, 3))
        assert two.fingerprint != three.fingerprint


@pytest.mark.parametrize("name", ["pcvm", "rvm"])
def test_feature_scale_is_one_number_or_one_for_each_feature(name):
    number = make(name, kernel="rbf", feature_scale=0.3)
    array = make(name, kernel="rbf", feature_scale=np.full(4, 0.3))
    assert array.hypers == make(name, kernel="rbf", feature_scale=[0.3] * 4).hypers
    point = prior_points(number, 1)[0]
    np.testing.assert_array_equal(point["feature_weight"], np.full(4, 0.3))
    assert number.log_joint(point) == array.log_joint(point)
    weight = array.model["feature_weight"].eval()
    np.testing.assert_array_equal(weight, np.full(4, 0.3))
    for kernel in KERNELS:
        filled = make(name, kernel=kernel, N=12, D=6).hypers.feature_scale
        assert filled == make_kernel(kernel).scales(12, 6)[1]
