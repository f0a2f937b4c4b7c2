"""What the Gibbs samplers of all models keep: their points, their starts, and equal seeds."""

import copy
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import stats

import ardvark as av
from ardvark.common.validate import InputError
from ardvark.inference.samplers.gibbs import (
    ard_kernel,
    ard_linear,
    horseshoe,
    jcfo,
    masks,
    sparse_probit,
)
from ardvark.inference.samplers.gibbs.method import Options, chains, make_sampler
from ardvark.inference.target.backend import Job
from ardvark.inference.target.length import Length
from ardvark.inference.target.target import Target
from tests.support import ALARM, rng

POLYNOMIAL = {"kernel": "polynomial", "degree": 2}
HIERARCHICAL, MARGINAL = ({"parametrization": p} for p in ("hierarchical", "marginal"))
SPARSE = {"active_samples": 1.5}
FORMS = {
    "pfcvm": (ard_linear, MARGINAL),
    "pfcvm-hierarchical": (ard_linear, HIERARCHICAL | SPARSE),
    "pfcvm-rbf": (ard_kernel, {"kernel": "rbf"} | MARGINAL),
    "pfcvm-polynomial": (ard_kernel, POLYNOMIAL | HIERARCHICAL | SPARSE),
    "rfvm-none": (ard_linear, {"latent_noise": "none"} | MARGINAL | SPARSE),
    "rfvm-explicit": (ard_linear, {"latent_noise": "explicit"} | HIERARCHICAL),
    "rfvm-integrated": (ard_linear, {"latent_noise": "integrated"} | MARGINAL),
    "rfvm-both": (ard_linear, {"latent_noise": "integrated"} | HIERARCHICAL),
    "jcfo-linear": (jcfo, {"kernel": "linear"} | MARGINAL),
    "jcfo-polynomial": (jcfo, POLYNOMIAL | HIERARCHICAL),
    "jcfo-rbf": (jcfo, {"kernel": "rbf", "parametrization": "latent"}),
    "sparse_probit": (sparse_probit, MARGINAL),
    "sparse_probit-hierarchical": (sparse_probit, HIERARCHICAL),
    "horseshoe": (horseshoe, MARGINAL),
    "horseshoe-hierarchical": (horseshoe, HIERARCHICAL),
    "fsklr": (masks, {"mask_probability": "explicit"}),
    "sklr": (masks, {}),
    "fs_skr": (masks, {}),
}
KERNELS = {  # beside those above
    "jcfo-1": (jcfo, {"kernel": "polynomial", "degree": 1, "parametrization": "latent"}),
    "jcfo-3": (jcfo, {"kernel": "polynomial", "degree": 3, "parametrization": "latent"}),
    "pfcvm-1": (ard_kernel, {"kernel": "polynomial", "degree": 1}),
    "pfcvm-3": (ard_kernel, {"kernel": "polynomial", "degree": 3}),
    "fsklr-linear": (masks, {"kernel": "linear", "mask_prior": "printed"}),
}
# what the next sweep draws where a point does not have it
ABSENT = {"rfvm": {"u"}, "jcfo": {"tau", "tau_bias", "rho", "z"}, "sparse_probit": {"tau", "z"}}
# what a sampler does not hold while it sweeps
DRAWN_LAST = {"pfcvm": {"alpha", "beta"}, "rfvm": {"psi", "delta"}}
NO_BASIS = ("sparse_probit", "horseshoe")


def made(name, N=7, D=4, basis=(5, 0, 2), **given):
    """A sampler of its problem, which has other numbers of samples, features and centres."""
    file, settings = (FORMS | KERNELS)[name]
    model = name.split("-")[0]
    if model not in NO_BASIS:
        given["basis"] = basis
    data = rng().standard_normal((N, D)), np.arange(N) % 2
    sampler = make_sampler(av.problem(model, data, **settings | given))
    assert isinstance(sampler, file.Sampler)
    return sampler


@pytest.mark.parametrize("name", FORMS)
def test_points_are_those_of_the_problem(name):
    """Sweeps give finite points of the problem's form, which later sweeps leave as they are."""
    sampler, random = made(name), rng(1)
    problem, state, held = sampler.problem, sampler.start(random, 0), []
    for _ in range(5):
        sampler.sweep(state, random)
        point = sampler.point(state)
        np.testing.assert_allclose(point["eta"], problem.decision(point), rtol=1e-9, atol=1e-10)
        assert np.isfinite(problem.log_density(point))
        held.append((point, {variable: x.copy() for variable, x in point.items()}))
    assert set(point) == {v.name for v in problem.model.unobserved_RVs}
    for variable, value in problem.to_free(point).items():
        np.testing.assert_array_equal(point[variable], value)
    for point, kept in held:
        for variable, x in point.items():
            np.testing.assert_array_equal(x, kept[variable], err_msg=variable)
    assert (held[0][0]["eta"] != held[-1][0]["eta"]).any()


@pytest.mark.parametrize("name", FORMS | KERNELS)
def test_a_state_starts_at_a_point(name):
    """With every row as a centre too; what is absent is drawn by the first sweep."""
    for basis in ((5, 0, 2), None):
        sampler, random = made(name, basis=basis), rng(1)
        problem = sampler.problem
        point = problem.simulate(random)
        y, before = point["y"], copy.deepcopy(point)
        sampler.set_labels(y)
        again = sampler.point(sampler.state(point))
        shared = [v for v in again if v in point and not np.isnan(again[v]).any()]
        unknown = {v for v in again if v in point} - set(shared)
        assert unknown <= DRAWN_LAST.get(problem.spec.name, set())
        for variable in shared:
            np.testing.assert_allclose(again[variable], point[variable], rtol=1e-9, atol=1e-10)
        absent = ABSENT.get(problem.spec.name, set())
        state = sampler.state({v: x for v, x in point.items() if v not in absent})
        sampler.sweep(state, random)
        now = sampler.point(state)
        assert np.isfinite(problem.spec.log_joint(now, problem.inputs, y, problem.hypers)).all()
        for variable, x in before.items():  # the sampler has a copy
            np.testing.assert_array_equal(point[variable], x, err_msg=variable)


def test_each_chain_goes_on_from_its_own_point():
    target, options = Target(made("pfcvm").problem), Options()
    job, length = Job(seed=1, chains=3), Length.of_draws(10)
    ends = chains(target, options, job, length).last()
    again = chains(target, options, job, length, ends).last()
    for variable, x in ends.items():
        np.testing.assert_allclose(again[variable], x, rtol=1e-9, atol=1e-10)
    assert len({x.tobytes() for x in ends["feature_weight"]}) == 3


def test_a_point_of_other_labels_is_refused():
    sampler = made("jcfo-rbf")
    point = sampler.problem.simulate(rng())
    sampler.set_labels(1 - point["y"])
    with pytest.raises(InputError, match="Omit z"):
        sampler.state(point)


@pytest.mark.parametrize(
    "name", ["rfvm-explicit", "pfcvm-rbf", "jcfo-polynomial", "fsklr", "horseshoe"]
)
def test_equal_seeds_give_equal_draws_in_threads(name):
    sampler = made(name, N=30, D=40, basis=None)

    def chain(c):
        random = rng(100 + c)
        state = sampler.start(random, c)
        for _ in range(5):
            sampler.sweep(state, random)
        return sampler.point(state)["eta"]

    one = [chain(c) for c in range(4)]
    with ThreadPoolExecutor(4) as pool:
        many = list(pool.map(chain, range(4)))
    np.testing.assert_array_equal(one, many)
    assert len({e.tobytes() for e in one}) == 4


@pytest.mark.parametrize(
    ("name", "N", "D", "most"),
    [
        ("rfvm-explicit", 40, 6000, 100e6),
        ("jcfo-linear", 20, 20_000, 13e6),
        ("horseshoe", 40, 6000, 100e6),
    ],
)
def test_fat_data_need_a_few_copies_of_it(name, N, D, most):
    """D x D would be 288 MB and 3.2 GB, X is 2 and 3.2 MB."""
    first, random = made(name, N, D, None), rng()
    first.sweep(first.start(random, 0), random)  # compiled code is no copy of X
    tracemalloc.start()
    sampler = make_sampler(first.problem)
    state = sampler.start(random, 0)
    for _ in range(2):
        sampler.sweep(state, random)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.isfinite(state.eta).all()
    assert peak < most


def test_which_steps_a_problem_is_swept_by():
    """In columns where there are as many rows; truncated normals for a linear kernel if D >= N."""
    assert made("jcfo-linear", N=7, D=7).truncated
    assert not made("jcfo-linear", N=7, D=6).truncated
    assert not made("jcfo-rbf", N=7, D=8).truncated
    assert made("horseshoe", N=7, D=6).tall
    assert not made("horseshoe", N=7, D=7).tall
    assert not made("horseshoe", N=400, D=horseshoe.Sampler.most_columns).tall
    learns = {"learn_alone", "learn_with_weights"}  # the scale, in columns; in rows with z
    assert made("sparse_probit", N=7, D=5).left_out == {"elliptical"}
    assert made("sparse_probit", N=7, D=6).left_out == learns | {"elliptical"}
    assert made("sparse_probit", N=7, D=5, scale="fixed").left_out == learns | {"elliptical"}
    assert made("sparse_probit", N=7, D=6, scale="fixed").left_out == learns


@pytest.mark.statistical
def test_chains_over_masks_start_apart():
    """With a tenth, a half, a quarter and a fiftieth of 800 features, and tau from its prior."""
    sampler, random = made("fsklr", D=800, mask_probability="integrated"), rng(3)
    on = [int(sampler.start(random, chain).zeta.sum()) for chain in range(4)]
    assert on[1] > on[2] > on[0] > on[3]  # the nearest two are 6.8 sds apart
    sampler = made("fs_skr", noise_shape=6.0, noise_rate=1.5)
    tau = [sampler.start(random, chain).tau for chain in range(300)]
    assert stats.kstest(tau, stats.gamma(6.0, scale=1.0 / 1.5).cdf).pvalue > ALARM
